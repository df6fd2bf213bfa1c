"""Sizes of labels that no axis has: they follow from where tensors are read (``A[i+1]``).

Each read has to be inside of its axis, unless it is permissive (``~``). A label that is no axis'
own is as long as all reads at it allow. Where a read has several labels, all but one have to be
known: in ``A[i+w] * K[w]`` i has the size of A less what w takes. A remainder, ``A[i%3]``, says
nothing of how long i is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ucle.errors import BoundError
from ucle.ir.affine import Affine
from ucle.ir.vertices import Span
from ucle.language.syntax import Reindexed, Site, Statement

LONGEST = 1 << 62
"""More than any label has."""


@dataclass(frozen=True)
class Reach:
    """A read of an axis that has to stay inside: at a function of labels."""

    axis: Site
    affine: Affine
    sites: tuple[tuple[str, Site], ...]
    """The labels of the function, with what has their sizes."""
    text: str
    span: Span

    @cached_property
    def limited(self) -> frozenset[Site]:
        """What has a size that the read puts an end to, which it does to no remainder."""
        growing = self.affine.growing
        return frozenset(site for label, site in self.sites if label in growing)

    @property
    def single(self) -> bool:
        """Whether one size alone decides whether it is inside."""
        return len({site for _, site in self.sites}) == 1

    def longest(self, label: Site, size: Callable[[Site], int]) -> int:
        """How long a label may be by this read, when the sizes of all others are known."""
        (least, most), (lowest, highest) = (self._ends(label, n, size) for n in (1, LONGEST))
        below, above = 0, LONGEST
        while above - below > 1:
            middle = (below + above) // 2
            low, high = self._ends(label, middle, size)
            # The end that does not move with the label is not the label's to keep inside.
            inside = (lowest == least or low >= 0) and (highest == most or high < size(self.axis))
            below, above = (middle, above) if inside else (below, middle)
        return below

    def _ends(self, label: Site, long: int, size: Callable[[Site], int]) -> tuple[int, int]:
        """What is read first and last where the label is so long."""
        site_of = dict(self.sites)

        def own(name: str) -> int:
            return long if site_of[name] == label else max(size(site_of[name]), 1)

        return self.affine.least(own), self.affine.most(own)

    def check(self, size: Callable[[Site], int], known: Mapping[Site, str]) -> None:
        """Check that all reads are inside.

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
        """The size."""
        return min(reach.longest(self.label, size) for reach in self.reaches)


def reaches(statements: Iterable[Statement], find: Callable[[Site], Site]) -> Iterator[Reach]:
    """The reads that have to stay inside; each site stands for all those of its size."""
    for statement in statements:
        expression = statement.expression
        if not isinstance(expression, Reindexed):
            continue
        target = statement.target.tensor
        for name, index in zip(expression.source.labels, expression.indices, strict=True):
            if index.permissive or index.affine.label == name:
                continue
            sites = tuple((label, find((target, label))) for label in index.affine.labels)
            axis, text = find((target, name)), f"{expression.source.tensor}[{index}]"
            if index.affine.label is not None and sites[0][1] == axis:
                continue  # of one size with its axis
            yield Reach(axis, index.affine, sites, text, expression.source.span)


def derive(reads: Sequence[Reach], sizes: dict[Site, int]) -> list[tuple[Site, tuple[Reach, ...]]]:
    """Add the sizes that follow from reads, in an order in which each follows from those before.

    Args:
        reads: the reads.
        sizes: those that are known, by the site that stands for each class; more are added.

    Returns:
        What was added, each with the reads that it follows from.
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
    """The next label whose size follows from reads of it alone, or else with others."""
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
