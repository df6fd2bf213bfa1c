"""Sizes of labels that no axis has, inferred from the indices of reads (``A[i+1]``).

Each read has to be inside its axis, unless it is permissive (``~``). A label that is not the label
of an axis gets the largest size for which all its reads are inside. If a read has several labels,
all but one have to be known: in ``A[i+w] * K[w]``, i has the size of A reduced by the extent of w.
A remainder, ``A[i%3]``, does not constrain the size of i.

Permissive reads constrain no size. A label for which there is nothing else has the size of the axis
that it moves along: in ``Z[i] = A[~(i-1)]``, Z is as long as A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from ucle.errors import BoundError
from ucle.foundation.dataclasses import dataclass
from ucle.ir.affine import Affine
from ucle.ir.vertices import Span
from ucle.language.syntax import Access, Index, Reindexed, Site, Statement

LONGEST = 1 << 62
"""An upper limit of all sizes."""


@dataclass(frozen=True)
class Reach:
    """A read at a function of labels, which has to stay inside an axis."""

    axis: Site
    affine: Affine
    sites: tuple[tuple[str, Site], ...]
    """The labels of the function, with the sites that have their sizes."""
    text: str
    span: Span

    @cached_property
    def limited(self) -> frozenset[Site]:
        """The sites whose sizes the read limits; a remainder limits none."""
        growing = self.affine.growing
        return frozenset(site for label, site in self.sites if label in growing)

    @property
    def single(self) -> bool:
        """True if a single size decides whether the read is inside."""
        return len({site for _, site in self.sites}) == 1

    def longest(self, label: Site, size: Callable[[Site], int]) -> int:
        """The largest size that this read allows for a label, given the sizes of all others."""
        (least, most), (lowest, highest) = (self._ends(label, n, size) for n in (1, LONGEST))
        below, above = 0, LONGEST
        while above - below > 1:
            middle = (below + above) // 2
            low, high = self._ends(label, middle, size)
            # An end that does not move with the label cannot be kept inside by the label.
            inside = (lowest == least or low >= 0) and (highest == most or high < size(self.axis))
            below, above = (middle, above) if inside else (below, middle)
        return below

    def _ends(self, label: Site, long: int, size: Callable[[Site], int]) -> tuple[int, int]:
        """The smallest and the largest position that is read if the label has this size."""
        site_of = dict(self.sites)

        def own(name: str) -> int:
            return long if site_of[name] == label else max(size(site_of[name]), 1)

        return self.affine.least(own), self.affine.most(own)

    def check(self, size: Callable[[Site], int], known: Mapping[Site, str]) -> None:
        """Check that all positions that are read are inside.

        Raises:
            BoundError: one is not.
        """
        if any(size(site) == 0 for _, site in self.sites):
            return
        site_of = dict(self.sites)
        low, high = (
            end(lambda label: size(site_of[label])) for end in (self.affine.least, self.affine.most)
        )
        if low >= 0 and high < size(self.axis):
            return
        every = dict.fromkeys(site for _, site in self.sites)
        sizes = ", ".join(f"{known[site]} < {size(site)}" for site in every)
        raise BoundError(
            "a tensor is read outside of its axis",
            where=str(self.span),
            expected=f"coordinates from 0 to {size(self.axis) - 1}",
            found=f"{self.text} at {low if low < 0 else high}" + (f", for {sizes}" * bool(sizes)),
            hint="~(...) around an index reads the fill outside, and bounds={...} states sizes",
        )


@dataclass(frozen=True)
class DerivedBound:
    """Sites of one size that follows from reads."""

    sites: tuple[Site, ...]
    label: Site
    reaches: tuple[Reach, ...]

    def size(self, size: Callable[[Site], int]) -> int:
        """Compute the size."""
        return min(reach.longest(self.label, size) for reach in self.reaches)


def reaches(statements: Iterable[Statement], find: Callable[[Site], Site]) -> Iterator[Reach]:
    """Yield the reads that have to stay inside; sites are replaced by their representatives."""
    for target, source, name, index in _indexed_axes(statements):
        if index.permissive or index.affine.label == name:
            continue
        sites = tuple((label, find((target, label))) for label in index.affine.labels)
        axis, text = find((target, name)), f"{source.tensor}[{index}]"
        if index.affine.label is not None and sites[0][1] == axis:
            continue  # its axis has the same size
        yield Reach(axis, index.affine, sites, text, source.span)


def moved_along(
    statements: Iterable[Statement], find: Callable[[Site], Site]
) -> Iterator[tuple[Reach, ...]]:
    """Yield for each permissive read the labels that move along its axis, each as a read alone.

    Those are reads at the position of a label plus or minus something, such as ``A[~(i-w)]``; a
    label for which there is nothing else has the size of the axis, as if ``A[i]`` were read.
    """
    for target, source, name, index in _indexed_axes(statements):
        if index.permissive and index.affine.linear:
            axis, text = find((target, name)), f"{source.tensor}[{index}]"
            yield tuple(
                Reach(axis, Affine(((x, 1),)), ((x, find((target, x))),), text, source.span)
                for x, factor in index.affine.terms
                if isinstance(x, str) and factor == 1
            )


def _indexed_axes(statements: Iterable[Statement]) -> Iterator[tuple[str, Access, str, Index]]:
    """Yield each axis that is read at a function of labels, with its index.

    Before it come the tensor that the statement defines, and the one that it reads.
    """
    for statement in statements:
        expression = statement.expression
        if isinstance(expression, Reindexed):
            axes = zip(expression.source.labels, expression.indices, strict=True)
            for name, index in axes:
                yield statement.target.tensor, expression.source, name, index


def derive(reads: Sequence[Reach], sizes: dict[Site, int]) -> list[tuple[Site, tuple[Reach, ...]]]:
    """Add the sizes that follow from reads, in an order in which each depends only on earlier ones.

    Args:
        reads: the reads.
        sizes: the known sizes, by the representative of each class; more are added.

    Returns:
        The labels that were added, each with the reads that determine it.
    """
    added: list[tuple[Site, tuple[Reach, ...]]] = []
    waiting = dict.fromkeys(site for read in reads for _, site in read.sites if site not in sizes)
    while waiting:
        found = _next(reads, sizes, list(waiting))
        if found is None:
            break
        label, by = found
        sizes[label] = min(read.longest(label, sizes.__getitem__) for read in by)
        added.append((label, by))
        del waiting[label]
    return added


def _next(
    reads: Sequence[Reach], sizes: Mapping[Site, int], waiting: Sequence[Site]
) -> tuple[Site, tuple[Reach, ...]] | None:
    """The next label whose size follows from reads of it alone, or, failing that, with others."""
    for alone in (True, False):
        for label in waiting:
            of_label = [read for read in reads if label in read.limited]
            known = tuple(read for read in of_label if _is_known(read, label, sizes))
            single = tuple(read for read in of_label if read.single)
            if alone and single and all(read in known for read in single):
                return label, single
            if not alone and known and not single:
                return label, known
    return None


def _is_known(read: Reach, label: Site, sizes: Mapping[Site, int]) -> bool:
    return read.axis in sizes and all(site in sizes for _, site in read.sites if site != label)
