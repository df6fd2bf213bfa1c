"""Bring the tensors of a maintained program up to date, one after the other.

Each kept tensor is computed by a program of its own: the statements of the text between it and the
tensors and inputs that are there, with masks of the keys that may differ
(`ucle.maintenance.affected`). The rows of these keys are replaced; keys whose rows have not changed
are not handed on. A sum of products may also grow by what its factors differ by
(`ucle.maintenance.differences`). A tensor is computed from scratch where that costs less, and where
every entry may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ucle.database.macro_check import open_checked
from ucle.database.session import Database, Session
from ucle.database.statistics_cache import cover_facts
from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar, same_value
from ucle.inputs.inputs import quoted_name
from ucle.inputs.table_input import Measure
from ucle.language.syntax import Statement
from ucle.maintenance.affected import EVERYTHING, Mask, reads_of
from ucle.maintenance.bound_program import BoundProgram
from ucle.maintenance.changes import ChangedInput, lies_within
from ucle.maintenance.derivation import AFFECTED, DIFFERENCES, Derivation, facts_of_mask
from ucle.maintenance.differences import Difference
from ucle.maintenance.document import Document, KeptTensor, Parts, encoded_axes, input_of
from ucle.maintenance.extremes import Before
from ucle.maintenance.kept_programs import KeptProgram, kept_program
from ucle.plan.forms import EVERY_ROW, NONFILL, WrittenForm
from ucle.plan.sources import TableSource
from ucle.run.results import Result, TensorRelation
from ucle.sqlgen.maintained_tables import (
    DELTA,
    changed_entries,
    count_changed,
    delete_all,
    drop_table,
    rows_and_last,
    rows_at,
    with_names,
    without_value,
)
from ucle.sqlgen.sql_trees import key_columns
from ucle.sqlgen.write_statements import all_rows, create_table, delete_rows, insert_rows
from ucle.stats.measure import MeasuredInput

PREFIX = "ucle_refresh_"
"""The prefix of temporary tables, which are those of a connection: one refresh runs at a time. They
have the same names each time, so that compiled programs read them."""

NO_LIMIT = 2**62
"""The most rows that are written."""

AUTO, SCRATCH = "auto", "from scratch"
WAYS = (AUTO, DIFFERENCES, AFFECTED, SCRATCH)
"""How tensors are brought up to date: in the cheapest way, or in one of the others if it can be."""

CHEAP = 0.25
"""The share of the cost of all entries up to which a way is taken without a look at others."""

WORTH_COMPILING = 3e7
"""The cost of computing all entries from which other ways are compiled, which costs as much."""

REPLACED = 150.0
"""The cost of comparing a row of a kept tensor with a new one, which a full run does not have: that
of all rows is a part of the cost of all entries."""

SAME_SIZE = 1.5
"""How much the inputs may have grown or shrunk since all entries were priced."""


@dataclass(frozen=True)
class TensorReport:
    """How a kept tensor was brought up to date."""

    tensor: str
    way: str
    """``"unchanged"``, or one of `WAYS`."""
    reason: str
    rows: int = 0
    """The number of keys whose rows differ from those before."""
    cost: float = 0.0
    """The predicted cost of the program that ran."""
    scratch: float = 0.0
    """That of computing the tensor from scratch."""


@dataclass(frozen=True)
class _Candidate:
    """A program that computes entries of a kept tensor."""

    way: str
    reason: str
    cost: float
    made: KeptProgram
    new: str
    """The tensor of these entries."""
    masks: tuple[Mask, ...] = ()
    """Where they are; none if they are all."""
    moved: str = ""
    """A truth value: true if the entries do not count."""


class Refresh(Derivation):
    """One refresh of a maintained program, in a transaction."""

    def __init__(
        self,
        session: Session,
        document: Document,
        whole: BoundProgram,
        changes: Mapping[str, ChangedInput],
        way: str = AUTO,
    ) -> None:
        """Begin with what has changed in inputs.

        Args:
            session: in a transaction.
            document: the maintained program, as of the last refresh.
            whole: the program over the present data.
            changes: the changed inputs.
            way: one of `WAYS`.
        """
        super().__init__(document, whole)
        self.session, self.changes, self.way = session, changes, way
        self.reports: list[TensorReport] = []
        self.kept: list[KeptTensor] = []
        """The kept tensors, with the fills that they have now."""
        self._prefix = PREFIX
        self._temporary: list[Parts] = []
        self._given |= {
            x.name: replace(input_of(x.spec), measured=whole.facts[x.name]) for x in document.inputs
        }
        for name, change in changes.items():
            axes = self._types[name].axes
            own = [axes[n] for n in change.watched.axes]
            bounds = tuple(x.bound if x.dictionary is None else None for x in own)
            if not change.trusted or not change.lies_within(bounds):
                self._changed[name] = (EVERYTHING,)
                continue
            facts = facts_of_mask(change.keys, bounds)
            mask = self._give(f"{name}_changed", replace(change.where(bounds), measured=facts))
            self._changed[name] = (Mask(mask, change.watched.axes),)
            source = self.whole.inputs[name].source
            if change.added and isinstance(source, TableSource) and not source.sum_duplicates:
                self._added[name] = Before(
                    self._changed[name], self._types[name].fill, self._types[name].dtype
                )
            if change.differs_by:
                tensor = self._give(f"{name}_difference", change.difference(bounds))
                self._differences[name] = Difference(tensor, change.added)

    @property
    def loop_now(self) -> Mapping[str, Any] | None:
        """What is kept of a loop; None for a program without one."""
        return None

    def _find_grown(self) -> set[str]:
        """Return the tensors that have other sizes now, or other coordinates."""
        moved = {
            self._types[name].axes[axis].dictionary
            for name, change in self.changes.items()
            for axis in change.moved
        } - {None}
        return {
            name
            for name, own in self.whole.sizes.items()
            if own != self.document.sizes.get(name)
            or not moved.isdisjoint(axis.dictionary for axis in self._types[name].axes)
        }

    def run(self) -> None:
        """Bring all kept tensors up to date."""
        grown = self._find_grown()
        for kept in self.document.kept:
            self._refresh(kept, grown)
        self._drop_temporary()

    def _drop_temporary(self) -> None:
        for table in self._temporary:
            self.session.run(drop_table(table), "refresh")

    # ---- One tensor ----

    def _refresh(self, kept: KeptTensor, grown: set[str]) -> None:
        parts = self._statements_for(kept.tensor)
        read = set().union(*map(reads_of, parts))
        before, kept = kept, self._as_now(kept)
        same = same_value(before.fill, kept.fill) and before.kinds == kept.kinds
        self.kept.append(kept)
        grows = self._grows(parts, grown)
        if same and not grows and read.isdisjoint(self._changed):
            self.reports.append(TensorReport(kept.tensor, "unchanged", "nothing it reads changed"))
        else:
            reason = "sizes changed" if grows else ""
            if not same:
                reason = "its fill or its type changed"
            chosen, scratch = self._choose(kept, before, parts, reason)
            written = self._execute(chosen, kept)
            if written is None:
                self._added.clear()
                chosen, scratch = self._choose(kept, before, parts, reason)
                written = self._execute(chosen, kept)
                assert written is not None
            if before.kinds != kept.kinds:
                rows = self._create(kept, written[0])
            else:
                rows = self._replace(kept, *written)
            if not same:
                self._changed[kept.tensor] = (EVERYTHING,)
                self._differences.pop(kept.tensor, None)
                self._added.pop(kept.tensor, None)
            self.reports.append(
                TensorReport(kept.tensor, chosen.way, chosen.reason, rows, chosen.cost, scratch)
            )
            kept = replace(kept, digest=())
        self._given[kept.tensor] = self._spec_of(kept)

    def _as_now(self, kept: KeptTensor) -> KeptTensor:
        """Return a kept tensor with the fill and the types that it has for the present data."""
        type_, kinds = self._types[kept.tensor], self.whole.kinds_of(kept.tensor)
        return replace(kept, fill=type_.fill, encoded=encoded_axes(type_), kinds=kinds)

    def _create(self, kept: KeptTensor, new: Parts) -> int:
        """Make the table of a kept tensor anew; return the number of its rows."""
        rows = all_rows(new, (*kept.keys, "val"))
        run, where = self.session.run, f"refresh, {kept.tensor}"
        run(create_table(kept.table, rows, replace=True), where)
        ((count, *_),) = self.session.fetch(rows_and_last(kept.table))
        return int(count)

    def _choose(
        self, kept: KeptTensor, before: KeptTensor, parts: Sequence[Statement], reason: str
    ) -> tuple[_Candidate, float]:
        """Choose a way to compute a tensor; return it, and the cost of computing all entries.

        That cost is known from earlier as long as the inputs have about the same size. A way that
        is much cheaper is taken before others are compiled.
        """
        scratch: _Candidate | None = None
        if self.way == SCRATCH:
            reason = reason or "requested"
        total, entries = kept.scratch, self.whole.entries
        if reason or not entries / SAME_SIZE <= kept.priced <= entries * SAME_SIZE:
            scratch = self._from_scratch(kept, parts, reason or "it costs less")
            total = scratch.cost
            self.kept[-1] = replace(kept, scratch=total, priced=entries)
        total += REPLACED * (kept.digest[0] or 0 if kept.digest else 0)
        if self.way == AUTO and total <= WORTH_COMPILING:
            reason = reason or "it costs less"
        if reason:
            return scratch or self._from_scratch(kept, parts, reason), total
        best: _Candidate | None = None
        ways = [x for x in (DIFFERENCES, AFFECTED) if self.way in (AUTO, x)]
        for way, found in self._candidates(before, parts, ways):
            masks, checks = found.masks, [found.moved] if found.moved else []
            try:
                names = [found.new, *(x.tensor for x in masks), *checks]
                made = self._build(found.statements, names)
            except UcleError:
                continue
            dtype = made.compiled.program.types[found.new].dtype
            if found.moved and dtype is not self._types[kept.tensor].dtype:
                continue
            cost = made.cost
            if best is None or cost < best.cost:
                axes = [",".join(kept.keys[axis] for axis in x.axes) for x in masks]
                shown = ", ".join(f"[{each}]" for each in axes)
                reason = f"masks over {shown}" if shown else "all entries"
                best = _Candidate(way, reason, cost, made, found.new, masks, found.moved)
            if way == self.way == DIFFERENCES or (self.way == AUTO and cost <= CHEAP * total):
                break
        reason = ""
        if best is None:
            reason = "every entry may differ"
        elif self.way == AUTO and best.cost >= total:
            reason = "it costs less"
        if best is None or reason:
            scratch = scratch or self._from_scratch(kept, parts, reason)
            return replace(scratch, reason=reason), total
        return best, total

    def _from_scratch(
        self, kept: KeptTensor, parts: Sequence[Statement], reason: str
    ) -> _Candidate:
        made = self._build(parts, [kept.tensor])
        return _Candidate(SCRATCH, reason, made.cost, made, kept.tensor)

    # ---- Programs and tables ----

    def _build(self, statements: Sequence[Statement], outputs: Sequence[str]) -> KeptProgram:
        inputs, options = self._read_by(statements), self.whole.options
        return kept_program(statements, inputs, outputs, self.session, options)

    @property
    def database(self) -> Database:
        """The connection on which the refresh runs."""
        return self.session.connection

    def _execute(
        self, chosen: _Candidate, kept: KeptTensor
    ) -> tuple[Parts, list[tuple[Parts, list[str]]]] | None:
        """Run a program; return the table of new rows, and those of masks with their keys.

        None if the program has found that its entries do not count.
        """
        prepared = chosen.made.prepared  # a transaction sees one state of the data
        session = open_checked(self.database)
        prepared.take_route(session)
        result = prepared.run(session, None)
        if chosen.moved and bool(result[chosen.moved].to_numpy()):
            result.close()
            return None
        table = self._write(result, chosen.new, kept)
        masks = [self._write_mask(result, x, kept) for x in chosen.masks]
        result.close()
        return table, masks

    def _write(self, result: Result, tensor: str, kept: KeptTensor) -> Parts:
        """Write the entries of a tensor that differ from its fill into a temporary table.

        A part of a program may have another fill than the whole, by which rows are kept.
        """
        table = self._temporary_table(tensor)
        where, found = f"refresh, {tensor}", result[tensor]
        form = entries_form(found, where)
        other = not same_value(found.type.fill, kept.fill)
        if other and found.type.rank:
            form = found.form(None, EVERY_ROW, NO_LIMIT, where)
        with found.query(form) as query:
            rows = without_value(query, kept.fill) if other else query
            self.session.run(create_table(table, rows, replace=True, temporary=True), where)
        return table

    def _write_mask(self, result: Result, mask: Mask, kept: KeptTensor) -> tuple[Parts, list[str]]:
        """Write where a mask is true, with the columns of the kept tensor."""
        table, where = self._temporary_table(mask.tensor), f"refresh, {mask.tensor}"
        found, keys = result[mask.tensor], [kept.keys[axis] for axis in mask.axes]
        with found.query(entries_form(found, where)) as query:
            rows = with_names(query, key_columns(found.type), keys)
            self.session.run(create_table(table, rows, replace=True, temporary=True), where)
        return table, keys

    def _temporary_table(self, name: str) -> Parts:
        table = ("temp", "main", self._prefix + name)
        self._temporary.append(table)
        return table

    def _replace(
        self, kept: KeptTensor, new: Parts, masks: Sequence[tuple[Parts, list[str]]]
    ) -> int:
        """Replace rows of a kept tensor; return how many keys have others now.

        Keys of rows that have not changed are not handed on to statements that read the tensor.
        """
        run, where = self.session.run, f"refresh, {kept.tensor}"
        columns = (*kept.keys, "val")
        every = all_rows(kept.table, columns)
        before, now = rows_at(every, *masks) if masks else every, all_rows(new, columns)
        weight = self._weight_of(kept)
        changed = self._temporary_table(f"{kept.tensor}_changed")
        found = changed_entries(now, before, kept.keys, weight)
        run(create_table(changed, found, replace=True, temporary=True), where)
        positions = [x for n, x in enumerate(kept.keys) if n not in kept.encoded]
        ((count, added, *largest),) = self.session.fetch(count_changed(changed, positions))
        if count and not kept.keys:
            run(delete_all(kept.table), where)
            run(insert_rows(kept.table, now), where)
            self._changed[kept.tensor] = (EVERYTHING,)
        elif count:
            run(delete_rows(kept.table, all_rows(changed), kept.keys), where)
            run(insert_rows(kept.table, rows_at(now, (changed, kept.keys))), where)
            spec = self._spec_of(replace(kept, digest=()))
            sizes = [x for x in spec.bounds or () if x is not None]
            if not lies_within(largest, sizes):
                self._changed[kept.tensor] = (EVERYTHING,)
                return int(count)
            spec = replace(spec, relation=quoted_name(changed), fill=None)
            facts = facts_of_mask(count, spec.bounds or ())
            mask = replace(spec, value=True, measured=facts)
            name = self._give(f"{kept.tensor}_changed", mask)
            self._changed[kept.tensor] = (Mask(name, tuple(range(len(kept.keys)))),)
            if added:
                self._added[kept.tensor] = Before(
                    self._changed[kept.tensor], kept.fill, self._types[kept.tensor].dtype
                )
            if weight is not None:
                name = self._give(f"{kept.tensor}_difference", replace(spec, value=DELTA))
                self._differences[kept.tensor] = Difference(name, bool(added))
        return int(count)

    def _facts_of(self, kept: KeptTensor) -> Measure | None:
        """Return what measures a kept tensor by its description; None if that says too little."""
        type_ = self._types[kept.tensor]
        values = type_.every
        if kept.encoded or not values.finite or values.overflows or not kept.digest:
            return None
        if not kept.keys:  # its row is there even where it is no entry
            return None
        rows = kept.digest[0] or 0
        distinct = tuple(float(min(rows, size)) for size in type_.shape)
        facts = MeasuredInput(type_.shape, True, float(rows), None, distinct, exact=False)

        def measure(
            session: Session, tensor: str, source: TableSource, fill: Scalar, coverage: bool
        ) -> MeasuredInput:
            return cover_facts(session, tensor, source, fill, facts) if coverage else facts

        return measure


def entries_form(tensor: TensorRelation, where: str) -> WrittenForm:
    """Return the form of the entries of a tensor that differ from its fill, or of a number."""
    return tensor.form(None, NONFILL if tensor.type.rank else EVERY_ROW, NO_LIMIT, where)
