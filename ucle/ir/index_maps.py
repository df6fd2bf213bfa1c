"""Index maps: a tensor read at other places, as ``A[i+1]``, ``D[i,i]`` on the left, or ``i < j``.

An `IndexMap` says for each axis of a source at which coordinate it is read, as an affine function
of the labels of the result, or one with quotients and remainders by numbers in it, and under which
conditions on these labels. It is all that the language has of arithmetic with coordinates: an
entry of the result that no entry of the source lies behind, or whose labels do not meet the
conditions, is worth `outside`. Plain numbers and names; nothing here knows expressions or SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from ucle.foundation.dtypes import Scalar


@dataclass(frozen=True)
class Digit:
    """The quotient or the remainder of a function of labels by a number, rounded down.

    >>> print(Digit(Affine.of({"i": 1}, 1), 3), Digit(Affine.of({"i": 1}), 3, remainder=True))
    (i + 1)//3 i%3
    """

    of: Affine
    by: int
    """At least 2."""
    remainder: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in order."""
        return self.of.labels

    def ends(self, size: Callable[[str], int]) -> tuple[int, int]:
        """Between which numbers it lies, where labels run from 0 to below their sizes."""
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
"""What a function has multiples of: a label, or a digit of a function of labels."""


@dataclass(frozen=True)
class Affine:
    """A constant and multiples of labels and digits, each once, none of them 0 times.

    >>> print(Affine.of({"i": 2, "w": 1}, -3), Affine.of({"i": -1}, 9), Affine.of({}, 4))
    2*i + w - 3 -i + 9 4
    """

    terms: tuple[tuple[Term, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(coefficients: Mapping[Term, int] | Mapping[str, int], constant: int = 0) -> Affine:
        """The function with these coefficients, some of which may be 0."""
        return Affine(tuple((x, n) for x, n in coefficients.items() if n), constant)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in order of first use."""
        return tuple(dict.fromkeys(x for term, _ in self.terms for x in labels_of(term)))

    @property
    def label(self) -> str | None:
        """The one label that the function is; None where it is something else."""
        ((term, factor),) = self.terms if len(self.terms) == 1 else (("", 0),)
        return term if factor == 1 and not self.constant and isinstance(term, str) else None

    @property
    def linear(self) -> bool:
        """Whether it is of labels alone."""
        return all(isinstance(term, str) for term, _ in self.terms)

    @property
    def growing(self) -> tuple[str, ...]:
        """The labels with which it grows or falls without end; with remainders nothing does."""
        every: list[str] = []
        for term, _ in self.terms:
            if isinstance(term, str):
                every.append(term)
            elif not term.remainder:
                every += term.of.growing
        return tuple(dict.fromkeys(every))

    def plus(self, other: Affine, times: int = 1) -> Affine:
        """The sum with a multiple of another one."""
        coefficients = dict(self.terms)
        for label, factor in other.terms:
            coefficients[label] = coefficients.get(label, 0) + times * factor
        return Affine.of(coefficients, self.constant + times * other.constant)

    def times(self, factor: int) -> Affine:
        """A multiple."""
        return Affine.of({x: factor * n for x, n in self.terms}, factor * self.constant)

    def digit(self, by: int, remainder: bool) -> Affine:
        """The quotient or the remainder by a positive number.

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

    def joined(self) -> Affine:
        """The same with quotients and remainders of one function put together where they can be.

        >>> i = Affine.of({"i": 1})
        >>> print(i.digit(4, False).times(4).plus(i.digit(4, True)).joined())
        i
        """
        coefficients = dict(self.terms)
        for term, factor in self.terms:
            if isinstance(term, Digit) and term.remainder:
                other = replace(term, remainder=False)
                if coefficients.get(other) == factor * term.by:
                    del coefficients[term], coefficients[other]
                    rest = Affine.of(coefficients, self.constant)
                    return rest.plus(term.of, factor).joined()
        return self

    def raised(self, size: Callable[[str], int]) -> Affine:
        """The same with digits of functions that are nowhere negative, where there have to be any.

        >>> print(Affine.of({"i": 2, "j": 1}).digit(4, True).raised({"i": 2, "j": 2}.__getitem__))
        2*i + j
        """
        result = Affine((), self.constant)
        for term, factor in self.terms:
            if not isinstance(term, Digit):
                result = result.plus(Affine(((term, factor),)))
                continue
            of = term.of.raised(size)
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

    def renamed(self, names: Mapping[str, str]) -> Affine:
        """The same function of labels by other names."""
        renamed = Affine((), self.constant)
        for term, factor in self.terms:
            if isinstance(term, Digit):
                new: Term = replace(term, of=term.of.renamed(names))
            else:
                new = names.get(term, term)
            renamed = renamed.plus(Affine(((new, factor),)))
        return renamed

    def least(self, size: Callable[[str], int]) -> int:
        """The smallest value, where labels run from 0 to below their sizes, none of which is 0."""
        return self.constant + sum(min(n * x for x in _ends(t, size)) for t, n in self.terms)

    def most(self, size: Callable[[str], int]) -> int:
        """The largest value; as `least`."""
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
    """The labels of what a function has multiples of."""
    return (term,) if isinstance(term, str) else term.labels


def _ends(term: Term, size: Callable[[str], int]) -> tuple[int, int]:
    return (0, size(term) - 1) if isinstance(term, str) else term.ends(size)


class Sign(Enum):
    """How a function of labels compares with 0."""

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
        """What holds where this does not."""
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
    """Conditions that hold together; none of them: what always holds."""

    parts: tuple[Condition, ...]

    @property
    def negated(self) -> Condition:
        """What holds where this does not."""
        return Some(tuple(part.negated for part in self.parts))

    def __str__(self) -> str:
        return " and ".join(f"({x})" if isinstance(x, Some) else str(x) for x in self.parts)


@dataclass(frozen=True)
class Some:
    """Conditions of which at least one holds; none of them: what never holds."""

    parts: tuple[Condition, ...]

    @property
    def negated(self) -> Condition:
        """What holds where this does not."""
        return All(tuple(part.negated for part in self.parts))

    def __str__(self) -> str:
        return " or ".join(f"({x})" if isinstance(x, All) else str(x) for x in self.parts)


Condition = Compare | All | Some

NOTHING = All(())
"""The condition that always holds."""


def compares(condition: Condition) -> Iterator[Compare]:
    """The comparisons of a condition, left to right."""
    if isinstance(condition, Compare):
        yield condition
        return
    for part in condition.parts:
        yield from compares(part)


def condition_labels(condition: Condition) -> tuple[str, ...]:
    """The labels of a condition, in order of first use."""
    return tuple(dict.fromkeys(x for part in compares(condition) for x in part.affine.labels))


def raised_condition(condition: Condition, size: Callable[[str], int]) -> Condition:
    """The same condition with digits of functions that are nowhere negative."""
    match condition:
        case Compare(affine, sign):
            return Compare(affine.raised(size), sign)
        case All(parts):
            return All(tuple(raised_condition(part, size) for part in parts))
        case Some(parts):
            return Some(tuple(raised_condition(part, size) for part in parts))


def conjuncts(condition: Condition) -> tuple[Condition, ...]:
    """What holds together where a condition does.

    >>> i, j = (Compare(Affine.of({x: 1}), Sign.EQUAL) for x in "ij")
    >>> len(conjuncts(All((All((i, j)), Some((i, j))))))
    3
    """
    if not isinstance(condition, All):
        return (condition,)
    return tuple(x for part in condition.parts for x in conjuncts(part))


def together(*conditions: Condition) -> Condition:
    """Conditions that hold together, as one."""
    parts = tuple(dict.fromkeys(x for each in conditions for x in conjuncts(each)))
    return parts[0] if len(parts) == 1 else All(parts)


def renamed_condition(condition: Condition, names: Mapping[str, str]) -> Condition:
    """A condition on labels by other names."""
    match condition:
        case Compare(affine, sign):
            return Compare(affine.renamed(names), sign)
        case All(parts):
            return All(tuple(renamed_condition(part, names) for part in parts))
        case Some(parts):
            return Some(tuple(renamed_condition(part, names) for part in parts))


MOST_COMPARISONS = 64
"""Of a condition that a kernel looks at (``udf_kernels/csrc/reindex.c``)."""


def clauses(condition: Condition) -> tuple[tuple[Compare, ...], ...] | None:
    """A condition as clauses that all hold, of each of which one comparison does.

    None where these are too many.

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


@dataclass(frozen=True)
class IndexMap:
    """Where each axis of a source is read, for the labels of a result.

    `value` says that an entry is worth this function of its labels, and not what the source holds
    there. `hit` is a label of the result alone: an entry is yes where what the source holds there
    is the coordinate of this label. Then `read` is the access that this is done for, for messages;
    where it is empty, what lies outside of the bound of the label hits nothing. `outside` is what
    all other entries are worth. `dense` says that entries of the source which are not stored are
    worth something else than `outside`, so that all have to be there.
    """

    indices: tuple[Affine, ...]
    condition: Condition = NOTHING
    value: Affine | None = None
    outside: Scalar = 0.0
    dense: bool = False
    hit: str | None = None
    read: str = ""

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels that are computed with, in order of first use."""
        every = [*(x for index in self.indices for x in index.labels)]
        every += condition_labels(self.condition)
        every += () if self.value is None else self.value.labels
        every += () if self.hit is None else (self.hit,)
        return tuple(dict.fromkeys(every))

    def passes(self, axis: int, source: tuple[str, ...]) -> bool:
        """Whether an axis of the source goes through as it is: it has the label of the result."""
        return self.indices[axis].label == source[axis]

    def keyed(self, promoted: Collection[str], source: tuple[str, ...]) -> frozenset[str]:
        """The labels that have to be key columns where some are.

        A key of the source decides those of the labels that it is read at. Coordinates as values
        and what hits a label are made of keys alone, and so are conditions that are too long for a
        kernel.

        Args:
            promoted: the labels that are key columns.
            source: labels of the axes of the source.
        """
        keyed = set(promoted)
        for axis, index in enumerate(self.indices):
            if source[axis] in keyed and not self.passes(axis, source):
                keyed.update(index.labels)
        if self.value is not None:
            keyed.update(self.value.labels)
        if self.hit is not None:
            keyed.update(self.labels)
        if clauses(self.condition) is None:
            keyed.update(condition_labels(self.condition))
        return frozenset(keyed)

    def leaves(self, source: Sequence[str], result: Sequence[str]) -> bool:
        """Whether arrays stay what they are, with these labels inside of them."""
        if tuple(source) != tuple(result):
            return False
        used = [x for index in self.indices for x in index.labels]
        used += condition_labels(self.condition)
        return all(used.count(label) == 1 for label in source)

    def same_elements(self, source: Mapping[str, int], result: Mapping[str, int]) -> bool:
        """Whether arrays stay what they are, element by element, whatever their axes are called.

        Args:
            source: the labels of all axes, with the sizes of those that are inside of arrays.
            result: the labels inside of the result's arrays, with their sizes.

        >>> i = Affine.of({"i": 1})
        >>> split = IndexMap((i.digit(4, False), i.digit(4, True)))
        >>> split.same_elements({"a": 3, "b": 4}, {"i": 12})
        True
        """
        if self.condition != NOTHING or self.value is not None or 0 in result.values():
            return False
        sizes = {**source, **result}
        own, stride = Affine(), 1
        for axis, label in reversed(list(enumerate(source))):
            index = self.indices[axis]
            if not source[label]:
                if not self.passes(axis, tuple(source)):
                    return False
                continue
            if not set(index.labels) <= result.keys():
                return False
            if index.least(sizes.__getitem__) < 0 or index.most(sizes.__getitem__) >= source[label]:
                return False
            own, stride = own.plus(index, stride), stride * source[label]
        wanted, place = Affine(), 1
        for label in reversed(tuple(result)):
            wanted, place = wanted.plus(Affine(((label, 1),)), place), place * result[label]
        joined = own.joined()
        same = dict(joined.terms) == dict(wanted.terms) and not joined.constant
        return same and place == stride and bool(result)

    def raised(self, size: Callable[[str], int]) -> IndexMap:
        """The same map with digits of functions that are nowhere negative."""
        return replace(
            self,
            indices=tuple(index.raised(size) for index in self.indices),
            condition=raised_condition(self.condition, size),
            value=None if self.value is None else self.value.raised(size),
        )

    def renamed(self, names: Mapping[str, str]) -> IndexMap:
        """The same map of labels by other names."""
        return replace(
            self,
            indices=tuple(index.renamed(names) for index in self.indices),
            condition=renamed_condition(self.condition, names),
            value=None if self.value is None else self.value.renamed(names),
            hit=None if self.hit is None else names.get(self.hit, self.hit),
        )

    def text(self, source: str, names: Callable[[str], str] = str) -> str:
        """The map of a source by its name, as a person would write it."""
        new = {label: names(label) for label in self.labels}
        shown = self.renamed(new)
        if shown.value is not None:
            text = str(shown.value)
        else:
            text = f"{source}[{','.join(str(index).replace(' ', '') for index in shown.indices)}]"
        if shown.hit is not None:
            text += f" == {shown.hit}"
        if shown.condition == NOTHING:
            return text
        return f"when({shown.condition}, {text})"
