"""Every kind of object in memory x what its data may be: right, or a typed error of ucle.

Each test goes through the cases of one kind of object. Where the values are of several types, what
is read is what Python's own numbers say; what an object cannot hold at all is left out.
"""

from __future__ import annotations

import datetime as dt
import decimal
import importlib.util
import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import ucle
from ucle import errors

MANY = 1_500
"""Rows before the one of another type: DuckDB looks at a thousand."""

BIG = 2**53 + 1
DAYS = [dt.date(2020, 2, 29), dt.date(1999, 12, 31), dt.date(1970, 1, 1)]
IDS = [uuid.UUID(int=n) for n in (3, 1, 2)]


@dataclass(frozen=True)
class Case:
    """Coordinates and values, and whether they are a tensor."""

    name: str
    keys: Sequence[Any]
    values: Sequence[Any]
    right: bool = True
    """Or an error, which is a typed one."""


def late(value: Any, first: Any = 1) -> Case:
    """Values of one type, and then one of another."""
    return Case(f"{first!r}, late {value!r}", range(MANY + 1), [first] * MANY + [value])


CASES = [
    Case("whole", [0, 1, 2], [1, 2, 3]),
    Case("unsorted", [2, 0, 1], [1.5, 2.5, 3.5]),
    Case("one row", [4], [2.5]),
    Case("empty", [], []),
    Case("duplicates", [1, 1], [1.0, 2.0], right=False),
    Case("negative key", [-1, 0], [1.0, 2.0], right=False),
    Case("key missing", [0, None], [1.0, 2.0], right=False),
    Case("value missing", [0, 1], [1.0, None], right=False),
    Case("truths", [0, 1], [True, False]),
    Case("2^53 + 1", [0, 1], [BIG, 2**63 - 1]),
    Case("2^63", [0, 1], [2**63, 1], right=False),
    Case("-2^63", [0, 1], [-(2**63), 1]),
    Case("floats", [0, 1], [0.1, 1e308]),
    Case("decimals", [0, 1], [decimal.Decimal("0.5"), decimal.Decimal("2.25")]),
    Case("text is no number", [0, 1], ["1", "2"], right=False),
    Case("float keys", [0.0, 1.5], [1.0, 2.0], right=False),
    Case("truths as keys", [True, False], [1.0, 2.0], right=False),
    Case("text keys", ["b", "", "ä", "a b", "\U0001f600"], [1.0, 2.0, 3.0, 4.0, 5.0]),
    Case("numbers in text", ["1", "01", "1.0"], [1.0, 2.0, 3.0]),
    Case("dates", DAYS, [1.0, 2.0, 3.0]),
    Case("times", [dt.datetime(2020, 1, 1, 3), dt.datetime(2020, 1, 1)], [1.0, 2.0]),
    Case("ids", IDS, [1.0, 2.0, 3.0]),
    late(0.25),
    late(2.0**60),
    late(-3),
    late(None) and Case("late missing", range(MANY + 1), [1.0] * MANY + [None], right=False),
    Case("late text", range(MANY + 1), [1] * MANY + ["2"], right=False),
    Case("2^53 + 1 among floats", [0, 1], [BIG, 0.5], right=False),
    Case("late 2^53 + 1", range(MANY + 1), [0.5] * MANY + [BIG], right=False),
    Case("truths, late 5", range(MANY + 1), [True] * MANY + [5]),
    Case("number among names", [*("abc" * 400)[:2], 7], [1.0, 2.0, 3.0], right=False),
    Case("late duplicate", [*range(MANY), 7], [1.0] * (MANY + 1), right=False),
    Case("names, late one", [*(f"n{n}" for n in range(MANY)), "ä"], [1] * MANY + [0.5]),
]


def read(value: Any, connection: duckdb.DuckDBPyConnection) -> dict[Any, Any]:
    """The entries of a vector that are not 0, by their coordinates."""
    program = ucle.einsum_program("T[i] = A[i]", A=value, database=connection)
    with program.execute() as result:
        keys, values = result["T"].to_arrow().to_pydict().values()
    return dict(zip(keys, values, strict=True))


