"""Axes whose sizes the type of a column fixes: the three numbers of a column ``FLOAT[3]``.

In: resolved statements and their inputs. Out: for each tensor the axes that have such a size.
Columns of arrays over these axes are written with the same kind of type (`ucle.plan.forms`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ucle.inputs.states import BoundInput
from ucle.language.bounds import size_classes
from ucle.language.syntax import Statement
from ucle.plan.sources import TableSource


def find_fixed_axes(
    statements: tuple[Statement, ...],
    inputs: Mapping[str, BoundInput],
    ranks: Mapping[str, int],
) -> dict[str, frozenset[int]]:
    """Return the axes of tensors whose sizes are those of columns such as ``FLOAT[3]``.

    Args:
        statements: those of the program, resolved.
        inputs: all inputs.
        ranks: the tensors that are asked for, with their numbers of axes.
    """
    fixed = {site for name, bound in inputs.items() for site in _fixed_sites(name, bound)}
    if not fixed:
        return {name: frozenset() for name in ranks}
    classes = size_classes(statements)
    found = {classes.find(site) for site in fixed}
    return {
        name: frozenset(axis for axis in range(rank) if classes.find((name, axis)) in found)
        for name, rank in ranks.items()
    }


def _fixed_sites(name: str, bound: BoundInput) -> Iterable[tuple[str, int]]:
    """The axes of an input that are inside arrays of a type with a length."""
    source = bound.source
    if not isinstance(source, TableSource) or not source.fixed_length:
        return ()
    keys = source.key_axes or range(len(source.keys))
    return ((name, axis) for axis in range(source.rank) if axis not in keys)
