"""Facts about a compiled program, as data: the DAG, its sizes, the runner-up.

`explain` makes an `Explanation`. `ucle.explain.text` shows it as text, and as HTML in notebooks,
together with lines about the search, rewrites and join orders; `ucle.explain.drawing` draws it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.optimiser.pricing import CostedProgram
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.pipeline.replan import cheapest_decompositions, costed_program
from ucle.plan.decomposition import DecomposedProgram, VertexCost
from ucle.plan.relation_nodes import ColumnExpressions, Read, Slices
from ucle.plan.relation_tree import nodes
from ucle.plan.steps import Role
from ucle.sqlgen.dialects import DUCKDB_SQL
from ucle.sqlgen.sql_trees import key_columns, key_type

SMALL = 40
"""Vertices up to which the second cheapest plan is searched: each of them needs a search."""

PARTS = ("join", "kernel", "aggregate", "repartition")


@dataclass(frozen=True)
class Node:
    """An input or a vertex of the DAG.

    `text` is the EinSum in upper-case-lower-case form, of an input the tensor with its shape.
    `joined` counts the tuples of the join, `rows` those of the tensor.
    """

    name: str
    text: str
    rows: float
    joined: float = 0.0
    cost: VertexCost | None = None
    output: bool = False


@dataclass(frozen=True)
class Edge:
    """One use of a tensor: the layout that is read, its size, and the cost of a repartition."""

    source: str
    target: str
    schema: str
    rows: float
    bytes: float
    repartition: float


@dataclass(frozen=True)
class ChangedVertex:
    """A vertex that another plan decomposes differently."""

    chosen: str
    other: str


@dataclass(frozen=True)
class RunnerUp:
    """The second cheapest plan: its different vertices, and the parts of the cost that change.

    `differences` holds vertex, part and additional cost, which may be negative.
    """

    cost: float
    changes: tuple[ChangedVertex, ...]
    differences: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True)
class Explanation:
    """A decomposed program. Costs are in nanoseconds under the profile ``"duckdb"``."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    cost: float
    runner_up: RunnerUp | None


def explain(compiled: Compiled, options: Options) -> Explanation:
    """Explain a compiled program.

    Args:
        compiled: the program.
        options: those it was compiled with.
    """
    decomposed, costed = compiled.decomposed, costed_program(compiled, options)
    return Explanation(
        tuple(_nodes(costed, decomposed)),
        tuple(_edges(costed, decomposed)),
        decomposed.total_cost,
        _runner_up(compiled, options) if len(compiled.program.vertices) <= SMALL else None,
    )


def step_roles(compiled: Compiled) -> dict[str, Role]:
    """The role of each step in the script; a view is a part of the statements that read it."""
    tables = {step.name for step in compiled.physical.steps if step.role is Role.TABLE}
    return {
        step.name: Role.TABLE if step.name in tables else step.role for step in compiled.plan.steps
    }


def slice_lines(compiled: Compiled) -> list[str]:
    """One line for each table that a statement reads in slices, for threads that run at once."""
    lines = []
    for step in compiled.physical.steps:
        for part in (*step.views, step):
            for node in nodes(part.relation):
                if isinstance(node, Slices):
                    read = node.input.step if isinstance(node.input, Read) else part.tensor
                    key, count = node.type.axes[node.axis].name, len(node.starts) + 1
                    lines.append(f"{step.name} reads {read} in {count} parts, by {key}")
    return list(dict.fromkeys(lines))


def column_lines(compiled: Compiled) -> list[str]:
    """One line for each step that expressions over the columns of a table compute."""
    return [
        f"{step.name} by the columns of {x.input.source.origin}, in {len(x.stages)} "
        f"{'stage' if len(x.stages) == 1 else 'stages'}"
        for step in compiled.physical.steps
        for x in nodes(step.relation)
        if isinstance(x, ColumnExpressions)
    ]


def schema(name: str, type_: TensorType, layout: Layout) -> str:
    """Return the schema of a tensor relation, as in ``X(i INTEGER, val DOUBLE[1024])``."""
    names = key_columns(type_)
    columns = [f"{names[axis]} {key_type(type_, axis)}" for axis in layout.promoted]
    sizes = zip(layout.dense, type_.dense_shape(layout), strict=True)
    shape = "".join(f"{{{n}}}" if axis == layout.compressed else f"[{n}]" for axis, n in sizes)
    return f"{name}({', '.join([*columns, f'val {DUCKDB_SQL.types[type_.dtype]}{shape}'])})"


def _nodes(costed: CostedProgram, decomposed: DecomposedProgram) -> Iterator[Node]:
    program, statistics = costed.program, costed.statistics
    outputs = frozenset(program.outputs)
    for tensor in program.inputs:
        shape = " x ".join(map(str, tensor.type.shape)) or "scalar"
        yield Node(tensor.name, f"{tensor.name} {shape}", statistics.tensor(tensor.name).entries)
    for vertex in program.vertices:
        decomposition = decomposed.decompositions[vertex.name]
        yield Node(
            vertex.name,
            vertex.text(decomposition),
            statistics.output_rows(vertex, decomposition),
            statistics.join_rows(vertex, decomposition),
            decomposed.costs[vertex.name],
            vertex.name in outputs,
        )


def _edges(costed: CostedProgram, decomposed: DecomposedProgram) -> Iterator[Edge]:
    for vertex in costed.program.vertices:
        for operand, layout in dict.fromkeys(decomposed.needed_layouts(vertex)):
            yield _edge(costed, decomposed, vertex.name, operand.tensor, layout)


def _edge(
    costed: CostedProgram, decomposed: DecomposedProgram, target: str, name: str, layout: Layout
) -> Edge:
    rows = costed.rows(name, layout)
    return Edge(
        name,
        target,
        schema(name, costed.program.types[name], layout),
        rows,
        rows * costed.tuple_bytes(name, layout),
        costed.repartition_cost(name, decomposed.source_layout(name, layout), layout),
    )


def _runner_up(compiled: Compiled, options: Options) -> RunnerUp | None:
    """The cheapest plan except the program's own, which may be worse if it was given."""
    decomposed = compiled.decomposed
    cheapest = cheapest_decompositions(compiled, 2, options)
    other = next(
        (plan for plan in cheapest if plan.decompositions != decomposed.decompositions), None
    )
    if other is None:
        return None
    changes = tuple(
        ChangedVertex(
            *(vertex.text(plan.decompositions[vertex.name]) for plan in (decomposed, other))
        )
        for vertex in compiled.program.vertices
        if decomposed.decompositions[vertex.name] != other.decompositions[vertex.name]
    )
    differences = (
        (name, part, getattr(other.costs[name], part) - getattr(cost, part))
        for name, cost in decomposed.costs.items()
        for part in PARTS
    )
    ranked = sorted((x for x in differences if x[2]), key=lambda x: -abs(x[2]))
    return RunnerUp(other.total_cost, changes, tuple(ranked))


def figure(value: float) -> str:
    """Format a number for people."""
    return f"{value:,.0f}" if value < 1e7 else f"{value:.3g}"


def size_text(size: float) -> str:
    """Format a number of bytes for people.

    >>> size_text(3.5 * 2**20)
    '3.5 MiB'
    """
    power = min(int(math.log2(size) // 10), 4) if size >= 1 else 0
    unit = ("B", "KiB", "MiB", "GiB", "TiB")[power]
    return f"{size / 2 ** (10 * power):.3g} {unit}"
