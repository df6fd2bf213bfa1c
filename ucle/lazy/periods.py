"""Aggregates over times: the entries of each step of dates, or of a window of time before each.

Which times belong together is read from the column of times, as a second input over the same
relation (`ucle.plan.sources.TimePairs`): pairs of a time of the result and a time of an entry.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.errors import ArgumentError, UnsupportedError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.lazy.constants import everywhere
from ucle.lazy.elementwise import elementwise
from ucle.lazy.key_columns import find_key_columns
from ucle.lazy.key_pairs import origin_of_coordinates, pairs_of_keys
from ucle.lazy.nodes import AVERAGE, Axis, Lazy, Leaf, NodeOperand, apply
from ucle.lazy.positions_in_order import ordinals
from ucle.lazy.reductions import reduce_tensor
from ucle.lazy.series_aggregates import Result_co, SeriesAggregates
from ucle.lazy.stored import is_empty_elsewhere, mask_along
from ucle.operators import (
    DIV,
    EQUAL,
    FINITE,
    GREATEST,
    LESS_EQUAL,
    MAX,
    MEAN,
    MIN,
    MULT,
    SQUARE,
    SUB,
    SUM,
    WHEN,
    WHEN_HIGHEST,
    WHEN_LOWEST,
)
from ucle.plan.sources import TimePairs

UNITS = {
    "us": (0, 1),
    "ms": (0, 1_000),
    "s": (0, 1_000_000),
    "m": (0, 60_000_000),
    "min": (0, 60_000_000),
    "h": (0, 3_600_000_000),
    "d": (0, 86_400_000_000),
    "D": (0, 86_400_000_000),
    "w": (0, 604_800_000_000),
    "mo": (1, 0),
    "q": (3, 0),
    "y": (12, 0),
}
"""Months and microseconds of the units of a length of time, by their names in Polars."""

ROUNDING = 1e-13
"""The share of a sum of squares that may be rounding: a window with less does not vary."""

_LENGTH = re.compile(r"(\d*)\s*([A-Za-z]+)")

Length = tuple[int, int]
"""A length of time: months, or microseconds."""


def is_length(value: Any) -> bool:
    """True if a value states a length of time, and no number of positions."""
    return isinstance(value, str | datetime.timedelta | np.timedelta64)


def length_of_time(value: Any, where: str) -> Length:
    """Months or microseconds of a length of time, of which the other is 0.

    Raises:
        ArgumentError: it is not a length of time, or not a positive one.

    >>> length_of_time("2w", ""), length_of_time(datetime.timedelta(seconds=1), "")
    ((0, 1209600000000), (0, 1000000))
    """
    months = micros = 0
    if isinstance(value, str):
        found = _LENGTH.fullmatch(value.strip())
        if found and found[2] in UNITS:
            unit, count = UNITS[found[2]], int(found[1] or 1)
            months, micros = unit[0] * count, unit[1] * count
    elif isinstance(value, np.timedelta64) and np.datetime_data(value)[0] in "YM":
        months = int(value.astype("timedelta64[M]").astype(int))
    elif isinstance(value, np.timedelta64):
        micros = int(value.astype("timedelta64[us]").astype(int))
    elif isinstance(value, datetime.timedelta):
        micros = value // datetime.timedelta(microseconds=1)
    if (months or micros) and min(months, micros) >= 0:
        return months, micros
    raise ArgumentError(
        "this is not a length of time",
        where=where,
        expected="a number and a unit, as '7d', '1mo' or '30min' (" + ", ".join(UNITS) + "), "
        "or a timedelta",
        found=repr(value),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Periods(SeriesAggregates[Result_co]):
    """The entries of periods of time, made by `ucle.resample`; the methods aggregate them.

    `ucle.rolling` makes them for windows of a length of time.
    """

    pairs: Leaf
    """The times of results and those of their entries."""

    @validated(stored=args.flag)
    def sum(self, *, stored: bool = False) -> Result_co:
        """Sums of the entries of each period."""
        own = self._choose(stored)
        return own._with_enough(own._gather(own._numbers(1), WHEN.name, SUM.name), 0)

    @validated(stored=args.flag)
    def mean(self, *, stored: bool = False) -> Result_co:
        """Means of the entries of each period."""
        own = self._choose(stored)
        return own._with_enough(own._mean(own._count()))

    @validated(stored=args.flag)
    def min(self, *, stored: bool = False) -> Result_co:
        """The smallest entry of each period."""
        own = self._choose(stored)
        return own._with_enough(own._end(WHEN_HIGHEST.name, MIN.name))

    @validated(stored=args.flag)
    def max(self, *, stored: bool = False) -> Result_co:
        """The greatest entry of each period."""
        own = self._choose(stored)
        return own._with_enough(own._end(WHEN_LOWEST.name, MAX.name))

    @validated(stored=args.flag)
    def count(self, *, stored: bool = False) -> Result_co:
        """The number of entries of each period."""
        own = self._choose(stored)
        if own.mask is not None:
            return own.make(own._count())
        every = everywhere(own.tensor, 1, DType.INT64)
        return own.make(own._gather(every, WHEN.name, SUM.name))

    @validated(stored=args.flag)
    def first(self, *, stored: bool = False) -> Result_co:
        """The entry at the first time of each period; of a mask, the first that it has.

        Raises:
            UnsupportedError: the periods are windows.
        """
        return self._choose(stored)._at_end("first")

    @validated(stored=args.flag)
    def last(self, *, stored: bool = False) -> Result_co:
        """The entry at the last time of each period; errors are as for `first`."""
        return self._choose(stored)._at_end("last")

    def __repr__(self) -> str:
        return f"<Periods of {self.tensor}>"

    @property
    def _certain(self) -> int:
        return 0 if self.pairs.value.times.every else super()._certain

    @property
    def _labels(self) -> tuple[list[int], list[Axis]]:
        """The labels and the axes of results: the period is labelled after all others."""
        rank = len(self.tensor.axes)
        labels = [rank if n == self.place else n for n in range(rank)]
        period = self.pairs.axes[0]
        axes = [period if n == self.place else a for n, a in enumerate(self.tensor.axes)]
        return labels, axes

    @property
    def _met(self) -> NodeOperand:
        """True where a time, which has the axis' label, belongs to a period."""
        return NodeOperand(self.pairs, (len(self.tensor.axes), self.place))

    def _numbers(self, one: float) -> Lazy:
        """The entries as numbers that are added, with 0 for those outside of the mask."""
        values = elementwise(MULT.name, self.tensor, one)
        if self.mask is None or (self.stored and is_empty_elsewhere(self.tensor)):
            return values
        return elementwise(WHEN.name, self.mask, values)

    def _gather(self, values: Lazy, function: str, aggregation: str) -> Lazy:
        """Aggregate the entries at the times of each period."""
        labels, axes = self._labels
        read = values.operand(range(len(axes)))
        return apply(function, [self._met, read], axes, labels, reduce=aggregation)

    def _end(self, nothing: str, aggregation: str) -> Lazy:
        values = self.tensor
        if self.mask is not None:
            values = elementwise(nothing, mask_along(values, self.mask), values)
        return self._gather(values, nothing, aggregation)

    def _count(self) -> Lazy:
        """The number of entries of each period; the same for all fibres without a mask."""
        if self.mask is not None:
            ones = elementwise(DType.INT64.value, mask_along(self.tensor, self.mask))
            return self._gather(ones, WHEN.name, SUM.name)
        labels, axes = self._labels
        units = [a if n == self.place else Axis(a.name, 1) for n, a in enumerate(axes)]
        return apply(DType.INT64.value, [self._met], units, labels, reduce=SUM.name)

    def _mean(self, count: Lazy) -> Lazy:
        total = self._gather(self._numbers(1.0), WHEN.name, SUM.name)
        return elementwise(AVERAGE, total, count)

    def _variance(self, ddof: float) -> Lazy:
        count = self._count()
        if self.pairs.value.times.kind == "window":
            return self._divide_by_freedom(self._squares_of_windows(count), count, ddof)
        mean = self._mean(elementwise(GREATEST.name, count, 1))
        labels, axes = self._labels
        rank = len(axes)
        both, every = [*self.tensor.axes, axes[self.place]], range(rank + 1)
        apart = apply(
            SUB.name, [self.tensor.operand(range(rank)), mean.operand(labels)], both, every
        )
        squares = elementwise_by_place(SQUARE.name, apart)
        if self.mask is not None:
            chosen = mask_along(self.tensor, self.mask).operand(range(rank))
            squares = apply(WHEN.name, [chosen, squares.operand(every)], both, every)
        total = apply(WHEN.name, [self._met, squares.operand(every)], axes, labels, reduce=SUM.name)
        return self._divide_by_freedom(total, count, ddof)

    def _squares_of_windows(self, count: Lazy) -> Lazy:
        """Sums of squared distances from the mean, by sums over windows, which need no pairs.

        Distances are from the mean of the whole axis first: their sums lose few digits, unless a
        window varies by far less than the axis. What may be rounding alone is 0.
        """
        values, place = self._numbers(1.0), self.place
        known = elementwise(FINITE.name, values)  # one NaN would make NaN of all
        if self.mask is None:
            centre = reduce_tensor(MEAN.name, known, place, True)
        else:
            ones = elementwise(DType.FLOAT64.value, mask_along(self.tensor, self.mask))
            some = elementwise(GREATEST.name, reduce_tensor(SUM.name, ones, place, True), 1)
            centre = elementwise(DIV.name, reduce_tensor(SUM.name, known, place, True), some)
        apart = elementwise(SUB.name, values, centre)
        if self.mask is not None:
            apart = elementwise(WHEN.name, mask_along(self.tensor, self.mask), apart)
        sums = self._gather(apart, WHEN.name, SUM.name)
        squares = self._gather(elementwise(SQUARE.name, apart), WHEN.name, SUM.name)
        shift = elementwise(
            DIV.name, elementwise(SQUARE.name, sums), elementwise(GREATEST.name, count, 1)
        )
        around = elementwise(SUB.name, squares, shift)
        noise = elementwise(LESS_EQUAL.name, around, elementwise(MULT.name, squares, ROUNDING))
        return elementwise("where", noise, 0.0, around)

    def _at_end(self, kind: str) -> Result_co:
        spec = self.pairs.value
        if spec.times.kind == "window":
            raise UnsupportedError(
                "windows of time have no first and no last entry here",
                where=f"rolling, {kind}",
                expected="steps of time, or an aggregate such as sum, mean, min or max",
                found="a window",
                hint=f"resample(x, '7d').{kind}() has steps",
            )
        if self.mask is not None:
            return self._with_enough(self._gather(self._ends_of_mask(kind), WHEN.name, "dot"))
        times = replace(spec.times, kind=kind)
        one = replace(self, pairs=replace(self.pairs, value=replace(spec, times=times)))
        return self._with_enough(one._gather(self.tensor, WHEN.name, "dot"))

    def _ends_of_mask(self, kind: str) -> Lazy:
        """The first or the last entry of each step that the mask has, and 0 elsewhere."""
        assert self.mask is not None
        tensor, mask = self.tensor, mask_along(self.tensor, self.mask)
        order = ordinals(tensor, self.place)
        nothing, aggregation = (WHEN_HIGHEST, MIN) if kind == "first" else (WHEN_LOWEST, MAX)
        ends = self._gather(elementwise(nothing.name, mask, order), nothing.name, aggregation.name)
        labels, _ = self._labels
        # A time is in one step: at each time, this is where its step has its end.
        read = [self._met, ends.operand(labels)]
        at = apply(WHEN.name, read, tensor.axes, range(len(tensor.axes)), reduce=SUM.name)
        chosen = elementwise("logical_and", mask, elementwise(EQUAL.name, order, at))
        return elementwise(WHEN.name, chosen, tensor)


