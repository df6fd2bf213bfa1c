"""Bring the tensors of a maintained program up to date, one after the other.

Each kept tensor is computed by a program of its own: the statements of the text between it and the
tensors and inputs that are there, with masks of the keys that may differ
(`ucle.maintenance.affected`). The rows of these keys are replaced; keys whose rows have not changed
are not handed on. A sum of products may also grow by what its factors differ by
(`ucle.maintenance.differences`). A tensor is computed from scratch where that costs less, and where
every entry may differ.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ucle.database.session import Session
from ucle.database.statistics_cache import cover_facts
from ucle.database.table_names import forget_relation
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar, same_value
from ucle.inputs.inputs import quoted_name
from ucle.inputs.table_input import Measure
from ucle.language.syntax import Statement
from ucle.maintenance.affected import EVERYTHING, Mask, reads_of, statements_for
from ucle.maintenance.affected_rows import AffectedRows
from ucle.maintenance.bound_program import BoundProgram
from ucle.maintenance.candidates import (
    AUTO,
    NO_LIMIT,
    REPLACED,
    SCRATCH,
    Candidate,
    Candidates,
    entries_form,
)
from ucle.maintenance.changes import ChangedInput, lies_within
from ucle.maintenance.derivation import DIFFERENCES
from ucle.maintenance.differences import Difference
from ucle.maintenance.document import Document, KeptTensor, Parts, encoded_axes
from ucle.maintenance.extremes import Before
from ucle.maintenance.replaced_rows import NewRows, Replaced, replace_rows
from ucle.maintenance.states import Digest
from ucle.plan.forms import EVERY_ROW
from ucle.plan.sources import TableSource
from ucle.run.results import Result, TensorRelation
from ucle.sqlgen.affected_rows import rows_with_keys
from ucle.sqlgen.cached_texts import Rows
from ucle.sqlgen.database_queries import SCHEMA, indexes_of
from ucle.sqlgen.maintained_tables import (
    DELTA,
    KEY,
    changed_entries,
    delete_all,
    drop_table,
    named_rows,
    rows_but_value,
)
from ucle.sqlgen.sql_trees import VALUE, key_columns
from ucle.sqlgen.write_statements import all_rows, create_table, insert_rows
from ucle.stats.measure import MeasuredInput

CHEAP = 0.25
"""The share of the cost of all entries up to which a way is taken without a look at others."""

WORTH_COMPILING = 3e7
"""The cost of computing all entries from which other ways are compiled, which costs as much."""

MOST_TOGETHER = 3
"""How many times this cost tensors may have together that one program computes."""

WRITTEN = 50.0
"""The cost of writing a row into a new table."""

COMPARED = 10_000
"""The rows of a tensor that are compared with new ones, if nothing reads it and all are computed
again; a larger table is made anew."""

SHARE = 1 / 16
"""The least size of an axis, relative to the longest one, by which rows are passed over, too."""

SAME_SIZE = 1.5
"""How much the inputs may have grown or shrunk since all entries were priced."""

LIKE_SIZE = 4.0
"""The same where it only counts that a tensor costs little."""


@dataclass(frozen=True)
class TensorReport:
    """How a kept tensor was brought up to date."""

    tensor: str
    way: str
    """``"unchanged"``, or one of `WAYS`."""
    reason: str
    rows: int = 0
    """The number of keys whose rows differ from those before; that of all rows if the table was
    made anew."""
    cost: float = 0.0
    """The predicted cost of the program that ran."""
    scratch: float = 0.0
    """That of computing the tensor from scratch."""


class Refresh(Candidates):
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
        super().__init__(session, document, whole, way)
        self.changes = changes
        self.reports: list[TensorReport] = []
        self._given |= {x.name: self._sized_input(x) for x in document.inputs}
        for name, change in changes.items():
            axes = self._types[name].axes
            own = [axes[n] for n in change.watched.axes]
            bounds = tuple(x.bound if x.dictionary is None else None for x in own)
            if not change.trusted or not change.lies_within(bounds):
                self._changed[name] = (EVERYTHING,)
                continue
            mask = self._give(f"{name}_changed", change.where(bounds))
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
        together = self._cheap_ones(grown)
        if together:
            self._compute_together(together)
        else:
            for kept in self.document.kept:
                if all(x.tensor != kept.tensor for x in self.kept):
                    self._refresh(kept, grown)
            order = [x.tensor for x in self.document.kept]
            self.kept.sort(key=lambda x: order.index(x.tensor))
            self.reports.sort(key=lambda x: order.index(x.tensor))
        self._drop_temporary()

    # ---- All tensors that may differ, by one program ----

    def _cheap_ones(self, grown: set[str]) -> set[str]:
        """Return the tensors that may differ, if it costs little to compute each; else none.

        Then one program computes all of them, as several programs have more of what a statement
        takes, whatever its data.
        """
        moved = set(self._changed)
        for name, statement in self._statements.items():
            if not reads_of(statement).isdisjoint(moved):
                moved.add(name)
        found = [x for x in self.document.kept if x.tensor in moved]
        if self.way != AUTO or len(found) < 2:
            return set()
        entries, total = self.whole.entries, 0.0
        for before in found:
            kept, parts = self._as_now(before), self._statements_for(before.tensor)
            same = _is_like(before, kept)
            priced = 0 < kept.priced <= entries * LIKE_SIZE and entries <= kept.priced * LIKE_SIZE
            if not same or not priced or self._grows(parts, grown):
                return set()
            scratch = kept.scratch * max(1.0, entries / kept.priced)
            total += scratch
            if scratch > WORTH_COMPILING:
                return set()
        return {x.tensor for x in found} if total <= MOST_TOGETHER * WORTH_COMPILING else set()

    def _compute_together(self, tensors: set[str]) -> None:
        """Compute some kept tensors by one program, and replace their rows."""
        kept = [(before, self._as_now(before)) for before in self.document.kept]
        for _, each in kept:
            if each.tensor not in tensors:
                self._offer(each)
        names = [each.tensor for _, each in kept if each.tensor in tensors]
        made = self._build(statements_for(names, self._statements, self._given), names)
        session = self.session.beside()
        made.prepared.take_route(session)
        with contextlib.closing(made.prepared.run(session, None)) as result:
            for before, each in kept:
                self.kept.append(each)
                if each.tensor not in tensors:
                    reason = "nothing it reads changed"
                    self.reports.append(TensorReport(each.tensor, "unchanged", reason))
                    continue
                anew = each.table[0] == SCHEMA  # nobody asks any more what has changed in it
                rows = self._store(result, each.tensor, each, before, compared=not anew)
                reason = "all cost little"
                self.reports.append(
                    TensorReport(each.tensor, SCRATCH, reason, rows, made.cost, each.scratch)
                )

    def _drop_temporary(self) -> None:
        for table in self._temporary:
            self.session.run(drop_table(table), "refresh")

    # ---- One tensor ----

    def _refresh(self, kept: KeptTensor, grown: set[str]) -> None:
        parts = self._statements_for(kept.tensor)
        read = set().union(*map(reads_of, parts))
        before, kept = kept, self._as_now(kept)
        same = _is_like(before, kept)
        self.kept.append(kept)
        grows = self._grows(parts, grown)
        if same and not grows and read.isdisjoint(self._changed):
            self.reports.append(TensorReport(kept.tensor, "unchanged", "nothing it reads changed"))
        else:
            reason = "sizes changed" if grows else ""
            if not same:
                reason = "its fill or its type changed"
            chosen, scratch = self._choose(kept, before, parts, reason)
            if chosen.behind:
                self._execute_all(chosen, before)
                return
            rows = self._execute(chosen, kept, before)
            if rows is None:
                self._added.clear()
                chosen, scratch = self._choose(kept, before, parts, reason)
                rows = self._execute(chosen, kept, before)
                assert rows is not None
            self._report(chosen, kept, before, rows, scratch)
        self._offer(self.kept[-1])

    def _report(
        self, chosen: Candidate, kept: KeptTensor, before: KeptTensor, rows: int, scratch: float
    ) -> None:
        """Note how a tensor was brought up to date, and what that means for those behind it."""
        if not _is_like(before, kept):
            self._changed[kept.tensor] = (EVERYTHING,)
            self._differences.pop(kept.tensor, None)
            self._added.pop(kept.tensor, None)
        self.reports.append(
            TensorReport(kept.tensor, chosen.way, chosen.reason, rows, chosen.cost, scratch)
        )

    def _as_now(self, kept: KeptTensor) -> KeptTensor:
        """Return a kept tensor with the fill and the types that it has for the present data."""
        type_, kinds = self._types[kept.tensor], self.whole.kinds_of(kept.tensor)
        return replace(kept, fill=type_.fill, encoded=encoded_axes(type_), kinds=kinds)

    def _choose(
        self, kept: KeptTensor, before: KeptTensor, parts: Sequence[Statement], reason: str
    ) -> tuple[Candidate, float]:
        """Choose a way to compute a tensor; return it, and the cost of computing all entries.

        That cost is known from earlier as long as the inputs have about the same size. A way that
        is much cheaper is taken before others are compiled.
        """
        scratch: Candidate | None = None
        if self.way == SCRATCH:
            reason = reason or "requested"
        total, entries = kept.scratch, self.whole.entries
        if reason or not entries / SAME_SIZE <= kept.priced <= entries * SAME_SIZE:
            scratch = self._from_scratch(kept, parts, reason or "it costs less")
            total = scratch.cost
            self.kept[-1] = replace(kept, scratch=total, priced=entries)
        rows = float(before.digest[0] or 0) if before.digest else 0.0
        total += rows * (REPLACED if self._is_compared(before) else WRITTEN)
        if self.way == AUTO and total + self._waiting(kept.tensor) <= WORTH_COMPILING:
            reason = reason or "it costs less"
        if reason:
            return self._anew(kept, before, parts, reason, scratch), total
        best: Candidate | None = None
        for found in self._partial(kept, before, parts, total):
            if best is None or found.cost < best.cost:
                best = found
            cheap = self.way == AUTO and found.cost <= CHEAP * total
            if cheap or found.way == self.way == DIFFERENCES:
                break
        reason = ""
        if best is None:
            reason = "every entry may differ"
        elif self.way == AUTO and best.cost >= total:
            reason = "it costs less"
        if best is None or reason:
            return self._anew(kept, before, parts, reason, scratch), total
        return best, total

    def _waiting(self, tensor: str) -> float:
        """Return the cost of computing all kept tensors behind a large one that is not compared.

        Where all of its entries are computed, every one of them may differ for those behind it.
        """
        (before,) = (x for x in self.document.kept if x.tensor == tensor)
        if self._is_compared(before):
            return 0.0
        return sum(x.scratch for x in self.document.kept if tensor in self._behind(x.tensor))

    def _behind(self, tensor: str) -> set[str]:
        """Return the tensors from which the statements of the text compute a tensor."""
        parts = statements_for([tensor], self._statements)
        return set().union(*map(reads_of, parts))

    # ---- A tensor and those behind it ----

    def _anew(
        self,
        kept: KeptTensor,
        before: KeptTensor,
        parts: Sequence[Statement],
        reason: str,
        scratch: Candidate | None,
    ) -> Candidate:
        """Return the program of all entries of a tensor, and of those behind it if that costs less.

        One program reads an input once for all of them, and what it has made stays in memory.
        """
        behind = self._anew_behind(before) if self.way == AUTO else []
        if behind:
            own = self.kept[-1]
            names = [own.tensor, *(each.tensor for _, each in behind)]
            made = self._build(statements_for(names, self._statements, self._given), names)
            if made.cost <= own.scratch + sum(each.scratch for _, each in behind):
                return Candidate(SCRATCH, reason, made.cost, made, own.tensor, behind=tuple(behind))
        scratch = scratch or self._from_scratch(kept, parts, reason)
        return replace(scratch, reason=reason)

    def _anew_behind(self, before: KeptTensor) -> list[tuple[KeptTensor, KeptTensor]]:
        """Return the kept tensors of which every entry may differ where all of another's do.

        Each with the fill and the types that it has now. There are none where the rows of the other
        one are compared, as few may differ then. Those that read further kept tensors, which are
        not up to date yet, and those whose cost is not known, are left out.
        """
        found = list[tuple[KeptTensor, KeptTensor]]()
        if self._is_compared(before):
            return found
        names, changed = {before.tensor}, dict(self._changed)
        waiting = {x.tensor for x in self.document.kept} - {x.tensor for x in self.kept}
        entries = self.whole.entries
        self._changed[before.tensor] = (EVERYTHING,)
        for each in self.document.kept:
            if each.tensor not in waiting:
                continue
            given = {*self._given, *names}
            parts = statements_for([each.tensor], self._statements, given)
            read = set().union(*map(reads_of, parts))
            others = (read | {x.target.tensor for x in parts}) & (waiting - names - {each.tensor})
            priced = entries / SAME_SIZE <= each.priced <= entries * SAME_SIZE
            if names.isdisjoint(read) or others or not priced:
                continue
            if next(self._affected(each, parts), None) is not None:
                continue
            found.append((each, self._as_now(each)))
            if not self._is_compared(each):
                names.add(each.tensor)
                self._changed[each.tensor] = (EVERYTHING,)
        self._changed = changed
        return found

    def _execute_all(self, chosen: Candidate, before: KeptTensor) -> None:
        """Run a program, and replace the rows of all tensors that it computes."""
        session = self.session.beside()
        chosen.made.prepared.take_route(session)
        with contextlib.closing(chosen.made.prepared.run(session, None)) as result:
            for old, each in ((before, self.kept.pop()), *chosen.behind):
                self.kept.append(each)
                rows = self._store(result, each.tensor, each, old)
                self._report(chosen, each, old, rows, each.scratch)
                self._offer(self.kept[-1])

    # ---- Programs and tables ----

    def _execute(self, chosen: Candidate, kept: KeptTensor, before: KeptTensor) -> int | None:
        """Run a program, and replace rows of a tensor; return how many keys have others now.

        None if the program has found that its entries do not count.
        """
        prepared = chosen.made.prepared  # a transaction sees one state of the data
        session = self.session.beside()
        prepared.take_route(session)
        result = prepared.run(session, None)
        with contextlib.closing(result):
            if chosen.moved and bool(result[chosen.moved].to_numpy()):
                return None
            if chosen.keys is not None:
                return self._store_at(result[chosen.new], kept, chosen.keys)
            return self._store(result, chosen.new, kept, before, chosen.masks, grows=chosen.grows)

    def _store_at(self, tensor: TensorRelation, kept: KeptTensor, keys: AffectedRows) -> int:
        """Replace rows of a kept tensor at numbered coordinates; return how many keys differ."""
        with contextlib.ExitStack() as stack:
            query = self._entries(stack, tensor, kept, grows=False)
            columns, key = (*key_columns(tensor.type), VALUE), kept.keys[keys.axis]
            query = rows_with_keys(query, columns, keys.axis, keys.table, (*kept.keys, VALUE))
            masks = [(named_rows(all_rows(keys.table), [KEY.format(0)], [key]), [key])]
            return self._replace(kept, NewRows(query, masks))

    def _store(
        self,
        result: Result,
        tensor: str,
        kept: KeptTensor,
        before: KeptTensor,
        masks: Sequence[Mask] = (),
        *,
        grows: bool = False,
        compared: bool = True,
    ) -> int:
        """Replace rows of a kept tensor by those of a result; return how many keys differ.

        Args:
            result: holds the new entries, and the masks of where they are.
            tensor: the tensor of the new entries.
            kept: the kept tensor.
            before: the same as the last refresh left it.
            masks: none if the entries are all there are.
            grows: True if the entries are added to those that are there.
            compared: False if the table of all entries is made anew.
        """
        with contextlib.ExitStack() as stack:
            query = self._entries(stack, result[tensor], kept, grows=grows)
            compared = compared or not kept.keys
            partial = masks or grows or (compared and self._is_compared(before))
            if before.kinds != kept.kinds or not partial:
                return self._create(kept, query)
            if not kept.keys:
                return self._replace_number(kept, query)
            found = [self._keys_of(stack, result[x.tensor], x, kept) for x in masks]
            return self._replace(kept, NewRows(query, found, self._widest(kept) if grows else None))

    def _widest(self, kept: KeptTensor) -> tuple[str, ...]:
        """Return the columns of the axes with the most coordinates, by which rows differ most."""
        shape = self._types[kept.tensor].shape
        order = sorted(range(len(shape)), key=shape.__getitem__, reverse=True)
        return tuple(kept.keys[n] for n in order[:2] if shape[n] >= SHARE * shape[order[0]])

    def _entries(
        self, stack: contextlib.ExitStack, found: TensorRelation, kept: KeptTensor, *, grows: bool
    ) -> Rows:
        """Return a query for the entries of a tensor that differ from its fill.

        A part of a program may have another fill than the whole, by which rows are kept.
        """
        where = f"refresh, {kept.tensor}"
        form = entries_form(found, where)
        other = not grows and not same_value(found.type.fill, kept.fill)
        if other and found.type.rank:
            form = found.form(None, EVERY_ROW, NO_LIMIT, where)
        query = stack.enter_context(found.text_of(form))
        return rows_but_value(query, kept.fill) if other else query

    def _is_compared(self, before: KeptTensor) -> bool:
        """True if all entries of a tensor, computed anew, are compared with those before.

        That tells what has changed, which other statements may want to know. It costs more than to
        write a large table, which keeps its indexes otherwise. A large intermediate tensor is kept
        for small changes, and where all of it is computed, the change is a large one.
        """
        rows = before.digest[0] or 0 if before.digest else 0
        if rows <= COMPARED:
            return True
        if before.table[0] == SCHEMA:
            return False
        read = any(before.tensor in reads_of(x) for x in self._statements.values())
        return read or self._has_indexes(before.table)

    def _has_indexes(self, table: Parts) -> bool:
        found = self.session.look_once(
            "indexes", [table], lambda _: {table: self.session.fetch(indexes_of(table))}
        )
        return bool(found[table])

    def _create(self, kept: KeptTensor, rows: Rows) -> int:
        """Make the table of a kept tensor anew; return the number of its rows."""
        run, where = self.session.run, f"refresh, {kept.tensor}"
        columns = (*kept.keys, VALUE)
        made = create_table(kept.table, named_rows(rows, columns, columns), replace=True)
        ((count,),) = run(made, where)
        forget_relation(self.session, kept.table)
        self._note(kept, ())
        self._changed[kept.tensor] = (EVERYTHING,)
        return int(count)

    def _note(self, kept: KeptTensor, digest: Digest) -> None:
        """Note the digest of a tensor whose rows were replaced; none if it is not known."""
        self.kept[-1] = replace(self.kept[-1], digest=digest)

    def _replace_number(self, kept: KeptTensor, query: Rows) -> int:
        """Replace the value of a tensor without axes; return 1 if it is another one."""
        run, where = self.session.run, f"refresh, {kept.tensor}"
        new = self._temporary_table(kept.tensor)
        run(create_table(new, query, replace=True, temporary=True), where)
        now, before = (all_rows(x, (VALUE,)) for x in (new, kept.table))
        if not self.session.fetch(changed_entries(now, before, (), None).text):
            return 0
        run(delete_all(kept.table), where)
        run(insert_rows(kept.table, now), where)
        self._note(kept, ())
        self._changed[kept.tensor] = (EVERYTHING,)
        return 1

    def _replace(self, kept: KeptTensor, new: NewRows) -> int:
        """Replace rows of a kept tensor; return how many keys have others now.

        Keys of rows that have not changed are not handed on to statements that read the tensor.
        """
        read = any(kept.tensor in reads_of(x) for x in self._statements.values())
        weight = self._weight_of(kept) if read else None
        table = self._temporary_table(f"{kept.tensor}_changed")
        replaced = replace_rows(self.session, kept, kept.digest, new, table, weight, described=read)
        self._note(kept, replaced.digest)
        if read and replaced.count:
            self._hand_on(kept, replaced)
        return replaced.count

    def _hand_on(self, kept: KeptTensor, replaced: Replaced) -> None:
        """Make what has changed in a kept tensor known to the statements that read it."""
        spec = self._spec_of(replace(kept, digest=()))
        facts, bounds = replaced.facts, spec.bounds or ()
        assert facts is not None
        if not lies_within(facts.largest, bounds):
            self._changed[kept.tensor] = (EVERYTHING,)
            return
        spec = replace(spec, relation=quoted_name(replaced.table), fill=None)
        mask = replace(spec, value=True, measured=facts.mask(bounds))
        name = self._give(f"{kept.tensor}_changed", mask)
        self._changed[kept.tensor] = (Mask(name, tuple(range(len(kept.keys)))),)
        if replaced.added:
            self._added[kept.tensor] = Before(
                self._changed[kept.tensor], kept.fill, self._types[kept.tensor].dtype
            )
        difference = facts.difference(bounds)
        if difference is not None:
            delta = replace(spec, value=DELTA, measured=difference)
            name = self._give(f"{kept.tensor}_difference", delta)
            self._differences[kept.tensor] = Difference(name, replaced.added)

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


def _is_like(before: KeptTensor, kept: KeptTensor) -> bool:
    """True if a tensor has the fill and the types that it had."""
    return same_value(before.fill, kept.fill) and before.kinds == kept.kinds
