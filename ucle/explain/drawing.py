"""The DAG of a program as a picture: DOT for Graphviz, or SVG.

Nodes are inputs and vertices in upper-case-lower-case form, edges the uses of tensors with their
rows, bytes and the cost of their repartition. python-igraph's Sugiyama layout places the nodes of
an SVG (the extra ``draw``).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from itertools import groupby, pairwise

from ucle.errors import MissingPackageError
from ucle.explain.model import Edge, Explanation, Node, figure, size_text
from ucle.foundation.dataclasses import dataclass

FONT = 12
"""Font size in pixels; a letter of a monospaced font is 0.6 of it wide."""
LETTER = 0.6 * FONT
LINE = 1.4 * FONT
GAP = 2 * FONT
"""The gap between layers."""
APART = 1.05
"""The distance between centres, in widths of the widest box."""

COLOURS = {"input": "#eef3f8", "vertex": "#ffffff", "output": "#e9f5e6"}


def dot(explanation: Explanation) -> str:
    """Return the DAG in Graphviz' language.

    >>> import ucle
    >>> program = ucle.einsum_program("s += x[i] * x[i]", x=[3.0, 4.0])
    >>> print(program.explain(format="dot").splitlines()[0])
    digraph program {
    """
    lines = ["digraph program {", "  node [shape=box, style=filled, fontname=monospace];"]
    for node in explanation.nodes:
        label = _quote_text("\n".join(node_lines(node, explanation.cost)))
        lines.append(
            f"  {_quote_text(node.name)} [label={label}, fillcolor={_quote_text(_colour(node))}];"
        )
    for edge in explanation.edges:
        label = _quote_text("\n".join(edge_lines(edge, explanation.cost)))
        lines.append(f"  {_quote_text(edge.source)} -> {_quote_text(edge.target)} [label={label}];")
    return "\n".join([*lines, "}"]) + "\n"


def svg(explanation: Explanation) -> str:
    """Return the DAG as an SVG picture.

    Raises:
        MissingPackageError: python-igraph is not installed.
    """
    if not can_draw():
        raise MissingPackageError(
            "a picture needs a library that is not installed",
            where="explain(format='svg')",
            expected="python-igraph",
            found="no module igraph",
            hint="pip install 'ucle[draw]', or format='dot' for Graphviz",
        )
    boxes, lines = _place(explanation)
    width = max((box.x + box.width / 2 for box in boxes), default=0) + FONT
    height = max((box.y + box.height / 2 for box in boxes), default=0) + FONT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="monospace" font-size="{FONT}">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0,0L8,4L0,8z" fill="#555"/></marker></defs>',
    ]
    parts += [_line(*line) for line in lines]
    for box in boxes:
        parts += _box(box)
    return "\n".join([*parts, "</svg>"]) + "\n"


def can_draw() -> bool:
    """True if the package that `svg` needs is installed."""
    return importlib.util.find_spec("igraph") is not None


def node_lines(node: Node, total: float) -> list[str]:
    """The label of a node: its EinSum, its rows and its share of the program's cost."""
    if node.cost is None:
        return [node.text, f"entries: {figure(node.rows)}"]
    return [node.text, f"rows: {figure(node.rows)}, cost: {share(node.cost.total, total)}"]


def edge_lines(edge: Edge, total: float) -> list[str]:
    """The label of an edge: the relation that is read, its size, and a repartition if any."""
    size = f"rows: {figure(edge.rows)}, {size_text(edge.bytes)}"
    if edge.repartition:
        size += f", repartition: {share(edge.repartition, total)}"
    return [edge.schema, size]


def share(cost: float, total: float) -> str:
    """Return a share of the cost in percent.

    >>> share(1, 1000)
    '< 1%'
    """
    percent = 100 * cost / total if total else 0.0
    return "< 1%" if 0 < percent < 1 else f"{percent:.0f}%"


@dataclass(frozen=True)
class _Box:
    """A node, or (without a colour) the label of an edge: its lines, its centre and its size."""

    lines: list[str]
    colour: str | None
    x: float
    y: float

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * LETTER + FONT

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + FONT / 2


Point = tuple[float, float]
Line = tuple[list[Point], bool]
"""The points that a line passes, and a flag that it has an arrowhead."""


def _place(explanation: Explanation) -> tuple[list[_Box], list[Line]]:
    """Place boxes in layers, with few crossings, and the lines between them.

    The label of an edge has a box in the layer above its target, so that nothing covers it. Lines
    that pass a layer have a place in it, too.
    """
    import igraph  # noqa: PLC0415  # the extra `draw`

    total, nodes, edges = explanation.cost, explanation.nodes, explanation.edges
    boxes = [_Box(node_lines(node, total), _colour(node), 0, 0) for node in nodes]
    boxes += [_Box(edge_lines(edge, total), None, 0, 0) for edge in edges]
    layers = _layers(explanation)
    depth = [layers[node.name] for node in nodes] + [layers[edge.target] - 1 for edge in edges]
    at = {node.name: n for n, node in enumerate(nodes)}
    routes = []
    for label, edge in enumerate(edges, start=len(nodes)):
        passed = range(depth[at[edge.source]] + 1, depth[label])
        routes.append([at[edge.source], *range(len(depth), len(depth) + len(passed)), label])
        routes.append([label, at[edge.target]])
        depth += passed
    steps = [step for route in routes for step in pairwise(route)]
    graph = igraph.Graph(n=len(depth), edges=steps, directed=True)
    apart = max((box.width for box in boxes), default=0) * APART
    centres = [x for x, _ in graph.layout_sugiyama(layers=depth, hgap=apart).coords[: len(depth)]]
    across = _apart(centres, depth, [box.width for box in boxes])
    left = min((x - box.width / 2 for x, box in zip(across, boxes, strict=False)), default=0)
    level = max((box.height for box in boxes), default=0) + GAP
    points = [(x - left + FONT, (y + 0.5) * level) for x, y in zip(across, depth, strict=True)]
    boxes = [replace(box, x=x, y=y) for box, (x, y) in zip(boxes, points, strict=False)]
    return boxes, [
        _route(boxes[route[0]], boxes[route[-1]], [points[n] for n in route[1:-1]])
        for route in routes
    ]


def _apart(across: list[float], depth: list[int], widths: list[float]) -> list[float]:
    """Move the boxes of a layer so that they do not touch: the layout may halve its gap."""
    widths = widths + [0.0] * (len(across) - len(widths))
    moved = list(across)
    for _, layer in groupby(
        sorted(range(len(across)), key=lambda n: (depth[n], across[n])), key=depth.__getitem__
    ):
        for left, right in pairwise(layer):
            moved[right] = max(
                moved[right], moved[left] + (widths[left] + widths[right]) / 2 + FONT
            )
    return moved


def _route(start: _Box, end: _Box, passed: list[Point]) -> Line:
    """A line from the bottom of a box to the top of another; an arrowhead only at a node."""
    first, last = (start.x, start.y + start.height / 2), (end.x, end.y - end.height / 2)
    return [first, *passed, last], end.colour is not None


def _layers(explanation: Explanation) -> dict[str, int]:
    """Assign layers: every second one has nodes, the others have labels of edges."""
    layers: dict[str, int] = {}
    for node in explanation.nodes:  # sources before targets
        above = [layers[edge.source] for edge in explanation.edges if edge.target == node.name]
        layers[node.name] = max(above, default=-2) + 2
    for node in explanation.nodes:
        if node.cost is None:
            below = [layers[e.target] for e in explanation.edges if e.source == node.name]
            layers[node.name] = min(below, default=2) - 2
    return layers


def _line(points: list[Point], head: bool) -> str:
    path = "M{:.1f},{:.1f}".format(*points[0])
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (y1 + y2) / 2
        path += f"C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}"
    end = ' marker-end="url(#head)"' if head else ""
    return f'<path d="{path}" fill="none" stroke="#555"{end}/>'


def _box(box: _Box) -> Iterator[str]:
    top = box.y - box.height / 2
    if box.colour is not None:
        yield (
            f'<rect x="{box.x - box.width / 2:.1f}" y="{top:.1f}" width="{box.width:.1f}" '
            f'height="{box.height:.1f}" rx="4" fill="{box.colour}" stroke="#555"/>'
        )
    colour = "#555" if box.colour is None else "#111"
    for number, line in enumerate(box.lines, start=1):
        yield (
            f'<text x="{box.x:.1f}" y="{top + number * LINE - FONT / 4:.1f}" '
            f'text-anchor="middle" fill="{colour}">{escape(line, quote=False)}</text>'
        )


def _colour(node: Node) -> str:
    return COLOURS["input" if node.cost is None else "output" if node.output else "vertex"]


def _quote_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
