"""Searches over DAGs: exact with shared vertices, k best, bounded, greedy, and of many labels."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from costed_programs import (
    brute_force,
    enumerate_choices,
    optimum_by_layouts,
    random_program,
    total,
)

import ucle
from ucle.errors import InputError
from ucle.ir.layouts import RESULT, Decomposition, Label, Level
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.operators import ADD, MULT, SUM
from ucle.optimiser import sparse_einsum as sparse_einsum_module
from ucle.optimiser.known_prices import Prices
from ucle.optimiser.pricing import CostedProgram
from ucle.optimiser.sparse_einsum import METHODS, cheapest_plans, sparse_einsum
from ucle.options import Optimisations
from ucle.plan.decomposition import StoredInput
from ucle.plan.prices import ENGINE, PAPER
from ucle.plan.resources import Resources
from ucle.stats import Occupancy, ProgramStatistics, TensorStatistics

DAGS = 500
NOTHING = 1e-5
"""The share of the price of a view that compressed arrays of small tensors, which are not searched,
may save."""
RNG = np.random.default_rng(0)


def random_dag(seed: int) -> CostedProgram:
    """At most 9 vertices, at most 3 of them shared."""
    return random_program(seed, (ENGINE, PAPER)[seed % 2], shared=3, vertices=(4, 9))


def shared(program: Program) -> list[str]:
    return [v.name for v in program.vertices if len(program.uses[v.name]) > 1]


@pytest.mark.sample(40)
@pytest.mark.parametrize("seed", range(DAGS))
def test_dags_are_optimal(seed: int) -> None:
    costed = random_dag(seed)
    found = sparse_einsum(costed)
    assert found.search is not None
    assert found.search.exact
    nothing = NOTHING * costed.profile.view
    assert found.total_cost == pytest.approx(optimum_by_layouts(costed), rel=1e-12, abs=nothing)


def _with_other_names(program: Program) -> Program:
    """The same program with other names of its vertices and labels; only its inputs keep theirs."""

    def rename(labels: tuple[Label, ...]) -> tuple[Label, ...]:
        return tuple(replace(label, name=f"of_{label.name}") for label in labels)

    names = {vertex.name: f"other_{vertex.name}" for vertex in program.vertices}
    vertices = [
        replace(
            vertex,
            tensor=NamedTensor(
                names[vertex.name],
                replace(vertex.tensor.type, axes=rename(vertex.tensor.type.axes)),
            ),
            inputs=tuple(
                Operand(names.get(operand.tensor, operand.tensor), rename(operand.labels))
                for operand in vertex.inputs
            ),
            labels=rename(vertex.labels),
        )
        for vertex in program.vertices
    ]
    outputs = tuple(names.get(name, name) for name in program.outputs)
    return Program(program.inputs, tuple(vertices), outputs)


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_known_by_other_names(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    costed = random_dag(seed)
    sparse_einsum(costed)
    program = _with_other_names(costed.program)
    statistics = replace(costed.statistics, program=program)
    other = replace(costed, program=program, statistics=statistics)
    anew = sparse_einsum(replace(other, prices=Prices()))
    monkeypatch.setattr(sparse_einsum_module, "first_domains", None)
    found = sparse_einsum(other)
    assert found.decompositions == anew.decompositions
    assert found.costs == anew.costs


def test_compressed_labels_are_renamed_with_the_others() -> None:
    levels, compressed = (Level.TILED, Level.DENSE), frozenset({(0, "j"), (RESULT, "j")})
    renamed = Decomposition(("i", "j"), levels, compressed).rename_labels(("j", "k"))
    assert renamed == Decomposition(("j", "k"), levels, frozenset({(0, "k"), (RESULT, "k")}))


def test_structural_numbers_tell_apart_where_labels_are() -> None:
    i, j, k = (Label(name, 4) for name in "ijk")
    A, B = (NamedTensor(name, TensorType((i, j))) for name in "AB")
    operands = [(Operand("A", (i, j)), Operand("B", x)) for x in [(j, k), (k, j)]]
    vertices = tuple(
        Vertex(NamedTensor(f"T{n}", TensorType((i, k))), each, (i, k), MULT, reduce=SUM)
        for n, each in enumerate(operands)
    )
    numbers = Prices().number_tensors(Program((A, B), vertices, ("T0", "T1")))
    assert numbers["T0"] != numbers["T1"]


@pytest.mark.parametrize("seed", [305, 833, 862])
def test_layouts_that_pay_with_some_layout_of_a_shared_vertex(seed: int) -> None:
    """A few larger ones in which a tensor lies otherwise for each layout of what is shared."""
    costed = random_program(seed, (ENGINE, PAPER)[seed % 2], shared=3, vertices=(5, 10))
    assert sparse_einsum(costed).total_cost == pytest.approx(optimum_by_layouts(costed), rel=1e-12)


@pytest.mark.slow
def test_small_tensors_are_not_searched() -> None:
    """Some of the programs above are so small, and are compared with the optimum there."""
    found = [sparse_einsum(random_dag(seed)) for seed in range(0, DAGS, 2)]
    priced = [
        x.search.priced == len(x.program.vertices)
        for x in found
        if x.search and not any(x.promoted.values())
    ]
    assert sum(priced) >= 10


def test_the_dags_share_vertices() -> None:
    """DAGs without any would make the test above one of trees."""
    counts = [len(shared(random_dag(seed).program)) for seed in range(DAGS)]
    assert max(counts) == 3
    assert all(counts.count(n) >= 30 for n in (1, 2, 3))


@pytest.mark.sample(None)
@pytest.mark.parametrize("seed", range(40))
def test_brute_force_agrees_with_itself(seed: int) -> None:
    costed = random_program(seed, ENGINE, shared=1)
    assert optimum_by_layouts(costed) == pytest.approx(brute_force(costed), rel=1e-12)


@pytest.mark.slow
def test_trees_and_greed_cost_more_on_some_dags() -> None:
    costs = {
        method: [sparse_einsum(random_dag(seed), method=method).total_cost for seed in range(100)]
        for method in METHODS
    }
    for method in ("trees", "greedy"):
        ratios = [x / y for x, y in zip(costs[method], costs["dag"], strict=True) if y > 0]
        assert min(ratios) >= 1 - 1e-12
        assert max(ratios) > 1.05, method
    assert sum(costs["greedy"]) > sum(costs["trees"])


@pytest.mark.sample(24)
@pytest.mark.parametrize("seed", range(60))
def test_the_cheapest_plans_are_those_of_brute_force(seed: int) -> None:
    costed = random_program(seed, ENGINE, shared=seed % 2)
    every = sorted(total(costed, choice) for choice in enumerate_choices(costed, {}))
    found = list(cheapest_plans(costed, 12))
    assert [plan.total_cost for plan in found] == pytest.approx(every[:12], rel=1e-12)
    assert len({tuple(plan.promoted.items()) for plan in found}) == len(found)


def test_there_may_be_fewer_plans_than_asked_for() -> None:
    costed = random_program(3, ENGINE)
    pinned = {v.name: v.all_promoted for v in costed.program.vertices}
    last = costed.program.vertices[-1]
    del pinned[last.name]
    assert len(list(cheapest_plans(costed, 1000, pinned))) == 2 ** len(last.all_labels)


def searched(costed: CostedProgram, **switches: Any) -> CostedProgram:
    """The program, searched in another way."""
    return replace(costed, optimisations=Optimisations(**switches))


@pytest.mark.sample(36)
@pytest.mark.parametrize("seed", range(60))
def test_a_bounded_search_stays_between_the_optimum_and_the_trees(seed: int) -> None:
    costed = random_dag(seed)
    best, trees = (sparse_einsum(costed, method=m).total_cost for m in ("dag", "trees"))
    found = sparse_einsum(searched(costed, exact_cells=20))
    assert best * (1 - 1e-12) <= found.total_cost <= trees * (1 + 1e-12)
    if len(shared(costed.program)) > 1:
        assert found.search is not None
        assert found.search.exact is (found.search.exact and found.total_cost == best)


@pytest.mark.slow
def test_neighbours_lead_to_the_optimum_mostly() -> None:
    optima = [sparse_einsum(random_dag(seed)).total_cost for seed in range(100)]
    found = [
        sparse_einsum(searched(random_dag(seed), wide_vertex=2, skip_small=False))
        for seed in range(100)
    ]
    ratios = [x.total_cost / y for x, y in zip(found, optima, strict=True) if y > 0]
    assert min(ratios) >= 1 - 1e-12
    assert sum(ratio < 1 + 1e-9 for ratio in ratios) >= 0.9 * len(ratios)
    wide = [x for x in found if any(len(v.all_labels) > 1 for v in x.program.vertices)]
    assert not any(x.search.exact for x in wide if x.search is not None)


def circuit(qubits: int, gates: int, entries: float) -> CostedProgram:
    """A chain of gates on one qubit each, on a state of which some entries are not 0."""
    labels = tuple(Label(f"q{n}", 2) for n in range(qubits))
    state = NamedTensor("S", TensorType(labels))
    inputs, vertices = [state], []
    statistics = {"S": TensorStatistics(entries, (min(2.0, entries),) * qubits, exact=True)}
    for number in range(gates):
        old = state.type.axes[number % qubits]
        new = Label(f"r{number}", 2)
        gate = NamedTensor(f"G{number}", TensorType((new, old)))
        inputs.append(gate)
        statistics[gate.name] = TensorStatistics(4, (2, 2), exact=True)
        kept = tuple(new if x == old else x for x in state.type.axes)
        made = NamedTensor(f"S{number}", TensorType(kept))
        operands = Operand(state.name, state.type.axes), Operand(gate.name, (new, old))
        vertices.append(Vertex(made, operands, kept, MULT, reduce=SUM))
        state = made
    program = Program(tuple(inputs), tuple(vertices), (state.name,))
    stored = {tensor.name: StoredInput() for tensor in inputs}
    resources = Resources(2**33, threads=2)
    known = ProgramStatistics(program, statistics, Occupancy())
    return CostedProgram(program, known, stored, ENGINE, resources)


@pytest.mark.slow
@pytest.mark.parametrize("entries", [1.0, 2.0**20])
def test_states_of_twenty_qubits(entries: float) -> None:
    costed = circuit(20, 24, entries)
    found = sparse_einsum(costed)
    assert found.search is not None
    assert found.search.levels == 21 * 24
    assert found.search.priced < 24 * 400
    for promote_all in (True, False):
        same = {
            v.name: v.all_promoted if promote_all else v.decomposition(())
            for v in costed.program.vertices
        }
        assert found.total_cost <= costed.total(same) * (1 + 1e-12)
    layouts = [found.made_layout(v.name) for v in costed.program.vertices]
    if entries > 1:
        assert not any(len(layout.promoted) > 10 for layout in layouts), "a full state is an array"


@pytest.mark.turns(3)
def test_a_state_of_few_entries_stays_sparse() -> None:
    """Each gate of a cat state leaves two entries; a fraction of one made whole states cheap."""
    costed = circuit(20, 24, 1.0)
    found = sparse_einsum(costed)
    largest = max(
        math.prod(label.bound for label in vertex.labels if label.name not in promoted)
        for vertex in costed.program.vertices
        for promoted in [found.promoted[vertex.name]]
    )
    assert largest < 2**20, "no whole states"
    for vertex in costed.program.vertices:
        assert costed.statistics.tensor(vertex.name).entries >= 1


@pytest.mark.turns(3)
def test_several_starts_are_never_worse() -> None:
    alone = searched(circuit(8, 16, 2.0**8), skip_small=False)
    several = searched(circuit(8, 16, 2.0**8), skip_small=False, more_starts=0.0)
    assert sparse_einsum(several).total_cost <= sparse_einsum(alone).total_cost


@pytest.mark.turns(3)
def test_a_search_ends_where_its_steps_do_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step between neighbours of many wide states takes longer than the program runs."""
    monkeypatch.setattr(sparse_einsum_module, "QUICK", 0.0)
    steps = []
    for runs in (math.inf, 0.0):
        costed = searched(circuit(9, 40, 2.0**9), runs_to_pay=runs)
        promoted = {v.name: v.all_promoted for v in costed.program.vertices}
        start = sparse_einsum_module.Solution(promoted, exact=False)
        domains = sparse_einsum_module.first_domains(costed, {})
        found = sparse_einsum_module._descend(costed, domains, start, "dag")
        assert costed.total(found.chosen) < costed.total(promoted)
        steps.append((costed.priced, -costed.total(found.chosen)))
    patient, hasty = steps
    assert hasty < patient


