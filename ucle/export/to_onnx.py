"""Programs as ONNX models: the statements that outputs need, as one graph."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ucle.database.session import Database
from ucle.errors import (
    ArgumentError,
    NameResolutionError,
    UnsupportedError,
    did_you_mean,
)
from ucle.export.entries import Entries, Tensor
from ucle.export.graph import IR_VERSION, OPSET, Graph, Value
from ucle.export.open_axes import OpenAxes, find_open_axes
from ucle.export.statements import Statements
from ucle.export.weights import Weight, dense_weights, values_of_weights
from ucle.foundation.dtypes import DType
from ucle.foundation.libraries import optional
from ucle.ir.vertices import Span
from ucle.language.statements import choose_outputs, input_labels
from ucle.language.syntax import Statement, accesses
from ucle.lowering.logical import LogicalProgram
from ucle.lowering.syntax_to_logical import syntax_to_logical
from ucle.run.build import Build

LARGEST_FILE = 2_000_000_000
"""Bytes beyond which weights are stored in a file of their own: a message has at most 2 GB."""


def to_onnx(
    made: Build,
    database: Database,
    path: str | os.PathLike[str] | None,
    outputs: Sequence[str] | None,
    rows: Sequence[str],
    weights: Any,
    dtype: str | None,
) -> Any:
    """Return a program as an `onnx.ModelProto`; arguments are those of the program's method.

    Raises:
        UnsupportedError: ONNX has no operators for some statements; all are listed with reasons.
        NameResolutionError: an output is unknown.
        ArgumentError: the program has no such weights or rows.
    """
    onnx = optional("onnx", "to_onnx", "pip install 'ucle[models]'")
    request, source = made.request, made.compiled.front.source
    wanted = choose_outputs(request.statements, outputs or made.compiled.program.outputs)
    statements = _needed(source.statements, wanted)
    given, named = _split_weights(made, weights)
    read = _read_inputs(statements)
    one = {name for name in read if name not in request.inputs}  # the row that stands for 1
    labels = {**input_labels(request.statements), **request.labels}
    kept = _weights(made, [x for x in read if x not in one], labels, rows, {*named, *given})
    inputs = {name: labels[name] for name in read if name not in one and name not in kept}
    axes = find_open_axes(statements, source.bounds, inputs, kept, made.options.bounds or {})
    _check_rows(axes, inputs, rows)
    graph = Graph(onnx, narrow=dtype == DType.FLOAT32.value)
    graph.taken.update(read, (statement.target.tensor for statement in statements))
    arrays = dense_weights(made, database, kept, given)
    types = syntax_to_logical(source)
    tensors, values = _bind(graph, types, inputs, arrays, one)
    added = Statements(graph, axes, types.types, tensors, values, source.exact)
    _add_all(added, statements)
    model = _model(onnx, graph, axes, wanted, tensors, inputs, values, arrays)
    if path is not None:
        large = model.ByteSize() > LARGEST_FILE
        onnx.save(model, os.fspath(path), save_as_external_data=large)
    return model


def _needed(statements: Sequence[Statement], outputs: Collection[str]) -> list[Statement]:
    """The statements that outputs depend on, in order."""
    read, kept = set(outputs), []
    for statement in reversed(statements):
        if statement.target.tensor in read:
            kept.append(statement)
            read.update(access.tensor for access in accesses(statement.expression))
    return kept[::-1]


def _read_inputs(statements: Sequence[Statement]) -> list[str]:
    """The inputs that statements read, in order of first use."""
    defined = {statement.target.tensor for statement in statements}
    read = dict.fromkeys(x.tensor for s in statements for x in accesses(s.expression))
    return [name for name in read if name not in defined]


def _split_weights(made: Build, weights: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the values that are given for weights, and the names of weights without values.

    Raises:
        NameResolutionError: there is no such input.
    """
    if weights is None:
        return {}, ()
    if hasattr(weights, "items"):
        return values_of_weights(made, weights), ()
    names = (weights,) if isinstance(weights, str) else tuple(weights)
    known = made.compiled.all_inputs
    for name in names:
        if name not in known:
            raise NameResolutionError(
                f"{name} is no input of the program",
                where="to_onnx, weights",
                expected="one of " + ", ".join(known),
                found=str(name),
                hint=did_you_mean(str(name), known),
            )
    return {}, names


def _weights(
    made: Build,
    read: Sequence[str],
    labels: Mapping[str, tuple[str, ...]],
    rows: Sequence[str],
    named: Collection[str],
) -> list[str]:
    """Return inputs that become constants: parameters, named inputs, and those without rows."""
    inputs = made.compiled.all_inputs
    kept = []
    for name in read:
        without_rows = bool(rows) and not set(rows).intersection(labels[name])
        if name in named or without_rows or inputs[name].described.spec.varies:
            kept.append(name)
    return kept


