"""The top-k entries that are those stored: nothing has to be made for what a tensor leaves out.

That is so where the fill follows all entries in the order, as infinity does in an ascending one,
and where no statement reads the positions of the entries, which those left out have as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable

from ucle.ir.affine import Affine
from ucle.ir.axis_functions import VALUE
from ucle.ir.tensor_types import TensorType
from ucle.language.syntax import Access, Pairs, Reindexed, Statement, walk


def find_values_alone(statements: Iterable[Statement], outputs: Collection[str]) -> frozenset[str]:
    """Return the tensors of pairs of which only the values are read.

    Args:
        statements: lifted, each after those that it reads.
        outputs: the outputs of the program, which are read whole.
    """
    pairs = set[str]()
    read, of_values = Counter[str](), Counter[str]()
    for statement in statements:
        if isinstance(statement.expression, Pairs):
            pairs.add(statement.target.tensor)
        if not pairs:
            continue
        for part in walk(statement.expression):
            if isinstance(part, Access):
                read[part.tensor] += 1
            elif isinstance(part, Reindexed) and part.source.tensor in pairs:
                half = part.indices[-1]
                of_values[part.source.tensor] += half.entries is None and half.affine == Affine(
                    (), VALUE
                )
    return frozenset(x for x in pairs.difference(outputs) if read[x] == of_values[x])


def fill_follows(type_: TensorType, *, largest: bool) -> bool:
    """Return whether the entries that are not stored follow all others in the order of a top-k.

    >>> from ucle.operators.values import Values
    >>> [fill_follows(TensorType((), fill=math.inf), largest=x) for x in (False, True)]
    [True, False]
    >>> fill_follows(TensorType((), fill=math.inf, values=Values(finite=False)), largest=False)
    False
    """
    entries = type_.entries
    if entries.varies or entries.overflows or not (entries.finite or entries.infinity is not None):
        return False  # there may be NaN, which is the greatest of all
    return type_.fill == (-math.inf if largest else math.inf)
