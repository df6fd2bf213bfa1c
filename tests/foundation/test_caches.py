"""Caches hold what was used last, within their bytes, and are emptied together."""

from __future__ import annotations

import threading

import ucle
from ucle.foundation.caches import SHORT, BoundedCache, count_bytes


def test_the_least_recently_used_goes_first() -> None:
    cache = BoundedCache[bytes](most_bytes=10_000, together=0)
    for name in "abcd":
        cache.put(name, bytes(2000))
    assert cache.get("a") is not None
    cache.put("e", bytes(2000))
    assert [name for name in "abcde" if cache.get(name) is not None] == list("acde")
    assert cache.held_bytes <= 10_000


def test_what_would_fill_the_cache_is_not_kept() -> None:
    cache = BoundedCache[bytes](most_bytes=10_000, together=0)
    cache.put("a", bytes(100))
    cache.put("b", bytes(3000))
    assert cache.get("a") is not None
    assert cache.get("b") is None


def test_values_are_counted_together_the_fewer_the_longer_their_keys_are() -> None:
    cache = BoundedCache[bytes](most_bytes=100_000, together=5)
    for name in "abcde":
        cache.put(name, bytes(30_000))
    assert [name for name in "abcde" if cache.get(name) is not None] == list("abcde")
    cache.put("f", bytes(100))
    assert [name for name in "abcdef" if cache.get(name) is not None] == ["f"]
    cache.put("g", bytes(20_000))
    assert cache.held_bytes < 20_000
    cache.put("h" * (2 * SHORT), bytes(100))
    assert cache.held_bytes < 20_000
    cache.put("i" * (2 * SHORT + 1), bytes(100))
    assert 20_000 < cache.held_bytes <= 100_000


def test_a_value_takes_the_place_of_another() -> None:
    cache = BoundedCache[int](most_bytes=10_000)
    cache.put("a", 1)
    cache.put("a", 2)
    assert cache.get("a") == 2
    assert len(cache) == 1


def test_all_are_cleared() -> None:
    cache = BoundedCache[int](most_bytes=10_000)
    cache.put("a", 1)
    ucle.clear_caches()
    assert len(cache) == 0


def test_shared_parts_count_once() -> None:
    part = bytes(5000)
    assert count_bytes([part, part]) < 2 * len(part) <= count_bytes([part, bytes(5000)])


def test_values_that_are_counted_together_share_parts() -> None:
    part = bytes(5000)
    cache = BoundedCache[list[bytes]](most_bytes=100_000, together=2)
    for name in "abc":
        cache.put(name, [part, bytes(1000)])
    assert 8000 < cache.held_bytes < 9000


def test_several_threads() -> None:
    cache = BoundedCache[int](most_bytes=3000, together=0)

    def use(start: int) -> None:
        for n in range(2000):
            name = (start + n) % 50
            got = cache.get(name)
            assert got is None or got == name
            cache.put(name, name)

    threads = [threading.Thread(target=use, args=(start,)) for start in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert cache.held_bytes <= 3000
