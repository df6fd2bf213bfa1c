"""Bound inference: the size of every label of every statement.

Axes of tensors and labels of statements that must have the same size are put into one class by
union-find. A class gets its exact bound, if there is one (an array's shape, or a stated bound),
otherwise the largest lower bound (one more than the largest coordinate of a table). Reads no data:
facts about the inputs are passed as `AxisBound`s.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ucle.errors import BoundError, LabelError, did_you_mean
from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Coordinates, Label
from ucle.language.index_bounds import DerivedBound, Reach, derive, moved_along, reaches
from ucle.language.rank_bounds import ProductBound, size_ranks
from ucle.language.syntax import Access, First, Reindexed, Site, Size, Statement, accesses, walk


@dataclass(frozen=True)
class AxisBound:
    """The information that an input has about one axis: its size, or a lower bound of it."""

    size: int
    exact: bool
    origin: str
    counted: bool = False
    """True if it is the number of distinct coordinates: the caller may state a larger bound."""
    stated: bool = False
    """True if the caller has stated it for the label."""


class SizeClasses:
    """Classes of axes and labels that must have the same size: union-find over sites."""

    def __init__(self) -> None:
        self._parent: dict[Site, Site] = {}

    def find(self, site: Site) -> Site:
        """The representative of a site's class."""
        self._parent.setdefault(site, site)
        while self._parent[site] != site:
            self._parent[site] = self._parent[self._parent[site]]
            site = self._parent[site]
        return site

    def join(self, one: Site, other: Site) -> None:
        """Merge two classes."""
        self._parent[self.find(one)] = self.find(other)


@dataclass(frozen=True)
class Bounds:
    """The inferred size of every axis of every tensor."""

    sizes: Mapping[Site, int]
    dictionaries: Mapping[Site, str]
    derived: tuple[DerivedBound | ProductBound, ...] = ()
    """Bounds that follow from others by index arithmetic, and those of ranks of all entries along
    an axis, each after those that it depends on."""

    def change_sizes(self, sizes: Mapping[Site, int]) -> Bounds:
        """Replace the sizes of some sites, and update the bounds that depend on them."""
        now = {**self.sizes, **sizes}
        for each in self.derived:
            now.update(dict.fromkeys(each.sites, each.size(now.__getitem__)))
        return replace(self, sizes=now)

    def label(self, target: str, name: str) -> Label:
        """A label of the statement that defines `target`, with its bound."""
        return self._label(name, (target, name))

    def axis_label(self, tensor: str, position: int, name: str) -> Label:
        """One axis of a tensor as a label with a given name."""
        return self._label(name, (tensor, position))

    def _label(self, name: str, site: Site) -> Label:
        bound = self.sizes[site]
        return Label(name, bound, Coordinates.of(bound), self.dictionaries.get(site))

    def axis(self, tensor: str, position: int) -> int:
        """The size of one axis of a tensor."""
        return self.sizes[(tensor, position)]


def checked_size(size: Any, where: str) -> int:
    """Convert a bound from the caller to an int.

    Raises:
        BoundError: it is not an integer of any library, or is negative.
    """
    if isinstance(size, bool) or not hasattr(size, "__index__") or size < 0:
        raise BoundError(
            "a bound is not a size",
            where=where,
            expected="an integer of at least 0",
            found=repr(size),
        )
    return operator.index(size)


def check_labels(stated: Mapping[str, int], statements: tuple[Statement, ...]) -> None:
    """Check that labels with stated bounds exist, and that the bounds are valid sizes.

    Args:
        stated: bounds from the caller, by label name.
        statements: the program as it is written.

    Raises:
        BoundError: a bound is not a valid size.
        LabelError: no statement has such a label.
    """
    labels = {label for statement in statements for label in statement_labels(statement)}
    for label, size in stated.items():
        if label not in labels:
            raise LabelError(
                f"there is no label {label!r}",
                where="bounds",
                expected="labels of the program: " + (", ".join(sorted(labels)) or "it has none"),
                found=repr(label),
                hint=did_you_mean(str(label), labels),
            )
        checked_size(size, f"bounds, label {label}")


def statement_labels(statement: Statement) -> set[str]:
    """The labels of a statement as it is written, including those of aggregations."""
    parts = tuple(walk(statement.expression))
    ranks = {part.rank for part in parts if isinstance(part, First) and part.rank is not None}
    return {*statement.target.labels, *(label for part in parts for label in part.labels), *ranks}


