"""Renderings of a compiled program as text: its script for each engine, and its explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ucle.errors import ArgumentError, UnsupportedError
from ucle.explain.drawing import dot, svg
from ucle.explain.json import explain_document, json_text
from ucle.explain.model import explain
from ucle.explain.text import (
    condition_lines,
    explain_head,
    explain_html,
    explain_sections,
    explain_text,
)
from ucle.foundation.dataclasses import dataclass
from ucle.pipeline.artifacts import Compiled
from ucle.plan.forms import MAX_ROWS
from ucle.plan.relation_nodes import TableScan
from ucle.plan.relation_tree import nodes
from ucle.plan.sources import InMemory, Origin
from ucle.plan.steps import Plan, Role
from ucle.run.build import Build
from ucle.run.execute import StepRun, memory_tables
from ucle.run.script_sizes import script_guards
from ucle.run.views import Keys, build_output_queries
from ucle.sqlgen import emit, render_script
from ucle.sqlgen.capabilities import Capabilities
from ucle.sqlgen.dialects import Dialect
from ucle.sqlgen.guards import Guard
from ucle.sqlgen.other_dialects import PASSES as OTHER_PASSES
from ucle.sqlgen.other_dialects import build_capabilities, check_plan, render_script_in


@dataclass(frozen=True)
class ScriptForm:
    """The form in which a script shows its outputs; arguments as for `EinsumProgram.to_sql`."""

    keys: Keys = None
    rows: str | None = None
    max_rows: int = MAX_ROWS


STORED = ScriptForm()
"""The form in which outputs are stored."""


def write_script(build: Build, form: ScriptForm = STORED, guards: Sequence[Guard] = ()) -> str:
    """Return the script for DuckDB.

    Args:
        build: the program.
        form: the form of its outputs.
        guards: what `find_guards` has found for this form, if the script is to be run later.

    Raises:
        ArgumentError: an output would have too many rows, or there is no such label.
    """
    return _write(build.compiled, build.target.capabilities, form, _write_header(build), guards)


def find_guards(build: Build, form: ScriptForm) -> list[Guard]:
    """Return the guards of a script: it is written for other sizes, too, to see what changes.

    Raises:
        ArgumentError: as `write_script`.
    """
    capabilities = build.target.capabilities
    return script_guards(
        build.compiled, build.options, lambda program: _write(program, capabilities, form)
    )


def _write(
    compiled: Compiled,
    capabilities: Capabilities,
    form: ScriptForm,
    header: Sequence[str] = (),
    guards: Sequence[Guard] = (),
) -> str:
    asked = form.keys is not None or form.rows is not None
    steps, outputs = emit(compiled.physical if asked else compiled.executed, capabilities)
    if asked:
        outputs = build_output_queries(compiled, capabilities, form.keys, form.rows, form.max_rows)
    return render_script(header, steps, outputs, [guard.error_query() for guard in guards])


def write_script_in(dialect: Dialect, compiled: Compiled, keys: Keys, rows: str | None) -> str:
    """Return the script in a dialect of another engine.

    Raises:
        ArgumentError: `keys` or `rows` are given.
        UnsupportedError: the program calls kernels, or has a type or an operator that the dialect
            lacks.
    """
    if not compiled.decomposed.relational:
        raise UnsupportedError(
            f"a script for {dialect.name} can call no kernels",
            where=f"to_sql(dialect={dialect.name!r})",
            expected="a program in which every label is promoted",
            found=f"the decomposition {compiled.decomposed}".replace("\n", "; "),
            hint='compile it with decomposition="relational"; functions of matrices '
            "exist only as kernels",
        )
    if keys is not None or rows is not None:
        raise ArgumentError(
            "keys= and rows= are for DuckDB",
            where=f"to_sql(dialect={dialect.name!r})",
            expected="neither of the two",
            found="keys=" if keys is not None else "rows=",
        )
    plan = compiled.after(OTHER_PASSES)
    check_plan(plan, dialect)
    steps, outputs = emit(plan, build_capabilities(dialect))
    header = _list_vertices(compiled)
    header.append(f"Dialect: {dialect.name}. Tables are read by the names given here.")
    if described := _describe_inputs(compiled, plan):
        header += ["Inputs from memory, to be tables of these names:", *described]
    return render_script_in(dialect, header, steps, outputs)


def _write_header(build: Build) -> list[str]:
    """The lines above the script for DuckDB."""
    compiled, target = build.compiled, build.target
    lines = _list_vertices(compiled)
    lines.append(f"Route: {target.capabilities.name} ({target.reason}).")
    lines += _how_to_load(target.capabilities)
    if compiled.optimistic:
        lines.append("If integers overflow, execute() takes the order of the text instead.")
    lines += [f"{line[0].upper()}{line[1:]}." for line in condition_lines(compiled)]
    if described := _describe_inputs(compiled, compiled.physical):
        lines += ["Inputs from memory, put in place by program.register(connection):", *described]
    return lines


def _list_vertices(compiled: Compiled) -> list[str]:
    """The lines that show the program."""
    return ["ucle program:", *(f"  {vertex}" for vertex in compiled.program.vertices)]


def _describe_inputs(compiled: Compiled, plan: Plan) -> list[str]:
    """The lines that name the inputs from memory that a plan reads."""
    loads = [f"  {s.name}: {s.comment}" for s in plan.steps if s.role is Role.INPUT]
    read = {origin.name for origin in _read_origins(plan) if isinstance(origin, InMemory)}
    tables = (name for name in memory_tables(compiled.named_inputs) if name in read)
    return loads + [f"  {name}: table in memory" for name in tables]


def _read_origins(plan: Plan) -> set[Origin]:
    """The relations that a plan or its dictionaries read; a sparse array may be read otherwise."""
    steps = (each for step in plan.steps for each in (*step.views, step))
    inner = (node for step in steps for node in nodes(step.relation))
    scanned = {node.source.origin for node in inner if isinstance(node, TableScan)}
    numbered = {source.origin for each in plan.dictionaries for source, _ in each.columns}
    return scanned | numbered


def _how_to_load(capabilities: Capabilities) -> list[str]:
    """Lines that say how to load the kernels that a script calls."""
    if not capabilities.kernels:
        return []
    here = "Run it on a connection from ucle.connect(), which loads the kernels"
    if not capabilities.native_aggregates:
        return [f"{here}."]
    return [
        f"{here}; or in any client of DuckDB",
        "after LOAD 'ucle.duckdb_extension', which `make extension` builds (docs/extension.md).",
    ]


def explain_in(
    format_: str, build: Build, compiled: Compiled, measured: Mapping[str, StepRun] | None
) -> str:
    """Return the explanation of a program in a format.

    Args:
        format_: one of `ucle.program.arguments.FORMATS`.
        build: the program.
        compiled: the program as it was measured, or as it was compiled.
        measured: the measurements by step, if the program was run.

    Raises:
        MissingPackageError: python-igraph is needed and not installed.
    """
    explanation = explain(compiled, build.options)
    if format_ in ("dot", "svg"):
        return (dot if format_ == "dot" else svg)(explanation)
    route, reason = build.target.capabilities.name, build.target.reason
    profile = build.options.profile.name
    if format_ == "json":
        document = explain_document(compiled, explanation, profile, route, reason, measured)
        return json_text(document)
    head = explain_head(compiled, profile, route, reason)
    sections = explain_sections(compiled, explanation, measured)
    if format_ == "text":
        return explain_text(head, sections)
    return explain_html(explanation, head, sections, write_script(build))
