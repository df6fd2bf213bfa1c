"""The decomposition of a program: the given one, or the cheapest that fits into memory.

This is the last check before a program is planned: any decomposition, chosen or pinned, must fit.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ucle.errors import (
    KernelsMissingError,
    LabelError,
    MemoryLimitError,
    NameResolutionError,
    UnsupportedError,
    did_you_mean,
)
from ucle.inputs.states import PlacedInput
from ucle.ir.layouts import Decomposition
from ucle.ir.vertices import Program, Vertex
from ucle.optimiser.domains import too_large
from ucle.optimiser.known_prices import Prices
from ucle.optimiser.limits import densified_bytes, held_bytes
from ucle.optimiser.lookup_joins import join_lookups
from ucle.optimiser.multiway_joins import join_multiway
from ucle.optimiser.pricing import CostedProgram, price
from ucle.optimiser.sparse_einsum import sparse_einsum
from ucle.optimiser.tiled_and_compressed import list_levelled, tile_labels
from ucle.options import Options
from ucle.plan.decomposition import DecomposedProgram, StoredInput
from ucle.plan.kernel_choice import keyed_labels, needs_scalars
from ucle.plan.pair_scans import find_rows
from ucle.plan.sources import ListsSource, TableSource
from ucle.stats.estimate import ProgramStatistics


def decompose(
    program: Program,
    bound: Mapping[str, PlacedInput],
    statistics: ProgramStatistics,
    options: Options,
    prices: Prices | None = None,
) -> DecomposedProgram:
    """Choose the decomposition, or take the one that is given.

    The search judges vertices one by one. If its result with all repartitions needs more memory
    than there is, it searches again for one that needs less.

    Raises:
        MemoryLimitError: no decomposition was found that fits into the memory.
        UnsupportedError, KernelsMissingError: the given decomposition needs kernels that do not
            exist.
    """
    costed = price_program(program, bound, statistics, options, prices)
    decomposed = _decompose(costed, options)
    refused = refusal(costed, decomposed)
    if isinstance(refused, MemoryLimitError) and _is_searched(options):
        for share in TIGHTER:
            tight = replace(options.resources, memory=share * options.resources.memory)
            less = price_program(program, bound, statistics, replace(options, resources=tight))
            with contextlib.suppress(MemoryLimitError):
                candidate = _decompose(less, options)
                if refusal(costed, candidate) is None:
                    return replace(price(costed, candidate.decompositions), search=candidate.search)
    if refused is not None:
        raise refused
    return decomposed


def check_memory(costed: CostedProgram, decomposed: DecomposedProgram) -> None:
    """Check that a decomposition can be run within the available memory.

    Raises:
        MemoryLimitError: it needs more memory.
        UnsupportedError: it needs a kernel that does not exist.
        KernelsMissingError: it needs a kernel and none are installed.
    """
    if (refused := refusal(costed, decomposed)) is not None:
        raise refused


TIGHTER = (0.5, 0.25, 0.1)
"""Shares of the memory to which the search is limited before a program is refused."""


def _is_searched(options: Options) -> bool:
    return not isinstance(options.decomposition, str) or options.decomposition == "auto"


def refusal(
    costed: CostedProgram, decomposed: DecomposedProgram
) -> MemoryLimitError | UnsupportedError | KernelsMissingError | None:
    """Return the reason why a decomposition cannot be run; None if it can."""
    for vertex in costed.program.vertices:
        decomposition = decomposed.decompositions[vertex.name]
        if not costed.resources.kernels and vertex.needs_kernel:
            return _no_kernel_of(vertex)
        if not (costed.resources.kernels or decomposition.relational):
            return _no_kernels_at_all(vertex, decomposition)
        if densified_bytes(costed, vertex, decomposition) > costed.resources.memory:
            return too_large(costed, vertex)
        if (held := held_bytes(costed, decomposed, vertex)) > costed.resources.memory:
            return _holds_too_much(costed, vertex, decomposition, held)
        if needs_scalars(vertex) and not decomposition.relational:
            return _no_kernel(vertex, decomposition)
        if keyed_labels(vertex, decomposition.promoted) != decomposition.promoted:
            return _no_index_kernel(vertex, decomposition)
    return None


def price_program(
    program: Program,
    bound: Mapping[str, PlacedInput],
    statistics: ProgramStatistics,
    options: Options,
    prices: Prices | None = None,
) -> CostedProgram:
    """Return a program with prices for all its decompositions."""
    # A caller who pins something knows what each tensor is made of.
    free = options.decomposition == "auto" and options.association == "free"
    stored = {
        name: StoredInput(
            tuple(s.layout for s in b.sources if isinstance(s, TableSource)),
            lists=any(isinstance(s, ListsSource) for s in b.sources),
            kept=b.keep_in is not None or name in options.carried,
            pairs=isinstance(b.source, TableSource) and b.source.times is not None,
            rows=find_rows(b.source) if isinstance(b.source, TableSource) else None,
        )
        for name, b in bound.items()
    }
    return CostedProgram(
        program,
        statistics,
        stored,
        options.profile,
        options.resources,
        prices or Prices(),
        options.optimisations,
        options.runs,
        frozenset(name for name, each in bound.items() if each.described.spec.varies),
        free and options.optimisations.multiway is not None and options.resources.kernels,
        free and options.optimisations.lookups is not None,
    )


def _decompose(costed: CostedProgram, options: Options) -> DecomposedProgram:
    program = costed.program
    for vertex in program.vertices:
        if vertex.pair is not None and not costed.resources.kernels:
            raise _no_kernel_of(vertex)  # no decomposition would be found
    match options.decomposition:
        case "auto":
            return join_at_once(costed, sparse_einsum(costed, method=options.search))
        case "relational":
            for vertex in program.vertices:
                if vertex.needs_kernel:
                    raise _no_sql_of(vertex)
            return price(costed, {v.name: v.all_promoted for v in program.vertices})
        case "as-written":
            return price(costed, {v.name: decompose_as_written(v) for v in program.vertices})
        case str():
            raise AssertionError("options are checked when they are made")
        case promoted:
            return sparse_einsum(costed, pin_decompositions(program, promoted), options.search)


def join_at_once(costed: CostedProgram, decomposed: DecomposedProgram) -> DecomposedProgram:
    """Return a decomposed program with joins of many operands, wherever they cost less."""
    return join_lookups(costed, join_multiway(costed, decomposed))


def pin_decompositions(
    program: Program, promoted: Mapping[str, Iterable[str]]
) -> dict[str, Decomposition]:
    """Return the decompositions that a caller gives as promoted labels, by tensor name.

    Raises:
        LabelError: one names a label that its vertex does not have.
        NameResolutionError: one is given for a tensor that is not a vertex.
    """
    return {
        name: _pin_decomposition(program, name, frozenset(labels))
        for name, labels in promoted.items()
    }


def _pin_decomposition(program: Program, name: str, spelled: frozenset[str]) -> Decomposition:
    if name not in program.by_name:
        raise NameResolutionError(
            f"the decomposition names an unknown tensor {name}",
            where=f"decomposition, {name}",
            expected="one of " + ", ".join(program.by_name),
            found=name,
            hint="with association='as-written' every statement keeps its tensor",
        )
    vertex = program.by_name[name]
    labels = sorted(vertex.label_names)
    if spelled <= set(labels):
        return vertex.decomposition(spelled)
    tiled = [x.partition("/") for x in spelled if re.fullmatch(r"[^/]+/[1-9]\d{0,8}", x)]
    sizes = [int(size) for *_, size in tiled]
    for each in list_levelled(vertex, program, *sizes[:1]):
        if each.spelled == spelled:
            return each
    if sizes and {name for name, *_ in tiled} <= set(labels):
        whole = tile_labels(vertex, program, [name for name, *_ in tiled], sizes[0])
        if whole is not None and whole.spelled == spelled:
            return whole
    unknown = min(spelled.difference(labels))
    raise LabelError(
        f"the decomposition of {name} promotes an unknown label",
        where=f"decomposition, {name}",
        expected="labels of the vertex: " + (", ".join(labels) or "none"),
        found=unknown,
        hint=did_you_mean(unknown, labels),
    )


def _holds_too_much(
    costed: CostedProgram, vertex: Vertex, decomposition: Decomposition, held: float
) -> MemoryLimitError:
    return MemoryLimitError(
        f"the decomposition of {vertex.name} needs more memory than there is",
        where=str(vertex.span) if vertex.span else f"vertex {vertex.name}",
        expected=f"at most {costed.resources.memory:.3g} bytes in aggregates and arrays",
        found=f"about {held:.3g} bytes for {vertex.text(decomposition)}",
        hint="promote more labels (upper case) to make the arrays shorter, or raise memory_limit",
    )


def _no_kernel(vertex: Vertex, decomposition: Decomposition) -> UnsupportedError:
    return UnsupportedError(
        "an operator that was registered has no kernel and works on numbers only",
        **_all_promoted(vertex, decomposition),
        hint="decomposition='relational' promotes all labels",
    )


def _no_index_kernel(vertex: Vertex, decomposition: Decomposition) -> UnsupportedError:
    keyed = keyed_labels(vertex, decomposition.promoted)
    if vertex.pair is not None:
        free = [x for x in vertex.names if x not in vertex.pair.labels]
        return UnsupportedError(
            f"{vertex.pair.parts} have to be inside arrays",
            where=f"decomposition of {vertex.name}",
            expected="promoted at most: " + (", ".join(free) or "none"),
            found=", ".join(sorted(decomposition.promoted)),
            hint="decomposition='auto' leaves them inside arrays",
        )
    return UnsupportedError(
        "labels that are computed with have to be key columns",
        where=f"decomposition of {vertex.name}",
        expected="promoted: " + ", ".join(x for x in vertex.label_names if x in keyed),
        found=", ".join(sorted(decomposition.promoted)) or "none",
        hint="decomposition='auto' promotes them",
    )


def _no_kernels_at_all(vertex: Vertex, decomposition: Decomposition) -> KernelsMissingError:
    return KernelsMissingError(
        "there are no compiled kernels to work on arrays",
        **_all_promoted(vertex, decomposition),
        hint="decomposition='auto' and 'relational' need no kernels; ucle.udf_kernels."
        "load_extension(connection) says why there are none",
    )


def _what_kernels_do(vertex: Vertex) -> str:
    return "functions of matrices" if vertex.pair is None else vertex.pair.plural


def _no_kernel_of(vertex: Vertex) -> KernelsMissingError:
    return KernelsMissingError(
        f"there are no compiled kernels for {_what_kernels_do(vertex)}",
        where=f"{vertex}",
        expected="an installation with kernels",
        found="none",
        hint="ucle.udf_kernels.load_extension(connection) says why there are none",
    )


def _no_sql_of(vertex: Vertex) -> UnsupportedError:
    return UnsupportedError(
        f"there is no SQL for {_what_kernels_do(vertex)}",
        where=f"{vertex}",
        expected="decomposition='auto', which calls kernels for them",
        found="decomposition='relational'",
    )


def _all_promoted(vertex: Vertex, decomposition: Decomposition) -> dict[str, str]:
    """Return place, expectation and finding for a vertex that may have no labels in arrays."""
    return {
        "where": f"decomposition of {vertex.name}",
        "expected": "all labels promoted: " + ", ".join(vertex.label_names),
        "found": ", ".join(sorted(decomposition.promoted)) or "none",
    }


def decompose_as_written(vertex: Vertex) -> Decomposition:
    """Return the decomposition that promotes the labels written in upper case.

    Reads at computed coordinates, which are vertices of their own, promote the other labels that
    they need as keys.

    Raises:
        LabelError: a label has mixed case, which gives no level.
    """
    for label in vertex.all_labels:
        if not (label.name.isupper() or label.name.islower()):
            raise LabelError(
                f"the label {label.name!r} is neither upper nor lower case",
                where=str(vertex.span or f"vertex {vertex.name}"),
                expected="all upper case (promoted) or all lower case (demoted)",
                found=label.name,
            )
    upper = {name for name in vertex.label_names if name.isupper()}
    return vertex.decomposition(keyed_labels(vertex, upper) if vertex.relabels else upper)
