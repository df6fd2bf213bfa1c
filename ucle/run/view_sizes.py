"""The sizes that a view depends on, and the guards that they need.

A view is created once and queried for years, while sizes follow the data. If its SQL for other
sizes of a label is the same text, the view is independent of the size. If it differs only in
numbers that are multiples of sizes, the view computes these (`ucle.sqlgen.computed_sizes`). If the
plan with all labels promoted does not depend on the size either, the size is only the length of
arrays: shorter ones would do, and longer ones are possible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from ucle.errors import ArgumentError, BoundError, LabelError, UnsupportedError, did_you_mean
from ucle.foundation.dataclasses import dataclass
from ucle.language.bounds import checked_size
from ucle.language.syntax import Pairs, Site
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.pipeline.resize import with_sizes
from ucle.plan.sources import Origin
from ucle.run.size_groups import Axes, SizeDependence, Texts, shape_guards, table_groups
from ucle.sqlgen import SqlStep
from ucle.sqlgen.computed_sizes import Sample, Script, following
from ucle.sqlgen.guards import Guard, SizeGuard
from ucle.sqlgen.write_statements import Query

Scripts = Callable[[Compiled], Script]
"""A function that emits the steps of a program and the SELECT of each output."""

MOST = 2**31 - 1
"""The largest computed size of a label: beyond it, key columns have another type."""


@dataclass(frozen=True)
class Guarded:
    """A program as views compute it, with guards."""

    compiled: Compiled
    guards: Mapping[str, list[Guard]]
    """Conditions that have to hold, by output."""
    followed: Mapping[str, tuple[tuple[SqlStep, ...], Query]]
    """Outputs with computed sizes: the steps and the SELECT that compute them."""


def guarded_sizes(
    compiled: Compiled,
    options: Options,
    capacity: Mapping[str, int],
    texts: Texts,
    scripts: Scripts,
    fixed: Collection[Origin] = (),
) -> Guarded:
    """Give arrays space for growth, and find the guards that keep each output's SQL valid.

    Args:
        compiled: a program whose inputs are all in databases and files.
        options: those it was compiled with.
        capacity: sizes for arrays by label, from the caller.
        texts: emits the SQL of the outputs as text.
        scripts: emits the SQL as trees.
        fixed: tables whose sizes need not be computed: it is enough that they do not change.

    Raises:
        LabelError: `capacity` names an unknown label.
        BoundError: `capacity` is less than the number of coordinates.
        ArgumentError: the size of a label does not follow the data.
        UnsupportedError: the answer depends on the size, or arrays would get too long.
    """
    groups = table_groups(compiled, options)
    capacities = _capacities(groups, capacity)
    outputs = compiled.program.outputs
    guards: dict[str, list[Guard]] = {
        output: [*shape_guards(compiled.front.inputs)] for output in outputs
    }
    everything = {v.name: v.all_promoted for v in compiled.program.vertices}
    as_planned = SizeDependence(compiled, options, texts)
    relational = as_planned
    if everything != compiled.decomposed.decompositions:
        relational = SizeDependence(compiled, options, texts, everything)
    sizes: dict[Site, int] = {}
    counted: dict[str, list[Axes]] = {output: [] for output in outputs}
    for group in groups:
        if group.stated or group.by_array:
            exact = set(outputs) if group.by_array and group.encoded else set()
            needed, most = set(outputs), group.size
        else:
            exact, needed = relational.outputs(group), as_planned.outputs(group)
            most = capacities.get(group.title, group.size)
            if exact and group.title in capacities:
                raise _answer_depends(group)
            sizes |= dict.fromkeys(group.sites, most)
        for output in outputs:
            follows = not (group.stated or group.by_array or group.is_of(fixed))
            if output in exact and follows:
                counted[output].append(group)
            if output in needed:
                guards[output].append(_guard(group, most, most if output in exact else 0))
    if not capacities:
        followed = _follow_sizes(compiled, options, counted, scripts)
        for output in followed:
            titles = {group.title for group in counted[output]}
            unaffected = [x for x in guards[output] if x.title not in titles]
            present = (_guard(x, MOST, _least(compiled, x)) for x in counted[output])
            guards[output] = [*unaffected, *present]
        return Guarded(compiled, guards, followed)
    larger = with_sizes(compiled, sizes, options)
    if larger is None:
        raise UnsupportedError(
            "the decomposition does not fit arrays of such a capacity",
            where="create_views(capacity=...)",
            expected="arrays within the memory limit",
            found=str(dict(capacity)),
            hint="state a smaller capacity, or use decomposition='relational', which needs none",
        )
    return Guarded(larger, guards, {})


def _guard(group: Axes, most: int, least: int) -> SizeGuard:
    return SizeGuard(group.title, group.columns, group.encoded, most, least)


def _follow_sizes(
    compiled: Compiled, options: Options, counted: Mapping[str, list[Axes]], scripts: Scripts
) -> dict[str, tuple[tuple[SqlStep, ...], Query]]:
    """The outputs whose sizes can be computed in SQL, with the steps and the SELECT that do so."""
    groups = list({x.title: x for each in counted.values() for x in each}.values())
    base = tuple(group.size for group in groups)
    if not groups or min(base) < 2:  # multiples of 0 or 1 look like constants
        return {}
    of = {site: group.title for group in groups for site in group.sites}
    if any(rank in of and of[rank] != of.get(label) for label, rank in _ranks(compiled)):
        return {}  # there may be fewer entries than ranks one day
    other = [
        tuple(f * s + f + 1 if m == n else s for m, s in enumerate(base))
        for n in range(len(base))
        for f in (2, 5)
    ]
    other += [tuple((n + f) * s + 1 for n, s in enumerate(base)) for f in (2, 7)]
    samples = []
    for sizes in (base, *other):
        by_site = {site: size for x, size in zip(groups, sizes, strict=True) for site in x.sites}
        if (program := with_sizes(compiled, by_site, options)) is None:
            return {}
        samples.append(Sample(sizes, scripts(program)))
    followed = following(samples, [_guard(group, group.size, 0) for group in groups])
    return {output: of for output, of in followed.items() if counted[output]}


def _ranks(compiled: Compiled) -> Iterator[tuple[Site, Site]]:
    """Yield the labels along which statements take the first entries, each with that of ranks."""
    for statement in compiled.front.source.statements:
        if isinstance(pairs := statement.expression, Pairs):
            target = statement.target.tensor
            yield (target, pairs.label), (target, pairs.rank)


def _least(compiled: Compiled, group: Axes) -> int:
    """The least size of some axes: there are as many entries along a label as ranks."""
    sizes = compiled.front.source.bounds.sizes
    pairs = ((x, y) for x, y in _ranks(compiled) if x in group.sites and y not in group.sites)
    return max((sizes[rank] for _, rank in pairs), default=1)


def _capacities(groups: list[Axes], capacity: Mapping[str, int]) -> dict[str, int]:
    """The capacity of each group of axes, by its title."""
    labels = {label for group in groups for label in group.labels}
    capacities: dict[str, int] = {}
    for label, requested in capacity.items():
        where = f"create_views(capacity=...), label {label}"
        size = checked_size(requested, where)
        if label not in labels:
            raise LabelError(
                f"there is no label {label!r}",
                where="create_views(capacity=...)",
                expected="labels of the program: " + ", ".join(sorted(labels)),
                found=repr(label),
                hint=did_you_mean(str(label), labels),
            )
        for group in groups:
            if label not in group.labels:
                continue
            if group.stated or group.by_array or not group.columns:
                raise ArgumentError(
                    "a label whose size is fixed has no capacity for more coordinates",
                    where=where,
                    expected="a label whose size follows the data of tables",
                    found=f"a bound of {group.size} that is stated, or that of arrays",
                )
            if size < group.size:
                raise BoundError(
                    "the capacity is less than the number of coordinates",
                    where=where,
                    expected=f"at least {group.size}",
                    found=str(size),
                )
            capacities[group.title] = size
    return capacities


def _answer_depends(group: Axes) -> UnsupportedError:
    return UnsupportedError(
        "a capacity is not possible: the answer depends on the number of coordinates",
        where=f"create_views(capacity=...), {group.title}",
        expected="a label whose size is used only as the length of arrays",
        found="a mean, a count, or another function of the size",
        hint="state the size with bounds={...} of einsum_program",
    )
