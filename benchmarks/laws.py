"""Rules of sums and products: what each form costs by default, beside the best form by hand.

The rules are those of SystemML that index notation can say (SPORES, section 4.1), with the names
that they have there, at sizes at which the two sides differ. The pairs are longer expressions as
people write them. Either side is compiled with the default options, and the second is the cheapest
that we know. Costs do not depend on the machine's load; processor time is the least of the rounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import duckdb
import numpy as np
import scipy.sparse as sp

import ucle
from benchmarks.by_hand import REACH, TOLERANCE
from benchmarks.measure import THREADS, Table, expect_close, ratio

ROWS, COLUMNS, RANK, ENTRIES = 4000, 3000, 10, 60_000
"""Sizes of the sparse matrices and of their factors."""

SIDES = 1000, 800, 600
"""Sizes of the dense matrices, which can be multiplied in turn."""

SMALL_COST, SMALL_TIME = 1e6, 1e-3
"""Nanoseconds of cost, and seconds, up to which a difference counts as none."""

Rule = tuple[str, str, str]
"""The name of a rule, the form as it is written, and the form by hand."""

RULES: tuple[Rule, ...] = (
    ("RemoveUnnecessaryAggregates", "L = sum[i](sum[j](X[i,j]))", "L += X[i,j]"),
    ("PushdownSumOnAdditiveBinary", "L += D[a,b] + E[a,b]", "d += D[a,b]; e += E[a,b]; L = d + e"),
    ("PushdownSumBinaryMult", "L += s[] * X[i,j]", "x += X[i,j]; L = s[] * x"),
    (
        "SimplifySumMatrixMult",
        "P[a,c] += D[a,b] * F[b,c]; L += P[a,c]",
        "p[b] += D[a,b]; q[b] += F[b,c]; L += p[b] * q[b]",
    ),
    (
        "SimplifyTraceMatrixMult",
        "P[a,e] += D[a,b] * H[b,e]; L = sum[a](P[a,a])",
        "L += D[a,b] * H[b,a]",
    ),
    ("SimplifySumDiagToTrace", "d[a] = S[a,a]; L += d[a]", "L += S[a,a]"),
    ("SimplifyRowSumsMVMult", "P[i,j] = X[i,j] * v[j]; Z[i] += P[i,j]", "Z[i] += X[i,j] * v[j]"),
    ("SimplifyColSumsMVMult", "P[i,j] = X[i,j] * u[i]; Z[j] += P[i,j]", "Z[j] += X[i,j] * u[i]"),
    ("SimplifyBinaryToUnaryOperation", "Z[a,b] = D[a,b] + D[a,b]", "Z[a,b] = 2 * D[a,b]"),
    ("FuseSumSquared", "S[i,j] = X[i,j] ^ 2; L += S[i,j]", "L += square(X[i,j])"),
    (
        "SimplifyDistributiveBinaryOperation",
        "Z[a,b] = D[a,b] - E[a,b] * D[a,b]",
        "Z[a,b] = (1 - E[a,b]) * D[a,b]",
    ),
    (
        "SimplifyBushyBinaryOperation",
        "Z[a,b] = D[a,b] * (E[a,b] * sum[c](K[a,c] * r[c]))",
        "q[a] += K[a,c] * r[c]; Z[a,b] = D[a,b] * E[a,b] * q[a]",
    ),
    (
        "SimplifyDistributiveMatrixMult",
        "Z[a,c] = sum[b](D[a,b] * F[b,c]) + sum[b](D[a,b] * G[b,c])",
        "T[b,c] = F[b,c] + G[b,c]; Z[a,c] += D[a,b] * T[b,c]",
    ),
    ("ReorderMinusMatrixMult", "Z[j] += -X[i,j] * u[i]", "z[j] += X[i,j] * u[i]; Z[j] = -z[j]"),
    ("SimplifyUnaryAggReorgOperation", "T[b,a] = D[a,b]; L += T[b,a]", "L += D[a,b]"),
    ("PushdownUnaryAggTransposeOperation", "T[b,a] = D[a,b]; Z[b] += T[b,a]", "Z[b] += D[a,b]"),
    (
        "SimplifyTransposeAggBinBinaryChains",
        "T[c,a] = sum[b](D[a,b] * F[b,c]) + K[a,c]; Z[a,c] = T[c,a]",
        "Z[a,c] = sum[b](D[a,b] * F[b,c]) + K[a,c]",
    ),
    ("SimplifyDotProductSum", "w[i] = u[i] ^ 2; L += w[i]", "L += u[i] * u[i]"),
    ("SimplifyScalarMatrixMult", "Z[i] += s[] * X[i,j]", "z[i] += X[i,j]; Z[i] = s[] * z[i]"),
    ("SimplifyNnzComputation", "N[i,j] = X[i,j] != 0; L += N[i,j]", "L += X[i,j] != 0"),
    ("FuseAxpyBinaryOperationChain", "T[a,b] = s[] * E[a,b]; Z[a,b] = D[a,b] + T[a,b]",
     "Z[a,b] = D[a,b] + s[] * E[a,b]"),
    (
        "SimplifyWeightedSquaredLoss",
        "L += W[i,j] * square(X[i,j] - sum[f](U[i,f] * V[j,f]))",
        "M[i,j] = (W[i,j] != 0) * U[i,f] * V[j,f]; R[i,j] = when(W[i,j], X[i,j]) - M[i,j];"
        "L += W[i,j] * square(R[i,j])",
    ),
    (
        "SimplifyWeightedSigmoid",
        "Z[i,j] = X[i,j] * sigmoid(sum[f](U[i,f] * V[j,f]))",
        "M[i,j] = (X[i,j] != 0) * U[i,f] * V[j,f]; Z[i,j] = X[i,j] * sigmoid(M[i,j])",
    ),
    (
        "SimplifyWeightedDivMM",
        "Z[j,g] = sum[i](U[i,g] * (X[i,j] / sum[f](U[i,f] * V[j,f])))",
        "M[i,j] = (X[i,j] != 0) * U[i,f] * V[j,f]; Q[i,j] = sparse_div(X[i,j], M[i,j]);"
        "Z[j,g] += Q[i,j] * U[i,g]",
    ),
    (
        "SimplifyWeightedCrossEntropy",
        "L += X[i,j] * log(sum[f](U[i,f] * V[j,f]) + 0.001)",
        "M[i,j] = (X[i,j] != 0) * U[i,f] * V[j,f]; L += X[i,j] * log(M[i,j] + 0.001)",
    ),
)  # fmt: skip

GRAM = "p[f,g] += U[i,f] * U[i,g]; q[f,g] += V[j,f] * V[j,g]; r += p[f,g] * q[f,g]; "
INNER = "Q[i,f] += X[i,j] * V[j,f]; t += Q[i,f] * U[i,f]; "
FACTORISED = "p[f] += U[i,f]; q[f] += V[j,f]; l += p[f] * q[f]; "
MASKED = "M[i,j] = (X[i,j] != 0) * U[i,f] * V[j,f]; "

PAIRS: tuple[Rule, ...] = (
    (
        "squared loss",
        "L += square(X[i,j] - sum[f](U[i,f] * V[j,f]))",
        f"{GRAM}{INNER}x += square(X[i,j]); L = x - 2 * t + r",
    ),
    (
        "squared loss with a plus",
        "L += square(X[i,j] + sum[f](U[i,f] * V[j,f]))",
        f"{GRAM}{INNER}x += square(X[i,j]); L = x + 2 * t + r",
    ),
    (
        "squared loss as a product",
        "R[i,j] = X[i,j] - sum[f](U[i,f] * V[j,f]); L += R[i,j] * R[i,j]",
        f"{GRAM}{INNER}x += square(X[i,j]); L = x - 2 * t + r",
    ),
    (
        "squared loss in three statements",
        "M[i,j] += U[i,f] * V[j,f]; R[i,j] = X[i,j] - M[i,j]; S[i,j] = R[i,j] ^ 2; L += S[i,j]",
        f"{GRAM}{INNER}x += square(X[i,j]); L = x - 2 * t + r",
    ),
    (
        "gradient of the squared loss",
        "Z[i,g] += (sum[f](U[i,f] * V[j,f]) - X[i,j]) * V[j,g]",
        "q[f,g] += V[j,f] * V[j,g]; Z[i,g] = U[i,f] * q[f,g] - sum[j](X[i,j] * V[j,g])",
    ),
    (
        "the other gradient",
        "R[i,j] = X[i,j] - sum[f](U[i,f] * V[j,f]); Z[j,g] += R[i,j] * U[i,g]",
        "p[f,g] += U[i,f] * U[i,g]; Z[j,g] = sum[i](X[i,j] * U[i,g]) - sum[f](V[j,f] * p[f,g])",
    ),
    (
        "sum of a factorised matrix",
        "L += sum[f](U[i,f] * V[j,f])",
        "p[f] += U[i,f]; q[f] += V[j,f]; L += p[f] * q[f]",
    ),
    (
        "row sums of a factorised matrix",
        "M[i,j] += U[i,f] * V[j,f]; Z[i] += M[i,j]",
        "q[f] += V[j,f]; Z[i] += U[i,f] * q[f]",
    ),
    (
        "mean of a factorised matrix",
        "L = mean[i,j](sum[f](U[i,f] * V[j,f]))",
        f"p[f] += U[i,f]; q[f] += V[j,f]; l += p[f] * q[f]; L = l / {ROWS * COLUMNS}",
    ),
    (
        "squares of a factorised matrix",
        "L += square(sum[f](U[i,f] * V[j,f]))",
        f"{GRAM}L = r",
    ),
    (
        "a factorised matrix times a vector",
        "Z[i] = sum[j](sum[f](U[i,f] * V[j,f]) * v[j])",
        "q[f] += V[j,f] * v[j]; Z[i] += U[i,f] * q[f]",
    ),
    (
        "a factorised matrix times its transpose",
        "M[i,j] += U[i,f] * V[j,f]; Z[i,g] += M[i,j] * M[k,j] * U[k,g]",
        "p[f,g] += U[i,f] * U[i,g]; q[f,g] += V[j,f] * V[j,g]; r[f,g] += q[f,h] * p[h,g];"
        "Z[i,g] += U[i,f] * r[f,g]",
    ),
    (
        "a nested sum in a difference",
        "L = sum[i,j](sum[f](U[i,f] * V[j,f])) - sum[j](v[j])",
        "p[f] += U[i,f]; q[f] += V[j,f]; l += p[f] * q[f]; w += v[j]; L = l - w",
    ),
    (
        "a nested sum in a map",
        "L = log(sum[i,j](sum[f](U[i,f] * V[j,f])))",
        "p[f] += U[i,f]; q[f] += V[j,f]; l += p[f] * q[f]; L = log(l)",
    ),
    (
        "a nested sum in a quotient",
        "Z[i,j] = X[i,j] / sum[k,l](sum[f](U[k,f] * V[l,f]))",
        "p[f] += U[i,f]; q[f] += V[j,f]; l += p[f] * q[f]; Z[i,j] = X[i,j] / l",
    ),
    (
        "objective of PNMF",
        "L += sum[f](U[i,f] * V[j,f]) - X[i,j] * log(sum[f](U[i,f] * V[j,f]))",
        f"{FACTORISED}x += X[i,j] * log(sum[f](U[i,f] * V[j,f])); L = l - x",
    ),
    (
        "objective of PNMF across statements",
        "M[i,j] += U[i,f] * V[j,f]; T[i,j] = M[i,j] - X[i,j] * log(M[i,j]); L += T[i,j]",
        f"{FACTORISED}x += X[i,j] * log(sum[f](U[i,f] * V[j,f])); L = l - x",
    ),
    (
        "a sparse sum times a vector",
        "Z[i] = sum[j]((X[i,j] + W[i,j]) * v[j])",
        "Z[i] = sum[j](X[i,j] * v[j]) + sum[j](W[i,j] * v[j])",
    ),
    (
        "a sparse and a factorised matrix times a vector",
        "Z[i] = sum[j]((X[i,j] + sum[f](U[i,f] * V[j,f])) * v[j])",
        "q[f] += V[j,f] * v[j]; Z[i] = sum[j](X[i,j] * v[j]) + sum[f](U[i,f] * q[f])",
    ),
    (
        "a dense and a sparse matrix times a vector",
        "Z[a] = sum[b]((D[a,b] + Y[a,b]) * y[b])",
        "Z[a] = sum[b](D[a,b] * y[b]) + sum[b](Y[a,b] * y[b])",
    ),
    (
        "a rank-one update times a vector",
        "T[i,j] = X[i,j] + u[i] * v[j]; Z[i] += T[i,j] * v[j]",
        "n += square(v[j]); Z[i] = sum[j](X[i,j] * v[j]) + n * u[i]",
    ),
    (
        "sum of an outer product",
        "O[i,j] = u[i] * v[j]; L += O[i,j]",
        "x += u[i]; y += v[j]; L = x * y",
    ),
    ("a quadratic form", "L += u[i] * X[i,j] * v[j]", "q[i] += X[i,j] * v[j]; L += u[i] * q[i]"),
    (
        "an outer product with a sparse matrix",
        "O[i,j] = u[i] * v[j]; Z[i,j] = O[i,j] * X[i,j]; L += Z[i,j]",
        "q[i] += X[i,j] * v[j]; L += u[i] * q[i]",
    ),
    (
        "a sparse matrix with a factorised one",
        "L += X[i,j] * sum[f](U[i,f] * V[j,f])",
        f"{INNER}L = t",
    ),
    (
        "normal equations",
        "G[j,k] += X[i,j] * X[i,k]; Z[j] += G[j,k] * v[k]",
        "q[i] += X[i,k] * v[k]; Z[j] += X[i,j] * q[i]",
    ),
    (
        "weighted normal equations",
        "G[j,k] += X[i,j] * u[i] * X[i,k]; Z[j] += G[j,k] * v[k]",
        "q[i] += X[i,k] * v[k]; r[i] = q[i] * u[i]; Z[j] += X[i,j] * r[i]",
    ),
    (
        "a chain of dense matrices",
        "T[a,c] += D[a,b] * F[b,c]; Z[a] += T[a,c] * r[c]",
        "q[b] += F[b,c] * r[c]; Z[a] += D[a,b] * q[b]",
    ),
    (
        "trace of three matrices",
        "T[a,c] += D[a,b] * F[b,c]; P[a,e] += T[a,c] * K[e,c]; L = sum[a](P[a,a])",
        "T[a,c] += D[a,b] * F[b,c]; L += T[a,c] * K[a,c]",
    ),
    (
        "common factor across statements",
        "P[a,b] = D[a,b] * x[a]; Q[a,b] = D[a,b] * y[b]; Z[a,b] = P[a,b] + Q[a,b]",
        "Z[a,b] = D[a,b] * (x[a] + y[b])",
    ),
    (
        "common factor",
        "Z[a,b] = D[a,b] * x[a] + D[a,b] * y[b]",
        "Z[a,b] = D[a,b] * (x[a] + y[b])",
    ),
    (
        "common factor of a sparse matrix",
        "Z[i] = sum[j](X[i,j] * v[j]) * u[i] + sum[j](X[i,j] * v[j])",
        "q[i] += X[i,j] * v[j]; Z[i] = q[i] * (u[i] + 1)",
    ),
    (
        "products that cancel",
        "L = sum[i,j](X[i,j] * u[i]) + sum[j](v[j]) - sum[a,b](X[a,b] * u[a])",
        "L += v[j]",
    ),
    (
        "probabilities of a regression",
        "Z[a,b] = x[a] * D[a,b] - x[a] * (x[a] * D[a,b])",
        "w[a] = x[a] * (1 - x[a]); Z[a,b] = w[a] * D[a,b]",
    ),
    (
        "distances of rows",
        "Z[i,k] += square(U[i,f] - N[k,f])",
        "p[i] += square(U[i,f]); n[k] += square(N[k,f]);"
        "Z[i,k] = p[i] + n[k] - 2 * sum[f](U[i,f] * N[k,f])",
    ),
    (
        "sum of the distances of rows",
        "D2[i,k] += square(U[i,f] - U[k,f]); L += D2[i,k]",
        f"p += square(U[i,f]); c[f] += U[i,f]; n += square(c[f]); L = {2 * ROWS} * p - 2 * n",
    ),
    (
        "a matrix without its mean, times a vector",
        "m[b] = mean[a](D[a,b]); C[a,b] = D[a,b] - m[b]; Z[a] += C[a,b] * y[b]",
        "m[b] = mean[a](D[a,b]); n += m[b] * y[b]; Z[a] = sum[b](D[a,b] * y[b]) - n",
    ),
    (
        "a sparse matrix without its mean, times a vector",
        "m[j] = mean[i](X[i,j]); C[i,j] = X[i,j] - m[j]; Z[i] += C[i,j] * v[j]",
        "m[j] = mean[i](X[i,j]); n += m[j] * v[j]; Z[i] = sum[j](X[i,j] * v[j]) - n",
    ),
    (
        "modularity",
        "k[i] += X[i,j]; l[j] += X[i,j]; m += X[i,j];"
        "Z[f,g] += (X[i,j] - k[i] * l[j] / m[]) * U[i,f] * V[j,g]",
        "k[i] += X[i,j]; l[j] += X[i,j]; m += X[i,j]; Q[i,g] += X[i,j] * V[j,g];"
        "p[f] += k[i] * U[i,f]; q[g] += l[j] * V[j,g];"
        "Z[f,g] = sum[i](U[i,f] * Q[i,g]) - p[f] * q[g] / m[]",
    ),
    (
        "a softmax times a matrix",
        "E[i,j] = X[i,j] * exp(sum[f](U[i,f] * V[j,f])); n[i] += E[i,j];"
        "Z[i,g] += E[i,j] / n[i] * V[j,g]",
        f"{MASKED}E[i,j] = X[i,j] * exp(M[i,j]); n[i] += E[i,j]; Y2[i,g] += E[i,j] * V[j,g];"
        "Z[i,g] = Y2[i,g] / n[i]",
    ),
)


@cache
def inputs() -> Mapping[str, Any]:
    """Return the tensors that rules and pairs read."""
    rng = np.random.default_rng(6)
    first, second, third = SIDES

    def sparse(rows: int, columns: int) -> Any:
        matrix = sp.random_array((rows, columns), density=ENTRIES / rows / columns, rng=rng)
        matrix.data += 0.1
        return matrix

    shapes = {
        "U": (ROWS, RANK), "V": (COLUMNS, RANK), "N": (500, RANK), "u": (ROWS,), "v": (COLUMNS,),
        "D": (first, second), "E": (first, second), "F": (second, third), "G": (second, third),
        "H": (second, first), "K": (first, third), "S": (first, first),
        "x": (first,), "y": (second,), "r": (third,), "s": (),
    }  # fmt: skip
    dense = {name: rng.random(shape) + 0.1 for name, shape in shapes.items()}
    sparse_ones = {"X": sparse(ROWS, COLUMNS), "W": sparse(ROWS, COLUMNS)}
    return dense | sparse_ones | {"Y": sparse(first, second)}


def read(text: str) -> dict[str, Any]:
    """Return the inputs that a program reads: those that it does not make."""
    made = {part.split("=")[0].rstrip("+ ").split("[")[0].strip() for part in text.split(";")}
    return {
        name: value for name, value in inputs().items() if f"{name}[" in text and name not in made
    }


def compare(rule: Rule, rounds: int) -> tuple[list[float], list[float]]:
    """Return the costs in milliseconds, and the seconds of processor time, of both forms."""
    name, *texts = rule
    with ucle.connect(threads=THREADS) as connection:
        programs = [_compiled(text, connection) for text in texts]
        answers = []
        for program in programs:
            with program.execute(connection) as result:
                (output,) = result
                answers.append(result[output].to_numpy())
        expect_close(name, *answers, TOLERANCE)
        seconds = [math.inf, math.inf]
        for _ in range(rounds):
            for side, program in enumerate(programs):
                start = time.process_time()
                program.execute(connection).close()
                seconds[side] = min(seconds[side], time.process_time() - start)
    return [program.compiled.decomposed.total_cost / 1e6 for program in programs], seconds


def _compiled(text: str, connection: duckdb.DuckDBPyConnection) -> ucle.EinsumProgram:
    output = text.rpartition(";")[2].strip()[0]
    return ucle.einsum_program(
        text.replace(";", "\n"), database=connection, inputs=read(text), outputs=[output]
    )


def exceeds(values: Sequence[float], small: float) -> bool:
    """Return whether the first of two values is more than the goal allows."""
    return values[0] > REACH * values[1] and values[0] - values[1] > small


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for kind, rules in (("rule", RULES), ("pair", PAIRS)):
        for rule in rules:
            costs, seconds = compare(rule, rounds)
            missed = [
                word
                for word, values, small in (
                    ("cost", costs, SMALL_COST / 1e6),
                    ("time", seconds, SMALL_TIME),
                )
                if exceeds(values, small)
            ]
            yield (
                kind,
                rule[0],
                *(f"{x:.2f}" for x in costs),
                ratio(costs[0] / costs[1]),
                *(f"{1e3 * x:.1f}" for x in seconds),
                ratio(seconds[0] / seconds[1]),
                f"missed: {' and '.join(missed)}" if missed else "reached",
            )


TABLE = Table(
    "laws",
    "Rules of sums and products",
    "25 rules of SystemML and 40 pairs of longer expressions. Each is compiled by default,\n"
    "and in the best form by hand. The table shows the costs and the least processor time\n"
    f"of an execution, both in milliseconds. Goal: at most {REACH:g} times the form by hand,\n"
    "or at most a millisecond more.",
    (
        "kind",
        "name",
        "cost",
        "cost by hand",
        "ratio",
        "time",
        "time by hand",
        "ratio",
        "goal",
    ),
    _rows,
)
