"""The programs that everybody writes, with small data: what the random generator may miss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse

import ucle
from ucle.language.parse import parse_program
from ucle.language.syntax import accesses
from ucle.testing.generate import Case
from ucle.testing.random_inputs import coo_columns, random_array

TEXTS: dict[str, str] = {
    "matmul": "T[i,k] += X[i,j] * Y[j,k]",
    "matmul_transposed": "T[k,i] += X[j,i] * Y[k,j]",
    "implied_sum": "T[i,k] = X[i,j] * Y[j,k]",
    "matrix_vector": "y[i] += A[i,j] * x[j]",
    "chain": "T[i,l] += A[i,j] * B[j,k] * C[k,l]",
    "batched": "T[b,i,k] += X[b,i,j] * Y[b,j,k]",
    "outer": "T[i,j] = x[i] * y[j]",
    "outer_of_matrices": "T[i,j,k,l] = X[i,j] * Y[k,l]",
    "inner": "s = x[i] * y[i]",
    "total": "s[] += X[i,j]",
    "row_sums": "r[i] = X[i,j]",
    "transpose": "T[j,i] = X[i,j]",
    "transpose_rank_4": "T[l,j,i,k] = X[i,j,k,l]",
    "trace": "t = A[i,i]",
    "diagonal": "d[i] = A[i,i]",
    "inner_diagonal": "d[i,j] += A[i,j,i,k] * B[k,k]",
    "scalar_add": "T[i,j] = X[i,j] + 2",
    "scalar_algebra": "T[i,j] = 1 - X[i,j] / 4 + (2 * X[i,j]) ^ 2",
    "scalar_tensor": "T[i,j] = X[i,j] * s",
    "broadcast_add": "T[i,j] = X[i,j] + b[i]",
    "added_and_summed": "T[i] += X[i,j] + b[j]",
    "outer_sum": "T[i,j] = x[i] + y[j]",
    "elementwise": "T[i,j] = X[i,j] * Y[i,j] - Y[i,j]",
    "quotient": "T[i,j] = X[i,j] / (1 + square(Y[i,j]))",
    "squared_distances": "D[i,j] = square(X[i,k] - Y[j,k])",
    "sigmoid_of_sparse": "T[i] += sigmoid(X[i,j])",
    "softmax": "E[i,j] = exp(X[i,j]); T[i,j] = E[i,j] / sum_of[i]; sum_of[i] = E[i,k]",
    "self_join": "P[i,k] += A[i,j] * A[j,k]",
    "triangles": "t = A[i,j] * A[j,k] * A[k,i]",
    "symmetric": "S[i,j] = A[i,j] + A[j,i]",
    "power_iteration": "a[i] += A[i,j] * x[j]; b[i] += A[i,j] * a[j]; c[i] += A[i,j] * b[j]",
    "shared_vertex": "T[i,k] += X[i,j] * Y[j,k]; U[i] += T[i,k] * T[i,k]; V[k] += T[i,k]",
    "case_of_labels": "T[i,I] += X[i,j] * Y[j,I]",
    "matrix_of_columns": "T[val,key] += X[val,j] * Y[j,key]",
    "gcn": """
        N[i,k] = d[i] * A[i,k] * d[k]         # D^-1/2 A D^-1/2
        Z[i,n] = relu(N[i,k] * H[k,m] * W[m,n])
    """,
    "attention": """
        Q[i,k] += X[i,m] * WQ[m,k]
        K[j,k] += X[j,m] * WK[m,k]
        S[i,j] += Q[i,k] * A[i,j] * K[j,k]
        Attn[i,j] = 0.25 * S[i,j]
    """,
    "mttkrp": "M[i,r] += T[i,j,k] * B[j,r] * C[k,r]",
    "three_factors_and_constant": "T[i] += 2 * A[i,j] * B[j,k] * 0.5 * c[k]",
    "negated": "T[i] = -A[i,j] * x[j]",
    "no_labels_at_all": "s = a * b + 1",
}


def classic(name: str, seed: int = 0, kind: str = "mixed") -> Case:
    """A classic program with random data.

    Args:
        name: a key of `TEXTS`.
        seed: of the data.
        kind: ``mixed`` passes arrays, scipy matrices and tables in turn; ``tables`` gives every
            tensor a COO table of the database.
    """
    text = TEXTS[name]
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    sizes = _sizes(text)
    shapes = {tensor: tuple(sizes[x] for x in labels) for tensor, labels in _inputs(text).items()}
    arrays = {t: random_array(rng, shape, (0.4, 1.0)[n % 2]) for n, (t, shape)
              in enumerate(shapes.items())}  # fmt: skip
    inputs: dict[str, Any] = {}
    tables: dict[str, pa.Table] = {}
    for number, (tensor, array) in enumerate(arrays.items()):
        way = number % 3 if kind == "mixed" else 2
        if way == 0 or (way == 1 and not array.ndim):
            inputs[tensor] = array
        elif way == 1:
            inputs[tensor] = scipy.sparse.coo_array(array)
        else:
            tables[tensor] = pa.table(coo_columns(array, rng, 0.0))
            inputs[tensor] = ucle.table(tensor, bounds=array.shape)
    return Case(text, arrays, inputs, {}, None, tables)


def _sizes(text: str) -> dict[str, int]:
    """A size for every label; labels of one axis of a tensor get the same."""
    axes: dict[tuple[str, int], set[str]] = {}
    for statement in parse_program(text):
        for access in (statement.target, *accesses(statement.expression)):
            for axis, label in enumerate(access.labels):
                axes.setdefault((access.tensor, axis), set()).add(label)
    groups: list[set[str]] = []
    for labels in axes.values():
        joined = labels.union(*(group for group in groups if group & labels))
        groups = [group for group in groups if not group & labels] + [joined]
    return {x: 2 + sum(map(ord, min(group))) % 3 for group in groups for x in group}


def _inputs(text: str) -> dict[str, tuple[str, ...]]:
    statements = parse_program(text)
    defined = {s.target.tensor for s in statements}
    found: dict[str, tuple[str, ...]] = {}
    for statement in statements:
        for access in accesses(statement.expression):
            if access.tensor not in defined:
                found.setdefault(access.tensor, access.labels)
    return found
