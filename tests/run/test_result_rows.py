"""Schema and rows of a result are facts of the tensor: each plan and each route writes the same.

Where arithmetic is exact, rows are equal, in tables, files and frames. Where it rounds they may
differ in entries that rounding could have made the fill, and in no other.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import ucle
from ucle.run.results import TensorRelation
from ucle.testing import Case, Routes, exact_case, some_decompositions

PROGRAMS = 60
MORE = int(os.environ.get("UCLE_FUZZ_PROGRAMS", "1"))
fuzz = [
    pytest.mark.fuzz,
    pytest.mark.skipif(
        "UCLE_FUZZ_PROGRAMS" not in os.environ, reason="UCLE_FUZZ_PROGRAMS is not set"
    ),
]

Row = tuple[Any, ...]


def hashable(value: Any) -> Any:
    """A value of a row; pairs are complex numbers."""
    if isinstance(value, dict):
        return complex(value["re"], value["im"])
    return tuple(map(hashable, value)) if isinstance(value, list | np.ndarray) else value


def as_set(rows: Iterable[Iterable[Any]]) -> set[Row]:
    listed = [tuple(map(hashable, row)) for row in rows]
    made = set(listed)
    assert len(made) == len(listed), "a row is there twice"
    return made


def expected_rows(array: Any, fill: Any, keys: tuple[int, ...], rows: str) -> set[Row]:
    """The expected rows of a dense array, by NumPy alone."""
    rest = [axis for axis in range(array.ndim) if axis not in keys]
    turned = array.transpose([*keys, *rest])
    made = set()
    for place in itertools.product(*(range(array.shape[axis]) for axis in keys)):
        part = turned[place]
        if rows == "all" or (part != fill).any():
            value = tuple(part.ravel().tolist()) if rest else part.item()
            made.add((*place, value))
    return made


def ways(program: ucle.EinsumProgram, seed: int, sample: int) -> list[Any]:
    """The chosen plan, the relational one, all dense, and random ones."""
    return ["auto", "relational", *itertools.islice(some_decompositions(program, seed, 9), sample)]


def check_rows(case: Case, routes: Routes, seed: int, folder: Path, sample: int) -> None:
    """Each way to run a case gives the oracle's rows, in each form that is tried."""
    oracle = case.expected()
    compiler = next(iter(routes.values()))
    rng = np.random.default_rng(seed)
    for connection in routes.values():
        case.create_tables(connection)
    try:
        chosen = case.compile(compiler)
        keys = {
            name: [x.name for x in chosen.compiled.program.types[name].axes if rng.random() < 0.5]
            for name in chosen.outputs
        }
        defaults: dict[str, str] = {}
        for number, way in enumerate(ways(chosen, seed, sample)):
            program = chosen if way == "auto" else chosen.with_decomposition(way)
            for turn, (route, connection) in enumerate(routes.items()):
                with program.execute(connection) as result:
                    for name, tensor in result.items():
                        context = f"{route}, {way}, {name}, keys {keys[name]}\n{case}"
                        rows = tensor.form().rows
                        assert defaults.setdefault(name, rows) == rows, context
                        about = (oracle[name], keys[name], connection)
                        check_tensor(tensor, *about, folder / "t.parquet", number + turn, context)
    finally:
        for connection in routes.values():
            connection.execute("DROP TABLE IF EXISTS written")
            case.drop_tables(connection)


def check_tensor(
    tensor: TensorRelation,
    array: Any,
    keys: list[str],
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    turn: int,
    context: str,
) -> None:
    """Compare a table, and by turns a file or a frame, and arrays of some or all rows."""
    every = tuple(range(array.ndim))
    wanted = expected_rows(array, tensor.fill, every, tensor.form().rows)
    tensor.to_table("written", mode="replace")
    assert as_set(connection.sql("FROM written").fetchall()) == wanted, context
    assert connection.sql("FROM written").columns == list(tensor.columns), context
    if turn % 2:
        tensor.save(path)
        read = pq.read_table(path)
        assert read.column_names == list(tensor.columns), context
        assert as_set(zip(*read.to_pydict().values(), strict=True)) == wanted, context
    else:
        frame: Any = tensor.to_polars() if turn % 4 else tensor.to_pandas()
        rows = frame.rows() if turn % 4 else frame.itertuples(index=False)
        assert as_set(rows) == wanted, context
    chosen = tuple(n for n, axis in enumerate(tensor.type.axes) if axis.name in keys)
    which = ("all", "nonfill")[turn // 2 % 2]
    made = expected_rows(array, tensor.fill, chosen, which)
    table = tensor.to_arrow(keys, which)
    assert as_set(zip(*table.to_pydict().values(), strict=True)) == made, (which, context)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, PROGRAMS, 10))
