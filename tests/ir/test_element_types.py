"""Element types: what NumPy promotes to, in every decomposition and on both routes."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle import errors
from ucle.foundation.dtypes import DType
from ucle.operators import COMBINES, MAPS, REDUCES
from ucle.testing import Case, Routes, UndefinedError, check_everywhere, evaluate
from ucle.testing.random_inputs import coo_columns, random_array

RNG = np.random.default_rng(3)
SHAPE = (3, 2)
VALUES = {t: random_array(RNG, SHAPE, 0.6, t.value) for t in DType}
OTHERS = {t: random_array(RNG, SHAPE, 0.6, t.value) for t in DType}


def defined(text: str, arrays: dict[str, Any]) -> bool:
    """True if NumPy can evaluate a statement, with finite results."""
    try:
        values = evaluate(f"T{text}", arrays)
    except (UndefinedError, TypeError, ValueError):
        return False
    return all(np.isfinite(value).all() for value in values.values())


def check(statements: list[str], arrays: dict[str, Any], routes: Routes, sample: int = 3) -> None:
    """One program of all the statements that are defined, over a few decompositions."""
    kept = [text for text in statements if defined(text, arrays)]
    inputs = {
        name: ucle.table(pa.table(coo_columns(array, RNG, 0)), bounds=array.shape)
        for name, array in arrays.items()
    }
    text = "\n".join(f"T{n}{statement}" for n, statement in enumerate(kept))
    used = {name: value for name, value in inputs.items() if f"{name}[" in text}
    check_everywhere(Case(text, {n: arrays[n] for n in used}, used, {}), routes, 0, sample)


@pytest.mark.slow
@pytest.mark.parametrize(("left", "right"), list(itertools.product(DType, DType)))
def test_pairs(left: DType, right: DType, routes: Routes) -> None:
    operators = [f"[i,j] = {name}(X[i,j], Y[i,j])" for name in COMBINES]
    sums = [f"[i] = {name}(X[i,j], Y[k,j])" for name in ("mult", "add", "max", "less")]
    check([*operators, *sums], {"X": VALUES[left], "Y": OTHERS[right]}, routes, sample=1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DType)
def test_functions(dtype: DType, routes: Routes) -> None:
    texts = [f"[i,j] = {name}(X[i,j] + Y[i,j])" for name in [*MAPS, *(t.value for t in DType)]]
    ones = np.ones(SHAPE, dtype.value)
    for chunk in (texts[:12], texts[12:24], texts[24:]):
        check(chunk, {"X": VALUES[dtype], "Y": ones}, routes)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DType)
def test_aggregations(dtype: DType, routes: Routes) -> None:
    texts = [f"[i] = {name}[j](X[i,j])" for name in REDUCES]
    texts += [f" = {name}[i,j](X[i,j] * Y[i,j])" for name in REDUCES]
    check(texts, {"X": VALUES[dtype], "Y": OTHERS[dtype]}, routes)


@pytest.mark.sample(1)
@pytest.mark.parametrize("constant", ["2", "0.5", "1.5j"])
@pytest.mark.parametrize("dtype", DType)
def test_constants_are_weak(dtype: DType, constant: str, routes: Routes) -> None:
    texts = [f"[i,j] = {t}" for t in ("X[i,j] {o} {c}", "{c} {o} X[i,j]")]
    statements = [t.format(o=o, c=constant) for t in texts for o in "+-*/^"]
    check(statements, {"X": VALUES[dtype]}, routes)


@pytest.mark.slow
def test_every_type_travels_as_it_is(connection: duckdb.DuckDBPyConnection) -> None:
    """In and out of tables, as numbers and as arrays."""
    for dtype, array in VALUES.items():
        for promoted in ("ij", "i", ""):
            options = {"decomposition": {"T": promoted}, "database": connection}
            with ucle.einsum_program("T[i,j] = X[i,j]", X=array, **options).execute() as result:
                tensor = result["T"]
                assert tensor.dtype == dtype.numpy
                np.testing.assert_array_equal(tensor.to_numpy(), array)
                tensor.to_table("kept", keys=list(promoted), replace=True)
                again = ucle.einsum_program(
                    "U[i,j] = K[i,j]",
                    K=ucle.table("kept", bounds=SHAPE, shape=SHAPE[len(promoted) :] or None),
                    database=connection,
                )
                with again.execute() as back:
                    assert back["U"].dtype == dtype.numpy
                    np.testing.assert_array_equal(back["U"].to_numpy(), array)
    connection.execute("DROP TABLE kept")


OVERFLOWS = [
    ("s += X[i]", np.array([2**62, 2**62]), {}),
    ("s *= X[i]", np.array([2**40, 2**40]), {}),
    ("y[i] = X[i] * X[i]", np.array([2**40, 1]), {}),
    ("y[i] = X[i] - 10", np.array([-(2**63) + 5, 1]), {}),
    ("y[i] = abs(X[i])", np.array([-(2**63), 1]), {}),
    ("y[i] = int64(X[i])", np.array([1e300, 1.0]), {}),
    ("y[i] = int64(X[i])", np.array([np.nan, 1.0]), {}),
]


@pytest.mark.sample(None)
@pytest.mark.parametrize("promoted", ["i", ""])
@pytest.mark.parametrize(("text", "array", "options"), OVERFLOWS)
def test_overflow_is_an_error(
    text: str,
    array: Any,
    options: dict[str, Any],
    promoted: str,
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """Never a wrapped number, and a Python OverflowError as well."""
    program = ucle.einsum_program(
        text, X=array, database=connection, decomposition={text[0]: promoted}, **options
    )
    with pytest.raises(errors.NumberRangeError) as info:
        program.execute()
    assert isinstance(info.value, OverflowError)


@pytest.mark.parametrize(
    "text",
    ["y += X[i]", "y *= X[i]", "y[i] = exp(X[i])", "y[i] = X[i] ^ 2", "y[i] = float32(D[i])"],
)
def test_floats_overflow_to_infinity(text: str, routes: Routes) -> None:
    """Floats overflow as in NumPy; DuckDB's cast from DOUBLE to FLOAT would refuse."""
    arrays = {"X": np.array([3e38, 3e38], np.float32), "D": np.array([1e300, -1e300])}
    used = {name: array for name, array in arrays.items() if f"{name}[" in text}
    case = Case(text, used, dict(used), {})
    assert np.isinf(case.expected()["y"]).all()
    check_everywhere(case, routes, 0)


