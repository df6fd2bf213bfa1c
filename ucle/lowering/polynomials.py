"""Sums of products: the value of steps of +, -, * and sums over labels, for any bracketing.

    polynomial = monomial + ... + monomial
    monomial   = coefficient * sum[over](use * ... * use)

A coefficient is an exact rational number, so that equal terms combine and cancel exactly. Every
program of sums and products has one polynomial in which no factor is itself a sum, up to the names
of summed labels. Two programs with the same polynomial compute the same (SPORES, Theorem 2.3).
`ucle.lowering.read_polynomials` reads polynomials off a logical program, one bracket at a time, and
`ucle.lowering.write_polynomials` writes them into one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, count, permutations, product

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Label
from ucle.lowering.logical import Labels, Use

MOST_TERMS = 32
"""The most monomials of one polynomial: brackets that would make more are not multiplied out."""

MOST_FACTORS = 24
"""The most factors of one monomial for which an order is still searched."""

MOST_TIES = 5
"""The most summed labels that look alike whose orders are all compared to find equal terms."""


@dataclass(frozen=True)
class Monomial:
    """A coefficient times the sum over labels of a product of uses; without factors, a number."""

    coefficient: Fraction
    factors: tuple[Use, ...] = ()
    over: Labels = ()

    @cached_property
    def labels(self) -> frozenset[Label]:
        """The labels that are left."""
        every = {label for factor in self.factors for label in factor.labels}
        return frozenset(every.difference(self.over))

    @cached_property
    def key(self) -> object:
        """A key that is equal for monomials up to coefficients, order, and names of summed labels.

        Summed labels are distinguished by what they index (colour refinement). For labels that
        still look alike, all orders are compared if they are few.
        """
        colours = _refine_colours(self)
        tied = Counter(colours[label] for label in self.over)
        ties = [[x for x in self.over if colours[x] == c] for c, n in tied.items() if n > 1]
        if sum(map(len, ties)) > MOST_TIES:
            return _colour_factors(self.factors, colours), self.over
        orders = product(*(permutations(tie) for tie in ties))
        numbered = (
            {x: f"{colours[x]} {n}" for tie in order for n, x in enumerate(tie)} for order in orders
        )
        keys = (_colour_factors(self.factors, {**colours, **numbers}) for numbers in numbered)
        return min(keys, key=lambda key: [text for _, *text in key])

    def without(self, places: Collection[int]) -> tuple[Use, ...]:
        """Return the factors except those at some places."""
        return tuple(x for n, x in enumerate(self.factors) if n not in places)

    def sum_over(self, over: Iterable[Label]) -> Monomial:
        """Return the sum over labels; a label that the monomial lacks multiplies it by its size."""
        own = tuple(label for label in over if label in self.labels)
        repeated = math.prod(label.bound for label in over if label not in self.labels)
        return Monomial(self.coefficient * repeated, self.factors, (*self.over, *own))

    def rename_labels(self, names: Mapping[Label, Label]) -> Monomial:
        """Return this monomial under other labels."""
        factors = (
            replace(x, labels=tuple(names.get(label, label) for label in x.labels))
            for x in self.factors
        )
        over = tuple(names.get(label, label) for label in self.over)
        return Monomial(self.coefficient, tuple(factors), over)

    def __str__(self) -> str:
        text = " * ".join(map(str, self.factors)) or "1"
        if self.over:
            text = f"sum[{','.join(label.name for label in self.over)}]({text})"
        return text if self.coefficient == 1 else f"{self.coefficient} * {text}"


@dataclass(frozen=True)
class Polynomial:
    """A sum of monomials of one element type; `labels` are the labels of its result.

    >>> i, j, k = (Label(name, 9) for name in "ijk")
    >>> A, x = Use("A", (i, j), DType.FLOAT64), Use("x", (j,), DType.FLOAT64)
    >>> both = [Monomial(Fraction(2), (A, x), (j,)), Monomial(Fraction(-1, 2), (x, A), (j,))]
    >>> print(Polynomial((i,), DType.FLOAT64, tuple(both)).simplify_terms())
    3/2 * sum[j](A[i,j] * x[j])
    """

    labels: Labels
    dtype: DType
    monomials: tuple[Monomial, ...]

    @property
    def uses(self) -> tuple[Use, ...]:
        """The factors of all monomials, each once."""
        return tuple(dict.fromkeys(x for m in self.monomials for x in m.factors))

    def simplify_terms(self) -> Polynomial | None:
        """Combine equal terms; None if no term with factors is left, or labels are missing.

        A tensor that is 0 everywhere, or constant along a label, has no factor with that label.
        """
        first: dict[object, Monomial] = {}
        if len(self.monomials) == 1:  # nothing to compare it with: its key takes long
            first[None] = self.monomials[0]
        for monomial in () if first else self.monomials:
            same = first.get(monomial.key)
            total = monomial.coefficient + (same.coefficient if same else 0)
            first[monomial.key] = replace(same or monomial, coefficient=total)
        left = tuple(m for m in first.values() if m.coefficient)
        if not any(m.factors for m in left):
            return None
        if frozenset[Label]().union(*(m.labels for m in left)) != frozenset(self.labels):
            return None
        return replace(self, monomials=left)

    @property
    def cancels_on_a_diagonal(self) -> bool:
        """True if its terms cancel wherever two labels of the result have the same coordinate.

        >>> i, j, k = (Label(name, 9) for name in "ijk")
        >>> A, B = (Use("A", (label, k), DType.FLOAT64) for label in (i, j))
        >>> squares = [Monomial(Fraction(1), (x, x), (k,)) for x in (A, B)]
        >>> distances = (*squares, Monomial(Fraction(-2), (A, B), (k,)))
        >>> Polynomial((i, j), DType.FLOAT64, distances).cancels_on_a_diagonal
        True
        """
        return any(
            self._cancels_where({other: one})
            for one, other in combinations(self.labels, 2)
            if replace(other, name=one.name) == one
        )

    def _cancels_where(self, same: Mapping[Label, Label]) -> bool:
        """Return whether nothing is left under these other labels."""
        totals: dict[object, Fraction] = {}
        for monomial in self.monomials:
            key = monomial.rename_labels(same).key
            totals[key] = totals.get(key, Fraction(0)) + monomial.coefficient
        return not any(totals.values())

    def sum_over(self, over: Labels) -> Polynomial:
        """Return the sum over some of its labels."""
        labels = tuple(label for label in self.labels if label not in over)
        return Polynomial(labels, self.dtype, tuple(m.sum_over(over) for m in self.monomials))

    def expand_factors(
        self, which: Callable[[Use], bool], definition: Callable[[Use], Polynomial]
    ) -> Polynomial | None:
        """Replace some factors by their definitions and multiply out; None if that is too long."""
        monomials: list[Monomial] = []
        taken = {label.name: label for m in self.monomials for label in _every(m)}
        for monomial in self.monomials:
            places = [n for n, x in enumerate(monomial.factors) if which(x)]
            sums = [definition(monomial.factors[n]).monomials for n in places]
            if len(monomials) + math.prod(map(len, sums)) > MOST_TERMS:
                return None
            rest = monomial.without(places)
            for chosen in product(*sums):
                factors, over = list(rest), list(monomial.over)
                for term in chosen:
                    own = term.rename_labels(fresh(term.over, taken))
                    factors += own.factors
                    over += own.over
                if len(factors) > MOST_FACTORS:
                    return None
                worth = monomial.coefficient * math.prod(t.coefficient for t in chosen)
                inner = Monomial(worth, tuple(factors), tuple(over[len(monomial.over) :]))
                monomials.append(inner.sum_over(monomial.over))
        return replace(self, monomials=tuple(monomials)).simplify_terms()

    def __str__(self) -> str:
        return " + ".join(map(str, self.monomials))


def _every(monomial: Monomial) -> set[Label]:
    return {*monomial.over, *(label for factor in monomial.factors for label in factor.labels)}


def fresh(over: Labels, taken: dict[str, Label]) -> dict[Label, Label]:
    """Return new names for summed labels, and mark them as taken."""
    names: dict[Label, Label] = {}
    for label in over:
        name = label.name
        if name in taken:
            name = next(x for n in count(1) if (x := f"{label.name}_{n}") not in taken)
        names[label] = taken[name] = replace(label, name=name)
    return names


# ---- Equal terms ----

Colours = Mapping[Label, str]
"""The colours of labels: the name of a free one, and the surroundings of a summed one."""


def _refine_colours(monomial: Monomial) -> Colours:
    """Return colours that distinguish all labels in different places."""
    over = set(monomial.over)
    colours = {x: f"sum {x.bound}" if x in over else x.name for x in _every(monomial)}
    for _ in over:
        before = len({colours[x] for x in over})
        seen = {x: _surroundings(monomial, x, colours) for x in over}
        ranks = {text: n for n, text in enumerate(sorted(set(seen.values())))}
        colours.update((x, f"sum {ranks[seen[x]]}") for x in over)
        if len(ranks) == before:
            break
    return colours


def _surroundings(monomial: Monomial, label: Label, colours: Colours) -> str:
    """Return a label's colour, with the colours beside it in each factor that has it."""
    factors = [x for x in monomial.factors if label in x.labels]
    marked = {**colours, label: f"<{colours[label]}>"}
    return " ".join(map(str, [colours[label], *(x[1:] for x in _colour_factors(factors, marked))]))


def _colour_factors(factors: Iterable[Use], colours: Colours) -> tuple[tuple[object, ...], ...]:
    """Return the factors with colours in place of labels, sorted by their texts."""
    coloured = (
        (
            (x.tensor, x.maps, x.dtype),
            x.tensor,
            " ".join(map(str, x.maps)),
            " ".join(colours[label] for label in x.labels),
        )
        for x in factors
    )
    return tuple(sorted(coloured, key=lambda each: each[1:]))
