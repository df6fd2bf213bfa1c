"""Learning over joins: Galley's section 7.1, on generated tables.

The features of a line are those of the rows that it refers to in other tables: of a star of four
tables, and of pairs of lines that refer to the same part. Kernels of sparse matrices (section 7.2)
are in `benchmarks.products`, counts of subgraphs (7.3) in `benchmarks.subgraphs`, breadth-first
searches (7.4) in `benchmarks.frontiers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.by_hand import REACH, Case, Relation, table

LINES = 50_000
"""Rows of the table in the middle of the star."""
HIDDEN = 16
"""Neurons of the layer."""


def squared(matrix: Any) -> Any:
    """Return the products of all pairs of columns."""
    return matrix.T @ matrix


@dataclass(frozen=True)
class Dimension:
    """A table that is referred to: its rows, numeric columns, and values of its category."""

    rows: int
    numeric: int
    values: int

    @property
    def width(self) -> int:
        """Number of features, with one for each value of the category."""
        return self.numeric + self.values


STAR = {
    "S": Dimension(500, 2, 25),
    "P": Dimension(5000, 3, 40),
    "O": Dimension(20_000, 2, 5),
    "C": Dimension(3000, 2, 60),
}
"""Suppliers, parts, orders, customers: 139 features together, as in the paper."""

PAIRED_LINES, PARTS = 2000, 200
"""Rows that are joined with those of the same part: ten each, 20,000 pairs."""


def features(tables: Mapping[str, Dimension], rng: np.random.Generator) -> dict[str, Any]:
    """Return the features of each table, in columns that no other table has."""
    width = sum(each.width for each in tables.values())
    made, before = {}, 0
    for name, each in tables.items():
        rows = np.arange(each.rows)
        numbers = rng.random((each.rows, each.numeric))
        category = before + each.numeric + rng.integers(0, each.values, each.rows)
        i = np.concatenate([np.repeat(rows, each.numeric), rows])
        j = np.concatenate([np.tile(before + np.arange(each.numeric), each.rows), category])
        values = np.concatenate([numbers.ravel(), np.ones(each.rows)])
        made[name] = sp.csr_array((values, (i, j)), shape=(each.rows, width))
        before += each.width
    return made


def _star(rng: np.random.Generator) -> tuple[dict[str, Any], Any]:
    """Return the inputs, and the joined features as a function."""
    dimensions = features(STAR, rng)
    keys = {"i": np.arange(LINES)}
    keys |= {name.lower(): rng.integers(0, each.rows, LINES) for name, each in STAR.items()}
    bounds = LINES, *(each.rows for each in STAR.values())

    def joined() -> Any:
        return sum(each[keys[name.lower()]] for name, each in dimensions.items())

    return {**dimensions, "L": Relation(keys, bounds)}, joined


WIDE = "X[i,j] = sum[s,p,o,c](L[i,s,p,o,c] * (S[s,j] + P[p,j] + O[o,j] + C[c,j]))"
"""Galley's features of a star: each line refers to a row of each table."""
IN_ARRAYS = "the search counts every entry as a tuple, even if it is in an array"
ADDED = "hS[s{0}] + hP[p{0}] + hO[o{0}] + hC[c{0}]"


def _each(form: str) -> str:
    """Write a statement for each table of the star, with `T` for its name and `t` for its label."""
    return "; ".join(form.replace("T", name).replace("t", name.lower()) for name in STAR)


def star() -> Iterator[Case]:
    """Yield models over the star."""
    rng = np.random.default_rng(7)
    inputs, joined = _star(rng)
    width = sum(each.width for each in STAR.values())
    theta, first = rng.normal(size=width) / 10, rng.normal(size=(width, HIDDEN)) / 10
    second = rng.normal(size=HIDDEN)
    inner = _each("hT[t] += T[t,j] * v[j]") + "; z[i] += L[i,s,p,o,c] * (" + ADDED.format("") + ")"
    yield Case(
        "star, linear regression",
        f"{WIDE}; y[i] += X[i,j] * v[j]",
        f"{inner}; y[i] = z[i]",
        {**inputs, "v": theta},
        outputs=("y",),
        in_memory=lambda: joined() @ theta,
    )
    yield Case(
        "star, logistic regression",
        f"{WIDE}; y[i] = sigmoid(sum[j](X[i,j] * v[j]))",
        f"{inner}; y[i] = sigmoid(z[i])",
        {**inputs, "v": theta},
        outputs=("y",),
        in_memory=lambda: 1 / (1 + np.exp(-(joined() @ theta))),
    )
    yield Case(
        "star, neural network",
        f"{WIDE}; H[i,h] = relu(sum[j](X[i,j] * W[j,h])); y[i] += H[i,h] * w[h]",
        _each("hT[t,h] += T[t,j] * W[j,h]")
        + f"; z[i,h] += L[i,s,p,o,c] * ({ADDED.format(',h')})"
        + "; H[i,h] = relu(z[i,h]); y[i] += H[i,h] * w[h]",
        {**inputs, "W": first, "w": second},
        outputs=("y",),
        in_memory=lambda: np.maximum(joined() @ first, 0) @ second,
        cause=IN_ARRAYS,
    )
    pairs = list(combinations(STAR, 2))
    own = _each("cT[t] += L[i,s,p,o,c]; MT[j,k] += T[t,j] * cT[t] * T[t,k]")
    shared = "; ".join(
        f"N{a}{b}[{a.lower()},{b.lower()}] += L[i,s,p,o,c];"
        f"G{a}{b}[{a.lower()},k] += N{a}{b}[{a.lower()},{b.lower()}] * {b}[{b.lower()},k];"
        f"M{a}{b}[j,k] += {a}[{a.lower()},j] * G{a}{b}[{a.lower()},k]"
        for a, b in pairs
    )
    terms = [f"M{name}[j,k]" for name in STAR]
    terms += [f"M{a}{b}[j,k] + M{a}{b}[k,j]" for a, b in pairs]
    yield Case(
        "star, covariance",
        f"{WIDE}; y[j,k] += X[i,j] * X[i,k]",
        f"{own}; {shared}; y[j,k] = {' + '.join(terms)}",
        inputs,
        outputs=("y",),
        in_memory=lambda: squared(joined()),
    )


