"""Forms: the columns and rows that are written of a tensor, whatever its plan stored.

A form depends on the tensor and the caller's arguments alone. `form_of` decides it, and rejects
forms with too many rows. `ucle.sqlgen.written_form` makes the SQL of it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from ucle.errors import ArgumentError, ArgumentTypeError, LabelError, did_you_mean
from ucle.foundation import arguments as args
from ucle.foundation.arguments import Check
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import same_value
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.language.syntax import Access, Binary, Reindexed, Statement
from ucle.operators import MAX, MIN, Reduce
from ucle.operators.rows import Extreme

MAX_ROWS = 10**8
"""The most rows that are written of a tensor with every entry, unless the caller allows more."""

LONGEST_ARRAY = 100_000
"""The largest length that a type of DuckDB can state for its arrays."""

NONFILL, EVERY_ROW, STORED = ROWS = ("nonfill", "all", "stored")
"""The choices of rows that are written.

- ``nonfill``: those that hold an entry that differs from the fill.
- ``all``: every one that the bounds allow.
- ``stored``: those that the plan has stored, which another plan may not.
"""


FORM: dict[str, Check] = {
    "keys": args.optional(args.labels),
    "rows": args.optional(args.choice(*ROWS)),
    "max_rows": args.count(),
}
"""Checks of the arguments of public functions that choose columns and rows."""


@dataclass(frozen=True)
class WrittenForm:
    """The columns and rows of a written tensor.

    `layout` promotes the axes that have columns; the other axes are in arrays, row-major in the
    order of the tensor's axes. `rows` is one of `ROWS`. `fixed_length` is True if the type of the
    arrays states their length: ``FLOAT[3]`` in place of ``FLOAT[]``.
    """

    layout: Layout
    rows: str
    fixed_length: bool = False

    @property
    def every_row(self) -> bool:
        """True if every row that the bounds allow is written."""
        return self.rows == "all"

    @property
    def entries(self) -> bool:
        """True if every axis has a column."""
        return self.layout.scalar


def form_of(
    type_: TensorType,
    nonfill: bool,
    keys: Sequence[str] | None,
    rows: str | None,
    max_rows: int = MAX_ROWS,
    where: str = "rows",
    fixed: Collection[int] = (),
) -> WrittenForm:
    """Return the form that a caller asks for; the arguments were checked by `FORM` before.

    Args:
        type_: type of the tensor.
        nonfill: True if entries that hold the fill carry no information (`says_nothing`).
        keys: labels of the axes that have columns; all by default.
        rows: one of `ROWS`; by default ``nonfill`` if the fill carries no information, else
            ``all``.
        max_rows: the most rows that may be written with ``all``.
        where: the place in the program, for messages.
        fixed: axes whose sizes the types of columns fix.

    Raises:
        LabelError: the tensor has no such label.
        ArgumentError: there are too many rows.

    >>> from ucle.ir.layouts import Label
    >>> type_ = TensorType((Label("i", 3), Label("j", 4)))
    >>> form_of(type_, True, ["i"], None).layout.promoted
    (0,)
    """
    if isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 0:
        raise ArgumentTypeError(
            "this is not a number of rows",
            where=where,
            expected="max_rows=10**8",
            found=repr(max_rows),
        )
    names = [axis.name for axis in type_.axes]
    promoted = names if keys is None else _checked_keys(names, keys, where)
    layout = Layout.of(name in promoted for name in names)
    # A scalar is one number, whatever it is.
    chosen = rows or ("nonfill" if nonfill and type_.rank else "all")
    if chosen == "nonfill" and type_.positions_in is not None:
        chosen = "all"  # position 0 has a name like the others
    count = math.prod(type_.shape[axis] for axis in layout.promoted)
    if chosen == "all" and count > max_rows:
        raise ArgumentError(
            "every entry of the tensor would be written, and these are too many",
            where=where,
            expected=f"at most {max_rows:,} rows" + ("" if keys is None else f" for keys={keys!r}"),
            found=f"{count:,} rows, of {' x '.join(map(str, type_.shape))} entries",
            hint=f"rows='nonfill' leaves out entries that equal the fill, {type_.fill}; "
            "keys= writes arrays, and max_rows= allows more",
        )
    fixed_length = (
        0 < type_.dense_size(layout) <= LONGEST_ARRAY
        and set(layout.dense) <= set(fixed)
        and not layout.scalar
        and type_.positions_in is None
    )
    return WrittenForm(layout, chosen, fixed_length)


def _checked_keys(names: list[str], keys: Sequence[str], where: str) -> list[str]:
    for key in keys:
        if key not in names:
            raise LabelError(
                f"the tensor has no label {key!r}",
                where=where,
                expected=", ".join(names) or "none",
                found=f"keys={list(keys)!r}",
                hint=did_you_mean(key, names),
            )
    return list(keys)


def says_nothing(type_: TensorType, aggregations: frozenset[Reduce]) -> bool:
    """Return whether entries that hold the fill are not written by default.

    They are not if the fill is 0 or False, or the identity of the ⊕ that made the tensor: a vertex
    that no path reaches has no distance from anywhere.

    Args:
        type_: type of the tensor.
        aggregations: the result of `find_aggregations` for the tensor.
    """
    if type_.fill == 0:
        return True
    identities = [each.identity for each in aggregations if each.identity is not None]
    return any(same_value(type_.fill, identity(type_.dtype)) for identity in identities)


def find_aggregations(statements: Sequence[Statement]) -> dict[str, frozenset[Reduce]]:
    """Return the ⊕ that made each tensor of resolved statements; none if made entry by entry.

    The text decides it and not the plan, which may have another order of aggregations. A tensor
    that is another one under a new name, or with its axes in another order, has the ⊕ of that
    tensor. Inputs count as made by min or max: a table of distances has the fill inf.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.resolve import resolve
    >>> text = "D[i,k] min= A[i,j] + A[j,k]; E[k,i] = D[i,k]"
    >>> statements = [resolve(statement) for statement in parse_program(text)]
    >>> (reduce,) = find_aggregations(statements)["E"]
    >>> reduce.name
    'min'
    """
    reduces: dict[str, frozenset[Reduce]] = {}
    for statement in statements:
        reduces[statement.target.tensor] = _aggregations(statement, reduces)
    return reduces


_EITHER = {Extreme.LEAST: MIN, Extreme.GREATEST: MAX}


def _aggregations(statement: Statement, reduces: dict[str, frozenset[Reduce]]) -> frozenset[Reduce]:
    if statement.aggregation is not None:
        return frozenset((statement.aggregation,))
    match statement.expression:
        case Binary(operator) if (
            operator.extreme is not None
        ):  # min(D, A) means the same as D min= A
            return frozenset((_EITHER[operator.extreme],))
        case Access(tensor) | Reindexed(Access(tensor)):
            return reduces.get(tensor, frozenset(_EITHER.values()))
    return frozenset()
