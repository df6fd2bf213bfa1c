"""The sizes of ranks that nothing states: all entries along a label are ranked.

Takes resolved statements, in which `ucle.language.syntax.Pairs` rank entries. A rank has the size
of the label along which it ranks, but neither its coordinates nor its dictionary, so that the two
are in different size classes (`ucle.language.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping

from ucle.foundation.dataclasses import dataclass
from ucle.language.syntax import Pairs, Site, Statement


@dataclass(frozen=True)
class EqualBound:
    """Sites of ranks, and a site whose size they have."""

    sites: tuple[Site, ...]
    along: Site

    def size(self, size: Callable[[Site], int]) -> int:
        """Compute the size."""
        return size(self.along)


def size_ranks(
    statements: Iterable[Statement],
    find: Callable[[Site], Site],
    sizes: MutableMapping[Site, int],
) -> list[tuple[Site, Site]]:
    """Give ranks of unknown size that of the labels along which they rank, where it is known.

    Args:
        statements: resolved statements, each after those that it reads.
        find: the representative of a size class.
        sizes: the known sizes of classes; those of ranks are added.

    Returns:
        The classes of these ranks, each with the axis of a tensor along which it ranks.
    """
    made: list[tuple[Site, Site]] = []
    for statement in statements:
        pairs = statement.expression
        if not isinstance(pairs, Pairs):
            continue
        rank = find((statement.target.tensor, pairs.rank))
        along = pairs.source.tensor, pairs.source.labels.index(pairs.label)
        if rank not in sizes and (size := sizes.get(find(along))) is not None:
            sizes[rank] = size
            made.append((rank, along))
    return made


__all__ = ["EqualBound", "size_ranks"]
