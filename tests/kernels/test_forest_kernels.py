"""Forests of decision trees: rows that share them or have their own, and what is no forest."""

from __future__ import annotations

import os
import random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from forest_meanings import NODE, SIZES, forest, forest_pack
from kernel_routes import Route

from ucle.testing.oracle_forests import sum_forest
from ucle.testing.random_forests import NAN_HOLDS, random_forest, random_rows

CALLS = 50 * int(os.environ.get("UCLE_FUZZ_CALLS", "4"))
FEATURES, OUTPUTS = 4, 2


def sums_of(route: Route, x: Any, packed: Any) -> Any:
    """The sums of rows of features; each row has the forest, or has one of its own."""
    rows = {"r": list(range(len(x))), "x": [row.tobytes() for row in x]}
    own = packed if isinstance(packed, list) else []
    rows |= {"f": [each.tobytes() for each in own]} if own else {}
    route.connection.register("rows_of_forests", pa.table(rows))
    call = f"forest(x, forest_pack({'f' if own else '$1::BLOB'}, {x.shape[1]}, {OUTPUTS}))"
    query = f"SELECT {call} FROM rows_of_forests ORDER BY r"
    found = route.connection.execute(query, [] if own else [packed.tobytes()]).fetchall()
    return np.array([np.frombuffer(each) for (each,) in found])


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("codes", [(1,), (1, 2, 3, 4), (5, 6), (1, 2, 3, 4, 5, 6)])
def test_thousands_of_rows(route: Route, codes: tuple[int, ...], missing: float) -> None:
    """They go through the forest together, block by block."""
    rng = np.random.default_rng(len(codes))
    packed = random_forest(rng, trees=5, leaves=60, features=FEATURES, codes=codes)
    x = random_rows(rng, 4999, FEATURES, missing=missing)
    np.testing.assert_array_equal(sums_of(route, x, packed), sum_forest(x, packed))


def test_rows_with_forests_of_their_own(route: Route) -> None:
    rng = np.random.default_rng(7)
    few = [random_forest(rng, trees=n, features=FEATURES) for n in range(3)]
    x = random_rows(rng, 300, FEATURES)
    own = [few[n] for n in rng.integers(3, size=len(x)).repeat(1 + rng.integers(9))[: len(x)]]
    expected = [sum_forest(row, each) for row, each in zip(x, own, strict=True)]
    np.testing.assert_array_equal(sums_of(route, x, own), expected)


def test_trees_that_share_nodes(route: Route) -> None:
    """Roots may be on the way of other trees, and nodes may have several parents."""
    packed = np.zeros((4, 6, OUTPUTS))
    packed[0, :5, 0] = 0, 0.0, 2, 1, 1 + 16
    packed[1, :5, 0] = 1, 0.0, 2, 3, 5 + 16 + NAN_HOLDS
    packed[2, 4:] = [16, 0], [1, 2]
    packed[3, 5] = 10, 20
    x = random_rows(np.random.default_rng(3), 50, FEATURES)
    forest_of = packed.reshape(-1, OUTPUTS)
    np.testing.assert_array_equal(sums_of(route, x, forest_of), sum_forest(x, forest_of))


# ---- What is no forest ----

TREE = np.zeros((3, 6, OUTPUTS))
TREE[0, :5, 0] = 1, 0.5, 1, 2, 17
NOWHERE = (-1, 0.5, 1e300, -np.inf, np.inf, np.nan)

WRONG = {
    **{(0, 0, value): "feature of node 0" for value in (4, *NOWHERE)},
    **{(0, place, value): "later node" for place in (2, 3) for value in (0, 3, *NOWHERE)},
    **{(n, 4, value): f"code of node {n}" for n in (0, 2) for value in (32, *NOWHERE)},
    (1, 4, 7): "condition of node 1",
    (1, 4, 15): "condition of node 1",
    (2, 4, 1): "later node",
    (1, 4, 1): "later node",
}
"""Fields of nodes that are wrong, and what an error says of them."""


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_no_forest(route: Route, wrong: tuple[int, int, float]) -> None:
    node, place, value = wrong
    packed = TREE.copy()
    packed[node, place, 0] = value
    with pytest.raises(duckdb.Error, match=WRONG[wrong]):
        sums_of(route, np.zeros((2, FEATURES)), packed)


