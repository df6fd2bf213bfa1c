"""The explanation of a compiled program in each format."""

from __future__ import annotations

from collections.abc import Mapping

from ucle.compile.build import Build
from ucle.explain.drawing import dot, svg
from ucle.explain.html import explain_html
from ucle.explain.json import explain_document, json_text
from ucle.explain.model import explain
from ucle.explain.text import explain_head, explain_sections, explain_text
from ucle.pipeline.artifacts import Compiled
from ucle.program.write_script import write_script
from ucle.run.execute import StepRun

FORMATS = ("text", "json", "html", "dot", "svg")
"""Formats of `EinsumProgram.explain`."""


def explain_in(
    format_: str, build: Build, compiled: Compiled, measured: Mapping[str, StepRun] | None
) -> str:
    """Return the explanation of a program in a format.

    Args:
        format_: one of `FORMATS`.
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
