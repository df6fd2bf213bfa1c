"""The three answers of a recipe are one, and how long each of them takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import scipy.sparse as sp
from recipe import Connection, Recipe

from benchmarks.measure import capped, race

LIMIT = 60.0
"""Seconds after which plain SQL is ended."""

OFTEN = 5.0
"""Seconds up to which plain SQL runs in each round, and not once alone."""

SIDES = ("ucle", "SQL", "peer")


@dataclass(frozen=True)
class Measured:
    """Seconds by side; plain SQL took no less than the `limit` where it has none."""

    seconds: Mapping[str, float]
    limit: float = LIMIT


def run_once(recipe: Recipe, connection: Connection) -> Measured:
    """Run each side once, and compare the answers.

    Raises:
        SystemExit: they differ.
    """
    sides = _sides(recipe, connection)
    expected, seconds = None, {}
    for side in reversed(SIDES):
        start = time.perf_counter()
        answer = sides[side]()
        seconds[side] = time.perf_counter() - start
        expected = answer if expected is None else expected
        expect_equal(recipe, side, answer, expected)
    return Measured(seconds)


def measure(
    recipe: Recipe, connection: Connection, rounds: int, clock: Callable[[], float]
) -> Measured:
    """Medians of rounds in turn by a clock, in which the answers are compared first.

    Plain SQL is ended at the limit; where it takes long, it runs once.
    """
    sides = _sides(recipe, connection)
    expected = sides["peer"]()

    def plain() -> None:
        expect_equal(recipe, "SQL", sides["SQL"](), expected)

    start = clock()
    once = capped(connection, plain, LIMIT)
    own = clock() - start
    if once > OFTEN:
        del sides["SQL"]
    seconds = race(sides, rounds, lambda side, x: expect_equal(recipe, side, x, expected), clock)
    if OFTEN < once < LIMIT:
        seconds["SQL"] = own
    sides["ucle"]()  # for the picture
    return Measured(seconds)


def _sides(recipe: Recipe, connection: Connection) -> dict[str, Callable[[], Any]]:
    arrays = recipe.arrays(connection)
    return {
        "ucle": lambda: recipe.by_ucle(connection),
        "SQL": lambda: recipe.by_sql(connection),
        "peer": lambda: recipe.by_peer(*arrays),
    }


def expect_equal(recipe: Recipe, side: str, answer: Any, expected: Any) -> None:
    """Refuse an answer that is another.

    Raises:
        SystemExit: with the largest difference, relative to the largest number that is expected.
    """
    if not isinstance(expected, tuple):
        answer, expected = (answer,), (expected,)
    for number, (one, other) in enumerate(zip(answer, expected, strict=True)):
        known = other if sp.issparse(other) else as_array(other, None)
        found = as_array(one, known)
        scale = float(abs(known).max()) or 1.0
        worst = float(abs(found - known).max()) / scale
        if not worst <= recipe.tolerance:
            raise SystemExit(f"{recipe.name}: answer {number} by {side} differs by {worst:.1e}")


def as_array(answer: Any, like: Any) -> Any:
    """An answer as an array, or as a sparse matrix where the other one is."""
    if not isinstance(answer, duckdb.DuckDBPyRelation):
        return answer if sp.issparse(answer) else np.asarray(answer, dtype=float)
    *keys, values = answer.to_arrow_table().columns
    places = tuple(key.to_numpy() for key in keys)
    if sp.issparse(like):
        return sp.coo_array((values.to_numpy(), places), like.shape).tocsr()
    array = np.zeros(like.shape)
    entries = values.to_numpy()
    array[places] = (
        np.stack(entries).reshape(-1, *like.shape[len(keys) :])
        if (entries.dtype == object)
        else entries
    )
    return array
