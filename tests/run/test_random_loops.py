"""Random programs whose outputs are carried into the next run, against a loop in NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from random_programs.gathers import gathered_case
from random_programs.indices import indexed_case
from random_programs.loops import is_tame, with_carry

from ucle.testing.check_matrix import Routes, some_decompositions
from ucle.testing.generate import Case, random_case
from ucle.testing.oracle import assert_equal
from ucle.testing.oracle_operators import UndefinedError

DRAWS: dict[str, Callable[[int], Case]] = {
    "expressions": random_case,
    "labels": indexed_case,
    "indices": gathered_case,
}
SEEDS = int(os.environ.get("UCLE_LOOP_SEEDS", "25"))
"""Seeds of each kind."""
STEPS = 4


def check(case: Case, carry: dict[str, str], routes: Routes, seed: int) -> int:
    """Return the number of tensors compared, over steps, decompositions and routes."""
    compared = 0
    for connection in routes.values():
        case.create_tables(connection)
    try:
        chosen = case.compile(routes["native"])
        ways: list[Any] = ["auto", "relational", *some_decompositions(chosen, seed, 3)]
        for n, way in enumerate(ways):
            route = ("native", "arrow")[(n + seed) % 2]
            compared += _check_way(case, carry, chosen, way, routes[route])
    finally:
        for connection in routes.values():
            case.drop_tables(connection)
    return compared


def _check_way(case: Case, carry: dict[str, str], chosen: Any, way: Any, connection: Any) -> int:
    compared = 0
    program = chosen if way == "auto" else chosen.with_decomposition(way)
    arrays = dict(case.arrays)
    with program.prepare(connection, carry=carry) as run:
        for step in range(STEPS):
            expected = case.evaluate(arrays)
            if not all(is_tame(x) for x in expected.values()):
                break
            result = run()
            for name in result:
                context = f"step {step}, decomposition {way}, carry {carry}, tensor {name}\n{case}"
                assert_equal(result[name].to_numpy(), expected[name], context)
                compared += 1
            arrays |= {x: expected[output] for x, output in carry.items()}
    return compared


def one(draw: str, seed: int, routes: Routes) -> int:
    case = DRAWS[draw](seed)
    try:
        case, carry = with_carry(case, seed)
        case.expected()
    except (UndefinedError, ValueError):
        return 0
    return check(case, carry, routes, seed) if carry else 0


@pytest.mark.sample(1)
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_carried_outputs_are_what_a_loop_in_numpy_makes(
    draw: str, seed: int, routes: Routes
) -> None:
    one(draw, seed, routes)