def test_exact_programs_write_the_same_rows(start: int, routes: Routes, tmp_path: Path) -> None:
    for seed in range(start, start + 10):
        check_rows(exact_case(seed), routes, seed, tmp_path, 1)


@pytest.mark.parametrize("seed", [pytest.param(n, marks=fuzz) for n in range(MORE)])
def test_more_exact_programs(seed: int, routes: Routes, tmp_path: Path) -> None:
    check_rows(exact_case(10_000 + seed, 10), routes, seed, tmp_path, 2)


# ---- Rounding ----

FACTORS = (0.1, 0.3, 1 / 3, 0.7, 1.1)


class Rounding:
    """A sum of products of tensors whose values no binary number is, and what it is exactly.

    Most entries are sums that would be 0 were it not for rounding.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.bounds = {label: int(rng.integers(2, 4)) for label in "ijkl"}
        self.arrays: dict[str, Any] = {}
        self.terms: list[tuple[int, list[tuple[str, str]]]] = []
        factor = float(rng.choice(FACTORS))
        for _ in range(2):
            factors = []
            for _ in range(int(rng.integers(1, 4))):
                name = f"A{len(self.arrays)}"
                labels = "".join(rng.permutation(list("ijkl"))[: rng.integers(1, 4)])
                shape = tuple(self.bounds[label] for label in labels)
                whole = rng.integers(-2, 3, shape) * (rng.random(shape) < 0.7)
                self.arrays[name] = whole * factor
                factors.append((name, labels))
            self.terms += [(1, factors), (-1, factors[::-1])]
        used = sorted({x for _, factors in self.terms for _, labels in factors for x in labels})
        self.target = "".join(x for x in used if rng.random() < 0.6)
        text = " ".join(
            f"{'+' if sign > 0 else '-'} "
            + " * ".join(f"{name}[{','.join(labels)}]" for name, labels in factors)
            for sign, factors in self.terms
        )
        one = int(rng.integers(4))
        if one:  # what is not cancelled
            text += f" + {one} * A0[{','.join(self.terms[0][1][0][1])}]"
            self.terms.append((one, [self.terms[0][1][0]]))
        self.text = f"T[{','.join(self.target)}] = {text.removeprefix('+ ')}"

    def exact(self) -> tuple[Any, Any]:
        """Each entry as a fraction, and the sum of the sizes of what is added for it."""
        shape = tuple(self.bounds[label] for label in self.target)
        value, size = np.full(shape, Fraction(0)), np.full(shape, Fraction(0))
        for sign, factors in self.terms:
            # A term that lacks labels of the target is the same for all of their positions.
            own = sorted({*self.target, *(x for _, labels in factors for x in labels)})
            for place in itertools.product(*(range(self.bounds[label]) for label in own)):
                at = dict(zip(own, place, strict=True))
                product = Fraction(sign)
                for name, labels in factors:
                    product *= Fraction(float(self.arrays[name][tuple(at[x] for x in labels)]))
                entry = tuple(at[label] for label in self.target)
                value[entry] += product
                size[entry] += abs(product)
        return value, size


def check_rounding(seed: int, routes: Routes) -> None:
    case = Rounding(seed)
    value, size = case.exact()
    compiler = next(iter(routes.values()))
    program = ucle.einsum_program(case.text, inputs=case.arrays, database=compiler)
    for way in ("auto", "relational", *some_decompositions(program, seed, 3)):
        planned = program if way == "auto" else program.with_decomposition(way)
        for route, connection in routes.items():
            with planned.execute(connection) as result:
                found = {row[:-1]: row[-1] for row in result["T"].relation.fetchall()}
            for place in itertools.product(*map(range, value.shape)):
                bound = size[place] * Fraction(64, 2**52)
                context = f"{route}, {way}, {place}\n{case.text}"
                if place not in found:
                    assert not value.shape or abs(value[place]) <= bound, context
                else:
                    assert abs(Fraction(found[place]) - value[place]) <= bound, context


@pytest.mark.slow
def test_rounding_decides_rows_near_the_fill_alone(routes: Routes) -> None:
    for seed in range(10):
        check_rounding(seed, routes)


@pytest.mark.parametrize("seed", [pytest.param(n, marks=fuzz) for n in range(MORE)])
def test_more_rounding(seed: int, routes: Routes) -> None:
    check_rounding(1000 + seed, routes)
