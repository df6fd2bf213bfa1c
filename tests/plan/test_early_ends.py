"""``any`` and ``all`` that end at the entry that decides them: where, and what they give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ucle
from ucle.errors import UcleError
from ucle.testing.check_matrix import Routes

SIZE = 700

TEXTS = {
    "y = any[i,j](A[i,j] > 2)": lambda A: (A > 2).any(),
    "y = all[i,j](A[i,j] > 0)": lambda A: (A > 0).all(),
    "y = all[i,j](A[i,j] < 3)": lambda A: (A < 3).all(),
    "y = any[i,j](A[i,j] < 1)": lambda A: (A < 1).any(),
    "y = any[i,j](A[i,j] == 0)": lambda A: (A == 0).any(),
    "y = all[i](any[j](A[i,j] > 0))": lambda A: (A > 0).any(axis=1).all(),
    "y = any[i](all[j](A[i,j] == 0))": lambda A: (A == 0).all(axis=1).any(),
    "y = any[i](A[i,i] > 0)": lambda A: (np.diag(A) > 0).any(),
    "y = max[i,j](A[i,j] > 2)": lambda A: (A > 2).max(),
    "y min= A[i,j] < 3": lambda A: (A < 3).min(),
    "y = max[i,j](A[i,j])": lambda A: A.max(),
}


def _matrices() -> dict[str, Any]:
    """Sparse matrices: few entries, none, one at either end, and an entry everywhere."""
    rng = np.random.default_rng(0)
    few = sp.random_array((SIZE, SIZE), density=0.004, rng=rng, data_sampler=rng.standard_normal)
    first, last = np.zeros((2, SIZE, SIZE))
    first[0, 0], last[-1, -1] = 5, 5
    full = rng.integers(1, 3, (SIZE, SIZE)).astype(float)
    broken = full.copy()
    broken[-1, -1] = -1
    return {
        "few": few.toarray(),
        "none": np.zeros((SIZE, SIZE)),
        "first": first,
        "last": last,
        "full": full,
        "broken": broken,
    }


MATRICES = _matrices()


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_results_are_those_of_numpy(name: str, decomposition: str, routes: Routes) -> None:
    A = MATRICES[name]
    for text, expected in TEXTS.items():
        for kind in (sp.coo_array(A), A):
            if decomposition == "relational" and kind is A and name in ("full", "broken"):
                continue  # half a million rows from memory take long
            program = ucle.einsum_program(
                text, database=routes["native"], A=kind, decomposition=decomposition
            )
            for route, connection in routes.items():
                with program.execute(connection) as result:
                    assert result["y"].to_numpy() == expected(A), f"{route}: {text}"


def test_a_scalar_of_tuples_has_a_limit(fresh: Any) -> None:
    fresh.execute("CREATE TABLE A AS SELECT range::INTEGER AS i, range - 3.0 AS v FROM range(9)")
    source = ucle.table("A", ["i"], "v", bounds=(9,))
    for text, words in (
        ("y = any[i](A[i] > 2)", "LIMIT 1"),
        ("y = all[i](A[i] < 9)", "LIMIT 1"),
        ("y = all[i](A[i] > -4)", "LIMIT 1"),
        ("y = all[i](A[i] != 0)", "COUNT(*) = 9"),
        ("y = max[i](A[i] > 2)", "LIMIT 1"),
        ("y min= A[i] < 9", "LIMIT 1"),
    ):
        program = ucle.einsum_program(text, database=fresh, A=source, decomposition="relational")
        assert words in program.to_sql(), text


def test_groups_have_no_limit(fresh: Any) -> None:
    A = sp.coo_array(MATRICES["few"])
    text = "y[i] = any[j](A[i,j] > 0)"
    program = ucle.einsum_program(text, database=fresh, A=A, decomposition="relational")
    assert "LIMIT" not in program.to_sql()


def test_no_row_gives_the_value_of_what_is_not_stored(fresh: Any) -> None:
    fresh.execute("CREATE TABLE A (i INTEGER, v DOUBLE)")
    source = ucle.table("A", ["i"], "v", bounds=(4,))
    for text, expected in (
        ("y = any[i](A[i] > 0)", False),
        ("y = any[i](A[i] < 1)", True),
        ("y = all[i](A[i] > 0)", False),
        ("y = all[i](A[i] < 1)", True),
    ):
        program = ucle.einsum_program(text, database=fresh, A=source, decomposition="relational")
        with program.execute(fresh) as result:
            assert result["y"].to_numpy() == expected, text


@pytest.mark.parametrize("dtype", [bool, np.float64])
def test_entries_are_not_looked_for_in_a_long_array(dtype: type, routes: Routes) -> None:
    """Its few entries would be cheap rows, but finding them costs more than the whole array."""
    b = np.zeros(3_000_000, dtype)
    b[-2:] = 1
    for text, expected in (("y any= b[i] > 0", True), ("y all= b[i] > 0", False)):
        program = ucle.einsum_program(text, database=routes["native"], b=b)
        assert not program.compiled.decomposed.decompositions["y"].promoted
        for connection in routes.values():
            with program.execute(connection) as result:
                assert result["y"].to_numpy() == expected


@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_no_overflow_is_hidden(decomposition: str, routes: Routes) -> None:
    """The first entry decides, and the square of the last one is no number of 64 bits."""
    x = np.ones(5000, dtype=np.int64)
    x[-1] = 2**40
    text = "y = any[i](x[i] * x[i] > 0)"
    program = ucle.einsum_program(text, database=routes["native"], x=x, decomposition=decomposition)
    for connection in routes.values():
        with pytest.raises(UcleError, match="64 bits"):
            program.execute(connection)


@pytest.mark.parametrize("place", [0, 1, 2047, 2048, 2049, 9999])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_chains_end_at_any_place(place: int, dtype: str, routes: Routes) -> None:
    x = np.zeros(10_000, dtype=dtype)
    x[place] = 1
    texts = {
        "y = any[i](x[i] != 0 and z[i])": True,
        "y = all[i](x[i] == 0 or not z[i])": False,
        "y = any[i](x[i] > 1 and z[i])": False,
        "y = all[i](x[i] <= 1 or not z[i])": True,
    }
    for text, expected in texts.items():
        program = ucle.einsum_program(
            text, database=routes["native"], x=x, z=np.ones(x.shape, dtype=bool)
        )
        for connection in routes.values():
            with program.execute(connection) as result:
                assert result["y"].to_numpy() == expected, text
