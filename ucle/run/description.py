"""Descriptions of results, as a line of Python or in a notebook.

A notebook shows the first `ROWS` rows as they are stored, in the order of their keys. That is one
small query; a result that can no longer be read is described without rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ucle.errors import ResultClosedError, UcleError
from ucle.foundation import html
from ucle.foundation.dataclasses import dataclass
from ucle.run.stored_tensor import StoredTensor

ROWS = 5
"""The number of rows of a tensor that are shown."""

NUMBERS = 4
"""The number of elements of an array that are shown."""

LARGEST_ROW = 2**24
"""Size of a row in bytes above which no row is fetched to be shown."""

TENSORS = 8
"""The number of tensors of a result that are shown; the others are only named."""


@dataclass(frozen=True)
class ResultDescription:
    """The description of a computed tensor.

    `axes` holds the label, the bound, the kind of coordinates and the place of each axis. `stored`
    gives the number of rows and the content of a row; it is empty if rows cannot be read, and
    `note` gives the reason.
    """

    name: str
    labels: str
    dtype: str
    fill: str
    axes: tuple[tuple[str, str, str, str], ...]
    stored: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def said(self) -> str:
        """The text after the name."""
        said = f"[{self.labels}], {self.dtype}, fill {self.fill}"
        return f"{said}, {self.stored}" if self.stored else said

    @property
    def html(self) -> str:
        """The text below the name in a notebook: a part of an element."""
        parts = []
        if self.axes:
            parts.append(html.table(("axis", "size", "coordinates", "lies in"), self.axes))
        if self.note:
            parts.append(html.paragraph([self.note]))
        if self.rows:
            rows = html.table(self.header, self.rows)
            parts.append(html.fold_section("First rows", rows, unfolded=True))
        return "\n".join(parts)


def tensor_text(tensor: StoredTensor) -> str:
    """The `repr` of a tensor; nothing is read."""
    return f"<TensorRelation {tensor.name}[{_labels(tensor)}], columns {', '.join(tensor.columns)}>"


def tensor_html(tensor: StoredTensor) -> str:
    """The HTML of a tensor in a notebook."""
    shown = describe(tensor)
    return html.element([html.title(shown.name, shown.said), shown.html])


def result_text(result: Mapping[str, StoredTensor]) -> str:
    """The `repr` of a result."""
    return f"<Result of {', '.join(result)}>"


def result_html(result: Mapping[str, StoredTensor]) -> str:
    """The HTML of a result in a notebook: its tensors, the first of them unfolded."""
    parts = [html.title("Result", f"of {', '.join(result)}")]
    for place, tensor in enumerate(list(result.values())[:TENSORS]):
        shown = describe(tensor)
        parts.append(html.fold_section(shown.name, shown.html, shown.said, unfolded=place == 0))
    return html.element(parts)


def describe(tensor: StoredTensor) -> ResultDescription:
    """Describe a tensor, with its first rows."""
    stored, note = "", ""
    rows: list[tuple[Any, ...]] = []
    try:
        stored = _describe_rows(tensor)
        if tensor.type.tuple_bytes(tensor.layout.shown) <= LARGEST_ROW:
            rows = tensor.first_rows(ROWS, NUMBERS + 1)
    except ResultClosedError as error:
        note = f"{error.message}: {error.found}"
    except UcleError as error:  # such as an aborted transaction, which has another cause
        note = f"its rows cannot be read: {error.message}"
    inside = set(tensor.layout.dense)
    return ResultDescription(
        tensor.name,
        _labels(tensor),
        tensor.type.dtype.value,
        f"{tensor.fill:g}",
        tuple(
            (
                axis.name,
                f"{axis.bound:,}",
                "positions" if axis.dictionary is None else "values of the data",
                "the arrays" if place in inside else "a key column",
            )
            for place, axis in enumerate(tensor.type.axes)
        ),
        stored,
        note,
        (*(tensor.type.axes[place].name for place in tensor.layout.shown.promoted), "val"),
        tuple(tuple(_cell(value) for value in row) for row in rows),
    )


def _labels(tensor: StoredTensor) -> str:
    return ", ".join(str(axis) for axis in tensor.type.axes)


def _describe_rows(tensor: StoredTensor) -> str:
    """The number of stored rows, out of how many possible ones, and the content of a row."""
    count = tensor.count_stored()
    layout = tensor.layout
    most = math.prod(tensor.type.key_range(layout, axis) for axis in layout.promoted)
    rows = f"{count:,} row{'' if count == 1 else 's'} stored"
    if layout.promoted and count < most:
        rows += f" of {most:,}"
    if layout.compressed is not None:
        return f"{rows}, each with what rows hold"
    sizes = " x ".join(map(str, tensor.type.dense_shape(layout)))
    return f"{rows}, each an array of {sizes}" if sizes else rows


def _cell(value: Any) -> str:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return f"{value:.6g}" if isinstance(value, float | complex) else str(value)
    shown = ", ".join(map(_entry, value[:NUMBERS]))
    return f"[{shown}]" if len(value) <= NUMBERS else f"[{shown}, ...]"


def _entry(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float | complex) else str(value)
