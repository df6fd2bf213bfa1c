"""Lines that refer to one row of a table each are joined with themselves once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ucle
from ucle.lowering.rewrites import Rewriter
from ucle.lowering.syntax_to_logical import syntax_to_logical
from ucle.options import Optimisations
from ucle.testing.check_matrix import Routes, check_everywhere, recompiled
from ucle.testing.generate import Case

ALWAYS = Optimisations(rewrite_gain=-math.inf, rewrite_effort=math.inf, association_work=math.inf)
"""The form of the fewest tuples is taken, however small the program is."""

LINES, ROWS, FEATURES = 7, 4, 3
RNG = np.random.default_rng(12)


def references(*sizes: int, values: Any = 1.0, lines: int = LINES) -> np.ndarray:
    """A tensor in which each line but the last refers to one coordinate of each other axis."""
    tensor = np.zeros((lines, *sizes))
    at = (RNG.integers(0, size, lines - 1) for size in sizes)
    tensor[(np.arange(lines - 1), *at)] = values
    return tensor


WEIGHTS = np.array([0.5, -2.0, 3.0, 1.0, -1.0, 2.0])
ARRAYS = {
    "L": references(ROWS),
    "M": references(ROWS, ROWS),
    "W": references(ROWS, values=WEIGHTS),
    "K": references(ROWS).T,
    "T": np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]] * 3),
    "S": RNG.integers(-3, 4, (ROWS, FEATURES)).astype(float),
    "P": RNG.integers(-3, 4, (ROWS, FEATURES)).astype(float),
    "I": np.where(np.eye(ROWS, FEATURES) > 0, np.inf, 1.0),
    "v": RNG.integers(1, 4, LINES).astype(float),
}
FACTS = "LMWKT"


def case_of(text: str, *, sparse: bool = True) -> Case:
    arrays = {name: x for name, x in ARRAYS.items() if f"{name}[" in text}
    inputs = {
        name: sp.coo_array(x) if sparse and name in FACTS and x.ndim == 2 else x
        for name, x in arrays.items()
    }
    return Case(text, arrays, inputs, {})


def normal_form(text: str, *, sparse: bool = True) -> str:
    """The right side of the last statement, multiplied out; empty if it is no sum of products."""
    program = ucle.einsum_program(text, inputs=case_of(text, sparse=sparse).inputs, rewrite="none")
    logical = syntax_to_logical(program.compiled.front.source)
    form = Rewriter(logical, algebraic=True).normal_form()
    last = [x for root, x in form.roots.items() if root.statement == logical.outputs[-1]]
    return str(last[0]) if last else ""


ONCE = {
    # a covariance of features that are looked up
    "F[i,f] += L[i,s] * S[s,f]; Y[f,g] += F[i,f] * F[i,g]": "sum[s,i](L[i,s] * S[s,f] * S[s,g])",
    # the same in one product, and of two tables
    "Y[f,g] += L[i,s] * S[s,f] * L[i,t] * P[t,g]": "sum[i,s](L[i,s] * S[s,f] * P[s,g])",
    # numbers that are not 1
    "Y[f,g] += W[i,s] * S[s,f] * W[i,t] * P[t,g]": "sum[i,s](W[i,s] * S[s,f] * W[i,s] * P[s,g])",
    "Y[i] += abs(W[i,s]) * S[s,f] * abs(W[i,t]) * P[t,f]": (
        "sum[s,f](abs(W[i,s]) * S[s,f] * abs(W[i,s]) * P[s,f])"
    ),
    # other functions of the same entry
    "Y[f,g] += W[i,s] * S[s,f] * abs(W[i,t]) * P[t,g]": (
        "sum[i,s](W[i,s] * S[s,f] * abs(W[i,s]) * P[s,g])"
    ),
    # three times, and a line that is kept
    "Y[i] += L[i,s] * S[s,f] * L[i,t] * P[t,f] * L[i,u] * S[u,f]": (
        "sum[s,f](L[i,s] * S[s,f] * P[s,f] * S[s,f])"
    ),
    # a label that is kept stands for one that is summed
    "Y[s,f] += L[i,s] * L[i,t] * S[t,f]": "sum[i](L[i,s] * S[s,f])",
    "Y[t,f] += L[i,s] * L[i,t] * S[s,f]": "sum[i](L[i,t] * S[t,f])",
    # rows of two tables, by lines that are themselves looked up
    "Y[f,g] += M[i,s,t] * S[s,f] * M[i,u,w] * P[w,g]": "sum[i,s,t](M[i,s,t] * S[s,f] * P[t,g])",
    "Y[f,g] += M[i,s,t] * M[k,u,t] * S[s,f] * M[i,a,b] * M[k,c,b] * S[c,g]": (
        "sum[i,s,t,k,u](M[i,s,t] * M[k,u,t] * S[s,f] * S[u,g])"
    ),
    # lines along the second axis
    "Y[f,g] += K[s,i] * S[s,f] * K[t,i] * P[t,g]": "sum[s,i](K[s,i] * S[s,f] * P[s,g])",
    # terms of a square
    "F[i,f] = sum[s](L[i,s] * S[s,f]) + v[i]; Y[f] += square(F[i,f])": (
        "sum[s,i](L[i,s] * S[s,f] * S[s,f]) + 2 * sum[s_2,i](L[i,s_2] * S[s_2,f] * v[i])"
        " + sum[i](v[i] * v[i])"
    ),
}

AS_WRITTEN = (
    # more than one entry for each line
    "Y[f,g] += T[i,s] * S[s,f] * T[i,t] * P[t,g]",
    # both labels are kept
    "Y[s,t] += L[i,s] * L[i,t] * v[i]",
    # lines that are different
    "Y[f,g] += L[i,s] * S[s,f] * L[k,t] * P[t,g]",
    # what no line decides
    "Y[i,k] += L[i,s] * L[k,s] * v[i]",
    # entries that are not stored are 1
    "Y[f,g] += exp(W[i,s]) * S[s,f] * exp(W[i,t]) * P[t,g]",
    "Y[f,g] += W[i,s] * S[s,f] * exp(W[i,t]) * P[t,g]",
    # 0 times infinity
    "Y[f,g] += L[i,s] * I[s,f] * L[i,t] * P[t,g]",
    "Y[f,g] += L[i,s] * S[s,f] * L[i,t] * I[t,g]",
)


@pytest.mark.sample(2)
@pytest.mark.parametrize("sparse", [True, False])
def test_entries_that_are_joined_once(sparse: bool) -> None:
    assert {text: normal_form(text, sparse=sparse) for text in ONCE} == ONCE


def test_entries_that_are_not() -> None:
    assert {text: normal_form(text) for text in AS_WRITTEN} == dict.fromkeys(AS_WRITTEN, "")


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", [*ONCE, *AS_WRITTEN])
def test_in_every_plan(text: str, routes: Routes) -> None:
    for sparse, optimisations in (True, ALWAYS), (False, ALWAYS), (True, None):
        case = case_of(text, sparse=sparse)
        check_everywhere(case, routes, 3, 3, optimisations=optimisations)


# ---- Other data ----


def drawn(seed: int) -> Case:
    """A product of random tables of lines and of what they refer to."""
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(1, 3))
    count = int(rng.integers(2, 4)) if axes == 1 else 2
    facts = np.zeros((LINES, *[ROWS] * axes))
    rows = rng.integers(0, ROWS, (axes, LINES))
    facts[(np.arange(LINES), *rows)] = rng.choice([-2.0, 0.0, 1.0, 3.0], LINES)
    if rng.random() < 0.3:  # a line that refers to two rows
        facts[(0, *[0] * axes)], facts[(0, *[1] * axes)] = 2.0, 1.0
    arrays = {"L": facts, "v": rng.integers(-2, 3, LINES).astype(float)}
    arrays |= {x: rng.integers(-3, 4, (ROWS, FEATURES)).astype(float) for x in "SP"}
    labels = iter("abcdefgh")
    factors, looked_up = [], list[str]()
    for _ in range(count):
        own = [next(labels) for _ in range(axes)]
        looked_up += own
        line = str(rng.choice(["i", "i", "i", "k"]))
        factors.append(rng.choice(["L[{}]", "L[{}]", "abs(L[{}])"]).format(",".join([line, *own])))
    free = iter("pqrstuwx")
    factors += [f"{rng.choice(['S', 'P'])}[{x},{next(free)}]" for x in looked_up[::axes]]
    factors += ["v[i]"] if rng.random() < 0.3 else []
    text = " * ".join(rng.permutation(factors))
    names = [x for x in "ikabcdpqr" if f"[{x}," in text or f",{x}" in text]
    kept = rng.choice(names, min(2, len(names)), replace=False)
    used = {name: x for name, x in arrays.items() if f"{name}[" in text}
    inputs = dict(used)
    if axes == 1 and rng.random() < 0.5:
        inputs["L"] = sp.coo_array(facts)
    return Case(f"Y[{','.join(kept)}] += {text}", used, inputs, {})


@pytest.mark.parametrize("seed", range(30))
def test_random_products(seed: int, routes: Routes) -> None:
    check_everywhere(drawn(seed), routes, seed, 2, optimisations=ALWAYS)


STAR = "F[i,f] += L[i,s] * S[s,f]; Y[f,g] += F[i,f] * F[i,g]"


@pytest.fixture
def star(fresh: Any) -> ucle.EinsumProgram:
    """A program that joins lines once, over a table of them."""
    fresh.execute("CREATE TABLE L AS SELECT i, i * i % 4 AS s FROM range(9) t(i)")
    program = ucle.einsum_program(STAR, L="L", S=ARRAYS["S"], database=fresh)
    program = recompiled(program, ALWAYS)
    assert joins_once(program)
    return program


def joins_once(program: ucle.EinsumProgram) -> bool:
    return program.explain("text").count("L[i,s]") == 1


def expected(connection: Any) -> np.ndarray:
    """The covariance of the lines that a table has now."""
    i, s = connection.execute("SELECT i, s FROM L").fetchnumpy().values()
    lines = np.zeros((int(i.max()) + 1, ROWS))
    lines[i, s] = 1
    features = lines @ ARRAYS["S"]
    return features.T @ features


def test_lines_that_decide_no_more(star: ucle.EinsumProgram, fresh: Any) -> None:
    """A line that refers to two rows is joined with itself, as it is written."""
    for change in (
        "INSERT INTO L VALUES (9, 2)",
        "INSERT INTO L VALUES (3, 0)",
        "INSERT INTO L VALUES (3, 2)",
        "DELETE FROM L WHERE i = 3",
        "UPDATE L SET i = 5 WHERE i = 6",
    ):
        fresh.execute(change)
        with star.execute(fresh) as result:
            np.testing.assert_allclose(result["Y"].to_numpy(), expected(fresh), err_msg=change)


def test_lines_that_decide_again_are_joined_once_without_a_new_search(
    star: ucle.EinsumProgram, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ucle.pipeline.resize.compile_sized", None)
    for change in "INSERT INTO L VALUES (9, 2)", "DELETE FROM L WHERE i = 3":
        fresh.execute(change)
        with star.execute(fresh) as result:
            np.testing.assert_allclose(result["Y"].to_numpy(), expected(fresh), err_msg=change)


@pytest.mark.sample(3)
@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (i)", ", UNIQUE (i, s)"])
def test_views_of_lines(key: str, fresh: Any) -> None:
    """Only a constraint says what later rows will be: other views join lines as it is written."""
    fresh.execute(f"CREATE TABLE L (i BIGINT, s BIGINT{key})")
    fresh.execute("INSERT INTO L SELECT i, i * i % 4 FROM range(9) t(i)")
    fresh.execute("CREATE TABLE S (s BIGINT, f BIGINT, v DOUBLE)")
    entries = [(*at, float(x)) for at, x in np.ndenumerate(ARRAYS["S"])]
    fresh.executemany("INSERT INTO S VALUES (?, ?, ?)", entries)
    options: dict[str, Any] = {"database": fresh, "decomposition": "relational"}
    program = recompiled(ucle.einsum_program(STAR, L="L", S="S", **options), ALWAYS)
    assert joins_once(program)
    program.create_views()
    (view,) = fresh.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'Y'").fetchone()
    assert (".i)" in view) == ("PRIMARY" not in key), view
    rows = [(9, 1), (10, 2)] if "PRIMARY" in key else [(3, 0), (3, 2), (10, 2)]
    fresh.executemany("INSERT INTO L VALUES (?, ?)", rows)
    f, g, v = fresh.execute("SELECT f, g, val FROM Y").fetchnumpy().values()
    found = np.zeros((FEATURES, FEATURES))
    found[f, g] = v
    np.testing.assert_allclose(found, expected(fresh))
