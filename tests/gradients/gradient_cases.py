"""Programs to differentiate, each with the same in PyTorch.

A case is a program whose tensor ``loss`` is a number, random inputs, and a function of PyTorch
that takes them by name. `make_vectors.py` writes PyTorch's answers to ``vectors.json``, with which
the tests compare; ``make grad-torch`` compares with PyTorch itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A program, what its inputs are, and what it is in PyTorch."""

    text: str
    torch: str
    """An expression over the inputs by name, ``t`` (PyTorch) and ``F`` (its functions)."""
    by: tuple[str, ...]
    inputs: Callable[[np.random.Generator], dict[str, Array]]
    bounds: dict[str, int] = field(default_factory=dict)


def normal(**shapes: tuple[int, ...]) -> Callable[[np.random.Generator], dict[str, Array]]:
    """Inputs of normal numbers."""
    return lambda rng: {name: rng.normal(size=shape) for name, shape in shapes.items()}


def positive(**shapes: tuple[int, ...]) -> Callable[[np.random.Generator], dict[str, Array]]:
    """Inputs of positive numbers."""
    return lambda rng: {n: rng.uniform(0.3, 2.0, size=shape) for n, shape in shapes.items()}


def small(**shapes: tuple[int, ...]) -> Callable[[np.random.Generator], dict[str, Array]]:
    """Inputs of few small whole numbers, many of them equal or 0."""
    return lambda rng: {
        name: rng.integers(-1, 3, size=shape).astype(float) for name, shape in shapes.items()
    }


def sparse(
    matrix: str, shape: tuple[int, int], **shapes: tuple[int, ...]
) -> Callable[[np.random.Generator], dict[str, Array]]:
    """A matrix most of whose entries are 0, and inputs of normal numbers."""

    def make(rng: np.random.Generator) -> dict[str, Array]:
        entries = np.where(rng.random(shape) < 0.3, rng.normal(size=shape), 0.0)
        return {matrix: entries, **normal(**shapes)(rng)}

    return make


def _map(text: str, torch: str, inputs: Any = None) -> Case:
    """A function of one tensor, weighed so that no two entries are alike."""
    return Case(
        f"y[i,j] = {text}; loss = sum[i,j](y[i,j] * c[i,j])",
        f"(({torch}) * c).sum()",
        ("x",),
        inputs or normal(x=(4, 3), c=(4, 3)),
    )


def _pair(text: str, torch: str, inputs: Any = None) -> Case:
    return Case(
        f"z[i,j] = {text}; loss = sum[i,j](z[i,j] * c[i,j])",
        f"(({torch}) * c).sum()",
        ("x", "y"),
        inputs or normal(x=(4, 3), y=(3,), c=(4, 3)),
    )


def _reduce(name: str, torch: str, inputs: Any = None) -> Case:
    return Case(
        f"y[i] = {name}[j](x[i,j]); loss = sum[i](y[i] * c[i])",
        f"(({torch}) * c).sum()",
        ("x",),
        inputs or normal(x=(4, 3), c=(4,)),
    )


