"""Conditions on labels: comparisons of functions of them, joined by and and or, as ``i < j``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum

from ucle.foundation.dataclasses import dataclass
from ucle.ir.affine import Affine


class Sign(Enum):
    """A comparison of a function of labels with 0."""

    AT_LEAST = ">="
    EQUAL = "=="
    UNEQUAL = "!="


@dataclass(frozen=True)
class Compare:
    """A function of labels compared with 0.

    >>> print(Compare(Affine.of({"j": 1, "i": -1}, -1), Sign.AT_LEAST))
    i < j
    """

    affine: Affine
    sign: Sign

    @property
    def negated(self) -> Condition:
        """The negation of this condition."""
        match self.sign:
            case Sign.AT_LEAST:
                return Compare(self.affine.times(-1).plus(Affine((), -1)), Sign.AT_LEAST)
            case Sign.EQUAL:
                return Compare(self.affine, Sign.UNEQUAL)
            case Sign.UNEQUAL:
                return Compare(self.affine, Sign.EQUAL)

    def __str__(self) -> str:
        more = Affine(tuple((x, n) for x, n in self.affine.terms if n > 0))
        less = Affine(tuple((x, -n) for x, n in self.affine.terms if n < 0))
        constant, sign = self.affine.constant, self.sign.value
        if sign == ">=" and constant < 0:
            sign, constant = ">", constant + 1
        if constant < 0:
            less = less.plus(Affine((), -constant))
        else:
            more = more.plus(Affine((), constant))
        if less.terms and sign in (">", ">="):
            return f"{less} {sign.replace('>', '<')} {more}"
        return f"{more} {sign} {less}"


@dataclass(frozen=True)
class All:
    """A conjunction of conditions; an empty one always holds."""

    parts: tuple[Condition, ...]

    @property
    def negated(self) -> Condition:
        """The negation of this condition."""
        return Some(tuple(part.negated for part in self.parts))

    def __str__(self) -> str:
        return " and ".join(f"({x})" if isinstance(x, Some) else str(x) for x in self.parts)


@dataclass(frozen=True)
class Some:
    """A disjunction of conditions; an empty one never holds."""

    parts: tuple[Condition, ...]

    @property
    def negated(self) -> Condition:
        """The negation of this condition."""
        return All(tuple(part.negated for part in self.parts))

    def __str__(self) -> str:
        return " or ".join(f"({x})" if isinstance(x, All) else str(x) for x in self.parts)


Condition = Compare | All | Some

NOTHING = All(())
"""The condition that always holds."""


def compares(condition: Condition) -> Iterator[Compare]:
    """Yield the comparisons of a condition, left to right."""
    if isinstance(condition, Compare):
        yield condition
        return
    for part in condition.parts:
        yield from compares(part)


def condition_labels(condition: Condition) -> tuple[str, ...]:
    """Return the labels of a condition, in order of first use."""
    return tuple(dict.fromkeys(x for part in compares(condition) for x in part.affine.labels))


def make_condition_nonnegative(condition: Condition, size: Callable[[str], int]) -> Condition:
    """Return the condition with its digits rewritten over functions that are never negative."""
    return _with_functions(condition, lambda affine: affine.make_nonnegative(size))


def conjuncts(condition: Condition) -> tuple[Condition, ...]:
    """Return the conjuncts of a condition.

    >>> i, j = (Compare(Affine.of({x: 1}), Sign.EQUAL) for x in "ij")
    >>> len(conjuncts(All((All((i, j)), Some((i, j))))))
    3
    """
    if not isinstance(condition, All):
        return (condition,)
    return tuple(x for part in condition.parts for x in conjuncts(part))


def together(*conditions: Condition) -> Condition:
    """Return the conjunction of conditions."""
    parts = tuple(dict.fromkeys(x for each in conditions for x in conjuncts(each)))
    return parts[0] if len(parts) == 1 else All(parts)


def rename_condition_labels(condition: Condition, names: Mapping[str, str]) -> Condition:
    """Return a condition with its labels renamed."""
    return _with_functions(condition, lambda affine: affine.rename_labels(names))


def _with_functions(condition: Condition, change: Callable[[Affine], Affine]) -> Condition:
    """Return a condition with each function of labels changed."""
    match condition:
        case Compare(affine, sign):
            return Compare(change(affine), sign)
        case All(parts):
            return All(tuple(_with_functions(part, change) for part in parts))
        case Some(parts):
            return Some(tuple(_with_functions(part, change) for part in parts))


MOST_COMPARISONS = 64
"""The most comparisons in a condition for a kernel (``udf_kernels/csrc/reindex.c``)."""


def clauses(condition: Condition) -> tuple[tuple[Compare, ...], ...] | None:
    """Return a condition in conjunctive normal form: clauses that are disjunctions of comparisons.

    None if there are too many comparisons.

    >>> i, j, k = (Compare(Affine.of({x: 1}), Sign.EQUAL) for x in "ijk")
    >>> [len(clause) for clause in clauses(Some((i, All((j, k)))))]
    [2, 2]
    """
    match condition:
        case Compare():
            return ((condition,),)
        case All(parts):
            each = [clauses(part) for part in parts]
            every = tuple(x for one in each if one is not None for x in one)
            fits = None not in each and sum(map(len, every)) <= MOST_COMPARISONS
            return every if fits else None
        case Some(parts):
            product: tuple[tuple[Compare, ...], ...] = ((),)
            for part in parts:
                own = clauses(part)
                if own is None or len(own) * len(product) > MOST_COMPARISONS:
                    return None
                product = tuple((*one, *other) for one in product for other in own)
            return product if sum(map(len, product)) <= MOST_COMPARISONS else None
