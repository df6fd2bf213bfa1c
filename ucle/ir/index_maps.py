"""Index maps: a tensor read at other coordinates, as ``A[i+1]``, ``D[i,i]`` on the left, ``i < j``.

An `IndexMap` gives, for each axis of a source, the coordinate at which it is read. That is an
affine function of the labels of the result, which may contain quotients and remainders by numbers
(`ucle.ir.affine`). The map may also have conditions on these labels (`ucle.ir.conditions`). The
language has no other arithmetic with coordinates. An entry of the result is worth `outside` if the
source has no entry at its coordinates or if its labels do not meet the conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.ir.affine import Affine
from ucle.ir.conditions import (
    NOTHING,
    Compare,
    Condition,
    Sign,
    clauses,
    condition_labels,
    make_condition_nonnegative,
    rename_condition_labels,
)


@dataclass(frozen=True)
class IndexMap:
    """The coordinates at which each axis of a source is read, as functions of a result's labels.

    With `value`, an entry has the value of this function of its labels, and not that of the
    source's entry. `hit` is a label of the result alone: an entry is True where the source's entry
    equals the coordinate of this label. Then `read` is the access that needs it, for messages; if
    it is empty, a value outside the bound of the label hits nothing. `outside` is the value of all
    other entries. `dense` is True if entries of the source that are not stored have a value other
    than `outside`, so that all of them must be there.
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
        """The labels used in the map, in order of first use."""
        every = [*(x for index in self.indices for x in index.labels)]
        every += condition_labels(self.condition)
        every += () if self.value is None else self.value.labels
        every += () if self.hit is None else (self.hit,)
        return tuple(dict.fromkeys(every))

    def passes(self, axis: int, source: tuple[str, ...]) -> bool:
        """Return whether an axis is read at its own label, so that it passes through unchanged."""
        return self.indices[axis].label == source[axis]

    @property
    def reads_spans(self) -> bool:
        """True if the entries that are read along a label are neighbours, so that they are copied.

        >>> i = Affine.of({"i": 1})
        >>> [IndexMap((index,)).reads_spans for index in (i.times(-1), i.digit(2, True))]
        [True, False]
        """
        found = clauses(self.condition)
        linear = all(index.linear for index in self.indices)
        return linear and found is not None and all(map(_is_span, found))

    def find_key_labels(self, promoted: Collection[str], source: tuple[str, ...]) -> frozenset[str]:
        """Return the labels that must be key columns if the given ones are.

        If an axis of the source is a key, so are the labels in the function at which it is read.
        Coordinates used as values, and comparisons with a label, are computed from keys alone; so
        are conditions that are too long for a kernel.

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
        if self.hit is not None and self.indices:  # a kernel compares one position
            keyed.update(self.labels)
        if clauses(self.condition) is None:
            keyed.update(condition_labels(self.condition))
        return frozenset(keyed)

    def leaves(self, source: Sequence[str], result: Sequence[str]) -> bool:
        """Return whether arrays with these labels inside them are left unchanged."""
        if tuple(source) != tuple(result):
            return False
        used = [x for index in self.indices for x in index.labels]
        used += condition_labels(self.condition)
        return all(used.count(label) == 1 for label in source)

    def same_elements(self, source: Mapping[str, int], result: Mapping[str, int]) -> bool:
        """Return whether arrays stay the same element by element, though their axes may differ.

        Args:
            source: the labels of all axes, with their sizes inside the arrays; 0 for keys.
            result: the labels inside the result's arrays, with their sizes.

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
        joined = own.join_digits()
        same = dict(joined.terms) == dict(wanted.terms) and not joined.constant
        return same and place == stride and bool(result)

    def make_nonnegative(self, size: Callable[[str], int]) -> IndexMap:
        """Return this map with its digits rewritten over functions that are never negative."""
        return replace(
            self,
            indices=tuple(index.make_nonnegative(size) for index in self.indices),
            condition=make_condition_nonnegative(self.condition, size),
            value=None if self.value is None else self.value.make_nonnegative(size),
        )

    def rename_labels(self, names: Mapping[str, str]) -> IndexMap:
        """Return this map with its labels renamed."""
        return replace(
            self,
            indices=tuple(index.rename_labels(names) for index in self.indices),
            condition=rename_condition_labels(self.condition, names),
            value=None if self.value is None else self.value.rename_labels(names),
            hit=None if self.hit is None else names.get(self.hit, self.hit),
        )

    def text(self, source: str, names: Callable[[str], str] = str) -> str:
        """Return the map of a named source, as a person would write it."""
        new = {label: names(label) for label in self.labels}
        shown = self.rename_labels(new)
        if shown.value is not None:
            text = str(shown.value)
        else:
            text = f"{source}[{','.join(str(index).replace(' ', '') for index in shown.indices)}]"
        if shown.hit is not None:
            text += f" == {shown.hit}"
        if shown.condition == NOTHING:
            return text
        return f"when({shown.condition}, {text})"


def _is_span(clause: Sequence[Compare]) -> bool:
    """Return whether neighbouring positions along each label meet a clause."""
    alone = len(clause) == 1 and clause[0].affine.linear
    return alone and clause[0].sign is not Sign.UNEQUAL