def numbers(case: Case) -> dict[Any, Any]:
    """The stored entries as Python numbers, which are equal whatever their types are."""
    pairs = zip(case.keys, case.values, strict=True)
    return {_plain(key): _number(value) for key, value in pairs if value}


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, decimal.Decimal) else value


def _plain(key: Any) -> Any:
    """A coordinate as Python compares it."""
    if isinstance(key, uuid.UUID | str):
        return str(key)
    if isinstance(key, dt.date) and not isinstance(key, dt.datetime):
        return dt.datetime.combine(key, dt.time())
    return key


def check(
    make: Callable[[Case], Any],
    connection: duckdb.DuckDBPyConnection,
    *,
    may_refuse: Sequence[str] = (),
    cases: Sequence[Case] = tuple(CASES),
) -> int:
    """Go through the cases that an object can hold: how many these were."""
    done = 0
    for case in cases:
        try:
            value = make(case)
        except Exception:  # no such object
            continue
        done += 1
        try:
            found = {_plain(key): x for key, x in read(value, connection).items()}
        except errors.UcleError as error:
            refused = error
        else:
            refused = None
        if refused is not None:
            assert not case.right or case.name in may_refuse, f"{case.name}: {refused}"
            assert refused.where, case.name
            continue
        assert case.right, f"{case.name}: {dict(list(found.items())[:3])}"
        expected = numbers(case)
        assert found == expected, case.name
        assert all(math.isfinite(x) for x in found.values())
    return done


def test_pandas_frames(native: duckdb.DuckDBPyConnection) -> None:
    """Columns of objects and of pandas' own types."""

    def objects(case: Case) -> pd.DataFrame:
        columns = {"k": list(case.keys), "v": list(case.values)}
        return pd.DataFrame({n: pd.Series(x, dtype=object) for n, x in columns.items()})

    def inferred(case: Case) -> pd.DataFrame:
        if "2^53 + 1" in case.name and 0.5 in case.values:
            raise ValueError("pandas has rounded them itself")
        return pd.DataFrame({"k": list(case.keys), "v": list(case.values)})

    assert check(objects, native, may_refuse=["empty"]) == len(CASES)
    assert check(inferred, native, may_refuse=["empty"]) == len(CASES) - 2


def test_pandas_frames_of_other_types(native: duckdb.DuckDBPyConnection) -> None:
    """Types that pandas has besides NumPy's: right, or an error that names the column."""
    keys = [2, 0, 1]
    columns: list[tuple[Any, Any]] = [
        (pd.array([1, 2, 3], dtype="Int64"), [1, 2, 3]),
        (pd.array([1, None, 3], dtype="Int64"), None),
        (pd.array([True, False, True], dtype="boolean"), [1, 0, 1]),
        (pd.array([1.5, 2.5, 3.5], dtype="float64[pyarrow]"), [1.5, 2.5, 3.5]),
        (pd.arrays.SparseArray([1.0, 7.0, 7.0], fill_value=7.0), [1, 7, 7]),
        (pd.Categorical([3, 1, 3]), [3, 1, 3]),
        (pd.Categorical(["3", "1", "3"]), None),
        (np.array([1, 2, 3], np.longdouble), [1, 2, 3]),
        (np.array([1, 2, 3], np.longdouble) / 3, None),
        (np.array([1 + 2j, 2, 3]), [1 + 2j, 2, 3]),
        (np.array([1, 2, 3], np.complex64), [1, 2, 3]),
        (np.array([1, 2, 3], np.float16), [1, 2, 3]),
        (np.array([1, 2, 3], ">i4"), [1, 2, 3]),
        (np.array([2**63, 2, 3], np.uint64), None),
        (pd.period_range("2020", periods=3), None),
        (pd.interval_range(0, 3), None),
        (pd.date_range("2020", periods=3), None),
        (pd.to_timedelta([1, 2, 3], unit="s"), None),
        (pd.Series([1j, 2, 0.5], dtype=object), [1j, 2, 0.5]),
        (pd.Series([1j, None, 0.5], dtype=object), None),
        (pd.Series([b"a", b"b", b"c"], dtype=object), None),
        (pd.Series([{}, {}, {}], dtype=object), None),
        (pd.Series([1, object(), 2], dtype=object), None),
    ]
    for column, expected in columns:
        frame = pd.DataFrame({"k": keys, "v": column})
        name = str(frame["v"].dtype)
        program: dict[str, Any] = {"A": frame, "database": native}
        if expected is None:
            with pytest.raises(errors.UcleError, match=r"input A, pandas frame") as info:
                ucle.einsum_program("T[i] = A[i]", **program)
            assert "column v" in str(info.value.where), name
            continue
        with ucle.einsum_program("T[i] = A[i]", **program).execute() as result:
            found = result["T"].to_numpy()
        np.testing.assert_array_equal(found[keys], np.array(expected), err_msg=name)
        named = ucle.table(frame.assign(other=pd.interval_range(0, 3)), ["k"], "v")
        assert ucle.einsum_program("s += A[i]", A=named, database=native)  # the other is not read


