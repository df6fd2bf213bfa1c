"""Programs as a person writes them, as they are rewritten, and as an expert would write them.

The first three have masks that come last, the next four are those of SPORES (section 4.2), the last
three are the gradients and the covariance over a join of Galley (section 7.1). All have the sizes
of the first table of the design, or similar ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse

from benchmarks.by_hand import REACH, Case, table
from benchmarks.spores import factorisations, sparse

RNG = np.random.default_rng(0)


def cases() -> Iterator[Case]:
    """Yield the programs of the table."""
    yield from _masks()
    yield from factorisations()
    yield from _joins()


def _masks() -> Iterator[Case]:
    n = 4000
    edges = sparse(n, n, 40_000)
    rank = np.full(n, 1 / n)
    step = "P[i,j] = {}; R[j] += 0.85 * P[i,j] * r[i]"
    yield Case(
        "one step of PageRank",
        step.format("A[i,j] / max(sum[k](A[i,k]), 1)"),
        step.format("A[i,j] * (1 / max(sum[k](A[i,k]), 1))"),
        {"A": edges, "r": rank},
    )
    x, y = RNG.random(n), RNG.random(n)
    yield Case(
        "distances along edges",
        "E += A[i,j] * abs(x[i] - y[j])",
        "D[i,j] = when(A[i,j], x[i]) - when(A[i,j], y[j]); E += A[i,j] * abs(D[i,j])",
        {"A": edges, "x": x, "y": y},
    )
    U, V = RNG.random((n, 10)), RNG.random((n, 10))
    yield Case(
        "masked loss",
        "E += A[i,j] * sigmoid(sum[f](U[i,f] * V[j,f]))",
        "D[i,j] = (A[i,j] != 0) * U[i,f] * V[j,f]; E += A[i,j] * sigmoid(D[i,j])",
        {"A": edges, "U": U, "V": V},
    )


def _joins() -> Iterator[Case]:
    facts, rows, own, joined = 200_000, 2_000, 20, 30
    keys = RNG.integers(0, rows, facts)
    key = scipy.sparse.coo_matrix((np.ones(facts), (np.arange(facts), keys)), (facts, rows))
    inputs = {"K": key, "R": RNG.random((rows, joined)), "S": RNG.random((facts, own))}
    weights = {"y": RNG.random(facts), "w": RNG.random(own), "v": RNG.random(joined)}
    for name, link in (("linear", "{}"), ("logistic", "sigmoid({})")):
        own_part, joined_part = "sum[f](S[s,f] * w[f])", "sum[g](F[s,g] * v[g])"
        yield Case(
            f"{name} regression over a join",
            "F[s,g] += K[s,d] * R[d,g];"
            f"e[s] = {link.format(f'{own_part} + {joined_part}')} - y[s];"
            "L[f] += S[s,f] * e[s]; M[g] += F[s,g] * e[s]",
            "h[d] += R[d,g] * v[g];"
            f"e[s] = {link.format(f'{own_part} + sum[d](K[s,d] * h[d])')} - y[s];"
            "L[f] += S[s,f] * e[s]; q[d] += K[s,d] * e[s]; M[g] += q[d] * R[d,g]",
            {**inputs, **weights},
        )
    yield Case(
        "covariance over a join",
        "F[s,g] += K[s,d] * R[d,g]; L[f,h] += S[s,f] * S[s,h];"
        "M[f,g] += S[s,f] * F[s,g]; N[g,h] += F[s,g] * F[s,h]",
        "L[f,h] += S[s,f] * S[s,h]; P[d,f] += K[s,d] * S[s,f]; M[f,g] += P[d,f] * R[d,g];"
        "c[d] += K[s,d]; N[g,h] += c[d] * R[d,g] * R[d,h]",
        inputs,
    )


TABLE = table(
    "rewriting",
    "Programs as written, as rewritten, and by hand",
    "Seconds of one execution: of the program as written (in the order of the text), as\n"
    "ucle rewrites it, and as an expert would write it (`by hand`). `compile` is the time\n"
    f"to compile the rewritten program, in milliseconds. Goal: at most {REACH:g} times the\n"
    "time of the program by hand.",
    cases,
    in_memory=False,
)
