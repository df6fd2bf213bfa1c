"""Discrete Fourier transforms against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.errors import (
    ArgumentTypeError,
    AxisError,
    BoundError,
    NameResolutionError,
    ValueTypeError,
)
from ucle.testing import Routes
from ucle.testing.random_inputs import coo_columns, random_array

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
OF_REALS = ("rfft", "ihfft", "rfftn")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
DTYPES = ("float64", "float32", "int64", "bool", "complex128", "complex64")
WAYS = (("native", "auto"), ("arrow", "auto"), ("native", "relational"))


def check(made: ucle.Tensor, expected: Any, routes: Routes, ways: Any = WAYS) -> None:
    assert made.shape == expected.shape
    single = expected.dtype in (np.float32, np.complex64)
    for route, way in ways:
        found = made.to_numpy(database=routes[route], decomposition=way)
        assert found.dtype == expected.dtype, (route, way)
        size = max(float(np.abs(expected).max(initial=0)), 1)
        np.testing.assert_allclose(found, expected, atol=size * (1e-5 if single else 1e-13))


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE)
def test_along_an_axis(name: str, dtype: str, routes: Routes) -> None:
    if dtype.startswith("complex") and name in OF_REALS:
        return
    seed = 10 * ONE.index(name) + DTYPES.index(dtype)
    rng = np.random.default_rng(seed)
    x = random_array(rng, (3, 6, 2), 0.7, dtype)
    norms = ("backward", "ortho", "forward")
    for norm, n, axis in zip(norms, (None, 8, 5), (1, -2, 1), strict=True):
        expected = getattr(np.fft, name)(x, n, axis, norm)
        made = getattr(ucle.fft, name)(ucle.array(x), n, axis, norm)
        check(made, expected, routes, [WAYS[(seed + len(norm)) % 3]])


@pytest.mark.sample(6)
@pytest.mark.parametrize("points", range(1, 8))
@pytest.mark.parametrize("name", ONE)
def test_any_number_of_points(name: str, points: int, routes: Routes) -> None:
    x = np.random.default_rng(points).normal(size=points)
    least = 1 if name not in ("irfft", "hfft") or points > 1 else 2
    for n in (None, points + 3, max(points - 2, least)):
        if n is None and points == 1 and least == 2:
            continue
        made = getattr(ucle.fft, name)(x, n)
        check(made, getattr(np.fft, name)(x, n), routes, WAYS[:1])


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("name", SEVERAL)
def test_along_several_axes(name: str, dtype: str, routes: Routes) -> None:
    if dtype.startswith("complex") and name in OF_REALS:
        return
    x = random_array(np.random.default_rng(3), (4, 3, 5), 0.8, dtype)
    for s, axes, norm in ((None, None, None), (None, (0, 2), "ortho"), ((3, 6), (1, 0), "forward")):
        expected = getattr(np.fft, name)(x, s, axes, norm)
        check(getattr(ucle.fft, name)(x, s, axes, norm), expected, routes, WAYS[1:])
    flat = getattr(np.fft, f"{name[:-1]}2")(x)
    check(getattr(ucle.fft, f"{name[:-1]}2")(x), flat, routes, WAYS[:1])


@pytest.mark.parametrize("fill", [0.0, 1.5])
def test_of_sparse_tensors(fill: float, routes: Routes) -> None:
    rng = np.random.default_rng(1)
    x = np.where(rng.random((4, 9)) < 0.3, rng.normal(size=(4, 9)), fill)
    table = ucle.table(pa.table(coo_columns(x, rng, fill)), bounds=x.shape, fill=fill)
    check(ucle.fft.fft(ucle.tensor(table)), np.fft.fft(x), routes)
    check(ucle.fft.irfft(ucle.tensor(table)), np.fft.irfft(x), routes)


@pytest.mark.parametrize("points", [1, 2, 5, 8])
def test_frequencies(points: int) -> None:
    for name in ("fftfreq", "rfftfreq"):
        for spacing in (1.0, 0.1):
            found = getattr(ucle.fft, name)(points, spacing).to_numpy()
            expected = getattr(np.fft, name)(points, spacing)
            np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name: str) -> None:
    x = np.arange(15.0).reshape(3, 5)
    for axes in (None, 1, (0, 1), (-2,)):
        expected = getattr(np.fft, name)(x, axes)
        np.testing.assert_array_equal(getattr(ucle.fft, name)(x, axes).to_numpy(), expected)


def test_round_trips_and_products() -> None:
    """A convolution is a product of transforms; that of a whole program is compiled as one."""
    rng = np.random.default_rng(0)
    x, k = rng.normal(size=(2, 32))
    made = ucle.fft.irfft(ucle.fft.rfft(ucle.array(x)) * ucle.fft.rfft(ucle.array(k)))
    expected = [np.sum(x * np.roll(k[::-1], i + 1)) for i in range(32)]
    np.testing.assert_allclose(made.to_numpy(), expected, atol=1e-12)
    back = ucle.fft.ifft(ucle.fft.fft(ucle.array(x)))
    np.testing.assert_allclose(back.to_numpy(), x, atol=1e-13)


def test_named_axes_and_numpys_functions() -> None:
    x = np.random.default_rng(0).normal(size=(2, 6))
    tensor = ucle.array(x, axes=("who", "time"))
    made = ucle.fft.rfft(tensor, axis="time")
    assert [axis.name for axis in made.lazy.axes] == ["who", "time"]
    np.testing.assert_allclose(made.to_numpy(), np.fft.rfft(x), atol=1e-13)
    assert list(made.to_pandas().columns) == ["who", "time", "val"]
    by_numpy = np.fft.fft(ucle.array(x), axis=0)
    assert isinstance(by_numpy, ucle.Tensor)
    np.testing.assert_allclose(by_numpy.to_numpy(), np.fft.fft(x, axis=0), atol=1e-13)


REFUSED: dict[str, tuple[Any, type[Exception]]] = {
    "no points": (lambda x: ucle.fft.fft(x, 0), BoundError),
    "half a point": (lambda x: ucle.fft.fft(x, 1.5), BoundError),
    "norm": (lambda x: ucle.fft.fft(x, norm="most"), ArgumentTypeError),
    "axis": (lambda x: ucle.fft.fft(x, axis=2), AxisError),
    "complex": (lambda x: ucle.fft.rfft(x * 1j), ValueTypeError),
    "sizes": (lambda x: ucle.fft.fftn(x, (2, 3), (0,)), ArgumentTypeError),
    "no axes": (lambda x: ucle.fft.rfftn(x, axes=()), AxisError),
    "unknown size": (
        lambda x: ucle.fft.fft(ucle.tensor(pa.table({"i": [0, 1], "v": [1.0, 2.0]}), ndim=1)),
        BoundError,
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    call, error = REFUSED[why]
    with pytest.raises(error):
        call(ucle.array(np.ones((2, 3))))


@pytest.mark.parametrize("text", ["y[k] = fft[k](x[k])", "y[k] = rfft(x[k])", "y[k] = ifftn(x[k])"])
def test_the_language_names_the_way(text: str) -> None:
    with pytest.raises(NameResolutionError, match=r"ucle\.fft\."):
        ucle.einsum_program(text, x=np.ones(4))
