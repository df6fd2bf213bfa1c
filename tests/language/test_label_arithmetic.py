"""Arithmetic with labels: conditions, coordinates, shifted reads, diagonals, repeated sides.

Every program here runs on every decomposition and both routes, against the oracle, over inputs of
all kinds. What the oracle says of each form is checked against NumPy by hand, too.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from random_programs.indices import indexed_case

import ucle
from ucle.errors import BoundError, LabelError, ProgramSyntaxError, UnsupportedError
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case
from ucle.testing.oracle import evaluate
from ucle.testing.random_inputs import make_input, random_array

RNG = np.random.default_rng(19)
ARRAYS: dict[str, Any] = {
    "A": random_array(RNG, (5, 6), 0.6),
    "B": random_array(RNG, (5, 5), 0.4),
    "T": random_array(RNG, (4, 5, 3), 0.5),
    "x": random_array(RNG, (7,), 0.7),
    "y": random_array(RNG, (5,), 0.8),
    "k": random_array(RNG, (3,), 1.0),
    "n": random_array(RNG, (7,), 0.8, "int64"),
    "b": random_array(RNG, (5, 6), 0.5, "bool"),
    "c": random_array(RNG, (5, 6), 0.5, "complex128"),
    "f": random_array(RNG, (5, 6), 0.5, "float32"),
    "s": np.array(1.5),
    "e": np.zeros((0,)),
    "E": np.zeros((0, 4)),
    "o": np.ones((1, 1)),
}
ARRAYS["C"] = ARRAYS["A"].ravel()[:24]
A, B, x, y, k = (ARRAYS[name] for name in "ABxyk")
I5, J5 = np.indices((5, 5))
I6, J6 = np.indices((5, 6))

BY_HAND: dict[str, Callable[[], Any]] = {
    "Z[i] += (i < j) * A[i,j]": lambda: np.triu(A, 1).sum(axis=1),
    "Z[i,j] = (i <= j) * A[i,j]": lambda: np.triu(A),
    "Z[i,j] = A[i,j] * (i == j)": lambda: A * (I6 == J6),
    "Z[i,j] = (i != j) * A[i,j] * 2": lambda: 2 * A * (I6 != J6),
    "Z[i,j] = A[i,j] > 0 and i != j": lambda: (A > 0) & (I6 != J6),
    "Z[i,j] = i < j and A[i,j] and j != 3": lambda: (A != 0) & (I6 < J6) & (J6 != 3),
    "Z[i,j] = (A[i,j] > 0) & (i != j)": lambda: (A > 0) & (I6 != J6),
    "Z[i,j] = A[i,j] * (i != j) and j < 4": lambda: (A * (I6 != J6) != 0) & (J6 < 4),
    "Z[i,j] = (abs(i - j) <= 1) * A[i,j]": lambda: A * (abs(I6 - J6) <= 1),
    "Z[i,j] = (2 * i > j + 1) * A[i,j]": lambda: A * (2 * I6 > J6 + 1),
    "Z[i,j] = (i < 2 or j == 3) * A[i,j]": lambda: A * ((I6 < 2) | (J6 == 3)),
    "Z[i,j] = (not (i < 2) and j < 3.5) * A[i,j]": lambda: A * ((I6 >= 2) & (J6 < 3.5)),
    "Z[i] += (i < j) * y[j]": lambda: np.triu(np.ones((5, 5)), 1) @ y,
    "Z[i] += (i < j) * x[i] * y[j]": lambda: x * (np.triu(np.ones((7, 5)), 1) @ y),
    "Z[i,j] = when(i < j, A[i,j])": lambda: np.triu(A, 1),
    "Z[i,j] = where(i <= j, B[i,j], 7)": lambda: np.where(I5 <= J5, B, 7.0),
    "Z[i] = i * x[i]": lambda: np.arange(7) * x,
    "Z[i,j] = i * j + B[i,j]": lambda: I5 * J5 + B,
    "Z = sum[i](i)": lambda: np.array(10),
    "Z[i,j] = i == j": lambda: np.eye(5, 5, dtype=bool),
    "Z[i] = x[i+1]": lambda: x[1:],
    "Z[i] = x[i+1] - x[i]": lambda: np.diff(x),
    "Z[i] = x[2*i+1]": lambda: x[1::2],
    "Z[i] = x[6-i]": lambda: x[::-1],
    "Z[i] += x[i+w] * k[w]": lambda: np.convolve(x, k[::-1], "valid"),
    "Z[i] = x[~(i-1)] + x[i]": lambda: x + np.concatenate([[0], x[:-1]]),
    "Z[i] = x[i] + x[~(i+1)] + x[~(i-1)]": lambda: np.convolve(x, np.ones(3), "same"),
    "Z[i] = A[i,i+1]": lambda: np.diag(A, 1),
    "Z[j] = A[2,j]": lambda: A[2],
    "Z = A[2,3]": lambda: A[2, 3],
    "D[i,i] = y[i]": lambda: np.diag(y),
    "D[i,j,i] = A[i,j]": lambda: np.einsum("ij,ik->ijk", A, np.eye(5)),
    "D[i,i] += A[i,j]": lambda: np.diag(A.sum(axis=1)),
    "Z[i] = A[i//6,i%6]": A.ravel,
    "Z[a,b] = C[6*a+b]": lambda: A.ravel()[:24].reshape(4, 6),
    "Z[i] = x[i//2]": lambda: np.repeat(x, 2),
    "Z[i] = y[i//3] * k[i%3]": lambda: np.kron(y, k),
    "Z[i] = (i % 2 == 0) * x[i]": lambda: x * (np.arange(7) % 2 == 0),
    "Z[i] = x[i] + i // 3 - i % 3": lambda: x + np.arange(7) // 3 - np.arange(7) % 3,
    "Z[i,j] = y[i]": lambda: np.repeat(y[:, None], 5, axis=1),
    "Z[j] += A[i,k]": lambda: np.full(5, A.sum()),
}
"""Programs, and what NumPy says of them. Of i and j it is stated that they are 5 where needed."""

STATED = ("Z = sum[i](i)", "Z[i,j] = i == j", "Z[i,j] = y[i]", "Z[j] += A[i,k]",
          "Z[i] += (i < j) * y[j]")  # fmt: skip
"""The programs that need that."""

PROGRAMS = [
    *BY_HAND,
    "Z[i,j] = (i < j) * exp(A[i,j])",
    "Z[i,j] = T[(6*i+j)//15,(6*i+j)//3%5,(6*i+j)%3]",
    "Z[i,j] = T[~((6*i+j)//15),(6*i+j)//3%5,(6*i+j)%3] + A[i,j]",
    "Z[i] = x[~((i-4)//2)] + x[i]",
    "Z[i] = x[~((4-i)//2)] + x[~((i-9)%5)] + x[i]",
    "Z[i,j] = A[i,j] * (i // 2 == j // 2)",
    "Z[i,j] = A[i,j] * ((i - j) % 3 < 2 and (i - 3) // 2 != j % 2)",
    "Z[j] += A[i%2,j] * y[i]",
    "Z[i] += (i // 2 < j % 4) * A[i,j]",
    "Z[i] = b[i//6,i%6]",
    "Z[i] = c[i//6,i%6]",
    "Z[i] += n[i//2+w] * k[w]",
    "Z[i] = A[i//6,i%6] + exp(A[i%5,i//5])",
    "Z[i] = A[i//6%5,i%12//2]",
    "Z[j] = sum[i]((i + j) // 2 % 3) + j",
    "Z = sum[i](x[i] * (i // 2))",
    "Z[i] = e[i//2]",
    "Z[i,j] = (i < j) * b[i,j]",
    "Z[i,j] = (i >= j) * c[i,j]",
    "Z[i,j] = (i + j == 4) * f[i,j]",
    "Z[i] = (i != 3) * n[i]",
    "Z[i,j] = unless(i == j, A[i,j])",
    "Z[i,j] = when(abs(i - j) < 2, exp(A[i,j]))",
    "Z[i,j] = (i < j) + A[i,j]",
    "Z[i,j] = (i < j) and b[i,j]",
    "Z[i,j] = (i < j xor j < 3) * A[i,j]",
    "Z[i,j] = (i * j > 4) * A[i,j]",
    "Z[i] max= (i < j) * A[i,j]",
    "Z[i] min= when(i < j, A[i,j])",
    "Z[i] any= (i < j) * b[i,j]",
    "Z[i] = sum[j]((i < j) * A[i,j]) * mean[j]((i > j) * A[i,j])",
    "Z[i,l] += (i < l) * A[i,j] * A[l,j]",
    "Z[i,j] = (i < 0) * A[i,j]",
    "Z[i] = (i < 3) * B[i,i]",
    "Z[i] = when(i > 1, B[i,i]) + y[i]",
    "Z[i,j] = (i >= 0) * A[i,j]",
    "Z[i] = i * n[i]",
    "Z[i] = i + f[i,j]",
    "Z[i] = x[i] / (i + 1)",
    "Z[i] = x[i] / i",
    "Z[i,j] = A[i+1,j] + A[i,j+1] - A[i,j]",
    "Z[i,j] = A[i,j+2]",
    "Z[j,i] = A[i+1,j]",
    "Z[i] = exp(x[~(i-2)]) + x[i]",
    "Z[i,j] += T[i+u,j+v,w] * B[u,v]",
    "Z[i,w] = x[i+w] * k[w]",
    "Z[i] += x[2*i+w] * k[w]",
    "Z[i] += x[i+2*w] * k[w]",
    "Z[i] += x[~(i-w)] * k[w]",
    "Z[i] max= x[i+w] + k[w]",
    "Z[i] = n[i+1] - n[i]",
    "Z[i,j] = c[i,j+1]",
    "Z[i,j] = b[i+2,j]",
    "Y[i] = x[i+1] - x[i]; Z[i] = Y[i+1] - Y[i]",
    "Z[i,j] = B[j,i] + (i < j) * B[i,j]",
    "Z[i,j] = (i < j) * B[j,i] - (i < j) * B[i,j]",
    "D[i,i] max= A[i,j]",
    "D[i,i] = exp(y[i])",
    "D[i,i,i] = y[i] * i",
    "D[i,i] = n[i+1]",
    "D[i,i] *= A[i,j]",
    "Z[i] = s",
    "Z[i,j] = exp(y[j])",
    "Z[i] = e[i+1]",
    "Z[i] = (i < 3) * e[i]",
    "D[i,i] = e[i]",
    "Z[i,j] = E[i,j+1]",
    "Z[i] = o[i+1,0]",
    "Z[i] += o[i,j] * (i == j)",
    "Z[i] = e[~(i-1)] + y[i]",
    "Z[i] += B[i,i+j] * k[j]",
    "Z[i,j] = B[i+j,i] + B[i,j]",
]
NEEDING = {
    "Z[j] = sum[i]((i + j) // 2 % 3) + j",
    "Z[i,j] = T[(6*i+j)//15,(6*i+j)//3%5,(6*i+j)%3]",
    *STATED,
    "Z[i] = s",
    "Z[i,j] = exp(y[j])",
    "Z[i] += x[~(i-w)] * k[w]",
}


def case_of(text: str, *, plain: bool = False) -> Case:
    """The program over inputs of many kinds, drawn by its text."""
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    names = [x for x in ARRAYS if re.search(rf"\b{x}\[", text) or text.endswith(f"= {x}")]
    arrays = {name: ARRAYS[name] for name in names}
    bounds = {"i": 5, "j": 5} if text in NEEDING else {}
    bounds = {"i": 3, "j": 3} if "i+j" in text and "//" not in text else bounds
    bounds = {"a": 4, "b": 6} if "6*a+b" in text else bounds
    bounds = {"i": 60} if "i//6%5" in text else bounds
    if plain:
        return Case(text, arrays, dict(arrays), bounds)
    passed = {name: make_input(rng, name, array) for name, array in arrays.items()}
    inputs = {name: value for name, (value, _) in passed.items()}
    tables = {name: table for name, (_, table) in passed.items() if table is not None}
    return Case(text, arrays, inputs, bounds, None, tables)


@pytest.mark.sample(None)
@pytest.mark.parametrize("text", BY_HAND)
def test_the_oracle_agrees_with_numpy(text: str) -> None:
    case = case_of(text, plain=True)
    (found,) = case.expected().values()
    np.testing.assert_allclose(found, BY_HAND[text]())


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", PROGRAMS)
def test_everywhere(text: str, routes: Routes) -> None:
    """On both routes over NumPy arrays, and on one of them over inputs of other kinds."""
    assert check_everywhere(case_of(text, plain=True), routes, seed=1, sample=3)
    name = ("native", "arrow")[len(text) % 2]
    one = {name: routes[name]}
    assert check_everywhere(case_of(text, plain=False), one, seed=1, sample=2)


SPECIAL = ["Z[i,j] = (i < j) * A[i,j]", "Z[i,j] = when(i < j, A[i,j])", "Z[i] = A[i,i+1]",
           "D[i,i] += A[i,j]", "Z[i] += (i <= j) * A[i,j] * x[j]"]  # fmt: skip


@pytest.mark.parametrize("text", SPECIAL)
def test_not_finite(text: str, routes: Routes) -> None:
    """0 times infinity is NaN, and what is left out by ``when`` is 0."""
    infinite = A.copy()
    infinite[0, 3], infinite[3, 1], infinite[4, 4] = np.inf, -np.inf, np.nan
    arrays = {"A": infinite} | ({"x": y[[0, 1, 2, 3, 4, 0]]} if "x[" in text else {})
    assert check_everywhere(Case(text, arrays, dict(arrays), {}), routes, seed=1, sample=4)


def test_a_condition_is_where_in_sql() -> None:
    """No mask is made of a condition that restricts a tensor which has its labels."""
    program = ucle.einsum_program(
        "Z[i] += (i < j) * A[i,j]", A=A, decomposition="relational", database=":memory:"
    )
    sql = program.to_sql()
    assert "WHERE" in sql
    assert "range(" not in sql
    assert "i < j" in str(program.compiled.program)


def test_windows_make_no_pairs() -> None:
    """A window over key columns has the keys of few places, and no label of the long axis."""
    program = ucle.einsum_program("Z[i] += x[i+w] * k[w]", x=x, k=k, decomposition="relational")
    assert "range(3)" in program.to_sql()
    assert "range(5)" not in program.to_sql()


# ---- Errors ----


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("Z[i] = x[i-1]", "outside of its axis", "~(...)"),
        ("Z[i] = x[i+9]; Y[i] = Z[i] + x[i]", "outside of its axis", "bounds"),
        ("Z[i] += x[i+w] * k[w] * y[i] * n[i]", "contradict", ""),
        ("Z[i] += x[i+w] * k[w] * n[i]", "outside of its axis", "~(...)"),
        ("Z[i] = x[~(8-i)]", "cannot be inferred", "bounds"),
        ("Z[i] += x[i+w]", "cannot be inferred", "bounds"),
        ("Z[i] = x[8-i]", "outside of its axis", "~(...)"),
        ("Z[i] = y[i%9] * x[i]", "outside of its axis", "~(...)"),
        ("Z[i] = x[i%3]", "cannot be inferred", "bounds"),
    ],
)
def test_reads_outside(text: str, message: str, hint: str) -> None:
    arrays = {name: ARRAYS[name] for name in "xkyn" if f"{name}[" in text}
    with pytest.raises(BoundError) as raised:
        ucle.einsum_program(text, inputs=arrays)
    assert message in str(raised.value)
    assert hint in str(raised.value)


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Z[i] = x[i*i]", "an index of x"),
        ("Z[i] = x[i/2]", "an index of x"),
        ("Z[i] = x[i//0]", "an index of x"),
        ("Z[i] = x[i//j]", "an index of x"),
        ("Z[i] = x[i%1.5]", "an index of x"),
        ("Z[i] = x[1.5]", "an index of x"),
        ("Z[i+1] = x[i]", "left side"),
        ("Z = sum[i+1](x[i])", "something other than labels"),
    ],
)
def test_grammar(text: str, message: str) -> None:
    with pytest.raises(ProgramSyntaxError, match=message):
        ucle.einsum_program(text, x=x)


def test_an_output_label_without_a_bound() -> None:
    with pytest.raises(LabelError, match=r"bounds=\{'j'"):
        ucle.einsum_program("Z[i,j] = x[i]", x=x)


def test_coordinates_of_dictionaries_are_no_numbers() -> None:
    table = pa.table({"who": ["ann", "bob", "eve"], "v": [1.0, 2.0, 3.0]})
    for text in ("Z[i] = x[i+1]", "Z[i] = i * x[i]", "Z[i] = (i < 2) * x[i]"):
        with pytest.raises(LabelError, match="no numbers to compute with"):
            ucle.einsum_program(text, x=table)
    with pytest.raises(LabelError, match=re.escape("the axis at i+1 in x[i+1]")):
        ucle.einsum_program("Z[i] = x[i+1]", x=table)
    with ucle.einsum_program("D[i,i] = x[i]", x=table).execute() as result:
        np.testing.assert_array_equal(result["D"].to_numpy(), np.diag([1.0, 2.0, 3.0]))


def test_a_decomposition_that_no_kernel_has() -> None:
    with pytest.raises(UnsupportedError, match="have to be key columns"):
        ucle.einsum_program("Z[i] = x[i+1]", x=x, decomposition={"Z": ["i_1"]}).execute()


def test_scalars_are_read_with_brackets_where_a_label_is_called_alike() -> None:
    with ucle.einsum_program("Z[s] = s[] * x[s]", x=x, s=2.0).execute() as result:
        np.testing.assert_array_equal(result["Z"].to_numpy(), 2 * x)


# ---- Sizes that follow the data ----


def test_sizes_follow_the_data() -> None:
    """A program that ran is right when its table has grown, in views as well."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT i, i * i + 1.0 AS v FROM range(5) r(i)")
        text = "D[i] = t[i+1] - t[i]; V[i] = i * t[i]"
        program = ucle.einsum_program(text, t="t", database=connection)
        program.create_views(connection)
        for rows in (5, 9):
            values = np.arange(rows) ** 2 + 1.0
            with program.execute(connection) as result:
                np.testing.assert_array_equal(result["D"].to_numpy(), np.diff(values))
                np.testing.assert_array_equal(result["V"].to_numpy(), np.arange(rows) * values)
            shown = connection.sql('SELECT val FROM "V" ORDER BY i').fetchnumpy()["val"]
            np.testing.assert_array_equal(shown, (np.arange(rows) * values)[1:])
            connection.execute("INSERT INTO t SELECT i, i * i + 1.0 FROM range(5, 9) r(i)")


def test_oracle_reads_the_fill_outside() -> None:
    found = evaluate("Z[i] = x[~(i+1)] + x[i]", {"x": np.array([1.0, 2.0])}, fills={"x": 9.0})
    np.testing.assert_array_equal(found["Z"], [3.0, 11.0])


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed: int, routes: Routes) -> None:
    assert check_everywhere(indexed_case(seed), routes, seed=seed, sample=3)