def elementwise_by_place(function: str, tensor: Lazy) -> Lazy:
    """Apply a function of one value, whatever the names of the axes are."""
    every = range(len(tensor.axes))
    return apply(function, [tensor.operand(every)], tensor.axes, every)


def pairs_of_times(
    tensor: Lazy, place: int, kind: str, length: Length, where: str, *, every: bool = False
) -> Leaf:
    """The input that pairs times of an axis: those of results, and those of their entries.

    Args:
        tensor: the tensor.
        place: its axis of times.
        kind: of `TimePairs`.
        length: the length of a step or a window.
        where: for messages.
        every: True for all steps from the first to the last, also those without a time.

    Raises:
        UnsupportedError: the times of the axis are not those of one table.
    """
    found = dict.fromkeys(find_key_columns(tensor.node, tensor.labelled.index(place)))
    if len({origin_of_coordinates(leaf, axis) for leaf, axis in found}) != 1:
        raise UnsupportedError(
            "the times of this axis are not those of one table",
            where=f"{where}, {tensor}",
            expected="an axis whose coordinates are in a key column of a table",
            found="an array, or several tables or steps" if found else "positions",
            hint="rolling(7) counts positions; a view with UNION has the times of several tables",
        )
    leaf, axis = next(iter(found))
    months, micros = length
    times = TimePairs(0, 0, kind, months, micros, every)
    return pairs_of_keys(leaf, axis, replace(tensor.axes[place], encoded=True), times)