def test_sums_of_integers_are_exact(routes: Routes) -> None:
    large = np.array([2**53 + 1, 2**60 + 1, -(2**60)])
    case = Case("s += X[i]; T[i] = X[i] + X[i]", {"X": large}, {"X": large}, {})
    check_everywhere(case, routes, 0)


def test_products_of_integers_are_exact(plain: duckdb.DuckDBPyConnection) -> None:
    """Up to 64 bits; a zero decides whatever the other factors are, also one not stored."""
    factors = np.array([[3] * 39, [2**40, 2**40, 0] + [1] * 36, [2**62, 2, -1] + [1] * 36])
    program = ucle.einsum_program("y[i] *= X[i,j]", X=factors, decomposition="relational")
    with program.execute(plain) as result:
        assert result["y"].to_numpy().tolist() == [3**39, 0, -(2**63)]
    power = ucle.einsum_program("y[i] = X[i] ^ 39", X=np.array([3, -1, 0]))
    with power.with_decomposition("relational").execute(plain) as result:
        assert result["y"].to_numpy().tolist() == [3**39, -1, 0]


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("y[i] = sigmoid(X[i])", "complex128"),
        ("y[i] = X[i] < X[i]", "complex64"),
        ("y max= X[i]", "complex128"),
        ("y[i] = X[i] - X[i]", "bool"),
    ],
)
def test_what_numpy_or_mathematics_lacks(text: str, dtype: str) -> None:
    with pytest.raises(errors.ValueTypeError) as info:
        ucle.einsum_program(text, X=np.ones(3, dtype))
    assert dtype in str(info.value)
    assert "line 1" in str(info.value)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", ">f8", "uint64"])
