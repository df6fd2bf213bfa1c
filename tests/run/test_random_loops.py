"""Random programs whose outputs are carried into the next run, against a loop in NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_programs.gathers import gathered_case
from random_programs.indices import indexed_case

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

Array = np.ndarray[Any, Any]

SAME = {
    "f": ("0.5 * {x} + 0.25", "max({x}, 0.3)", "0.5 * {x}", "square({x})", "{x}"),
    "i": ("{x}", "0 - {x}", "max({x}, 1)", "{x} * 2"),
    "b": ("{x}", "not {x}"),
}
"""Functions of itself alone that an input may become, by kind of number."""


def with_carry(case: Case, seed: int) -> tuple[Case, dict[str, str]]:
    """The case with statements for what comes in the place of some inputs."""
    rng = np.random.default_rng([seed, 20])
    made = case.expected()
    lines, carry = [case.text], {}
    for name, array in case.arrays.items():
        kind = array.dtype.kind
        if kind not in SAME or array.dtype == np.float32 or rng.random() < 0.2:
            continue
        axes = ",".join(f"c{n}" for n in range(array.ndim))
        x = f"{name}[{axes}]"
        alike = [t for t, y in made.items() if y.shape == array.shape and y.dtype == array.dtype]
        if kind == "f" and alike and rng.random() < 0.8:
            other = f"{alike[rng.integers(len(alike))]}[{axes}]"
            text = rng.choice(
                [f"tanh({other})", f"0.5 * {x} + sigmoid({other})", f"{x} * sigmoid({other})"]
            )
        elif case.indexed and kind == "i":
            text = x  # they are places, and have to stay within the axis
        else:
            text = SAME[kind][rng.integers(len(SAME[kind]))].format(x=x)
        carry[name] = f"next_{name}"
        lines.append(f"next_{name}[{axes}] = {text}")
    return replace(case, text="\n".join(lines), outputs=None), carry


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
            if not all(_tame(x) for x in expected.values()):
                break
            result = run()
            for name in result:
                context = f"step {step}, decomposition {way}, carry {carry}, tensor {name}\n{case}"
                assert_equal(result[name].to_numpy(), expected[name], context)
                compared += 1
            arrays |= {x: expected[output] for x, output in carry.items()}
    return compared


def _tame(array: Array) -> bool:
    return array.dtype.kind in "bi" or bool(np.isfinite(array).all() and (abs(array) < 1e6).all())


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
