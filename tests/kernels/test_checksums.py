"""Checksums of memory: every change is noticed, with the compiled module and without it."""

from __future__ import annotations

import numpy as np
import pytest

from ucle.errors import KernelsMissingError
from ucle.udf_kernels import checksums

SIZES = (0, 1, 7, 8, 9, 255, 256, 257, 263, 512, 4099)


@pytest.fixture(params=["compiled", "zlib"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def missing() -> None:
        raise KernelsMissingError("none", where="here", expected="one", found="none", hint="none")

    if request.param == "zlib":
        monkeypatch.setattr(checksums, "load_module", missing)
    return str(request.param)


@pytest.mark.parametrize("size", SIZES)
def test_each_bit_counts(size: int, way: str) -> None:
    data = bytearray(np.random.default_rng(size).bytes(size))
    before = checksums.checksum(data)
    assert before == checksums.checksum(bytes(data))
    found = {before}
    for bit in np.random.default_rng(0).integers(0, 8, size=size):
        place = len(found) - 1
        data[place] ^= 1 << int(bit)
        found.add(checksums.checksum(data))
        data[place] ^= 1 << int(bit)
    assert len(found) == size + 1


def test_changes_of_several_numbers(way: str) -> None:
    """Numbers that are exchanged, or change their signs, wherever they lie beside each other."""
    array = np.random.default_rng(1).normal(size=600)
    found = {checksums.checksum(array.data)}
    for apart in range(1, 300):
        for change in (lambda x, y: (y, x), lambda x, y: (-x, -y), lambda x, y: (-x, y)):
            changed = array.copy()
            changed[7], changed[7 + apart] = change(array[7], array[7 + apart])
            found.add(checksums.checksum(changed.data))
    assert len(found) == 1 + 2 * 299 + 1


def test_bits_that_could_take_each_other_back(way: str) -> None:
    """A sign and any bit of another number, near and where the loop comes back to one sum."""
    words = np.random.default_rng(2).integers(1 << 62, size=200, dtype=np.uint64)
    found = {checksums.checksum(words.data)}
    for apart in (1, 2, 31, 32, 33, 64, 128):
        for bit in range(64):
            changed = words.copy()
            changed[5] ^= np.uint64(1 << 63)
            changed[5 + apart] ^= np.uint64(1 << bit)
            found.add(checksums.checksum(changed.data))
    assert len(found) == 1 + 7 * 64


def test_lengths_and_what_comes_before(way: str) -> None:
    zeros = [checksums.checksum(bytes(n)) for n in range(600)]
    assert len(set(zeros)) == len(zeros)
    first, second = b"first" * 30, b"second" * 30
    chained = checksums.checksum(second, checksums.checksum(first))
    assert chained not in (checksums.checksum(second), checksums.checksum(first))
    assert chained != checksums.checksum(first, checksums.checksum(second))
