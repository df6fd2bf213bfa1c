"""Pairs of expressions that are the same, and some that are not, by their normal forms.

The cases are those of Apache SystemDS' RewriterNormalFormTests that index notation can say, written
again; each bears the name that it has there. Left out are random and constant matrices, slices,
numbers of rows, products with 0 (which are no polynomial here), `ifelse`, and what only casts a
1 x 1 matrix.
"""

from __future__ import annotations

import numpy as np
import pytest

import ucle
from ucle.lowering.polynomials import Monomial, Polynomial
from ucle.lowering.read_polynomials import ONE, Polynomials
from ucle.lowering.syntax_to_logical import syntax_to_logical

RNG = np.random.default_rng(0)
DATA = {
    **{name: RNG.random((4, 4)) + 0.5 for name in "ABCD"},
    **{name: RNG.random(4) + 0.5 for name in "uvw"},
    **{name: RNG.random(()) + 0.5 for name in "ab"},
}

SAME = {
    "RemoveUnnecessaryBinaryOperation": ("T[i,j] = 1 * A[i,j]", "T[i,j] = A[i,j]"),
    "CanonicalizeMatrixMultScalarAdd": (
        "T[i,j] = a[] + sum[k](A[i,k] * B[j,k])",
        "T[i,j] = sum[k](A[i,k] * B[j,k]) + a[]",
    ),
    "CanonicalizeMatrixMultScalarAdd2": (
        "T[i,j] = sum[k](A[i,k] * B[j,k]) - a[]",
        "T[i,j] = sum[k](A[i,k] * B[j,k]) + -a[]",
    ),
    "SimplifyMultiBinaryToBinaryOperation": (
        "T[i,j] = 1 - A[i,j] * B[i,j]",
        "T[i,j] = -(A[i,j] * B[i,j] - 1)",
    ),
    "SimplifyDistributiveBinaryOperation": (
        "T[i,j] = A[i,j] - B[i,j] * A[i,j]",
        "T[i,j] = (1 - B[i,j]) * A[i,j]",
    ),
    "SimplifyBushyBinaryOperation": (
        "T[i,j] = A[i,j] * (B[i,j] * sum[k](C[i,k] * u[k]))",
        "T[i,j] = (A[i,j] * B[i,j]) * sum[k](C[i,k] * u[k])",
    ),
    "SimplifyUnaryAggReorgOperation": ("S[j,i] = A[i,j]; T += S[i,j]", "T += A[i,j]"),
    "RemoveUnnecessaryAggregates": ("T = sum[i](sum[j](A[i,j]))", "T += A[i,j]"),
    "SimplifyBinaryMatrixScalarOperation": ("T[i,j] = A[i,j] * a[]", "T[i,j] = a[] * A[i,j]"),
    "PushdownUnaryAggTransposeOperation": ("S[j,i] = A[i,j]; T[i] += S[j,i]", "T[i] += A[i,j]"),
    "PushdownCSETransposeScalarOperation": (
        "S[j,i] = A[i,j] ^ 2; T[i,j] = A[j,i] * S[i,j]",
        "S[j,i] = A[i,j]; T[i,j] = S[i,j] * square(S[i,j])",
    ),
    "PushdownSumBinaryMult": ("T += a[] * A[i,j]", "T = a[] * sum[i,j](A[i,j])"),
    "SimplifyTraceMatrixMult": (
        "P[i,j] += A[i,k] * B[k,j]; T += P[i,i]",
        "S[j,i] = B[i,j]; T += A[i,j] * S[i,j]",
    ),
    "RemoveUnnecessaryReorgOperation": (
        "S[j,i] = A[i,j]; T[j,i] = S[i,j]",
        "T[i,j] = A[i,j]",
    ),
    "SimplifyTransposeAggBinBinaryChains": (
        "S[i,j] = sum[k](A[k,i] * B[j,k]) + C[i,j]; T[j,i] = S[i,j]",
        "T[i,j] = sum[k](B[i,k] * A[k,j]) + C[j,i]",
    ),
    "RemoveUnnecessaryMinus": ("T[i,j] = -(-A[i,j])", "T[i,j] = A[i,j]"),
    "FuseLogNzUnaryOperation": (
        "T[i,j] = (A[i,j] != 0) * log(A[i,j])",
        "T[i,j] = log(A[i,j]) * (A[i,j] != 0)",
    ),
    "SimplifyColSumsMVMult": ("T += u[i] * v[i]", "T = sum[k](v[k] * u[k])"),
    "SimplifyRowSumsMVMult": ("T = sum[j](u[j] * v[j])", "T += v[i] * u[i]"),
    "SimplifyScalarMatrixMult": ("T[i] = u[i] * a[]", "T[i] = a[] * u[i]"),
    "SimplifyDistributiveMatrixMult": (
        "T[i,j] = sum[k](A[i,k] * B[k,j]) + sum[k](A[i,k] * C[k,j])",
        "T[i,j] += A[i,k] * (B[k,j] + C[k,j])",
    ),
    "SimplifySumDiagToTrace": ("d[i] = A[i,i]; T += d[i]", "T += A[i,i]"),
    "PushdownBinaryOperationOnDiag": ("d[i] = A[i,i]; T[i] = d[i] * a[]", "T[i] = A[i,i] * a[]"),
    "PushdownSumOnAdditiveBinary": (
        "T += A[i,j] + B[i,j]",
        "T = sum[i,j](A[i,j]) + sum[i,j](B[i,j])",
    ),
    "SimplifyDotProductSum": ("T = sum[i](square(u[i]))", "T += u[i] * u[i]"),
    "FuseSumSquared": ("T += A[i,j] ^ 2", "T += A[i,j] * A[i,j]"),
    "FuseAxpyBinaryOperationChain": (
        "T[i,j] = A[i,j] + a[] * B[i,j]",
        "T[i,j] = B[i,j] * a[] + A[i,j]",
    ),
    "FuseAxpyBinaryOperationChain2": (
        "T[i,j] = A[i,j] - a[] * B[i,j]",
        "T[i,j] = -(a[] * B[i,j] - A[i,j])",
    ),
    "ReorderMinusMatrixMult": ("T[i,j] += -A[k,i] * B[k,j]", "T[i,j] = -sum[k](A[k,i] * B[k,j])"),
    "SimplifySumMatrixMult": (
        "P[i,j] += A[i,k] * B[k,j]; T += P[i,j]",
        "c[k] += A[i,k]; r[k] += B[k,j]; T += c[k] * r[k]",
    ),
    "SimplifyNnzComputation": ("T += A[i,j] != 0", "T = sum[i,j](A[i,j] != 0)"),
    # of ours: the loss of a factorisation, and a triangle under other names
    "loss": (
        "T += square(A[i,j] - sum[k](B[i,k] * C[k,j]))",
        "T = sum[i,j](A[i,j] ^ 2) - 2 * sum[i,j,k](A[i,j] * B[i,k] * C[k,j])"
        " + sum[i,j](sum[k](B[i,k] * C[k,j]) * sum[l](B[i,l] * C[l,j]))",
    ),
    "triangle": ("T += A[i,j] * A[j,k] * A[k,i]", "T += A[k,j] * A[j,l] * A[l,k]"),
}

