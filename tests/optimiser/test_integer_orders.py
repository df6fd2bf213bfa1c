"""Integers near 2^63 in products whose order was changed: the exact answer, or the written order's.

Whatever the order, a number is exact or there is an error. An order that overflows gives way to
that of the text; so a program may be refused only where it is as it is written, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.errors import NumberRangeError
from ucle.ir.maps import Cast
from ucle.ir.overflow import may_overflow
from ucle.ir.vertices import Program
from ucle.options import Optimisations
from ucle.testing.everywhere import Routes, recompiled, some_decompositions

ANY = Optimisations(association_gain=-np.inf)
"""Whatever order comes first is taken, whether it gains anything or not."""

MOST = 2**63 - 1
LEAST = -(2**63)

Exact = Mapping[tuple[int, ...], int]
"""The entries of a tensor as Python's integers, by position."""


@dataclass(frozen=True)
class Statement:
    """⊕ over all labels but some of the ⊗ of factors."""

    target: str
    kept: tuple[str, ...]
    algebra: str
    factors: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        combine, assign = {"sum": ("*", "+="), "min": ("+", "min="), "max": ("+", "max=")}[
            self.algebra
        ]
        right = f" {combine} ".join(f"{name}[{','.join(labels)}]" for name, labels in self.factors)
        return f"{self.target}[{','.join(self.kept)}] {assign} {right}"


@dataclass(frozen=True)
class Drawn:
    """A program with its inputs."""

    statements: tuple[Statement, ...]
    arrays: Mapping[str, np.ndarray[Any, Any]]

    @property
    def text(self) -> str:
        return "\n".join(map(str, self.statements))


def drawn(seed: int) -> Drawn:
    """A program of a seed: chains of statements whose numbers are zeros, small or up to 2^62."""
    rng = np.random.default_rng(seed)
    algebra = str(rng.choice(["sum", "sum", "sum", "min", "max"]))
    size, signed, large = int(rng.integers(1, 4)), rng.random() < 0.5, int(rng.choice([16, 40, 62]))
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    statements: list[Statement] = []
    for number in range(int(rng.integers(1, 4))):
        factors = []
        labels: list[str] = []
        if statements:
            last = statements[-1]
            factors.append((last.target, tuple(rng.permutation(list("ijkl"))[: len(last.kept)])))
        for _ in range(int(rng.integers(2, 5)) - len(factors)):
            name, rank = f"X{len(arrays)}", int(rng.integers(1, 3))
            arrays[name] = _numbers(rng, (size,) * rank, signed, large, algebra)
            factors.append((name, tuple(rng.permutation(list("ijkl"))[:rank])))
        labels = list(dict.fromkeys(x for _, names in factors for x in names))
        kept = tuple(x for x in labels if rng.random() < 0.4)[:2]
        statements.append(Statement(f"T{number}", kept, algebra, tuple(factors)))
    return Drawn(tuple(statements), arrays)


def _numbers(
    rng: np.random.Generator, shape: tuple[int, ...], signed: bool, large: int, algebra: str
) -> np.ndarray[Any, Any]:
    if algebra == "sum" and rng.random() < 0.1:
        return rng.random(shape) < 0.7
    powers = np.int64(1) << rng.integers(0, large + 1, size=shape)
    made = np.where(rng.random(shape) < 0.4, powers, rng.integers(0, 4, size=shape))
    if signed:
        made = made * rng.choice([-1, 1], size=shape)
    made[rng.random(shape) < 0.3] = 0
    return made.astype(np.int64)


def exact(program: Drawn) -> dict[str, Exact]:
    """All tensors of a program by Python's integers."""
    known = {name: _entries(array) for name, array in program.arrays.items()}
    for statement in program.statements:
        factors = [(known[name], labels) for name, labels in statement.factors]
        terms = _terms(factors, statement.kept, statement.algebra == "sum")
        fold = {"sum": sum, "min": min, "max": max}[statement.algebra]
        known[statement.target] = {at: fold(values) for at, values in terms.items()}
    return known