MAPS = {
    "relu": _map("relu(x[i,j])", "F.relu(x)"),
    "relu at 0": _map("relu(x[i,j])", "F.relu(x)", small(x=(4, 3), c=(4, 3))),
    "leaky_relu": _map("leaky_relu(x[i,j])", "F.leaky_relu(x, 0.01)"),
    "sigmoid": _map("sigmoid(x[i,j])", "t.sigmoid(x)"),
    "tanh": _map("tanh(x[i,j])", "t.tanh(x)"),
    "exp": _map("exp(x[i,j])", "t.exp(x)"),
    "log": _map("log(x[i,j])", "t.log(x)", positive(x=(4, 3), c=(4, 3))),
    "log1p": _map("log1p(x[i,j])", "t.log1p(x)", positive(x=(4, 3), c=(4, 3))),
    "sin": _map("sin(x[i,j]) + cos(2 * x[i,j]) + tan(x[i,j])", "t.sin(x) + t.cos(2*x) + t.tan(x)"),
    "asin": _map(
        "asin(tanh(x[i,j])) + acos(0.5 * tanh(x[i,j])) + atan(x[i,j])",
        "t.asin(t.tanh(x)) + t.acos(0.5 * t.tanh(x)) + t.atan(x)",
    ),
    "sinh": _map("sinh(x[i,j]) + cosh(x[i,j])", "t.sinh(x) + t.cosh(x)"),
    "asinh": _map(
        "asinh(x[i,j]) + acosh(1.5 + exp(x[i,j])) + atanh(0.5 * tanh(x[i,j]))",
        "t.asinh(x) + t.acosh(1.5 + t.exp(x)) + t.atanh(0.5 * t.tanh(x))",
    ),
    "expm1": _map("expm1(x[i,j]) + trunc(x[i,j]) * x[i,j]", "t.expm1(x) + t.trunc(x) * x"),
    "log2": _map(
        "log2(x[i,j]) + log10(x[i,j])",
        "t.log2(x) + t.log10(x)",
        positive(x=(4, 3), c=(4, 3)),
    ),
    "isinf": _map("unless(isinf(x[i,j]), x[i,j])", "x"),
    "sqrt": _map("sqrt(x[i,j])", "t.sqrt(x)", positive(x=(4, 3), c=(4, 3))),
    "abs": _map("abs(x[i,j])", "t.abs(x)"),
    "abs at 0": _map("abs(x[i,j])", "t.abs(x)", small(x=(4, 3), c=(4, 3))),
    "neg": _map("-x[i,j]", "-x"),
    "square": _map("square(x[i,j])", "t.square(x)"),
    "reciprocal": _map("reciprocal(x[i,j])", "t.reciprocal(x)"),
    "sign": _map("sign(x[i,j]) * x[i,j]", "t.sign(x) * x"),
    "gelu": _map("gelu(x[i,j])", "F.gelu(x, approximate='tanh')"),
    "silu": _map("silu(x[i,j])", "F.silu(x)"),
    "softplus": _map("softplus(x[i,j])", "F.softplus(x)"),
    "erf": _map("x[i,j] * erf(x[i,j])", "x * t.erf(x)"),
    "floor": _map("x[i,j] - floor(x[i,j])", "x - t.floor(x)"),
    "ceil": _map("x[i,j] * ceil(x[i,j])", "x * t.ceil(x)"),
    "round": _map("x[i,j] * round(x[i,j])", "x * t.round(x)"),
    "normal_quantile": _map("normal_quantile(sigmoid(x[i,j]))", "t.special.ndtri(t.sigmoid(x))"),
    "isnan": _map("when(not isnan(x[i,j]), x[i,j])", "x"),
    "finite": _map("finite(x[i,j])", "x"),
    "one_if_zero": _map(
        "one_if_zero(x[i,j])",
        "t.where(x == 0, t.ones_like(x), x)",
        small(x=(4, 3), c=(4, 3)),
    ),
    "isfinite": _map("when(isfinite(x[i,j]), x[i,j])", "x"),
    "real": _map("real(x[i,j]) + imag(x[i,j]) + conj(x[i,j])", "2 * x"),
    "a power": _map("x[i,j] ^ 3 + x[i,j] ^ 2", "x ** 3 + x ** 2"),
    "a power at 0": _map("x[i,j] ^ 2", "x ** 2", small(x=(4, 3), c=(4, 3))),
    "a root": _map("x[i,j] ^ 0.5", "x ** 0.5", positive(x=(4, 3), c=(4, 3))),
    "a base": _map("2 ^ x[i,j]", "2 ** x"),
    "constants": _map("3 - 2 / (1 + x[i,j]) * 0.5", "3 - 2 / (1 + x) * 0.5"),
    "casts": _map("float64(bool(x[i,j])) * float64(x[i,j])", "x"),
}

