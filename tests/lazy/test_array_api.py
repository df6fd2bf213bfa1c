"""Every public function of tensors against NumPy, and on a table that has no dense form."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from standard_calls import CALLS, EVERY, OURS, WITHOUT_ENTRIES, called

import ucle
from ucle.database import statistics_cache
from ucle.database.session import Session
from ucle.errors import (
    ArgumentTypeError,
    AxisError,
    MemoryLimitError,
    NumberRangeError,
    PositionError,
    UnsupportedError,
)
from ucle.testing import Routes
from ucle.testing.random_inputs import coo_columns

RNG = np.random.default_rng(11)
SHAPE = (5, 6)


def arrays(fill: float) -> SimpleNamespace:
    """Arguments of the calls, of which most entries are worth a fill."""

    def mostly(values: Any, worth: Any) -> Any:
        return np.where(RNG.random(values.shape) < 0.5, worth, values).astype(values.dtype)

    return SimpleNamespace(
        x=mostly(RNG.integers(-9, 9, SHAPE) / 4, fill),
        y=mostly(RNG.integers(-9, 9, SHAPE) / 4 + 0.125, fill),
        n=mostly(RNG.integers(0, 5, SHAPE), int(fill)),
        m=mostly(RNG.integers(0, 5, SHAPE), int(fill)),
        b=mostly(RNG.random(SHAPE) < 0.5, bool(fill)),
        v=mostly(RNG.integers(-9, 9, SHAPE[1]) / 4, fill),
    )


def sparsely(array: Any, fill: float) -> ucle.Tensor:
    worth = array.dtype.type(fill).item()
    rows = pa.table(coo_columns(array, RNG, worth))
    return ucle.tensor(ucle.table(rows, bounds=array.shape, fill=worth))


FILLS = {"dense": 0.25, "sparse": 0.0, "filled": 2.0}
GIVEN = {kind: arrays(fill) for kind, fill in FILLS.items()}
WAYS = [
    ("dense", "native", "auto"),
    ("dense", "arrow", "auto"),
    ("sparse", "native", "relational"),
    ("filled", "arrow", "relational"),
    ("filled", "native", "auto"),
]


@pytest.mark.parametrize("name", EVERY)
def test_numpy_agrees(name: str, routes: Routes) -> None:
    for kind, route, way in WAYS:
        given, fill = GIVEN[kind], FILLS[kind]
        tensors = {
            x: ucle.array(array) if kind == "dense" else sparsely(array, fill)
            for x, array in vars(given).items()
        }
        with np.errstate(all="ignore"):
            expected = np.asarray(called(name, given, np))
        made = called(name, SimpleNamespace(**tensors), ucle)
        assert isinstance(made, ucle.Tensor)
        assert made.shape == expected.shape
        found = made.to_numpy(database=routes[route], decomposition=way)
        assert found.dtype == expected.dtype, (kind, route)
        np.testing.assert_allclose(found, expected, 1e-12, 1e-12, err_msg=f"{kind} {route}")


def test_every_public_function_has_a_call() -> None:
    modules = (
        "aggregations",
        "functions",
        "standard_functions",
        "new_tensors",
        "manipulation",
        "linear_algebra",
    )
    public = {
        name
        for module in modules
        for name, value in inspect.getmembers(import_module(f"ucle.lazy.{module}"))
        if inspect.isfunction(value) and value.__module__ == f"ucle.lazy.{module}"
        if not name.startswith("_")
    }
    assert public <= set(ucle.__all__)
    assert public - WITHOUT_ENTRIES == set(EVERY)


# ---- Where no dense form exists ----

N = 1_000_000

DENSE = frozenset(
    [
        "softmax",
        "log_softmax",
        "layer_norm",
        "standardize",
        "cumsum",
        "cumprod",
        "cummax",
        "cummin",
        "cumulative_sum",
        "cumulative_prod",
    ]
)
"""Functions with a value of their own at each of 10^12 positions, which are refused."""
LIMITED = frozenset({"logsumexp"})
"""Functions of few entries that no plan finds without a dense intermediate."""


@pytest.fixture(scope="module")
def huge() -> Iterator[SimpleNamespace]:
    """Tables of 10^6 entries, and of one or a thousand, along axes of 10^6 positions."""
    with ucle.connect(threads=2) as connection:
        connection.execute(f"""
            CREATE TABLE x AS
            SELECT range AS i, range * 7919 % {N} AS j, ((range % 9) - 4) / 2.0::DOUBLE AS x,
                range % 5 AS n, range % 3 AS m, range % 2 = 0 AS b
            FROM range({N})
        """).fetchall()
        connection.execute(f"""
            CREATE TABLE y AS
            SELECT range AS i, (range * 7919 + range % 2) % {N} AS j,
                ((range % 7) - 3) / 2.0::DOUBLE AS y
            FROM range({N})
        """).fetchall()
        connection.execute("""
            CREATE TABLE v AS SELECT range * 1000 AS i, 1.5::DOUBLE AS v FROM range(1000)
        """).fetchall()

        def tensor(table: str, value: str) -> ucle.Tensor:
            spec = ucle.table(table, ["i", "j"], value, bounds=[N, N])
            return ucle.tensor(spec, name=value, database=connection)

        yield SimpleNamespace(
            x=tensor("x", "x"),
            y=tensor("y", "y"),
            n=tensor("x", "n"),
            m=tensor("x", "m"),
            b=tensor("x", "b"),
            v=ucle.tensor(ucle.table("v", ["i"], "v", bounds=[N]), database=connection),
        )


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows fetched from the database: facts about tables, and tensors."""
    rows = [0, 0]
    fetch, table, reader = Session.fetch, Session.table, Session.reader

    def counted_fetch(self: Session, *arguments: Any, **options: Any) -> Any:
        found = fetch(self, *arguments, **options)
        rows[0] += len(found)
        return found

    def counted_table(self: Session, sql: str) -> Any:
        found = table(self, sql)
        rows[1] += len(found)
        return found

    def counted_reader(self: Session, sql: str, size: int) -> Any:
        rows[1] += size
        return reader(self, sql, size)

    monkeypatch.setattr(statistics_cache, "POSITIONS_SHARE", 0)  # statistics may read positions
    monkeypatch.setattr(Session, "fetch", counted_fetch)
    monkeypatch.setattr(Session, "table", counted_table)
    monkeypatch.setattr(Session, "reader", counted_reader)
    return rows


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_collected(name: str, huge: SimpleNamespace, fetched: list[int]) -> None:
    """No row of a tensor is fetched before there is a result, which is one number."""
    made = called(name, huge, ucle)
    assert fetched == [0, 0], "something was computed while the expression was built"
    whole = made.sum()
    if name in DENSE | LIMITED:
        with pytest.raises(MemoryLimitError, match="no decomposition"):
            whole.compute()
        assert fetched[1] == 0
        return
    result = whole.compute()
    assert fetched[1] == 0
    assert fetched[0] < 1000
    value = result.to_numpy().item()
    assert fetched[1] <= 1
    if name in UNARY_OF_X:
        entries = SimpleNamespace(x=((np.arange(N) % 9) - 4) / 2)
        nothing = SimpleNamespace(x=np.zeros(1))
        with np.errstate(all="ignore"):
            stored, fill = called(name, entries, np).sum(), called(name, nothing, np).item()
        expected = stored + fill * (float(N) * N - N) if fill else stored
        np.testing.assert_allclose(value, expected, 1e-9)