PAIRED = "X[i,k,j] = sum[s,u,p](L[i,s,p] * L[k,u,p] * (S[s,j] + S[u,j] + P[p,j]))"
"""Galley's features of a self-join: of two lines of the same part."""


def pairs() -> Iterator[Case]:
    """Yield models over the self-join."""
    rng = np.random.default_rng(8)
    tables = {"S": STAR["S"], "P": Dimension(PARTS, 3, 40)}
    dimensions = features(tables, rng)
    s, p = (rng.integers(0, each.rows, PAIRED_LINES) for each in tables.values())
    bounds = PAIRED_LINES, *(each.rows for each in tables.values())
    inputs = {**dimensions, "L": Relation({"i": np.arange(PAIRED_LINES), "s": s, "p": p}, bounds)}
    width = dimensions["S"].shape[1]
    theta, first = rng.normal(size=width) / 10, rng.normal(size=(width, HIDDEN)) / 10
    second = rng.normal(size=HIDDEN)

    def joined() -> tuple[Any, Any]:
        line = sp.csr_array((np.ones(len(p)), (np.arange(len(p)), p)), shape=(len(p), PARTS))
        ends = (line @ line.T).tocoo().coords
        S, P = dimensions["S"], dimensions["P"]
        return ends, S[s[ends[0]]] + S[s[ends[1]]] + P[p[ends[0]]]

    def over_pairs(model: Any) -> Any:
        ends, found = joined()
        return sp.csr_array((model(found), ends), shape=(PAIRED_LINES, PAIRED_LINES))

    yield Case(
        "self-join, linear regression",
        f"{PAIRED}; y[i,k] += X[i,k,j] * v[j]",
        "a[s] += S[s,j] * v[j]; b[p] += P[p,j] * v[j]; A[i,p] += L[i,s,p] * a[s];"
        "B[i,p] += L[i,s,p]; C[i,p] = B[i,p] * b[p];"
        "y[i,k] = sum[p](A[i,p] * B[k,p]) + sum[p](B[i,p] * A[k,p]) + sum[p](C[i,p] * B[k,p])",
        {**inputs, "v": theta},
        outputs=("y",),
        in_memory=lambda: over_pairs(lambda X: X @ theta),
    )
    yield Case(
        "self-join, neural network",
        f"{PAIRED}; y[i,k] = sum[h](relu(sum[j](X[i,k,j] * W[j,h])) * w[h])",
        "a[s,h] += S[s,j] * W[j,h]; b[p,h] += P[p,j] * W[j,h];"
        "A[i,p,h] += L[i,s,p] * a[s,h]; B[i,p] += L[i,s,p]; C[i,p,h] = A[i,p,h] + B[i,p] * b[p,h];"
        "z[i,k,h] = sum[p](C[i,p,h] * B[k,p]) + sum[p](B[i,p] * A[k,p,h]);"
        "y[i,k] = sum[h](relu(z[i,k,h]) * w[h])",
        {**inputs, "W": first, "w": second},
        outputs=("y",),
        in_memory=lambda: over_pairs(lambda X: np.maximum(X @ first, 0) @ second),
        cause=IN_ARRAYS,
    )
    yield Case(
        "self-join, covariance",
        f"{PAIRED}; y[j,l] += X[i,k,j] * X[i,k,l]",
        "c[p] += L[i,s,p]; N[s,p] += L[i,s,p]; A[p,j] += N[s,p] * S[s,j]; m[s] += N[s,p] * c[p];"
        "D[j,l] += S[s,j] * m[s] * S[s,l]; E[j,l] += A[p,j] * A[p,l];"
        "G[j,l] += c[p] * A[p,j] * P[p,l]; Q[j,l] += square(c[p]) * P[p,j] * P[p,l];"
        "y[j,l] = 2 * D[j,l] + 2 * E[j,l] + 2 * G[j,l] + 2 * G[l,j] + Q[j,l]",
        inputs,
        outputs=("y",),
        in_memory=lambda: squared(joined()[1]),
    )


def joins() -> Iterator[Case]:
    """Yield all models over joins."""
    yield from star()
    yield from pairs()


JOINS = table(
    "joins",
    "Learning over joins",
    "Programs of Galley's section 7.1, on generated data: a table of lines that refers to\n"
    "four other tables (a star), and pairs of lines with the same part. Seconds of one\n"
    "execution: of the program as written (in the order of the text), as ucle rewrites it,\n"
    "as an expert would write it for ucle (`by hand`), and with SciPy, which joins in\n"
    "memory. `compile` is the time to compile the rewritten program, in milliseconds. Goal:\n"
    f"at most {REACH:g} times the time of the program by hand.",
    joins,
    in_memory=True,
)
