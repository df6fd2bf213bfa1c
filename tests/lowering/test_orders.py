"""Orders of many sparse factors: whole, the same every time, far below what sizes alone give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse

import ucle
from ucle.foundation.dtypes import DType
from ucle.ir.contraction_trees import Tree, in_order, leaves
from ucle.ir.layouts import Label
from ucle.ir.tensor_types import TensorType
from ucle.lowering.contract import KnownContractions
from ucle.lowering.joined_parts import JoinedFactors, Parts
from ucle.lowering.logical import Contraction, Use
from ucle.lowering.pairwise import Pairwise, leaf
from ucle.lowering.product_orders import MOST_JOINS, exact_order, greedy_orders
from ucle.lowering.syntax_to_logical import syntax_to_logical
from ucle.operators import COMBINES, MULT, REDUCES
from ucle.stats import ESTIMATORS, TensorStatistics
from ucle.stats.estimate import MeasuredInputs
from ucle.testing.check_matrix import Routes

ESTIMATOR = ESTIMATORS["degrees"]


def pattern(edges: list[tuple[int, int]], nodes: int) -> Pairwise:
    """One factor for each edge, and one for the labels of each vertex, all summed up."""
    labels = [Label(f"x{n}", nodes) for n in range(1 + max(map(max, edges)))]
    factors = [(label,) for label in labels] + [(labels[a], labels[b]) for a, b in edges]
    uses = tuple(Use(f"T{n}", axes, DType.FLOAT64) for n, axes in enumerate(factors))
    written: Tree = 0
    for number in range(1, len(factors)):
        written = (written, number)
    step = Contraction(
        "c.1", uses, COMBINES["mult"], REDUCES["sum"], tuple(labels), DType.FLOAT64, written
    )
    return Pairwise(step, [(axes, TensorType(axes)) for axes in factors])


def parts_of(pairwise: Pairwise, entries: int, degree: int) -> Parts:
    """The parts for a graph of so many edges, and vertex labels that a tenth of the nodes have."""
    statistics = {}
    for number, factor in enumerate(pairwise.factors):
        nodes = float(factor.labels[0].bound)
        one = len(factor.labels) == 1
        counts = TensorStatistics(
            nodes / 10 if one else entries,
            (nodes / 10,) if one else (nodes, nodes),
            True,
            (1.0,) if one else (degree, degree),
        )
        statistics[leaf(number)] = ESTIMATOR.from_counts(TensorType(factor.labels), counts)
    return Parts(pairwise, statistics, ESTIMATOR)


def orders(pairwise: Pairwise, entries: int, degree: int) -> list[Tree]:
    """The greedy orders, and the best one if there is a better one."""
    parts = parts_of(pairwise, entries, degree)
    greedy = greedy_orders(parts)
    best = exact_order(parts, min(x.emitted for x in greedy)) if greedy else None
    return [in_order(x.tree) for x in (*greedy, *([best] if best else []))]


def random_pattern(rng: np.random.Generator, least: int, most: int) -> Pairwise:
    """A path over some vertices, with a few more edges."""
    vertices = int(rng.integers(least, most))
    every = list(combinations(range(vertices), 2))
    path = [(n, n + 1) for n in range(vertices - 1)]
    chosen = [every[n] for n in rng.permutation(len(every))[: int(rng.integers(0, 6))]]
    return pattern(list(dict.fromkeys([*path, *chosen])), 10_000)


def every_order(parts: Parts, now: list[JoinedFactors]) -> Iterator[float]:
    """The tuples that each order emits if it joins only factors with a common label."""
    if len(now) == 1:
        yield now[0].emitted
    for one, other in combinations(now, 2):
        if one.shares_labels(other):
            rest = [x for x in now if x is not one and x is not other]
            yield from every_order(parts, [*rest, parts.join_parts(one, other)])


@pytest.mark.sample(None)
@pytest.mark.parametrize("seed", range(12))
def test_the_exact_order_is_the_best(seed: int) -> None:
    parts = parts_of(random_pattern(np.random.default_rng(seed), 3, 6), 50_000, 40)
    single = parts.absorbed
    if len(single) > 5:
        return
    greedy = min(x.emitted for x in greedy_orders(parts))
    best = exact_order(parts, greedy)
    found = greedy if best is None else best.emitted
    # Which way a set of factors was joined makes a small difference to what is estimated of it.
    assert found <= 1.1 * min(every_order(parts, single))


def test_components_are_joined_last() -> None:
    """Two paths that have nothing in common, each summed to a number."""
    parts = parts_of(pattern([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)], 10_000), 50_000, 40)
    best = exact_order(parts, math.inf)
    assert best is not None
    assert best.emitted < 1e9
    one, other = best.tree if not isinstance(best.tree, int) else (0, 0)
    assert {frozenset(leaves(one)), frozenset(leaves(other))} == {
        frozenset({0, 1, 2, 6, 7, 8}),
        frozenset({3, 4, 5, 9, 10, 11}),
    }


def test_the_effort_is_bounded() -> None:
    """Five vertices, all of them connected, have too many orders to look at each."""
    pairs = list(combinations(range(5), 2))
    parts = parts_of(pattern(pairs, 10_000), 50_000, 40)
    before = parts.looked_at
    assert exact_order(parts, 1e30) is None
    assert parts.looked_at - before <= MOST_JOINS + len(parts.factors)


@pytest.mark.parametrize("seed", range(20))
def test_every_factor_is_joined_once(seed: int) -> None:
    pairwise = random_pattern(np.random.default_rng(seed), 4, 8)
    trees = orders(pairwise, 50_000, 40)
    assert trees
    for tree in trees:
        assert sorted(leaves(tree)) == list(range(len(pairwise.factors)))
        # No join goes through more than two new labels at a time: nothing is a product of all.
        assert max(len(vertex.all_labels) for vertex in pairwise.vertices(tree)) <= 5
    assert trees == orders(pairwise, 50_000, 40)


def test_small_spaces_and_long_products_are_left_alone() -> None:
    assert orders(pattern([(0, 1), (1, 2)], 10), 30, 5) == []
    circuit = pattern([(n, n + 1) for n in range(60)], 10_000)
    assert orders(circuit, 50_000, 40) == []


def test_what_two_factors_share_counts_once() -> None:
    """`(c P) (c P)` joins c and P once, so that it has fewer tuples than `(c c) P P`."""
    rng = np.random.default_rng(2)
    P = scipy.sparse.random_array((2000, 60), density=0.02, rng=rng)
    text = "Y[j,l] += c[p] * P[p,j] * c[p] * {}[p,l]"
    inputs = {"c": rng.random(2000), "P": P, "Q": P}
    for other, expected in ("P", 2), ("Q", 3):
        given = {name: x for name, x in inputs.items() if name in ("c", "P", other)}
        program = ucle.einsum_program(text.format(other), inputs=given, rewrite="none").compiled
        counts = {name: placed.statistics for name, placed in program.inputs.items()}
        known = KnownContractions(MeasuredInputs(counts, ESTIMATOR))
        contracted = known.contract(syntax_to_logical(program.front.source))
        assert len(contracted.program.vertices) == expected


def test_counts_of_a_pattern(routes: Routes) -> None:
    """A house (a square with a roof, and labels of its vertices), as NumPy counts it."""
    rng = np.random.default_rng(4)
    nodes = 24
    graph = np.triu(rng.random((nodes, nodes)) < 0.2, 1)
    graph = (graph | graph.T).astype(float)
    inputs = {"E": graph, **{f"L{n}": (rng.random(nodes) < 0.5).astype(float) for n in range(5)}}
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)]
    terms = [f"L{n}[x{n}]" for n in range(5)] + [f"E[x{a},x{b}]" for a, b in edges]
    assert math.prod([nodes] * 5) > 2**20
    letters = [f"{'abcde'[n]}" for n in range(5)] + [f"{'abcde'[a]}{'abcde'[b]}" for a, b in edges]
    arrays = [*(inputs[f"L{n}"] for n in range(5)), *[graph] * len(edges)]
    expected = np.einsum(",".join(letters) + "->", *arrays, optimize=True)
    for connection in routes.values():
        text = "c += " + " * ".join(terms)
        program = ucle.einsum_program(text, inputs=inputs, database=connection)
        for tried in (program, program.with_decomposition("relational")):
            with tried.execute() as result:
                assert result["c"].to_numpy() == expected


def test_a_state_keeps_its_order_whatever_side_it_stands_on() -> None:
    """A gate on a state has as many labels, and may be sparse: no kernel makes the other order."""
    F, R = np.eye(4), np.ones((4, 2))
    for product in ("F[i,n] * R[i,s]", "R[i,s] * F[i,n]"):
        program = ucle.einsum_program(f"y[n,s] = 0.5 * sum[i]({product}) + 1", F=F, R=R)
        (vertex,) = (v for v in program.compiled.program.vertices if v.combine is MULT)
        assert vertex.names == ("n", "s")


@pytest.mark.parametrize("product", ["X[k,l] * S[j,k] * D[j,l]", "X[k,l] * D[j,l] * S[j,k]"])
def test_columns_of_a_dense_factor_stay_next_to_each_other(product: str) -> None:
    """Where a sparse and a dense matrix begin with the summed label, the dense one's order stays.

    No kernel makes the other order. Statements that name the inner sum cost as much.
    """
    rng = np.random.default_rng(0)
    S = scipy.sparse.random_array((2000, 2000), density=0.003, rng=rng, format="coo")
    inputs = {"S": S, "D": rng.random((2000, 60)), "X": rng.random((2000, 60))}
    one = ucle.einsum_program(f"y[k] = sum[l,j]({product})", inputs=inputs)
    stated = "T[k,l] = sum[j](S[j,k] * D[j,l])\ny[k] = sum[l](X[k,l] * T[k,l])"
    more = ucle.einsum_program(stated, inputs=inputs)
    costs = [x.compiled.decomposed.total_cost for x in (one, more)]
    assert max(costs) < 1.2 * min(costs)
    with one.execute() as result:
        expected = (inputs["X"] * (S.T @ inputs["D"])).sum(axis=1)
        np.testing.assert_allclose(result["y"].to_numpy(), expected)
