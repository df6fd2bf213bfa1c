"""Functions of labels: a constant plus multiples of labels, and quotients and remainders of them.

``A[2*i+w-1]`` and ``A[i//3]`` are read at such functions. They consist of plain numbers and names;
nothing here knows expressions or SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ucle.foundation.dataclasses import dataclass


@dataclass(frozen=True)
class Digit:
    """The quotient, rounded down, or the remainder of a function of labels by a number.

    >>> print(Digit(Affine.of({"i": 1}, 1), 3), Digit(Affine.of({"i": 1}), 3, remainder=True))
    (i + 1)//3 i%3
    """

    of: Affine
    by: int
    """At least 2."""
    remainder: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in order of first use."""
        return self.of.labels

    def ends(self, size: Callable[[str], int]) -> tuple[int, int]:
        """Return the smallest and largest values; labels run from 0 to below their sizes."""
        low, high = self.of.least(size), self.of.most(size)
        if not self.remainder:
            return low // self.by, high // self.by
        if low // self.by == high // self.by:
            return low % self.by, high % self.by
        return 0, self.by - 1

    def __str__(self) -> str:
        text, sign = str(self.of), "%" if self.remainder else "//"
        return f"{text if text.isidentifier() else f'({text})'}{sign}{self.by}"


Term = str | Digit
"""A term of a function: a label, or a digit of a function of labels."""


@dataclass(frozen=True)
class Affine:
    """A constant and multiples of labels and digits; each occurs once, with a factor other than 0.

    >>> print(Affine.of({"i": 2, "w": 1}, -3), Affine.of({"i": -1}, 9), Affine.of({}, 4))
    2*i + w - 3 -i + 9 4
    """

    terms: tuple[tuple[Term, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(coefficients: Mapping[Term, int] | Mapping[str, int], constant: int = 0) -> Affine:
        """Return the function with these coefficients, some of which may be 0."""
        return Affine(tuple((x, n) for x, n in coefficients.items() if n), constant)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in order of first use."""
        return tuple(dict.fromkeys(x for term, _ in self.terms for x in labels_of(term)))

    @property
    def label(self) -> str | None:
        """The label that the function equals; None if it is anything else."""
        ((term, factor),) = self.terms if len(self.terms) == 1 else (("", 0),)
        return term if factor == 1 and not self.constant and isinstance(term, str) else None

    @property
    def linear(self) -> bool:
        """True if the terms are labels alone, without quotients and remainders."""
        return all(isinstance(term, str) for term, _ in self.terms)

    @property
    def growing(self) -> tuple[str, ...]:
        """The labels in which it grows or falls without limit; none of those inside remainders."""
        every: list[str] = []
        for term, _ in self.terms:
            if isinstance(term, str):
                every.append(term)
            elif not term.remainder:
                every += term.of.growing
        return tuple(dict.fromkeys(every))

    def plus(self, other: Affine, times: int = 1) -> Affine:
        """Return the sum of this function and a multiple of another one."""
        coefficients = dict(self.terms)
        for label, factor in other.terms:
            coefficients[label] = coefficients.get(label, 0) + times * factor
        return Affine.of(coefficients, self.constant + times * other.constant)

    def times(self, factor: int) -> Affine:
        """Return a multiple of this function."""
        return Affine.of({x: factor * n for x, n in self.terms}, factor * self.constant)

    def digit(self, by: int, remainder: bool) -> Affine:
        """Return the quotient or the remainder by a positive number.

        >>> i, a = Affine.of({"i": 1}), Affine.of({"a": 3, "b": 1}, 7)
        >>> print(i.digit(3, False), a.digit(3, False), a.digit(3, True), sep=", ")
        i//3, (b + 1)//3 + a + 2, (b + 1)%3
        """
        if by == 1:
            return Affine() if remainder else self
        whole = Affine(
            tuple((x, n // by) for x, n in self.terms if n % by == 0), self.constant // by
        )
        rest = Affine(tuple((x, n) for x, n in self.terms if n % by), self.constant % by)
        if not rest.terms:
            return Affine((), rest.constant) if remainder else whole
        own = Affine(((Digit(rest, by, remainder), 1),))
        return own if remainder else own.plus(whole)

    def join_digits(self) -> Affine:
        """Return this function with matching quotients and remainders of one function joined.

        >>> i = Affine.of({"i": 1})
        >>> print(i.digit(4, False).times(4).plus(i.digit(4, True)).join_digits())
        i
        """
        coefficients = dict(self.terms)
        for term, factor in self.terms:
            if isinstance(term, Digit) and term.remainder:
                other = replace(term, remainder=False)
                if coefficients.get(other) == factor * term.by:
                    del coefficients[term], coefficients[other]
                    rest = Affine.of(coefficients, self.constant)
                    return rest.plus(term.of, factor).join_digits()
        return self

    def make_nonnegative(self, size: Callable[[str], int]) -> Affine:
        """Return this function with only digits of functions that are never negative, if any.

        >>> digit = Affine.of({"i": 2, "j": 1}).digit(4, True)
        >>> print(digit.make_nonnegative({"i": 2, "j": 2}.__getitem__))
        2*i + j
        """
        result = Affine((), self.constant)
        for term, factor in self.terms:
            if not isinstance(term, Digit):
                result = result.plus(Affine(((term, factor),)))
                continue
            of = term.of.make_nonnegative(size)
            whole = of.least(size) // term.by
            if whole == of.most(size) // term.by:
                rest = of.plus(Affine((), -whole * term.by))
                result = result.plus(rest if term.remainder else Affine((), whole), factor)
                continue
            times = max(-(of.least(size) // term.by), 0)
            raised = Digit(of.plus(Affine((), times * term.by)), term.by, term.remainder)
            less = 0 if term.remainder else factor * times
            result = result.plus(Affine(((raised, factor),), -less))
        return result

    def rename_labels(self, names: Mapping[str, str]) -> Affine:
        """Return this function with its labels renamed."""
        renamed = Affine((), self.constant)
        for term, factor in self.terms:
            if isinstance(term, Digit):
                new: Term = replace(term, of=term.of.rename_labels(names))
            else:
                new = names.get(term, term)
            renamed = renamed.plus(Affine(((new, factor),)))
        return renamed

    def least(self, size: Callable[[str], int]) -> int:
        """Return the smallest value; labels run from 0 to below their sizes, none of which is 0."""
        return self.constant + sum(min(n * x for x in _ends(t, size)) for t, n in self.terms)

    def most(self, size: Callable[[str], int]) -> int:
        """Return the largest value; as `least`."""
        return self.constant + sum(max(n * x for x in _ends(t, size)) for t, n in self.terms)

    def __str__(self) -> str:
        text = ""
        for label, factor in self.terms:
            sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
            own = str(label)
            if isinstance(label, Digit) and abs(factor) != 1:
                own = f"({own})"
            text += sign + (own if abs(factor) == 1 else f"{abs(factor)}*{own}")
        if not text:
            return str(self.constant)
        if self.constant:
            text += f" {'-' if self.constant < 0 else '+'} {abs(self.constant)}"
        return text


def labels_of(term: Term) -> tuple[str, ...]:
    """Return the labels of a term."""
    return (term,) if isinstance(term, str) else term.labels


def _ends(term: Term, size: Callable[[str], int]) -> tuple[int, int]:
    return (0, size(term) - 1) if isinstance(term, str) else term.ends(size)
