"""Index maps: a tensor read at other places, as ``A[i+1]``, ``D[i,i]`` on the left, or ``i < j``.

An `IndexMap` says for each axis of a source at which coordinate it is read, as an affine function
of the labels of the result, or one with quotients and remainders by numbers in it
(`ucle.ir.affine`), and under which conditions on these labels (`ucle.ir.conditions`). It is all
that the language has of arithmetic with coordinates: an entry of the result that no entry of the
source lies behind, or whose labels do not meet the conditions, is worth `outside`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ucle.foundation.dtypes import Scalar
from ucle.ir.affine import Affine
from ucle.ir.conditions import (
    NOTHING,
    Condition,
    clauses,
    condition_labels,
    raised_condition,
    renamed_condition,
)


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
