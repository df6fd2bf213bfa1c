"""The key columns of tables in which the coordinates of an axis are."""

from __future__ import annotations

from ucle.inputs.operands import is_relation
from ucle.inputs.table_input import TableInput
from ucle.lazy.nodes import Apply, Leaf, Node


def find_key_columns(node: Node, axis: int) -> list[tuple[Leaf, int]]:
    """The inputs that have the coordinates of an axis of a node, and their axes."""
    if isinstance(node, Leaf):
        spec = node.value
        table = isinstance(spec, TableInput) and is_relation(spec.relation)
        return [(node, axis)] if table and axis < len(node.axes) else []
    if not isinstance(node, Apply):
        return find_key_columns(node.backward.by[node.number], axis)
    label = node.output[axis]
    found: list[tuple[Leaf, int]] = []
    for operand in node.operands:
        if not isinstance(operand.source, Node):
            continue
        if operand.indices is None:
            places = [n for n, own in enumerate(operand.labels) if own == label]
        else:
            places = [
                n for n, index in enumerate(operand.indices) if str(label) in index.affine.labels
            ]
        for n in places:
            found += find_key_columns(operand.source, n)
    return found
