"""The sizes of labels that rank entries or number them: those of ranks that nothing states.

Takes resolved statements, in which `ucle.language.syntax.Pairs` rank entries and
`ucle.language.syntax.Flat` numbers those along several labels. A rank has the size of the label
along which it ranks, but neither its coordinates nor its dictionary, so that the two are in
different size classes (`ucle.language.bounds`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, MutableMapping

from ucle.foundation.dataclasses import dataclass
from ucle.language.syntax import Access, Flat, Pairs, Site, Statement


@dataclass(frozen=True)
class ProductBound:
    """Sites of ranks or numbers, and the sites of which they have the product of the sizes."""

    sites: tuple[Site, ...]
    along: tuple[Site, ...]

    def size(self, size: Callable[[Site], int]) -> int:
        """Compute the size."""
        return math.prod(map(size, self.along))


def size_ranks(
    statements: Iterable[Statement],
    find: Callable[[Site], Site],
    sizes: MutableMapping[Site, int],
) -> list[tuple[Site, tuple[Site, ...]]]:
    """Give ranks and numbers of unknown size that of the labels they are along, where it is known.

    Args:
        statements: resolved statements, each after those that it reads.
        find: the representative of a size class.
        sizes: the known sizes of classes; those of ranks are added.

    Returns:
        The classes of these ranks, each with the axes of a tensor along which it ranks.
    """
    made: list[tuple[Site, tuple[Site, ...]]] = []
    for statement in statements:
        match statement.expression:
            case Pairs(label=label, rank=rank, source=source):
                over: tuple[str, ...] = (label,)
            case Flat(over, rank, Access() as source):
                pass
            case _:
                continue
        numbered = find((statement.target.tensor, rank))
        along = tuple((source.tensor, source.labels.index(x)) for x in over)
        known = [sizes.get(find(site)) for site in along]
        if numbered not in sizes and None not in known:
            sizes[numbered] = math.prod(x for x in known if x is not None)
            made.append((numbered, along))
    return made


__all__ = ["ProductBound", "size_ranks"]
