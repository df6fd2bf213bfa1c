"""The decompositions of each vertex that a search considers.

A vertex with few decompositions (`ucle.options.Optimisations.wide_vertex`) offers all that stay
below the limits. A wider vertex, such as a gate on the state of a quantum circuit, first offers
patterns and then the neighbours of the chosen decomposition: those that differ in one label, or
that read or make a tensor in a layout that it already has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from ucle.errors import MemoryLimitError
from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.vertices import Program, Vertex
from ucle.optimiser.limits import densified_bytes
from ucle.optimiser.made_dense import first_nonfinite, instead, number_ids
from ucle.optimiser.pricing import CostedProgram
from ucle.plan.kernel_choice import keyed_labels

MANY = 256
"""The number of vertices from which patterns of wide vertices are halves, not quarters."""


@dataclass(frozen=True)
class Domains:
    """The decompositions of each vertex that are considered, by name."""

    choices: Mapping[str, tuple[Decomposition, ...]]
    wide: frozenset[str] = frozenset()
    """The vertices whose choices are not complete."""

    def only(self, name: str, choices: Iterable[Decomposition]) -> Domains:
        """Return these domains with other decompositions of one vertex."""
        return replace(self, choices={**self.choices, name: tuple(choices)})

    def unite_choices(self, other: Domains) -> Domains:
        """Return the union of two domains."""
        both = {
            name: tuple(dict.fromkeys((*choices, *other.choices[name])))
            for name, choices in self.choices.items()
        }
        return replace(self, choices=both)

    def making(self, program: Program, layouts: Mapping[str, Layout]) -> Domains:
        """Return these domains with some vertices making only the given layouts."""
        restricted = {
            name: tuple(p for p in self.choices[name] if program.by_name[name].makes(p) == layout)
            for name, layout in layouts.items()
        }
        return replace(self, choices={**self.choices, **restricted})

    def fewest_promoted(self) -> dict[str, Decomposition]:
        """Return for each vertex the first decomposition with the fewest promoted labels."""
        return {
            name: min(choices, key=lambda p: (p.deferred is not None, len(p.promoted)))
            for name, choices in self.choices.items()
        }


def levels_to_choose(program: Program, pinned: Collection[str] = ()) -> int:
    """Return the number of free labels of vertices: log2 of the number of decompositions."""
    return sum(_levels(vertex) for vertex in program.vertices if vertex.name not in pinned)


def _levels(vertex: Vertex) -> int:
    return len(vertex.all_labels) - len(keyed_labels(vertex))


def first_domains(costed: CostedProgram, pinned: Mapping[str, Decomposition]) -> Domains:
    """Return all decompositions of narrow vertices, patterns of wide ones, and the pinned ones.

    Raises:
        MemoryLimitError: no decomposition of some vertex stays below the limits.
    """
    choices: dict[str, tuple[Decomposition, ...]] = {}
    wide = set()
    parts = 4 if len(costed.program.vertices) <= MANY else 2
    for vertex in costed.program.vertices:
        name = vertex.name
        if name in pinned:
            choices[name] = (pinned[name],)
            continue
        every = costed.fitting(vertex)
        if 2 ** _levels(vertex) > costed.optimisations.wide_vertex:
            wide.add(name)
            every = (p for p in _patterns(vertex, parts) if costed.fits(vertex, p))
        choices[name] = tuple(dict.fromkeys(every))
        if not choices[name]:
            raise too_large(costed, vertex)
    return Domains(choices, frozenset(wide))


def neighbours(
    costed: CostedProgram, domains: Domains, chosen: Mapping[str, Decomposition]
) -> Domains:
    """Return domains in which wide vertices offer the chosen decomposition and its neighbours."""
    program = costed.program
    layouts_of = {name: stored.layouts for name, stored in costed.stored.items()}
    layouts_of |= {v.name: (v.makes(chosen[v.name]),) for v in program.vertices}
    read_layouts = {
        operand.tensor: layout
        for vertex in program.vertices
        for operand, layout in zip(vertex.inputs, vertex.reads(chosen[vertex.name]), strict=True)
    }
    choices = dict(domains.choices)
    for vertex in program.vertices:
        if vertex.name not in domains.wide:
            continue
        near = dict.fromkeys(
            _near(vertex, chosen[vertex.name], layouts_of, read_layouts.get(vertex.name))
        )
        choices[vertex.name] = tuple(
            p
            for p in near
            if keyed_labels(vertex, p.promoted) == p.promoted and costed.fits(vertex, p)
        )
    return replace(domains, choices=choices)


def _patterns(vertex: Vertex, parts: int) -> Iterator[Decomposition]:
    """Yield decompositions that promote the first or last part of the output's labels.

    Each comes with the aggregated labels promoted and, if there are any, without.

    Every vertex promotes the same parts: a search between neighbours moves one label at a time, and
    would never promote half of the labels of all states together.
    """
    labels = vertex.names
    reduced = frozenset(label.name for label in vertex.reduced)
    for part in range(parts + 1):
        count = len(labels) * part // parts
        for some in dict.fromkeys(map(frozenset, (labels[:count], labels[len(labels) - count :]))):
            yield vertex.decomposition(keyed_labels(vertex, some | reduced))
            if reduced:
                yield vertex.decomposition(keyed_labels(vertex, some))
    if vertex.index is not None:  # the source's labels differ from the result's
        yield vertex.all_promoted


def _near(
    vertex: Vertex,
    chosen: Decomposition,
    layouts_of: Mapping[str, tuple[Layout, ...]],
    read_layout: Layout | None,
) -> Iterator[Decomposition]:
    yield chosen
    for name in vertex.label_names:
        yield chosen.flip_label(name)
    for operand in vertex.inputs:
        for layout in layouts_of[operand.tensor]:
            yield chosen.reading(operand.names, layout)
    if read_layout is not None:
        yield chosen.reading(vertex.names, read_layout)


def too_large(costed: CostedProgram, vertex: Vertex) -> MemoryLimitError:
    """Return the error for a vertex that has no decomposition within the limits."""
    shape = " x ".join(str(label.bound) for label in vertex.all_labels)
    hint = "raise memory_limit, or pin a decomposition that promotes more labels"
    if densified_bytes(costed, vertex, vertex.all_promoted) > costed.resources.memory:
        hint = "raise memory_limit; here, entries that are not stored count, too"
        sparse = instead(vertex, costed.program.types, costed.statistics)
        if sparse is not None:
            hint += f": {sparse}"
        elif (source := first_nonfinite(costed.program)) is not None:
            hint += (
                f", as {source} may hold NaN or infinities: guard its operands by a condition, as "
                "in when(d > 0, 1 / d), or leave out what is not stored by nonfinite='sparse'"
            )
    if (ids := number_ids(costed.program, costed.statistics)) is not None:
        hint = f"{ids}. Or {hint}"
    return MemoryLimitError(
        f"no decomposition of {vertex.name} stays below the memory limit",
        where=str(vertex.span) if vertex.span else f"vertex {vertex.name}",
        expected=f"at most {costed.resources.memory:.3g} bytes",
        found=f"{vertex} over {shape}",
        hint=hint,
    )
