"""Strings of a model, as coordinates.

A program has no strings as values, but names as coordinates. A column of strings is an input with
the name as its second coordinate; encoders join it with the names that they know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ucle.models.values import KnownNames
from ucle.models.views import Axis, Size, View, new_axis
from ucle.models.writer import Writer, language_type


def known_names(writer: Writer, names: Sequence[object], wish: str) -> str:
    """An input that has the position of each name; its own name."""
    key = ("names", tuple(str(name) for name in names))
    found = writer.names_known.get(key)
    if found is None:
        found = writer.names_known[key] = writer.name(wish)
        writer.weights[found] = KnownNames(key[1])
    return found


def indicators(
    writer: Writer, column: str, names: Sequence[object], wish: str, dtype: object
) -> View:
    """1 where a row has the name at a position of a list, 0 elsewhere: rows by positions."""
    known = known_names(writer, names, f"{column}_names")
    axes: tuple[Axis, ...] = ((writer.rows,), new_axis(Size(len(names))))

    def expression(reading: Callable[[View], str]) -> str:
        labels = writer.labels([atom for axis in axes for atom in axis])
        rows = labels[writer.rows]
        at = labels[axes[1][0]] if axes[1] else "0"
        return f"sum[{column}_name]({column}[{rows},{column}_name] * {known}[{column}_name,{at}])"

    return writer.emit(wish, axes, expression, dtype)


def known_indicators(
    writer: Writer, column: str, names: Sequence[object], wish: str, dtype: object
) -> View:
    """The same, where another name is an error that states its row.

    The position of a name is an index, which has to be that of one of the names.
    """
    hits = indicators(writer, column, names, f"{wish}_found", dtype)
    rows, places = hits.axes

    def position(reading: Callable[[View], str]) -> str:
        if not places:
            return f"int64({reading(hits)}) - 1"
        at = writer.labels([*rows, *places])[places[0]]
        return f"int64(sum[{at}]({reading(hits)} * ({at} + 1))) - 1"

    at = writer.emit(f"{column}_position", (rows,), position, "int64", summed=places)
    ones = writer.view(np.ones(len(names) + 1), f"{column}_is_known")
    known = writer.emit(
        f"{column}_known",
        at.axes,
        lambda reading: f"{ones.tensor}[{reading(at)}]",
        "float64",
    )
    wide = known.with_axes((*known.axes, ()))
    kind = language_type(dtype)
    return writer.pointwise(wish, [hits, wide], lambda x, k: f"{x} * {kind}({k})", dtype)
