"""A compiled program as text and HTML: upper-case-lower-case EinSum, schemas, sizes, costs.

The first table follows the paper's Tables 7 and 8: each vertex with promoted labels in upper case
and the others in lower case, and the schemas of the tensor relations that it reads. Tensors are
printed once. HTML, for notebooks, has a picture and the SQL as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from ucle.explain.columns import fit_rows, stack_rows, wrap_text
from ucle.explain.drawing import can_draw, svg
from ucle.explain.model import (
    Explanation,
    RunnerUp,
    column_lines,
    figure,
    schema,
    slice_lines,
    step_roles,
)
from ucle.foundation import html
from ucle.foundation.dataclasses import dataclass
from ucle.lowering.applied_rewrites import AppliedRewrite, DeclinedForm
from ucle.optimiser.join_order import Association
from ucle.pipeline.artifacts import Compiled
from ucle.plan.decomposition import DecomposedProgram
from ucle.plan.relation_nodes import Aggregate
from ucle.plan.steps import Step
from ucle.run.execute import StepRun
from ucle.stats.estimate import ProgramStatistics


@dataclass(frozen=True)
class Section:
    """A table of the explanation; `note` is printed beside its title.

    Where the rows of a `stack_rows` table are too wide, their last cells are put below the others.
    """

    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    stacked: bool = False


def explain_text(head: Sequence[str], sections: Iterable[Section]) -> str:
    """Return the whole explanation as plain text, for a terminal of 80 columns."""
    lines = [part for line in head for part in wrap_text(line)]
    for section in sections:
        note = f" ({section.note})" if section.note else ""
        header = [section.header] if section.header else []
        shown = (stack_rows if section.stacked else fit_rows)([*header, *section.rows])
        lines += ["", *wrap_text(section.title + note), *shown]
    return "\n".join(lines) + "\n"


def explain_head(compiled: Compiled, profile: str, route: str, reason: str) -> list[str]:
    """Return lines about the whole program."""
    decomposed, count = compiled.decomposed, len(compiled.program.vertices)
    return [
        f"EinSum program: {count} {'vertex' if count == 1 else 'vertices'}",
        f"route: {route} ({reason})",
        f"cost profile: {profile}, total {figure(decomposed.total_cost)}",
        f"search: {decomposed.search or 'none, the decomposition is given'}",
        *(line for x in compiled.front.lowering.rewrites for line in _rewrite_lines(x)),
        *_declined(compiled.front.lowering.declined),
        *(f"sums: {line}" for line in condition_lines(compiled)),
        *_association(compiled.association),
        *_optimistic(compiled),
        *(f"made dense: {line}" for line in compiled.made_dense),
        *(f"slices: {line}" for line in slice_lines(compiled)),
        *(f"columns: {line}" for line in column_lines(compiled)),
    ]


def explain_sections(
    compiled: Compiled, explanation: Explanation, measured: Mapping[str, StepRun] | None = None
) -> list[Section]:
    """Return the tables of an explanation, with measurements of steps if `measured`."""
    decomposed, statistics = compiled.decomposed, compiled.statistics
    roles = step_roles(compiled)
    steps = tuple((roles[x.name].value, x.name, x.comment) for x in compiled.plan.steps)
    sections = [
        Section(
            "Decomposition",
            "upper case: promoted to key columns, lower case: in the arrays",
            (),
            tuple(decomposition_table(decomposed)),
            stacked=True,
        ),
        Section(
            "Statistics",
            "T: entries that differ from the fill, V: sub-tensors that hold one",
            ("tensor", "shape", "fill", "T", "V", ""),
            _statistics_rows(compiled, statistics),
        ),
        Section(
            "Cost by vertex",
            "",
            ("vertex", "joined", "rows", "join", "kernel", "aggregate", "repartition"),
            _cost_rows(decomposed, statistics),
        ),
    ]
    if explanation.runner_up is not None:
        sections.append(_runner_up(explanation.runner_up, explanation.cost))
    sections.append(Section("Steps", "", (), steps))
    if measured is not None:
        sections.append(
            Section(
                "Measured",
                "each step by itself, as a table; together they may take less",
                ("step", "estimated rows", "rows", "ms", ""),
                _measured_rows(compiled, measured),
            )
        )
    return sections


def decomposition_table(decomposed: DecomposedProgram) -> list[tuple[str, str]]:
    """Return each vertex in upper-case-lower-case form, with the schemas that it reads."""
    lines: list[tuple[str, str]] = []
    types = decomposed.program.types
    for vertex in decomposed.program.vertices:
        text = vertex.text(decomposed.decompositions[vertex.name])
        for operand, layout in dict.fromkeys(decomposed.needed_layouts(vertex)):
            lines.append((text, schema(operand.tensor, types[operand.tensor], layout)))
            text = ""
    for name in decomposed.program.outputs:
        lines.append(("result", schema(name, types[name], decomposed.made_layout(name))))
    return lines


LEAST_PERCENT = 0.01
"""The least difference of two costs that is shown in percent."""

TOLD = 5
"""The number of differences between two plans that are shown, the largest first."""


def _runner_up(other: RunnerUp, cost: float) -> Section:
    """The second cheapest plan: its differences, and the resulting changes of the cost."""
    times = _times(other.cost / cost if cost else 1.0)
    rows = [x for c in other.changes for x in (("instead of", c.chosen), ("it has", c.other))]
    rows += [
        ("costs more" if by > 0 else "costs less", f"{figure(abs(by))} in the {part} of {name}")
        for name, part, by in other.differences[:TOLD]
    ]
    return Section("Runner-up", times, (), tuple(rows))


def _times(ratio: float) -> str:
    """The ratio of two costs: in percent, or as a factor from 2 on."""
    if ratio >= 2:
        return f"{figure(ratio) if ratio >= 100 else format(ratio, '.3g')} times the cost"
    percent = 100 * abs(ratio - 1)
    if percent < LEAST_PERCENT:
        return "the same cost"
    return f"{percent:.3g}% {'more expensive' if ratio >= 1 else 'cheaper'}"


def _rewrite_lines(rewrite: AppliedRewrite) -> list[str]:
    """Lines on a program that is computed instead of the written one: laws, and costs."""
    lines = list(rewrite.lines)
    if (costs := rewrite.costs) is not None:
        out = math.isinf(costs.written)
        parts = [f"cost {figure(costs.chosen)}"]
        parts.append(
            f"as written it {'cannot be run' if out else f'costs {figure(costs.written)}'}"
        )
        if costs.others:
            parts.append(f"in other forms {', '.join(map(figure, sorted(costs.others)))}")
        lines.append("; ".join(parts))
    return [f"{rewrite.key}: {line}" for line in lines]


def _declined(form: DeclinedForm | None) -> list[str]:
    """Lines on a form of sums that was not taken, and the cost that decided it."""
    if form is None:
        return []
    costs = f"{figure(form.cost)}, and would be taken at {figure(form.most)} or less"
    reason = f"it may lose digits; with what measures how many it costs {costs}"
    return [f"declined: {line}" for line in (*form.lines, reason)]


def condition_lines(compiled: Compiled) -> list[str]:
    """Return a line on each sum in a form that may lose digits: when it is computed otherwise."""
    tensors = {x.read.tensor: x.largest for x in compiled.plan.checked if x.largest is not None}
    return [
        f"{name.partition('.')[0]} may lose digits in this form; above {figure(largest)} of "
        f"{name}, sum of absolute terms by result, the program runs again in a safe form"
        for name, largest in tensors.items()
    ]


def _association(chosen: Association | None) -> list[str]:
    if chosen is None:
        return []
    far = math.isinf(chosen.written)
    written = "is out of the question" if far else f"costs {figure(chosen.written)}"
    products = ", ".join(chosen.products)
    return [f"association: {products}, cost {figure(chosen.cost)}; as written it {written}"]


def _optimistic(compiled: Compiled) -> list[str]:
    if not compiled.optimistic:
        return []
    return ["integers: the order is optimistic; if one overflows, the program runs as written"]


OFF = 10
"""The factor by which an estimate has to miss to be marked."""


def _measured_rows(
    compiled: Compiled, measured: Mapping[str, StepRun]
) -> tuple[tuple[str, ...], ...]:
    rows: list[tuple[str, ...]] = []
    for step in compiled.plan.steps:
        run = measured[step.name]
        estimate = _estimated_rows(compiled, step)
        # A difference of a single row is not a miss, even for small numbers.
        off = max((estimate + 1) / (run.rows + 1), (run.rows + 1) / (estimate + 1))
        rows.append((
            step.name,
            figure(estimate),
            f"{run.rows:,}",
            f"{1000 * run.seconds:.1f}",
            f"<- off by {off:.0f}x" if off > OFF else "",
        ))  # fmt: skip
    return tuple(rows)


def _estimated_rows(compiled: Compiled, step: Step) -> float:
    vertex = compiled.program.by_name.get(step.tensor)
    if vertex is not None and isinstance(step.relation, Aggregate):
        decomposition = compiled.decomposed.decompositions[vertex.name]
        return compiled.statistics.output_rows(vertex, decomposition)
    return compiled.statistics.rows(step.tensor, step.relation.layout).estimate


def _statistics_rows(
    compiled: Compiled, statistics: ProgramStatistics
) -> tuple[tuple[str, ...], ...]:
    rows: list[tuple[str, ...]] = []
    for name, type_ in compiled.program.types.items():
        tensor = statistics.tensor(name)
        cells = math.prod(type_.shape)
        share = f"{100 * tensor.entries / cells:.3g}% full" if cells else "empty"
        rows.append((
            name,
            " x ".join(map(str, type_.shape)) or "scalar",
            f"{type_.fill:g}",
            ("" if tensor.exact else "~") + figure(tensor.entries),
            ", ".join(figure(value) for value in tensor.distinct),
            share,
        ))  # fmt: skip
    return tuple(rows)


def _cost_rows(
    decomposed: DecomposedProgram, statistics: ProgramStatistics
) -> tuple[tuple[str, ...], ...]:
    rows: list[tuple[str, ...]] = []
    for vertex in decomposed.program.vertices:
        chosen, costs = decomposed.decompositions[vertex.name], decomposed.costs[vertex.name]
        sizes = statistics.join_rows(vertex, chosen), statistics.output_rows(vertex, chosen)
        parts = (costs.join, costs.kernel, costs.aggregate, costs.repartition)
        rows.append((vertex.name, *(figure(x) for x in (*sizes, *parts))))
    return tuple(rows)


STYLE = """
.ucle figure { background: #fff; border-radius: 4px; overflow-x: auto; margin: .4em 0;
  width: fit-content; max-width: 100%; }
.ucle svg { display: block; height: auto; max-width: max(100%, 40em); }
"""
"""The picture has its own colours, hence the white. It scrolls rather than become illegible."""

OPEN = ("Decomposition",)
"""Sections that are open from the start."""

DRAWN = 60
"""Inputs and vertices up to which a picture is drawn: larger ones are unreadable."""

LINES = 400
"""Lines of SQL that are shown."""


def explain_html(
    explanation: Explanation, head: Sequence[str], sections: Iterable[Section], sql: str
) -> str:
    """Return the explanation of a program as one HTML element.

    Args:
        explanation: for the picture, which needs python-igraph.
        head: lines about the whole program.
        sections: tables, as in the text.
        sql: the script.
    """
    parts = [html.paragraph(head)]
    if can_draw() and len(explanation.nodes) <= DRAWN:
        parts.append(f"<figure>{svg(explanation)}</figure>")
    for section in sections:
        shown = html.table(section.header, section.rows)
        unfolded = section.title in OPEN
        parts.append(html.fold_section(section.title, shown, section.note, unfolded=unfolded))
    parts.append(html.fold_section("SQL", html.code(sql.splitlines(), LINES)))
    return html.element(parts, STYLE)
