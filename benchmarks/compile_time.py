"""The growth of compile time with the size of programs, and compile times of deep and long ones.

A chain and a wide program are written once for each size, and the time for twice as many vertices
is divided by that for half as many: linear growth keeps the ratio near 2. The others are single
programs: statements that merge into one product of many factors, nested calls, a circuit.

    python -m benchmarks.run compile_time --rounds 3
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp

import ucle
from benchmarks.measure import Table, ratio

SIZES = (500, 1000, 2000, 4000)

Case = tuple[str, Mapping[str, Any]]
"""The text of a program and its inputs."""


def chain(statements: int) -> Case:
    """A chain: each statement reads the one before: products, functions and sums in turn."""
    forms = "T{n}[i] = T{m}[i] + Y[i]", "T{n}[i] = T{m}[i] * Y[i]", "T{n}[i] = relu(T{m}[i])"
    lines = [forms[n % 3].format(n=n, m=n - 1) for n in range(1, statements)]
    return "\n".join(["T0[i] = relu(X[i])", *lines]), {"X": np.arange(5.0), "Y": np.ones(5)}


def wide(statements: int) -> Case:
    """A wide program: a quarter of the statements is read by two others each."""
    lines = []
    for n in range(statements // 4):
        lines += [
            f"S{n}[i,j] = X[i,j] * {n}.5",
            f"A{n}[i] += S{n}[i,j] * u[j]",
            f"B{n}[j] += S{n}[i,j] * v[i]",
            f"C{n} += A{n}[i] * v[i]",
        ]
    random = np.random.default_rng(0)
    return "\n".join(lines), {"X": random.random((5, 4)), "u": np.ones(4), "v": np.ones(5)}


def searched(statements: int) -> Case:
    """The chain over a sparse matrix, in which every vertex has decompositions to choose from."""
    forms = "T{n}[i,k] = relu(T{m}[i,k])", "T{n}[i,k] += A[i,j] * T{m}[j,k]"
    lines = [forms[n % 2].format(n=n, m=n - 1) for n in range(1, statements)]
    graph = sp.random_array((1000, 1000), density=0.005, rng=np.random.default_rng(0), format="coo")
    return "\n".join(["T0[i,k] = relu(X[i,k])", *lines]), {"A": graph, "X": np.ones((1000, 16))}


def gated(statements: int) -> Case:
    """A state that each step reads three times, and that is zero at first: it may be a mask."""
    forms = (
        "g{n}[i,k] = sigmoid(sum[j](h{m}[j,k] * U[i,j]))",
        "c{n}[i,k] = tanh(X[i,k] * g{n}[i,k] + h{m}[i,k])",
        "h{n}[i,k] = (1 - g{n}[i,k]) * c{n}[i,k] + g{n}[i,k] * h{m}[i,k]",
    )
    lines = [forms[k % 3].format(n=k // 3 + 1, m=k // 3) for k in range(statements)]
    random = np.random.default_rng(0)
    inputs = {"X": np.ones((16, 32)), "U": random.random((16, 16)), "h0": np.zeros((16, 32))}
    return "\n".join(lines), inputs


def product(factors: int) -> Case:
    """One product of small matrices, which may be joined in any order."""
    random = np.random.default_rng(0)
    names = [f"M{n}" for n in range(factors)]
    text = " * ".join(f"{name}[i{n},i{n + 1}]" for n, name in enumerate(names))
    return f"T[i0,i{factors}] += {text}", {name: random.random((3, 3)) for name in names}


def pagerank(iterations: int) -> Case:
    """Statements that merge into one product of a matrix with itself, repeated."""
    lines = [f"y{n + 1}[i] += A[i,j] * y{n}[j]" for n in range(iterations)]
    graph = sp.random_array((100, 100), density=0.05, rng=np.random.default_rng(0), format="coo")
    return "\n".join(lines), {"A": graph, "y0": np.ones(100)}


def calls(deep: int) -> Case:
    """One statement of nested calls."""
    return f"T[i] = {'relu(' * deep}X[i]{')' * deep}", {"X": np.arange(3.0)}


def fourier(qubits: int) -> Case:
    """The quantum Fourier transform of a state, gate by gate."""
    state = np.zeros((2,) * qubits, dtype=np.complex128)
    state[(0,) * qubits] = 1
    inputs: dict[str, Any] = {"s0": state, "h": np.array([[1, 1], [1, -1]]) / np.sqrt(2) + 0j}
    for apart in range(1, qubits):
        phases = np.array([1, 1, 1, np.exp(1j * np.pi / 2**apart)])
        inputs[f"p{apart}"] = np.diag(phases).reshape((2,) * 4)
    before = [f"q{n}" for n in range(qubits)]
    lines, number = [], count()
    for one in range(qubits):
        for other in range(one, qubits):
            at = sorted({one, other})
            after = [f"a{n}" if n in at else name for n, name in enumerate(before)]
            gate = "h" if one == other else f"p{other - one}"
            labels = ",".join([*(after[n] for n in at), *(before[n] for n in at)])
            n = next(number)
            lines.append(
                f"s{n + 1}[{','.join(after)}] = s{n}[{','.join(before)}] * {gate}[{labels}]"
            )
    return "\n".join(lines), inputs


SERIES: Mapping[str, Callable[[int], Case]] = {
    "chain": chain,
    "wide": wide,
    "searched": searched,
    "gated": gated,
}
SINGLE: Mapping[str, tuple[Callable[[int], Case], int]] = {
    "product of 60 factors": (product, 60),
    "80 iterations of y = A x": (pagerank, 80),
    "500 calls in calls": (calls, 500),
    "Fourier transform of 18 qubits": (fourier, 18),
}


def seconds(case: Case, rounds: int) -> tuple[int, float, float]:
    """Vertices, and processor seconds to compile a program and to write its SQL: medians."""
    text, inputs = case
    compiling, writing = [], []
    for _ in range(rounds):
        ucle.clear_caches()
        start = time.process_time()
        program = ucle.einsum_program(text, inputs=inputs)
        compiled = time.process_time()
        program.to_sql()
        compiling.append(compiled - start)
        writing.append(time.process_time() - compiled)
    vertices = len(program.compiled.program.vertices)
    return vertices, statistics.median(compiling), statistics.median(writing)


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for case in (chain(10), pagerank(3)):
        seconds(case, 1)  # one-time imports and set-up are not counted
    for name, make in SERIES.items():
        before: tuple[float, float] | None = None
        for size in SIZES:
            vertices, *times = seconds(make(size), rounds)
            ratios = [ratio(x / y) for x, y in zip(times, before, strict=True)] if before else ()
            compiling, writing = ratios or ("", "")
            yield name, str(vertices), f"{times[0]:.2f}", compiling, f"{times[1]:.2f}", writing
            before = times[0], times[1]
    for name, (make, size) in SINGLE.items():
        vertices, compiling_time, writing_time = seconds(make(size), rounds)
        yield name, str(vertices), f"{compiling_time:.2f}", "", f"{writing_time:.2f}", ""


TABLE = Table(
    "compile_time",
    "Compile time as programs grow",
    "Processor seconds of this process (`time.process_time`), because other processes may\n"
    "use the machine; inputs are in memory. `twice as many` is the time divided by the time\n"
    "for half as many vertices. Goals: at most 2.2 for this ratio; at most 1 s for a\n"
    "product of 60 factors; at most 0.3 s for 80 iterations.",
    ("program", "vertices", "compile, s", "twice as many", "SQL, s", "twice as many"),
    _rows,
)
