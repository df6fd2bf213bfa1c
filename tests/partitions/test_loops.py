"""Random loops and gradients on 1, 2 and 5 partitions of this process, against NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from random_programs.gathers import gathered_case
from random_programs.indices import indexed_case
from random_programs.loops import is_tame, with_carry
from random_programs.slopes import Smooth

import ucle
from ucle.errors import UnsupportedError, ValueTypeError
from ucle.partitions import NETWORK, DistributedPlan, distribute
from ucle.partitions.choices import Repeated
from ucle.partitions.step_plans import StepPlans
from ucle.pipeline.artifacts import Planned
from ucle.plan.hoist_invariants import held_name
from ucle.plan.placement_rules import Spread
from ucle.run.iterate import Loop
from ucle.testing.check_matrix import some_decompositions
from ucle.testing.generate import Case, random_case
from ucle.testing.oracle import assert_equal
from ucle.testing.oracle_operators import UndefinedError
from ucle.testing.partitions import (
    draw_plan,
    iterate_on_partitions,
    prepare_on_partitions,
    run_on_partitions,
)

DRAWN: tuple[tuple[Callable[[int], Case], int], ...] = (
    (random_case, 100),
    (indexed_case, 50),
    (gathered_case, 50),
)
LOOPS = [(draw, seed) for draw, count in DRAWN for seed in range(count)]
PARTITIONS = (1, 2, 5)
STEPS = 4


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("draw", "seed"), LOOPS, ids=[f"{draw.__name__}-{seed}" for draw, seed in LOOPS]
)
def test_random_loops(
    draw: Callable[[int], Case],
    seed: int,
    native: duckdb.DuckDBPyConnection,
    plain: duckdb.DuckDBPyConnection,
) -> None:
    check_loop(draw, seed, plain if seed % 4 == 3 else native)


FILLED = [(gathered_case, 46083), (random_case, 46084)]
"""Loops whose states hold their fill alone, in no tuple along keys, though they are whole later."""


@pytest.mark.parametrize(("draw", "seed"), FILLED, ids=["array", "table"])
def test_states_that_hold_their_fill_alone(
    draw: Callable[[int], Case],
    seed: int,
    native: duckdb.DuckDBPyConnection,
    plain: duckdb.DuckDBPyConnection,
) -> None:
    check_loop(draw, seed, native)
    check_loop(draw, seed, plain)


def check_loop(
    draw: Callable[[int], Case], seed: int, connection: duckdb.DuckDBPyConnection
) -> None:
    """Compare steps of a random program on partitions with NumPy."""
    try:
        case, carry = with_carry(draw(seed), seed)
        case.expected()
    except (UndefinedError, ValueError):
        pytest.skip("the program has no answer")
    case.create_tables(connection)
    try:
        program = case.compile(connection)
        if seed % 3 == 0:
            others = list(some_decompositions(program, seed, 3))
            program = program.with_decomposition(others[-1]) if others else program
        compare(case, carry, program, PARTITIONS[seed % 3], seed, connection)
    finally:
        case.drop_tables(connection)


def compare(
    case: Case, carry: dict[str, str], program: Any, partitions: int, seed: int, connection: Any
) -> None:
    arrays = dict(case.arrays)
    with prepare_on_partitions(program, connection, carry, partitions, seed) as run:
        for step in range(STEPS):
            expected = case.evaluate(arrays)
            if not all(map(is_tame, expected.values())):
                break
            result = run()
            for name in result:
                context = f"step {step}, {partitions} partitions, carry {carry}, {name}\n{case}"
                assert_equal(result[name].to_numpy(), expected[name], context)
            arrays |= {x: expected[output] for x, output in carry.items()}


GRADIENTS = [(draw, seed) for draw, _ in DRAWN for seed in range(34)]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("draw", "seed"), GRADIENTS, ids=[f"{draw.__name__}-{seed}" for draw, seed in GRADIENTS]
)
def test_random_gradients(
    draw: Callable[[int], Case], seed: int, native: duckdb.DuckDBPyConnection
) -> None:
    """Gradients agree with differences, and steps of an optimiser with those of one machine."""
    case = draw(seed)
    try:
        smooth = Smooth(case, seed)
    except (UndefinedError, ValueError):
        pytest.skip("the program has no answer")
    if not smooth.there or not smooth.finite or re.search("cum(prod|max|min)", case.text):
        pytest.skip("there is no gradient")
    expected = smooth.slope()
    try:
        gradient = smooth.gradient(native)
    except UnsupportedError as error:
        if "real numbers" not in str(error):  # some part of it is complex
            raise
        return
    partitions = PARTITIONS[seed % 3]
    with run_on_partitions(gradient, native, partitions, seed) as result:
        found = smooth.along_result(gradient, result)
    if expected is not None:
        assert abs(found - expected) <= 3e-5 * (smooth.scale + abs(expected)), smooth.text
    train(smooth, native, partitions, seed)


def train(smooth: Smooth, connection: Any, partitions: int, seed: int) -> None:
    step = smooth.program(connection).minimize("loss_", smooth.by, ucle.optim.sgd(1e-6, 0.5))
    prepared = prepare_on_partitions(step, connection, step.carry, partitions, seed)
    with step.prepare(connection) as alone, prepared as apart:
        for _ in range(3):
            try:
                expected = alone()
            except ValueTypeError:  # its state is no longer finite
                with pytest.raises(ValueTypeError):
                    apart()
                return
            result = apart()
            for name in expected:
                one, other = (x[name].to_numpy() for x in (expected, result))
                np.testing.assert_allclose(other, one, 1e-7, 1e-9 * smooth.scale, err_msg=name)


def ranks(
    connection: Any, damping: float = 0.85
) -> tuple[ucle.EinsumProgram, np.ndarray[Any, Any]]:
    links = np.array([[0, 0, 1, 0], [1, 0, 0, 0.5], [0, 1, 0, 0.5], [0, 0, 0, 0]])
    entries = [(int(i), int(j), float(links[i, j])) for i, j in np.argwhere(links)]
    connection.execute("CREATE TEMP TABLE links (i INTEGER, j INTEGER, val DOUBLE)")
    connection.executemany("INSERT INTO links VALUES (?, ?, ?)", entries)
    program = ucle.einsum_program(
        f"""
        q[i] += A[i,j] * p[j]
        r[i] = {damping} * q[i] + {(1 - damping) / 4}
        delta[] = sum[i](abs(r[i] - p[i]))
        """,
        A=ucle.table("links", bounds=[4, 4]),
        p=np.full(4, 0.25),
        outputs=["r", "delta"],
        database=connection,
    )
    return program, links


@pytest.mark.turns(3)
@pytest.mark.sample(1)
def test_a_loop_ends_as_on_one_machine(fresh: duckdb.DuckDBPyConnection) -> None:
    program, _ = ranks(fresh, damping=0.2)  # with 0.85 it would take 162 steps
    carry = {"p": "r"}
    alone = program.iterate(carry, "delta[] < 1e-12", max_steps=200)
    for seed in range(4):
        loop = Loop(carry, "delta[] < 1e-12", 200)
        apart = iterate_on_partitions(program, fresh, loop, 3, seed)
        assert (apart.steps, apart.converged) == (alone.steps, True)
        np.testing.assert_allclose(apart.history["delta"], alone.history["delta"], 1e-6, 1e-15)
        np.testing.assert_allclose(apart.tensors["r"].to_numpy(), alone["r"].to_numpy(), 1e-12)


def test_fixed_inputs_stay_where_they_are(fresh: duckdb.DuckDBPyConnection) -> None:
    """The graph is read and placed once, and each later step moves the state alone."""
    program, links = ranks(fresh)
    with prepare_on_partitions(program, fresh, {"p": "r"}, 3) as run:
        expected = np.full(4, 0.25)
        for step in range(25):
            expected = 0.85 * links @ expected + 0.0375
            np.testing.assert_allclose(run()["r"].to_numpy(), expected, 1e-12)
            if step == 0:
                fresh.execute("DROP TABLE links")


def test_a_state_stays_where_the_next_step_reads_it(fresh: duckdb.DuckDBPyConnection) -> None:
    """Only where its placement is not the one that is wanted, it is counted as moved."""
    program, _ = ranks(fresh)
    carry = {"p": "r"}

    def plan_of(*, stays: bool = True, seed: int | None = None) -> DistributedPlan:
        def cut(planned: Planned, repeated: Repeated) -> DistributedPlan:
            own = repeated if stays else replace(repeated, carried={})
            if seed is None:
                return distribute(planned, NETWORK, 3, own)
            return draw_plan(planned, 3, seed, repeated=own)

        return StepPlans(program.compiled, carry, ["p"], cut).step.again

    state = 4 * 8.0  # four numbers in one tuple
    assert plan_of().bytes == 0.0
    assert plan_of(stays=False).bytes == state
    seen = set()
    for seed in range(20):
        drawn = plan_of(seed=seed)
        (made,) = (x for f in drawn.fragments for x in f.made if x.read.step == drawn.outputs["r"])
        for incoming in (x for f in drawn.fragments for x in f.incoming if x.origin == "p held"):
            stays = made.placement.stored.serves(incoming.placement)
            assert incoming.bytes == (0.0 if stays else state)
            seen.add(stays)
    assert seen == {True, False}


def test_what_is_made_once_stays_where_steps_read_it(fresh: duckdb.DuckDBPyConnection) -> None:
    """Otherwise it is counted as moved once more, after the rows that it was made of."""
    program, links = ranks(fresh)
    carry, seen = {"p": "r"}, set()
    for seed in range(20):

        def cut(planned: Planned, repeated: Repeated, seed: int = seed) -> DistributedPlan:
            return draw_plan(planned, 3, seed, repeated=repeated)

        plans = StepPlans(program.compiled, carry, ["p"], cut)
        before, start, again = plans.before, plans.first_state("p"), plans.step.again
        assert before is not None
        assert start is not None
        placements = {
            held_name(x): made.placement.stored
            for x, step in before.outputs.items()
            for fragment in before.fragments
            for made in fragment.made
            if made.read.step == step
        }
        fixed = [x for f in again.fragments for x in f.incoming if x.kept]
        for incoming in fixed:
            stays = placements[incoming.origin].serves(incoming.placement)
            assert (incoming.bytes == 0.0) == stays
            seen.add(stays)
        copies = {x: 3 if x.placement.spread is Spread.REPLICATED else 1 for x in fixed}
        moved = sum(x.bytes * count for x, count in copies.items())
        assert again.bytes_once == before.bytes + start.bytes + moved > 0.0
        with prepare_on_partitions(program, fresh, carry, 3, seed) as run:
            run()
            expected = 0.85 * links @ (0.85 * links @ np.full(4, 0.25) + 0.0375) + 0.0375
            np.testing.assert_allclose(run()["r"].to_numpy(), expected, 1e-12)
    assert seen == {True, False}


def test_another_array_starts_the_state_again(fresh: duckdb.DuckDBPyConnection) -> None:
    program, links = ranks(fresh)
    start = np.array([1.0, 0.0, 0.0, 0.0])
    with prepare_on_partitions(program, fresh, {"p": "r"}, 2) as run:
        run()
        run()
        result = run(p=start)
        np.testing.assert_allclose(result["r"].to_numpy(), 0.85 * links @ start + 0.0375)


@pytest.mark.parametrize("entries", [[], [(0, 1)], [(0, 0), (1, 0), (2, 1)]])
def test_a_first_state_without_all_tuples(
    entries: list[tuple[int, int]], fresh: duckdb.DuckDBPyConnection
) -> None:
    """What it does not store holds its own fill, where that of later states is another."""
    state = np.zeros((3, 2), dtype=bool)
    state[tuple(np.array(entries, dtype=int).reshape(-1, 2).T)] = True
    fresh.execute("CREATE TEMP TABLE a (i INTEGER, j INTEGER, val BOOLEAN)")
    for i, j in entries:
        fresh.execute("INSERT INTO a VALUES (?, ?, true)", [i, j])
    program = ucle.einsum_program(
        "T[r,v,k] = A[r,k] + A[v,k]; B[c,d] = not A[c,d]",
        A=ucle.table("a", bounds=[3, 2]),
        database=fresh,
    )
    others = list(some_decompositions(program, 1, 6))
    for seed, each in enumerate([None, *others]):
        made = program if each is None else program.with_decomposition(each)
        expected = state
        with prepare_on_partitions(made, fresh, {"A": "B"}, PARTITIONS[seed % 3], seed) as run:
            for _ in range(3):
                result = run()
                both = expected[:, None] | expected[None]
                np.testing.assert_array_equal(result["T"].to_numpy(), both)
                expected = ~expected
                np.testing.assert_array_equal(result["B"].to_numpy(), expected)


def test_names_of_a_table_in_memory_that_no_output_reads(
    native: duckdb.DuckDBPyConnection,
) -> None:
    """Its names are coordinates all the same: the dictionary of the label reads them."""
    price = pd.DataFrame({"fruit": ["fig", "pear"], "val": [1.0, 2.0]})
    bought = pd.DataFrame({"n": [0, 0], "fruit": ["fig", "apple"], "val": [1.0, 2.0]})
    program = ucle.einsum_program(
        "double[fruit] = 2 * price[fruit]; cost[n] = bought[n,fruit] * price[fruit]",
        price=ucle.table(price),
        bought=ucle.table(bought),
        outputs=["double"],
        database=native,
    )
    with run_on_partitions(program, native, 2) as result:
        assert result["double"].to_numpy().tolist() == [0.0, 2.0, 4.0]
    with prepare_on_partitions(program, native, {}, 2) as run:
        assert run()["double"].to_numpy().tolist() == [0.0, 2.0, 4.0]


def test_a_state_that_is_not_finite(native: duckdb.DuckDBPyConnection) -> None:
    program = ucle.einsum_program(
        "y[i] = x[i] * x[i] * 1e200", x=np.array([1.0, 2.0, 0.0]), database=native
    )
    for seed in range(3):
        with prepare_on_partitions(program, native, {"x": "y"}, 2, seed) as run:
            run()
            with pytest.raises(ValueTypeError, match=r"y in the place of x"):
                run()
