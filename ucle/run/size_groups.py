"""Axes and labels of the same size, and what of a program's SQL depends on that size.

To find out whether SQL depends on the size of a label, it is emitted for other sizes: if the text
is the same, it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ucle.foundation.dataclasses import dataclass
from ucle.inputs.axis_sizes import join_symmetric
from ucle.inputs.states import BoundInput
from ucle.ir.layouts import Decomposition
from ucle.language.bounds import SizeClasses, known_bounds, size_classes
from ucle.language.syntax import Site
from ucle.lowering.syntax_to_logical import ResolvedProgram
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.pipeline.resize import with_sizes
from ucle.plan.sources import Origin, TableSource
from ucle.sqlgen.guards import ShapeGuard

Texts = Callable[[Compiled], dict[str, str]]
"""A function that emits the SQL of a program's outputs, by output."""


@dataclass(frozen=True)
class Axes:
    """Axes and labels of the same size, and the key columns that determine it."""

    title: str
    labels: tuple[str, ...]
    """Their names in the text of the program."""
    sites: tuple[Site, ...]
    size: int
    columns: tuple[tuple[TableSource, str], ...]
    encoded: bool
    stated: bool
    """True if a stated bound fixes the size, whatever the columns hold."""
    by_array: bool
    """True if arrays in a table fix the size."""

    def is_of(self, tables: Collection[Origin]) -> bool:
        """True if the size is determined by some tables alone."""
        return all(source.origin in tables for source, _ in self.columns)


def shape_guards(inputs: Mapping[str, BoundInput]) -> list[ShapeGuard]:
    """Return a guard for each input whose arrays are in the rows of a table."""
    return [
        ShapeGuard(f"{name} ({bound.origin})", bound.source)
        for name, bound in inputs.items()
        if isinstance(bound.source, TableSource) and bound.source.nesting
    ]


def table_groups(compiled: Compiled, options: Options) -> list[Axes]:
    """Return the groups of axes whose size key columns of tables determine."""
    groups = size_groups(compiled.front.source, compiled.front.inputs, options)
    return [group for group in groups if group.columns]


def size_groups(
    source: ResolvedProgram, inputs: Mapping[str, BoundInput], options: Options
) -> Iterator[Axes]:
    """Yield the groups of axes of a program that have the same size."""
    classes = _classes(source, inputs)
    members: dict[Site, list[Site]] = {}
    for site in source.bounds.sizes:
        members.setdefault(classes.find(site), []).append(site)
    stated: set[Site] = set()
    by_array: set[Site] = set()
    input_bounds = {name: bound.bounds for name, bound in inputs.items()}
    for site, bound in known_bounds(source.statements, input_bounds, options.bounds or {}):
        if bound.exact and not bound.counted:
            (by_array if _is_dense(inputs, site) else stated).add(classes.find(site))
    names = {s.target.tensor: s.renamed for s in source.statements}
    for root, sites in members.items():
        keys = [key for site in sites if (key := _key(inputs, site)) is not None]
        labels = dict.fromkeys(
            names[tensor].get(place, place) for tensor, place in sites if isinstance(place, str)
        )
        of = dict.fromkeys(f"{key[0].origin}.{key[1]}" for key in keys)
        yield Axes(
            f"label {', '.join(labels)} ({', '.join(of)})",
            tuple(labels),
            tuple(sites),
            source.bounds.sizes[sites[0]],
            tuple(dict.fromkeys((table, column) for table, column, _ in keys)),
            any(encoded for *_, encoded in keys),
            root in stated,
            root in by_array,
        )


def _classes(source: ResolvedProgram, inputs: Mapping[str, BoundInput]) -> SizeClasses:
    """The classes of axes of equal size, from the statements and from shared dictionaries."""
    classes = size_classes(source.statements)
    join_symmetric(classes, inputs)
    for site, name in source.bounds.dictionaries.items():
        classes.join(site, (f"dictionary {name}", 0))
    return classes


def _key(inputs: Mapping[str, BoundInput], site: Site) -> tuple[TableSource, str, bool] | None:
    """The key column of an axis, and True if a dictionary numbers it; None for other axes."""
    tensor, axis = site
    bound = inputs.get(tensor)
    if bound is None or not isinstance(axis, int) or not isinstance(bound.source, TableSource):
        return None
    if axis >= len(bound.source.keys) or not bound.source.from_database:
        return None
    return bound.source, bound.source.keys[axis], bound.source.encoded[axis]


def _is_dense(inputs: Mapping[str, BoundInput], site: Site) -> bool:
    """True if an axis is one of an array."""
    tensor, axis = site
    bound = inputs.get(tensor)
    if bound is None or not isinstance(axis, int):
        return False
    return not isinstance(bound.source, TableSource) or axis >= len(bound.source.keys)


class SizeDependence:
    """Finds the outputs whose SQL depends on sizes, under a decomposition."""

    def __init__(
        self,
        compiled: Compiled,
        options: Options,
        texts: Texts,
        chosen: Mapping[str, Decomposition] | None = None,
    ) -> None:
        """Emit the SQL for the current sizes.

        Args:
            compiled: the program.
            options: those it was compiled with.
            texts: emits the SQL of its outputs.
            chosen: the decomposition; by default the one that it has.
        """
        self._compiled = compiled
        self._options = options
        self._texts = texts
        self._chosen = chosen
        self._now = texts(compiled) if chosen is None else self._write_texts({})
        self._known: dict[tuple[Site, ...], set[str]] = {}

    def outputs(self, group: Axes) -> set[str]:
        """The outputs whose SQL changes with the size of these axes; all if a size has no plan."""
        if group.sites not in self._known:
            self._known[group.sites] = self._compare([group])
        return self._known[group.sites]

    def relevant(self, groups: Sequence[Axes]) -> list[Axes]:
        """The groups on whose sizes the SQL of any output depends.

        Plain SQL seldom depends on any: all sizes are changed at once first.
        """
        if self._compiled.decomposed.relational and not self._compare(groups):
            return []
        return [group for group in groups if self.outputs(group)]

    def _compare(self, groups: Sequence[Axes]) -> set[str]:
        """The outputs whose SQL changes with all these sizes at once."""
        dependent: set[str] = set()
        for factor, more in ((1, 1), (2, 3)):
            other = self._write_texts(
                {site: factor * group.size + more for group in groups for site in group.sites}
            )
            dependent |= {name for name, text in other.items() if text != self._now[name]}
            if len(dependent) == len(self._now):
                break
        return dependent

    def _write_texts(self, sizes: Mapping[Site, int]) -> dict[str, str]:
        program = with_sizes(self._compiled, sizes, self._options, self._chosen)
        if program is None:
            return dict.fromkeys(self._compiled.program.outputs, f"none for {sizes}")
        return self._texts(program)
