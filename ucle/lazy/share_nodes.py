"""Common subexpressions of lazy tensors: nodes that compute the same become one.

Functions of lazy tensors that are called one after the other often compute the same on their way,
such as the number of entries in each window, of which the means, the standard deviations and the
check of both are made. A node is the same as another one if it applies the same function to the
same nodes, bit by bit, with labels in the same places. Tensors by which something is differentiated
are the objects that the caller means, and no others, so that each of them stays alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ucle.foundation.exact_key import ExactKey, Same
from ucle.inputs.table_input import TableInput
from ucle.lazy.nodes import Apply, Backward, Gradient, Leaf, Node, NodeOperand, in_order


def share_nodes(outputs: Mapping[str, Node]) -> dict[str, Node]:
    """Return outputs whose nodes are computed once each.

    >>> from ucle.lazy.elementwise import elementwise
    >>> from ucle.lazy.inputs import lift_input
    >>> x = lift_input([1.0, 2.0])
    >>> one, other = (elementwise("mult", x, 2).node for _ in range(2))
    >>> shared = share_nodes({"one": one, "other": other})
    >>> one is other, shared["one"] is shared["other"]
    (False, True)
    """
    nodes = in_order(outputs.values())
    own = {x for node in nodes if isinstance(node, Gradient) for x in node.backward.by}
    known: dict[Any, Node] = {}
    backward: dict[tuple[Node, ...], Backward] = {}
    shared: dict[Node, Node] = {}
    for node in nodes:
        match node:
            case Leaf():
                key: Any = identity(node), node.axes, node.dtype, Same(node.database)
                shared[node] = known.setdefault(key, node)
            case Gradient(passed, number):
                read = tuple(shared[x] for x in (passed.loss, *passed.by))
                one = backward.setdefault(read, Backward(read[0], read[1:]))
                shared[node] = known.setdefault((one, number), Gradient(one, number))
            case Apply():
                new = _read_shared(node, shared)
                shared[node] = new if node in own else known.setdefault(_key(new), new)
    return {name: shared[node] for name, node in outputs.items()}


def identity(leaf: Leaf) -> Any:
    """A key that is equal for identical inputs: a table's name, or the identity of an object."""
    spec = leaf.value
    if not isinstance(spec, TableInput):
        return id(spec)
    relation = spec.relation if isinstance(spec.relation, str) else id(spec.relation)
    named = tuple(axis.name for axis in leaf.axes) if spec.dictionaries else ()
    other_fields = (getattr(spec, each.name) for each in fields(spec) if each.name != "relation")
    return (relation, len(leaf.axes), named, *map(repr, other_fields))


def _read_shared(node: Apply, shared: Mapping[Node, Node]) -> Apply:
    """The node, reading what its operands have become."""
    operands = tuple(_shared_operand(operand, shared) for operand in node.operands)
    moved = any(x is not y for x, y in zip(operands, node.operands, strict=True))
    return replace(node, operands=operands) if moved else node


def _shared_operand(operand: NodeOperand, shared: Mapping[Node, Node]) -> NodeOperand:
    source = operand.source
    if not isinstance(source, Leaf | Apply | Gradient) or shared[source] is source:
        return operand
    return replace(operand, source=shared[source])


def _key(node: Apply) -> Any:
    """A key that is equal for nodes that compute the same; the node itself if there is none."""
    what = tuple(getattr(node, each.name) for each in fields(node))
    return ExactKey.find(what) or node
