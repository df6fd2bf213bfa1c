"""Purely relational SQL: one SELECT per binary EinSum over tables of entries.

The translation of Blacher et al. that the paper compares with, written for the benchmarks alone and
independent of ucle. A tensor is a table with a column for each axis, ``c0``, ``c1`` and so on, and
its value: ``v``, or ``re`` and ``im``. The SQL is the common subset of DuckDB, PostgreSQL, SQLite
and Hyper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Access = tuple[str, Sequence[str]]
"""A table and a label for each of its columns."""


@dataclass(frozen=True)
class Step:
    """A statement ``name AS select``."""

    name: str
    select: str


@dataclass(frozen=True)
class Script:
    """Tables to create, in order; the last one is the result."""

    tables: tuple[Step, ...]

    @property
    def output(self) -> str:
        """The table that holds the result."""
        return self.tables[-1].name


def one_statement(steps: Sequence[Step]) -> Script:
    """Combine steps into one statement, with a common table expression for all but the last."""
    *first, last = steps
    bodies = ",\n".join(f"{step.name} AS (\n{step.select}\n)" for step in first)
    return Script((Step(last.name, f"WITH {bodies}\n{last.select}" if first else last.select),))


def contract(
    name: str, output: Sequence[str], *factors: Access, scale: float = 1.0, is_complex: bool = False
) -> Step:
    """Return the product of one or two tensors, summed over the labels that the output lacks.

    >>> print(contract("T", "ik", ("X", "ij"), ("Y", "jk")).select)
    SELECT a.c0 AS c0, b.c1 AS c1, SUM(a.v * b.v) AS v
    FROM X a JOIN Y b ON a.c1 = b.c0
    GROUP BY a.c0, b.c1
    """
    aliases = "ab"[: len(factors)]
    columns: dict[str, str] = {}
    equal: list[list[str]] = [[] for _ in factors]
    for alias, found, (_, labels) in zip(aliases, equal, factors, strict=True):
        for axis, label in enumerate(labels):
            column = f"{alias}.c{axis}"
            if label in columns:
                found.append(f"{columns[label]} = {column}")
            else:
                columns[label] = column
    summed = set(columns) - set(output)
    keys = [f"{columns[label]} AS c{axis}" for axis, label in enumerate(output)]
    values = _values(aliases, scale, is_complex, bool(summed))
    lines = [f"SELECT {', '.join([*keys, *values])}", f"FROM {_joined(factors, aliases, equal)}"]
    if equal[0]:
        lines.append(f"WHERE {' AND '.join(equal[0])}")
    if summed and output:
        lines.append(f"GROUP BY {', '.join(columns[label] for label in output)}")
    return Step(name, "\n".join(lines))


def _joined(factors: Sequence[Access], aliases: str, equal: Sequence[Sequence[str]]) -> str:
    text = f"{factors[0][0]} a"
    if len(factors) == 1:
        return text
    joined = f"{factors[1][0]} {aliases[1]}"
    if equal[1]:
        return f"{text} JOIN {joined} ON {' AND '.join(equal[1])}"
    return f"{text} CROSS JOIN {joined}"


def _values(aliases: str, scale: float, is_complex: bool, summed: bool) -> list[str]:
    """Return the columns of the value."""
    if not is_complex:
        products = {"v": " * ".join(f"{alias}.v" for alias in aliases)}
    elif len(aliases) == 1:
        products = {"re": "a.re", "im": "a.im"}
    else:
        products = {"re": "a.re * b.re - a.im * b.im", "im": "a.re * b.im + a.im * b.re"}
    before = "" if scale == 1 else f"{scale!r} * "
    return [
        f"{before}{f'SUM({text})' if summed else f'({text})' if before else text} AS {column}"
        for column, text in products.items()
    ]


def chained(name: str, output: Sequence[str], factors: Iterable[Access]) -> list[Step]:
    """Return a product of many tensors, two at a time; labels are summed as soon as possible."""
    waiting = list(factors)
    done, steps = waiting.pop(0), []
    while waiting:
        factor = waiting.pop(0)
        needed = set(output).union(*(labels for _, labels in waiting))
        both = dict.fromkeys([*done[1], *factor[1]])
        kept = [label for label in both if label in needed] if waiting else list(output)
        step = contract(f"{name}_{len(steps)}" if waiting else name, kept, done, factor)
        steps.append(step)
        done = (step.name, kept)
    return steps


def relu(name: str, tensor: str, rank: int) -> Step:
    """Keep every entry that is positive."""
    keys = ", ".join(f"c{axis}" for axis in range(rank))
    return Step(name, f"SELECT {keys}, CASE WHEN v > 0 THEN v ELSE 0 END AS v FROM {tensor}")