def size_classes(statements: tuple[Statement, ...]) -> SizeClasses:
    """Group axes of tensors and labels of statements that must have the same size."""
    classes = SizeClasses()
    for statement in statements:
        for access in (*accesses(statement.expression), statement.target):
            for position, name in enumerate(access.labels):
                classes.join((access.tensor, position), (statement.target.tensor, name))
        for label, site in _likes(statement):
            classes.join(site, (statement.target.tensor, label))
        if isinstance(statement.expression, Reindexed):
            for one, other in statement.expression.same:
                classes.join((statement.target.tensor, one), (statement.target.tensor, other))
    return classes


def _likes(statement: Statement) -> Iterator[tuple[str, Site]]:
    """Yield the labels whose sizes a statement equates with those of sites, and these sites."""
    if not statement.like:
        return
    for label in sorted(statement_labels(statement) | set(_find_sized_labels(statement))):
        written = statement.renamed.get(label, label)
        site = statement.like.get(label, statement.like.get(written))
        if site is not None:
            yield label, site


def _find_sized_labels(statement: Statement) -> tuple[str, ...]:
    """The labels whose sizes a statement uses as numbers."""
    parts = walk(statement.expression)
    return tuple(label for part in parts if isinstance(part, Size) for label in part.over)


def infer_bounds(
    statements: tuple[Statement, ...],
    inputs: Mapping[str, tuple[AxisBound, ...]],
    stated: Mapping[str, int],
    classes: SizeClasses,
    dictionaries: Mapping[tuple[str, int], str] | None = None,
    largest: Mapping[str, int] | None = None,
) -> Bounds:
    """Infer the bound of every label.

    Args:
        statements: the program.
        inputs: the known bounds of each input's axes.
        stated: bounds from the caller, by label name; they hold in every statement.
        classes: classes of axes of the same size, from `size_classes`.
        dictionaries: the names of the dictionaries of inputs' axes, where they have one.
        largest: the largest entry of inputs of integers, where it is known.

    Raises:
        BoundError: two exact bounds differ, or data lies outside an exact bound.
    """
    bounds_of: dict[Site, list[AxisBound]] = {}
    for site, bound in known_bounds(statements, inputs, stated):
        bounds_of.setdefault(classes.find(site), []).append(bound)
    for site, bound in _written_bounds(statements, largest or {}):
        bounds_of.setdefault(classes.find(site), []).append(bound)

    resolved = {root: _resolve(bounds) for root, bounds in bounds_of.items()}
    reads = list(reaches(statements, classes.find))
    derived = _derive_all(statements, classes.find, resolved, reads)
    named = {classes.find(site): name for site, name in (dictionaries or {}).items()}
    sizes: dict[Site, int] = {}
    dictionary: dict[Site, str] = {}
    for statement in statements:
        for access in (*accesses(statement.expression), statement.target):
            for position, name in enumerate(access.labels):
                label: Site = (statement.target.tensor, name)
                if (size := resolved.get(classes.find(label))) is None:
                    raise _unknown_bound(name, access, statements, dictionaries or {})
                for site in (label, (access.tensor, position)):
                    sizes[site] = size
                    if (root := classes.find(site)) in named:
                        dictionary[site] = named[root]
        for name in _find_sized_labels(statement):
            label = (statement.target.tensor, name)
            if label not in sizes:
                if (size := resolved.get(classes.find(label))) is None:
                    raise _unknown_bound(name, statement.target, statements, dictionaries or {})
                sizes[label] = size
    if reads:
        names = {classes.find(site): str(site[1]) for site in sizes if isinstance(site[1], str)}
        for read in reads:
            read.check(resolved.__getitem__, names)
    own = {root: tuple(x for x in sizes if classes.find(x) == root) for root, _ in derived}
    bounds = tuple(_build_derived_bound(own[root], root, by) for root, by in derived)
    return Bounds(sizes, dictionary, bounds)


_Origin = tuple[Reach, ...] | tuple[Site, ...]
"""What the size of a label follows from: reads, or the axes whose sizes it is the product of."""


def _derive_all(
    statements: tuple[Statement, ...],
    find: Callable[[Site], Site],
    sizes: dict[Site, int],
    reads: Sequence[Reach],
) -> list[tuple[Site, _Origin]]:
    """Add the sizes that follow from others: of ranks, of labels that reads limit, and of the rest.

    Args:
        statements: the program.
        find: the representative of a class of sites.
        sizes: the known sizes, by representative; more are added.
        reads: those that have to stay inside.

    Returns:
        The labels that were added, each after those that it depends on, with their origins.
    """
    moved = [reach for each in moved_along(statements, find) for reach in each]
    added: list[tuple[Site, _Origin]] = []
    while True:
        before = len(added)
        added += size_ranks(statements, find, sizes)
        added += derive(reads, sizes)
        if len(added) == before:  # now the labels that nothing else determines
            limits = any(not read.limited <= sizes.keys() for read in reads)
            for each in moved:
                if each.axis in sizes and not each.limited <= sizes.keys():
                    added += derive([each], sizes)
                    if limits:  # other reads may limit the next label
                        break
        if len(added) == before:
            return added


