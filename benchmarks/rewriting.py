"""Programs as a person writes them, as they are rewritten, and as an expert would write them.

The first three have masks that come last, the next four are those of SPORES (section 4.2), the last
three the gradients and the covariance over a join of Galley (section 7.1), all at the sizes of the
first table of the design, or near them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio

REACH = 1.2
"""Times the program of an expert's that the rewritten one may take."""

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """A program, the same by an expert, and its inputs; `law` is the `rewrite` that it asks for."""

    name: str
    text: str
    by_hand: str
    inputs: Mapping[str, Any]
    law: str = "safe"


def cases() -> Iterator[Case]:
    """The programs of the table."""
    yield from _masks()
    yield from _factorisations()
    yield from _joins()


def _sparse(rows: int, columns: int, entries: int) -> Any:
    matrix = scipy.sparse.random(rows, columns, entries / rows / columns, random_state=1)
    matrix.data += 0.1
    return matrix


def _masks() -> Iterator[Case]:
    n = 4000
    edges = _sparse(n, n, 40_000)
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


def _factorisations() -> Iterator[Case]:
    n, m, f = 4000, 3000, 10
    X, U, V = _sparse(n, m, 60_000), RNG.random((n, f)) + 0.1, RNG.random((m, f)) + 0.1
    known = {"X": X, "U": U, "V": V}
    yield Case(
        "ALS, loss",
        "L += square(X[i,j] - sum[f](U[i,f] * V[j,f]))",
        "a += square(X[i,j]); b += X[i,j] * U[i,f] * V[j,f]; C[f,g] += U[i,f] * U[i,g];"
        "D[f,g] += V[j,f] * V[j,g]; d += C[f,g] * D[f,g]; L = a - 2 * b + d",
        known,
        "algebraic",
    )
    yield Case(
        "ALS, gradient",
        "L[i,g] += (sum[f](U[i,f] * V[j,f]) - X[i,j]) * V[j,g]",
        "C[f,g] += V[j,f] * V[j,g]; L[i,g] = U[i,f] * C[f,g] - sum[j](X[i,j] * V[j,g])",
        known,
    )
    yield Case(
        "PNMF, objective",
        "L += sum[f](U[i,f] * V[j,f]) - X[i,j] * log(sum[f](U[i,f] * V[j,f]))",
        "u[f] += U[i,f]; v[f] += V[j,f]; a += u[f] * v[f];"
        "b += X[i,j] * log(sum[f](U[i,f] * V[j,f])); L = a - b",
        known,
    )
    yield Case(
        "MLR",
        "L[i,j] = p[i] * Y[i,j] - p[i] * (p[i] * Y[i,j])",
        "w[i] = p[i] * (1 - p[i]); L[i,j] = w[i] * Y[i,j]",
        {"p": RNG.random(n), "Y": RNG.random((n, 300))},
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


def _measure(case: Case, rounds: int) -> Sequence[str]:
    with ucle.connect(threads=THREADS) as connection:

        def compiled(text: str, law: str, association: str = "free") -> ucle.EinsumProgram:
            return ucle.einsum_program(
                text.replace(";", "\n"),
                database=connection,
                inputs=case.inputs,
                rewrite=law,
                association=association,
            )

        compiling = race({"": lambda: compiled(case.text, case.law)}, min(rounds, 3))[""]
        sides = {
            "written": compiled(case.text, "none", "as-written"),
            "rewritten": compiled(case.text, case.law),
            "by hand": compiled(case.by_hand, "none"),
        }
        expected: dict[str, Any] = {}

        def check(side: str, result: Any) -> None:
            for name in result:
                found = result[name].to_numpy()
                expect_close(f"{case.name}, {side}", found, expected.setdefault(name, found), 1e-7)

        times = race(
            {name: lambda p=program: p.execute(connection) for name, program in sides.items()},
            rounds,
            check,
        )
    lowering = sides["rewritten"].compiled.front.lowering
    told = lowering.rewriting or lowering.demand
    to_hand = times["rewritten"] / times["by hand"]
    return (
        case.name,
        case.law,
        f"{times['written']:.3f}",
        f"{times['rewritten']:.3f}",
        f"{times['by hand']:.3f}",
        ratio(times["written"] / times["rewritten"]),
        ratio(to_hand),
        f"{1000 * compiling:.0f}",
        "; ".join(f"`{line}`" for line in told.lines) if told else "as written",
        "reached" if to_hand <= REACH else "missed",
    )


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for case in cases():
        yield _measure(case, rounds)


TABLE = Table(
    "rewriting",
    "Programs as written, as rewritten, and by hand",
    "Seconds of one execution: as it is written (in the order of the text), as ucle rewrites it,\n"
    "and as an expert would write it; milliseconds of compiling the second. Reached is at most\n"
    "1.2 times the time of the program by hand.",
    (
        "program",
        "rewrite",
        "as written",
        "rewritten",
        "by hand",
        "gain",
        "to by hand",
        "compile",
        "what was done",
        "reach",
    ),
    _rows,
)
