"""Caches of this process, bounded by bytes, which `ucle.clear_caches` empties together."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Hashable
from operator import length_hint
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

SHORT = 4096
"""The length of a short key, in parts or characters: longer keys count as several short ones."""

_clearing: list[Callable[[], None]] = []


def register_cache(clear: Callable[[], None]) -> None:
    """Have `clear_caches` call a function that empties a cache."""
    _clearing.append(clear)


def clear_caches() -> None:
    """Forget everything that this process keeps to answer faster the next time.

    Plans, parsed programs and statistics of tables are computed again when they are needed.
    Answers do not change; programs, results and databases are not touched.

    >>> import ucle
    >>> ucle.clear_caches()
    """
    for clear in _clearing:
        clear()


class BoundedCache(Generic[T]):
    """Values by key, of which those that were used least recently are dropped first.

    Several threads may use it at once. It has no lock, as a forked process could inherit one that
    is held: each step on the dictionary is atomic, and a race costs one value at most.

    Counting bytes takes longer than anything else here. So values are counted a few at a time, the
    fewer the longer their keys are, as values with short keys are small.

    >>> cache = BoundedCache[int](most_bytes=1000)
    >>> cache.put("two", 2)
    >>> cache.get("two"), cache.get("three")
    (2, None)
    """

    def __init__(self, most_bytes: int, together: int = 32) -> None:
        """Make an empty cache.

        Args:
            most_bytes: bytes that all keys and values may take.
            together: the number of values, all with short keys, that are counted together.
        """
        self._most_bytes = most_bytes
        self._together = together
        self._kept: dict[Hashable, tuple[T, int]] = {}
        self._uncounted: list[Hashable] = []
        self._uncounted_length = 0
        register_cache(self.clear)

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def held_bytes(self) -> int:
        """Bytes of all keys and values that were counted; those counted together share parts."""
        return sum(size for _, size in list(self._kept.values()))

    def get(self, key: Hashable) -> T | None:
        """The value of a key, which then counts as used; None if there is none."""
        if (entry := self._kept.pop(key, None)) is None:
            return None
        self._kept[key] = entry
        return entry[0]

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value, unless it takes more than a quarter of the bytes that all may take."""
        self._kept[key] = value, 0
        self._uncounted.append(key)
        self._uncounted_length += max(length_hint(key, 0), SHORT)
        if self._uncounted_length > self._together * SHORT:
            self._count()

    def _count(self) -> None:
        """Count the bytes of new values, and drop those that are too large or least used."""
        new, self._uncounted = self._uncounted, []
        self._uncounted_length = 0
        met: set[int] = set()
        for key in new:
            if (entry := self._kept.get(key)) is None:
                continue
            # Both stay alive, so that none of their identities is that of another object later.
            size = count_bytes(key, met) + count_bytes(entry[0], met)
            if size > self._most_bytes // 4:
                self._kept.pop(key, None)
            else:
                self._kept[key] = entry[0], size  # in its place
        spare = self._most_bytes - self.held_bytes
        for oldest in list(self._kept):
            if spare >= 0:
                break
            if (dropped := self._kept.pop(oldest, None)) is not None:
                spare += dropped[1]

    def get_or_make(self, key: Hashable | None, make: Callable[[], T]) -> T:
        """The value of a key, made and kept if there is none; without a key, it is only made."""
        if key is None:
            return make()
        if (value := self.get(key)) is None:
            value = make()
            self.put(key, value)
        return value

    def clear(self) -> None:
        """Drop all values."""
        self._kept.clear()
        self._uncounted = []
        self._uncounted_length = 0


_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""Classes of objects that exist anyway."""


def count_bytes(value: Any, met: set[int] | None = None) -> int:
    """Bytes of an object and of all that it holds, apart from code.

    Args:
        value: the object.
        met: the identities of objects that are counted already; receives those of others.

    >>> count_bytes([b"a" * 1000]) > 1000
    True
    """
    met = set() if met is None else met
    todo, total = [value], 0
    while todo:
        each = todo.pop()
        if id(each) in met or isinstance(each, _SHARED):
            continue
        met.add(id(each))
        total += sys.getsizeof(each)
        todo += gc.get_referents(each)
    return total
