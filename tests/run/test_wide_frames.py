"""Wide tables of results, and frames with an index as inputs: round trips against pandas."""

from __future__ import annotations

import datetime as dt
import sys
from types import ModuleType

import duckdb
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import ucle
from ucle.errors import (
    ArgumentError,
    ArgumentTypeError,
    InputError,
    LabelError,
    MissingPackageError,
    ResultClosedError,
)

NAMES = ["b", "a", "two words", 'with "quotes"', "it's", "select", "Ünicode", "z.y", "10", "val"]
"""Names of columns, in no order."""

TYPES = ["bool", "int16", "int64", "float32", "float64"]
MASKED = {"bool": "boolean", **{name: name.capitalize() for name in TYPES[1:]}}
"""The types of pandas that have missing values."""


def random_index(rng: np.random.Generator, rows: int) -> pd.Index:
    """Different coordinates of one kind, in no order, or a MultiIndex of two kinds."""
    order = rng.permutation(2 * rows)[:rows]
    day = dt.date(2024, 1, 1)
    match rng.integers(0, 6):
        case 0:
            return pd.Index(10 * order, name="id", dtype="int64")
        case 1:
            return pd.Index([f"key {n:02d}" for n in order], name="id", dtype=TEXT)
        case 2:
            return pd.Index([day + dt.timedelta(int(n)) for n in order], name="id", dtype=object)
        case 3:
            days = np.datetime64(day).astype("datetime64[us]") + order.astype("timedelta64[h]")
            return pd.DatetimeIndex(days, name=None)
        case 4:
            return pd.Index([f"key {n:02d}" for n in order], dtype=TEXT)
    who = [f"who {n // 3}" for n in order]
    return pd.MultiIndex.from_arrays([pd.Index(who, dtype=TEXT), order % 3], names=["who", "n"])


TEXT = pd.Index(["text"]).dtype


def random_frame(rng: np.random.Generator) -> pd.DataFrame:
    """A frame of numbers and booleans, whose index and columns are coordinates."""
    rows = int(rng.choice([0, 1, 2, 5, 11], p=[0.1, 0.15, 0.15, 0.3, 0.3]))
    types = rng.permutation(TYPES)[: rng.integers(1, 4)]
    missing = rng.random() < 0.5
    columns = {}
    for name in rng.permutation(NAMES)[: rng.integers(1, 7)]:
        type_ = str(rng.choice(types))
        values = pd.array(rng.integers(-3, 4, rows).astype(type_), dtype=MASKED[type_])
        if missing:
            values[rng.random(rows) < 0.3] = pd.NA
        columns[str(name)] = values if missing else values.to_numpy(type_)
    return pd.DataFrame(columns, random_index(rng, rows))


