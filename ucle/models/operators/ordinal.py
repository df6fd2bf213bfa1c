"""`OrdinalEncoder` of scikit-learn, over names: unknown ones are an error where they are there."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ucle.models.calls import Call, Operator
from ucle.models.operators.products import contract
from ucle.models.operators.shapes import join
from ucle.models.text_columns import indicators, known_indicators
from ucle.models.values import Outputs, TextColumns
from ucle.models.views import View
from ucle.models.writer import number

FLOAT = np.dtype(np.float64)


def ordinal_encoder(call: Call) -> Outputs:
    """The number of each name among the categories of its column.

    Raises:
        UnsupportedError: the operand has numbers.
    """
    columns: list[str] = []
    for operand in call.inputs:
        if not isinstance(operand, TextColumns):
            raise call.refuse("categories are names, and an operand has numbers")
        columns += operand.names
    categories, parts = list(call.get("categories")), []
    for n, (column, count) in enumerate(zip(columns, call.get("counts"), strict=True)):
        names, categories = categories[:count], categories[count:]
        parts.append(_encode(call, column, names, f"{call.name}_{n}"))
    return parts[0] if len(parts) == 1 else join(call, parts, 1, call.name)


def _encode(call: Call, column: str, names: list[str], wish: str) -> View:
    """A column of names as numbers: rows, and an axis of size 1."""
    strict, unknown = bool(call.get("strict")), float(call.get("unknown", math.nan))
    writer = call.writer
    encode = known_indicators if strict else indicators
    hits = encode(writer, column, names, f"{wish}_is", FLOAT)
    base = 0.0 if strict or math.isnan(unknown) else unknown
    moved = writer.view(np.arange(len(names)) - base, f"{wish}_numbers")
    found = contract(writer, f"{wish}_sum", hits, moved, FLOAT)
    if strict:
        made = found
    elif math.isnan(unknown):  # no hit is 0 / 0
        ones = writer.view(np.ones(len(names)), f"{wish}_ones")
        known = contract(writer, f"{wish}_known", hits, ones, FLOAT)
        made = writer.pointwise(wish, [found, known], lambda x, n: f"{x} / {n}", FLOAT)
    else:
        made = writer.pointwise(wish, [found], lambda x: f"{x} + {number(base)}", FLOAT)
    return made.with_axes((hits.axes[0], ()) if made.rank == 1 else made.axes)


OPERATORS: Mapping[str, Operator] = {"OrdinalEncoder": ordinal_encoder}
