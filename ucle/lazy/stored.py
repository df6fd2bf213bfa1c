"""Aggregations of some of the entries of a tensor: those of a mask, or those that its input stores.

What is stored is a fact about an input, such as the rows of its table, and not about values: a row
with an explicit 0 is stored, whatever ucle drops. It is read as a second input over the same
relation (`TableInput.presence`), which has an entry for each of these rows.
"""

from __future__ import annotations

from dataclasses import replace

from ucle.errors import ArgumentError, LabelError, UnsupportedError
from ucle.foundation.dtypes import DType
from ucle.inputs.operands import is_relation
from ucle.inputs.sparse_arrays import is_sparse
from ucle.inputs.table_input import TableInput
from ucle.lazy.axes import find_axis, permute_axes
from ucle.lazy.constants import constant, everywhere
from ucle.lazy.elementwise import elementwise
from ucle.lazy.nodes import AVERAGE, PLACES, Apply, Lazy, Leaf, Node, NodeOperand, in_order
from ucle.lazy.reductions import Along, reduce_tensor
from ucle.lazy.types import node_types
from ucle.operators import GREATEST, MULT, SUB, SUM, WHEN
from ucle.plan.sources import Nulls


def chosen_entries(tensor: Lazy, where: Lazy | None, stored: bool, function: str) -> Lazy | None:
    """The mask of the entries to aggregate; None for all.

    Args:
        tensor: the tensor.
        where: a mask of the caller, or None.
        stored: True for the entries that the tensor's input stores.
        function: the aggregation, for messages.

    Raises:
        ArgumentError: both are stated.
        LabelError: the mask has an axis that the tensor lacks.
        UnsupportedError: the tensor is computed, so that nothing tells what is stored.
    """
    if where is None:
        return stored_entries(tensor, function) if stored else None
    if stored:
        raise ArgumentError(
            "two masks are stated",
            where=function,
            expected="stored=True or where=mask",
            found="both",
            hint="where=ucle.logical_and(ucle.is_stored(x), mask)",
        )
    if node_types([where.node])[where.node] is not DType.BOOL:
        where = elementwise(DType.BOOL.value, where)
    met = elementwise(WHEN.name, where, tensor)
    if len(met.axes) != len(tensor.axes):
        raise LabelError(
            "the mask has an axis that the tensor lacks",
            where=f"{function}(where=...)",
            expected=f"a mask along {tensor}",
            found=str(where),
        )
    return where


def stored_entries(tensor: Lazy, function: str) -> Lazy:
    """True for each entry that the input of a tensor stores; the axes are those of the tensor.

    Raises:
        UnsupportedError: the tensor is computed of inputs, and not only moved or selected.

    >>> from ucle.lazy.inputs import lift_input
    >>> print(stored_entries(lift_input([[1.0, 0.0]]), "mean"))
    (1, 2)
    """
    present: dict[Node, Node] = {}
    for node in in_order([tensor.node]):
        present[node] = _presence(node, present, tensor, function)
    return Lazy(present[tensor.node], tensor.axes)


def _presence(node: Node, present: dict[Node, Node], tensor: Lazy, function: str) -> Node:
    """The node that tells which entries of a node are stored, given those of its sources."""
    if isinstance(node, Leaf):
        return _presence_of_input(node)
    if isinstance(node, Apply) and (_moves(node) or _selects(node)):
        *picked, moved = node.operands
        assert isinstance(moved.source, Leaf | Apply)
        read = NodeOperand(present[moved.source], moved.labels, moved.indices)
        return replace(node, function=node.function if picked else None, operands=(*picked, read))
    raise UnsupportedError(
        "this tensor is computed, so it is not known which of its entries are stored",
        where=f"{function}, {tensor}",
        expected="an input, as it is or with its axes moved or selected",
        found=node.title if isinstance(node, Apply) and node.title else "a computed tensor",
        hint="where=mask states the entries: where=ucle.is_stored(input), or a condition",
    )


