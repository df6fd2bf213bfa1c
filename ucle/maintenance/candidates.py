"""Ways to compute the entries of a kept tensor that may differ: compiled, and with their costs.

A way is a program, and what becomes of its result. Masks say where entries may differ, or their
coordinates along one axis are numbered, and tables are read at these alone
(`ucle.maintenance.affected_rows`); a sum may grow by differences.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ucle.database.session import Database, Session
from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.inputs import parse_table_name
from ucle.inputs.table_input import TableInput
from ucle.language.bounds import statement_labels
from ucle.language.resolve import resolve
from ucle.language.syntax import Access, Reduction, Statement
from ucle.maintenance.affected import AffectedKeys, Mask, statements_for
from ucle.maintenance.affected_rows import (
    AffectedRows,
    are_plain,
    copy_rows,
    number_affected,
    shorter_input,
)
from ucle.maintenance.bound_program import BoundProgram
from ucle.maintenance.derivation import AFFECTED, DIFFERENCES, Derivation
from ucle.maintenance.document import Document, KeptTensor, Parts
from ucle.maintenance.kept_programs import KeptProgram, kept_program
from ucle.maintenance.least_affected import least_true
from ucle.maintenance.renumbered import Part, renumber
from ucle.operators import ANY
from ucle.plan.forms import EVERY_ROW, NONFILL, WrittenForm
from ucle.plan.sources import TableSource
from ucle.run.results import TensorRelation
from ucle.sqlgen.cached_texts import Rows
from ucle.sqlgen.maintained_tables import (
    named_rows,
    state_keys,
    state_rows,
    state_value,
)
from ucle.sqlgen.sql_trees import VALUE, key_columns
from ucle.sqlgen.write_statements import all_rows
from ucle.stats.measure import MeasuredInput

PREFIX = "ucle_refresh_"
"""The prefix of temporary tables, which are those of a connection: one refresh runs at a time. They
have the same names each time, so that compiled programs read them."""

NO_LIMIT = 2**62
"""The most rows that are written."""

AUTO, SCRATCH = "auto", "from scratch"
WAYS = (AUTO, DIFFERENCES, AFFECTED, SCRATCH)
"""How tensors are brought up to date: in the cheapest way, or in one of the others if it can be."""

REPLACED = 150.0
"""The cost of comparing a row of a kept tensor with a new one and of replacing it: programs are
priced without what becomes of their rows."""

NUMBERED = 1e7
"""The cost of the statements that number coordinates and copy rows, however few these are."""

SCANNED = 5.0
"""The cost of looking at a row of a table whose rows at some coordinates are copied."""

MOST_AFFECTED = 0.25
"""The largest share of the coordinates of an axis that are numbered."""

ROUGHLY = 4.0
"""How many times more of them may be predicted, so that they are counted nevertheless."""


@dataclass(frozen=True)
class Candidate:
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
    grows: bool = False
    """True if the entries are added to those that are there."""
    keys: AffectedRows | None = None
    """The numbered coordinates at which the entries are, in place of masks."""
    behind: tuple[tuple[KeptTensor, KeptTensor], ...] = ()
    """Kept tensors behind this one that the program computes anew, too, as the last refresh left
    them and with the fills and types of now."""


class Candidates(Derivation):
    """The ways in which kept tensors can be brought up to date, in a transaction."""

    def __init__(self, session: Session, document: Document, whole: BoundProgram, way: str) -> None:
        """Begin where nothing has changed; arguments are those of `Refresh`."""
        super().__init__(document, whole)
        self.session, self.way = session, way
        self.kept: list[KeptTensor] = []
        """The kept tensors, with the fills that they have now."""
        self._prefix = PREFIX
        self._temporary: list[Parts] = []

    def _partial(
        self, kept: KeptTensor, before: KeptTensor, parts: Sequence[Statement], total: float
    ) -> Iterator[Candidate]:
        """Yield ways to compute the entries of a tensor that may differ."""
        ways = [x for x in (DIFFERENCES, AFFECTED) if self.way in (AUTO, x)]
        numbered = AFFECTED not in ways
        for way, found in self._candidates(before, parts, ways):
            if way == AFFECTED and not numbered:
                yield from self._over_numbers(kept, parts, total)
                numbered = True
            masks, checks = found.masks, [found.moved] if found.moved else []
            try:
                new, statements = found.new, found.statements
                if found.grown and before.keys:
                    new, masks, statements = found.grown, (), found.statements[:1]
                names = [new, *(x.tensor for x in masks), *checks]
                made = self._build(statements, names)
            except UcleError:
                continue
            dtype = made.compiled.program.types[new].dtype
            if found.moved and dtype is not self._types[kept.tensor].dtype:
                continue
            entries = made.compiled.statistics.tensor(new).entries
            cost = made.cost + REPLACED * entries
            axes = [",".join(kept.keys[axis] for axis in x.axes) for x in found.masks]
            shown = ", ".join(f"[{each}]" for each in axes)
            reason = f"masks over {shown}" if shown else "all entries"
            grows = new == found.grown
            yield Candidate(way, reason, cost, made, new, masks, found.moved, grows)

    def _over_numbers(
        self, kept: KeptTensor, parts: Sequence[Statement], total: float
    ) -> Iterator[Candidate]:
        """Yield programs over the rows of tables at affected coordinates of one axis."""
        shape, where = self._types[kept.tensor].shape, f"refresh, {kept.tensor}"
        for axis in sorted(range(len(shape)), key=shape.__getitem__, reverse=True):
            found = renumber(parts, axis, self._new_name)
            if found is None or not all(self._can_be_numbered(x) for x in found.parts):
                continue
            program, affected, _ = self._masks(kept, parts, found.axes, narrow=True)
            if affected.everything or any(x.axes != (axis,) for x in affected.masks):
                continue
            scanned = SCANNED * sum(self._rows_of(x.tensor) for x in found.parts)
            if self.way == AUTO and scanned >= total:
                return
            keys = self._number(kept, program, affected, axis)
            if keys is None:
                continue
            given = {x.name: self._copied(x, keys, where) for x in found.parts}
            self._given |= given
            try:
                made = self._build(found.statements, [found.new])
            except UcleError:
                continue
            if made.compiled.program.types[found.new].dtype is not self._types[kept.tensor].dtype:
                continue
            entries = made.compiled.statistics.tensor(found.new).entries
            fixed = NUMBERED if self.way == AUTO else 0.0
            cost = made.cost + fixed + scanned + REPLACED * entries
            reason = f"{keys.count:,} of {shape[axis]:,} coordinates of {kept.keys[axis]}"
            yield Candidate(AFFECTED, reason, cost, made, found.new, keys=keys)
            return

    def _can_be_numbered(self, part: Part) -> bool:
        """True if the rows of a tensor at some coordinates can be copied with numbers for these."""
        axes = self._types[part.tensor].axes
        others = [x for n, x in enumerate(axes) if n != part.axis]
        if any(x.dictionary is not None for x in others):
            return False
        if part.tensor in self._statements:
            return True
        source = self.whole.inputs[part.tensor].source
        if not isinstance(source, TableSource) or any(source.keys_as):  # of other types elsewhere
            return False
        return are_plain(source, self._given[part.tensor])

    def _number(
        self, kept: KeptTensor, program: Sequence[Statement], affected: AffectedKeys, axis: int
    ) -> AffectedRows | None:
        """Number the coordinates of an axis that masks have; None if these are too many."""
        own = {x.target.tensor: x for x in program}
        needed = statements_for([x.tensor for x in affected.masks], own, self._given)
        most, where = (
            MOST_AFFECTED * self._types[kept.tensor].shape[axis],
            f"refresh, {kept.tensor}",
        )
        least = max(
            least_true(x.tensor, x.axes.index(axis), own, self._given) for x in affected.masks
        )
        if self.way == AUTO and least > most:
            return None
        with contextlib.ExitStack() as stack:
            found = self._read_masks(affected.masks, own, axis)
            if found is None:
                names = [x.tensor for x in affected.masks]
                made = self._build(needed, names)
                counts = made.compiled.statistics.tensor
                if self.way == AUTO and any(counts(x).entries > ROUGHLY * most for x in names):
                    return None
                session = self.session.beside()
                made.prepared.take_route(session)
                result = stack.enter_context(contextlib.closing(made.prepared.run(session, None)))
                found = [
                    (self._keys_of(stack, result[x.tensor], x, kept)[0], kept.keys[axis])
                    for x in affected.masks
                ]
            table = self._temporary_table(f"{kept.tensor}_keys")
            keys = number_affected(self.session, table, axis, found, where)
        return None if self.way == AUTO and keys.count > most else keys

    def _read_masks(
        self, masks: Sequence[Mask], own: Mapping[str, Statement], axis: int
    ) -> list[tuple[Rows, str]] | None:
        """Return queries for the coordinates of an axis that masks have, with their columns.

        None if one of them is more than what has changed in a table.
        """
        found = list[tuple[Rows, str]]()
        for mask in masks:
            statement = resolve(own[mask.tensor])
            read, label = statement.expression, statement.target.labels[mask.axes.index(axis)]
            if isinstance(read, Reduction) and read.operator is ANY:
                read = read.argument
            if not isinstance(read, Access) or read.indices is not None:
                return None
            given = self._given.get(read.tensor)
            if given is None or given.value is not True or len(set(read.labels)) < read.rank:
                return None
            column = str((given.columns or ())[read.labels.index(label)])
            parts = parse_table_name(given.relation, "refresh").parts
            found.append((all_rows(parts, [column]), column))
        return found

    def _copied(self, part: Part, at: AffectedRows, where: str) -> TableInput:
        """Copy the rows of a tensor at numbered coordinates, and return them as an input."""
        given, type_, place = self._given[part.tensor], self._types[part.tensor], part.axis
        keys: tuple[str, ...]
        whole: MeasuredInput | None = None
        value: str | None = VALUE
        if part.tensor in self._statements:
            (kept,) = (x for x in self.kept if x.tensor == part.tensor)
            query, keys = all_rows(kept.table, (*kept.keys, VALUE)), kept.keys
            values = type_.every
            if values.finite and not values.overflows:
                whole = MeasuredInput(type_.shape, True, 0.0, None, (), exact=False)
        else:
            source = self.whole.inputs[part.tensor].source
            assert isinstance(source, TableSource)
            query, whole = state_rows(source), self.whole.facts[part.tensor]
            keys, value = tuple(state_keys(source)), state_value(source)
        table = self._temporary_table(part.name)
        rows = copy_rows(self.session, table, query, keys, value, place, at, where)
        return shorter_input(self.session, given, rows, type_, place, at, whole)

    def _from_scratch(self, kept: KeptTensor, parts: Sequence[Statement], reason: str) -> Candidate:
        made = self._build(parts, [kept.tensor])
        return Candidate(SCRATCH, reason, made.cost, made, kept.tensor)

    def _build(self, statements: Sequence[Statement], outputs: Sequence[str]) -> KeptProgram:
        statements = self._with_coordinates(statements)
        inputs, options = self._read_by(statements), self.whole.options
        if options.bounds:  # those of labels that none of these statements has mean nothing
            own = set().union(*map(statement_labels, statements))
            bounds = {label: size for label, size in options.bounds.items() if label in own}
            options = replace(options, bounds=bounds)
        return kept_program(statements, inputs, outputs, self.session, options)

    @property
    def database(self) -> Database:
        """The connection on which the refresh runs."""
        return self.session.connection

    def _temporary_table(self, name: str) -> Parts:
        table = ("temp", "main", self._prefix + name)
        self._temporary.append(table)
        return table

    def _keys_of(
        self, stack: contextlib.ExitStack, found: TensorRelation, mask: Mask, kept: KeptTensor
    ) -> tuple[Rows, list[str]]:
        """Return a query for where a mask is true, with the columns of the kept tensor."""
        keys = [kept.keys[axis] for axis in mask.axes]
        query = stack.enter_context(found.text_of(entries_form(found, f"refresh, {mask.tensor}")))
        return named_rows(query, key_columns(found.type), keys), keys


def entries_form(tensor: TensorRelation, where: str) -> WrittenForm:
    """Return the form of the entries of a tensor that differ from its fill, or of a number."""
    return tensor.form(None, NONFILL if tensor.type.rank else EVERY_ROW, NO_LIMIT, where)
