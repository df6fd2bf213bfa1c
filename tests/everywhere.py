"""Runs a case in every way there is: decompositions, routes, the optimiser's choice, plain SQL."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import duckdb
import numpy as np
from generate import Case
from oracle import assert_equal

from ucle.costed import decompositions

ALL_UP_TO = 64
SAMPLE = 24


def some_decompositions(program: Any, seed: int) -> Iterator[dict[str, frozenset[str]]]:
    """Every decomposition of a compiled program, or a sample where there are too many."""
    vertices = program.compiled.program.vertices
    choices = [list(decompositions(vertex)) for vertex in vertices]
    if math.prod(map(len, choices)) <= ALL_UP_TO:
        picked = list(product(*choices))
    else:
        rng = np.random.default_rng(seed)
        picked = [tuple(c[0] for c in choices), tuple(c[-1] for c in choices)]
        picked += [
            tuple(c[rng.integers(len(c))] for c in choices) for _ in range(SAMPLE - len(picked))
        ]
    for choice in picked:
        yield {vertex.name: promoted for vertex, promoted in zip(vertices, choice, strict=True)}


def check_everywhere(
    case: Case, native: duckdb.DuckDBPyConnection, plain: duckdb.DuckDBPyConnection, seed: int
) -> None:
    """The case gives the oracle's answer in every way there is to run it."""
    expected = case.expected()
    connections = {"native": native, "arrow": plain}
    for connection in connections.values():
        case.create_tables(connection)
    try:
        chosen = case.compile(native)
        ways: list[Any] = ["auto", "relational", *some_decompositions(chosen, seed)]
        for way in ways:
            program = chosen if way == "auto" else case.compile(native, decomposition=way)
            for route, connection in connections.items():
                with program.execute(connection) as result:
                    assert tuple(result) == program.outputs
                    for name in result:
                        context = f"{route}, decomposition {way}, tensor {name}\n{case}"
                        assert_equal(result[name].to_numpy(), expected[name], context)
    finally:
        for connection in connections.values():
            case.drop_tables(connection)
