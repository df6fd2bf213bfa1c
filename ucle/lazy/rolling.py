"""Aggregates of windows along an axis, with the interface of pandas; `ucle.rolling` makes them."""

from __future__ import annotations

from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.lazy.constants import everywhere
from ucle.lazy.elementwise import elementwise
from ucle.lazy.nodes import AVERAGE, Lazy
from ucle.lazy.reductions import reduce_tensor
from ucle.lazy.series_aggregates import Result_co, SeriesAggregates
from ucle.lazy.stored import is_empty_elsewhere
from ucle.lazy.windows import Join, Part, Parts, Window, along_windows, join_by, join_moments
from ucle.operators import (
    ADD,
    GREATEST,
    LEAST,
    LESS,
    MAX,
    MULT,
    SUB,
    WHEN,
    WHEN_HIGHEST,
    WHEN_LOWEST,
)


@dataclass(frozen=True, eq=False, repr=False)
class Rolling(SeriesAggregates[Result_co]):
    """Windows along an axis of a tensor, made by `ucle.rolling`; the methods aggregate them."""

    window: Window
    order: Lazy
    """The numbers of the positions along the axis, from 1 on."""

    @validated(stored=args.flag)
    def sum(self, *, stored: bool = False) -> Result_co:
        """Sums of the entries in each window."""
        own = self._choose(stored)
        (total,) = own._aggregate(own._entries(own._numbers(1), WHEN.name), join_by(ADD.name))
        return own._with_enough(total.values, 0)

    @validated(stored=args.flag)
    def mean(self, *, stored: bool = False) -> Result_co:
        """Means of the entries in each window."""
        own = self._choose(stored)
        (total,) = own._aggregate(own._entries(own._numbers(1.0), WHEN.name), join_by(ADD.name))
        return own._with_enough(elementwise(AVERAGE, total.values, own._count()))

    @validated(stored=args.flag)
    def min(self, *, stored: bool = False) -> Result_co:
        """The smallest entry in each window."""
        own = self._choose(stored)
        return own._end(WHEN_HIGHEST.name, LEAST.name)

    @validated(stored=args.flag)
    def max(self, *, stored: bool = False) -> Result_co:
        """The greatest entry in each window."""
        own = self._choose(stored)
        return own._end(WHEN_LOWEST.name, GREATEST.name)

    @validated(stored=args.flag)
    def count(self, *, stored: bool = False) -> Result_co:
        """The number of entries in each window."""
        own = self._choose(stored)
        if own.mask is not None:
            return own.make(own._count())
        every = everywhere(own.tensor, 1, DType.INT64)
        return own.make(elementwise(MULT.name, every, own._count()))

    def __repr__(self) -> str:
        return f"<Rolling of {self.tensor}, {self.window.before + self.window.behind} positions>"

    def _numbers(self, one: float) -> Lazy:
        """The entries as numbers that are added: booleans as integers."""
        return elementwise(MULT.name, self.tensor, one)

    def _entries(self, values: Lazy, nothing: str) -> Parts:
        """The part of single entries, of which those outside of the mask are nothing."""
        empty = nothing == WHEN.name and is_empty_elsewhere(self.tensor)
        if self.mask is None or (self.stored and empty):  # what is not stored is 0 already
            return (Part(values, nothing, empty),)
        chosen = elementwise(nothing, self.mask, values)
        return (Part(chosen, nothing, is_empty_elsewhere(self.mask)),)

    def _aggregate(self, parts: Parts, join: Join, *, repeats: bool = False) -> Parts:
        return along_windows(parts, self.place, self.window, join, self.order, repeats=repeats)

    def _count(self) -> Lazy:
        """The number of entries in each window."""
        if self.mask is not None:
            ones = elementwise(DType.INT64.value, self.mask)
            part = Part(ones, WHEN.name, is_empty_elsewhere(self.mask))
            return self._aggregate((part,), join_by(ADD.name))[0].values
        count = elementwise(LEAST.name, self.order, self.window.before)
        if not self.window.behind:
            return count
        size = reduce_tensor(MAX.name, self.order, self.place, keepdims=True)
        left = elementwise(SUB.name, size, self.order)
        return elementwise(ADD.name, count, elementwise(LEAST.name, left, self.window.behind))

    def _end(self, nothing: str, operator: str) -> Result_co:
        parts = self._entries(self.tensor, nothing)
        (found,) = self._aggregate(parts, join_by(operator), repeats=True)
        return self._with_enough(found.values)

    def _variance(self, ddof: float) -> Lazy:
        (mean,) = self._entries(self._numbers(1.0), WHEN.name)
        if self.mask is None:
            one = elementwise(DType.INT64.value, elementwise(LESS.name, 0, self.order))
            ones = Part(one, WHEN.name, False)
        else:
            ones = Part(elementwise(DType.INT64.value, self.mask), WHEN.name, mean.empty)
        count, mean, *squares = self._aggregate((ones, mean), join_moments)
        # Windows of one position have 0, or NaN where that is NaN or infinite.
        own = elementwise(SUB.name, mean.values, mean.values)
        total = squares[0].values if squares else own
        return self._divide_by_freedom(total, count.values, ddof)