@pytest.mark.parametrize(
    "call",
    [
        "forest_pack(pack([1, 2, 3]), 1, 2)",
        "forest_pack(pack([]), 0, 2)",
        "forest_pack(pack([]), -1, 2)",
        "forest_pack(pack([]), 1, -2)",
        "forest_pack(pack([1]), 1, 0)",
        "forest_pack(pack([]), 9223372036854775807, 9223372036854775807)",
        "forest(pack([1, 2, 3]), forest_pack(pack([]), 2, 1))",
        "forest(pack([1, 2]), pack([]))",
        "forest(pack([1, 2]), pack([1, 2, 3, 4, 5]))",
        "forest(pack([1, 2]), from_hex('01'))",
    ],
)
def test_refused(route: Route, call: str) -> None:
    with pytest.raises(duckdb.Error, match="expected"):
        route.connection.execute(f"SELECT {call}").fetchall()


def changed(rng: random.Random, blob: bytes) -> bytes:
    """The bytes with one to three words changed, or cut off."""
    made = bytearray(blob)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = 4 * rng.randrange(len(made) // 4)
        near = (int.from_bytes(made[at : at + 4], "little") + rng.choice((-1, 1))) % 2**32
        value = rng.choice((near, near, 0, 1, 2**31, 2**32 - 1))
        made[at : at + 4] = value.to_bytes(4, "little")
    return bytes(made[: rng.choice((len(made), len(made), 8 * rng.randrange(len(made) // 8)))])


def is_sound(blob: bytes) -> bool:
    """Whether a packed forest has the sizes that it says, and each walk in it ends at a leaf."""
    if len(blob) < SIZES.itemsize:
        return False
    features, outputs, nodes, trees, leaves = np.frombuffer(blob, SIZES, 1)[0].tolist()
    size = SIZES.itemsize + 24 * nodes + 8 * trees + 8 * leaves * outputs
    if size != len(blob) or not features or leaves > nodes:
        return False
    every = np.frombuffer(blob, NODE, nodes, SIZES.itemsize)
    for n, (_, ways, feature, more) in enumerate(every):
        leaf = (ways == n).all() and more < leaves
        if feature >= features or not (leaf or (n < ways.min() and ways.max() < nodes)):
            return False
    roots = np.frombuffer(blob, "<u4", 2 * trees, SIZES.itemsize + 24 * nodes)[::2]
    return bool((roots < nodes).all())


def test_changed_forests(route: Route) -> None:
    """They are refused, or still are forests."""
    rng, maker = random.Random(11), np.random.default_rng(11)
    answered = 0
    for _ in range(CALLS):
        packed = forest_pack(random_forest(maker, 2, 4, FEATURES).reshape(-1), FEATURES, OUTPUTS)
        blob, x = changed(rng, packed.tobytes()), random_rows(maker, FEATURES, missing=0)
        query = "SELECT forest($1::BLOB, $2::BLOB)"
        if not is_sound(blob):
            with pytest.raises(duckdb.Error, match="expected"):
                route.connection.execute(query, [x.tobytes(), blob]).fetchall()
            continue
        features = np.frombuffer(blob, SIZES, 1)[0]["features"]
        if FEATURES % features:
            continue
        ((found,),) = route.connection.execute(query, [x.tobytes(), blob]).fetchall()
        expected = forest(x, np.frombuffer(blob))
        if _is_as_packed(blob, packed):
            np.testing.assert_array_equal(np.frombuffer(found), expected)
        answered += 1
    assert answered > CALLS // 20


def _is_as_packed(blob: bytes, packed: Any) -> bool:
    """Whether flags and trees are those of a packed forest: others are answered in some way."""
    before = packed.tobytes()
    if len(before) != len(blob):
        return False
    _, _, nodes, trees, _ = np.frombuffer(blob, SIZES, 1)[0].tolist()
    start, end = SIZES.itemsize + 24 * nodes, SIZES.itemsize + 24 * nodes + 8 * trees
    own, old = (np.frombuffer(x, NODE, nodes, SIZES.itemsize) for x in (blob, before))
    return blob[start:end] == before[start:end] and (own["more"] == old["more"]).all()
