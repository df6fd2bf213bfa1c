"""Random programs with statistics and prices, and what brute force says of them.

Brute force asks the same `CostedProgram` for prices as the search and shares nothing else with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
import pytest

from ucle.ir.layouts import Decomposition, Label, Layout
from ucle.ir.maps import Map
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.operators import COMBINES, MAPS, SUM
from ucle.optimiser.pricing import CostedProgram, price
from ucle.plan.decomposition import StoredInput
from ucle.plan.prices import Profile
from ucle.plan.resources import Resources
from ucle.stats import Occupancy, ProgramStatistics, TensorStatistics, Textbook

Choice = dict[str, Decomposition]


def random_statistics(rng: np.random.Generator, shape: tuple[int, ...]) -> TensorStatistics:
    """T and V that some tensor of this shape has."""
    stored = rng.random(shape) < rng.choice([0.02, 0.3, 1.0])
    axes = range(len(shape))
    distinct = (stored.any(axis=tuple(a for a in axes if a != axis)).sum() for axis in axes)
    return TensorStatistics(float(stored.sum()), tuple(map(float, distinct)), exact=True)


def random_program(
    seed: int,
    profile: Profile,
    *,
    shared: int = 0,
    memory: float = math.inf,
    vertices: tuple[int, int] = (2, 3),
) -> CostedProgram:
    """A random DAG with at most `shared` vertices that are used more than once."""
    rng = np.random.default_rng(seed)
    labels = [Label(name, int(rng.choice([1, 2, 7, 20, 60]))) for name in "ijkl"]
    inputs: list[NamedTensor] = []
    open_: list[NamedTensor] = []
    made: list[Vertex] = []
    kept_open: set[str] = set()
    statistics: dict[str, TensorStatistics] = {}
    stored: dict[str, StoredInput] = {}

    def operand() -> Operand:
        if open_ and rng.random() < 0.7:
            at = int(rng.integers(len(open_)))
            tensor = open_[at]
            if tensor.name not in kept_open and (len(kept_open) == shared or rng.random() < 0.4):
                del open_[at]
            else:
                kept_open.add(tensor.name)
        else:
            axes = tuple(labels[n] for n in rng.choice(4, size=rng.integers(1, 4), replace=False))
            tensor = NamedTensor(f"X{len(inputs)}", TensorType(axes))
            inputs.append(tensor)
            statistics[tensor.name] = random_statistics(rng, tensor.type.shape)
            layout = Layout.of(bool(x) for x in rng.integers(0, 2, size=len(axes)))
            # Some in two layouts, from where the cheaper is read.
            other = Layout.of(bool(x) for x in rng.integers(0, 2, size=len(axes)))
            few = {0: (), 1: (layout,), 2: (layout, other)}[int(rng.choice(3, p=(0.4, 0.4, 0.2)))]
            stored[tensor.name] = StoredInput(few)
        return Operand(tensor.name, tensor.type.axes)

    for number in range(int(rng.integers(vertices[0], vertices[1] + 1))):
        unary = rng.random() < 0.2
        operands = (operand(),) if unary else (operand(), operand())
        every = list(dict.fromkeys(x for op in operands for x in op.labels))
        rng.shuffle(every)
        kept = tuple(every[: rng.integers(0, 4)])
        maps = (Map(MAPS["relu"]),) if unary else ()
        combine = None if unary else COMBINES[str(rng.choice(["mult", "mult", "mult", "add"]))]
        reduce = SUM if len(kept) < len(every) else None
        tensor = NamedTensor(f"T{number}", TensorType(kept))
        made.append(Vertex(tensor, operands, kept, combine, maps, reduce))
        open_.append(tensor)
    used = {operand.tensor for vertex in made for operand in vertex.inputs}
    outputs = tuple(v.name for v in made if v.name not in used)
    program = Program(tuple(inputs), tuple(made), outputs)
    estimator = Textbook() if profile.paper_estimates else Occupancy()
    known = ProgramStatistics(program, statistics, estimator)
    return CostedProgram(program, known, stored, profile, Resources(memory, threads=2))


def enumerate_choices(
    costed: CostedProgram, pinned: Mapping[str, Decomposition]
) -> Iterator[Choice]:
    """Every decomposition of the program within the limits."""
    vertices = costed.program.vertices
    options = [
        [pinned[v.name]] if v.name in pinned
        else list(costed.fitting(v))
        for v in vertices
    ]  # fmt: skip
    for choice in product(*options):
        yield {v.name: p for v, p in zip(vertices, choice, strict=True)}


def total(costed: CostedProgram, choice: Choice) -> float:
    """Add up the costs of a choice, as `price` does."""
    made = {v.name: v.makes(choice[v.name]) for v in costed.program.vertices}
    result = 0.0
    for vertex in costed.program.vertices:
        decomposition = choice[vertex.name]
        result += costed.vertex_cost(vertex, decomposition).total
        for operand, needed in zip(vertex.inputs, vertex.reads(decomposition), strict=True):
            result += _move(costed, operand.tensor, made.get(operand.tensor), needed)
    return result


def _move(costed: CostedProgram, name: str, made: Layout | None, needed: Layout) -> float:
    """The least cost of bringing a tensor to a layout from any that it lies in."""
    lying = costed.stored[name].layouts if name in costed.stored else (made,)
    return min(costed.repartition_cost(name, source, needed) for source in lying or (None,))


def brute_force(
    costed: CostedProgram, pinned: Mapping[str, Decomposition] | None = None
) -> float | None:
    """The least cost of any decomposition; None where the limits allow none."""
    best, least = None, None
    for choice in enumerate_choices(costed, pinned or {}):
        found = total(costed, choice)
        if least is None or found < least:
            best, least = choice, found
    if best is not None:
        assert price(costed, best).total_cost == pytest.approx(least, rel=1e-12)
    return least


def optimum_by_layouts(costed: CostedProgram) -> float:
    """The least cost of any decomposition, from one table over the layouts of all vertices.

    It has a cell for each combination of the layouts in which the vertices make their tensors, each
    with the sum of what every vertex costs at best in that combination.
    """
    program = costed.program
    layouts = {
        v.name: list(dict.fromkeys(v.makes(p) for p in costed.fitting(v))) for v in program.vertices
    }
    position = {name: axis for axis, name in enumerate(layouts)}
    table = np.zeros([len(each) for each in layouts.values()])
    for vertex in program.vertices:
        read = [o for o in vertex.inputs if o.tensor in layouts]
        varying = {vertex.name, *(o.tensor for o in read)}
        lengths = [len(each) if x in varying else 1 for x, each in layouts.items()]
        least = np.full(lengths, math.inf)
        for decomposition in costed.fitting(vertex):
            cost = np.full([1] * table.ndim, costed.vertex_cost(vertex, decomposition).total)
            for operand, needed in zip(vertex.inputs, vertex.reads(decomposition), strict=True):
                name = operand.tensor
                if operand not in read:
                    cost = cost + _move(costed, name, None, needed)
                    continue
                moves = [costed.repartition_cost(name, x, needed) for x in layouts[name]]
                shape = [1] * table.ndim
                shape[position[name]] = len(moves)
                cost = cost + np.array(moves).reshape(shape)
            at = layouts[vertex.name].index(vertex.makes(decomposition))
            where = [slice(None)] * table.ndim
            where[position[vertex.name]] = slice(at, at + 1)
            least[tuple(where)] = np.minimum(least[tuple(where)], cost)
        table = table + least
    return float(table.min())
