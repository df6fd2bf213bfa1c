"""What windows of positions and periods of time have in common: aggregates of chosen entries."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Generic, Self, TypeVar

from ucle.errors import ArgumentError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass
from ucle.lazy.elementwise import elementwise
from ucle.lazy.nodes import Lazy
from ucle.lazy.reductions import root
from ucle.lazy.stored import stored_entries
from ucle.operators import DIV, LESS, LESS_EQUAL, SUB

Result_co = TypeVar("Result_co", covariant=True)


@dataclass(frozen=True, eq=False, repr=False)
class SeriesAggregates(ABC, Generic[Result_co]):
    """Groups of entries along an axis of a tensor; the methods aggregate each of them.

    With ``stored=True``, a method counts only the entries that the input stores, like all methods
    of groups that are made with it.
    """

    tensor: Lazy
    place: int
    """The axis."""
    min_periods: int
    mask: Lazy | None
    """The entries that count; None for all."""
    stored: bool
    """True if these are those that the input stores."""
    make: Callable[[Lazy], Result_co]
    """Makes a tensor, which a module above names."""

    @validated(ddof=args.real, stored=args.flag)
    def var(self, ddof: float = 1, *, stored: bool = False) -> Result_co:
        """Variances of the entries of each group; `ddof` is subtracted from their number.

        It is NaN where there are no more entries than that, as in pandas.
        """
        return self.make(self._choose(stored)._variance(ddof))

    @validated(ddof=args.real, stored=args.flag)
    def std(self, ddof: float = 1, *, stored: bool = False) -> Result_co:
        """Standard deviations of the entries of each group: the roots of `var`."""
        return self.make(root(self._choose(stored)._variance(ddof)))

    def _choose(self, stored: bool) -> Self:
        """Return the same groups; with `stored`, of the entries that the input stores.

        Raises:
            ArgumentError: there is a mask of other entries.
            UnsupportedError: the tensor is computed, so that nothing tells what is stored.
        """
        if not stored or self.stored:
            return self
        if self.mask is not None:
            raise ArgumentError(
                "two masks are stated",
                where=f"{self}, stored=True",
                expected="stored=True or where=mask",
                found="both",
                hint="where=ucle.logical_and(ucle.is_stored(x), mask)",
            )
        return replace(self, mask=stored_entries(self.tensor, "stored=True"), stored=True)

    @property
    def _certain(self) -> int:
        """The number of entries that each group has at least."""
        return int(self.mask is None)

    @abstractmethod
    def _count(self) -> Lazy:
        """The number of entries of each group."""

    @abstractmethod
    def _variance(self, ddof: float) -> Lazy: ...

    def _divide_by_freedom(self, squares: Lazy, count: Lazy, ddof: float) -> Lazy:
        """Variances by the sums of squares; NaN in groups with too few entries."""
        free = elementwise(SUB.name, count, ddof)
        some = elementwise(LESS.name, 0, free)
        if self.min_periods > 1:
            enough = elementwise(LESS_EQUAL.name, self.min_periods, count)
            some = elementwise("logical_and", some, enough)
        spread = elementwise(DIV.name, squares, elementwise("where", some, free, 1))
        return elementwise("where", some, spread, math.nan)

    def _with_enough(self, values: Lazy, least: int = 1) -> Result_co:
        """The aggregates, NaN in groups of fewer entries than `least` or `min_periods`."""
        least = max(self.min_periods, least)
        if least <= self._certain:
            return self.make(values)
        enough = elementwise(LESS_EQUAL.name, least, self._count())
        return self.make(elementwise("where", enough, values, math.nan))
