"""The tensors whose values are positions along an axis, and the dictionaries of these axes.

``best[u] = argmax[i](S[u,i])`` computes positions. If i goes by names, readers of `best` see the
names: a result is written with the coordinates of the data, in its values as in its keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.foundation.dtypes import DType
from ucle.ir.tensor_types import TensorType
from ucle.language.syntax import Access, Binary, Call, Expression, Pairs, Reindexed
from ucle.lowering.syntax_to_logical import ResolvedProgram
from ucle.operators import WHEN

Found = dict[str, str | None]
"""The dictionary, or None, of the axis whose positions a tensor holds; by tensor."""


def tensors_of_positions(source: ResolvedProgram) -> Found:
    """Return the dictionaries of the axes whose positions tensors hold, by tensor.

    These are the results of `argmax`, `arg_top_k` and similar functions, and tensors that only read
    such a result: with its axes in another order, or at some positions. What is computed from
    positions is a number.
    """
    pairs: Found = {}  # tensors of values and positions
    halves: Found = {}  # parts of these; only positions are cast to integers, values to their type
    positions: Found = {}
    for statement in source.statements:
        name = statement.target.tensor
        if isinstance(statement.expression, Pairs):
            label = source.bounds.label(name, statement.expression.label)
            pairs[name] = label.dictionary
        elif pairs and statement.aggregation is None:
            expression = _without_ones(statement.expression, source.types)
            _follow_expression(name, expression, pairs, halves, positions)
    return positions


def _without_ones(expression: Expression, types: Mapping[str, TensorType]) -> Expression:
    """What is read under a condition that is one True: lazy tensors add axes of size 1 so."""
    match expression:
        case Binary(operator, Access(tensor, indices=None), read) if operator is WHEN:
            type_ = types.get(tensor)
            if type_ is not None and set(type_.shape) <= {1} and type_.every.excludes_zero:
                return read
    return expression


def _follow_expression(
    name: str, expression: Expression, pairs: Found, halves: Found, positions: Found
) -> None:
    """Add the tensor of an expression to the halves or the positions, if it only reads some."""
    if isinstance(expression, Call) and expression.function is DType.INT64:
        read = _read_tensor(expression.arguments[0])
        if read in halves:
            positions[name] = halves[read]
        return
    read = _read_tensor(expression)
    if read in positions:
        positions[name] = positions[read]
    elif read in pairs:
        halves[name] = pairs[read]


def _read_tensor(expression: Expression) -> str:
    """The tensor that an expression consists of, at positions that exist; "" if there is none."""
    match expression:
        case Access(tensor, indices=None):
            return tensor
        case Reindexed(Access(tensor), value=None, aggregation=None, hit=None) if not any(
            index.permissive or index.entries is not None for index in expression.indices
        ):
            return tensor
    return ""