@pytest.mark.turns(3)
def test_a_chain_of_shared_vertices_is_no_dearer_than_in_whole_arrays() -> None:
    """Windows of 300 positions: a hundred tensors are shared, and change their layout together."""
    x = ucle.tensor(RNG.normal(size=(5, 20_000)), axes=("sensor", "time"))
    last = x.rolling(300, axis="time")
    program = ((x - last.mean()) / last.std()).program()
    names = [vertex.name for vertex in program.compiled.program.vertices]
    whole = program.with_decomposition(dict.fromkeys(names, ()))
    costs = [each.compiled.decomposed.total_cost for each in (program, whole)]
    assert costs[0] <= costs[1]


def test_a_residual_network_of_a_hundred_layers_is_solved_exactly() -> None:
    """Each layer is used twice, so that a hundred vertices are shared, two at a time."""
    i, k = Label("i", 1000), [Label("k", 64), Label("m", 64)]
    tensors = [NamedTensor("X", TensorType((i, k[0])))]
    vertices = []
    statistics = {"X": TensorStatistics(64_000, (1000, 64), exact=True)}
    state = tensors[0]
    for n in range(100):
        weight = NamedTensor(f"W{n}", TensorType((k[0], k[1])))
        tensors.append(weight)
        statistics[weight.name] = TensorStatistics(4096, (64, 64), exact=True)
        hidden = NamedTensor(f"H{n}", TensorType((i, k[1])))
        operands = Operand(state.name, (i, k[0])), Operand(weight.name, (k[0], k[1]))
        vertices.append(Vertex(hidden, operands, (i, k[1]), MULT, reduce=SUM))
        added = NamedTensor(f"X{n}", TensorType((i, k[0])))
        pair = Operand(state.name, (i, k[0])), Operand(hidden.name, (i, k[0]))
        vertices.append(Vertex(added, pair, (i, k[0]), ADD))
        state = added
    program = Program(tuple(tensors), tuple(vertices), (state.name,))
    stored = {tensor.name: StoredInput() for tensor in tensors}
    known = ProgramStatistics(program, statistics, Occupancy())
    costed = CostedProgram(program, known, stored, ENGINE, Resources(math.inf, threads=2))
    assert len(shared(program)) == 99
    found = sparse_einsum(costed)
    assert found.search is not None
    assert found.search.exact
    assert found.total_cost <= sparse_einsum(costed, method="trees").total_cost * (1 + 1e-12)


