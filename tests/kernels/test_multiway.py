"""The kernels that sum products of many matrices label by label."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse as sp
from kernel_routes import Route
from multiway_meanings import dense, multiway

from ucle.udf_kernels import ELEMENT_TYPES, Csr, typed_name

TAGS = ("f64", "f32", "i64", "bool")

PROGRAMS = {
    "triangle": "3 -1 0 2 0 1 -1 0 0 1 2 0 0 0 0 0 1 1",
    "clique": "4 -1 1 1 3 0 1 -1 0 1 1 1 2 0 0 0 2 3 1 0 0 0 0 1 1 2 2",
    "path": "4 -1 0 3 0 1 -1 0 0 1 2 -1 0 1 1 2 3 -1 0 0 0 0 1 1 2 2",
    "star": "4 0 0 3 0 1 -1 0 0 1 2 -1 0 1 1 1 3 -1 0 0 0 0 1 1 1 2",
    "square": "4 2 0 4 0 1 -1 0 0 0 3 -1 0 0 1 2 -1 0 1 1 2 3 1 0 0 0 0 1 2 2 3",
    "column": "3 1 1 1 2 0 1 -1 0 0 1 2 0 0 0 0 0 1 1",
}
"""Programs over a square matrix, operand 0, and a vector, operand 1."""


def operands(tag: str, size: int, density: float, seed: int) -> list[Any]:
    """A compressed matrix and a vector."""
    rng, dtype = np.random.default_rng(seed), ELEMENT_TYPES[tag].dtype
    stored = sp.random_array((size, size), density=density, rng=rng, format="csr")
    values = rng.integers(1, 4, stored.nnz).astype(dtype)
    matrix = Csr(size, size, stored.indptr.astype("u4"), stored.indices.astype("u4"), values)
    return [matrix, rng.integers(0, 3, size).astype(dtype)]


def call(connection: duckdb.DuckDBPyConnection, tag: str, program: str, given: list[Any]) -> Any:
    """The result of a program, with labels if it has them."""
    number = program.split()[1:2] in ([], ["-1"])
    name = typed_name("multiway_sca" if number else "multiway", tag)
    blobs = [x.to_bytes() if isinstance(x, Csr) else x.tobytes() for x in given]
    places = ", ".join("?::BLOB" for _ in blobs)
    return connection.execute(f"SELECT {name}(?, {places})", [program, *blobs]).fetchone()[0]  # type: ignore[index]


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("pattern", PROGRAMS)
def test_sums_are_those_of_numpy(pattern: str, tag: str, route: Route) -> None:
    program = PROGRAMS[pattern]
    for size, density in ((1, 1.0), (7, 0.5), (20, 0.2), (9, 0.0)):
        given = operands(tag, size, density, size)
        expected = multiway(tag, program, *given)
        found = call(route.connection, tag, program, given)
        if program.split()[1] == "0":
            found = np.frombuffer(found, ELEMENT_TYPES[tag].dtype)
        elif program.split()[1] != "-1":
            x = Csr.from_bytes(found, ELEMENT_TYPES[tag].dtype)
            assert not (x.values == 0).any()
            found = dense(x)
        np.testing.assert_array_equal(
            np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
        )


def test_integers_overflow_only_in_the_result(route: Route) -> None:
    big = Csr(1, 1, np.array([0, 1], "u4"), np.array([0], "u4"), np.array([1 << 21], "i8"))
    with pytest.raises(duckdb.Error, match="overflow"):
        call(route.connection, "i64", PROGRAMS["triangle"], [big])
    signs = np.array([1 << 21, -(1 << 21)], "i8")
    both = Csr(1, 2, np.array([0, 2], "u4"), np.array([0, 1], "u4"), signs)
    back = Csr(2, 1, np.array([0, 1, 2], "u4"), np.zeros(2, "u4"), np.array([1 << 42] * 2, "i8"))
    program = "3 -1 0 2 0 1 -1 0 0 1 2 -1 1 0 0 0 1 1"
    assert call(route.connection, "i64", program, [both, back]) == 0


@pytest.mark.parametrize("operand", [0, 1])
def test_a_missing_operand_makes_null(operand: int, route: Route) -> None:
    given = [
        x.to_bytes() if isinstance(x, Csr) else x.tobytes() for x in operands("f64", 4, 0.5, 0)
    ]
    given[operand] = None
    query = "SELECT multiway_sca(?, ?::BLOB, ?::BLOB)"
    found = route.connection.execute(query, [PROGRAMS["clique"], *given]).fetchone()
    assert found == (None,)


def test_wrong_programs_are_refused(route: Route) -> None:
    given = operands("f64", 5, 0.5, 1)
    wrong = {
        "": "the number of labels",
        "0 -1 0 0": "the number of labels",
        "3 -1 0 2 0 1 -1 7 0 1 2 0 0 0 0 0 1 1": "the number of a matrix",
        "3 -1 0 2 0 1 -1 1 0 1 2 0 0 0 0 0 1 1": "compressed tensor",
        "3 -1 0 2 0 1 5 0 0 1 2 0 0 0 0 0 1 1": "a list before",
        "2 -1 0 1 1 1 -1 0 0 0 0": "a list of the outermost label",
        f"{PROGRAMS['triangle']} 1": "the end",
    }
    for program, message in wrong.items():
        with pytest.raises(duckdb.Error, match=message):
            call(route.connection, "f64", program, given)


@pytest.mark.parametrize("seed", range(3))
def test_mangled_programs_do_no_harm(seed: int, route: Route) -> None:
    rng = np.random.default_rng(seed)
    given = operands("f64", 5, 0.5, seed)
    for _ in range(150):
        words = rng.choice(list(PROGRAMS.values())).split()
        for _ in range(int(rng.integers(1, 3))):
            words[int(rng.integers(len(words)))] = str(rng.integers(-1, 5))
        number = words[1] == "-1"
        try:
            found = call(route.connection, "f64", " ".join(words), given)
        except duckdb.Error:
            continue
        assert isinstance(found, float if number else bytes)
