"""Random programs on 1, 2 and 5 partitions of this process, against NumPy.

Every choice of where tensors lie is a legal plan, so that plans are drawn, as rows are scattered.
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import pytest
from random_programs.gathers import gathered_case
from random_programs.indices import indexed_case
from random_programs.levels import levelled_case

from ucle import einsum_program
from ucle.errors import CoordinateError
from ucle.partitions.choices import Network
from ucle.testing.check_matrix import some_decompositions
from ucle.testing.generate import Case, random_case, special_case
from ucle.testing.oracle import assert_equal
from ucle.testing.partitions import cheapest, draw_plan, run_on_partitions

DRAWN: tuple[tuple[Callable[[int], Case], int], ...] = (
    (random_case, 100),
    (special_case, 30),
    (levelled_case, 70),
    (indexed_case, 50),
    (gathered_case, 50),
)
PROGRAMS = [(draw, seed) for draw, count in DRAWN for seed in range(count)]
PARTITIONS = (1, 2, 5)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("draw", "seed"), PROGRAMS, ids=[f"{draw.__name__}-{seed}" for draw, seed in PROGRAMS]
)
def test_random_programs(
    draw: Callable[[int], Case],
    seed: int,
    native: duckdb.DuckDBPyConnection,
    plain: duckdb.DuckDBPyConnection,
) -> None:
    """The chosen decomposition on a drawn plan, and of some programs a drawn one, too."""
    case, connection = draw(seed), plain if seed % 4 == 3 else native
    expected = case.expected()
    case.create_tables(connection)
    try:
        program = case.compile(connection)
        others = list(some_decompositions(program, seed, 3))[2:] if seed % 3 == 0 else []
        for number, way in enumerate(["auto", *others]):
            tried = program if way == "auto" else program.with_decomposition(way)
            partitions = PARTITIONS[(seed + number) % 3]
            with run_on_partitions(tried, connection, partitions, seed) as result:
                for name in result:
                    context = f"{partitions} partitions, {way}, {name}\n{case}"
                    assert_equal(result[name].to_numpy(), expected[name], context)
    finally:
        case.drop_tables(connection)


@pytest.mark.slow
def test_plans_differ(native: duckdb.DuckDBPyConnection) -> None:
    """Were all plans of one partition, the test above would be green for the wrong reason."""
    placements, fragments = set[str](), set[int]()
    for seed in range(60):
        case = random_case(seed)
        case.create_tables(native)
        try:
            plan = draw_plan(case.compile(native).compiled, 5, seed)
        finally:
            case.drop_tables(native)
        fragments.add(len(plan.fragments))
        placements |= {x.placement.spread.value for f in plan.fragments for x in f.incoming}
    assert placements == {"single", "replicated", "by axes", "scattered"}
    assert max(fragments) > 3


@pytest.mark.sample(1)
def test_text_ids(fresh: duckdb.DuckDBPyConnection) -> None:
    """Ids of two tables are numbered together, and partitions know the numbers."""
    fresh.execute(
        "CREATE TEMP TABLE likes AS SELECT * FROM (VALUES "
        "('ann', 'tea', 1.0), ('bob', 'tea', 2.0), ('ann', 'ale', 4.0)) t(u, d, val)"
    )
    fresh.execute(
        "CREATE TEMP TABLE price AS SELECT * FROM (VALUES "
        "('tea', 3.0), ('ale', 5.0), ('gin', 7.0)) t(d, val)"
    )
    program = einsum_program("z[u] += A[u,d] * p[d]", A="likes", p="price", database=fresh)
    for seed in range(6):
        with run_on_partitions(program, fresh, 3, seed) as result:
            rows = result["z"].to_arrow().sort_by("u")
            assert rows["u"].to_pylist() == ["ann", "bob"]
            assert rows["val"].to_pylist() == [23.0, 6.0]


@pytest.mark.parametrize("row", ["('eve', 0, 1.0)", "('ann', 2, 1.0)", "(NULL, 1, 1.0)"])
def test_tables_that_have_changed(row: str, fresh: duckdb.DuckDBPyConnection) -> None:
    """Coordinates that a plan does not know of are an error, and never left out."""
    fresh.execute(
        "CREATE TEMP TABLE changing AS "
        "SELECT * FROM (VALUES ('ann', 0, 1.0), ('bob', 1, 2.0)) t(u, j, val)"
    )
    program = einsum_program("y[u] += A[u,j] * x[j]", A="changing", x=np.ones(2), database=fresh)
    fresh.execute(f"INSERT INTO changing VALUES {row}")
    for seed in range(4):
        with pytest.raises(CoordinateError, match="the program again"):
            run_on_partitions(program, fresh, 3, seed)


def test_numbers_that_outgrow_their_type(native: duckdb.DuckDBPyConnection) -> None:
    """0 * infinity of numbers that have outgrown their type is 0, on partitions, too."""
    large = np.full((4, 4), 1e200)
    sparse = np.eye(4)
    program = einsum_program(
        "T[i,k] += X[i,j] * X[j,k]\nZ[i,k] = T[i,k] * A[i,k]", X=large, A=sparse, database=native
    )
    with program.execute(native) as whole:
        expected = whole["Z"].to_numpy()
    for seed in range(4):
        with run_on_partitions(program, native, 3, seed) as result:
            assert_equal(result["Z"].to_numpy(), expected, f"seed {seed}")


def test_the_search_finds_the_cheapest_choice(native: duckdb.DuckDBPyConnection) -> None:
    """No plan drawn at random is cheaper than the chosen one."""
    for seed in range(12):
        case = random_case(seed)
        case.create_tables(native)
        try:
            compiled = case.compile(native).compiled
        finally:
            case.drop_tables(native)
        # With jobs for nothing, there is something to win by moving.
        network = Network(workers=5, job=1e3, byte=0.5)
        chosen = cheapest(compiled, 5, network)
        for other in range(20):
            assert chosen.seconds <= draw_plan(compiled, 5, other, network).seconds * (1 + 1e-9)