def test_plans_of_a_program_are_programs() -> None:
    rng = np.random.default_rng(5)
    inputs = {"A": rng.random((6, 5)) * (rng.random((6, 5)) < 0.4), "H": rng.random((5, 4))}
    text = "T[i,k] += A[i,j] * H[j,k]\nZ[i,l] += T[i,k] * T[l,k]"
    program = ucle.einsum_program(text, **inputs)
    product = inputs["A"] @ inputs["H"]
    expected = product @ product.T
    plans = program.plans(8)
    assert len(plans) == 8
    assert plans[0].compiled.decomposed.promoted == program.compiled.decomposed.promoted
    assert [plan.cost for plan in plans] == sorted(plan.cost for plan in plans)
    assert len({plan.to_sql() for plan in plans}) == 8
    assert len({str(plan) for plan in plans}) == 8
    for plan in plans:
        again = program.with_decomposition(plan.decomposition)
        assert (again.to_sql(), str(again)) == (plan.to_sql(), str(plan))
        with plan.execute() as result:
            np.testing.assert_allclose(result["Z"].to_numpy(), expected, atol=1e-12)
        assert sum(cost.total for cost in plan.costs.values()) == pytest.approx(plan.cost)
    with pytest.raises(InputError, match="plans"):
        program.plans(0)


