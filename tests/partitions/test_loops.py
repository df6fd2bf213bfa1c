"""Random loops on 1, 2 and 5 partitions of this process, against loops in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest
from random_programs.gathers import gathered_case
from random_programs.indices import indexed_case
from random_programs.loops import is_tame, with_carry

from ucle.testing.check_matrix import some_decompositions
from ucle.testing.generate import Case, random_case
from ucle.testing.oracle import assert_equal
from ucle.testing.oracle_operators import UndefinedError
from ucle.testing.partitions import prepare_on_partitions

DRAWN: tuple[tuple[Callable[[int], Case], int], ...] = (
    (random_case, 100),
    (indexed_case, 50),
    (gathered_case, 50),
)
LOOPS = [(draw, seed) for draw, count in DRAWN for seed in range(count)]
PARTITIONS = (1, 2, 5)
STEPS = 4


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("draw", "seed"), LOOPS, ids=[f"{draw.__name__}-{seed}" for draw, seed in LOOPS]
)
def test_random_loops(
    draw: Callable[[int], Case],
    seed: int,
    native: duckdb.DuckDBPyConnection,
    plain: duckdb.DuckDBPyConnection,
) -> None:
    case, connection = draw(seed), plain if seed % 4 == 3 else native
    try:
        case, carry = with_carry(case, seed)
        case.expected()
    except (UndefinedError, ValueError):
        pytest.skip("the program has no answer")
    case.create_tables(connection)
    try:
        program = case.compile(connection)
        if seed % 3 == 0:
            program = program.with_decomposition(list(some_decompositions(program, seed, 3))[-1])
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