def test_other_types_of_numpy(dtype: str) -> None:
    array = np.arange(3, dtype=dtype)
    with ucle.einsum_program("y[i] = X[i] + X[i]", X=array).execute() as result:
        found = result["y"].to_numpy()
    kind = {"i": "int64", "u": "int64", "f": "float64"}[array.dtype.kind]
    assert found.dtype == ("float32" if dtype == "float16" else kind)
    np.testing.assert_array_equal(found, array + array)


def test_a_type_that_the_caller_names(connection: duckdb.DuckDBPyConnection) -> None:
    edges = pa.table({"i": [0, 1], "j": [1, 0]})
    for dtype in ("bool", "int64", "float32", "complex128"):
        table = ucle.table(edges, ["i", "j"], dtype=dtype)
        with ucle.einsum_program("T[i,j] = A[i,j]", A=table, database=connection).execute() as r:
            np.testing.assert_array_equal(r["T"].to_numpy(), np.eye(2, dtype=dtype)[::-1])
    with pytest.raises(errors.ValueTypeError, match="not an element type"):
        ucle.table(edges, dtype="datetime64")


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([1, 2**63], dtype="uint64"), None),  # which as int64 is a negative number
        (np.array([1.0, 2.5]), "int64"),
        (np.array([1.0, 2.0**63]), "int64"),
        (np.array([0, 2]), "bool"),
        (np.array([1.0, 1e300]), "float32"),
    ],
)
def test_numbers_that_a_type_cannot_hold(array: Any, dtype: str | None) -> None:
    with pytest.raises(errors.ValueTypeError, match=r"found: \S+ at 1"):
        ucle.einsum_program("y[i] = X[i]", X=ucle.table(array, dtype=dtype))


@pytest.mark.parametrize(("fill", "dtype"), [(0.5, "int64"), (2, "bool"), (float("nan"), "int64")])
def test_a_fill_that_the_type_cannot_hold(fill: float, dtype: str) -> None:
    with pytest.raises(errors.ValueTypeError, match="fill"):
        ucle.einsum_program("y[i] = X[i]", X=ucle.table(np.ones(2, dtype), fill=fill))


def test_warnings_are_not_errors() -> None:
    """Division by a fill of 0 is NumPy's business, quietly."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ucle.einsum_program("y[i] = 1 / X[i]", X=np.array([0.0, 2.0])).execute() as result:
            np.testing.assert_array_equal(result["y"].to_numpy(), [np.inf, 0.5])


@pytest.mark.slow
@pytest.mark.parametrize("reduce", ["sum", "prod", "max", "min", "any", "all"])
def test_aggregates_joined_with_other_types(reduce: str, routes: Routes) -> None:
    """⊕ of one type, joined with a tensor of another: ⊕ is of its own type, as written."""
    rng = np.random.default_rng(5)
    numbers = rng.integers(-2, 3, (3, 2))
    types = ("bool", "int64", "float64", "complex128")
    others = {"complex128": np.array([1 - 1j, 2j])}
    compared = 0
    for one, other in itertools.product(types, repeat=2):
        x = numbers.astype(one)
        b = others.get(other, np.array([2, 0])).astype(other)
        if reduce in ("max", "min") and one == "complex128":
            continue  # refused
        aggregated = getattr(np, reduce)(x, axis=0)
        for symbol, ufunc in (("+", np.add), ("*", np.multiply)):
            text = f"Z[k] = {reduce}[i](X[i,k]) {symbol} b[k]"
            for connection in routes.values():
                program = ucle.einsum_program(text, inputs={"X": x, "b": b}, database=connection)
                for way in ("auto", "relational"):
                    chosen = program if way == "auto" else program.with_decomposition(way)
                    with chosen.execute() as result:
                        found = result["Z"].to_numpy()
                    np.testing.assert_array_equal(
                        found, ufunc(aggregated, b), f"{text} {one} {other}"
                    )
                    compared += 1
    assert compared >= 96
