"""The output of `explain` fits a terminal of 80 columns, wherever names allow it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from classics import TEXTS, classic

import ucle
from ucle.explain.columns import WIDTH, align_rows, fit_rows, stack_rows, wrap_text
from ucle.testing import random_case

PROGRAMS = Path(__file__).parents[2] / "benchmarks" / "programs"


def said(text: str) -> str:
    """A text without the places where its lines end and its columns begin."""
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("name", TEXTS)
def test_classics(name: str) -> None:
    with ucle.connect() as connection:
        case = classic(name)
        case.create_tables(connection)
        text = case.compile(connection).explain(analyze=True)
    assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_random_programs(seed: int) -> None:
    with ucle.connect() as connection:
        case = random_case(seed)
        case.create_tables(connection)
        program = case.compile(connection)
        text = program.explain(analyze=True)
    assert max(map(len, text.splitlines())) <= WIDTH
    for vertex in program.compiled.program.vertices:
        decomposition = program.compiled.decomposed.decompositions[vertex.name]
        assert said(vertex.text(decomposition)) in said(text)


def sparse(*shape: int) -> Any:
    return sp.random_array(shape, density=0.002, rng=np.random.default_rng(0), format="coo")


def dense(*shape: int) -> Any:
    return np.random.default_rng(0).random(shape)


PAPER: dict[str, dict[str, Any]] = {
    "gcn": {
        "A": sparse(2708, 2708),
        "D": sparse(2708, 2708),
        "H": sparse(2708, 1433),
        "W1": dense(1433, 64),
        "W2": dense(64, 7),
    },
    "attention": {
        "X": sparse(2708, 1433),
        "A": sparse(2708, 2708),
        "WQ": dense(1433, 128),
        "WK": dense(1433, 128),
    },
    "dense": {"X": sparse(2708, 1433), "WQ": dense(1433, 128), "WK": dense(1433, 128)},
    "chain": {"A": sparse(2708, 2708), "X": sparse(2708, 1433), "W": dense(1433, 64)},
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PAPER)
def test_programs_of_the_paper(name: str) -> None:
    text = (PROGRAMS / f"{name}.ein").read_text(encoding="utf-8")
    for decomposition in ("auto", "relational"):
        program = ucle.einsum_program(text, inputs=PAPER[name], decomposition=decomposition)
        assert max(map(len, program.explain().splitlines())) <= WIDTH


def test_pagerank() -> None:
    links = ucle.array(sparse(500, 500), axes=("src", "dst"))
    out = links.sum("dst")
    count, follow = (out >= 0).sum(), links / ucle.maximum(out, 1)
    rank = (out >= 0) / count
    for _ in range(5):
        followed = follow.dot(rank, axis="src").rename({"dst": "src"})
        rank = 0.85 * (followed + (rank * (out == 0)).sum() / count) + 0.15 / count
    assert max(map(len, rank.explain().splitlines())) <= WIDTH


def test_long_names() -> None:
    text = """
    neighbour_sum_of_embeddings[node_in_the_graph, feature] +=
        adjacency_of_the_graph[node_in_the_graph, neighbour] * embeddings[neighbour, feature]
    hidden_layer_after_activation[node_in_the_graph, unit] = relu(
        neighbour_sum_of_embeddings[node_in_the_graph, feature] * weights_of_layer[feature, unit])
    """
    program = ucle.einsum_program(
        text,
        adjacency_of_the_graph=sparse(500, 500),
        embeddings=dense(500, 32),
        weights_of_layer=dense(32, 8),
    )
    assert max(map(len, program.explain(analyze=True).splitlines())) <= WIDTH


def test_a_name_without_a_place_to_break() -> None:
    name = "x" * 100
    program = ucle.einsum_program(f"{name}[i] += A[i,j]", A=dense(3, 4))
    lines = program.explain(analyze=True).splitlines()
    assert any(name in line for line in lines)
    assert all(len(line) <= WIDTH or name in line for line in lines)


def test_many_axes() -> None:
    labels = ",".join(f"q{n}" for n in range(20))
    state = sp.coo_array((np.ones(3), np.zeros((20, 3), int)), shape=(2,) * 20)
    program = ucle.einsum_program(f"p[{labels}] = s[{labels}] * s[{labels}]", s=state)
    assert max(map(len, program.explain().splitlines())) <= WIDTH


def test_many_inputs() -> None:
    names = [f"factor{n}" for n in range(30)]
    text = f"y[i] = {' + '.join(f'{name}[i]' for name in names)}"
    program = ucle.einsum_program(text, inputs=dict.fromkeys(names, dense(10)))
    assert max(map(len, program.explain().splitlines())) <= WIDTH


def test_what_fits_stays_as_it_is() -> None:
    rows = [("a", "b c"), ("dd", "e")]
    assert fit_rows(rows) == align_rows(rows) == stack_rows(rows) == ["  a   b c", "  dd  e"]
    assert fit_rows([]) == align_rows([]) == stack_rows([]) == []
    assert wrap_text("") == [""]
    assert wrap_text("a b") == ["a b"]


def test_where_lines_end() -> None:
    assert wrap_text("s1[q0,q1,q2] = 1,234,567", 12) == ["s1[q0,q1,q2]", "  =", "  1,234,567"]
    assert wrap_text("s1[q0,q1,q2]", 8) == ["s1[q0,", "  q1,q2]"]
    assert wrap_text("x" * 9 + " y", 8) == ["x" * 9, "  y"]


def test_a_long_name_has_a_line_of_its_own() -> None:
    rows = [("vertex", "cost"), ("a_long_name", "123,456"), ("b", "7")]
    assert fit_rows(rows, 19) == [
        "  vertex    cost",
        "  a_long_name",
        "            123,456",
        "  b         7",
    ]
