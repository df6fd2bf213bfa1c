"""From the graph of an ONNX model to statements, node by node.

What depends on constants alone is computed here, by the reference implementation in the package
`onnx`. Operators that are not in the table but that ONNX defines by others are replaced by their
definition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ucle.errors import ModelError, UcleError, UnsupportedError
from ucle.foundation.dataclasses import dataclass
from ucle.models.calls import Call, Operator
from ucle.models.loops import unroll
from ucle.models.onnx_files import array_of, models_module
from ucle.models.operators.known_operators import TABLE
from ucle.models.operators.shape_values import SHAPE_OPERATORS
from ucle.models.text_columns import known_names
from ucle.models.values import Names, TextColumns, Value
from ucle.models.views import Position, Size, View, at, new_axis
from ucle.models.writer import Writer, language_type

LARGEST_FOLDED = 1 << 26
"""Entries of a constant that is computed from others; a larger one is not."""


@dataclass(frozen=True)
class ModelInput:
    """An input of a model.

    Args:
        name: its name in the program.
        original: its name in the model.
        sizes: sizes of its axes, with None for the rows; axes of size 1 are left out of the
            program.
        dtype: its element type, as the language names it; ``string`` for names.
        columns: the columns of a table that hold it, if the model knows their names.
    """

    name: str
    original: str
    sizes: tuple[int | None, ...]
    dtype: str
    columns: tuple[str, ...] = ()

    @property
    def features(self) -> int:
        """The number of features in each row.

        >>> ModelInput("x", "x", (None, 2, 3), "float64").features
        6
        """
        return math.prod(size or 1 for size in self.sizes)


@dataclass(frozen=True)
class ModelOutput:
    """An output of a model: its name in the program and in the model, and the sizes of its axes."""

    name: str
    original: str
    sizes: tuple[int | None, ...]
    dtype: str


@dataclass(frozen=True)
class Translation:
    """A model as statements."""

    statements: tuple[str, ...]
    weights: Mapping[str, Any]
    sizes: Mapping[str, int]
    inputs: tuple[ModelInput, ...]
    outputs: tuple[ModelOutput, ...]


def translate(
    model: Any,
    *,
    sizes: Mapping[str, int],
    constants: Mapping[str, Any],
    outputs: Sequence[str] | None,
    where: str,
    classes: Sequence[str] = (),
) -> Translation:
    """The statements of a model.

    Args:
        model: an `onnx.ModelProto` that is valid.
        sizes: of axes with names, such as that of a sequence.
        constants: values of inputs that are known.
        outputs: the names of the outputs to compute; all by default.
        where: the model, for messages.
        classes: coordinates for the second axis of outputs that have as many columns.

    Raises:
        UnsupportedError: operators are missing, all of which are listed, or a form of one is.
        ModelError: sizes or names contradict each other.
    """
    return _Walk(model, sizes, where, tuple(classes)).run(outputs, constants)


class _Walk:
    """One pass over a graph."""

    def __init__(
        self, model: Any, sizes: Mapping[str, int], where: str, classes: tuple[str, ...]
    ) -> None:
        self.onnx = models_module("onnx")
        self.model = model
        self.graph = model.graph
        self.sizes = sizes
        self.where = where
        self.classes = classes
        self.versions = {x.domain or "": x.version for x in model.opset_import}
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.writer = Writer()
        self.batch: str | None = None
        self.published: dict[str, str] = {}
        self.renames: dict[str, str] = {}

    def run(self, wanted: Sequence[str] | None, constants: Mapping[str, Any]) -> Translation:
        nodes = self.needed(wanted)
        missing = sorted(self.missing(nodes))
        if missing:
            raise UnsupportedError(
                "operators of the model are not there",
                where=self.where,
                expected="operators listed on the page Models",
                found=", ".join(missing),
            )
        values: dict[str, Value | None] = {
            tensor.name: array_of(self.onnx, tensor) for tensor in self.graph.initializer
        }
        values |= {name: np.asarray(value) for name, value in constants.items()}
        self.writer.wishes = {id(value): name for name, value in values.items()}
        inputs = tuple(
            self.bind(value, values) for value in self.graph.input if value.name not in values
        )
        self.published = {
            value.name: self.writer.name(value.name)
            for value in self.graph.output
            if wanted is None or value.name in wanted
        }
        self.visit(nodes, values)
        outputs = tuple(
            self.publish(value.name, values.get(value.name))
            for value in self.graph.output
            if wanted is None or value.name in wanted
        )
        writer = self.writer
        for old, new in self.renames.items():
            writer.rename(old, new)
        return Translation(tuple(writer.statements), writer.weights, writer.sizes, inputs, outputs)

    # ---- which nodes ----

    def needed(self, wanted: Sequence[str] | None) -> list[Any]:
        """The nodes that the outputs depend on, in their order.

        Raises:
            ModelError: there is no such output.
        """
        names = [value.name for value in self.graph.output]
        unknown = [name for name in wanted or () if name not in names]
        if unknown:
            raise ModelError(
                "there is no such output",
                where=self.where,
                expected=", ".join(names),
                found=unknown[0],
            )
        read = set(names if wanted is None else wanted)
        chosen = []
        for node in reversed(self.graph.node):
            if read.intersection(node.output):
                chosen.append(node)
                read.update(_all_inputs(node))
        return chosen[::-1]

    def missing(self, nodes: Sequence[Any]) -> set[str]:
        """Operators that are neither in the table nor defined by others."""
        found: set[str] = set()
        for node in nodes:
            key = (_domain(node), node.op_type)
            for attribute in node.attribute:
                if attribute.type == self.onnx.AttributeProto.GRAPH:
                    found |= self.missing(list(attribute.g.node))
            if key in TABLE or key in _HERE:
                continue
            if (node.domain, node.op_type) in self.functions:
                found |= self.missing(list(self.functions[node.domain, node.op_type].node))
                continue
            try:
                schema = self.onnx.defs.get_schema(
                    node.op_type, self.versions.get(key[0], 1), node.domain
                )
            except self.onnx.defs.SchemaError:
                schema = None
            if schema is not None and schema.has_function:
                found |= self.missing(list(schema.function_body.node))
            elif schema is None or not schema.has_context_dependent_function:
                found.add(f"{key[0]}.{node.op_type}" if key[0] else node.op_type)
        return found

    # ---- inputs and outputs ----

    def bind(self, value: Any, values: dict[str, Value | None]) -> ModelInput:
        """An input as a view of a tensor of the program.

        Raises:
            ModelError: the type or the rank is not known.
            UnsupportedError: the size of an axis is not known.
        """
        kind = value.type.tensor_type
        place = f"{self.where}, input {value.name}"
        if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
            raise UnsupportedError(
                "an input is not a tensor of known rank", where=place, expected="a tensor"
            )
        name = self.writer.name(value.name)
        sizes = tuple(
            self.size(dim, n, place, f"{value.name}.{n}") for n, dim in enumerate(kind.shape.dim)
        )
        dtype = self.onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if kind.elem_type == self.onnx.TensorProto.STRING:
            values[value.name] = TextColumns((name,))
            return ModelInput(name, value.name, sizes, "string")
        axes = tuple(
            (self.writer.rows,) if size is None else new_axis(Size(size)) for size in sizes
        )
        positions = tuple(at(atom) for axis in axes for atom in axis)
        values[value.name] = View(name, positions, axes, np.dtype(dtype))
        self.writer.extents[name] = tuple(atom.size for axis in axes for atom in axis)
        if None in sizes and self.writer.anchor is None:
            first = tuple(at(a) if a.size is None else Position() for axis in axes for a in axis)
            self.writer.anchor = View(name, first, (axes[0],), np.dtype(dtype))
        return ModelInput(name, value.name, sizes, language_type(dtype))

    def size(self, dim: Any, place: int, where: str, axis: str) -> int | None:
        """The size of an axis; None for the rows, which are the first axis of unknown size.

        Axes without names, and such that share a name, have those of their inputs: ``image.2``.
        """
        if axis in self.sizes:
            return self.sizes[axis]
        name = dim.dim_param
        if name in self.sizes:
            return self.sizes[name]
        if dim.HasField("dim_value") and dim.dim_value > 0:
            return int(dim.dim_value)
        if dim.HasField("dim_value") and dim.dim_value < -1:  # some write -1 for an open size
            raise ModelError("a size is negative", where=where, found=str(dim.dim_value))
        if place == 0 and (self.batch is None or name in (self.batch, "")):
            self.batch = name or self.batch or ""
            return None
        raise UnsupportedError(
            "the size of an axis is not known",
            where=where,
            expected="sizes of all axes but the rows",
            found=f"axis {place}, {name or 'unnamed'}",
            hint=f"from_onnx(..., sizes={{{name or axis!r}: 64}})",
        )

    def publish(self, original: str, value: Value | None) -> ModelOutput:
        """An output as a tensor of the program, with one label for each axis."""
        if isinstance(value, Names):
            return self.publish_names(original, value)
        if value is None or isinstance(value, TextColumns):
            raise UnsupportedError("an output is not a tensor", where=f"{self.where}, {original}")
        view = self.writer.flatten(self.writer.view(value, original))
        sizes = tuple(None if size.rows else size.number for size in view.shape)
        if len(self.classes) > 1 and sizes == (None, len(self.classes)):
            return self.publish_columns(original, view)
        own = {x.partition(" ")[0].partition("[")[0] for x in self.writer.statements}
        plain = self.writer.is_stored(view) and view.tensor in own - set(self.renames)
        if not plain or [p.terms[0][0] for p in view.positions] != list(view.atoms):
            view = self.writer.copied(view, original)
        name = self.renames[view.tensor] = self.published[original]
        return ModelOutput(name, original, sizes, language_type(view.dtype))

    def publish_columns(self, original: str, view: View) -> ModelOutput:
        """An output with a column for each class, by a label that has the names of the classes."""
        writer = self.writer
        known = known_names(writer, self.classes, f"{original}_names")
        plain = writer.stored(view)
        labels = writer.labels(plain.atoms)
        rows, at_ = (labels[atom] for atom in plain.atoms)
        reading, name = writer.read(plain, labels), writer.name(original)
        writer.statements.append(
            f"{name}[{rows},{CLASS}] = sum[{at_}]({reading} * {known}[{CLASS},{at_}])"
        )
        self.renames[name] = self.published[original]
        sizes = (None, len(self.classes))
        return ModelOutput(self.published[original], original, sizes, language_type(view.dtype))

    def publish_names(self, original: str, value: Names) -> ModelOutput:
        """An output of names: the coordinates of the positions, by a label that has the names."""
        writer = self.writer
        view = writer.flatten(value.positions)
        known = known_names(writer, list(value.names), f"{original}_names")
        size = new_axis(Size(len(value.names)))
        axes = view.axes
        name = f"{original}_name"

        def expression(reading: Any) -> str:
            labels = writer.labels([*(a for axis in axes for a in axis), *size])
            at_ = labels[size[0]] if size else "0"
            hits = f"sum[{at_}](({reading(view)} == {at_}) * {known}[{name},{at_}])"
            return f"argmax[{name}]({hits if size else f'{known}[{name},0]'})"

        made = writer.emit(original, axes, expression, "int64", summed=size)
        sizes = tuple(None if each.rows else each.number for each in view.shape)
        named = self.renames[made.tensor] = self.published[original]
        return ModelOutput(named, original, sizes, "string")

    # ---- nodes ----

    def visit(self, nodes: Sequence[Any], values: dict[str, Value | None]) -> None:
        """Compute the outputs of nodes one after the other."""
        for node in nodes:
            try:
                self.visit_node(node, values)
            except UcleError as error:
                if error.where and error.where.startswith(self.where):
                    raise
                where = f"{self.where}, node {node.name or node.output[0]} ({node.op_type})"
                raise type(error)(
                    error.message,
                    where=where,
                    expected=error.expected,
                    found=error.found,
                    hint=error.hint,
                ) from None
            except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
                # Files state sizes, axes and attributes that contradict each other in many ways.
                raise ModelError(
                    "a node does not fit its operands",
                    where=f"{self.where}, node {node.name or node.output[0]} ({node.op_type})",
                    found=f"{type(error).__name__}: {str(error)[:200]}",
                ) from error

    def visit_node(self, node: Any, values: dict[str, Value | None]) -> None:
        """Compute the outputs of a node."""
        key = (_domain(node), node.op_type)
        inputs = tuple(values.get(name) if name else None for name in node.input)
        if key == ("", "If"):
            self.choose(node, inputs, values)
            return
        if key == ("", "Loop"):
            results = unroll(self, node, inputs, values)
            values.update(zip(node.output, results, strict=False))
            return
        if (folded := self.fold(node, inputs)) is not None:
            values.update(zip(node.output, folded, strict=False))
            return
        texts = [value for value in inputs if isinstance(value, TextColumns | Names)]
        if texts and node.op_type in _KEEP_TEXT:
            values[node.output[0]] = texts[0]
            return
        if texts and node.op_type == "Gather" and isinstance(texts[0], TextColumns):
            chosen = np.asarray(inputs[1]).reshape(-1)
            values[node.output[0]] = TextColumns(tuple(texts[0].names[int(n)] for n in chosen))
            return
        if texts and node.op_type == "Concat":
            names = [name for value in inputs for name in value.names]  # type: ignore[union-attr]
            values[node.output[0]] = TextColumns(tuple(names))
            return
        if any(isinstance(value, tuple) for value in inputs) and node.op_type in SHAPE_OPERATORS:
            operator: Operator | None = SHAPE_OPERATORS[node.op_type]
        else:
            operator = TABLE.get(key)
        if operator is None:
            self.expand(node, values)
            return
        attributes = {x.name: self.attribute(x) for x in node.attribute}
        if node.op_type == "Cast" and "to" in attributes:
            attributes["to"] = self.onnx.helper.tensor_dtype_to_np_dtype(attributes["to"])
        version = self.versions.get(key[0], 1)
        call = Call(node.op_type, inputs, attributes, tuple(node.output), version, self.writer)
        found: Any = operator(call)
        if not isinstance(found, tuple) or _is_shape(found):
            found = (found,)
        values.update(zip(node.output, found, strict=False))

    def attribute(self, attribute: Any) -> Any:
        """The value of an attribute, as a plain value."""
        value = self.onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, self.onnx.TensorProto):
            return array_of(self.onnx, value)
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [x.decode() if isinstance(x, bytes) else x for x in value]
        return value

    def fold(self, node: Any, inputs: Sequence[Value | None]) -> list[Any] | None:
        """The outputs of a node whose operands are constants; None if it has others."""
        if any(x.type == self.onnx.AttributeProto.GRAPH for x in node.attribute):
            return None
        known = dict[str, Any]()
        for name, value in zip(node.input, inputs, strict=True):
            if name and not isinstance(value, np.ndarray):
                return None
            if name:
                known[name] = value
        if node.op_type in _VIEWS and any(isinstance(x, np.memmap) for x in known.values()):
            return None  # a copy would load what is mapped
        if node.op_type in _RANDOM or sum(x.size for x in known.values()) > LARGEST_FOLDED:
            return None
        helper = self.onnx.helper
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        given = [helper.make_empty_tensor_value_info(name) for name in known]
        graph = helper.make_graph([node], "constant", given, outputs)
        model = helper.make_model(
            graph, opset_imports=self.model.opset_import, functions=self.model.functions
        )
        try:
            found = models_module("onnx.reference").ReferenceEvaluator(model).run(None, known)
        except Exception as error:
            raise ModelError("a constant cannot be computed", found=str(error)[:200]) from None
        by_name = dict(zip([name for name in node.output if name], found, strict=True))
        return [
            np.asarray(by_name[name]) if name and by_name[name] is not None else None
            for name in node.output
        ]

    def choose(
        self, node: Any, inputs: Sequence[Value | None], values: dict[str, Value | None]
    ) -> None:
        """The branch of an `If` whose condition is known.

        Raises:
            UnsupportedError: the condition is computed by the model.
        """
        condition = inputs[0]
        if not isinstance(condition, np.ndarray):
            raise UnsupportedError("a condition is computed by the model", expected="a constant")
        branches = {attribute.name: attribute.g for attribute in node.attribute}
        branch = branches["then_branch" if condition.reshape(-1)[0] else "else_branch"]
        inner = dict(values)
        inner.update({x.name: array_of(self.onnx, x) for x in branch.initializer})
        self.visit(branch.node, inner)
        for name, result in zip(node.output, branch.output, strict=True):
            values[name] = inner[result.name]

    def expand(self, node: Any, values: dict[str, Value | None]) -> None:
        """Compute a node by the operators that define its own."""
        key = (node.domain, node.op_type)
        onnx = self.onnx
        given = {attribute.name: attribute for attribute in node.attribute}
        if key in self.functions:
            function = self.functions[key]
        else:
            version = self.versions.get(_domain(node), 1)
            schema = onnx.defs.get_schema(node.op_type, version, node.domain)
            given.update(
                (name, each.default_value)
                for name, each in schema.attributes.items()
                if name not in given and each.default_value.type
            )
            if schema.has_function:
                function = schema.function_body
            else:
                function = onnx.FunctionProto()
                types = [self.type_of(values.get(name)) for name in node.input]
                text = schema.get_context_dependent_function(
                    node.SerializeToString(), [kind.SerializeToString() for kind in types]
                )
                function.ParseFromString(text)
        defaults = {attribute.name: attribute for attribute in function.attribute_proto}
        inner: dict[str, Value | None] = {
            inside: values.get(outside) if outside else None
            for inside, outside in zip(function.input, node.input, strict=False)
        }
        body = [_with_attributes(onnx, each, {**defaults, **given}) for each in function.node]
        versions = {x.domain or "": x.version for x in function.opset_import}
        outer, self.versions = self.versions, {**self.versions, **versions}
        missing = self.missing(body)
        if missing:
            raise UnsupportedError("operators are not there", found=", ".join(sorted(missing)))
        try:
            self.visit(body, inner)
        finally:
            self.versions = outer
        for outside, inside in zip(node.output, function.output, strict=False):
            values[outside] = inner.get(inside)

    def type_of(self, value: Value | None) -> Any:
        """The type of a value, for operators whose definition depends on it."""
        helper = self.onnx.helper
        if value is None:
            return self.onnx.TypeProto()
        if isinstance(value, tuple):
            return helper.make_tensor_type_proto(self.onnx.TensorProto.INT64, [len(value)])
        shape: list[Any]
        if isinstance(value, np.ndarray):
            shape = list(value.shape)
        else:
            value = self.writer.view(value)
            shape = ["rows" if x.rows else x.number for x in value.shape]
        return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.dtype), shape)


CLASS = "class"
"""The label of the classes of probabilities and scores."""

_HERE = frozenset({("", "If"), ("", "Loop"), ("", "Constant")})
"""Operators that `_Walk` handles itself."""
_KEEP_TEXT = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that change the shapes of strings alone."""
_VIEWS = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that are views of what they get, so that they cost nothing if they are not folded."""
_RANDOM = frozenset(
    {
        "RandomNormal",
        "RandomUniform",
        "RandomNormalLike",
        "RandomUniformLike",
        "Bernoulli",
        "Multinomial",
    }
)


def _domain(node: Any) -> str:
    return "" if node.domain == "ai.onnx" else str(node.domain)


def _is_shape(value: Any) -> bool:
    return bool(value) and all(isinstance(x, Size) for x in value)


def _all_inputs(node: Any) -> set[str]:
    """What a node reads, also within the graphs that it has."""
    names = set(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= _all_inputs(inner)
        names |= {value.name for value in attribute.g.output}
    return names


def _with_attributes(onnx: Any, node: Any, given: Mapping[str, Any]) -> Any:
    """A node of a function, with the attributes of the call in the place of references."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            made.attribute.append(attribute)
        elif attribute.ref_attr_name in given:
            copy = onnx.AttributeProto()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
            made.attribute.append(copy)
        elif node.op_type == "Constant":
            raise ModelError("an attribute is missing", found=attribute.ref_attr_name)
    return made


__all__ = ["ModelInput", "ModelOutput", "Translation", "translate"]
