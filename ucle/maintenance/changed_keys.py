"""Facts about a table of changed keys: all that a program has to know to read it as an input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ucle.foundation.dataclasses import dataclass
from ucle.stats.measure import MeasuredInput


@dataclass(frozen=True)
class ChangedKeys:
    """Facts about a temporary table of distinct keys, which one query finds."""

    count: int
    largest: tuple[int | None, ...]
    """The largest coordinate of each key; None for those that a dictionary numbers."""
    distinct: tuple[float, ...]
    """V of each key."""
    most: tuple[float, ...] = ()
    """The most keys that have the same coordinate, for each of its axes; none if not known."""
    differences: tuple[int | float, int | float, bool] | None = None
    """The least and the largest difference, and whether all are finite; None if one of them is not
    known, or none was wanted."""

    @classmethod
    def read(
        cls, count: int, row: Sequence[Any], keys: int, positions: Sequence[int], differs_by: bool
    ) -> ChangedKeys:
        """Read what `ucle.sqlgen.maintained_tables.with_facts_of_keys` has found.

        Args:
            count: the number of keys.
            row: what was found.
            keys: the number of columns of keys.
            positions: the places of those that are positions.
            differs_by: True if differences are wanted.
        """
        largest, groups = dict(zip(positions, row, strict=False)), row[len(row) - 2 * keys :]
        differences = None
        if differs_by and count:
            known, least, most, finite = row[len(positions) : len(positions) + 4]
            if known == count:
                differences = least, most, bool(finite)
        return cls(
            count,
            tuple(largest.get(n) for n in range(keys)),
            tuple(float(x) for x in groups[::2]),
            tuple(float(x or 0) for x in groups[1::2]),
            differences,
        )

    def mask(self, bounds: Sequence[int | None]) -> MeasuredInput:
        """Return the facts about the tensor that is true at the keys."""
        return replace(facts_of_mask(self.count, bounds, self.distinct), largest=self.most)

    def difference(self, bounds: Sequence[int | None]) -> MeasuredInput | None:
        """Return the facts about the differences at the keys; None if one of them is not known."""
        if self.differences is None:
            return None
        least, most, finite = self.differences
        extremes = (least, most) if finite else None
        return replace(self.mask(bounds), finite=finite, extremes=extremes)


def facts_of_mask(
    keys: int, bounds: Sequence[int | None], distinct: Sequence[float] | None = None
) -> MeasuredInput:
    """Return what is known about a table of distinct keys at which a tensor is true."""
    sizes = tuple(x or 0 for x in bounds)
    most = [float(keys)] * len(sizes) if distinct is None else distinct
    limited = tuple(min(v, float(x or keys)) for v, x in zip(most, sizes, strict=True))
    return MeasuredInput(sizes, True, float(keys), (True, True), limited, exact=False)
