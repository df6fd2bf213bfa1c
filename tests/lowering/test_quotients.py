"""Quotients that are divided after their sums: the same values, NaN where there was NaN."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import numpy as np
import pytest
from logical_meaning import meaning

import ucle
from ucle.lowering.logical import LogicalProgram
from ucle.lowering.quotients import Divided, divide_last
from ucle.lowering.syntax_to_logical import syntax_to_logical
from ucle.testing.check_matrix import Routes, check_everywhere, some_decompositions
from ucle.testing.generate import Case

FUZZ = int(os.environ.get("UCLE_FUZZ_PROGRAMS", "0"))
PART = 100

WEIGHTS = "E[{}]", "abs(E[{}])", "square(E[{}])", "(E[{}] != 0)", "max(E[{}], 0)"
DIVISORS = (
    "sum[k](<i,k>)",
    "count[k](E[i,k])",
    "sum[k](E[k,i])",
    "sum[k](E[i,k])",
    "max(sum[k](E[i,k]), 1)",
    "s[i]",
    "d[i]",
    "z[i]",
    "sum[k](E[i,k] * E[i,k])",
)
FORMS = (
    "Y[i,f] += <i,j> * V[j,f] / {d}",
    "Y[i,f] += (<i,j> / {d}) * V[j,f]",
    "P[i,j] = <i,j> / {d}; Y[i,f] += P[i,j] * V[j,f]",
    "Y[i] += <i,j> / {d}",
    "Y[f] += <i,j> * V[j,f] / {d}",
    "Y[i] += 2 * <i,j> * c[j] * V[j,f] / {d}",
    "Y[i,f] = 1 - sum[j](<i,j> * V[j,f] / {d})",
    "P[i,j] = <i,j> / {d}; Y[i,l] += P[i,j] * P[l,j]",
    "Y[i] += (<i,j> / {d}) * (<i,l> / max(c[i], 1))",
    "P[i,j] = <i,j> / {d}; Y[j] += P[i,j] * c[i]",
    "Y[j] += (<i,j> / {d}) * exp(c[i]) * (<j,i> / max(c[i], 1))",
)
"""The weight under some labels stands in angle brackets."""


def drawn(seed: int) -> tuple[str, dict[str, Any]]:
    """A program that divides in a sum, and its inputs."""
    rng = np.random.default_rng([176, seed])
    n, f = 5, int(rng.integers(1, 3))
    weight, divisor, form = (str(rng.choice(x)) for x in (WEIGHTS, DIVISORS, FORMS))
    before = "s[i] += <i,k>; " if divisor == "s[i]" else ""
    text = before + form.format(d=divisor)
    text = re.sub("<(.*?)>", lambda labels: weight.format(labels[1]), text)
    least = -1 if rng.random() < 0.3 else 0
    edges = rng.integers(least, 4, size=(n, n)) * (rng.random((n, n)) < 0.4)
    edges[int(rng.integers(n))] = 0
    data = {
        "E": edges.astype(rng.choice(["float64", "float64", "float32", "int64", "bool"])),
        "V": rng.normal(size=(n, f)),
        "c": rng.normal(size=n),
        "d": (rng.random(n) + 0.5) * rng.choice([1, 1, -1]),
        "z": rng.integers(0, 3, size=n).astype(float),
    }
    if rng.random() < 0.1:
        data["V"][0, 0] = rng.choice([np.nan, np.inf])
    return text, {name: array for name, array in data.items() if f"{name}[" in text}


def logical_of(text: str, inputs: dict[str, Any]) -> LogicalProgram:
    program = ucle.einsum_program(text, inputs=inputs, rewrite="none")
    return syntax_to_logical(program.compiled.front.source)


def check(seed: int) -> Divided | None:
    """Compare a program with what it has become, on dense arrays."""
    text, inputs = drawn(seed)
    logical = logical_of(text, inputs)
    divided = divide_last(logical)
    if divided is not None:
        with np.errstate(all="ignore"):
            found, expected = meaning(divided.program, inputs), meaning(logical, inputs)
        for name in logical.outputs:
            rtol = 1e-5 if found[name].dtype == np.float32 else 1e-9
            message = f"seed {seed}\n{text}\n{inputs}"
            np.testing.assert_allclose(
                found[name], expected[name], rtol=rtol, atol=1e-12, err_msg=message
            )
    return divided


@pytest.mark.slow
def test_random_programs_are_worth_the_same() -> None:
    divided = [check(seed) for seed in range(120)]
    assert sum(x is not None for x in divided) > 40
    assert any(x is None for x in divided)


@pytest.mark.fuzz
@pytest.mark.skipif(not FUZZ, reason="UCLE_FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("start", range(0, FUZZ, PART))
def test_many_programs_are_worth_the_same(start: int) -> None:
    for seed in range(1000 + start, 1000 + min(start + PART, FUZZ)):
        check(seed)


@pytest.mark.parametrize("seed", range(0, 300, 15))
def test_random_programs_are_run(seed: int, routes: Routes) -> None:
    text, inputs = drawn(seed)
    with np.errstate(all="ignore"):
        expected = meaning(logical_of(text, inputs), inputs)
    program = ucle.einsum_program(text, inputs=inputs)
    for way in [None, *some_decompositions(program, seed, 2)]:
        tried = program if way is None else program.with_decomposition(way)
        for route, connection in routes.items():
            with tried.execute(connection) as result:
                for name, array in expected.items():
                    message = f"{route}, {way}\n{text}\n{inputs}"
                    found = result[name].to_numpy()
                    np.testing.assert_allclose(found, array, rtol=1e-5, atol=1e-7, err_msg=message)


EDGES = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [3.0, 0.5, 0.0]])
VALUES = np.arange(6.0).reshape(3, 2) - 2
MEAN = "Y[i,f] += E[i,j] * V[j,f] / sum[k](E[i,k])"


def lines(text: str, **inputs: Any) -> list[str]:
    """The lines about divisors in `explain`."""
    program = ucle.einsum_program(text, inputs=inputs)
    return [x for x in program.explain().splitlines() if x.startswith("divided")]


def test_means_along_edges_divide_for_each_node() -> None:
    program = ucle.einsum_program(MEAN, E=EDGES, V=VALUES)
    assert json.loads(program.explain("json"))["divided"] == ["Y by sum[k](E[i,k]), after its sum"]
    assert "Y_1[i,j,f]" not in program.explain()
    with np.errstate(all="ignore"):
        expected = EDGES @ VALUES / EDGES.sum(1)[:, None]
    np.testing.assert_allclose(program.execute()["Y"].to_numpy(), expected)


@pytest.mark.parametrize(
    "text",
    [
        "Y[i,f] += E[i,j] * V[j,f] / sum[k](E[k,i])",  # those of the other side
        "Y[i,f] += E[j,i] * V[j,f] / sum[k](E[i,k])",
        "Y[i,f] += square(E[i,j] - 1) * V[j,f] / sum[k](E[i,k])",  # other terms
        "Y[i,f] += E[i,j] * V[j,f] / sum[k](E[i,k] * V[k,f])",
        "Y[i,f] max= E[i,j] * V[j,f] / sum[k](E[i,k])",  # no sum
        "Y[j] += E[i,j] / sum[k](E[i,k])",  # over labels of the divisor
        "Y[i] += E[i,j] * V[j,f] / sum[k](E[k,k])",  # of a diagonal alone
        "D += E[k,k]; Y[i] += E[i,j] * V[j,f] / D",
    ],
)
def test_divisors_that_may_be_zero_stay_where_they_are(text: str) -> None:
    inputs = {"E": EDGES, "V": VALUES}
    assert not lines(text, **{name: x for name, x in inputs.items() if f"{name}[" in text})


@pytest.mark.parametrize(
    "changed",
    [
        {"E": -EDGES},
        {"E": EDGES - (EDGES == 0.5)},
        {"V": np.full((3, 2), np.inf)},
        {"V": np.full((3, 2), 1e308)},
        {"E": EDGES[:, :0], "V": VALUES[:0]},
    ],
)
def test_other_data_is_divided_as_it_is_written(changed: dict[str, Any]) -> None:
    """Terms that cancel, are not finite, or outgrow their type, and sums of nothing."""
    assert not lines(MEAN, **{"E": EDGES, "V": VALUES, **changed})


STEP = "P[i,j] = E[i,j] / max(sum[k](E[i,k]), 1); R[j] += 0.5 * P[i,j] * r[i]"
RANK = np.array([0.5, -2.0, 1.0])


def test_steps_along_edges_divide_for_each_node(routes: Routes) -> None:
    arrays = {"E": EDGES, "r": RANK}
    program = ucle.einsum_program(STEP, inputs=arrays)
    (line,) = json.loads(program.explain("json"))["divided"]
    assert line == "r[i] by max(sum[k](E[i,k]), 1), before the sum of R"
    assert "[i,j] =" not in program.explain()
    check_everywhere(Case(STEP, arrays, arrays, {}), routes, 3)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (STEP, {"outputs": ["P", "R"]}),
        (f"{STEP}; Q[i] += P[i,j]", {}),
        ("P[i,j] = E[i,j] / sum[k](E[i,k]); R[j] += P[i,j] * r[i]", {}),
        ("R[j] += E[i,j] / max(sum[k](E[i,k]), 1) * r[j]", {}),
        ("R[k] += E[i,j] / max(sum[k](E[i,k]), 1) * E[i,k] * r[k]", {}),
    ],
    ids=["output", "read twice", "zero", "other labels", "as many labels"],
)
def test_factors_that_are_not_divided(text: str, options: dict[str, Any]) -> None:
    program = ucle.einsum_program(text, E=EDGES, r=RANK, **options)
    assert not [x for x in json.loads(program.explain("json"))["divided"] if "before" in x]


def test_loops_divide_edges_before_the_first_step() -> None:
    """What a step carries on is divided in no step: the quotients are computed once."""
    text = STEP.replace("r[i]", "clip(r[i], -3, 3)")
    program = ucle.einsum_program(text, E=EDGES, r=RANK)
    assert "before the sum" in program.explain()
    with program.prepare(carry={"r": "R"}) as prepared:
        assert prepared._build.compiled.front.lowering.rewrite(Divided.key) is None
        steps = [prepared()["R"].to_numpy() for _ in range(3)]
    rank = RANK
    weights = EDGES / np.maximum(EDGES.sum(1), 1)[:, None]
    for step in steps:
        rank = 0.5 * np.clip(rank, -3, 3) @ weights
        np.testing.assert_allclose(step, rank)


def test_sums_of_diagonals_divide_what_lies_on_them(routes: Routes) -> None:
    """Elsewhere there may be entries though the diagonal has none, which are divided by 0."""
    F = np.zeros((2, 3, 3))
    F[0, 1, 1], F[1, 0, 1], F[1, 1, 0] = 2, 1, 3
    arrays = {"F": F, "c": np.array([1.0, -1.0, 1.0])}
    for labels in "i,j,j", "i,j,l":
        text = f"Y[i] += F[{labels}] * c[j] / sum[k](F[i,k,k])"
        check_everywhere(Case(text, arrays, arrays, {}), routes, 3, 3)


def test_nothing_is_divided_last_where_nothing_is_rewritten() -> None:
    program = ucle.einsum_program(MEAN, E=EDGES, V=VALUES, rewrite="none")
    assert json.loads(program.explain("json"))["divided"] == []


def test_data_that_changes_is_looked_at_again(native: Any) -> None:
    """Values that were never negative may be so after the next load."""
    native.sql("create or replace table divided_edges (i integer, j integer, v double)")
    native.sql("insert into divided_edges values (0, 1, 2), (0, 2, 1), (2, 0, 3)")
    program = ucle.einsum_program(MEAN, E="divided_edges", V=VALUES, database=native)
    assert json.loads(program.explain("json"))["divided"]
    native.sql("insert into divided_edges values (1, 0, 1), (1, 1, -1)")
    edges = np.array([[0, 2, 1], [1, -1, 0], [3, 0, 0.0]])
    with np.errstate(all="ignore"):
        terms = edges[:, :, None] * VALUES / edges.sum(1)[:, None, None]
        expected = terms.sum(1)
    with program.execute(native) as result:
        np.testing.assert_allclose(result["Y"].to_numpy(), expected)
    native.sql("drop table divided_edges")
