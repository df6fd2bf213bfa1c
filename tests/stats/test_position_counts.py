"""Equal positions and rows by coordinate: the compiled loops and NumPy's say what a set says."""

from __future__ import annotations

import numpy as np
import pytest

from ucle.stats import position_counts
from ucle.stats.position_counts import count_coordinates, may_repeat

LARGEST = 2**62 - 1


@pytest.fixture(params=["compiled", "NumPy"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs with the module and as if there were none."""
    monkeypatch.setattr(position_counts, "CHUNK", 512)
    if request.param == "NumPy":
        monkeypatch.setattr(position_counts, "_compiled", lambda: None)
    else:
        assert position_counts._compiled() is not None


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 511, 512, 513, 40_000])
@pytest.mark.parametrize("most", [100_000_000, LARGEST])
def test_one_equal_pair_among_many(count: int, most: int) -> None:
    """None is found among distinct ones; one is, wherever its two lie."""
    random = np.random.default_rng(count)
    distinct = random.permutation(np.unique(random.integers(0, most, count + 1, endpoint=True)))
    assert not may_repeat(distinct.copy())
    for _ in range(5):
        places = random.integers(0, len(distinct) + 1, 2)
        again = np.insert(distinct, places[0], distinct[places[1] % len(distinct)])
        assert may_repeat(again)


@pytest.mark.parametrize("first", [0, 510, 511, 512, 513, 1023, 1024, 1498])
def test_equal_neighbours_in_order(first: int) -> None:
    """Two equal ones among many that are in order, at each end of a piece."""
    order = np.arange(1500)
    assert not may_repeat(order)
    order[first + 1 :] -= 1
    assert may_repeat(order)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 1.0])
def test_many_equal_ones(share: float) -> None:
    """More than there is room for among those that find their bits marked."""
    random = np.random.default_rng(0)
    values = random.permutation(40_000)
    values[: int(share * len(values))] = LARGEST
    assert may_repeat(values) == (share > 0.0)
    assert may_repeat(np.repeat(values, 2))


def test_equal_positions_behind_full_room() -> None:
    """Distinct ones whose hashes are few fill the room for those that find their bits marked."""
    values = np.arange(2_000_000)
    places = position_counts._hash(values, 1 << 18)
    distinct = values[places < 2000][:10_000]
    assert len(distinct) == 10_000
    assert not may_repeat(distinct[::-1].copy())
    assert may_repeat(np.append(distinct, distinct[-1])[::-1].copy())


@pytest.mark.parametrize("bits", [(0, 5), (3, 4), (12, 12), (31, 31), (1, 61)])
def test_rows_of_coordinates(bits: tuple[int, int]) -> None:
    """One counter for each coordinate; on long axes, one for those with equal hashes."""
    random = np.random.default_rng(1)
    first, second = (random.integers(0, 1 << n, 3000) for n in bits)
    positions = first << bits[1] | second
    for axis, shift, width in ((first, bits[1], bits[0]), (second, 0, bits[1])):
        counters = count_coordinates(positions, shift, width, 1 << 10)
        values, rows = np.unique(axis, return_counts=True)
        assert counters.sum() == len(positions)
        if width <= 10:
            assert counters[values].tolist() == rows.tolist()
            continue
        assert len(counters) == 1 << 10
        assert counters.max() >= rows.max()
        alone = count_coordinates(values, 0, width, 1 << 10)
        assert np.count_nonzero(counters) == np.count_nonzero(alone)


def test_both_ways_count_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics, and with them plans, do not depend on whether the module was built."""
    positions = np.random.default_rng(2).integers(0, LARGEST, 5000)
    counted = count_coordinates(positions, 20, 42, 1 << 12)
    monkeypatch.setattr(position_counts, "_compiled", lambda: None)
    assert np.array_equal(counted, count_coordinates(positions, 20, 42, 1 << 12))
