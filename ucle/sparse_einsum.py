"""SparseEinSum: the dynamic program that picks the decomposition of every vertex.

This is Algorithm 1 of sparse_einsum.txt (section 8.1) with two corrections: the minimum is reset
for every output layout, and a label that both inputs share has the same level in both even where it
is aggregated away. A vertex used more than once is the root of a tree of its own, optimised before
its consumers and then fixed (section 8.2). Statistics come in as an `Estimator`; SQL and DuckDB are
unknown here.

The table, for each tensor of one tree:

    table[tensor][layout] = Cell(total, promoted)

`total` is the least cost of making the tensor in that layout, over everything below it in the tree;
`promoted` is the decomposition of its vertex that attains it. With in(o) the layouts of operand o,

    table[v][layout].total = min over decompositions p of v whose output layout is `layout` of
        join(v, p) + aggregate(v, p)
        + sum over operands o of
            min over l in in(o) of table[o][l].total + repartition(l, needed(o, p))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ucle.costed import (
    CostedProgram,
    DecomposedProgram,
    decompositions,
    operand_layout,
    output_layout,
    price,
)
from ucle.errors import LabelError, MemoryLimitError, NameResolutionError
from ucle.ir import Layout, Program, Vertex


@dataclass(frozen=True)
class _Cell:
    """One entry of the table: the least cost of a tensor in a layout, and what attains it."""

    total: float
    promoted: frozenset[str] = frozenset()
    sources: tuple[Layout | None, ...] = ()


def sparse_einsum(
    costed: CostedProgram, pinned: Mapping[str, frozenset[str]] | None = None
) -> DecomposedProgram:
    """Pick the cheapest decomposition of every vertex.

    Args:
        costed: the program with its statistics and profile.
        pinned: decompositions that are given, by vertex name; the others are chosen around them.

    Returns:
        The decomposed program with its costs, vertex by vertex.

    Raises:
        MemoryLimitError: no decomposition of some vertex stays below the limits.
        LabelError: a pinned decomposition names a label that its vertex does not have.
        NameResolutionError: a decomposition is pinned for a tensor that is no vertex.
    """
    program, given = costed.program, dict(pinned or {})
    _check_pinned(program, given)
    fixed: dict[str, Layout | None] = {name: costed.stored[name].layout for name in costed.stored}
    promoted: dict[str, frozenset[str]] = {}
    for tree in trees(program):
        table = _fill_table(costed, tree, fixed, given)
        root = tree[-1]
        layout = min(table[root.name], key=lambda key: table[root.name][key].total)
        fixed[root.name] = layout
        _read_back(table, tree, layout, promoted)
    return price(costed, promoted)


def trees(program: Program) -> list[tuple[Vertex, ...]]:
    """Cut the DAG into maximal trees, each in topological order with its root last.

    The root of a tree is a vertex that is used more than once, or not at all, or that is an output.
    """
    by_name = {vertex.name: vertex for vertex in program.vertices}
    roots = [v for v in program.vertices if len(program.uses[v.name]) != 1]

    def below(vertex: Vertex) -> Iterator[Vertex]:
        for operand in vertex.inputs:
            child = by_name.get(operand.tensor)
            if child is not None and len(program.uses[child.name]) == 1:
                yield from below(child)
        yield vertex

    return [tuple(below(root)) for root in roots]


def _fill_table(
    costed: CostedProgram,
    tree: tuple[Vertex, ...],
    fixed: Mapping[str, Layout | None],
    pinned: Mapping[str, frozenset[str]],
) -> dict[str, dict[Layout, _Cell]]:
    table: dict[str, dict[Layout, _Cell]] = {}
    for vertex in tree:
        reach = [
            _cheapest_source(costed, operand.tensor, table, fixed) for operand in vertex.inputs
        ]
        cells = table[vertex.name] = {}
        choices = [pinned[vertex.name]] if vertex.name in pinned else decompositions(vertex)
        for promoted in choices:
            if vertex.name not in pinned and not costed.fits(vertex, promoted):
                continue
            total = costed.vertex_cost(vertex, promoted).total
            sources: list[Layout | None] = []
            for operand, cheapest in zip(vertex.inputs, reach, strict=True):
                source, price_ = cheapest(operand_layout(operand, promoted))
                sources.append(source)
                total += price_
            layout = output_layout(vertex, promoted)
            if layout not in cells or total < cells[layout].total:
                cells[layout] = _Cell(total, promoted, tuple(sources))
        if not cells:
            raise too_large(costed, vertex)
    return table


def _cheapest_source(
    costed: CostedProgram,
    name: str,
    table: Mapping[str, Mapping[Layout, _Cell]],
    fixed: Mapping[str, Layout | None],
) -> Callable[[Layout], tuple[Layout | None, float]]:
    """For a needed layout, from which layout of the tensor to come, and the cost of both."""
    known: dict[Layout, tuple[Layout | None, float]] = {}

    def cheapest(needed: Layout) -> tuple[Layout | None, float]:
        if needed not in known:
            if name in table:
                known[needed] = min(
                    (
                        (source, cell.total + costed.repartition_cost(name, source, needed))
                        for source, cell in table[name].items()
                    ),
                    key=lambda pair: pair[1],
                )
            else:
                source = fixed[name]
                known[needed] = (source, costed.repartition_cost(name, source, needed))
        return known[needed]

    return cheapest


def _read_back(
    table: Mapping[str, Mapping[Layout, _Cell]],
    tree: tuple[Vertex, ...],
    layout: Layout,
    promoted: dict[str, frozenset[str]],
) -> None:
    """Follow the choices from the root of a tree down to its leaves."""
    wanted: dict[str, Layout | None] = {tree[-1].name: layout}
    for vertex in reversed(tree):
        made = wanted[vertex.name]
        assert made is not None
        cell = table[vertex.name][made]
        promoted[vertex.name] = cell.promoted
        for operand, source in zip(vertex.inputs, cell.sources, strict=True):
            if operand.tensor in table:
                wanted[operand.tensor] = source


def _check_pinned(program: Program, pinned: Mapping[str, frozenset[str]]) -> None:
    by_name = {vertex.name: vertex for vertex in program.vertices}
    for name, promoted in pinned.items():
        if name not in by_name:
            raise NameResolutionError(
                f"the decomposition names an unknown tensor {name}",
                where=f"decomposition, {name}",
                expected="one of " + ", ".join(by_name),
                found=name,
            )
        labels = {x.name for x in by_name[name].all_labels}
        if unknown := sorted(promoted - labels):
            raise LabelError(
                f"the decomposition of {name} promotes an unknown label",
                where=f"decomposition, {name}",
                expected="labels of the vertex: " + (", ".join(sorted(labels)) or "none"),
                found=unknown[0],
            )


def too_large(costed: CostedProgram, vertex: Vertex) -> MemoryLimitError:
    """The error for a vertex that has no decomposition within the limits."""
    shape = " x ".join(str(label.bound) for label in vertex.all_labels)
    everything = frozenset(label.name for label in vertex.all_labels)
    types = [costed.program.types[operand.tensor] for operand in vertex.inputs]
    hint = "raise memory_limit, or pin a decomposition that promotes more labels"
    if costed.densified_bytes(vertex, everything) > costed.resources.memory:
        hint = "raise memory_limit; entries that are not stored have to be met one by one here"
        if not all(type_.finite for type_ in types):
            hint += (
                ", because an input is not finite (0 times inf is NaN): with nonfinite='sparse' an "
                "entry that is not stored annihilates"
            )
    return MemoryLimitError(
        f"no decomposition of {vertex.name} stays below the memory limit",
        where=str(vertex.span) if vertex.span else f"vertex {vertex.name}",
        expected=f"at most {costed.resources.memory:.3g} bytes",
        found=f"{vertex} over {shape}",
        hint=hint,
    )