OTHERS = {
    "a triangle and a cycle that is none": (
        "T += A[i,j] * A[j,k] * A[k,i]",
        "T += A[i,j] * A[j,k] * A[i,k]",
    ),
    "a product and its transpose": ("T[i,j] += A[i,k] * B[k,j]", "T[j,i] += A[i,k] * B[k,j]"),
}


def key(text: str) -> object:
    """The normal form of T, its axes called by their places."""
    inputs = {name: DATA[name] for name in DATA if f"{name}[" in text}
    program = ucle.einsum_program(text, inputs=inputs, rewrite="none")
    logical = syntax_to_logical(program.compiled.front.source)
    statement = logical.by_name["T"]
    polynomials, result = Polynomials(logical, ()), statement.result
    form = Polynomial(result.distinct, result.dtype, (Monomial(ONE, (result,)),)).simplify_terms()
    while form is not None and any(polynomials.of(x) is not None for x in form.uses):
        form = form.expand_factors(
            lambda x: polynomials.of(x) is not None, polynomials.get_polynomial
        )
    assert form is not None
    axes = {x: type(x)(f"axis {n}", x.bound) for n, x in enumerate(statement.labels)}
    return frozenset((term.rename_labels(axes).key, term.coefficient) for term in form.monomials)


@pytest.mark.sample(32)
@pytest.mark.parametrize("name", SAME)
def test_the_same(name: str) -> None:
    one, other = SAME[name]
    assert key(one) == key(other)


@pytest.mark.parametrize("name", OTHERS)
def test_not_the_same(name: str) -> None:
    one, other = OTHERS[name]
    assert key(one) != key(other)