UNARY_OF_X = frozenset(
    [
        "abs",
        "asinh",
        "atan",
        "acos",
        "asin",
        "atanh",
        "ceil",
        "cos",
        "cosh",
        "exp",
        "expm1",
        "floor",
        "isfinite",
        "isinf",
        "isnan",
        "log",
        "log2",
        "log10",
        "logical_not",
        "negative",
        "positive",
        "round",
        "sign",
        "signbit",
        "sin",
        "sinh",
        "square",
        "tan",
        "tanh",
        "trunc",
        "reciprocal",
        "relu",
        "sigmoid",
        "softplus",
        "silu",
        "gelu",
        "erf",
    ]
)


def test_dense_results_are_refused_by_name(huge: SimpleNamespace) -> None:
    with pytest.raises(MemoryLimitError, match="does not fit into memory"):
        ucle.cos(huge.x).to_numpy()


# ---- What is not like in NumPy, or not of entries ----


def test_types() -> None:
    x = ucle.array(np.ones(2, "float32"))
    assert ucle.result_type(x, 1.0) == "float32"
    assert ucle.result_type(x, ucle.int64) == "float64"
    assert ucle.result_type(1, 2.5) == "float64"
    assert ucle.can_cast(x, ucle.float64)
    assert not ucle.can_cast(ucle.complex64, x)
    assert (ucle.finfo(x).bits, ucle.iinfo(ucle.int64).max) == (32, 2**63 - 1)
    assert ucle.isdtype(ucle.bool, "bool")
    info = ucle.__array_namespace_info__()
    assert set(info.dtypes()) == {x for x in ucle.__all__ if x in info.dtypes()}
    assert info.default_dtypes()["integral"] == ucle.arange(3).dtype
    assert info.devices() == [info.default_device()] == [x.device]
    assert ucle.arange(3, device=x.device).device == x.device
    assert not any(info.capabilities().values())
    with pytest.raises(ArgumentTypeError, match="only the data of a table"):
        ucle.result_type(ucle.tensor("edges", axes=("a", "b")))


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    "arguments",
    [(5,), (1,), (0,), (2, 9, 3), (0.0, 1.0, 0.1), (5, 1, -1), (1.5,), (0, 1, 0.3), (3, -2)],
)
def test_ranges(arguments: tuple[Any, ...]) -> None:
    expected = np.arange(*arguments)
    found = ucle.arange(*arguments).to_numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("ends", [(0, 1, 5), (0, 1, 1), (0, 1, 0), (2, -3, 7), (0, 1j, 4)])
