"""Element types of lazy tensors, as far as they are known.

Types follow from those of the inputs by the compiler's rules (`ucle.language.promotion`); the type
of a table may be unknown until a database is queried.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence

from ucle.errors import ValueTypeError
from ucle.foundation.caches import BoundedCache
from ucle.foundation.dtypes import DType, Scalar, promote
from ucle.foundation.exact_key import ExactKey
from ucle.ir.affine import Affine
from ucle.ir.axis_functions import matrix_dtype
from ucle.ir.conditions import All, Compare, Condition, Some
from ucle.ir.linear_systems import NAME as SOLVE
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Span
from ucle.language.factors import with_sizes
from ucle.language.functions import FirstFunction, Gives
from ucle.language.promotion import expression_type
from ucle.language.resolve import resolve
from ucle.language.syntax import Access, Expression, Number, Reduction, Statement
from ucle.lazy.meaning import expression_of
from ucle.lazy.nodes import Apply, FirstAlong, Gradient, Leaf, Node, in_order

Types = dict[Node, DType | None]
"""The element type of each node; None if it is not known."""

NOWHERE = Span(1, 1)

MOST_BYTES = 1 << 20
"""Bytes of all types that are kept."""

_known = BoundedCache[DType](MOST_BYTES)
"""Types of nodes, by all that they depend on."""


def node_types(
    outputs: Iterable[Node], leaf_type: Callable[[Leaf], DType | None] = lambda leaf: leaf.dtype
) -> Types:
    """Infer the element types of all nodes that outputs depend on.

    Args:
        outputs: the nodes.
        leaf_type: returns the type of an input, if it is known.

    Raises:
        ValueTypeError: NumPy or ucle does not support an operation on these types.
    """
    types: Types = {}
    for node in in_order(outputs):
        match node:
            case Leaf():
                types[node] = leaf_type(node)
            case Gradient(backward, number):
                types[node] = types[backward.by[number]]
            case Apply():
                types[node] = _apply_type(node, types)
    return types


def operand_types(node: Apply, types: Types) -> tuple[DType | Scalar | None, ...]:
    """The types of a node's operands; a number stands for itself."""
    return tuple(_operand_type(operand.source, types) for operand in node.operands)


def _operand_type(
    source: Node | Scalar | Condition | Affine, types: Types
) -> DType | Scalar | None:
    match source:
        case Leaf() | Apply() | Gradient():
            return types[source]
        case Compare() | All() | Some():
            return DType.BOOL
        case Affine():
            return DType.INT64
    return source


def _apply_type(node: Apply, types: Types) -> DType | None:
    kinds = operand_types(node, types)
    if all(kind is not None for kind in kinds):
        return _type_of_known(node, kinds)
    # What makes truth values of floats makes them of all numbers.
    floats = tuple(DType.FLOAT64 if kind is None else kind for kind in kinds)
    with contextlib.suppress(ValueTypeError):
        if _type_of_known(node, floats) is DType.BOOL:
            return DType.BOOL
    return None


def _type_of_known(node: Apply, kinds: Sequence[DType | Scalar | None]) -> DType:
    """The type of a node whose operands have these types; many nodes are alike in all it takes."""
    labels = tuple(operand.labels for operand in node.operands)
    how = node.function, node.output, node.reduce, node.along, node.first, node.flat
    key = ExactKey.find((tuple(kinds), labels, how))
    return _known.get_or_make(key, lambda: _infer_type(node, kinds))


def _infer_type(node: Apply, kinds: Sequence[DType | Scalar | None]) -> DType:
    if node.flat:
        (entries,) = kinds
        assert isinstance(entries, DType), "a tensor is flattened"
        return entries
    if node.along is not None and node.along[0] == SOLVE:
        found = DType.BOOL
        for kind in kinds:
            assert isinstance(kind, DType), "tensors alone are solved"
            found = promote(found, kind)
        return matrix_dtype(SOLVE, found, f"linalg.{SOLVE}")
    parts: list[Expression] = []
    tensors = {}
    for number, (operand, kind) in enumerate(zip(node.operands, kinds, strict=True)):
        if isinstance(kind, DType):
            tensors[f"x{number}"] = TensorType((), kind)
            labels = tuple(f"i{label}" for label in operand.labels)
            parts.append(Access(f"x{number}", labels, NOWHERE))
        else:
            assert kind is not None
            parts.append(Number(kind, NOWHERE))
    read = [label for operand in node.operands for label in operand.labels]
    output = tuple(f"i{label}" for label in (node.output if node.first is None else read))
    over = dict.fromkeys(x for part in parts for x in part.labels if x not in output)
    expression = expression_of(node, parts, kinds, tuple(over), NOWHERE)
    if node.along is not None:  # a scan has the type of the full aggregation
        what, _ = node.along
        if not isinstance(what, str):
            expression = Reduction(what, (), expression, NOWHERE)
    statement = resolve(Statement(Access("x", output, NOWHERE), None, expression, NOWHERE))
    try:
        element_type = expression_type(with_sizes(statement.expression, lambda _: 1), tensors)
    except ValueTypeError as error:
        raise ValueTypeError(
            error.message,
            where=node.title,
            expected=error.expected,
            found=error.found,
            hint=error.hint,
        ) from error
    assert isinstance(element_type, DType)
    match node.along:
        case str() as name, _:
            return matrix_dtype(name, element_type, f"linalg.{name}")
    if node.first is not None and element_type.kind == "c":
        raise ValueTypeError(
            f"there is no {node.title} of complex numbers, which have no order",
            where=node.title,
            expected="real numbers, integers or truth values",
            found=element_type.value,
            hint="abs, real and imag make real numbers of them",
        )
    match node.first:
        case FirstAlong(FirstFunction(gives=Gives.POSITIONS)):
            return DType.INT64
        case FirstAlong(FirstFunction(gives=Gives.MEMBERS)):
            return DType.BOOL
    return element_type