def test_what_is_pinned_stays_in_all_plans() -> None:
    x = np.eye(4)
    program = ucle.einsum_program(
        "T[i,k] += X[i,j] * X[j,k]\ny[i] += T[i,k]", X=x, decomposition={"T": ["i"]}
    )
    plans = program.plans(3)
    assert {plan.compiled.decomposed.promoted["T"] for plan in plans} == {frozenset({"i"})}
    assert "search: dag" in program.explain()
    assert "the decomposition is given" in plans[0].explain()


@pytest.mark.sample(2)
@pytest.mark.parametrize("limit", ["3MB", "4MB", "5MB"])
def test_all_plans_stay_below_the_memory_limit(limit: str) -> None:
    """Arrays that have to be made dense take less than tuples of their entries."""
    rng = np.random.default_rng(0)
    a = sp.random_array((300, 300), density=0.01, rng=rng, format="coo")
    b = rng.random(300)
    program = ucle.einsum_program(
        "Z[i,j] = A[i,j] + B[j]\ny[i] += exp(Z[i,j])", A=a, B=b, memory_limit=limit
    )
    expected = np.exp(a.toarray() + b).sum(axis=1)
    for plan in program.plans(64):
        with plan.execute() as result:
            np.testing.assert_allclose(result["y"].to_numpy(), expected)


