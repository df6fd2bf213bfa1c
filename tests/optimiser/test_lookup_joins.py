"""Expressions that are computed at the tuples of a sparse factor: what they give, and where."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ucle
from ucle.options import Optimisations
from ucle.plan.relation_nodes import LookupJoin
from ucle.plan.relation_tree import nodes
from ucle.testing.check_matrix import Routes, recompiled
from ucle.testing.partitions import run_on_partitions

ALWAYS = Optimisations(lookups=-math.inf)
"""A look-up join is taken wherever there can be one."""

NEVER = Optimisations(lookups=None)

SIZES = {"i": 400, "s": 30, "p": 50, "h": 3}

LINES = 1500


def _inputs(seed: int) -> dict[str, Any]:
    """A table of lines, each with a key of two tables, and features of these; some have none."""
    rng = np.random.default_rng(seed)
    keys = {label: rng.integers(0, SIZES[label], LINES) for label in "isp"}
    places = np.unique(np.stack(list(keys.values())), axis=1)
    lines = np.zeros([SIZES[label] for label in "isp"])
    lines[tuple(places)] = rng.integers(1, 4, places.shape[1])
    vectors = {
        name: np.where(rng.random(SIZES[label]) < 0.7, rng.integers(-3, 4, SIZES[label]), 0.0)
        for name, label in zip("abd", "spi", strict=True)
    }
    tables = {
        name: np.where(rng.random((SIZES[label], SIZES["h"])) < 0.6, rng.random(), 0.0)
        for name, label in zip("EF", "sp", strict=True)
    }
    return {"L": lines, **vectors, **tables}


TERMS = (
    "a[s]",
    "b[p]",
    "d[i]",
    "abs(a[s] - b[p])",
    "a[s] * b[p]",
    "relu(b[p] + 1)",
    "max(a[s], d[i])",
)


def _random_program(seed: int) -> str:
    rng = np.random.default_rng(100 + seed)
    terms = rng.permutation(TERMS)[: rng.integers(2, 5)]
    signs = rng.choice([" + ", " - "], len(terms))
    expression = "".join(f"{sign}{term}" for sign, term in zip(signs, terms, strict=True))[3:]
    if rng.random() < 0.5:
        expression = f"sigmoid({expression})"
    target, reduction = (("y[i]", "+="), ("y[]", "+="), ("y[s,p]", "+="), ("y[i,s,p]", "="))[
        rng.integers(4)
    ]
    factor = rng.choice(["L[i,s,p]", "sqrt(L[i,s,p])", "float64(L[i,s,p] > 1)"])
    return f"{target} {reduction} {factor} * ({expression})"


def _reference(text: str, arrays: dict[str, Any]) -> Any:
    """The same with NumPy, by broadcasting over i, s and p."""
    L, a, b, d = (arrays[name] for name in "Labd")
    names = {
        "L[i,s,p]": L,
        "a[s]": a[None, :, None],
        "b[p]": b[None, None, :],
        "d[i]": d[:, None, None],
    }
    target, _, expression = text.partition("=")
    for number, name in enumerate(names):
        expression = expression.replace(name, f"v{number}")
    functions = {
        "abs": np.abs,
        "relu": lambda x: np.maximum(x, 0),
        "max": np.maximum,
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "sqrt": np.sqrt,
        "float64": np.float64,
    }
    values = {f"v{number}": value for number, value in enumerate(names.values())}
    whole = np.broadcast_to(eval(expression, {**functions, **values}), L.shape)
    kept = target.partition("[")[2].partition("]")[0].split(",")
    return whole.sum(axis=tuple(n for n, label in enumerate("isp") if label not in kept))


def _compile(text: str, arrays: dict[str, Any], connection: Any) -> ucle.EinsumProgram:
    inputs = {name: x for name, x in arrays.items() if f"{name}[" in text}
    inputs["L"] = sp.coo_array(arrays["L"])
    return ucle.einsum_program(text, database=connection, inputs=inputs)


def _joins(program: ucle.EinsumProgram) -> int:
    """The look-up joins of the plan that runs."""
    steps = program.compiled.plan.steps
    parts = (part for step in steps for part in (*step.views, step))
    return sum(isinstance(node, LookupJoin) for part in parts for node in nodes(part.relation))


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(12))
def test_random_expressions_give_what_numpy_gives(seed: int, routes: Routes) -> None:
    arrays, text = _inputs(seed), _random_program(seed)
    program = recompiled(_compile(text, arrays, routes["native"]), ALWAYS)
    for name, connection in routes.items():
        with program.execute(connection) as result:
            found = result["y"].to_numpy()
        np.testing.assert_allclose(
            found, _reference(text, arrays), rtol=1e-12, atol=1e-12, err_msg=f"{name}: {text}"
        )


def test_a_star_is_one_join(routes: Routes) -> None:
    arrays = _inputs(1)
    text = "y[i] += L[i,s,p] * (a[s] + b[p] + d[i])"
    program = recompiled(_compile(text, arrays, routes["native"]), ALWAYS)
    assert _joins(program) == 1
    assert "at the tuples of L" in program.explain()
    assert "BOOL_OR" not in program.to_sql()
    never = recompiled(program, NEVER)
    assert _joins(never) == 0
    with program.execute() as one, never.execute() as other:
        np.testing.assert_array_equal(one["y"].to_numpy(), other["y"].to_numpy())


def test_arrays_are_looked_up(routes: Routes) -> None:
    arrays = _inputs(2)
    text = "y[i,h] += L[i,s,p] * (E[s,h] + F[p,h])"
    decomposed = _compile(text, arrays, routes["native"])
    program = recompiled(decomposed, ALWAYS)
    expected = np.einsum("isp,sh->ih", arrays["L"], arrays["E"]) + np.einsum(
        "isp,ph->ih", arrays["L"], arrays["F"]
    )
    for connection in routes.values():
        with program.execute(connection) as result:
            np.testing.assert_allclose(result["y"].to_numpy(), expected, rtol=1e-12)


def test_other_aggregations_count_what_is_not_stored(routes: Routes) -> None:
    arrays = _inputs(3)
    L, a, b = (arrays[name] for name in "Lab")
    product = L * (a[None, :, None] - b[None, None, :])
    for operation, expected in (
        ("min", product.min(axis=(1, 2))),
        ("max", product.max(axis=(1, 2))),
        ("mean", product.mean(axis=(1, 2))),
    ):
        text = f"y[i] = {operation}[s,p](L[i,s,p] * (a[s] - b[p]))"
        program = recompiled(_compile(text, arrays, routes["native"]), ALWAYS)
        with program.execute() as result:
            np.testing.assert_allclose(result["y"].to_numpy(), expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_values_that_are_not_finite_stay_as_numpy_has_them(routes: Routes) -> None:
    arrays = _inputs(4)
    arrays["a"][3], arrays["b"][5] = math.inf, math.nan
    text = "y[i,s,p] = L[i,s,p] * (a[s] + b[p])"
    L, a, b = (arrays[name] for name in "Lab")
    with np.errstate(invalid="ignore"):
        expected = L * (a[None, :, None] + b[None, None, :])
    program = recompiled(_compile(text, arrays, routes["native"]), ALWAYS)
    with program.execute() as result:
        np.testing.assert_array_equal(result["y"].to_numpy(), expected)


def test_small_tables_are_made_before_they_are_looked_up(routes: Routes) -> None:
    arrays = _inputs(5)
    text = "y[i] += L[i,s,p] * (exp(a[s] * 2) + b[p])"
    program = recompiled(_compile(text, arrays, routes["native"]), ALWAYS)
    (plan,) = program.compiled.decomposed.lookups.values()
    assert len(plan.operands) == 3
    assert not any(step.maps for operation in plan.operations for step in (operation,))


def test_an_expression_of_the_factor_alone_is_one_scan(routes: Routes) -> None:
    arrays = _inputs(7)
    text = "y[s] += L[i,s,p] * max(2 * L[i,s,p], L[i,s,p] * L[i,s,p])"
    program = recompiled(_compile(text, arrays, routes["native"]), ALWAYS)
    L = arrays["L"]
    for connection in routes.values():
        with program.execute(connection) as result:
            np.testing.assert_array_equal(
                result["y"].to_numpy(), (L * np.maximum(2 * L, L * L)).sum(axis=(0, 2))
            )


def test_partitions_look_up_the_same(routes: Routes) -> None:
    arrays = _inputs(6)
    text = "y[i] += L[i,s,p] * (a[s] + b[p])"
    program = recompiled(_compile(text, arrays, routes["native"]), ALWAYS)
    assert _joins(program) == 1
    for seed in range(4):
        with run_on_partitions(program, routes["native"], 3, seed) as result:
            np.testing.assert_allclose(
                result["y"].to_numpy(), _reference(text, arrays), rtol=1e-12, atol=1e-12
            )
