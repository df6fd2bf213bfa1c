"""Runs a case in every possible way: decompositions, routes, the optimiser's choice, plain SQL."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import duckdb
import numpy as np

from ucle.ir.layouts import Decomposition
from ucle.ir.vertices import Program, Vertex
from ucle.optimiser.pricing import decompositions
from ucle.optimiser.tiled_and_compressed import all_blocked
from ucle.options import Optimisations
from ucle.plan.kernel_choice import keyed_labels
from ucle.program import EinsumProgram
from ucle.run.build import build
from ucle.testing.generate import Case
from ucle.testing.oracle import assert_equal

SAMPLE = 40

TILE = 2
"""Positions of a tile: random tensors are small."""

Routes = Mapping[str, duckdb.DuckDBPyConnection]
"""Connections by the names of their routes."""


def some_decompositions(
    program: EinsumProgram, seed: int, sample: int = SAMPLE
) -> Iterator[dict[str, frozenset[str]]]:
    """Yield every decomposition of a compiled program, or a sample if there are too many.

    Without kernels, only the relational decomposition is possible, and nothing is yielded.

    Args:
        program: the compiled program.
        seed: the seed of the sample.
        sample: the size of the sample. It contains the decomposition that demotes all labels, and
            the one that promotes all labels that may be keys.
    """
    if not program.options.resources.kernels:
        return
    compiled = program.compiled.program
    vertices = compiled.vertices
    choices = [
        [*decompositions(vertex, compiled, TILE), *all_blocked(vertex, compiled, TILE)]
        for vertex in vertices
    ]
    picked: list[tuple[Decomposition, ...]]
    if math.prod(map(len, choices)) <= max(sample, 2):
        picked = [each for each in product(*choices) if _is_read_as_made(compiled, each)]
    else:
        rng = np.random.default_rng(seed)
        picked = [tuple(c[0] for c in choices), tuple(map(_promote_most, vertices))]
        picked += filter(
            None, (_draw_decompositions(compiled, choices, rng) for _ in range(sample - 2))
        )
    for choice in picked:
        yield {vertex.name: each.spelled for vertex, each in zip(vertices, choice, strict=True)}


def _promote_most(vertex: Vertex) -> Decomposition:
    """Return the decomposition of a vertex that promotes all labels that may be keys."""
    return vertex.decomposition(keyed_labels(vertex, vertex.label_names))


def _draw_decompositions(
    program: Program, choices: Sequence[Sequence[Decomposition]], rng: np.random.Generator
) -> tuple[Decomposition, ...] | None:
    """Draw a decomposition for each vertex so that deferred tensors are read as they are made.

    The result is None if a deferred tensor has a reader that cannot read it.
    """
    chosen: list[Decomposition] = []
    for own in choices:
        fitting = [each for each in own if _is_read_as_made(program, (*chosen, each))]
        if not fitting:
            return None
        chosen.append(fitting[rng.integers(len(fitting))])
    return tuple(chosen)


def _is_read_as_made(program: Program, choice: Sequence[Decomposition]) -> bool:
    """True if the first vertices read deferred tensors as they are made, and no others so."""
    vertices = program.vertices[: len(choice)]
    made = {v.name: v.makes(each) for v, each in zip(vertices, choice, strict=True)}
    return all(
        layout.deferred == made[operand.tensor].deferred
        and (not layout.deferred or layout == made[operand.tensor])
        for vertex, each in zip(vertices, choice, strict=True)
        for operand, layout in zip(vertex.inputs, vertex.reads(each), strict=True)
        if operand.tensor in made
    )


def recompiled(program: EinsumProgram, optimisations: Optimisations) -> EinsumProgram:
    """Compile the program again with other optimisations, such as one that is switched off.

    >>> from ucle import einsum_program
    >>> program = einsum_program("y[i] += A[i,j] * x[j]", A=[[1, 2], [3, 4]], x=[1, 1])
    >>> "unhex" in recompiled(program, Optimisations(constants=False)).to_sql()
    False
    """
    options = replace(program.options, optimisations=optimisations)
    built = build(program._build.request, program._build.target.database, options)
    return EinsumProgram(built)


def _ways(
    program: EinsumProgram, routes: Sequence[str], seed: int, sample: int
) -> Iterator[tuple[Any, Sequence[str]]]:
    """Yield decompositions, each with its routes; plain SQL is the same on all of them."""
    yield "auto", routes
    if not any(vertex.needs_kernel for vertex in program.compiled.program.vertices):
        yield "relational", [routes[seed % len(routes)]]
    picked = list(some_decompositions(program, seed, sample))
    every = len(picked) * len(routes) <= sample
    for number, decomposition in enumerate(picked):
        in_turn = [routes[(seed + number) % len(routes)]]
        yield decomposition, routes if every or number < 2 else in_turn


def check_everywhere(
    case: Case,
    connections: Routes,
    seed: int,
    sample: int = SAMPLE,
    optimisations: Optimisations | None = None,
) -> int:
    """Run a case in many ways, and check that every result equals the oracle's.

    The ways are the optimiser's choice, plain SQL, and other decompositions, on several routes.

    Args:
        case: the program and its data.
        connections: the connections by the names of their routes; the program is compiled on the
            first one.
        seed: the seed of the sample of decompositions.
        sample: the largest number of other decompositions. If running each of them on every route
            takes at most this many runs, each runs on every route. Otherwise, only the first two
            do, and each of the others runs on one route.
        optimisations: the optimisations that are switched on; by default, all of them.

    Returns:
        The number of results that were compared.

    Raises:
        AssertionError: a result is wrong; the message has its program, route and decomposition.
    """
    expected = case.expected()
    compiler = next(iter(connections.values()))
    compared = 0
    for connection in connections.values():
        case.create_tables(connection)
    try:
        chosen = case.compile(compiler)
        if optimisations is not None:
            chosen = recompiled(chosen, optimisations)
        for way, taken in _ways(chosen, tuple(connections), seed, sample):
            program = chosen if way == "auto" else chosen.with_decomposition(way)
            for route in taken:
                with program.execute(connections[route]) as result:
                    assert tuple(result) == program.outputs
                    for name in result:
                        context = f"{route}, decomposition {way}, tensor {name}\n{case}"
                        assert_equal(result[name].to_numpy(), expected[name], context)
                        compared += 1
    finally:
        for connection in connections.values():
            case.drop_tables(connection)
    return compared
