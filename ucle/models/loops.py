"""`Loop` with a known number of steps: its body once for each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ucle.errors import UnsupportedError
from ucle.models.calls import Call
from ucle.models.onnx_files import array_of
from ucle.models.operators.shapes import join
from ucle.models.values import Value
from ucle.models.writer import Writer

MOST = 1000
"""Steps beyond which a loop would become too many statements."""


class Walker(Protocol):
    """What goes over the nodes of a graph."""

    onnx: Any
    writer: Writer

    def visit(self, nodes: Sequence[Any], values: dict[str, Value | None]) -> None:
        """Compute the outputs of nodes."""


def unroll(
    walker: Walker,
    node: Any,
    inputs: Sequence[Value | None],
    values: Mapping[str, Value | None],
) -> tuple[Value | None, ...]:
    """The outputs of a `Loop`: what is carried, and the stacks of what each step adds.

    Args:
        walker: computes the nodes of the body.
        node: the loop.
        inputs: the number of steps, the condition, and what is carried.
        values: what the body may read beside them.

    Raises:
        UnsupportedError: the number of steps depends on what is computed, or is large.
    """
    count, condition, *carried = inputs
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    names = [value.name for value in body.input]
    constants = {x.name: array_of(walker.onnx, x) for x in body.initializer}
    if not isinstance(count, np.ndarray) or int(count.reshape(-1)[0]) > MOST:
        found = "a number that is computed" if not isinstance(count, np.ndarray) else str(count)
        raise UnsupportedError(
            "the number of steps of a loop is not known, or large",
            expected=f"a constant of at most {MOST}",
            found=found,
        )
    added: list[list[Value | None]] = [[] for _ in body.output[1 + len(carried) :]]
    for step in range(int(count.reshape(-1)[0])):
        if condition is not None and not isinstance(condition, np.ndarray):
            raise UnsupportedError("a loop ends where the model computes it", expected="a constant")
        if condition is not None and not condition.reshape(-1)[0]:
            break
        goes_on = np.array(True) if condition is None else condition
        inner = {**values, **constants}
        inner.update(zip(names, [np.array(step), goes_on, *carried], strict=True))
        walker.visit(body.node, inner)
        condition, *results = [inner[value.name] for value in body.output]
        carried = results[: len(carried)]
        for parts, result in zip(added, results[len(carried) :], strict=True):
            parts.append(result)
    call = Call("Loop", tuple(inputs), {}, tuple(node.output), 0, walker.writer)
    stacks = (_stack(call, parts, n + len(carried)) for n, parts in enumerate(added))
    return *carried, *stacks


def _stack(call: Call, parts: Sequence[Value | None], place: int) -> Value:
    """What the steps have added, one after the other along a first axis.

    Raises:
        UnsupportedError: there was no step.
    """
    if not parts:
        raise UnsupportedError("a loop without steps adds nothing", expected="one step")
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts):
        return np.stack(arrays)
    name = call.names[place] or call.operator
    views = [call.writer.view(part, name) for part in parts if part is not None]
    raised = [view.with_axes(((), *view.axes)) for view in views]
    return raised[0] if len(raised) == 1 else join(call, raised, 0, name)