COMBINES = {
    "mult": _pair("x[i,j] * y[j]", "x * y"),
    "add": _pair("x[i,j] + y[j]", "x + y"),
    "sub": _pair("x[i,j] - y[j]", "x - y"),
    "div": _pair("x[i,j] / y[j]", "x / y"),
    "pow": _pair("x[i,j] ^ y[j]", "x ** y", positive(x=(4, 3), y=(3,), c=(4, 3))),
    "pow at 0": _pair(
        "x[i,j] ^ y[j]",
        "x ** y",
        lambda rng: {
            "x": rng.integers(0, 3, size=(4, 3)) * 1.0,
            "y": np.array([1.0, 2.0, 3.0]),
            "c": rng.normal(size=(4, 3)),
        },
    ),
    "atan2": _pair("atan2(x[i,j], y[j])", "t.atan2(x, y.expand(x.shape))"),
    "hypot": _pair("hypot(x[i,j], y[j])", "t.hypot(x, y)"),
    "logaddexp": _pair("logaddexp(x[i,j], y[j])", "t.logaddexp(x, y)"),
    "copysign": _pair("copysign(x[i,j], y[j])", "t.copysign(x, y)"),
    "remainder": _pair(
        "remainder(x[i,j], y[j]) + floor_divide(x[i,j], y[j])",
        "t.remainder(x, y) + t.floor(x.detach() / y.detach())",
    ),
    "nextafter": _pair("nextafter(x[i,j], y[j]) * y[j]", "x * y"),
    "bits": _pair(
        "x[i,j] * bitwise_left_shift(bit_or(int64(y[j]), 2), bit_and(int64(x[i,j]), 3))",
        "x * ((y.long() | 2) << (x.long() & 3))",
    ),
    "min": _pair("min(x[i,j], y[j])", "t.minimum(x, y)"),
    "max": _pair("max(x[i,j], y[j])", "t.maximum(x, y)"),
    "min of equal ones": _pair(
        "min(x[i,j], y[j])", "t.minimum(x, y)", small(x=(4, 3), y=(3,), c=(4, 3))
    ),
    "max of equal ones": _pair(
        "max(x[i,j], y[j])", "t.maximum(x, y)", small(x=(4, 3), y=(3,), c=(4, 3))
    ),
    "comparisons": _pair(
        "(x[i,j] < y[j]) * x[i,j] + (x[i,j] >= y[j]) * y[j] + (x[i,j] != y[j]) * y[j]",
        "(x < y) * x + (x >= y) * y + (x != y) * y",
    ),
    "when": _pair("when(x[i,j] > 0, y[j])", "(x > 0) * y"),
    "unless": _pair("unless(x[i,j] > 0, y[j])", "(x <= 0) * y"),
    "where": _pair("where(x[i,j] > y[j], x[i,j], y[j] * 2)", "t.where(x > y, x, y * 2)"),
    "clip": _pair("clip(x[i,j], -0.5, 0.5) * y[j]", "t.clamp(x, -0.5, 0.5) * y"),
    "sparse_mult": _pair("sparse_mult(x[i,j], y[j])", "x * y"),
    "sparse_div": _pair("sparse_div(x[i,j], y[j])", "x / y"),
}

REDUCES = {
    "sum": _reduce("sum", "x.sum(1)"),
    "prod": _reduce("prod", "x.prod(1)"),
    "prod with zeros": _reduce("prod", "x.prod(1)", small(x=(8, 3), c=(8,))),
    "min": _reduce("min", "x.amin(1)"),
    "max": _reduce("max", "x.amax(1)"),
    "min of equal ones": _reduce("min", "x.amin(1)", small(x=(6, 5), c=(6,))),
    "max of equal ones": _reduce("max", "x.amax(1)", small(x=(6, 5), c=(6,))),
    "mean": _reduce("mean", "x.mean(1)"),
    "logsumexp": _reduce("logsumexp", "x.logsumexp(1)"),
    "count": _map("x[i,j] * count[j](x[i,j])", "x * 3"),
}

