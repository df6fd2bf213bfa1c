"""Images: arrays of pixels in memory and in columns, and long tables of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.ndimage
import scipy.signal

import ucle


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Twenty pictures of 8 by 9 grey pixels of a byte."""
    return np.random.default_rng(41).integers(0, 256, (20, 8, 9)).astype(np.uint8)


def band(size: int, weights: tuple[float, ...]) -> np.ndarray:
    """The matrix that slides a window of an odd length over an axis, with zeros around it."""
    reach = len(weights) // 2
    return sum(
        w * np.eye(size, k=k) for k, w in zip(range(-reach, reach + 1), weights, strict=True)
    )


def test_blur_by_two_band_matrices(images: np.ndarray) -> None:
    kernel = (0.25, 0.5, 0.25)
    found = ucle.einsum("yr,nrc,xc->nyx", band(8, kernel), images, band(9, kernel))
    expected = scipy.ndimage.convolve(
        images.astype(float), np.outer(kernel, kernel)[None], mode="constant"
    )
    np.testing.assert_allclose(found, expected)


def test_edges_of_pixels_in_a_table(images: np.ndarray, tmp_path: Path) -> None:
    """The pixels are rows, of which the black ones are missing."""
    picture = np.where(images[0] > 60, images[0], 0)
    rows, columns = np.nonzero(picture)
    frame = pd.DataFrame({"row": rows, "col": columns, "grey": picture[rows, columns]})
    frame.to_csv(tmp_path / "picture.csv", index=False)
    pixels = ucle.tensor(
        ucle.table(str(tmp_path / "picture.csv"), bounds=[8, 9]), axes=("row", "col")
    )
    slope = ucle.array(band(9, (-1, 0, 1)), axes=("x", "col"))
    smooth = ucle.array(band(8, (1, 2, 1)), axes=("y", "row"))
    found = smooth.dot(pixels.dot(slope, axis="col"), axis="row").to_numpy()
    sobel = np.outer([1, 2, 1], [-1, 0, 1])
    expected = scipy.signal.correlate2d(picture.astype(float), sobel, mode="same")
    np.testing.assert_allclose(found, expected)


def test_channels_are_mixed_to_luminance() -> None:
    random = np.random.default_rng(42)
    pictures = random.integers(0, 256, (4, 6, 5, 3)).astype(np.uint8)
    rgb = ucle.array(pictures, axes=("n", "y", "x", "channel"))
    weights = ucle.array([0.299, 0.587, 0.114], axes=("channel",))
    grey = ucle.clip(ucle.round(rgb @ weights), 0, 255).astype("int64")
    expected = np.clip(np.round(pictures @ [0.299, 0.587, 0.114]), 0, 255).astype(int)
    found = grey.to_numpy()
    assert found.dtype == np.int64
    assert (found == expected).all()


def test_mean_image_and_gram_matrix(images: np.ndarray) -> None:
    """Pictures are rows of a table with the pixels in an array, as embeddings are."""
    with ucle.connect() as connection:
        frame = pd.DataFrame({"file": [f"{n:03}.png" for n in range(20)]})
        frame["pixels"] = list(images.reshape(20, -1))
        connection.register("frame", frame)
        connection.execute(
            "CREATE TABLE pictures AS SELECT file, pixels::UTINYINT[72] AS pixels FROM frame"
        )
        pictures = ucle.tensor("pictures", axes=("file", "pixel"), database=connection)
        mean = pictures.mean("file")
        centred = pictures - mean
        covariance = centred.dot(centred.rename({"pixel": "other"}), axis="file") / 19
        found = [
            tensor.to_numpy() for tensor in ucle.compute(mean, covariance, database=connection)
        ]
    flat = images.reshape(20, -1).astype(float)
    np.testing.assert_allclose(found[0], flat.mean(axis=0))
    np.testing.assert_allclose(found[1], np.cov(flat.T), atol=1e-8)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(found[1])[-3:], np.linalg.svd(flat - flat.mean(0))[1][2::-1] ** 2 / 19
    )


def test_histogram_by_comparison_with_levels(images: np.ndarray) -> None:
    program = ucle.einsum_program(
        "H[n,b] += X[n,y,x] >= low[b] and X[n,y,x] < low[b] + 32",
        X=images,
        low=np.arange(0, 256, 32),
    )
    with program.execute() as result:
        found = result["H"].to_numpy()
    expected = [np.histogram(image, bins=np.arange(0, 257, 32))[0] for image in images]
    assert (found == expected).all()


def test_brightest_pixel_of_each_row(images: np.ndarray) -> None:
    pictures = ucle.array(images, axes=("n", "y", "x"))
    at, value = ucle.compute(pictures.argmax("x"), pictures.max("x"))
    assert (at.to_numpy() == images.argmax(axis=2)).all()
    assert (value.to_numpy() == images.max(axis=2)).all()


def test_pooling_by_slices(images: np.ndarray) -> None:
    """The largest of four neighbours, as strided slices by position; a border is cut off."""
    x = ucle.array(images)[:, :, :8]
    pooled = ucle.maximum(
        ucle.maximum(x[:, ::2, ::2], x[:, 1::2, ::2]),
        ucle.maximum(x[:, ::2, 1::2], x[:, 1::2, 1::2]),
    )
    expected = images[:, :, :8].reshape(20, 4, 2, 4, 2).max(axis=(2, 4))
    assert (pooled.to_numpy() == expected).all()