def _presence_of_input(leaf: Leaf) -> Node:
    spec = leaf.value
    data = spec.relation if isinstance(spec, TableInput) else spec
    if isinstance(spec, TableInput) and (is_relation(data) or is_sparse(data)):
        if spec.nulls is Nulls.REFUSED and spec.columns_as is None:
            there = replace(spec, presence=True, fill=False, dtype=DType.BOOL)
        else:  # what is missing is not stored
            there = replace(spec, nulls=Nulls.OBSERVED, fill=None, dtype=None)
        return Leaf(there, leaf.axes, f"{leaf.name}_stored", DType.BOOL, leaf.database)
    return constant(leaf.axes, True, DType.BOOL).node


def _moves(node: Apply) -> bool:
    """True if a node only reads another one, in place, at other positions, or as another type."""
    plain = (node.reduce, node.along, node.first) == (None, None, None)
    moves = node.function is None or isinstance(node.function, DType)
    return plain and moves and isinstance(node.operands[0].source, Leaf | Apply)


def _selects(node: Apply) -> bool:
    """True if a node selects entries by their places: by a table of these, or by a condition."""
    if node.function is not WHEN:
        return False
    return node.reduce == "dot" or isinstance(node.operands[0].source, PLACES)


def is_empty_elsewhere(tensor: Lazy) -> bool:
    """True if a tensor is an input, moved or selected at most, and 0 where that stores nothing."""
    for node in in_order([tensor.node]):
        if isinstance(node, Leaf):
            spec = node.value
            if isinstance(spec, TableInput) and spec.fill:
                return False
        elif not (isinstance(node, Apply) and (_moves(node) or _selects(node))):
            return False
    return True


def count_entries(tensor: Lazy, mask: Lazy | None, axis: Along, keepdims: bool) -> Lazy:
    """Count the entries along axes: those of a mask, or all positions."""
    if mask is None:
        every = everywhere(tensor, 1, DType.INT64)
    else:
        every = elementwise(DType.INT64.value, mask_along(tensor, mask))
    return reduce_tensor(SUM.name, every, axis, keepdims)


def mask_along(tensor: Lazy, mask: Lazy) -> Lazy:
    """A mask on all axes of a tensor, in their order."""
    if len(mask.axes) != len(tensor.axes) or any(axis.unit for axis in mask.axes):
        mask = elementwise(WHEN.name, mask, everywhere(tensor, True, DType.BOOL))
    if not tensor.named:
        return mask
    return permute_axes(mask, [find_axis(mask, axis.name or "", "where") for axis in tensor.axes])


def mean_of(tensor: Lazy, mask: Lazy, stored: bool, axis: Along, keepdims: bool) -> Lazy:
    """The mean of the entries of a mask along axes; NaN where there are none.

    Args:
        tensor: the tensor.
        mask: the entries.
        stored: True if the mask is that of what the tensor stores.
        axis: the axes; None for all.
        keepdims: as in NumPy.
    """
    total = _total(tensor, mask, stored, axis, keepdims)
    return elementwise(AVERAGE, total, count_entries(tensor, mask, axis, keepdims))


def _total(tensor: Lazy, mask: Lazy, stored: bool, axis: Along, keepdims: bool) -> Lazy:
    """The sum of the entries of a mask, as floats."""
    # What is not stored is 0 and adds nothing: there is no need to join with the mask.
    alone = stored and is_empty_elsewhere(tensor)
    entries = tensor if alone else elementwise(WHEN.name, mask, tensor)
    return reduce_tensor(SUM.name, elementwise(MULT.name, entries, 1.0), axis, keepdims)


def variance_of(
    tensor: Lazy, mask: Lazy, stored: bool, axis: Along, correction: float, keepdims: bool
) -> Lazy:
    """The variance of the entries of a mask; `correction` is subtracted from their number.

    It is NaN where there is no entry, as in NumPy.
    """
    some = elementwise(GREATEST.name, count_entries(tensor, mask, axis, True), 1)
    mean = elementwise(AVERAGE, _total(tensor, mask, stored, axis, True), some)
    distance = elementwise(WHEN.name, mask, elementwise(SUB.name, tensor, mean))
    squares = reduce_tensor(SUM.name, elementwise("size_squared", distance), axis, keepdims)
    count = count_entries(tensor, mask, axis, keepdims)
    if correction:
        count = elementwise(GREATEST.name, elementwise(SUB.name, count, correction), 0)
    return elementwise(AVERAGE, squares, count)
