"""Look-ups in sorted tables against NumPy's, and functions whose results depend on data in size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.errors import ArgumentTypeError, AxisError, NameResolutionError, UnsupportedError
from ucle.lazy import searching
from ucle.testing import Routes
from ucle.testing.random_inputs import coo_columns, random_array

WAYS = (("native", "auto"), ("arrow", "auto"), ("native", "relational"))
DTYPES = ("float64", "float32", "int64", "bool")


def drawn(seed: int, dtype: str) -> tuple[Any, Any]:
    """A sorted table with equal entries, and entries that are in it, between, before and after."""
    rng = np.random.default_rng(seed)
    table = np.sort(random_array(rng, (7,), 0.8, dtype))
    entries = random_array(rng, (3, 4), 0.7, dtype)
    entries.flat[:5] = rng.choice(table, 5)
    if dtype.startswith("float"):
        table[-2:] = np.nan
        entries[2, :3] = np.nan, np.inf, -np.inf
    return table, entries


@pytest.mark.parametrize("together", [False, True], ids=["compared", "sorted"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_searchsorted(
    dtype: str, side: Any, together: bool, routes: Routes, monkeypatch: pytest.MonkeyPatch
) -> None:
    if together:
        monkeypatch.setattr(searching, "MOST_COMPARED", 0)
    for seed, (route, way) in enumerate(WAYS):
        table, entries = drawn(seed, dtype)
        expected = np.searchsorted(table, entries, side)
        made = ucle.searchsorted(ucle.array(table), ucle.array(entries), side=side)
        assert made.shape == entries.shape
        found = made.to_numpy(database=routes[route], decomposition=way)
        np.testing.assert_array_equal(found, expected, strict=True)


def test_types_mix() -> None:
    table, entries = np.array([-1, 0, 2, 2, 9]), np.array([0.5, 2.0, -7, np.nan, 9])
    for side in ("left", "right"):
        found = np.searchsorted(ucle.array(table), ucle.array(entries), side)
        assert isinstance(found, ucle.Tensor)
        np.testing.assert_array_equal(found.to_numpy(), np.searchsorted(table, entries, side))


def test_a_sorter() -> None:
    rng = np.random.default_rng(4)
    table, entries = rng.permutation(20) / 4, rng.normal(2, 2, 9)
    order = np.argsort(table)
    found = ucle.searchsorted(ucle.array(table), entries, sorter=ucle.argsort(ucle.array(table)))
    np.testing.assert_array_equal(found.to_numpy(), np.searchsorted(table, entries, sorter=order))


@pytest.mark.parametrize("fill", [0.0, 1.5])
def test_entries_that_are_not_stored(fill: float, routes: Routes) -> None:
    rng = np.random.default_rng(2)
    entries = np.where(rng.random((5, 6)) < 0.4, rng.integers(-3, 4, (5, 6)), fill)
    spec = ucle.table(pa.table(coo_columns(entries, rng, fill)), bounds=entries.shape, fill=fill)
    table = np.array([-2.0, 0.0, 0.0, 1.5, 3.0])
    for route, way in WAYS:
        found = ucle.searchsorted(table, ucle.tensor(spec)).to_numpy(
            database=routes[route], decomposition=way
        )
        np.testing.assert_array_equal(found, np.searchsorted(table, entries))


def test_tables_whose_sizes_are_not_known() -> None:
    table = ucle.tensor(pa.table({"i": range(4), "v": [1.0, 2.0, 2.0, 5.0]}), ndim=1)
    names = pa.table({"who": ["a", "b"], "v": [2.0, 7.0]})
    entries = ucle.tensor(names, axes=("who",))
    found = ucle.searchsorted(table, entries).to_pandas().sort_values("who")
    assert found["val"].tolist() == [1, 4]


def test_a_table_without_entries() -> None:
    found = ucle.searchsorted(np.zeros(0), np.ones(3)).to_numpy()
    np.testing.assert_array_equal(found, np.zeros(3, np.int64), strict=True)


def test_a_long_table_is_sorted() -> None:
    rng = np.random.default_rng(0)
    table, entries = np.sort(rng.normal(size=5000)), rng.normal(size=(50, 41))
    found = ucle.searchsorted(ucle.array(table), ucle.array(entries, axes=("a", "b")))
    assert [axis.name for axis in found.lazy.axes] == ["a", "b"]
    np.testing.assert_array_equal(found.to_numpy(), np.searchsorted(table, entries))


@pytest.mark.parametrize("sign", ["<", "<="])
def test_the_same_in_the_language(sign: str) -> None:
    table, entries = drawn(0, "int64")
    text = f"P[i,j] = sum[k](t[k] {sign} x[i,j]); Z[i,j] = y[~(P[i,j] - 1)]"
    given = {"t": table, "x": entries, "y": np.arange(10, 17)}
    with ucle.einsum_program(text, inputs=given, outputs=["P", "Z"]).execute() as result:
        places = np.searchsorted(table, entries, "left" if sign == "<" else "right")
        np.testing.assert_array_equal(result["P"].to_numpy(), places)
        expected = np.where(places > 0, given["y"][places - 1], 0)
        np.testing.assert_array_equal(result["Z"].to_numpy(), expected)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ucle.searchsorted([[1.0]], [1.0]), AxisError),
        (lambda: ucle.searchsorted([1.0], [1.0], side="middle"), ArgumentTypeError),
        (
            lambda: ucle.einsum_program("p[i] = searchsorted(x[i])", x=[1]),
            NameResolutionError,
        ),
    ],
)
def test_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(
    "name", ["nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"]
)
def test_results_whose_size_is_that_of_data(name: str) -> None:
    for module in (ucle, np):
        with pytest.raises(UnsupportedError, match=r"to_numpy\(\)") as caught:
            getattr(module, name)(ucle.array([1, 0, 1]))
        assert name in str(caught.value)