@pytest.mark.slow
def test_many_shared_vertices_of_one_layout() -> None:
    """More than an array has axes: 70 shared vectors are pinned, or scalars that all are read."""
    names = [f"h{n}" for n in range(70)]
    chain = [
        f"{name}[i] = relu({last}[i])" for last, name in zip(["x", *names], names, strict=False)
    ]
    text = "\n".join([*chain, f"z[i] = {' + '.join(f'{name}[i]' for name in names)}"])
    pinned = {name: [] for name in names}
    program = ucle.einsum_program(text, x=np.ones(3), decomposition=pinned)
    with program.execute() as result:
        np.testing.assert_array_equal(result["z"].to_numpy(), [70, 70, 70])
    free = ucle.einsum_program(text, x=np.ones(3))
    assert free.cost <= program.cost
    # Each vertex that is free makes a search of its own.
    some = ucle.einsum_program(text, x=np.ones(3), decomposition={x: [] for x in names[3:]})
    assert len(some.plans(2)) == 2


def test_neighbours_of_patterns_that_do_not_fit() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.random((13, 128, 13)), rng.random((13, 128, 13))
    text = "W[a,b,c,d,e,f] = P[a,b,c] * Q[d,e,f]\nZ[a,b,c,d,e,f] = relu(W[a,b,c,d,e,f])"
    costs = [
        ucle.einsum_program(text, P=p, Q=q, decomposition=pinned, memory_limit="2GB").cost
        for pinned in ({"Z": ["b", "e"], "W": ["b", "e"]}, {"Z": ["b", "e"]})
    ]
    assert costs[1] <= costs[0]


def test_plans_next_to_the_cheapest_of_many_labels() -> None:
    a = np.random.default_rng(0).random((8, 8, 1, 2, 8, 8))
    program = ucle.einsum_program("Z[a,b,c,d,e,f] = relu(A[a,b,c,d,e,f])", A=a)
    plans = program.plans(4)
    best = plans[0].compiled.decomposed.promoted["Z"]
    near = sorted(program.with_decomposition({"Z": best ^ {label}}).cost for label in "abcdef")
    assert [plan.cost for plan in plans[1:]] <= near[:3]


@pytest.mark.parametrize("k", [2.5, "two", 0])
def test_a_number_of_plans_that_is_none(k: object) -> None:
    with pytest.raises(InputError, match="plans"):
        ucle.einsum_program("y[i] += A[i,j]", A=np.eye(3)).plans(k)


def test_products_that_do_not_fit_whole_are_made_in_blocks() -> None:
    """In rows and columns, each number would be read once for each of the other side."""
    a, b = np.random.default_rng(0).normal(size=(2, 2048, 2048))
    program = ucle.einsum_program("C[i,j] = A[i,k] * B[k,j]", A=a, B=b, memory_limit="110MB")
    chosen = program.compiled.decomposed.decompositions["C"]
    assert chosen.tiled == {"i", "j"}
    assert chosen.tile < 256  # of larger blocks a vector of rows does not fit
    with program.execute() as result:
        np.testing.assert_allclose(result["C"].to_numpy(), a @ b)


def test_products_of_what_is_sparse_are_not_made_in_dense_blocks() -> None:
    a = sp.random_array((2048, 2048), density=0.01, rng=0, format="csr")
    program = ucle.einsum_program("C[i,j] = A[i,k] * B[k,j]", A=a, B=a, memory_limit="30MB")
    assert len(program.compiled.decomposed.decompositions["C"].tiled) < 2
