"""The rules of the implementation algebra: where inputs have to lie, and what moves.

`R2-4` and so on are the rules of tensor_relational_algebra.txt, Table 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest

from ucle import connect, einsum_program, table
from ucle.partitions.choices import Network, Problem
from ucle.partitions.cut import cut
from ucle.partitions.distribute import EstimatedSizes
from ucle.partitions.fragments import DistributedPlan
from ucle.plan.placement_rules import REPLICATED, SCATTERED, SINGLE, Placement, Spread, Way, ways
from ucle.plan.relation_nodes import Aggregate
from ucle.plan.steps import Plan
from ucle.testing.partitions import cheapest

RNG = np.random.default_rng(5)
BY_I, BY_J = Placement.by(0), Placement.by(1)


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """A graph of 3,000 edges, features of 200 nodes in arrays, and numbers of nodes."""
    with connect(threads=2) as connection:
        connection.execute(
            "CREATE TEMP TABLE g AS SELECT DISTINCT (x * 7919 % 200)::INT i, "
            "(x * 104729 // 200 % 200)::INT j, 1.0 val FROM range(3000) t(x)"
        )
        connection.execute(
            "CREATE TEMP TABLE h AS SELECT x::INT j, "
            "list_transform(range(64), lambda k: x / (k + 1.0)) val FROM range(200) t(x)"
        )
        connection.execute("CREATE TEMP TABLE v AS SELECT x::INT i, 1.5 val FROM range(200) t(x)")
        yield connection


def compiled(tables: Any, text: str, **options: Any) -> Any:
    inputs = {name: name for name in "ghv" if f"{name}[" in text}
    return einsum_program(text, inputs=inputs, database=tables, **options).compiled


def steps(plan: Plan) -> dict[str, tuple[Way, ...]]:
    return {s.name: ways(s.relation) for s in plan.steps if isinstance(s.relation, Aggregate)}


def chosen(made: Any, choice: dict[str, Way], partitions: int = 2) -> DistributedPlan:
    problem = Problem(made.plan, EstimatedSizes(made), Network(), partitions)
    return cut(problem, choice)


def test_r2_4_an_aggregation_by_the_keys_that_tuples_lie_by_moves_nothing(tables: Any) -> None:
    made = compiled(tables, "d[i] += g[i,j]", decomposition="relational")
    every = steps(made.plan)["d"]
    assert Way((BY_I,), BY_I) in every
    plan = chosen(made, {"d": Way((BY_I,), BY_I)})
    assert [[x.tensor for x in f.incoming] for f in plan.fragments] == [["g"]]


def test_r2_5_any_other_aggregation_has_two_phases(tables: Any) -> None:
    made = compiled(tables, "d[i] += g[i,j]", decomposition="relational")
    every = steps(made.plan)["d"]
    assert Way((BY_J,), BY_I) not in every
    assert Way((BY_J,), BY_I, combined=True) in every
    plan = chosen(made, {"d": Way((BY_J,), BY_I, combined=True)})
    first, second = plan.fragments
    assert [x.tensor for x in first.incoming] == ["g"]
    assert [(x.tensor, x.placement, x.columns) for x in second.incoming] == [("d", BY_I, ("i",))]
    assert second.incoming[0].origin == first.made[0].read.step


def test_two_phases_lose_nothing_that_counts(tables: Any) -> None:
    """A maximum over fibres that are partly stored has to know how many it has met."""
    made = compiled(tables, "m[i] max= g[i,j]", decomposition="relational")
    (every,) = steps(made.plan).values()
    assert made.plan.steps[-1].relation.missing is not None
    assert not any(way.combined for way in every)
    assert {way.makes for way in every} == {SINGLE, REPLICATED, BY_I, SCATTERED} - {SCATTERED}


def test_r2_6_a_join_with_a_copy_of_one_side(tables: Any) -> None:
    made = compiled(tables, "Z[i,k] += g[i,j] * h[j,k]")
    every = steps(made.plan)["Z"]
    assert Way((BY_I, REPLICATED), BY_I) in every
    assert Way((SCATTERED, REPLICATED), BY_I, combined=True) in every
    assert not any(way.reads == (REPLICATED, SCATTERED) and not way.combined for way in every)


def test_r2_7_a_join_of_two_relations_by_the_same_keys(tables: Any) -> None:
    made = compiled(tables, "Z[i,k] += g[i,j] * h[j,k]")
    every = steps(made.plan)["Z"]
    by_j = (BY_J, Placement.by(0))
    assert {way.combined for way in every if way.reads == by_j} == {True}
    # By other keys than those that they share, partners would miss each other.
    assert not any(way.reads == (BY_I, Placement.by(0)) for way in every)
    assert not any(SCATTERED in way.reads and REPLICATED not in way.reads for way in every)


def test_r2_1_between_two_steps_a_tensor_moves_once(tables: Any) -> None:
    text = "d[i] += g[i,j]\nA[i] = d[i] * v[i]\nB[i] = d[i] + 1"
    made = compiled(tables, text, decomposition="relational", association="as-written")
    choice = {}
    for name, every in Problem(made.plan, EstimatedSizes(made), Network(), 2).ways.items():
        wanted = SINGLE if name != "d" else BY_I
        choice[name] = next(w for w in every if w.makes == wanted and not w.combined)
    plan = chosen(made, choice)
    brought = [x.tensor for x in plan.fragments[1].incoming]
    assert brought.count("d") == 1


def test_r2_2_and_r2_3_what_goes_on_inside_of_tuples_moves_nothing(tables: Any) -> None:
    made = compiled(tables, "Y[j,k] = relu(h[j,k]) * 2")
    plan = cheapest(made, 2, Network(job=0.0))
    assert len(plan.fragments) == 1
    for every in steps(made.plan).values():
        for place in (SINGLE, REPLICATED, SCATTERED, Placement.by(0)):
            assert Way((place,), place) in every


def test_an_outer_join_keeps_the_rows_of_the_side_that_is_copied_once(tables: Any) -> None:
    """Rows of a copy that find no partner would be there on each partition."""
    tables.execute("CREATE OR REPLACE TEMP TABLE w AS SELECT 3::INT i, 2.0 val")
    program = einsum_program(
        "Z[i] = (v[i] + 1) * (w[i] + 2)",
        v=table("v", bounds=[300]),
        w=table("w", bounds=[300]),
        database=tables,
        decomposition="relational",
    )
    joins = [s.relation for s in program.compiled.plan.steps if isinstance(s.relation, Aggregate)]
    for relation in joins:
        for way in ways(relation):
            if way.makes.spread in (Spread.BY_AXES, Spread.SCATTERED) and len(way.reads) == 2:
                kind = relation.input.input.kind.name
                copied = [p == REPLICATED for p in way.reads]
                assert copied != [True, False] or kind in ("INNER", "RIGHT")
                assert copied != [False, True] or kind in ("INNER", "LEFT")


def test_no_plan_moves_a_product_for_each_edge(tables: Any) -> None:
    made = compiled(tables, "Z[i,k] += g[i,j] * h[j,k]")
    edges = tables.execute("SELECT count(*) FROM g").fetchone()[0]
    products = edges * 64 * 8
    for gigabits in (0.1, 1, 10, 100):
        for partitions in (2, 8):
            network = Network(workers=partitions, gigabits=gigabits, job=1e3)
            plan = cheapest(made, partitions, network)
            for fragment in plan.fragments[1:]:
                for incoming in fragment.incoming:
                    assert incoming.bytes < products


def test_a_network_decides_between_broadcast_and_shuffle(tables: Any) -> None:
    """With few partitions a copy for each of them is cheaper, with many two phases are."""
    made = compiled(tables, "Z[i,k] += g[i,j] * h[j,k]")
    few = cheapest(made, 2, Network(workers=2, job=0.0))
    assert any(x.placement == REPLICATED for f in few.fragments for x in f.incoming)
    large = [
        x
        for f in cheapest(made, 4096, Network(workers=4096, job=0.0)).fragments
        for x in f.incoming
        if x.placement == REPLICATED
    ]
    assert not large
