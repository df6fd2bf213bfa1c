"""SparseEinSum against brute force over every decomposition, on random small DAGs.

Where no vertex is used twice, the dynamic program must find the true optimum. Brute force asks the
same `CostedProgram` for prices and shares nothing else with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from ucle.cost import ENGINE, PAPER, AggregateWork, JoinWork, Profile, RepartitionWork, cost
from ucle.costed import (
    CostedProgram,
    Resources,
    StoredInput,
    decompositions,
    operand_layout,
    output_layout,
    price,
)
from ucle.errors import MemoryLimitError, ProgramError
from ucle.ir import Label, Layout, Map, Operand, Program, Tensor, TensorType, Vertex
from ucle.sparse_einsum import sparse_einsum
from ucle.stats import Occupancy, TensorStatistics, Textbook

PROFILES = (PAPER, ENGINE, replace(ENGINE, name="without once", once=False))
Choice = dict[str, frozenset[str]]


def random_statistics(rng: np.random.Generator, shape: tuple[int, ...]) -> TensorStatistics:
    """T and V that some tensor of this shape has."""
    stored = rng.random(shape) < rng.choice([0.02, 0.3, 1.0])
    axes = range(len(shape))
    distinct = (stored.any(axis=tuple(a for a in axes if a != axis)).sum() for axis in axes)
    return TensorStatistics(float(stored.sum()), tuple(map(float, distinct)), exact=True)


def random_program(
    seed: int, profile: Profile, *, shared: bool = False, memory: float = math.inf
) -> CostedProgram:
    """A random DAG of two or three vertices; a tree unless `shared`."""
    rng = np.random.default_rng(seed)
    labels = [Label(name, int(rng.choice([1, 2, 7, 20, 60]))) for name in "ijkl"]
    inputs: list[Tensor] = []
    open_: list[Tensor] = []
    vertices: list[Vertex] = []
    statistics: dict[str, TensorStatistics] = {}
    stored: dict[str, StoredInput] = {}

    def operand() -> Operand:
        if open_ and rng.random() < 0.7:
            at = int(rng.integers(len(open_)))
            tensor = open_[at] if shared else open_.pop(at)
        else:
            axes = tuple(labels[n] for n in rng.choice(4, size=rng.integers(1, 4), replace=False))
            tensor = Tensor(f"X{len(inputs)}", TensorType(axes))
            inputs.append(tensor)
            statistics[tensor.name] = random_statistics(rng, tensor.type.shape)
            layout = Layout.of(bool(x) for x in rng.integers(0, 2, size=len(axes)))
            stored[tensor.name] = StoredInput(layout if rng.random() < 0.6 else None)
        return Operand(tensor.name, tensor.type.axes)

    for number in range(int(rng.integers(2, 4))):
        unary = rng.random() < 0.2
        operands = (operand(),) if unary else (operand(), operand())
        every = list(dict.fromkeys(x for op in operands for x in op.labels))
        rng.shuffle(every)
        kept = tuple(every[: rng.integers(0, 4)])
        maps = (Map("relu"),) if unary else ()
        combine = None if unary else str(rng.choice(["mult", "mult", "mult", "add"]))
        reduce = "sum" if len(kept) < len(every) else None
        tensor = Tensor(f"T{number}", TensorType(kept))
        vertices.append(Vertex(tensor, operands, kept, combine, maps, reduce))
        open_.append(tensor)
    used = {operand.tensor for vertex in vertices for operand in vertex.inputs}
    outputs = tuple(v.name for v in vertices if v.name not in used)
    program = Program(tuple(inputs), tuple(vertices), outputs)
    estimator = (Textbook if profile.paper_estimates else Occupancy)(program, statistics)
    return CostedProgram(program, estimator, stored, profile, Resources(memory, threads=2))


def enumerate_choices(
    costed: CostedProgram, pinned: Mapping[str, frozenset[str]]
) -> Iterator[Choice]:
    """Every decomposition of the program within the limits."""
    vertices = costed.program.vertices
    options = [
        [pinned[v.name]] if v.name in pinned
        else [p for p in decompositions(v) if costed.fits(v, p)]
        for v in vertices
    ]  # fmt: skip
    for choice in product(*options):
        yield {v.name: p for v, p in zip(vertices, choice, strict=True)}


def total(costed: CostedProgram, choice: Choice, own: dict[object, float]) -> float:
    """What `price` says in sum, with the costs of vertices remembered."""
    made = {name: where.layout for name, where in costed.stored.items()}
    made |= {v.name: output_layout(v, choice[v.name]) for v in costed.program.vertices}
    result = 0.0
    for vertex in costed.program.vertices:
        promoted = choice[vertex.name]
        key = (vertex.name, promoted)
        if key not in own:
            own[key] = costed.vertex_cost(vertex, promoted).total
        result += own[key]
        for operand in vertex.inputs:
            needed = operand_layout(operand, promoted)
            result += costed.repartition_cost(operand.tensor, made[operand.tensor], needed)
    return result


def brute_force(
    costed: CostedProgram, pinned: Mapping[str, frozenset[str]] | None = None
) -> float | None:
    """The least cost of any decomposition; None where the limits allow none."""
    own: dict[object, float] = {}
    best, least = None, None
    for choice in enumerate_choices(costed, pinned or {}):
        found = total(costed, choice, own)
        if least is None or found < least:
            best, least = choice, found
    if best is not None:
        assert price(costed, best).total_cost == pytest.approx(least, rel=1e-12)
    return least


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(200))
def test_trees_are_optimal(seed: int, profile: Profile) -> None:
    costed = random_program(seed, profile)
    found = sparse_einsum(costed).total_cost
    assert found == pytest.approx(brute_force(costed), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("seed", range(100))
def test_shared_vertices_are_never_below_the_optimum(seed: int) -> None:
    costed = random_program(seed, ENGINE, shared=True)
    optimum = brute_force(costed)
    assert optimum is not None
    assert sparse_einsum(costed).total_cost >= optimum * (1 - 1e-12)


def test_some_random_programs_share_a_vertex() -> None:
    programs = [random_program(seed, ENGINE, shared=True).program for seed in range(100)]
    shared = [p for p in programs if any(len(p.uses[v.name]) > 1 for v in p.vertices)]
    assert len(shared) >= 10


@pytest.mark.parametrize("seed", range(100))
def test_the_memory_limit_is_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    costed = random_program(seed, ENGINE, memory=float(rng.choice([16, 200, 5_000, 100_000])))
    optimum = brute_force(costed)
    chosen = sparse_einsum(costed)
    assert chosen.total_cost == pytest.approx(optimum, rel=1e-12)
    for vertex in costed.program.vertices:
        assert costed.fits(vertex, chosen.promoted[vertex.name])


def test_the_memory_limits_of_the_tests_bind() -> None:
    """Limits that never bind would make the test above empty."""
    free = [random_program(seed, ENGINE) for seed in range(100)]
    tight = [random_program(seed, ENGINE, memory=200) for seed in range(100)]
    pairs = [(brute_force(a), brute_force(b)) for a, b in zip(free, tight, strict=True)]
    assert sum(a is not None and b is not None and b > a * 1.01 for a, b in pairs) >= 10


def test_a_limit_that_nothing_keeps() -> None:
    costed = random_program(0, replace(PAPER, kernel_bytes=7))
    assert brute_force(costed) is None
    with pytest.raises(MemoryLimitError, match="T0"):
        sparse_einsum(costed)


@pytest.mark.parametrize("seed", range(60))
def test_pinned_decompositions_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    costed = random_program(seed, ENGINE)
    pinned = {}
    for vertex in costed.program.vertices:
        if rng.random() < 0.5:
            choices = list(decompositions(vertex))
            pinned[vertex.name] = choices[rng.integers(len(choices))]
    chosen = sparse_einsum(costed, pinned)
    assert all(chosen.promoted[name] == promoted for name, promoted in pinned.items())
    assert chosen.total_cost == pytest.approx(brute_force(costed, pinned), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("pinned", [{"T0": frozenset({"z"})}, {"nobody": frozenset({"i"})}])
def test_a_pin_must_name_what_exists(pinned: dict[str, frozenset[str]]) -> None:
    with pytest.raises(ProgramError, match="unknown"):
        sparse_einsum(random_program(0, ENGINE), pinned)


@pytest.fixture
def product_of_matrices() -> CostedProgram:
    """T[i,k] += X[i,j] * Y[j,k] with T and V small enough to compute by hand."""
    i, j, k = Label("i", 4), Label("j", 5), Label("k", 6)
    x, y = Tensor("X", TensorType((i, j))), Tensor("Y", TensorType((j, k)))
    operands = Operand("X", (i, j)), Operand("Y", (j, k))
    vertex = Vertex(Tensor("T", TensorType((i, k))), operands, (i, k), "mult", reduce="sum")
    program = Program((x, y), (vertex,), ("T",))
    measured = {
        "X": TensorStatistics(8, (3, 4), exact=True),
        "Y": TensorStatistics(12, (5, 6), exact=True),
    }
    stored = {"X": StoredInput(None), "Y": StoredInput(None)}
    return CostedProgram(program, Textbook(program, measured), stored, PAPER, Resources())


def test_costs_of_a_join_with_aggregation(product_of_matrices: CostedProgram) -> None:
    """Section 7.2 by hand, with i and j promoted.

    X has its T = 8 tuples, Y one for each of V(Y, j) = 5; T_join = 8 * 5 / max(4, 5) = 8. A tuple
    of X is two keys and a number (16 bytes), one of Y a key and six numbers (52), a kernel call 12
    operations. T_agg = min(8 / 2, V(X, i)) = 3; a tuple of T is a key and six numbers.
    """
    (vertex,) = product_of_matrices.program.vertices
    costs = product_of_matrices.vertex_cost(vertex, frozenset({"i", "j"}))
    assert costs.join == 8 * (16 + 52 + 12 + 15)
    assert costs.aggregate == (8 - 3) * (52 + 6 + 15)


def test_costs_without_aggregation(product_of_matrices: CostedProgram) -> None:
    """With i alone promoted, 3 rows of X meet Y in one tuple, and nothing is aggregated."""
    (vertex,) = product_of_matrices.program.vertices
    costs = product_of_matrices.vertex_cost(vertex, frozenset({"i"}))
    assert costs.join == 3 * ((5 * 8 + 4) + 5 * 6 * 8 + 2 * 5 * 6 + 15)
    assert costs.aggregate == 0


def test_cost_of_a_repartition() -> None:
    """(2 * 40 - 10 - 5) tuples of 24 bytes: 30 are made new, 35 are stacked away."""
    assert cost(RepartitionWork(10, 40, 5, 24), PAPER) == (2 * 40 - 10 - 5) * (24 + 15)


def test_a_repartition_to_the_same_layout_is_free(product_of_matrices: CostedProgram) -> None:
    layout = Layout.of([True, False])
    assert product_of_matrices.repartition_cost("T", layout, layout) == 0
    assert product_of_matrices.repartition_cost("T", layout, Layout.of([False, True])) > 0


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(20))
def test_costs_grow_with_work(seed: int, profile: Profile) -> None:
    rng = np.random.default_rng(seed)
    rows, left, right, flops = rng.integers(1, 10**6, size=4).astype(float)
    base = cost(JoinWork(rows, left, right, flops), profile)
    for more in ((2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2)):
        scaled = (n * x for n, x in zip(more, (rows, left, right, flops), strict=True))
        assert cost(JoinWork(*scaled), profile) > base
    few = cost(AggregateWork(rows, rows, left, 1), profile)
    assert few == 0 or profile is not PAPER  # the paper moves rows - groups tuples
    assert cost(AggregateWork(2 * rows, rows, left, 1), profile) > few


def test_large_operands_are_not_copied_for_every_row() -> None:
    """Where a kernel gets copies (the Arrow route), a vector of rows shares no big matrix."""
    i, m, k = Label("i", 7650), Label("m", 745), Label("k", 1024)
    x, w = Tensor("X", TensorType((i, m))), Tensor("W", TensorType((m, k)))
    operands = Operand("X", (i, m)), Operand("W", (m, k))
    vertex = Vertex(Tensor("T", TensorType((i, k))), operands, (i, k), "mult", reduce="sum")
    program = Program((x, w), (vertex,), ("T",))
    measured = {
        "X": TensorStatistics(2e6, (7650, 745), exact=True),
        "W": TensorStatistics(745 * 1024, (745, 1024), exact=True),
    }
    stored = {"X": StoredInput(Layout.of([True, False])), "W": StoredInput(None)}
    for copies in (False, True):
        resources = Resources(memory=2**33, threads=2, copies=copies)
        costed = CostedProgram(program, Occupancy(program, measured), stored, ENGINE, resources)
        promoted = sparse_einsum(costed).promoted["T"]
        assert promoted == {"i"} if not copies else promoted != {"i"}
        assert costed.fits(vertex, frozenset({"i"})) is not copies