def test_lists_in_cells_of_pandas(native: duckdb.DuckDBPyConnection) -> None:
    """Finding P3: elements are of the type that all of them have, not the first thousand."""
    first = [[0, 1]] * MANY
    rows: list[tuple[list[Any], Any]] = [
        ([*first, [0.5, 0.25]], [0.5, MANY + 0.25]),
        ([*first, [0, 2**40]], [0, MANY + 2**40]),
        ([np.array([0, 1])] * MANY + [np.array([0.5, 0.25])], [0.5, MANY + 0.25]),
        ([*first, (0.5, 0.25)], [0.5, MANY + 0.25]),
        ([[True, False]] * 3 + [[5, 7]], [8, 7]),
        ([*first, [0, "x"]], None),
        ([*first, [0.5, BIG]], None),
        ([*first, [0, None]], None),
        ([*first, None], None),
        ([*first, [1]], None),
        ([*first, 1], None),
        ([[1, 2], [dt.date(2020, 1, 1), 3]], None),
    ]
    for values, expected in rows:
        frame = pd.DataFrame({"k": range(len(values)), "v": pd.Series(values, dtype=object)})
        given = {"A": frame, "database": native}
        if expected is None:
            with pytest.raises(errors.UcleError, match="A, pandas frame"):
                ucle.einsum_program("T[j] += A[i,j]", **given).execute()
            continue
        with ucle.einsum_program("T[j] += A[i,j]", **given).execute() as result:
            assert result["T"].to_numpy().tolist() == expected
    deep = [[[1, 2], [3, 4]]] * 3 + [[[0.5, 0], [0, 0]]]
    for cells in (deep, [np.array(cell) for cell in deep]):
        frame = pd.DataFrame({"k": range(4), "v": pd.Series(cells, dtype=object)})
        program = ucle.einsum_program("T[j,k] += A[i,j,k]", A=frame, database=native)
        with program.execute() as result:
            assert result["T"].to_numpy().tolist() == [[3.5, 6.0], [9.0, 12.0]]


def test_polars_frames(native: duckdb.DuckDBPyConnection) -> None:
    """Columns that polars makes of Python's values, strictly or not."""

    def frame(case: Case) -> pl.DataFrame:
        if "2^53 + 1" in case.name and 0.5 in case.values:
            raise ValueError("polars has rounded them itself")
        return pl.DataFrame({"k": list(case.keys), "v": list(case.values)}, strict=True)

    assert check(frame, native, may_refuse=["empty", "ids"]) > 20
    categories = pl.DataFrame({"k": pl.Series(["b", "a"], dtype=pl.Categorical), "v": [1.0, 2.0]})
    assert read(categories, native) == {"b": 1.0, "a": 2.0}
    enum = pl.DataFrame({"k": pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])), "v": [1.0, 2.0]})
    assert read(enum, native) == {"b": 1.0, "a": 2.0}
    for values in (
        pl.Series(["1", "2"]),
        pl.Series([object(), object()]),
        pl.Series([dt.timedelta(1), dt.timedelta(2)]),
        pl.Series([{"a": 1}, {"a": 2}]),
    ):
        with pytest.raises(errors.UcleError):
            read(pl.DataFrame({"k": [0, 1], "v": values}), native)