def test_equal_distances(ends: tuple[Any, ...]) -> None:
    for options in ({}, {"endpoint": False}, {"dtype": "float32"}):
        if isinstance(ends[1], complex) and "dtype" in options:
            continue
        expected = np.linspace(*ends, **options)
        found = ucle.linspace(*ends, **options).to_numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        ucle.linspace(0, 10, 4, dtype=int).to_numpy(), np.linspace(0, 10, 4, dtype=int)
    )


@pytest.mark.parametrize("shape", [(), 3, (1, 1), (0, 2), (2, 1, 3)])
@pytest.mark.parametrize("value", [2, 2.5, True, 1 - 2j, np.nan])
def test_one_number_everywhere(shape: Any, value: Any) -> None:
    expected = np.full(shape, value)
    for made in (ucle.full(shape, value), ucle.full_like(ucle.array(expected), value)):
        found = made.to_numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    for name in ("empty", "zeros"):
        found = getattr(ucle, name)(shape, dtype="float32").to_numpy()
        np.testing.assert_array_equal(found, np.zeros(shape, "float32"))
    square = np.ones((2, 3, 3))
    np.testing.assert_array_equal(ucle.eye_like(square).to_numpy(), square * np.eye(3))
    np.testing.assert_array_equal(ucle.empty_like(expected).to_numpy(), np.zeros_like(expected))


def test_like_a_table_of_unknown_size(connection: duckdb.DuckDBPyConnection) -> None:
    """The axes are those of the data, whatever they turn out to be."""
    rows = pa.table({"i": [0, 2], "v": [1.5, np.nan]})
    x = ucle.tensor(ucle.table(rows, ["i"], "v"))
    found = ucle.full_like(x, 3, dtype="int64").to_numpy(database=connection)
    np.testing.assert_array_equal(found, [3, 3, 3])
    assert found.dtype == "int64"


def test_repetitions_and_axes() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    t, one = ucle.array(x), ucle.array(x[:, :1, :1])
    pairs = [
        (ucle.repeat(t, 3), np.repeat(x, 3)),
        (ucle.repeat(t, [1, 0, 3], axis=1), np.repeat(x, [1, 0, 3], axis=1)),
        (ucle.repeat(t, 0, axis=1), np.repeat(x, 0, axis=1)),
        (ucle.repeat(one, 3, axis=1), np.repeat(x[:, :1, :1], 3, axis=1)),
        (ucle.tile(t, (2, 1, 1, 2)), np.tile(x, (2, 1, 1, 2))),
        (ucle.tile(one, (2, 0)), np.tile(x[:, :1, :1], (2, 0))),
        (ucle.moveaxis(t, (0, 1), (-1, 0)), np.moveaxis(x, (0, 1), (-1, 0))),
        (ucle.flip(t), np.flip(x)),
        (ucle.take_along_axis(one, np.zeros((2, 1, 3), int)), x[:, :1, [0, 0, 0]]),
        (ucle.cumulative_prod(t + 1, axis=2, include_initial=True),
         np.cumulative_prod(x + 1, axis=2, include_initial=True)),
    ]  # fmt: skip
    for found, expected in pairs:
        np.testing.assert_array_equal(found.to_numpy(), expected)
    named = ucle.array(x, axes=("a", "b", "c"))
    assert ucle.moveaxis(named, "a", -1).axes == ("b", "c", "a")
    assert ucle.flip(named, axis="b").axes == ("a", "b", "c")


