"""The programs of SPORES (section 4.2): as a person writes them, as rewritten, and by hand.

Each is the core of an algorithm from SystemML's scripts, at a size of seconds: the loss and the
gradient of ALS, the objective and an update of PNMF, the product with the Hessian of MLR, and steps
of an SVM with squared hinge loss and of a GLM. Factors are dense, data is sparse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.by_hand import REACH, Case, table

RNG = np.random.default_rng(0)
ROWS, COLUMNS, RANK, ENTRIES = 4000, 3000, 10, 60_000
"""Sizes of a matrix of ratings and of its factors."""
SAMPLES, FEATURES, CLASSES = 100_000, 500, 5
"""Sizes of training data, a hundredth of which is nonzero."""


def sparse(rows: int, columns: int, entries: int) -> Any:
    """A random matrix of positive numbers."""
    matrix = scipy.sparse.random(rows, columns, entries / rows / columns, random_state=1)
    matrix.data += 0.1
    return matrix


def cases() -> Iterator[Case]:
    """Yield the programs of the table."""
    yield from factorisations()
    yield _update()
    yield from _learners()


def factorisations() -> Iterator[Case]:
    """Yield ALS, PNMF's objective, and SPORES' form of MLR, which `rewriting` shows, too."""
    X, U, V = _factorised()
    known = {"X": X, "U": U, "V": V}
    entries = X.tocoo()

    def products() -> Any:
        return np.einsum("ef,ef->e", U[entries.row], V[entries.col])

    yield Case(
        "ALS, loss",
        "L += square(X[i,j] - sum[f](U[i,f] * V[j,f]))",
        "a += square(X[i,j]); b += X[i,j] * U[i,f] * V[j,f]; C[f,g] += U[i,f] * U[i,g];"
        "D[f,g] += V[j,f] * V[j,g]; d += C[f,g] * D[f,g]; L = a - 2 * b + d",
        known,
        "algebraic",
        ("L",),
        lambda: (
            np.square(entries.data).sum()
            - 2 * entries.data @ products()
            + ((U.T @ U) * (V.T @ V)).sum()
        ),
    )
    yield Case(
        "ALS, gradient",
        "L[i,g] += (sum[f](U[i,f] * V[j,f]) - X[i,j]) * V[j,g]",
        "C[f,g] += V[j,f] * V[j,g]; L[i,g] = U[i,f] * C[f,g] - sum[j](X[i,j] * V[j,g])",
        known,
        outputs=("L",),
        in_memory=lambda: U @ (V.T @ V) - X @ V,
    )
    yield Case(
        "PNMF, objective",
        "L += sum[f](U[i,f] * V[j,f]) - X[i,j] * log(sum[f](U[i,f] * V[j,f]))",
        "u[f] += U[i,f]; v[f] += V[j,f]; a += u[f] * v[f];"
        "b += X[i,j] * log(sum[f](U[i,f] * V[j,f])); L = a - b",
        known,
        outputs=("L",),
        in_memory=lambda: U.sum(0) @ V.sum(0) - entries.data @ np.log(products()),
    )
    p, Y = RNG.random(ROWS), RNG.random((ROWS, 300))
    yield Case(
        "MLR",
        "L[i,j] = p[i] * Y[i,j] - p[i] * (p[i] * Y[i,j])",
        "w[i] = p[i] * (1 - p[i]); L[i,j] = w[i] * Y[i,j]",
        {"p": p, "Y": Y},
        outputs=("L",),
        in_memory=lambda: (p * (1 - p))[:, None] * Y,
    )


def _factorised() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(2)
    factors = (rng.random((n, RANK)) + 0.1 for n in (ROWS, COLUMNS))
    return sparse(ROWS, COLUMNS, ENTRIES), *factors


def _update() -> Case:
    X, U, V = _factorised()
    entries = X.tocoo()

    def in_memory() -> Any:
        quotients = entries.data / np.einsum("ef,ef->e", U[entries.row], V[entries.col])
        ratios = scipy.sparse.csr_array((quotients, entries.coords), shape=X.shape)
        return V * (ratios.T @ U) / U.sum(0)

    return Case(
        "PNMF, update",
        "L[j,g] = V[j,g] * sum[i](U[i,g] * (X[i,j] / sum[f](U[i,f] * V[j,f]))) / sum[i](U[i,g])",
        "D[i,j] = (X[i,j] != 0) * U[i,f] * V[j,f]; Q[i,j] = sparse_div(X[i,j], D[i,j]);"
        "N[j,g] += Q[i,j] * U[i,g]; u[g] += U[i,g]; L[j,g] = V[j,g] * N[j,g] / u[g]",
        {"X": X, "U": U, "V": V},
        outputs=("L",),
        in_memory=in_memory,
    )


def _learners() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    X = sparse(SAMPLES, FEATURES, SAMPLES * FEATURES // 100).tocsr()
    P = rng.random((SAMPLES, CLASSES))
    P /= P.sum(1, keepdims=True) + 0.5
    V = rng.normal(size=(FEATURES, CLASSES))

    def hessian() -> Any:
        Q = P * (X @ V)
        return X.T @ (Q - P * Q.sum(1, keepdims=True))

    yield Case(
        "MLR, Hessian",
        "Q[i,c] = P[i,c] * sum[j](X[i,j] * V[j,c]);"
        "L[j,c] += X[i,j] * (Q[i,c] - P[i,c] * sum[d](Q[i,d]))",
        "Q[i,c] = P[i,c] * sum[j](X[i,j] * V[j,c]); q[i] += Q[i,c];"
        "R[i,c] = Q[i,c] - P[i,c] * q[i]; L[j,c] += X[i,j] * R[i,c]",
        {"X": X, "P": P, "V": V},
        outputs=("L",),
        in_memory=hessian,
    )
    y = np.where(rng.random(SAMPLES) < 0.5, 1.0, -1.0)
    w, d = rng.normal(size=FEATURES), rng.normal(size=FEATURES)

    def svm() -> Any:
        out = np.maximum(1 - y * (X @ w + 0.1 * (X @ d)), 0)
        return X.T @ (out * y) - 0.01 * w

    yield Case(
        "SVM, gradient",
        "L[j] = sum[i](X[i,j] * max(1 - y[i] * sum[k](X[i,k] * (w[k] + 0.1 * d[k])), 0) * y[i])"
        " - 0.01 * w[j]",
        "v[k] = w[k] + 0.1 * d[k]; s[i] += X[i,k] * v[k]; o[i] = max(1 - y[i] * s[i], 0) * y[i];"
        "g[j] += X[i,j] * o[i]; L[j] = g[j] - 0.01 * w[j]",
        {"X": X, "y": y, "w": w, "d": d},
        outputs=("L",),
        in_memory=svm,
    )

    def line_search() -> Any:
        direction = X @ d
        held = 1 - y * (X @ w) > 0
        return np.sum(direction * held * direction) + d @ d

    yield Case(
        "SVM, curvature",
        "L = sum[i](sum[j](X[i,j] * d[j]) * (y[i] * sum[j](X[i,j] * w[j]) < 1)"
        " * sum[j](X[i,j] * d[j])) + sum[j](d[j] * d[j])",
        "e[i] += X[i,j] * d[j]; s[i] += X[i,j] * w[j]; h[i] = square(e[i]) * (y[i] * s[i] < 1);"
        "a += h[i]; b += square(d[j]); L = a + b",
        {"X": X, "y": y, "w": w, "d": d},
        outputs=("L",),
        in_memory=line_search,
    )
    small = w / 10

    def glm() -> Any:
        weights = np.exp(-np.square(X @ small))
        return X.T @ (weights * (X @ d)) + 0.01 * d

    yield Case(
        "GLM, product with the Hessian",
        "L[j] = sum[i,k](X[i,j] * exp(-square(sum[l](X[i,l] * b[l]))) * X[i,k] * p[k])"
        " + 0.01 * p[j]",
        "e[i] += X[i,l] * b[l]; w[i] = exp(-square(e[i])); q[i] += X[i,k] * p[k];"
        "r[i] = w[i] * q[i]; g[j] += X[i,j] * r[i]; L[j] = g[j] + 0.01 * p[j]",
        {"X": X, "b": small, "p": d},
        outputs=("L",),
        in_memory=glm,
    )


TABLE = table(
    "spores",
    "The programs of SPORES, as written, as rewritten, and by hand",
    "Seconds of one execution: of the program as written (in the order of the text), as\n"
    "ucle rewrites it, as an expert would write it for ucle (`by hand`), and with SciPy and\n"
    "NumPy in memory. `compile` is the time to compile the rewritten program, in\n"
    f"milliseconds. Goal: at most {REACH:g} times the time of the program by hand.",
    cases,
    in_memory=True,
)