def test_arrow_tables(native: duckdb.DuckDBPyConnection) -> None:
    """Tables, batches, streams, and types that DuckDB has not."""

    def table(case: Case) -> pa.Table:
        return pa.table({"k": list(case.keys), "v": list(case.values)})

    assert check(table, native, may_refuse=["empty"]) > 20
    few = CASES[:4]
    assert check(lambda case: table(case).to_batches()[0], native, cases=few) == 3
    assert check(lambda case: table(case).to_reader(), native, cases=few[:3]) == 3
    for type_ in (
        pa.int8(), pa.uint16(), pa.float16(), pa.float32(), pa.decimal128(5, 2),
        pa.decimal256(60, 3),
        pa.uint64(),
    ):  # fmt: skip
        values = pa.array([decimal.Decimal(3), decimal.Decimal(5)], pa.decimal128(5, 2))
        plain = pa.types.is_decimal(type_)
        column = values.cast(type_) if plain else pa.array([3, 5]).cast(type_, safe=False)
        made = pa.table({"k": [1, 0], "v": column})
        assert read(made, native) == {1: 3, 0: 5}, type_
    other = pa.array([{"a": np.float16(1)}], pa.struct([("a", pa.float16())]))
    named = ucle.table(pa.table({"o": other, "k": [1], "v": [2.5]}), ["k"], "V")
    assert read(named, native) == {1: 2.5}
    digits = pa.array([decimal.Decimal(10) ** 50], pa.decimal256(60, 3))
    halves = pa.array([{"a": np.float16(1)}], pa.struct([("a", pa.float16())]))
    for column in (
        digits,
        halves,
        pa.array(["a"]),
        pa.nulls(1),
        pa.array([b"a"]),
        pa.array([{"a": 1}]),
    ):
        with pytest.raises(errors.InputError, match="A"):
            read(pa.table({"k": [0], "v": column}), native)


def test_series_of_pandas(native: duckdb.DuckDBPyConnection) -> None:
    """An index is what it says, whatever that is; 0, 1, 2, ... are positions."""

    def series(case: Case) -> pd.Series:
        if len(set(map(type, case.keys))) > 1 or not case.keys:
            raise ValueError("no such index")
        return pd.Series(list(case.values), index=pd.Index(list(case.keys)), dtype=object)

    by_value = [case for case in CASES if case.name != "negative key"]
    done = check(series, native, cases=by_value, may_refuse=["2^63"])
    assert done > 20
    assert read(pd.Series([1.5, 2.5], index=[-1, -7]), native) == {-1: 1.5, -7: 2.5}
    levels = pd.MultiIndex.from_tuples([("b", 1), ("a", 1), ("a", 2)], names=["p", "q"])
    program = ucle.einsum_program(
        "T[i] += A[i,j]", A=pd.Series([1.0, 2.0, 4.0], index=levels), database=native
    )
    with program.execute() as result:
        assert result["T"].to_arrow().sort_by("i").to_pydict() == {"i": ["a", "b"], "val": [6, 1]}
    for index in (
        [0.5, 1.5],
        [True, False],
        pd.interval_range(0, 2),
        pd.period_range("2020", periods=2),
    ):
        with pytest.raises(errors.InputError, match="A"):
            read(pd.Series([1.0, 2.0], index=index), native)


