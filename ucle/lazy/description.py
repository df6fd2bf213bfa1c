"""Descriptions of lazy tensors, as a line of Python or in a notebook, without computing them."""

from __future__ import annotations

import os

from ucle.foundation import html
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.operands import is_relation
from ucle.inputs.table_input import TableInput
from ucle.lazy.compute import known_type, program_of
from ucle.lazy.nodes import Lazy, Leaf, in_order

SHOWN = 8
"""The number of statements that a description shows."""


@dataclass(frozen=True)
class LazyDescription:
    """The facts about a tensor that are known before it is computed.

    `inputs` holds the name, the axes and the origin of each input; `statements` the last
    statements, and the number of omitted ones.
    """

    axes: str
    dtype: str
    rows: tuple[tuple[str, str, str], ...]
    inputs: tuple[tuple[str, str, str], ...]
    statements: tuple[str, ...]

    @property
    def text(self) -> str:
        """The `repr` of the tensor."""
        return "\n".join([f"<Tensor {self.axes}>", *self.statements])

    @property
    def html(self) -> str:
        """The HTML of the tensor in a notebook."""
        parts = [html.title("Tensor", f"{self.axes}, {self.dtype}, not computed")]
        if self.rows:
            parts.append(html.table(("axis", "size", "coordinates"), self.rows))
        parts.append(html.table(("input", "axes", "from"), self.inputs))
        parts.append(html.fold_section("Statements", html.code(self.statements), unfolded=True))
        return html.element(parts)


def describe(lazy: Lazy) -> LazyDescription:
    """Describe a lazy tensor without querying a database."""
    lines = str(program_of({"out": lazy})).splitlines()
    left_out = len(lines) - SHOWN
    dtype = known_type(lazy)
    return LazyDescription(
        str(lazy),
        "type as in the data" if dtype is None else dtype.value,
        tuple(
            (
                f"{place}" if axis.name is None else axis.name,
                "as in the data" if axis.size is None else f"{axis.size:,}",
                "values of the data" if axis.encoded else "positions",
            )
            for place, axis in enumerate(lazy.axes)
        ),
        tuple(
            (leaf.name, f"({', '.join(map(str, leaf.axes))})", _origin(leaf.value))
            for leaf in in_order([lazy.node])
            if isinstance(leaf, Leaf)
        ),
        tuple(lines if left_out <= 0 else [f"... {left_out} more", *lines[-SHOWN:]]),
    )


def _origin(value: object) -> str:
    """The origin of an input: the name of a table, or the kind of data in memory."""
    relation = value.relation if isinstance(value, TableInput) else value
    if isinstance(relation, str | os.PathLike):
        return os.fspath(relation)
    kind = type(relation)
    what = "a table in memory" if is_relation(relation) else "memory"
    return f"{what} ({kind.__module__.partition('.')[0]}.{kind.__qualname__})"
