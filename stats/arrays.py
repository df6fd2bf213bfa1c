"""Contents of the arrays of a table: entries and non-finite numbers, without unnesting arrays.

There are two equivalent ways: kernels inside DuckDB, and NumPy on the batches that DuckDB returns
where the kernels cannot be loaded. Both look at every element, because programs rely on the
results. The spread of the entries over the axes inside the arrays only guides the optimiser: for
large tables `spread` looks at a sample of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.foundation.arrow_numbers import numpy_array
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar, differs_from, is_finite, same_value
from ucle.foundation.libraries import pa
from ucle.operators.values import Real
from ucle.plan.sources import TableSource
from ucle.sqlgen import input_queries as sql

Fetch = Callable[[str], Sequence[Sequence[Any]]]
"""Runs a query and returns its rows."""

Batches = Callable[[str, int], "Iterable[pa.RecordBatch]"]
"""Runs a query and returns its rows in batches of a given number of rows."""

BATCH_ELEMENTS = 1 << 21
"""Elements that NumPy examines at a time."""


@dataclass(frozen=True)
class Elements:
    """Contents of the arrays of a table."""

    incomplete: int
    """Arrays that are NULL or hold a NULL."""
    entries: int
    finite: bool
    """True if all entries are finite; elements equal to the fill are not entries."""
    filled: int
    """Rows with an entry."""
    ends: tuple[Real, Real] | None = None
    """The least and the largest number in the arrays; None where they are unknown or NaN."""


Look = Callable[[TableSource, Scalar, str], Elements]
"""One of the two ways; takes a source, its fill and the prefix of registered tables."""


def by_kernels(fetch: Fetch, otherwise: Look) -> Look:
    """Return the way for connections with kernels; these need a finite fill where it is complex."""

    def look(source: TableSource, fill: Scalar, prefix: str) -> Elements:
        if source.dtype.kind == "c" and not is_finite(fill):
            return otherwise(source, fill, prefix)
        query = sql.elements_query(source, fill, other_extremes(source, fill), prefix)
        ((incomplete, entries, finite, filled, *ends),) = fetch(query)
        return Elements(incomplete, int(entries), bool(finite), filled, known_ends(*ends))

    return look


def by_numpy(batches: Batches) -> Look:
    """Return the way for connections without kernels."""

    def look(source: TableSource, fill: Scalar, prefix: str) -> Elements:
        size = math.prod(source.dense)
        rows = max(1, BATCH_ELEMENTS // max(size, 1))
        total = Elements(0, 0, True, 0)
        lows, highs = list[Any](), list[Any]()
        for batch in batches(sql.lists_query(source, prefix), rows):
            part = _look_at(batch.column(0), source, fill)
            total = Elements(
                total.incomplete + part.incomplete,
                total.entries + part.entries,
                total.finite and part.finite,
                total.filled + part.filled,
            )
            if part.ends is not None:
                lows.append(part.ends[0])
                highs.append(part.ends[1])
        # NumPy's minimum, unlike Python's, is NaN wherever one of the numbers is.
        ends = known_ends(np.min(lows).item(), np.max(highs).item()) if lows else None
        return replace(total, ends=ends)

    return look


def other_extremes(source: TableSource, fill: Scalar) -> tuple[Scalar, ...]:
    """The numbers that make a real tensor not finite, where its fill is one of them."""
    if source.dtype.kind != "f" or is_finite(fill):
        return ()
    extremes = (math.nan, math.inf, -math.inf)
    return tuple(number for number in extremes if not same_value(number, fill))


def _look_at(lists: Any, source: TableSource, fill: Scalar) -> Elements:
    flat = lists.flatten()
    parts = [flat.field("re"), flat.field("im")] if pa.types.is_struct(flat.type) else [flat]
    if lists.null_count or flat.null_count or any(part.null_count for part in parts):
        return Elements(1, 0, True, 0)
    numbers = [numpy_array(part) for part in parts]
    values: Any = numbers[0]
    if len(numbers) == 2:
        values = np.empty(len(flat), source.dtype.numpy)
        values.real, values.imag = numbers  # not their sum: inf times 1j has a NaN
    stored = differs_from(values, fill)
    ends = np.cumsum(numpy_array(lists.value_lengths()), dtype=np.int64)
    counts = np.concatenate([[0], np.cumsum(stored, dtype=np.int64)])[np.concatenate([[0], ends])]
    finite = bool(np.isfinite(values if is_finite(fill) else values[stored]).all())
    filled = int(np.count_nonzero(np.diff(counts)))
    extremes = None
    if source.dtype.kind in "fi" and len(values):
        extremes = values.min().item(), values.max().item()
    return Elements(0, int(counts[-1]), finite, filled, extremes)


def known_ends(low: Any, high: Any) -> tuple[Real, Real] | None:
    """The ends of an interval; None where they are unknown or NaN."""
    return None if low is None or math.isnan(low) or math.isnan(high) else (low, high)


def spread(
    fetch: Fetch, source: TableSource, elements: Elements, fill: Scalar, prefix: str, most: int
) -> tuple[float, ...]:
    """Estimate V of the axes inside the arrays, from the rows that a hash of their keys picks.

    Positions with one entry in the sample are weighted by the square root of the number of rows
    that a sampled row represents (Charikar et al., Towards estimation error guarantees for distinct
    values, 2000).

    Args:
        fetch: runs a query.
        source: the table.
        elements: what its arrays hold.
        fill: elements equal to it are not entries.
        prefix: of registered tables.
        most: the most elements to examine.
    """
    ((rows,),) = fetch(sql.rows_query(source, prefix))
    size = math.prod(source.dense)
    every = max(1, -(-int(rows) * size // most)) if source.keys else 1
    estimates = []
    for axis, bound in enumerate(source.dense):
        query = sql.places_query(source, fill, len(source.keys) + axis, every, prefix)
        ((places, alone),) = fetch(query)
        others = max(elements.filled, 1) * size / max(bound, 1)
        least = elements.entries / others if others else 0.0
        guess = places + (math.sqrt(every) - 1) * alone
        estimates.append(float(min(max(guess, least), bound, elements.entries)))
    return tuple(estimates)
