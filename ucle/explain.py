"""A compiled program as a person reads it: upper-case-lower-case EinSum, schemas, sizes, costs.

The first table is in the manner of the paper's Tables 7 and 8: each vertex with its labels in upper
case where they are promoted and in lower case where they are not, and the schemas of the tensor
relations that it reads. Tensors are printed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ucle.association import Association
from ucle.costed import DecomposedProgram
from ucle.execute import StepRun
from ucle.ir import Layout, TensorType
from ucle.pipeline import Compiled
from ucle.plan import Reduce, Step
from ucle.sqlgen.tree import key_columns, key_type
from ucle.stats.estimate import Estimator


def schema(name: str, type_: TensorType, layout: Layout) -> str:
    """The schema of a tensor relation, as in ``X(i INTEGER, val DOUBLE[1024])``."""
    names = key_columns(type_)
    columns = [f"{names[axis]} {key_type(type_, axis)}" for axis in layout.promoted]
    shape = "".join(f"[{size}]" for size in type_.dense_shape(layout))
    return f"{name}({', '.join([*columns, f'val {type_.dtype.sql}{shape}'])})"


def decomposition_table(decomposed: DecomposedProgram) -> list[tuple[str, str]]:
    """Each vertex in upper-case-lower-case form, with the schema of each relation it reads."""
    lines: list[tuple[str, str]] = []
    types = decomposed.program.types
    for vertex in decomposed.program.vertices:
        text = vertex.text(decomposed.promoted[vertex.name])
        for operand in dict.fromkeys(vertex.inputs):
            layout = decomposed.needed_layout(vertex, operand)
            lines.append((text, schema(operand.tensor, types[operand.tensor], layout)))
            text = ""
    for name in decomposed.program.outputs:
        layout_ = decomposed.made_layout(name)
        assert layout_ is not None
        lines.append(("result", schema(name, types[name], layout_)))
    return lines


def explain_text(
    compiled: Compiled,
    profile: str,
    route: str,
    reason: str,
    measured: Mapping[str, StepRun] | None = None,
) -> str:
    """The whole explanation as plain text, with what steps took if that was `measured`."""
    decomposed, statistics = compiled.decomposed, compiled.statistics
    count = len(compiled.program.vertices)
    lines = [
        f"EinSum program: {count} {'vertex' if count == 1 else 'vertices'}",
        f"route: {route} ({reason})",
        f"cost profile: {profile}, total {_figure(decomposed.total_cost)}",
        f"search: {decomposed.search or 'none, the decomposition is given'}",
        *_association(compiled.association),
        "",
        "Decomposition (upper case: promoted to key columns, lower case: inside the arrays)",
        *aligned(decomposition_table(decomposed)),
        "",
        "Statistics (T: entries that differ from the fill, V: sub-tensors that hold one)",
        *aligned(_statistics_table(compiled, statistics)),
        "",
        "Cost by vertex",
        *aligned(_cost_table(decomposed, statistics)),
        "",
        "Steps",
        *aligned([(step.role.value, step.name, step.comment) for step in compiled.plan.steps]),
    ]
    if measured is not None:
        lines += [
            "",
            "Measured (each step by itself, as a table; together they may take less)",
            *aligned(_measured_table(compiled, measured)),
        ]
    return "\n".join(lines) + "\n"


def _association(chosen: Association | None) -> list[str]:
    if chosen is None:
        return []
    far = math.isinf(chosen.written)
    written = "is out of the question" if far else f"costs {_figure(chosen.written)}"
    products = ", ".join(chosen.products)
    return [f"association: {products}, cost {_figure(chosen.cost)}; as written it {written}"]


OFF = 10
"""Times by which an estimate may miss before it is pointed out."""


def _measured_table(compiled: Compiled, measured: Mapping[str, StepRun]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("step", "estimated rows", "rows", "ms", "")]
    for step in compiled.plan.steps:
        run = measured[step.name]
        estimate = _estimated_rows(compiled, step)
        # A single row more or less is no miss, however few there are.
        off = max((estimate + 1) / (run.rows + 1), (run.rows + 1) / (estimate + 1))
        rows.append((
            step.name,
            _figure(estimate),
            f"{run.rows:,}",
            f"{1000 * run.seconds:.1f}",
            f"<- off by {off:.0f}x" if off > OFF else "",
        ))  # fmt: skip
    return rows


def _estimated_rows(compiled: Compiled, step: Step) -> float:
    vertex = compiled.program.by_name.get(step.tensor)
    if vertex is not None and isinstance(step.relation, Reduce):
        promoted = compiled.decomposed.promoted[vertex.name]
        return compiled.statistics.output_rows(vertex, promoted)
    return compiled.statistics.rows(step.tensor, step.relation.layout).estimate


def _statistics_table(compiled: Compiled, statistics: Estimator) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("tensor", "shape", "fill", "T", "V", "")]
    for name, type_ in compiled.program.types.items():
        tensor = statistics.tensor(name)
        cells = math.prod(type_.shape)
        share = f"{100 * tensor.entries / cells:.3g}% full" if cells else "empty"
        rows.append((
            name,
            " x ".join(map(str, type_.shape)) or "scalar",
            f"{type_.fill:g}",
            ("" if tensor.exact else "~") + _figure(tensor.entries),
            ", ".join(_figure(value) for value in tensor.distinct),
            share,
        ))  # fmt: skip
    return rows


def _cost_table(decomposed: DecomposedProgram, statistics: Estimator) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("vertex", "joined", "rows", "join", "kernel", "aggregate", "repartition")
    ]
    for vertex in decomposed.program.vertices:
        promoted, costs = decomposed.promoted[vertex.name], decomposed.costs[vertex.name]
        sizes = (statistics.join_rows(vertex, promoted), statistics.output_rows(vertex, promoted))
        parts = (costs.join, costs.kernel, costs.aggregate, costs.repartition)
        rows.append((vertex.name, *(_figure(x) for x in (*sizes, *parts))))
    return rows


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value < 1e7 else f"{value:.3g}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as indented lines with their columns below each other."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))] if rows else []
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