def _entries(array: np.ndarray[Any, Any]) -> Exact:
    return {at: int(array[at]) for at in np.ndindex(array.shape)}


def _terms(
    factors: list[tuple[Exact, tuple[str, ...]]], kept: tuple[str, ...], product: bool
) -> dict[tuple[int, ...], list[int]]:
    sizes: dict[str, int] = {}
    for entries, labels in factors:
        for axis, label in enumerate(labels):
            sizes[label] = 1 + max(at[axis] for at in entries)
    terms: dict[tuple[int, ...], list[int]] = {}
    for values in itertools.product(*(range(n) for n in sizes.values())):
        at = dict(zip(sizes, values, strict=True))
        numbers = [entries[tuple(at[x] for x in labels)] for entries, labels in factors]
        term = int(np.prod(np.array(numbers, object))) if product else sum(numbers)
        terms.setdefault(tuple(at[x] for x in kept), []).append(term)
    return terms


def safe(program: Program, known: Mapping[str, Exact]) -> bool:
    """Whether no sum of absolute values within a vertex leaves 64 bits, let alone a part of it."""
    made = dict(known)
    for vertex in program.vertices:
        factors = [(made[operand.tensor], operand.names) for operand in vertex.inputs]
        assert all(isinstance(step, Cast) for step in vertex.maps)
        product = vertex.combine is None or vertex.combine.name == "mult"
        terms = _terms(factors, vertex.names, product)
        reduce = "sum" if vertex.reduce is None else vertex.reduce.name
        for values in terms.values():
            size = sum(map(abs, values)) if reduce == "sum" else max(map(abs, values))
            if size > MOST:
                return False
        fold = {"sum": sum, "min": min, "max": max}[reduce]
        made[vertex.name] = {at: fold(values) for at, values in terms.items()}
    return True


Answer = dict[str, Exact] | None
"""The outputs; None where integers overflowed."""


def answer(program: ucle.EinsumProgram, connection: duckdb.DuckDBPyConnection) -> Answer:
    try:
        with program.execute(connection) as result:
            return {name: _entries(result[name].to_numpy()) for name in result}
    except NumberRangeError:
        return None


def check(case: Drawn, seed: int, routes: Routes) -> tuple[int, int]:
    """Check a case in its order, and say how often it ran and how often it was refused."""
    known = exact(case)
    options: dict[str, Any] = {"inputs": dict(case.arrays), "database": routes["native"]}
    written = ucle.einsum_program(case.text, association="as-written", **options)
    free = recompiled(ucle.einsum_program(case.text, **options), ANY)
    expected = {name: known[name] for name in free.outputs}
    fits = all(LEAST <= x <= MOST for entries in expected.values() for x in entries.values())
    inputs = {name: known[name] for name in case.arrays}
    is_safe = safe(written.compiled.program, inputs)
    if not may_overflow(free.compiled.program):
        assert safe(free.compiled.program, inputs), case.text
    ran = refused = 0
    for way in ("auto", *some_decompositions(free, seed, 2)):
        program = free if way == "auto" else free.with_decomposition(way)
        for route, connection in routes.items():
            found = answer(program, connection)
            context = f"seed {seed}, {route}, {way}\n{case.text}\n{case.arrays}"
            ran += 1
            if found is not None:
                assert found == expected, context
                continue
            refused += 1
            assert not is_safe, context
            if fits:  # refused, though the answer would fit: so it is in the order of the text
                met = program._preparations._met.values()
                if program.compiled.front.lowering.integers:
                    assert any(prepared._overflowed for prepared in met), context
    return ran, refused


FEW = range(60)


@pytest.mark.usefixtures("any_order")
@pytest.mark.parametrize("seed", FEW)
def test_random_integers_in_any_order(seed: int, routes: Routes) -> None:
    check(drawn(seed), seed, routes)
