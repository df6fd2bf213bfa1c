"""Sizes that views compute: literals in a script that depend on sizes become expressions of them.

A mean divides by a size, a count includes the entries that are not stored, and fills depend on
both: each such number is a constant times powers of sizes, or the logarithm of one, as in sums of
exponentials. The powers are found by emitting the script for other sizes. A number of another form,
and one that a kernel needs as a constant, cannot be computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp, select

from ucle.foundation.dataclasses import dataclass
from ucle.plan.steps import Role
from ucle.sqlgen.guards import SizeGuard
from ucle.sqlgen.plan_to_sql import SqlStep
from ucle.sqlgen.sql_trees import add_alias, cast, column, integer, number, table
from ucle.sqlgen.write_statements import Query

Sizes = tuple[int, ...]
Script = tuple[tuple[SqlStep, ...], Mapping[str, Query]]
"""Steps, and the SELECT of each output."""

POWERS = (1, -1, 2, -2, 0)
OF_NUMBERS = ("range", "least", "list_resize")
"""Functions of DuckDB whose arguments need not be constants."""

LARGEST_EXPONENT = 100
"""Beyond it, the rounding of a logarithm is more than that of the number."""

ROUNDING = 1e-13
"""The relative error that folding a few floats may cause."""


@dataclass(frozen=True)
class Sample:
    """A script for some sizes, one for each guard."""

    sizes: Sizes
    script: Script


def following(
    samples: Sequence[Sample], guards: Sequence[SizeGuard]
) -> dict[str, tuple[tuple[SqlStep, ...], Query]]:
    """Return the outputs whose sizes can be computed, each with the steps of a script that does so.

    Args:
        samples: the script, and the same for other sizes: for each guard two in which it alone has
            another size, and some in which all have.
        guards: how each size is found out.
    """
    base, *others = samples
    steps, outputs = base.script
    used = {step.name.casefold() for step in steps}
    name = next(x for n in range(len(used) + 1) if (x := f"sizes_now_{n}") not in used)
    queries: dict[str, exp.Expr | None] = {}
    for step in steps:
        trees = [_steps(sample).get(step.name) for sample in others]
        queries[step.name] = _follow(step.query, trees, samples, name)
    current_sizes = select(*(add_alias(guard.now(), f"size_{n}") for n, guard in enumerate(guards)))
    sizes = SqlStep(name, Role.TABLE, current_sizes, "sizes that the data has")
    followed: dict[str, tuple[tuple[SqlStep, ...], Query]] = {}
    for output, query in outputs.items():
        trees = [sample.script[1].get(output) for sample in others]
        shown = _follow(query, trees, samples, name)
        needed = _find_needed_steps(query, {step.name: step.query for step in steps})
        if isinstance(shown, exp.Select) and all(queries[x] is not None for x in needed):
            own = (replace(x, query=queries[x.name]) for x in steps if x.name in needed)
            followed[output] = (sizes, *own), shown
    return followed


def _steps(sample: Sample) -> dict[str, exp.Expr | None]:
    return {step.name: step.query for step in sample.script[0]}


def _find_needed_steps(query: exp.Expr, steps: Mapping[str, exp.Expr | None]) -> set[str]:
    """Return the names of the steps that a query reads, directly or not."""
    needed: set[str] = set()
    waiting = [query]
    while waiting:
        for read in waiting.pop().find_all(exp.Table):
            if not read.db and read.name in steps and read.name not in needed:
                needed.add(read.name)
                if (step := steps[read.name]) is not None:
                    waiting.append(step)
    return needed


def _follow(
    base: exp.Expr | None,
    others: Sequence[exp.Expr | None],
    samples: Sequence[Sample],
    name: str,
) -> exp.Expr | None:
    """Return a copy of a tree that computes what depends on sizes; None where it cannot."""
    if base is None or any(other is None for other in others):
        return None
    tree = base.copy()
    literals = list(tree.find_all(exp.Literal))
    copies = [other.copy() for other in others if other is not None]
    elsewhere = [list(copy.find_all(exp.Literal)) for copy in copies]
    if any(len(theirs) != len(literals) for theirs in elsewhere):
        return None
    computed: list[tuple[exp.Literal, exp.Expr]] = []
    for here, *there in zip(literals, *elsewhere, strict=True):
        if all(other == here for other in there):
            continue
        fitted = None if _is_constant(here) else _fit([here, *there], samples, name)
        if fitted is None:
            return None
        computed.append((here, fitted))
        for other in there:
            other.set("this", here.this)
    if any(copy != tree for copy in copies):
        return None
    for here, fitted in computed:
        here.replace(fitted)
    return tree


def _is_constant(literal: exp.Literal) -> bool:
    """True if a literal has to stay a constant: text, or part of a type, or given to a kernel."""
    if literal.is_string:
        return True
    parent = literal.parent
    while isinstance(parent, exp.Neg | exp.Paren | exp.Cast | exp.Array):
        parent = parent.parent
    if isinstance(parent, exp.DataType | exp.DataTypeParam):
        return True
    return isinstance(parent, exp.Anonymous) and parent.name not in OF_NUMBERS


def _fit(literals: Sequence[exp.Literal], samples: Sequence[Sample], name: str) -> exp.Expr | None:
    """Return a number as a function of sizes; None where it has none of the known forms."""
    if any(literal.is_string for literal in literals):
        return None
    whole = all(literal.is_int for literal in literals)
    values = [Fraction(literal.this) for literal in literals]
    base = samples[0].sizes
    if (powers := _fit_powers(values, samples, whole)) is not None:
        factor = values[0] / _product(base, powers)
        if not whole:
            return _term(number(_short(factor, values[0], base, powers)), powers, name, "DOUBLE")
        if factor.denominator == 1 and min(powers) >= 0:
            return _term(integer(int(factor)), powers, name, None)
        return None
    if whole or max(map(abs, values)) > LARGEST_EXPONENT:
        return None
    antilogs = [Fraction(math.exp(value)) for value in values]
    if (powers := _fit_powers(antilogs, samples, whole)) is None:
        return None
    size = _product(base, powers)
    multiple = float(antilogs[0] / size)
    for each in (float(f"{multiple:.12g}"), multiple):
        if math.log(Fraction(each) * size) == float(values[0]):
            return exp.Ln(this=_term(number(each), powers, name, "DOUBLE"))
    return None  # it would not be the number that the program has


def _fit_powers(
    values: Sequence[Fraction], samples: Sequence[Sample], whole: bool
) -> list[int] | None:
    """Return the powers of the sizes of which numbers are multiples; None where they are none."""
    base = samples[0].sizes
    powers = []
    for n, size in enumerate(base):
        alone = [
            (sample.sizes[n], value)
            for sample, value in zip(samples, values, strict=True)
            if all(
                (a == b) == (m != n)
                for m, (a, b) in enumerate(zip(sample.sizes, base, strict=True))
            )
        ]
        fits = [
            power
            for power in POWERS
            if all(_same(v, values[0] * Fraction(s, size) ** power, whole) for s, v in alone)
        ]
        if len(fits) != 1:
            return None
        powers.append(fits[0])
    factor = values[0] / _product(base, powers)
    for sample, value in zip(samples, values, strict=True):
        if not _same(value, factor * _product(sample.sizes, powers), whole):
            return None
    return powers


def _term(factor: exp.Expr, powers: Sequence[int], name: str, type_: str | None) -> exp.Expr:
    """Return a constant times powers of the present sizes, in a type."""
    term = factor
    for n, power in enumerate(powers):
        now: exp.Expr = select(column(f"size_{n}")).from_(table(name)).subquery()
        if type_ is not None:
            now = cast(now, type_)
        for _ in range(abs(power)):
            kind = exp.Mul if power > 0 else exp.Div
            term = kind(this=term, expression=now.copy())
    return exp.Paren(this=term)


def _short(factor: Fraction, value: Fraction, sizes: Sizes, powers: Sequence[int]) -> float:
    """Return a factor rounded to 12 digits where that gives the same number, else in full."""
    short = float(f"{float(factor):.12g}")
    same = float(Fraction(short) * _product(sizes, powers)) == float(value)
    return short if same else float(factor)


def _product(sizes: Sizes, powers: Sequence[int]) -> Fraction:
    return math.prod(
        (Fraction(s) ** power for s, power in zip(sizes, powers, strict=True)), start=Fraction(1)
    )


def _same(one: Fraction, other: Fraction, whole: bool) -> bool:
    return one == other if whole else abs(one - other) <= ROUNDING * abs(other)