def filled(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame in the order of its index and in one type, with 0 where a value is missing."""
    plain = {name: str(each).lower().replace("boolean", "bool")
             for name, each in frame.dtypes.items()}  # fmt: skip
    promoted = np.result_type(*plain.values())
    whole = promoted.kind in "iu"
    columns = {
        name: frame[name].fillna(np.zeros(1, type_)[0]).astype(type_)
        for name, type_ in plain.items()
    }
    made = pd.DataFrame(columns, frame.index).astype("int64" if whole else promoted)
    if made.index.names == [None]:
        made = made.rename_axis("index")
    return made.sort_index()


@pytest.mark.sample(5)
@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_frames_come_back(
    seed: int,
    memory: bool,
    connection: duckdb.DuckDBPyConnection,
    request: pytest.FixtureRequest,
) -> None:
    """A frame that is read by its index and columns, and written again, is the frame."""
    if not memory:
        request.getfixturevalue("results_in_tables")
    rng = np.random.default_rng(seed)
    frame = random_frame(rng)
    expected = filled(frame)
    wide = ucle.table(frame, columns_as="feature", nulls="missing")
    labels = list(expected.index.names)
    if len(labels) > 1:  # combinations of coordinates that hold only zeros are left out
        expected = expected[(expected != 0).any(axis=1)]
    axes = ",".join([*labels, "feature"])
    program = ucle.einsum_program(
        f"Y[{axes}] = X[{axes}]",
        X=wide,
        database=connection,
        decomposition=["auto", "relational", {"Y": labels}, {"Y": ["feature"]}][seed % 4],
    )
    with program.execute() as result:
        found = result["Y"].to_pandas(columns="feature")
        assert_frame_equal(found, expected, check_index_type="equiv" if len(expected) else False)
        if len(labels) == 1:
            turned = result["Y"].to_pandas(columns=labels[0]).rename_axis(None)
            assert_frame_equal(
                turned,
                expected.T.rename_axis(None, axis=1),
                check_index_type="equiv" if len(expected) else False,
                check_column_type="equiv" if len(expected) else False,
            )
    lazy = ucle.tensor(wide, database=connection)
    assert lazy.axes == (*labels, "feature")
    assert_frame_equal(
        lazy.to_pandas(columns="feature"),
        expected,
        check_index_type="equiv" if len(expected) else False,
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(8))
def test_arrow_and_polars_as_pandas(seed: int, connection: duckdb.DuckDBPyConnection) -> None:
    frame = random_frame(np.random.default_rng(100 + seed))
    wide = ucle.table(frame, columns_as="feature", nulls="missing")
    X = ucle.tensor(wide, database=connection)
    labels = list(X.axes)[:-1]
    expected = X.to_pandas(columns="feature")
    table = X.to_arrow(columns="feature")
    assert table.column_names == [*labels, *expected.columns]
    assert_frame_equal(
        table.to_pandas().set_index(labels),
        expected,
        check_index_type="equiv" if len(expected) else False,
    )
    assert X.to_polars(columns="feature").equals(X.compute().to_polars(columns="feature"))
    assert X.to_polars(columns="feature").to_arrow().to_pylist() == table.to_pylist()
    if len(expected):
        again = ucle.tensor(
            ucle.table(table, labels, columns_as="feature", coordinates="dictionary")
        )
        assert_frame_equal(again.to_pandas(columns="feature"), expected)


def test_rows_are_in_the_order_of_coordinates(connection: duckdb.DuckDBPyConnection) -> None:
    """The order is that of the positions: sorted keys, and columns as they were in their table."""
    rng = np.random.default_rng(0)
    names = [f"c{n}" for n in rng.permutation(40)]
    values = rng.integers(1, 100, (7, 5, 40))
    frame = pd.DataFrame(
        values.reshape(35, 40),
        pd.MultiIndex.from_product([rng.permutation(7), list("edcba")], names=["n", "who"]),
        names,
    )
    X = ucle.tensor(ucle.table(frame, columns_as="f"), database=connection)
    expected = frame.sort_index()
    assert_frame_equal(X.to_pandas(columns="f"), expected)
    long = expected.stack().rename_axis(["n", "who", "f"])
    place = pd.Index(names, name="f")
    for axis, others in (("who", ["n", "f"]), ("n", ["f", "who"])):
        turned = long.unstack(axis).reorder_levels(["n", "f"] if axis == "who" else ["who", "f"])
        index = pd.MultiIndex.from_product(
            [range(7) if others[0] == "n" else list("abcde"), place],
            names=turned.index.names,
        )
        found = X.transpose(*index.names, axis).to_pandas(columns=axis)
        assert_frame_equal(found, turned.reindex(index).rename_axis(None, axis=1))


@pytest.mark.parametrize("seed", range(6))
def test_all_rows_and_those_with_entries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 2, (3, 2, 2)) * rng.integers(1, 5, (3, 2, 2))
    program = ucle.einsum_program("Y[a,b,c] = X[a,b,c]", X=array, decomposition={"Y": ["b"]})
    with program.execute() as result:
        for n, name in enumerate("abc"):
            others = [x for x in "abc" if x != name]
            index = pd.MultiIndex.from_product([range(array.shape["abc".index(x)])
                                                for x in others], names=others)  # fmt: skip
            values = np.moveaxis(array, n, -1).reshape(len(index), -1)
            every = pd.DataFrame(values, index)
            found = result["Y"].to_pandas(columns=name, rows="all")
            assert_frame_equal(found, every, check_column_type=False)
            some = result["Y"].to_pandas(columns=name)
            assert_frame_equal(some, every[every.any(axis=1)], check_column_type=False)


def test_zeros_are_rows_beside_one_axis() -> None:
    X = ucle.array([[0, 0], [1, 2]], axes=("i", "j"))
    assert X.to_pandas(columns="j").index.tolist() == [0, 1]
    assert X.to_pandas(columns="j", rows="nonfill").index.tolist() == [1]


def test_the_fill_and_the_order_of_words(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("CREATE TYPE size AS ENUM ('small', 'large', 'huge')")
    fresh.execute("CREATE TABLE d (who VARCHAR, size size, km DOUBLE)")
    fresh.execute("INSERT INTO d VALUES ('b', 'large', 1), ('a', 'small', 2), ('b', 'huge', 3)")
    table = ucle.table("d", {"who": "who", "size": "size"}, "km", fill=np.inf)
    found = ucle.tensor(table, database=fresh).to_pandas(columns="size")
    expected = fresh.sql("FROM d").df().astype({"size": str}).pivot(
        index="who", columns="size", values="km"
    )  # fmt: skip
    expected = expected[list(found.columns)].fillna(np.inf).rename_axis(None, axis=1)
    assert_frame_equal(found, expected, check_column_type=False)
    turned = ucle.tensor(table, database=fresh).to_pandas(columns="who")
    assert turned.index.tolist() == list(found.columns)
    np.testing.assert_array_equal(turned.to_numpy(), expected.to_numpy().T)


def test_complex_numbers_and_vectors(connection: duckdb.DuckDBPyConnection) -> None:
    array = np.array([[1 + 2j, 0], [complex(0, np.inf), -1j]])
    X = ucle.array(array, axes=("i", "j"))
    found = X.to_pandas(connection, columns="j")
    assert_frame_equal(found, pd.DataFrame(array, pd.RangeIndex(2, name="i")))
    pairs = X.to_arrow(connection, columns="j")["1"].to_pylist()
    assert pairs == [{"re": 0.0, "im": 0.0}, {"re": 0.0, "im": -1.0}]
    vector = X.sum("i").to_pandas(connection, columns="j")
    assert_frame_equal(vector, pd.DataFrame([array.sum(axis=0)]))
    vector.iloc[0, 0] = 5  # frames may be changed in place
    assert len(ucle.array([0, 0]).to_pandas(columns="i", rows="nonfill")) == 0


def test_columns_that_cannot_be() -> None:
    X = ucle.array([[1, 2], [3, 4]], axes=("row", "column"))
    with pytest.raises(LabelError, match="no axis 'colum'") as raised:
        X.to_pandas(columns="colum")
    assert 'Did you mean "column"' in str(raised.value)
    with pytest.raises(LabelError, match="no axis"):
        X.sum().compute().to_arrow(columns="row")
    with pytest.raises(ArgumentTypeError):
        X.to_polars(columns=["column"])
    with pytest.raises(ArgumentError, match="contradict"):
        X.compute().to_pandas(["row"], columns="column")
    with pytest.raises(ArgumentError, match="every entry"):
        X.to_pandas(columns="column", max_rows=1)
    with pytest.raises(ArgumentError, match=r"too many columns(.|\n)*100,000(.|\n)*100,001"):
        ucle.array(np.zeros(100_001), axes=("i",)).to_pandas(columns="i")
    result = X.compute()
    result.table.drop()
    with pytest.raises(ResultClosedError):
        result.to_pandas(columns="column")


@pytest.mark.parametrize("method", ["to_pandas", "to_polars", "to_arrow"])
def test_two_columns_of_the_same_name(method: str) -> None:
    frame = pd.DataFrame({"id": ["x", "y"], "who": ["id", "z"], "n": [1, 2]})
    X = ucle.tensor(ucle.table(frame, ["id", "who"], "n"), axes=("id", "who"))
    with pytest.raises(LabelError, match="two columns would have the same name, 'id'"):
        getattr(X, method)(columns="who")
    assert len(getattr(X.rename({"id": "i"}), method)(columns="who")) == 2


def test_levels_of_an_index_are_keys() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, pd.Index([7, 3], name="id"))
    found = ucle.tensor(ucle.table(frame, ["id"], columns_as="f"))
    assert found.to_numpy().shape == (8, 2)  # integers in keys that are named are positions
    unnamed = frame.rename_axis(None)
    positions = ucle.tensor(ucle.table(unnamed, ["index"], columns_as="f"))
    np.testing.assert_array_equal(positions.to_numpy(), found.to_numpy())
    counted = unnamed.astype({"a": int})  # whole numbers without a name count the rows
    rows = ucle.tensor(ucle.table(counted, columns_as="f"), axes=("a", "f"))
    assert rows.to_numpy().tolist() == [[0.0], [3.0], [4.0]]
    spaced = frame.rename_axis("the id")
    with pytest.raises(LabelError, match="cannot name an axis"):
        ucle.tensor(ucle.table(spaced, columns_as="f"))
    days = ucle.tensor(ucle.table(frame.set_axis(["x", "y"]), columns_as="f"))
    assert days.axes == ("index", "f")
    for X in (
        ucle.tensor(ucle.table(spaced, columns_as="f"), axes=("i", "f")),
        ucle.tensor(ucle.table(frame, columns_as="f", coordinates={"id": "ids"})),
    ):
        assert X.to_numpy().tolist() == [[2.0, 4.0], [1.0, 3.0]]
    for value, columns in ((["b"], ["b"]), (["b", "a"], ["b", "a"])):
        some = ucle.tensor(ucle.table(frame, None, value, columns_as="f")).to_pandas(columns="f")
        assert_frame_equal(some, frame[columns].sort_index())
    levels = frame.set_axis(pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]), axis=1)
    found = ucle.tensor(ucle.table(levels, columns_as="f")).to_pandas(columns="f")
    assert found.columns.tolist() == ["('a', 1)", "('b', 2)"]


def test_new_data_of_a_frame(connection: duckdb.DuckDBPyConnection) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, pd.Index(["y", "x"], name="id"))
    program = ucle.einsum_program(
        "t[f] += X[i,f]", X=ucle.table(frame, columns_as="f"), database=connection
    )
    with program.execute(inputs={"X": ucle.table(frame.iloc[:1], columns_as="f")}) as result:
        found = result["t"].to_pandas(columns="f")
    assert_frame_equal(found, pd.DataFrame({"a": [1.0], "b": [3.0]}))


def test_an_index_that_cannot_be_read() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0]}, pd.Index(["x", "y"], name="id"))
    with pytest.raises(InputError, match="two columns have the same name"):
        ucle.tensor(ucle.table(frame.rename_axis("A"), columns_as="f"))
    with pytest.raises(InputError, match="columns_as='feature'"):
        ucle.einsum_program("y[i] += X[i,j]", X=frame)
    for wrong in (["x", None], ["x", "x"], [0.5, 1.5]):
        with pytest.raises(InputError):
            ucle.tensor(ucle.table(frame.set_axis(wrong), columns_as="f")).to_numpy()


@pytest.mark.parametrize("seed", range(8))
def test_xarray_comes_back(seed: int, connection: duckdb.DuckDBPyConnection) -> None:
    xr = pytest.importorskip("xarray")
    rng = np.random.default_rng(seed)
    shape = tuple(int(x) for x in rng.integers(1, 5, rng.integers(1, 4)))
    kinds = {
        "day": np.datetime64("2024-01-01", "us") + np.arange(5).astype("timedelta64[D]"),
        "who": np.array([f"who {n}" for n in range(5)], dtype=object),
        "number": 10 * np.arange(5),
        "place": None,
    }
    names = [str(x) for x in rng.permutation(list(kinds))[: len(shape)]]
    coordinates = {
        name: (name, rng.permutation(values[:size]))
        for name, size in zip(names, shape, strict=True)
        if (values := kinds[name]) is not None
    }
    array = xr.DataArray(rng.integers(-5, 6, shape), coordinates, names, "Y")
    axes = ",".join(names)
    program = ucle.einsum_program(f"Y[{axes}] = X[{axes}]", X=array, database=connection)
    with program.execute() as result:
        found = result["Y"].to_xarray()
    xr.testing.assert_identical(found, array.sortby(list(coordinates)))
    total = ucle.tensor(array, axes=names, database=connection).sum(names[0]).to_xarray()
    summed = array.sum(names[0]).rename(None)
    xr.testing.assert_identical(total, summed.sortby([x for x in names[1:] if x in coordinates]))


def test_coordinates_of_xarray() -> None:
    pytest.importorskip("xarray")
    series = pd.Series([1.0, 2.0], pd.Index(["y", "x"], name="who"))
    found = ucle.einsum_program("Y[who,k] = X[who] * w[k]", X=series, w=[1.0, 10.0])
    array = found.execute()["Y"].to_xarray()
    assert array.dims == ("who", "k")
    assert list(array.coords) == ["who"]
    assert array["who"].values.tolist() == ["x", "y"]
    assert array.sel(who="y").values.tolist() == [1.0, 10.0]
    assert ucle.tensor(series, axes=("who",)).to_xarray().name is None


def test_what_xarray_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without xarray, which is not among the packages of the tests."""
    stand_in = ModuleType("xarray")
    vars(stand_in)["DataArray"] = lambda *given: given
    monkeypatch.setitem(sys.modules, "xarray", stand_in)
    series = pd.Series([1.0, 2.0], pd.Index(["y", "x"], name="who"))
    program = ucle.einsum_program("Y[who,k] = X[who] * w[k]", X=series, w=[1.0, 10.0])
    values, coordinates, labels, name = program.execute()["Y"].to_xarray()
    assert (values.tolist(), labels, name) == ([[2.0, 20.0], [1.0, 10.0]], ["who", "k"], "Y")
    assert {x: (of, there.tolist()) for x, (of, there) in coordinates.items()} == {
        "who": ("who", ["x", "y"])
    }


def test_without_xarray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingPackageError, match="xarray is not installed"):
        ucle.array([1, 2]).to_xarray()
