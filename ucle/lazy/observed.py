"""The mask of the values of an input that are not NULL: `observed`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ucle.errors import ArgumentError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dtypes import DType
from ucle.inputs.table_input import TableInput
from ucle.lazy.nodes import Apply, Lazy, Leaf, Node
from ucle.lazy.tensor import Tensor
from ucle.plan.sources import Nulls


@validated(data=args.anything)
def observed(data: Any) -> Any:
    """Return the mask of the values of an input that are not NULL.

    Args:
        data: a table that `ucle.table` describes with ``nulls="missing"``, or the lazy tensor of
            such a table, whose axes may have other names and another order.

    Returns:
        An input of the same kind, of booleans: True where there is a value, False where it is NULL
        or where the table has no row. Sums over the mask count values. For a lazy tensor, the mask
        is a lazy tensor with the same axes.

    Raises:
        ArgumentError: `data` is not a table with missing values, or it is computed from one.

    >>> import pyarrow as pa, ucle
    >>> rows = pa.table({"who": ["ann", "bob"], "height": [1.5, None], "weight": [60.0, 70.0]})
    >>> people = ucle.tensor(ucle.table(rows, ["who"], columns_as="feature", nulls="missing"))
    >>> (people.sum("who") / ucle.observed(people).sum("who")).to_numpy()
    array([ 1.5, 65. ])
    """
    if isinstance(data, TableInput) and data.nulls is not Nulls.REFUSED:
        return replace(data, nulls=Nulls.OBSERVED, fill=None, dtype=None)
    if isinstance(data, Tensor) and (mask := _mask_of(data.lazy.node)) is not None:
        return Tensor(Lazy(mask, data.lazy.axes))
    raise ArgumentError(
        "it is not known which values of this are missing",
        where="observed(...)",
        expected="ucle.table(..., nulls='missing'), or the lazy tensor of one",
        found="a tensor that is computed" if isinstance(data, Tensor) else type(data).__name__,
        hint="call observed() with the input from which it is computed",
    )


def _mask_of(node: Any) -> Node | None:
    """Return the mask of a node that is an input with missing values; None for other nodes.

    It is kept in the attributes of the input, as `ucle.lazy.inputs` does with parameters, so that
    a program reads it once.
    """
    if isinstance(node, Apply) and node.trivial:
        (read,) = node.operands
        inner = _mask_of(read.source)
        return None if inner is None else replace(node, operands=(replace(read, source=inner),))
    if not isinstance(node, Leaf) or not isinstance(node.value, TableInput):
        return None
    if node.value.nulls is Nulls.REFUSED:
        return None
    kept: dict[str, Any] = vars(node)
    if "_observed" not in kept:
        value = observed(node.value)
        name = f"{node.name}_observed"
        kept.setdefault("_observed", replace(node, value=value, name=name, dtype=DType.BOOL))
    mask: Leaf = kept["_observed"]
    return mask
