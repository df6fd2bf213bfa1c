"""Keys are equal for what is the same, bit by bit, and for nothing else."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ucle.foundation.exact_key import ExactKey
from ucle.operators import ADD, MULT


@dataclass(frozen=True)
class Pair:
    left: Any
    right: Any = None


@dataclass(frozen=True)
class Other:
    left: Any
    right: Any = None


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(width=16), st.text("ab", max_size=2),
    st.sampled_from([b"", b"a", ADD, MULT, 1 + 0j, -0.0]),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3),
        st.dictionaries(st.text("ab", max_size=1), inner, max_size=2),
        st.builds(Pair, inner, inner),
        st.builds(Other, inner, inner),
    ),
    max_leaves=8,
)


def shown(value: Any) -> str:
    """The structure written out, with nothing left out."""
    match value:
        case float():
            return f"float {'nan' if math.isnan(value) else struct.pack('d', value).hex()}"
        case tuple() | list():
            return f"{type(value).__name__}({','.join(map(shown, value))})"
        case dict():
            return f"dict({','.join(f'{k!r}:{shown(v)}' for k, v in value.items())})"
        case Pair() | Other():
            return f"{type(value).__name__}<{shown(value.left)},{shown(value.right)}>"
        case _:
            return f"{type(value).__name__} {value!r}"


@given(VALUES, VALUES)
def test_keys_are_equal_where_structures_are(one: Any, other: Any) -> None:
    same = shown(one) == shown(other)
    assert (ExactKey.of(one) == ExactKey.of(other)) is same
    if same:
        assert hash(ExactKey.of(one)) == hash(ExactKey.of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, 0.0),
        (0.0, -0.0),
        (1.0, 1 + 0j),
        (((1,), 2), ((1, 2),)),
        ((1,), [1]),
        (Pair(1), Other(1)),
        (("a", "b"), ("ab",)),
        ("a", b"a"),
    ],
    ids=str,
)
def test_what_python_or_a_list_of_parts_could_confuse(one: Any, other: Any) -> None:
    assert ExactKey.of(one) != ExactKey.of(other)
    assert ExactKey.of((one, other)) != ExactKey.of((other, one))


def test_parts_that_are_shared() -> None:
    """The same object twice, or thousands of times, is listed once, and stays in its place."""
    part = Pair(1)
    nested: Any = part
    for _ in range(200):
        nested = Pair(nested, nested)
    assert ExactKey.of(nested) == ExactKey.of(nested)
    assert ExactKey.of((part, part, Pair(2))) != ExactKey.of((part, Pair(2), part))
    other = Pair(2)
    assert ExactKey.of((part, other, part)) != ExactKey.of((part, other, other))
    assert ExactKey.of((part, Pair(2), Pair(2))) != ExactKey.of((part, part, Pair(2)))


def test_arrays_and_sets() -> None:
    x = np.array([1.0, 2.0])
    assert ExactKey.of(x) == ExactKey.of(x.copy())
    assert ExactKey.of(x) != ExactKey.of(x.astype("f4"))
    assert ExactKey.of(x) != ExactKey.of(x.view("i8"))
    assert ExactKey.of(x) != ExactKey.of(x.reshape(2, 1))
    assert ExactKey.of(np.float32(1)) != ExactKey.of(np.float64(1))
    assert ExactKey.of({"a", "b"}) == ExactKey.of({"b", "a"})
    assert ExactKey.of({1}) != ExactKey.of({1.0})


def test_objects_with_an_identity() -> None:
    assert ExactKey.of(ADD) == ExactKey.of(ADD)
    assert ExactKey.of(ADD) != ExactKey.of(replace(ADD))
    assert ExactKey.of(len) != ExactKey.of(max)


@pytest.mark.parametrize(
    "value", [iter(()), object(), np.array([None])], ids=["iterator", "object", "array"]
)
def test_what_has_no_key(value: Any) -> None:
    with pytest.raises(TypeError, match="no key"):
        ExactKey.of((1, value))
    assert ExactKey.find((1, value)) is None


@given(VALUES, VALUES)
def test_a_key_stands_for_its_structure(one: Any, other: Any) -> None:
    first, second = (ExactKey.of((1, ExactKey.of(value))) for value in (one, other))
    assert first == ExactKey.of((1, ExactKey.of(one)))
    assert (first == second) == (ExactKey.of(one) == ExactKey.of(other))
