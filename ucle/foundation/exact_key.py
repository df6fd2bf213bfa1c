"""Keys of frozen structures, for caches that must never confuse two of them.

Python's own equality is too weak for that: 1, 1.0 and True are equal, and so are 0.0 and -0.0, but
programs with them differ. An `ExactKey` lists the types and values of everything that a structure
holds. Objects that are compared by identity, such as operators and functions, are held themselves,
so that no other object can take their place in memory.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from functools import cache
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np


class ExactKey:
    """A hashable stand-in for a structure: equal for equal types and values, bit by bit.

    >>> ExactKey.of((1, "x")) == ExactKey.of((1, "x")), ExactKey.of(1) == ExactKey.of(1.0)
    (True, False)
    >>> ExactKey.of({"fill": 0.0}) == ExactKey.of({"fill": -0.0})
    False
    """

    __slots__ = ("_hash", "_parts")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self._parts = parts
        self._hash = hash(parts)

    @classmethod
    def of(cls, value: Any) -> ExactKey:
        """Return the key of a structure of dataclasses, containers, numbers, texts and arrays.

        Raises:
            TypeError: it holds something else, such as an iterator.
        """
        return cls(tuple(_list_parts(value)))

    @classmethod
    def find(cls, value: Any) -> ExactKey | None:
        """Return the key of a structure; None if it has none."""
        try:
            return cls.of(value)
        except TypeError:
            return None

    def __len__(self) -> int:
        """The number of types and values that it lists."""
        return len(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExactKey) and self._parts == other._parts


class Same:
    """An object as part of a key: equal to itself alone, and not read."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.held is other.held


def _list_parts(value: Any) -> list[Any]:
    """The types and values of a structure in preorder; containers are preceded by their length.

    A dataclass that occurs more than once is listed once: structures may share their parts. A key
    stands for the structure that it was made of.
    """
    parts: list[Any] = []
    todo, met = [value], dict[int, int]()
    while todo:
        each = todo.pop()
        kind: Any = type(each)
        if each is None or kind is str or kind is bytes or kind is ExactKey:
            parts.append(each)
        elif kind is int or kind is bool:
            parts += (kind, each)
        elif kind is float or kind is complex:
            parts += (kind, repr(each))
        elif kind is tuple or kind is list:
            parts += (kind, len(each))
            todo += reversed(each)
        elif (names := _field_names(kind)) is not None:
            if (first := met.get(id(each))) is not None:
                parts += (Same, first)
                continue
            met[id(each)] = len(met)
            parts.append(kind)
            todo += (getattr(each, name) for name in names)
        elif kind is frozenset or kind is set:
            parts += (kind, frozenset(map(ExactKey.of, each)))
        elif isinstance(each, Mapping):
            parts += (Mapping, len(each))
            for name in reversed(list(each)):
                todo += (each[name], name)
        else:
            parts += _list_leaf(each)
    return parts


def _list_leaf(value: Any) -> tuple[Any, ...]:
    """The parts of something that holds nothing else.

    Raises:
        TypeError: it may be changed in place, or there is no telling what it holds.
    """
    kind = type(value)
    if kind is Same:
        return (value,)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return (kind, value.shape, value.dtype.str, value.tobytes())
    if isinstance(value, np.generic):
        return (kind, value.tobytes())
    if isinstance(value, enum.Enum | type | FunctionType | BuiltinFunctionType | np.ufunc):
        return (Same(value),)
    if dataclasses.is_dataclass(kind):  # compared by identity, and frozen
        return (Same(value),)
    raise TypeError(f"no key for {kind.__name__}")


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """The fields of a class of records that are compared by value; None for other classes."""
    if not dataclasses.is_dataclass(kind) or kind.__eq__ is object.__eq__:
        return None
    return tuple(field.name for field in reversed(dataclasses.fields(kind)))