def _build_derived_bound(
    own: tuple[Site, ...], label: Site, origin: _Origin
) -> DerivedBound | ProductBound:
    """The bound that follows from others, for all sites of the same size."""
    reads = tuple(each for each in origin if isinstance(each, Reach))
    if not reads:
        return ProductBound(own, tuple(each for each in origin if not isinstance(each, Reach)))
    # The label of a class may be of no statement any more, but reads and other bounds refer to it.
    return DerivedBound(tuple(dict.fromkeys((*own, label))), label, reads)


def known_bounds(
    statements: tuple[Statement, ...],
    inputs: Mapping[str, tuple[AxisBound, ...]],
    stated: Mapping[str, int],
) -> Iterable[tuple[Site, AxisBound]]:
    """Yield the known bounds of axes and labels; arguments are those of `infer_bounds`."""
    for tensor, axes in inputs.items():
        for position, bound in enumerate(axes):
            yield (tensor, position), bound
    for statement in statements:
        names = {x for a in (*accesses(statement.expression), statement.target) for x in a.labels}
        for name in sorted(names.union(_find_sized_labels(statement))):
            written = statement.renamed.get(name, name)
            if written in stated:
                size = checked_size(stated[written], f"bounds, label {written}")
                origin = f"bounds[{written!r}]"
                yield (statement.target.tensor, name), AxisBound(size, True, origin, stated=True)
            elif name in statement.sizes:
                size, origin = statement.sizes[name], f"size of {name}"
                yield (statement.target.tensor, name), AxisBound(size, True, origin)


def _written_bounds(
    statements: tuple[Statement, ...], largest: Mapping[str, int]
) -> Iterable[tuple[Site, AxisBound]]:
    """Yield the bounds of axes that are written at positions given by the entries of inputs."""
    for statement in statements:
        expression = statement.expression
        if not isinstance(expression, Reindexed) or expression.hit is None:
            continue
        source = expression.source.tensor
        if expression.hit.made and source in largest:
            size = max(largest[source] + 1, 0)
            origin = f"the largest entry of {source}, in {expression.hit.read}"
            yield (statement.target.tensor, expression.hit.label), AxisBound(size, False, origin)


def _resolve(bounds: list[AxisBound]) -> int:
    largest = max(bounds, key=lambda b: b.size)
    held = any(b.stated for b in bounds)
    exact = [b for b in bounds if b.exact and not (held and b.counted)]
    if not exact:
        return largest.size
    for bound in exact[1:]:
        if bound.size != exact[0].size:
            raise BoundError(
                "two bounds of one label contradict each other",
                where=f"{exact[0].origin} and {bound.origin}",
                expected=f"{exact[0].size}, as in {exact[0].origin}",
                found=f"{bound.size} in {bound.origin}",
                hint="check the order of the labels: all axes of a label have the same size",
            )
    if largest.size > exact[0].size:
        raise BoundError(
            "a coordinate lies outside the bound",
            where=largest.origin,
            expected=f"coordinates below {exact[0].size}, the bound from {exact[0].origin}",
            found=f"coordinate {largest.size - 1}",
            hint="check the order of the labels: all axes of a label have the same size",
        )
    return exact[0].size


def _unknown_bound(
    name: str, access: Access, statements: Sequence[Statement], dictionaries: Collection[Site]
) -> BoundError:
    hint = f"pass bounds={{{name!r}: ...}}"
    if dictionaries:
        factor = _factor_along(name, statements, dictionaries)
        hint += f" if it counts positions; if it stands for names, {factor} gives it the names"
    return BoundError(
        f"the size of the label {name!r} cannot be inferred",
        where=str(access.span),
        expected="a bound from an input, or from the caller",
        found=access.span.text or str(access),
        hint=hint,
    )


def _factor_along(
    name: str, statements: Sequence[Statement], dictionaries: Collection[Site]
) -> str:
    """A factor that depends on a label, as it is written with an input that has a dictionary."""
    for access in (x for statement in statements for x in accesses(statement.expression)):
        for axis, own in enumerate(access.labels):
            if (access.tensor, axis) not in dictionaries:
                continue
            over = [x for x in access.labels if x not in (own, name)]
            labels = [x if n != axis else name for n, x in enumerate(access.labels)]
            read = f"{access.tensor}[{','.join(labels)}]"
            read = f"sum[{','.join(over)}]({read})" if over else read
            return f"a factor such as {read} != 0"
    return "a factor of a table that has them"