def _check_rows(axes: OpenAxes, inputs: Mapping[str, tuple[str, ...]], rows: Sequence[str]) -> None:
    """Check that the rows are axes of inputs that stay open.

    Raises:
        ArgumentError: they are not.
    """
    for label in rows:
        own = [(x, n) for x, names in inputs.items() for n, y in enumerate(names) if y == label]
        if not own:
            raise ArgumentError(
                "no input has the label of the rows",
                where="to_onnx, rows",
                expected="a label of an input: "
                + ", ".join(dict.fromkeys(y for names in inputs.values() for y in names)),
                found=label,
            )
        if (reason := axes.why_closed(*own[0])) is not None:
            raise ArgumentError(
                "the number of rows cannot stay open",
                where="to_onnx, rows",
                expected="a label along which only inputs of the model lie, read as they are",
                found=f"{label}: {reason}",
            )


def _bind(
    graph: Graph,
    logical: LogicalProgram,
    inputs: Collection[str],
    weights: Mapping[str, Weight],
    one: Collection[str],
) -> tuple[dict[str, Tensor], dict[str, Value]]:
    """The tensors that statements read, and the inputs among them."""
    tensors: dict[str, Tensor] = {}
    values: dict[str, Value] = {}
    for name in inputs:
        type_ = logical.types[name]
        graph.element(type_.dtype)
        values[name] = graph.input(name, type_.dtype)
        tensors[name] = Entries(values[name], _axes(type_.rank))
    for name, weight in weights.items():
        dtype = logical.types[name].dtype
        tensors[name] = Entries(graph.weight(name, weight.array, dtype), _axes(weight.array.ndim))
    for name in one:
        tensors[name] = Entries(graph.constant(True, logical.types[name].dtype), ())
    return tensors, values


def _axes(rank: int) -> tuple[str, ...]:
    return tuple(map(str, range(rank)))


def _add_all(added: Statements, statements: Sequence[Statement]) -> None:
    """Add statements, and tell of all that have no operators.

    Raises:
        UnsupportedError: some have none.
    """
    reasons: dict[Span, list[str]] = {}
    without: set[str] = set()
    for statement in statements:
        if without.intersection(x.tensor for x in accesses(statement.expression)):
            without.add(statement.target.tensor)
            continue
        try:
            added.add(statement)
        except UnsupportedError as error:
            without.add(statement.target.tensor)
            what = str(error).splitlines()[0]
            if what not in reasons.setdefault(statement.span, []):
                reasons[statement.span].append(what)
    if reasons:
        raise UnsupportedError(
            "statements have no operators in ONNX",
            where="to_onnx",
            expected=f"what operators of opset {OPSET} compute",
            found="\n  ".join(
                f"{span}, {span.text}: {'; '.join(each)}" for span, each in reasons.items()
            ),
        )


def _model(
    onnx: Any,
    graph: Graph,
    axes: OpenAxes,
    outputs: Sequence[str],
    tensors: Mapping[str, Tensor],
    inputs: Mapping[str, tuple[str, ...]],
    values: Mapping[str, Value],
    weights: Mapping[str, Weight],
) -> Any:
    """The model of a graph, checked.

    Raises:
        UnsupportedError: the checker of `onnx` refuses it.
    """
    helper = onnx.helper
    made = {result for node in graph.nodes for result in node.output}
    renamed: dict[str, str] = {}
    described = []
    for name in outputs:
        entries = _whole(tensors[name])
        value = entries.value
        if value.name in renamed or value.name not in made:  # an input, or another output
            value = graph.node("Identity", (value,), value.dtype)
        renamed[value.name] = name
        shape = [axes.label(name, label) for label in entries.labels]
        described.append(_describe(helper, graph, name, entries.dtype, shape))
    for name, tensor in tensors.items():
        if (
            isinstance(tensor, Entries)
            and tensor.value.name in made
            and name not in renamed.values()
        ):
            renamed.setdefault(tensor.value.name, name)
    graph.rename(renamed)
    shapes = {x: [axes.dimension(x, n) for n in range(len(inputs[x]))] for x in values}
    own = [_describe(helper, graph, x, y.dtype, shapes[x]) for x, y in values.items()]
    constants = [
        onnx.numpy_helper.from_array(array, name) for name, array in graph.constants.items()
    ]
    body = helper.make_graph(graph.nodes, "program", own, described, constants)
    model = helper.make_model(
        body,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="ucle",
    )
    for name, weight in weights.items():
        for label, names in weight.coordinates.items():
            entry = model.metadata_props.add()
            entry.key, entry.value = f"coordinates.{name}.{label}", json.dumps(names)
    if model.ByteSize() < LARGEST_FILE:
        onnx.checker.check_model(model, full_check=True)
    return model


def _whole(tensor: Tensor) -> Entries:
    assert isinstance(tensor, Entries), "an output is a tensor of the text"
    return tensor


def _describe(helper: Any, graph: Graph, name: str, dtype: DType, shape: Sequence[Any]) -> Any:
    """An input or an output with its type and shape."""
    return helper.make_tensor_value_info(name, graph.element(dtype), list(shape))
