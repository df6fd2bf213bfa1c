"""Axes of dates and times that are read shifted: they have the times of a label of the read.

In ``x[t] * y[~(t-1)]``, the axes of x and y share their times as in ``x[t] * y[t]``, although the
positions at which y is read are not those of its own label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ucle.language.bounds import SizeClasses
from ucle.language.index_bounds import Reach, moved_along
from ucle.language.syntax import Site, Statement

LAST_RULE = 2
"""Rule 0 chooses a label that leaves no choice, rule 1 the only one that nothing says the size of,
rule 2 the first of several."""


def join_shifted_times(
    statements: Iterable[Statement],
    classes: SizeClasses,
    times: Collection[Site],
    keys: Collection[Site],
    sized: Collection[Site],
) -> None:
    """Join each axis of times that is read shifted with the label that it is shifted from.

    Of several labels, as in ``y[~(t+k)]``, that is the one that has times elsewhere; failing that,
    the only one without a size of its own; failing that, the first. How large the labels are does
    not matter.

    Args:
        statements: resolved, each after those that it reads.
        classes: classes of axes of the same size; more are joined.
        times: the axes of inputs whose coordinates are times.
        keys: all axes of inputs that have coordinates of their own.
        sized: the axes and labels of which something says how large they are.

    >>> from ucle.language.lift_indices import lift_indices
    >>> from ucle.language.bounds import size_classes
    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.resolve import resolve
    >>> text = "z[t] = x[t] * y[~(t-1)]"
    >>> statements = lift_indices(tuple(map(resolve, parse_program(text)))).statements
    >>> classes, axes = size_classes(statements), [("x", 0), ("y", 0)]
    >>> join_shifted_times(statements, classes, axes, axes, axes)
    >>> classes.find(("x", 0)) == classes.find(("y", 0))
    True
    """
    waiting = [read for read in moved_along(statements, lambda site: site) if read]
    of_times, of_keys, of_sized = (set(map(classes.find, x)) for x in (times, keys, sized))
    rule = 0
    while rule <= LAST_RULE:
        left: list[tuple[Reach, ...]] = []
        for read in waiting:
            by, label = _choose_label(read, classes, of_times, of_keys, of_sized)
            if label is None or by > rule:
                left.append(read)
                continue
            classes.join(read[0].axis, label)
            for roots in (of_times, of_keys, of_sized):
                roots.add(classes.find(label))
            if by:  # now, other reads may have one choice only
                rule = 0
        rule = rule + 1 if len(left) == len(waiting) else 0
        waiting = left


def _choose_label(
    read: tuple[Reach, ...],
    classes: SizeClasses,
    times: Collection[Site],
    keys: Collection[Site],
    sized: Collection[Site],
) -> tuple[int, Site | None]:
    """The rule that chooses a label for the times of a read's axis, and this label.

    The label is None if there is none, or not yet.
    """
    if classes.find(read[0].axis) not in times:
        return 0, None
    labels = {classes.find(site): site for each in read for _, site in each.sites}
    if having := [site for root, site in labels.items() if root in times]:
        return 0, having[0] if len(having) == 1 else None
    free = [site for root, site in labels.items() if root not in keys]
    open_ones = [site for site in free if classes.find(site) not in sized]
    if len(free) < 2:
        return 0, next(iter(free), None)
    return (1, open_ones[0]) if len(open_ones) == 1 else (2, (open_ones or free)[0])
