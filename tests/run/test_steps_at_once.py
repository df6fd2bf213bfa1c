"""Loops of which one statement runs several steps, against single steps, to the last bit.

How many steps run at once depends on the time they take, so here that is stated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pytest
from random_programs.loops import with_carry

import ucle
from ucle.errors import NotConvergedWarning, PositionError, UcleError
from ucle.run import iterate
from ucle.run.results import Result
from ucle.testing.check_matrix import Routes, some_decompositions
from ucle.testing.generate import random_case
from ucle.testing.oracle_operators import UndefinedError

Connection = duckdb.DuckDBPyConnection

RNG = np.random.default_rng(5)
P = RNG.random((9, 9)) / 9
NEAR = ucle.table(np.where(RNG.random((30, 30)) < 0.1, RNG.random((30, 30)), np.inf), fill=np.inf)
START = np.where(np.arange(30) == 0, 0, np.inf)

LOOPS: dict[str, tuple[str, dict[str, Any], dict[str, str], str | None, int | None]] = {
    "ranks": (
        "y[i] = 0.1 + 0.9 * sum[j](P[i,j] * x[j]); d[] = sum[i](abs(y[i] - x[i]))",
        {"P": P, "x": np.ones(9)},
        {"x": "y"},
        "d[] < 1e-9",
        None,
    ),
    "distances": (
        "a[i] min= d[j] + L[j,i]; e[i] = min(d[i], a[i]); n[] = sum[i](e[i] < d[i])",
        {"L": NEAR, "d": ucle.table(START, fill=np.inf)},
        {"d": "e"},
        "n[] == 0",
        None,
    ),
    "two states that change places": (
        "a[i] = y[i]; b[i] = x[i] + y[i] + 1; s[] = sum[i](b[i])",
        {"x": np.arange(3), "y": np.arange(3) ** 2},
        {"x": "a", "y": "b"},
        "s[] > 1000",
        None,
    ),
    "numbers as states": (
        "s[] = sum[i](w[] * v[i] - t[i] + y[i] / 9); u[] = w[] - 0.1 * s[]; c[] = n[] + 1; "
        "z[i] = u[] * v[i]",
        {"w": 0.5, "v": np.arange(4.0), "t": np.ones(4), "n": 0, "y": np.zeros(4)},
        {"w": "u", "n": "c", "y": "z"},
        None,
        23,
    ),
    "float32": (
        "y[i] = tanh(sum[j](P[i,j] * x[j])) + x[i] * 0.5; m[] = max[i](y[i] * x[i])",
        {"P": P.astype(np.float32), "x": np.ones(9, np.float32)},
        {"x": "y"},
        None,
        17,
    ),
    "complex numbers": (
        "y[i] = sum[j](P[i,j] * x[j]) * 1j; m[] = sum[i](abs(y[i]))",
        {"P": P, "x": np.ones(9, complex)},
        {"x": "y"},
        "m[] < 1e-3",
        None,
    ),
    "one row after another": (
        "z[s] = 0.9 * m[s] + sum[r](P[r,s] * y[t[],r]); u[] = t[] + 1; d[] = max[s](abs(z[s]))",
        {"P": P, "y": RNG.normal(size=(20, 9)), "m": np.zeros(9), "t": 0},
        {"m": "z", "t": "u"},
        None,
        20,
    ),
    "rows after the last one": (
        "z[s] = 0.9 * m[s] + y[t[],s]; u[] = t[] + 1",
        {"y": RNG.normal(size=(20, 9)), "m": np.zeros(9), "t": 0},
        {"m": "z", "t": "u"},
        None,
        25,
    ),
    "too few steps": (
        "y[i] = sum[j](P[i,j] * x[j]); d[] = sum[i](abs(y[i] - x[i]))",
        {"P": P, "x": np.ones(9)},
        {"x": "y"},
        "d[] < 0",
        13,
    ),
}


def outcome(run: Callable[[], Any]) -> Any:
    """The steps, the outputs as bytes and the history of a loop; or its error."""
    try:
        found = run()
    except UcleError as error:
        return type(error), str(error)
    history = {name: numbers.tolist() for name, numbers in found.history.items()}
    arrays = {name: found[name].to_numpy().tobytes() for name in found}
    return found.steps, found.converged, arrays, history


def both(run: Callable[[], Result], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """What single steps make, and what as many at once as possible make."""
    found = []
    for together in (0.0, 1e6):
        monkeypatch.setattr(iterate, "TOGETHER", together)
        found.append(outcome(run))
    return found[0], found[1]


@pytest.mark.sample(7)
@pytest.mark.filterwarnings("ignore::ucle.NotConvergedWarning")
@pytest.mark.parametrize("name", LOOPS)
def test_they_are_the_same_as_single_steps(
    name: str, connection: Connection, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    text, inputs, carry, until, most = LOOPS[name]
    program = ucle.einsum_program(text, inputs=inputs, database=connection)
    single, several = both(lambda: program.iterate(carry, until, max_steps=most), monkeypatch)
    assert single == several
    if single[0] is PositionError:
        assert "y[t[],s] is at 20" in single[1]
        return
    assert single[0] > 5
    with caplog.at_level(logging.DEBUG, logger="ucle.execute"):
        program.iterate(carry, until, max_steps=most)
    statements = [x for x in caplog.records if x.getMessage().startswith("step ")]
    assert len(statements) < single[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed: int, routes: Routes, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        case, carry = with_carry(random_case(seed), seed)
        case.expected()
    except (UndefinedError, ValueError):
        return
    if not carry:
        return
    for connection in routes.values():
        case.create_tables(connection)
    try:
        chosen = case.compile(routes["native"])
        for n, way in enumerate((None, *some_decompositions(chosen, seed, 2))):
            program = chosen if way is None else chosen.with_decomposition(way)
            connection = routes[("native", "arrow")[(n + seed) % 2]]
            single, several = both(
                lambda p=program, c=connection: p.iterate(carry, max_steps=7, database=c),  # type: ignore[misc]
                monkeypatch,
            )
            assert single == several, case
    finally:
        for connection in routes.values():
            case.drop_tables(connection)


def test_numbers_that_outgrow_their_type(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "y[i] = x[i] * x[i] + z[i]; n[] = max[i](y[i])"
    x = np.array([1.5, 2.0])
    program = ucle.einsum_program(text, x=x, z=np.zeros(2), database=connection)
    single, several = both(lambda: program.iterate({"x": "y"}, max_steps=40), monkeypatch)
    assert single == several
    assert "outgrew" in single[1]


def test_checkpoints_and_progress(fresh: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "y[i] = 0.5 * x[i] + z[i]; s[] = sum[i](y[i])"
    program = ucle.einsum_program(text, x=np.ones(3), z=np.arange(3.0), database=fresh)
    told: list[tuple[int, str]] = []
    seen = []
    for together in (0.0, 1e6):
        monkeypatch.setattr(iterate, "TOGETHER", together)
        told.clear()
        with pytest.warns(NotConvergedWarning):
            program.iterate(
                {"x": "y"},
                "s[] < 0",
                max_steps=20,
                checkpoint={"x": "kept"},
                every=3,
                progress=lambda x: told.append((x.number, x.step)),
            )
        seen.append([*told, *fresh.execute("FROM kept ORDER BY 1").fetchall()])
    assert seen[0] == seen[1]
    assert [number for number, _ in told] == list(range(1, 21))


def test_an_interruption_ends_the_loop_after_whole_steps(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iterate, "TOGETHER", 1e6)

    def told(progress: Any) -> None:
        if progress.number == 6:
            raise KeyboardInterrupt

    text = "y[i] = x[i] + z[i]; s[] = sum[i](y[i])"
    program = ucle.einsum_program(text, x=np.zeros(3), z=np.ones(3), database=connection)
    found = program.iterate({"x": "y"}, max_steps=50, progress=told)
    assert found.interrupted
    assert found.steps >= 6
    assert np.array_equal(found["y"].to_numpy(), np.full(3, float(found.steps)))
    assert found.history["s"][-1] == 3 * found.steps
