"""A compiled program as a document for other programs: the contents of the text, stable keys.

Numbers are not rounded. Values that JSON has no number for are strings: ``"NaN"``, ``"Infinity"``,
``"-Infinity"``; a complex number is an object with ``re`` and ``im``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ucle.explain.model import PARTS, Explanation, slice_lines, step_roles
from ucle.ir.tensor_types import TensorType
from ucle.lowering.applied_rewrites import AppliedRewrite
from ucle.lowering.copies import ReadOriginals
from ucle.lowering.push_down_masks import MaskPushDown
from ucle.lowering.quotients import Divided
from ucle.optimiser.rewriting import RewrittenProgram
from ucle.pipeline.artifacts import Compiled
from ucle.plan.steps import Role, Step
from ucle.run.execute import StepRun


def json_text(document: Any) -> str:
    """Return a document as JSON.

    >>> print(json_text({"fill": float("inf"), "val": [1.0, 2j]}), end="")
    {
      "fill": "Infinity",
      "val": [
        1.0,
        {
          "re": 0.0,
          "im": 2.0
        }
      ]
    }
    """
    return json.dumps(plain(document), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def plain(value: Any) -> Any:
    """Return a value in a form that JSON has; dates, decimals and the like become text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if math.isfinite(value):
                return value
            return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
        case complex():
            return {"re": plain(value.real), "im": plain(value.imag)}
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return str(value)


def type_document(type_: TensorType) -> dict[str, Any]:
    """Return labels, shape, element type and fill of a tensor."""
    return {
        "labels": [label.name for label in type_.axes],
        "shape": list(type_.shape),
        "dtype": type_.dtype.value,
        "fill": type_.fill,
    }


def explain_document(
    compiled: Compiled,
    explanation: Explanation,
    profile: str,
    route: str,
    reason: str,
    measured: Mapping[str, StepRun] | None = None,
) -> dict[str, Any]:
    """Return the decisions about a program and their reasons.

    Args:
        compiled: the program.
        explanation: of the program.
        profile: the name of its cost profile.
        route: how kernels are called.
        reason: the reason for the route.
        measured: what steps took, if that was measured.
    """
    decomposed, statistics = compiled.decomposed, compiled.statistics
    program = compiled.program
    tensors, roles = [], step_roles(compiled)
    for name, type_ in program.types.items():
        estimate = statistics.tensor(name)
        counts = {
            "entries": estimate.entries,
            "distinct": list(estimate.distinct),
            "exact": estimate.exact,
        }
        tensors.append({"name": name, **type_document(type_), **counts})
    nodes = {node.name: node for node in explanation.nodes}
    vertices = []
    for vertex in program.vertices:
        node, promoted = nodes[vertex.name], decomposed.promoted[vertex.name]
        labels = [label.name for label in vertex.all_labels if label.name in promoted]
        reads = [
            {"tensor": edge.source, "schema": edge.schema, "rows": edge.rows}
            for edge in explanation.edges
            if edge.target == vertex.name
        ]
        costs = decomposed.costs[vertex.name]
        vertices.append({
            "name": vertex.name,
            "text": node.text,
            "promoted": list(dict.fromkeys(labels)),
            "reads": reads,
            "joined_rows": node.joined,
            "rows": node.rows,
            "cost": {part: getattr(costs, part) for part in PARTS},
        })  # fmt: skip
    lowering = compiled.front.lowering
    document: dict[str, Any] = {
        "outputs": list(program.outputs),
        "route": route,
        "reason": reason,
        "profile": profile,
        "search": decomposed.search,
        "cost": explanation.cost,
        "tensors": tensors,
        "vertices": vertices,
        "runner_up": None,
        "optimistic": compiled.optimistic,
        **NO_REWRITES,
        **{rewrite.key: _rewrite(rewrite) for rewrite in lowering.rewrites},
        "declined": None if lowering.declined is None else asdict(lowering.declined),
        "made_dense": list(compiled.made_dense),
        "slices": slice_lines(compiled),
        "steps": [_step(x, roles[x.name], measured) for x in compiled.plan.steps],
    }
    document |= {old: document[new] for old, new in OLD_KEYS.items()}
    if (other := explanation.runner_up) is not None:
        document["runner_up"] = {
            "cost": other.cost,
            "changes": [asdict(change) for change in other.changes],
        }
    return document


OLD_KEYS = {"demand": MaskPushDown.key}
"""The keys of today by their old names, under which a document has them for a version."""

NO_REWRITES = {
    ReadOriginals.key: (),
    Divided.key: (),
    RewrittenProgram.key: None,
    MaskPushDown.key: None,
}
"""Keys that a document always has, with their values where such a rewrite was not applied."""


def _rewrite(rewrite: AppliedRewrite) -> Any:
    """Lines alone, or with costs if it has any; the cost of what cannot be run is null."""
    lines = list(rewrite.lines)
    if (costs := rewrite.costs) is None:
        return lines
    written = None if math.isinf(costs.written) else costs.written
    return {"lines": lines, "cost": costs.chosen, "written": written}


def _step(step: Step, role: Role, measured: Mapping[str, StepRun] | None) -> dict[str, Any]:
    described = {"name": step.name, "role": role.value, "comment": step.comment}
    return described if measured is None else described | asdict(measured[step.name])
