"""Sizes of labels that no axis has: they follow from where tensors are read (``A[i+1]``).

Each read has to be inside of its axis, unless it is permissive (``~``). A label that is no axis'
own is as long as all reads at it allow. Where a read has several labels, all but one have to be
known: in ``A[i+w] * K[w]`` i has the size of A less what w takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ucle.errors import BoundError
from ucle.ir.vertices import Span
from ucle.language.syntax import Reindexed, Statement

Site = tuple[str, int | str]
"""An axis of a tensor, or a label of the statement that defines a tensor."""


@dataclass(frozen=True)
class Reach:
    """A read of an axis that has to stay inside: at a constant and multiples of labels."""

    axis: Site
    terms: tuple[tuple[Site, int], ...]
    constant: int
    text: str
    span: Span

    def longest(self, label: Site, size: Callable[[Site], int]) -> int:
        """How long a label may be by this read, when the sizes of all others are known."""
        factor = sum(n for site, n in self.terms if site == label)
        low = high = self.constant
        for site, n in self.terms:
            if site != label:
                furthest = n * max(size(site) - 1, 0)
                low, high = low + min(furthest, 0), high + max(furthest, 0)
        room = size(self.axis) - 1 - high if factor > 0 else low
        return max(room // abs(factor) + 1, 0) if factor else 0

    def check(self, size: Callable[[Site], int], known: Mapping[Site, str]) -> None:
        """Check that all reads are inside.

        Raises:
            BoundError: one is not.
        """
        if any(size(site) == 0 for site, _ in self.terms):
            return
        ends = [(n, n * (size(site) - 1)) for site, n in self.terms]
        low = self.constant + sum(end for n, end in ends if n < 0)
        high = self.constant + sum(end for n, end in ends if n > 0)
        if low >= 0 and high < size(self.axis):
            return
        sizes = ", ".join(f"{known[site]} < {size(site)}" for site, _ in self.terms)
        raise BoundError(
            "a tensor is read outside of its axis",
            where=str(self.span),
            expected=f"coordinates from 0 to {size(self.axis) - 1}",
            found=f"{self.text} at {low if low < 0 else high}" + (f", for {sizes}" * bool(sizes)),
            hint="~(...) around an index reads the fill outside, and bounds={...} states sizes",
        )


@dataclass(frozen=True)
class Derived:
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
            terms: dict[Site, int] = {}
            for label, factor in index.affine.terms:
                site = find((target, label))
                terms[site] = terms.get(site, 0) + factor
            axis, text = find((target, name)), f"{expression.source.tensor}[{index}]"
            yield Reach(
                axis, tuple(terms.items()), index.affine.constant, text, expression.source.span
            )


def derive(reads: Sequence[Reach], sizes: dict[Site, int]) -> list[tuple[Site, tuple[Reach, ...]]]:
    """Add the sizes that follow from reads, in an order in which each follows from those before.

    Args:
        reads: the reads.
        sizes: those that are known, by the site that stands for each class; more are added.

    Returns:
        What was added, each with the reads that it follows from.
    """
    added: list[tuple[Site, tuple[Reach, ...]]] = []
    waiting = dict.fromkeys(site for read in reads for site, n in read.terms if site not in sizes)
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
            of_label = [read for read in reads if any(site == label for site, _ in read.terms)]
            known = tuple(read for read in of_label if _is_known(read, label, sizes))
            single = tuple(read for read in of_label if len(read.terms) == 1)
            if alone and single and all(read in known for read in single):
                return label, single
            if not alone and known and not single:
                return label, known
    return None


def _is_known(read: Reach, label: Site, sizes: Mapping[Site, int]) -> bool:
    return read.axis in sizes and all(site in sizes for site, _ in read.terms if site != label)