def test_functions_of_numpy_are_ours() -> None:
    x = np.arange(12.0).reshape(3, 4)
    for function in (
        lambda x: np.dot(x, x.T),
        lambda x: np.dot(x[0], x[1]),
        lambda x: np.dot(2, x),
        np.trace,
        np.linalg.norm,
        lambda x: np.linalg.norm(x, np.inf),
        lambda x: np.linalg.norm(x, -1),
        lambda x: np.linalg.norm(x, 3, axis=1, keepdims=True),
        lambda x: np.linalg.norm(x, 0, axis=0),
        lambda x: np.linalg.norm(x, "fro"),
        lambda x: np.linalg.norm(x, 2),
        lambda x: np.kron(x, x),
        lambda x: np.diagonal(x, 1),
        lambda x: np.linalg.diagonal(x[None] + np.ones((2, 1, 1))),
        lambda x: np.linalg.trace(x[None] + np.ones((2, 1, 1)), offset=1),
        lambda x: np.trace(x[None] + np.ones((2, 1, 1))),
        np.zeros_like,
        lambda x: np.full_like(x, 3, dtype=int),
        np.arctan,
        lambda x: np.mod(x, 5),
        lambda x: np.floor_divide(x, -5),
        lambda x: 7 // (x + 1) + x % 2,
    ):
        made, expected = function(ucle.array(x)), function(x)
        assert isinstance(made, ucle.Tensor)
        found = made.to_numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected)


def test_other_libraries_read_what_is_computed() -> None:
    x = np.arange(6.0).reshape(2, 3)
    result = (ucle.array(x) * 2).compute()
    np.testing.assert_array_equal(np.from_dlpack(result), x * 2)
    assert result.__dlpack_device__() == x.__dlpack_device__()
    np.testing.assert_array_equal(np.from_dlpack(ucle.array(x) + 1), x + 1)
    np.testing.assert_array_equal(ucle.from_dlpack(x).to_numpy(), x)


def test_bits_of_integers(routes: Routes) -> None:
    i, j = np.array([5, -3, 0, -(2**63)]), np.array([3, 70, 2, 1])
    x, y = ucle.array(i), ucle.array(j)
    pairs = [
        (x & y, i & j), (x | 6, i | 6), (x ^ y, i ^ j), (~x, ~i), (x >> y, i >> j),
        (y << 3, j << 3), (x & (y > 2), i & (j > 2)),
    ]  # fmt: skip
    for connection in routes.values():
        for found, expected in pairs:
            np.testing.assert_array_equal(found.to_numpy(database=connection), expected)
        for lost in (x << 1, y << 62, x // -1):
            for way in ("auto", "relational"):
                with pytest.raises(NumberRangeError):
                    lost.to_numpy(database=connection, decomposition=way)


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda x: ucle.repeat(x, x), UnsupportedError),
        (lambda x: ucle.repeat(x, -1), ArgumentTypeError),
        (lambda x: ucle.tile(x, -1), ArgumentTypeError),
        (lambda x: ucle.moveaxis(x, 0, 2), AxisError),
        (ucle.cumulative_sum, AxisError),
        (lambda x: ucle.take_along_axis(x, [0, 1]), AxisError),
        (lambda x: ucle.take_along_axis(x, [[5]]).to_numpy(), PositionError),
        (ucle.meshgrid, ArgumentTypeError),
        (lambda x: ucle.arange(0, 1, 0), ArgumentTypeError),
        (lambda x: ucle.asarray(x, copy=True), UnsupportedError),
        (lambda x: ucle.full(3, "a"), ArgumentTypeError),
        (lambda x: ucle.ones(3, device="gpu"), UnsupportedError),
        (lambda x: ucle.zeros_like(x, device="gpu"), UnsupportedError),
    ],
)
def test_errors(call: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call(ucle.array([[1, 2], [3, 4]]))


def test_there_are_calls() -> None:
    assert len(CALLS) > 100
    assert not CALLS.keys() & OURS.keys()
