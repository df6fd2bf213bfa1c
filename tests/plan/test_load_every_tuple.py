"""Arrays that are handed over with the tuples of their fill: read by what needs all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.options import Optimisations
from ucle.testing.check_matrix import recompiled

Routes = Mapping[str, duckdb.DuckDBPyConnection]

RNG = np.random.default_rng(3)
COUNT, SIZE = 200, 7
GIVEN: dict[str, Any] = {
    "x": RNG.random(SIZE),
    "v": RNG.random(COUNT),
    "place": RNG.integers(0, SIZE, COUNT),
}


def _scattered(x: Any, v: Any, place: Any) -> Any:
    return np.bincount(place, v, SIZE)


PROGRAMS = {
    "y[i] = x[place[i]]": lambda x, v, place: x[place],
    "y[place[i]] += v[i]": _scattered,
    "y[i] = x[place[i]] + place[i]": lambda x, v, place: x[place] + place,
}


@pytest.mark.parametrize("text", PROGRAMS)
def test_positions_are_handed_over_as_they_are(text: str, routes: Routes) -> None:
    """Other arrays, too, that are nothing but the fill or have none, and whatever the plan is."""
    given = {name: value for name, value in GIVEN.items() if f"{name}[" in text}
    bounds = {"place": SIZE} if "v" in given else None
    for connection in routes.values():
        program = ucle.einsum_program(text, inputs=given, bounds=bounds, database=connection)
        assert "LEFT JOIN" not in program.to_sql()
        off = recompiled(program, Optimisations(every_tuple=False))
        assert "LEFT JOIN" in off.to_sql()
        for plan in [program, off, *program.plans(4)]:
            for place in (GIVEN["place"], np.zeros(COUNT, int), np.ones(COUNT, int)):
                with plan.execute(connection, place=place) as result:
                    found = result["y"].to_numpy()
                expected = PROGRAMS[text](**GIVEN | {"place": place})
                np.testing.assert_allclose(found, expected)


def test_arrays_that_are_read_as_they_are_too(native: duckdb.DuckDBPyConnection) -> None:
    """The join of stored tuples reads no others."""
    program = ucle.einsum_program(
        "y[i] = x[place[i]]; z[i] = place[i] * v[i]",
        inputs=GIVEN,
        database=native,
        decomposition="relational",
    )
    assert "LEFT JOIN" in program.to_sql()
    with program.execute(native) as result:
        assert len(result["z"].relation.fetchall()) == np.count_nonzero(GIVEN["place"])
        np.testing.assert_allclose(result["y"].to_numpy(), GIVEN["x"][GIVEN["place"]])


def test_few_positions_are_completed(native: duckdb.DuckDBPyConnection) -> None:
    """Tuples of the fill would be most of a sparse array."""
    place = np.zeros(COUNT, int)
    place[::9] = 3
    program = ucle.einsum_program("y[i] = x[place[i]]", x=GIVEN["x"], place=place, database=native)
    assert "LEFT JOIN" in program.to_sql()
    with program.execute(native) as result:
        np.testing.assert_array_equal(result["y"].to_numpy(), GIVEN["x"][place])
