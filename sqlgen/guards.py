"""Guards of views and scripts: an error, before there is a row, if a size no longer holds.

Some sizes are written into a view because it cannot compute them, such as the lengths of arrays.
The guard is a common table expression of one row that checks the current sizes of the data.
Everything that reads a table waits for it, so that no kernel is called with a position outside its
array. Into a script all sizes are written; its guards are its first statements.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlglot import exp, select

from ucle.foundation.dataclasses import dataclass
from ucle.plan.sources import Dictionary, TableSource
from ucle.plan.steps import Role
from ucle.sqlgen.input_conditions import wrong_shape
from ucle.sqlgen.input_tables import dictionary_values, source_table, whole_table
from ucle.sqlgen.plan_to_sql import SqlStep
from ucle.sqlgen.run_rows import without_ends
from ucle.sqlgen.sql_trees import add_alias, column, function, integer, scale_key, table, text

HOLDS = "holds"

AGAIN = "create_views again"
"""What the errors of guards advise in views."""

WRITE_AGAIN = "call to_sql again"
"""What they advise in scripts."""


@dataclass(frozen=True)
class SizeGuard:
    """The size of a label when the view was created, and its source.

    `columns` are the key columns whose coordinates it counts, through a dictionary (`encoded`) or
    as positions. `least` is the smallest size that is still valid.
    """

    title: str
    columns: tuple[tuple[TableSource, str], ...]
    encoded: bool
    size: int
    least: int = 0

    def cases(self) -> list[exp.If]:
        """Violations, each with its own error."""
        size = self.now()
        grown = exp.GT(this=size, expression=integer(self.size))
        cases = [_raise_if(grown, f"{self.title} has grown beyond {self.size}")]
        if self.least:
            less = exp.LT(this=size.copy(), expression=integer(self.least))
            cases.append(_raise_if(less, f"{self.title} has shrunk below {self.least}"))
        return cases

    def now(self) -> exp.Expr:
        """The current size of the data."""
        counted, size = self._counted()
        return select(size).from_(counted).subquery()

    def error_query(self) -> exp.Select:
        """The statement of a script that fails at another size, or one beyond a fixed one."""
        exact = self.least == self.size
        counted, size = self._counted()
        wrong = (exp.NEQ if exact else exp.GT)(this=size, expression=integer(self.size))
        changed = f"is no longer {self.size}" if exact else f"has grown beyond {self.size}"
        return select(_error(f"{self.title} {changed}", WRITE_AGAIN)).from_(counted).having(wrong)

    def _counted(self) -> tuple[exp.Expr, exp.Expr]:
        """A relation, and the aggregate of it that is the size."""
        if self.encoded:
            values = dictionary_values(Dictionary("", self.columns, 0)).subquery("values")
            return values, exp.Count(this=exp.Star())
        if len(self.columns) == 1:
            ((source, name),) = self.columns
            return _rows(source, name), _size_of(self._largest(source, name))
        largest = (
            select(add_alias(self._largest(source, name), "largest")).from_(_rows(source, name))
            for source, name in self.columns
        )
        parts = exp.union(*largest, distinct=False).subquery("sizes")
        return parts, _size_of(exp.Max(this=column("largest")))

    def _largest(self, source: TableSource, name: str) -> exp.Expr:
        """The largest coordinate of a column; the last tile may reach beyond a bound."""
        largest: exp.Expr = exp.Max(this=column(name))
        if source.ends is not None and name == source.keys[-1]:
            return exp.Sub(this=exp.Max(this=column(source.ends)), expression=integer(1))
        tile = dict(zip(source.keys, source.tiles, strict=False)).get(name, 0)
        if not tile:
            return largest
        first = scale_key(largest, tile)
        last = exp.Add(this=first, expression=integer(tile - 1))
        inside = exp.func("greatest", first.copy(), integer(self.size - 1), copy=False)
        return exp.func("least", last, inside, copy=False)


def _rows(source: TableSource, key: str) -> exp.Expr:
    """The relation of a source in FROM that has all coordinates of a key column.

    Of runs, it has their ends, not each position; of lists, those without items, too.
    """
    if source.ragged and key != source.keys[-1]:
        return whole_table(source)
    return source_table(source if source.ends is None else without_ends(source))


def _size_of(largest: exp.Expr) -> exp.Expr:
    """The size of which a coordinate is the largest; 0 if there is none."""
    known = exp.func("coalesce", largest, integer(-1), copy=False)
    return exp.Add(this=known, expression=integer(1))


@dataclass(frozen=True)
class ShapeGuard:
    """The shape of the arrays in a column of lists."""

    title: str
    source: TableSource

    def cases(self) -> list[exp.If]:
        """Violations: an array of another shape."""
        rows = select(integer(1)).from_(source_table(self.source)).where(wrong_shape(self.source))
        return [_raise_if(exp.Exists(this=rows), self._message())]

    def error_query(self) -> exp.Select:
        """The statement of a script that fails if there is an array of another shape."""
        failure = select(_error(self._message(), WRITE_AGAIN))
        return failure.from_(source_table(self.source)).where(wrong_shape(self.source))

    def _message(self) -> str:
        shape = " x ".join(map(str, self.source.dense))
        return f"an array of {self.title} no longer has the shape {shape}"


Guard = SizeGuard | ShapeGuard


def add_guards(
    steps: Sequence[SqlStep], output: exp.Select, guards: Sequence[Guard], scans: Collection[str]
) -> tuple[tuple[SqlStep, ...], exp.Select]:
    """Put the steps of a script, and the SELECT of an output, under guards.

    Args:
        steps: of the script.
        output: the SELECT.
        guards: the conditions that have to hold.
        scans: names of the steps that read tables.
    """
    if not guards:
        return tuple(steps), output
    taken = {step.name.casefold() for step in steps}
    name = next(x for n in range(len(taken) + 1) if (x := f"sizes_{n}") not in taken)
    cases = [case for guard in guards for case in guard.cases()]
    check = select(add_alias(exp.Case(ifs=cases, default=exp.true()), HOLDS))
    step = SqlStep(name, Role.TABLE, check, "sizes that are written into this script")

    def under_guard(query: exp.Select) -> exp.Select:
        return query.where(select(column(HOLDS)).from_(table(name)).subquery())

    waiting = [
        replace(step, query=under_guard(step.query))
        if step.name in scans and isinstance(step.query, exp.Select)
        else step
        for step in steps
    ]
    return (step, *waiting), under_guard(output)


def guard_messages(query: exp.Query) -> set[str]:
    """Return the messages of the guards of a query."""
    found = {str(x.this) for x in query.find_all(exp.Literal) if x.is_string}
    return {x for x in found if x.endswith(AGAIN)}


def _raise_if(wrong: exp.Expr, message: str) -> exp.If:
    return exp.If(this=wrong, true=_error(message, AGAIN))


def _error(message: str, advice: str) -> exp.Expr:
    return function("error", text(f"{message}; {advice}"))