READS = {
    "a shift": Case(
        "d[i] = x[i+1] - x[i]; loss = sum[i](d[i] ^ 2)",
        "((x[1:] - x[:-1]) ** 2).sum()",
        ("x",),
        normal(x=(7,)),
    ),
    "neighbours": Case(
        "p[i] = x[i] * x[i+1]; loss = sum[i](p[i] ^ 2 + z[i]) + sum[i](x[i] * exp(x[i+2]))",
        "((x[:-1] * x[1:]) ** 2 + z).sum() + (x[:-2] * t.exp(x[2:])).sum()",
        ("x", "z"),
        normal(x=(6,), z=(5,)),
    ),
    "a part of an axis": Case(
        "loss = sum[i](x[i] * x[i+1] * y[i])",
        "(x[:3] * x[1:4] * y[:3]).sum()",
        ("x", "y"),
        normal(x=(6,), y=(4,)),
        {"i": 3},
    ),
    "outside": Case(
        "y[i] = x[~(i-2)]; loss = sum[i](y[i] * c[i])",
        "(x[:-2] * c[2:]).sum()",
        ("x",),
        normal(x=(7,), c=(7,)),
    ),
    "a convolution": Case(
        "y[i] += x[i+w] * k[w]; loss = sum[i](tanh(y[i]))",
        "t.tanh(x.unfold(0, 3, 1) @ k).sum()",
        ("x", "k"),
        normal(x=(8,), k=(3,)),
    ),
    "strides": Case(
        "y[i] = x[2*i+1]; loss = sum[i](y[i] ^ 3)",
        "(x[1::2] ** 3).sum()",
        ("x",),
        normal(x=(8,)),
    ),
    "a shape": Case(
        "y[i,j] = x[4*i+j]; loss = sum[i,j](y[i,j] ^ 2 * c[j])",
        "(x.reshape(2, 4) ** 2 * c).sum()",
        ("x",),
        normal(x=(8,), c=(4,)),
        {"i": 2},
    ),
    "digits": Case(
        "y[i] = x[i//4,i%4]; loss = sum[i](y[i] ^ 2 * c[i])",
        "(x.reshape(8) ** 2 * c).sum()",
        ("x",),
        normal(x=(2, 4), c=(8,)),
    ),
    "digits of a longer axis": Case(
        "y[i] = x[i//3,i%3]; loss = sum[i](y[i] ^ 2 * c[i])",
        "(x[:, :3].reshape(6) ** 2 * c).sum()",
        ("x",),
        normal(x=(2, 4), c=(6,)),
    ),
    "outside of what is the same everywhere": Case(
        "y[i] = x[i+2] * 3; loss = sum[i](y[i])", "x[2:].sum() * 3", ("x",), normal(x=(7,))
    ),
    "a diagonal": Case(
        "loss = sum[i](x[i,i] ^ 2)", "(t.diagonal(x) ** 2).sum()", ("x",), normal(x=(4, 4))
    ),
    "on a diagonal": Case(
        "d[i,i] = x[i]; loss = sum[i,j](d[i,k] * y[k,j])",
        "(t.diag(x) @ y).sum()",
        ("x", "y"),
        normal(x=(4,), y=(4, 3)),
    ),
    "a gather": Case(
        "y[i,k] = x[p[i],k]; loss = sum[i,k](y[i,k] ^ 2)",
        "(x[p.long()] ** 2).sum()",
        ("x",),
        lambda rng: {"x": rng.normal(size=(5, 2)), "p": np.array([0, 2, 2, 4, 1, 2])},
    ),
    "a band": Case(
        "y[i,w] = x[i,i+w] * c[w]; loss = sum[i,w](y[i,w] ^ 2)",
        "((x[t.arange(3)[:, None], t.arange(3)[:, None] + t.arange(2)] * c) ** 2).sum()",
        ("x", "c"),
        normal(x=(3, 4), c=(2,)),
    ),
    "an entry of each row": Case(
        "y[i,k] = x[i,p[i],k]; z[i] = x[q[i],p[i],i] * x[i,i+1,p[i]];"
        " loss = sum[i,k](y[i,k] ^ 2) + sum[i](z[i])",
        "(x[t.arange(3), p.long()] ** 2).sum()"
        " + (x[q.long(), p.long(), t.arange(3)] * x[t.arange(3), t.arange(1, 4), p.long()]).sum()",
        ("x",),
        lambda rng: {
            "x": rng.normal(size=(3, 4, 3)),
            "p": np.array([0, 2, 2]),
            "q": np.array([1, 1, 0]),
        },
    ),
    "a scatter": Case(
        "y[p[i]] += x[i]; loss = sum[p](y[p] ^ 2)",
        "(t.zeros(5, dtype=x.dtype).index_add(0, p.long(), x) ** 2).sum()",
        ("x",),
        lambda rng: {"x": rng.normal(size=6), "p": np.array([0, 2, 2, 4, 1, 2])},
    ),
    "a running sum": Case(
        "y[i,j] = cumsum[i](x[i,j]); loss = sum[i,j](y[i,j] ^ 2 * c[i])",
        "(x.cumsum(0) ** 2 * c[:, None]).sum()",
        ("x",),
        normal(x=(5, 2), c=(5,)),
    ),
    "a triangle": Case(
        "y[i,j] = when(i <= j, x[i] * x[j]); loss = sum[i,j](y[i,j])",
        "t.triu(t.outer(x, x)).sum()",
        ("x",),
        normal(x=(4,)),
    ),
}

