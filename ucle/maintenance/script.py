"""Write the script that brings the tables of a maintained program up to date without ucle.

The statements of a refresh depend on what has changed. A script is written before that is known,
and holds for any change of its inputs: it hands on all keys that may differ, adds differences only
where that is right for all numbers, and computes from scratch what depends on sizes that follow the
data. It has each statement that a refresh would derive, as a table of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ucle.database.session import Session
from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar, same_value
from ucle.inputs.inputs import quoted_name
from ucle.inputs.table_input import TableInput
from ucle.ir.tensor_types import TensorType
from ucle.language.syntax import Statement
from ucle.language.syntax_to_text import statement_text
from ucle.maintenance.affected import EVERYTHING, Mask, reads_of, statements_for
from ucle.maintenance.bound_program import BoundProgram
from ucle.maintenance.changed_keys import ChangedKeys, facts_of_mask
from ucle.maintenance.changes import ChangedInput
from ucle.maintenance.derivation import AFFECTED, DIFFERENCES, Derivation
from ucle.maintenance.differences import Difference
from ucle.maintenance.document import (
    Document,
    KeptTensor,
    Parts,
    WatchedInput,
    encoded_axes,
    input_of,
)
from ucle.maintenance.notes import TABLE, made_of, part_of
from ucle.maintenance.script_inputs import (
    ChangedByScript,
    Line,
    Told,
    changed_inputs,
    check_tables,
    temporary,
)
from ucle.options import Options
from ucle.pipeline.stages import bind_statements, compile_sized
from ucle.plan.forms import EVERY_ROW, NONFILL
from ucle.plan.sources import TableSource
from ucle.run.current_data import Prepared
from ucle.run.size_groups import size_groups
from ucle.run.view_sizes import MOST
from ucle.run.views import view_queries
from ucle.sqlgen import refresh_scripts as sql
from ucle.sqlgen.cached_texts import Rows, rows_of
from ucle.sqlgen.guards import AGAIN, guard_messages
from ucle.sqlgen.maintained_tables import (
    DELTA,
    changed_entries,
    delete_all,
    drop_table,
    named_rows,
    rows_at,
    rows_but_value,
)
from ucle.sqlgen.sql_trees import VALUE, key_columns
from ucle.sqlgen.write_statements import all_rows, create_table, delete_rows, insert_rows, no_rows
from ucle.stats.measure import MeasuredInput

SHARE = 0.001
"""The share of rows that are expected to change, for which plans are chosen."""


@dataclass(frozen=True)
class _Stage:
    """A statement whose entries are a table of the script."""

    text: str
    table: Parts
    query: Rows
    keys: tuple[str, ...]
    """The columns of its axes."""
    spec: TableInput
    """The table, as an input of the next statements."""


@dataclass(frozen=True)
class _Query:
    """A query for the entries of a tensor."""

    rows: Rows
    type: TensorType
    cost: float
    """That which is predicted."""
    lengths: frozenset[str]
    """The guards of lengths, which end a script where data grows."""


@dataclass(frozen=True)
class _Way:
    """The stages that compute the entries of a kept tensor that may differ."""

    way: str
    cost: float
    stages: tuple[_Stage, ...]
    masks: tuple[tuple[Parts, list[str]], ...] = ()


def write_script(
    session: Session,
    document: Document,
    whole: BoundProgram,
    told: Told,
    *,
    kernels: bool,
    transaction: bool,
) -> str:
    """Return the script that brings the tables of a program up to date.

    Args:
        session: on its database; temporary tables are created on it, and dropped again.
        document: the program.
        whole: the same over the present data.
        told: the tables with changed rows.
        kernels: False for plain SQL.
        transaction: False if the caller begins and ends it.

    Raises:
        UcleError: as `ucle.maintenance.script_inputs.changed_inputs`, and `create_views`.
    """
    script = _Script(session, document, whole, kernels=kernels)
    try:
        lines = script.write(told)
    finally:
        for table in script.tables:
            with contextlib.suppress(UcleError):
                session.run(drop_table(table), "to_sql")
    if transaction:
        lines = [("BEGIN TRANSACTION", ""), *lines, ("COMMIT", "")]
    parts = ["\n".join(f"-- {line}" for line in _header(document, told))]
    for statement, comment in lines:
        note = "".join(f"-- {x}\n" for x in comment.splitlines())
        parts.append(f"{note}{sql.pretty(statement)};")
    text = "\n\n".join(parts) + "\n"
    return text.replace(AGAIN, "to_sql again")


def _header(document: Document, told: Told) -> list[str]:
    lines = [f"Brings the maintained program {document.name!r} up to date:"]
    lines += [f"  {x.strip()}" for x in document.text.split(";")]
    for kind, tables in (("inserted into", told.inserted), ("deleted from", told.deleted)):
        lines += [f"Rows {kind} {name}: {table}." for name, table in tables.items()]
    for each in document.inputs:
        if each.appended is not None:
            lines.append(f"Rows appended to {each.name}: those behind the last one noted.")
    if told.applied:
        lines.append("The inputs have been changed already.")
    lines.append("An error ends the script; then ROLLBACK leaves all tables as before.")
    return lines


class _Script(Derivation):
    """The statements of a script, in order."""

    def __init__(
        self, session: Session, document: Document, whole: BoundProgram, *, kernels: bool
    ) -> None:
        super().__init__(document, whole)
        self._session, self._kernels = session, kernels
        self.tables: list[Parts] = []
        """The temporary tables that were created to compile programs over them."""
        self._free: dict[str, tuple[bool, ...]] = {}
        """For each tensor, the axes whose sizes follow the data."""
        self._given |= {x.name: self._of_input(x) for x in document.inputs}
        self._made = made_of(document)

    def write(self, told: Told) -> list[Line]:
        """Return the statements."""
        name = self.document.name
        message = "the program is another one; to_sql again"
        changed_program = sql.check_program(TABLE, name, self._made, message)
        lines: list[Line] = [(changed_program, "")]
        sources = {
            x: (bound.source, bound.fill)
            for x, bound in self.whole.inputs.items()
            if isinstance(bound.source, TableSource)
        }
        check_tables(self._session, {x: y for x, (y, _) in sources.items()}, told)
        changed = list(changed_inputs(self.document, sources, told, self._made))
        self._find_free_sizes()
        after: list[Line] = []
        for each in changed:
            for table, columns in each.temporary:
                self._create(table, columns)
            lines += each.before
            lines.append((self._table(each.table, each.query), f"{each.watched.name}: changes"))
            after += each.after
            self._mark(each)
        grown = {
            tensor
            for tensors in self._groups
            if not tensors.isdisjoint(x.watched.name for x in changed)
            for tensor in tensors
        }
        for kept in self.document.kept:
            lines += self._bring_up_to_date(kept, grown)
        lines += after
        lines.append((sql.note_by_script(TABLE, name), "what the next refresh() goes on from"))
        for table in dict.fromkeys(self.tables):
            lines.append((drop_table(table), ""))
        return lines

    # ---- Inputs ----

    def _of_input(self, watched: WatchedInput) -> TableInput:
        """An input of which nothing is known that a change may undo."""
        facts = self.whole.facts[watched.name]
        loose = MeasuredInput(
            facts.sizes, facts.finite, facts.entries, None, facts.distinct, exact=False
        )
        return replace(input_of(watched.spec), measured=loose)

    def _find_free_sizes(self) -> None:
        """Find the axes whose sizes follow the data, and the tensors that share one."""
        groups = [
            x
            for x in size_groups(self.whole.source, self.whole.inputs, self.whole.options)
            if not (x.stated or x.by_array)
        ]
        self._groups = [{tensor for tensor, _ in x.sites} for x in groups]
        free = {site for x in groups for site in x.sites}
        labels = {x.target.tensor: x.target.labels for x in self.whole.source.statements}
        for name, type_ in self._types.items():
            places = [(n, *labels.get(name, ())[n : n + 1]) for n in range(type_.rank)]
            self._free[name] = tuple(any((name, x) in free for x in own) for own in places)

    def _bounds(self, tensor: str) -> tuple[int | None, ...]:
        """The sizes of a tensor that do not follow the data."""
        axes, free = self._types[tensor].axes, self._free.get(tensor, ())
        own = (*free, *(True for _ in axes[len(free) :]))
        return tuple(
            None if moves or axis.dictionary is not None else axis.bound
            for axis, moves in zip(axes, own, strict=True)
        )

    def _mark(self, changed: ChangedByScript) -> None:
        """Make the changed keys of an input known to the statements that read it."""
        name, watched = changed.watched.name, changed.watched
        every = self._bounds(name)
        bounds = tuple(every[axis] for axis in watched.axes)
        rows = max(1, int(SHARE * self.whole.facts[name].entries))
        sizes = self._types[name].shape
        facts = facts_of_mask(rows, [sizes[axis] for axis in watched.axes])
        found = ChangedInput(
            watched,
            changed.table,
            ChangedKeys(rows, (), tuple(facts.distinct)),
            moved=(),
            added=changed.added,
            differs_by=changed.differs_by,
        )
        mask = self._give(f"{name}_changed", replace(found.where(bounds), measured=facts))
        self._changed[name] = (Mask(mask, watched.axes),)
        if found.differs_by:
            loose = replace(facts, extremes=None)
            spec = replace(found.difference(bounds), measured=loose)
            tensor = self._give(f"{name}_difference", spec)
            self._differences[name] = Difference(tensor, changed.added)

    # ---- Kept tensors ----

    def _bring_up_to_date(self, kept: KeptTensor, grown: set[str]) -> list[Line]:
        parts = self._statements_for(kept.tensor)
        if set().union(*map(reads_of, parts)).isdisjoint(self._changed):
            self._offer(kept)
            return []
        best: _Way | None = None
        if not self._grows(parts, grown):
            for way, found in self._candidates(kept, parts, (DIFFERENCES, AFFECTED)):
                with contextlib.suppress(UcleError):
                    made = self._way(way, found.statements, found.new, found.masks, kept)
                    if best is None or made.cost < best.cost:
                        best = made
        if best is None:
            best = self._from_scratch(kept)
        note = f"{kept.tensor}: {best.way}"
        lines: list[Line] = []
        for stage in best.stages:
            lines.append((self._table(stage.table, stage.query), f"{note}\n{stage.text}"))
        lines += self._replace_rows(kept, best)
        self._offer(kept)
        return lines

    def _replace_rows(self, kept: KeptTensor, way: _Way) -> Iterator[Line]:
        """Yield the statements that replace the rows of a kept tensor, and note its rows."""
        columns = (*kept.keys, VALUE)
        stage = way.stages[-1]
        now = named_rows(all_rows(stage.table), [*stage.keys, VALUE], columns)
        every = all_rows(kept.table, columns)
        part, program = part_of(kept), self.document.name
        noted = sql.note_rows(TABLE, program, part, self._made, every, columns)
        if not kept.keys:
            yield delete_all(kept.table), f"{kept.tensor}: its new value"
            yield insert_rows(kept.table, now), ""
            self._changed[kept.tensor] = (EVERYTHING,)
        else:
            weight = self._weight_of(kept)
            changed = temporary(f"{kept.tensor}_changed")
            before = rows_at(every, way.masks) if way.masks else every
            query = changed_entries(now, before, kept.keys, weight)
            yield self._table(changed, query), f"{kept.tensor}: keys whose rows differ"
            yield delete_rows(kept.table, all_rows(changed), kept.keys), ""
            yield insert_rows(kept.table, rows_at(now, [(changed, kept.keys)])), ""
            self._hand_on(kept, changed, differs_by=weight is not None)
        yield noted[0], f"{kept.tensor}: a digest of its rows, by which refresh() knows them"
        yield noted[1], ""

    def _hand_on(self, kept: KeptTensor, changed: Parts, *, differs_by: bool) -> None:
        """Make the changed keys of a kept tensor known to the statements that read it."""
        shape = self._types[kept.tensor].shape
        rows = max(1, int(SHARE * (kept.digest[0] or 0)))
        spec = replace(self._spec_of(kept), relation=quoted_name(changed), fill=None)
        facts = facts_of_mask(rows, shape)
        name = self._give(f"{kept.tensor}_changed", replace(spec, value=True, measured=facts))
        self._changed[kept.tensor] = (Mask(name, tuple(range(len(kept.keys)))),)
        if differs_by:
            loose = replace(facts, extremes=None)
            delta = replace(spec, value=DELTA, measured=loose)
            name = self._give(f"{kept.tensor}_difference", delta)
            self._differences[kept.tensor] = Difference(name, added=False)

    def _spec_of(self, kept: KeptTensor) -> TableInput:
        type_ = self._types[kept.tensor]
        rows = float(kept.digest[0] or 0) if kept.digest else 0.0
        distinct = tuple(min(rows, float(x)) for x in type_.shape)
        finite = type_.every.finite
        facts = MeasuredInput(type_.shape, finite, rows, None, distinct, exact=False)
        spec = super()._spec_of(kept)
        return replace(spec, bounds=self._bounds(kept.tensor), measured=facts)

    # ---- Statements ----

    def _from_scratch(self, kept: KeptTensor) -> _Way:
        """All entries, by all statements of the text: sizes are those of the whole program."""
        given, self._given = self._given, self._inputs
        try:
            statements = list(self._statements.values())
            stage, cost = self._stage(statements, kept.tensor, kept.fill)
        finally:
            self._given = given
        reason = "from scratch, as every entry may differ"
        return _Way(reason, cost, (replace(stage, table=temporary(f"{kept.tensor}_new")),))

    def _way(
        self,
        way: str,
        statements: Sequence[Statement],
        new: str,
        masks: Sequence[Mask],
        kept: KeptTensor,
    ) -> _Way:
        """Return the stages of a way: a table for each statement that the text does not have."""
        own = {x.target.tensor: x for x in statements}
        given = dict(self._given)
        stages, total = dict[str, _Stage](), 0.0
        names = {x.tensor: [kept.keys[axis] for axis in x.axes] for x in masks}
        try:
            for tensor in [*(x for x in own if x not in self._statements and x != new), new]:
                needed = statements_for([tensor], own, self._given)
                fill = kept.fill if tensor == new else None
                stages[tensor], cost = self._stage(needed, tensor, fill, names.get(tensor))
                total += cost
                self._create(stages[tensor].table, stages[tensor].query)
                self._given[tensor] = stages[tensor].spec
        finally:
            self._given = given
        named = tuple((stages[x.tensor].table, names[x.tensor]) for x in masks)
        return _Way(way, total, tuple(stages.values()), named)

    def _stage(
        self,
        statements: Sequence[Statement],
        tensor: str,
        fill: Scalar | None,
        names: Sequence[str] | None = None,
    ) -> tuple[_Stage, float]:
        """Return the query for the entries of a tensor, and its predicted cost.

        Args:
            statements: that compute it.
            tensor: the tensor.
            fill: rows are those whose values differ from it; by default from its own.
            names: the columns of its axes.
        """
        inputs = self._read_by(statements)
        kinds = [self.whole.options.decomposition] if self._kernels else []
        found: _Query | None = None
        for kind in dict.fromkeys((*kinds, "relational")):
            options = replace(self.whole.options, outputs=(tensor,), decomposition=kind)
            # Kernels of one connection alone are for no script, and relational plans call none.
            last = kind == "relational" and found is None
            with contextlib.suppress(*([] if last else [UcleError])):
                new = self._query(statements, inputs, options, fill)
                # Arrays have lengths, which would end the script where data grows.
                if found is None or new.lengths < found.lengths:
                    found = new
            if found is not None and not found.lengths:
                break
        assert found is not None
        query, type_ = found.rows, found.type
        keys = key_columns(type_)
        if names is not None:
            query, keys = named_rows(query, [*keys, VALUE], [*names, VALUE]), tuple(names)
        table, rows_ = temporary(tensor), max(1, int(SHARE * self.whole.entries))
        spec = TableInput(
            quoted_name(table),
            columns=tuple(keys),
            value=VALUE,
            encoded_keys=encoded_axes(type_),
            measured=replace(
                facts_of_mask(rows_, type_.shape), extremes=None, finite=type_.every.finite
            ),
        )
        stage = _Stage(statement_text(statements[-1]), table, query, tuple(keys), spec)
        return stage, found.cost

    def _query(
        self,
        statements: Sequence[Statement],
        inputs: Mapping[str, TableInput],
        options: Options,
        fill: Scalar | None,
    ) -> _Query:
        """Return the query for the only output of a program."""
        session, (tensor,) = self._session, options.outputs or ()
        resolved, sized = bind_statements(tuple(statements), inputs, session, options)
        compiled = Prepared(compile_sized(session, resolved, sized, options), options).for_views()
        type_ = compiled.program.types[tensor]
        other = fill is not None and type_.rank > 0 and not same_value(type_.fill, fill)
        rows = EVERY_ROW if other or not type_.rank else NONFILL
        relational = compiled.decomposed.relational
        route = session.offered.relational if relational else session.offered
        queries = view_queries(session, compiled, options, route, rows=rows, qualified=False)
        grown = {x for x in guard_messages(queries[tensor]) if " grown " in x}
        lengths = frozenset(x for x in grown if f" {MOST};" not in x)
        query = rows_of(queries[tensor], pretty=True)
        if other:
            assert fill is not None
            query = rows_but_value(query, fill)
        return _Query(query, type_, compiled.decomposed.total_cost, lengths)

    def _table(self, table: Parts, query: Rows) -> str:
        """Return the statement that makes a table; it is created without rows for the next ones."""
        self._create(table, query)
        return create_table(table, query, replace=True, temporary=True)

    def _create(self, table: Parts, query: Rows) -> None:
        sql_ = create_table(table, no_rows(query), replace=True, temporary=True)
        self._session.run(sql_, "to_sql")
        self.tables.append(table)
