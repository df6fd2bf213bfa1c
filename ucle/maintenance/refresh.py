"""Bring the tensors of a maintained program up to date, one after the other.

Each kept tensor is computed by a program of its own: the statements of the text between it and the
tensors and inputs that are there, with masks of the keys that may differ
(`ucle.maintenance.affected`). The rows of these keys are replaced; keys whose rows have not changed
are not handed on. A tensor is computed from scratch where that costs less, and where every entry
may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ucle.database.macro_check import open_checked
from ucle.database.session import Database, Session
from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import same_value
from ucle.foundation.names import fresh_prefix, unique_names
from ucle.inputs.table_input import TableInput
from ucle.ir.tensor_types import TensorType
from ucle.language.parse import parse_program
from ucle.language.syntax import Statement
from ucle.lowering.syntax_to_logical import syntax_to_logical
from ucle.maintenance.affected import (
    EVERYTHING,
    AffectedKeys,
    Mask,
    affected_in_product,
    affected_keys,
    depends_on_sizes,
    reads_of,
)
from ucle.maintenance.changes import ChangedInput
from ucle.maintenance.document import Document, KeptTensor, Parts, input_of
from ucle.maintenance.restricted import restrict
from ucle.pipeline.artifacts import Compiled
from ucle.plan.forms import EVERY_ROW, NONFILL, WrittenForm
from ucle.run.build import Build, Request, build
from ucle.run.current_data import Preparations
from ucle.run.results import Result, TensorRelation
from ucle.sqlgen.maintained_tables import (
    count_rows,
    create_as,
    delete_all,
    delete_matching,
    differing_keys,
    drop_table,
    insert_from,
    matching,
    rows_of,
    without_value,
)
from ucle.stats.measure import MeasuredInput

NO_LIMIT = 2**62
"""The most rows that are written."""


AUTO, AFFECTED, SCRATCH = WAYS = ("auto", "affected keys", "from scratch")
"""How tensors are brought up to date: in the cheaper way, or in one of the two where it can be."""


@dataclass(frozen=True)
class TensorReport:
    """How a kept tensor was brought up to date."""

    tensor: str
    way: str
    """``"unchanged"``, ``"affected keys"`` or ``"from scratch"``."""
    reason: str
    rows: int = 0
    """The number of keys whose rows differ from those before."""
    cost: float = 0.0
    """The predicted cost of the program that ran."""
    scratch: float = 0.0
    """That of computing the tensor from scratch."""


@dataclass
class Refresh:
    """One refresh of a maintained program, in a transaction.

    `made` is the program, compiled for the present data, `changes` are the changed inputs, and
    `facts` what was measured of all inputs.
    """

    session: Session
    document: Document
    made: Build
    changes: Mapping[str, ChangedInput]
    facts: Mapping[str, MeasuredInput]
    way: str = AUTO
    """One of `WAYS`."""
    reports: list[TensorReport] = field(default_factory=list)
    kept: list[KeptTensor] = field(default_factory=list)
    """The kept tensors, with the fills that they have now."""

    def __post_init__(self) -> None:
        self._statements = {x.target.tensor: x for x in parse_program(self.document.text)}
        self._taken = {*self._statements, *(x.name for x in self.document.inputs)}
        self._prefix = fresh_prefix()
        self._temporary: list[Parts] = []
        self._given: dict[str, TableInput] = {
            x.name: replace(input_of(x.spec), measured=self.facts.get(x.name))
            for x in self.document.inputs
        }
        self._types = types_of_statements(self.whole)
        self._changed: dict[str, tuple[Mask, ...]] = {}
        for name, change in self.changes.items():
            mask = self._new_name(f"{name}_changed")
            axes = self._types[name].axes
            own = [axes[n] for n in change.watched.axes]
            bounds = tuple(x.bound if x.dictionary is None else None for x in own)
            self._given[mask] = change.spec(bounds)
            self._changed[name] = (Mask(mask, change.watched.axes),)

    @property
    def whole(self) -> Compiled:
        """The whole program."""
        return self.made.compiled

    def _find_grown(self, sizes: Mapping[str, tuple[int, ...]]) -> set[str]:
        """Return the tensors that have other sizes now, or other coordinates."""
        moved = {
            self._types[name].axes[axis].dictionary
            for name, change in self.changes.items()
            for axis in change.moved
        } - {None}
        return {
            name
            for name, own in sizes.items()
            if own != self.document.sizes.get(name)
            or not moved.isdisjoint(axis.dictionary for axis in self._types[name].axes)
        }

    def run(self) -> dict[str, tuple[int, ...]]:
        """Bring all kept tensors up to date; return the sizes of all tensors."""
        sizes = sizes_of(self.whole)
        grown = self._find_grown(sizes)
        for kept in self.document.kept:
            self._refresh(kept, grown)
        for table in self._temporary:
            self.session.run(drop_table(table), "refresh")
        return sizes

    # ---- One tensor ----

    def _refresh(self, kept: KeptTensor, grown: set[str]) -> None:
        parts = self._statements_for(kept.tensor)
        read = set().union(*map(reads_of, parts))
        before, kept = kept, self._with_present_fill(kept)
        same = same_value(before.fill, kept.fill)
        self.kept.append(kept)
        if same and read.isdisjoint(self._changed) and not self._grows(parts, grown):
            self.reports.append(TensorReport(kept.tensor, "unchanged", "nothing it reads changed"))
        else:
            reason = "" if same else "its fill changed"
            reason = reason or ("sizes changed" if self._grows(parts, grown) else "")
            way, reason, (table, masks), costs = self._compute(kept, parts, reason)
            rows = self._replace(kept, table, masks)
            if not same:
                self._changed[kept.tensor] = (EVERYTHING,)
            self.reports.append(TensorReport(kept.tensor, way, reason, rows, *costs))
        self._given[kept.tensor] = self._spec_of(kept)

    def _with_present_fill(self, kept: KeptTensor) -> KeptTensor:
        """Return a kept tensor with the fill that it has for the present data."""
        return replace(kept, fill=self._types[kept.tensor].fill)

    def _statements_for(self, tensor: str) -> list[Statement]:
        """Return the statements that compute a tensor from inputs and kept tensors, in order."""
        wanted, found = [tensor], dict[str, Statement]()
        while wanted:
            name = wanted.pop()
            if name in found or name in self._given:
                continue
            found[name] = self._statements[name]
            wanted += [x for x in reads_of(found[name]) if x in self._statements]
        return [x for name, x in self._statements.items() if name in found]

    def _grows(self, parts: Sequence[Statement], grown: set[str]) -> bool:
        """True if sizes have changed on which one of some statements depends."""
        return any(
            not grown.isdisjoint({x.target.tensor, *reads_of(x)})
            and depends_on_sizes(x, self._is_zero)
            for x in parts
        )

    def _is_zero(self, tensor: str) -> bool:
        """True if a tensor was and is finite, and 0 where it is not stored."""
        type_ = self._types[tensor]
        if type_.fill != 0 or not type_.every.finite:
            return False
        known = tensor not in self._given or tensor in self._statements
        return known or tensor in self.document.finite

    def _compute(
        self, kept: KeptTensor, parts: Sequence[Statement], reason: str
    ) -> tuple[str, str, tuple[Parts, list[tuple[Parts, list[str]]]], tuple[float, float]]:
        """Compute the rows that replace others; return how, and the tables of rows and masks."""
        same = len(parts) == len(self._statements) and self.whole.program.outputs == (kept.tensor,)
        scratch = self.made if same else self._build(parts, [kept.tensor])
        total = scratch.compiled.decomposed.total_cost
        best: tuple[float, Build, list[Mask], str] | None = None
        if not reason:
            for program, masks, new in self._candidates(kept, parts):
                try:
                    made = self._build(program, [new, *(x.tensor for x in masks)])
                except UcleError:
                    continue
                cost = made.compiled.decomposed.total_cost
                if best is None or cost < best[0]:
                    best = cost, made, masks, new
            if best is None:
                reason = "every entry may differ"
            elif self.way == SCRATCH or (self.way == AUTO and best[0] >= total):
                reason = "it costs less" if self.way == AUTO else "requested"
        if best is None or reason:
            result = self._execute(scratch)
            table = self._write(result, kept.tensor, kept)
            result.close()
            return SCRATCH, reason, (table, []), (total, total)
        cost, made, masks, new = best
        result = self._execute(made)
        table = self._write(result, new, kept)
        keys = [kept.keys[axis] for axis in range(len(kept.keys))]
        tables = [(self._write(result, x.tensor), [keys[a] for a in x.axes]) for x in masks]
        result.close()
        shown = ", ".join(f"[{','.join(names)}]" for _, names in tables)
        return AFFECTED, f"masks over {shown}", (table, tables), (cost, total)

    def _candidates(
        self, kept: KeptTensor, parts: Sequence[Statement]
    ) -> list[tuple[list[Statement], list[Mask], str]]:
        """Return programs for the rows of affected keys, with masks of all kinds."""
        found = []
        for narrow in (False, True):
            changed, program = dict(self._changed), list[Statement]()
            affected: AffectedKeys | None = None
            for statement in parts:
                affected = None
                if narrow and reads_of(statement) <= self._given.keys():
                    affected = affected_in_product(
                        statement, changed, self._new_name, self._is_zero
                    )
                affected = affected or affected_keys(statement, changed, self._new_name)
                program += affected.statements
                if statement.target.tensor != kept.tensor:
                    program.append(statement)
                changed[statement.target.tensor] = affected.masks
            assert affected is not None
            if affected.everything or not affected.masks:
                continue
            new = self._new_name(f"{kept.tensor}_new")
            last = replace(parts[-1], target=replace(parts[-1].target, tensor=new))
            restricted = restrict(
                [*(x for x in program if x.target.tensor in self._statements), last],
                affected.masks,
                {**{x: y.fill for x, y in self._types.items()}, new: kept.fill},
                self._is_finite,
            )
            own = {x.target.tensor: x for x in restricted}
            program = [own.pop(x.target.tensor, x) for x in program]
            found.append(([*program, *own.values()], list(affected.masks), new))
            if all(len(mask.axes) == len(kept.keys) for mask in affected.masks):
                break  # no mask can be narrower
        return found

    def _is_finite(self, tensor: str) -> bool:
        return self._types[tensor].every.finite

    # ---- Programs and tables ----

    def _build(self, statements: Sequence[Statement], outputs: Sequence[str]) -> Build:
        read = set().union(*map(reads_of, statements)) - {x.target.tensor for x in statements}
        inputs = {name: self._given[name] for name in read}
        options = replace(self.made.options, outputs=tuple(outputs))
        return build(Request(tuple(statements), inputs), self.database, options)

    @property
    def database(self) -> Database:
        """The connection on which the refresh runs."""
        return self.session.connection

    def _execute(self, made: Build) -> Result:
        preparations = Preparations(made.compiled, made.options, {made.target.versions: ()})
        session = open_checked(self.database)
        return preparations.fresh(session).run(session, None)

    def _write(self, result: Result, tensor: str, kept: KeptTensor | None = None) -> Parts:
        """Write the entries of a tensor that differ from its fill into a temporary table.

        A part of a program may have another fill than the whole, by which rows are kept.
        """
        table = ("temp", "main", self._prefix + tensor)
        where, found = f"refresh, {tensor}", result[tensor]
        form = entries_form(found, where)
        other = kept is not None and not same_value(found.type.fill, kept.fill)
        if other and found.type.rank:
            form = found.form(None, EVERY_ROW, NO_LIMIT, where)
        with found.query(form) as query:
            rows = without_value(query, kept.fill) if kept is not None and other else query
            self.session.run(create_as(table, rows, temporary=True), where)
        self._temporary.append(table)
        return table

    def _replace(
        self, kept: KeptTensor, new: Parts, masks: Sequence[tuple[Parts, list[str]]]
    ) -> int:
        """Replace rows of a kept tensor; return how many keys have others now.

        Keys of rows that have not changed are not handed on to statements that read the tensor.
        """
        run, where = self.session.run, f"refresh, {kept.tensor}"
        old = ("temp", "main", f"{self._prefix}{kept.tensor}_old")
        self._temporary.append(old)
        run(create_as(old, rows_of(kept.table).limit(0), temporary=True), where)
        if not masks:
            run(insert_from(old, rows_of(kept.table)), where)
            run(delete_all(kept.table), where)
        for mask, own in masks:
            run(insert_from(old, matching(kept.table, mask, own)), where)
            run(delete_matching(kept.table, mask, own), where)
        run(insert_from(kept.table, rows_of(new, (*kept.keys, "val"))), where)
        changed = ("temp", "main", f"{self._prefix}{kept.tensor}_changed")
        self._temporary.append(changed)
        columns = (*kept.keys, "val")
        sides = rows_of(old, columns), rows_of(new, columns)
        keys = differing_keys(*sides, columns, kept.keys or ("val",))
        run(create_as(changed, keys, temporary=True), where)
        ((rows,),) = self.session.fetch(count_rows(changed))
        if rows and kept.keys:
            name = self._new_name(f"{kept.tensor}_changed")
            spec = self._spec_of(kept)
            relation = ".".join(f'"{part}"' for part in changed)
            self._given[name] = replace(spec, relation=relation, value=True, fill=None)
            self._changed[kept.tensor] = (Mask(name, tuple(range(len(kept.keys)))),)
        elif rows:
            self._changed[kept.tensor] = (EVERYTHING,)
        return int(rows)

    def _spec_of(self, kept: KeptTensor) -> TableInput:
        """Return a kept tensor as an input of a program."""
        sizes = self._types[kept.tensor].shape
        bounds = tuple(None if n in kept.encoded else size for n, size in enumerate(sizes))
        return TableInput(
            ".".join(f'"{part}"' for part in kept.table),
            columns=kept.keys,
            value="val",
            fill=kept.fill,
            bounds=bounds,
            encoded_keys=kept.encoded,
        )

    def _new_name(self, stem: str) -> str:
        (name,) = unique_names([stem], self._taken)
        self._taken.add(name)
        return name


def entries_form(tensor: TensorRelation, where: str) -> WrittenForm:
    """Return the form of the entries of a tensor that differ from its fill, or of a number."""
    return tensor.form(None, NONFILL if tensor.type.rank else EVERY_ROW, NO_LIMIT, where)


def types_of_statements(compiled: Compiled) -> Mapping[str, TensorType]:
    """Return the types of the inputs of a program, and of the tensors of all of its statements."""
    return syntax_to_logical(compiled.front.source).types


def sizes_of(compiled: Compiled) -> dict[str, tuple[int, ...]]:
    """Return the sizes of the inputs of a program, and of the tensors of its statements."""
    types = types_of_statements(compiled)
    statements = {x.target.tensor for x in compiled.front.source.statements}
    return {x: types[x].shape for x in (*compiled.front.source.types, *statements)}