PROGRAMS = {
    "product": Case(
        "y[i,k] += A[i,j] * B[j,k]; loss = sum[i,k](y[i,k] ^ 2)",
        "((A @ B) ** 2).sum()",
        ("A", "B"),
        normal(A=(3, 4), B=(4, 2)),
    ),
    "three factors": Case(
        "loss = A[i,j] * B[j,k] * C[k,i]",
        "t.trace(A @ B @ C)",
        ("A", "B", "C"),
        normal(A=(3, 4), B=(4, 2), C=(2, 3)),
    ),
    "an input twice": Case(
        "loss = sum[i,k](tanh(sum[j](A[i,j] * A[k,j])))",
        "t.tanh(A @ A.T).sum()",
        ("A",),
        normal(A=(4, 3)),
    ),
    "broadcast": Case(
        "loss = sum[i,j](x[i] + y[j])",
        "(x[:, None] + y).sum()",
        ("x", "y"),
        normal(x=(3,), y=(4,)),
    ),
    "softmax": Case(
        "m[i] = max[j](x[i,j]); e[i,j] = exp(x[i,j] - m[i]); p[i,j] = e[i,j] / sum[j](e[i,j]);"
        "loss = sum[i,j](p[i,j] * c[i,j])",
        "(t.softmax(x, 1) * c).sum()",
        ("x",),
        normal(x=(4, 3), c=(4, 3)),
    ),
    "cross entropy": Case(
        "z[i,k] += x[i,j] * W[j,k]; n[i] = logsumexp[k](z[i,k] + b[k]);"
        "loss = sum[i](n[i] - y[i,k] * (z[i,k] + b[k])) / 5",
        "-(t.log_softmax(x @ W + b, 1) * y).sum() / 5",
        ("W", "b"),
        lambda rng: {
            "x": rng.normal(size=(5, 3)),
            "W": rng.normal(size=(3, 4)),
            "b": rng.normal(size=4),
            "y": np.eye(4)[rng.integers(0, 4, size=5)],
        },
    ),
    "graph convolution": Case(
        "T[i,h] += A[i,j] * X[j,f] * W[f,h]; H[i,h] = relu(T[i,h]);"
        "O[i,c] += A[i,j] * H[j,h] * V[h,c]; loss = sum[i,c](O[i,c] ^ 2)",
        "((A @ t.relu(A @ X @ W) @ V) ** 2).sum()",
        ("A", "W", "V"),
        sparse("A", (6, 6), X=(6, 4), W=(4, 3), V=(3, 2)),
    ),
    "attention": Case(
        "Q[i,d] += X[i,f] * U[f,d]; K[i,d] += X[i,f] * V[f,d]; S[i,j] += Q[i,d] * K[j,d];"
        "P[i,j] = exp(S[i,j] - logsumexp[j](S[i,j])); O[i,f] += P[i,j] * X[j,f];"
        "loss = sum[i,f](O[i,f] * C[i,f])",
        "(t.softmax((X @ U) @ (X @ V).T, 1) @ X * C).sum()",
        ("X", "U", "V"),
        normal(X=(5, 3), U=(3, 2), V=(3, 2), C=(5, 3)),
    ),
    "graph attention": Case(
        "H[i,h] += X[i,f] * W[f,h]; s[i] += H[i,h] * a[h]; r[i] += H[i,h] * b[h];"
        "e[i,j] = when(A[i,j] != 0, exp(leaky_relu(s[i] + r[j])));"
        "p[i,j] = e[i,j] / (sum[j](e[i,j]) + 1e-9); O[i,h] += p[i,j] * H[j,h];"
        "loss = sum[i,h](tanh(O[i,h]))",
        "(lambda H: (lambda e: t.tanh(e / (e.sum(1, keepdim=True) + 1e-9) @ H).sum())("
        "(A != 0) * t.exp(F.leaky_relu((H @ a)[:, None] + H @ b, 0.01))))(X @ W)",
        ("X", "W", "a", "b"),
        sparse("A", (6, 6), X=(6, 3), W=(3, 2), a=(2,), b=(2,)),
    ),
    "min-plus": Case(
        "D[i,j] min= A[i,k] + A[k,j]; loss = sum[i,j](D[i,j] * c[j])",
        "((A[:, :, None] + A[None]).amin(1) * c).sum()",
        ("A",),
        normal(A=(4, 4), c=(4,)),
    ),
    "a mean of squares": Case(
        "p[i] += x[i,j] * w[j]; loss = mean[i](square(p[i] - y[i]))",
        "((x @ w - y) ** 2).mean()",
        ("w", "x"),
        normal(x=(6, 3), w=(3,), y=(6,)),
    ),
    "factors": Case(
        "loss = sum[u,v](when(M[u,v] != 0, square(M[u,v] - sum[k](P[u,k] * Q[v,k]) - b[u])))",
        "((M != 0) * (M - P @ Q.T - b[:, None]) ** 2).sum()",
        ("P", "Q", "b"),
        sparse("M", (6, 5), P=(6, 2), Q=(5, 2), b=(6,)),
    ),
    "nothing of it": Case(
        "loss = sum[i](x[i]); y[i] = z[i]",
        "x.sum() + 0 * z.sum()",
        ("x", "z"),
        normal(x=(3,), z=(2,)),
    ),
}

CASES = {
    f"{kind}: {name}": case
    for kind, cases in (
        ("map", MAPS),
        ("combine", COMBINES),
        ("reduce", REDUCES),
        ("read", READS),
        ("program", PROGRAMS),
    )
    for name, case in cases.items()
}


def inputs_of(name: str) -> dict[str, Array]:
    """The inputs of a case, which its name tells."""
    seed = list(name.encode())
    return CASES[name].inputs(np.random.default_rng(seed))