def test_arrays_by_position(native: duckdb.DuckDBPyConnection) -> None:
    """Arrays of Arrow, polars, pandas and NumPy at three entry points: equal, or an error."""
    rows: list[tuple[Sequence[Any], Any]] = [
        ([1, 2, 3], [1, 2, 3]),
        ([1.5, 2.5], [1.5, 2.5]),
        ([True, False], [True, False]),
        ([BIG, 1], [BIG, 1]),
        ([2**63, 1], None),
        ([1.0, None], None),
        ([None, None], None),
        (["1", "2"], None),
        ([dt.date(2020, 1, 1)], None),
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        ([[1, 2], [3]], None),
        ([[1, None], [3, 4]], None),
        ([decimal.Decimal("1.5")], [1.5]),
    ]
    makers: list[Callable[[Any], Any]] = [
        pa.array, lambda x: pa.chunked_array([pa.array(x)]), pl.Series, pd.Series,
        lambda x: pd.Series(x, dtype=object), np.array, lambda x: np.array(x, dtype=object),
        lambda x: pa.chunked_array([pa.array(x[:1]), pa.array(x[1:], pa.array(x).type)]),
    ]  # fmt: skip
    for values, expected in rows:
        labels = "ij"[: np.ndim(expected)] if expected is not None else "i"
        for make in makers:
            try:
                value = make(values)
            except Exception:
                continue
            if isinstance(value, np.ndarray) and values[0] == 2**63:
                continue  # floats, as NumPy makes of them
            objects = isinstance(value, np.ndarray) and value.dtype == object
            expected_here = None if objects else expected
            entry_points: list[Callable[[], Any]] = [
                lambda value=value, labels=labels: ucle.einsum(f"{labels}->{labels}", value),
                lambda value=value: ucle.asarray(value).to_numpy(database=native),
                lambda value=value, labels=labels: np.asarray(
                    ucle.einsum_program(
                        f"T[{','.join(labels)}] = A[{','.join(labels)}]", A=value, database=native
                    ).execute()["T"]
                ),
            ]
            for number, entry_point in enumerate(entry_points):
                if expected_here is None:
                    if isinstance(value, pd.Series) and value.dtype == float:
                        assert np.isnan(
                            entry_point()
                        ).any()  # what is missing is NaN to pandas itself
                        continue
                    if number == 0 and values[0] == 2**63:  # unsigned in NumPy
                        assert entry_point().tolist() == values
                        continue
                    with pytest.raises(errors.UcleError):
                        entry_point()
                else:
                    np.testing.assert_array_equal(entry_point(), expected_here)


@pytest.mark.parametrize("library", ["scipy", "sparse"])
def test_sparse_arrays_keep_what_is_not_stored(
    library: str, native: duckdb.DuckDBPyConnection
) -> None:
    """Finding P7: fills of pydata's arrays, in all of its formats, types and entry points."""
    makers: dict[str, Callable[[Any, Any], Any]]
    if library == "scipy":
        makers = {x: lambda a, _, x=x: scipy.sparse.coo_array(a).asformat(x) for x in
                  ("coo", "csr", "csc", "dok", "lil", "dia", "bsr")}  # fmt: skip
        fills: list[Any] = [0]
    else:
        if importlib.util.find_spec("sparse") is None:
            pytest.skip("pydata's sparse is not installed: the stand-ins have its attributes")
        import sparse

        makers = {
            "COO": lambda a, f: sparse.COO(a, fill_value=f),
            "GCXS": lambda a, f: sparse.GCXS(sparse.COO(a, fill_value=f)),
            "DOK": lambda a, f: sparse.DOK.from_coo(sparse.COO(a, fill_value=f)),
        }
        fills = [0, 1, -2.5, np.inf]
    x = np.array([1.0, 10.0, 100.0])
    for title, make in makers.items():
        for fill in fills:
            for dtype in ("float64", "int64") if fill == 1 else ("float64",):
                dense = np.full((2, 3), fill, dtype)
                dense[0, 1], dense[1, 0] = 5, 7
                value = make(dense, np.dtype(dtype).type(fill))
                expected = dense * x
                stated = {"A": value, "x": x, "database": native}
                with ucle.einsum_program("T[i,j] = A[i,j] * x[j]", **stated).execute() as result:
                    np.testing.assert_array_equal(result["T"].to_numpy(), expected, title)
                if title in ("COO", "csr") and fill in (0, 1):
                    np.testing.assert_array_equal(ucle.einsum("ij->j", value), dense.sum(0))
                    lazy = (ucle.asarray(value) + 1).to_numpy(database=native)
                    np.testing.assert_array_equal(lazy, dense + 1)


def test_a_million_rows(native: duckdb.DuckDBPyConnection) -> None:
    """The last row decides the type of a column of objects, and the sum is exact."""
    rows = 10**6
    values = pd.Series([1] * (rows - 1) + [0.25], dtype=object)
    frame = pd.DataFrame({"k": np.arange(rows), "v": values})
    with ucle.einsum_program("s += A[i]", A=frame, database=native).execute() as result:
        assert result["s"].item() == rows - 0.75
