"""Small programs: the times of compiling, of running, and of the overhead.

NumPy computes each of them in a few milliseconds. So the times are those of DuckDB's planner and of
ucle's overhead, statement by statement.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio

Arrays = dict[str, Any]
STEPS_OF_GRU, STEPS_OF_DESCENT = 30, 50


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


# ---- Programs ----


@dataclass(frozen=True)
class Small:
    """A program in both forms: `compiled` compiles it, `run` runs that, `numpy` computes it."""

    name: str
    compiled: Callable[[duckdb.DuckDBPyConnection], Any]
    run: Callable[[Any], np.ndarray]
    numpy: Callable[[], np.ndarray]


def gru() -> Small:
    """A recurrent unit of 32 states over 30 steps of 16 sequences, all steps in one program."""
    rng = np.random.default_rng(0)
    inputs: Arrays = {"X": rng.normal(size=(STEPS_OF_GRU, 16, 8)), "h": np.zeros((16, 32))}
    inputs |= {f"W{g}": rng.normal(size=(8, 32)) / 3 for g in "zrn"}
    inputs |= {f"U{g}": rng.normal(size=(32, 32)) / 6 for g in "zrn"}

    def step(t: int, h: str) -> str:
        given = {g: f"sum[k](X[{t},b,k] * W{g}[k,j])" for g in "zrn"}
        kept = {g: f"sum[i]({h}[b,i] * U{g}[i,j])" for g in "zrn"}
        return f"""
        z{t}[b,j] = sigmoid({given["z"]} + {kept["z"]})
        r{t}[b,j] = sigmoid({given["r"]} + {kept["r"]})
        n{t}[b,j] = tanh({given["n"]} + r{t}[b,j] * {kept["n"]})
        h{t}[b,j] = (1 - z{t}[b,j]) * n{t}[b,j] + z{t}[b,j] * {h}[b,j]
        """

    text = "\n".join(step(t, f"h{t - 1}" if t else "h") for t in range(STEPS_OF_GRU))

    def numpy() -> np.ndarray:
        h = inputs["h"]
        for x in inputs["X"]:
            z, r = (_sigmoid(x @ inputs[f"W{g}"] + h @ inputs[f"U{g}"]) for g in "zr")
            n = np.tanh(x @ inputs["Wn"] + r * (h @ inputs["Un"]))
            h = (1 - z) * n + z * h
        return h

    return Small(f"GRU, {STEPS_OF_GRU} steps", *_executed(text, inputs), numpy)


def attention() -> Small:
    """Self-attention of 4 heads of 16 features, over 64 positions of 64 features."""
    rng = np.random.default_rng(1)
    inputs: Arrays = {"X": rng.normal(size=(64, 64))}
    inputs |= {name: rng.normal(size=(64, 4, 16)) / 8 for name in ("WQ", "WK", "WV")}
    inputs["WO"] = rng.normal(size=(4, 16, 64)) / 8
    text = """
    Q[i,h,d] = sum[f](X[i,f] * WQ[f,h,d])
    K[i,h,d] = sum[f](X[i,f] * WK[f,h,d])
    V[i,h,d] = sum[f](X[i,f] * WV[f,h,d])
    S[h,i,j] = sum[d](Q[i,h,d] * K[j,h,d]) / 4
    P[h,i,j] = exp(S[h,i,j] - logsumexp[j](S[h,i,j]))
    H[i,h,d] = sum[j](P[h,i,j] * V[j,h,d])
    out[i,f] = sum[h,d](H[i,h,d] * WO[h,d,f])
    """

    def numpy() -> np.ndarray:
        q, k, v = (np.tensordot(inputs["X"], inputs[name], 1) for name in ("WQ", "WK", "WV"))
        scores = np.einsum("ihd,jhd->hij", q, k) / 4
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        heads = np.einsum("hij,jhd->ihd", weights, v)
        return np.tensordot(heads, inputs["WO"], 2)

    return Small("attention of 4 heads", *_executed(text, inputs), numpy)


def logistic() -> Small:
    """Gradient descent of a logistic regression: 500 rows of 10 features, 50 steps in a loop."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(500, 10))
    y = (x @ rng.normal(size=10) + rng.logistic(size=500) > 0) * 1.0
    text = """
    score[i] = sum[k](x[i,k] * w[k])
    loss = mean[i](softplus(score[i]) - y[i] * score[i]) + 0.01 * sum[k](square(w[k]))
    """

    def compiled(connection: duckdb.DuckDBPyConnection) -> Any:
        inputs = {"x": x, "y": y, "w": ucle.parameter(np.zeros(10))}
        program = ucle.einsum_program(text, inputs=inputs, database=connection)
        return program.minimize("loss", "w", ucle.optim.sgd(0.5)).prepare()

    def run(step: Any) -> np.ndarray:
        step(w=np.zeros(10))
        for _ in range(STEPS_OF_DESCENT - 1):
            step()
        return np.asarray(step.state["w"].to_numpy())

    def numpy() -> np.ndarray:
        w = np.zeros(10)
        for _ in range(STEPS_OF_DESCENT):
            w = w - 0.5 * (x.T @ (_sigmoid(x @ w) - y) / 500 + 0.02 * w)
        return w

    return Small(f"logistic regression, {STEPS_OF_DESCENT} steps", compiled, run, numpy)


def _executed(
    text: str, inputs: Mapping[str, Any]
) -> tuple[Callable[[Any], Any], Callable[[Any], np.ndarray]]:
    """Return functions that compile and run a program with one output."""

    def compiled(connection: duckdb.DuckDBPyConnection) -> Any:
        return ucle.einsum_program(text, inputs=inputs, database=connection)

    def run(program: Any) -> np.ndarray:
        (output,) = program.outputs
        with program.execute() as result:
            return np.asarray(result[output].to_numpy())

    return compiled, run


def _program_row(small: Small, rounds: int) -> Sequence[str]:
    with ucle.connect(threads=THREADS) as connection:
        started, again = [], []
        for _ in range(min(rounds, 5)):
            ucle.clear_caches()
            for seconds in (started, again):
                start = time.perf_counter()
                program = small.compiled(connection)
                seconds.append(time.perf_counter() - start)
        expected = small.numpy()

        def check(side: str, found: np.ndarray) -> None:
            expect_close(f"{small.name}, {side}", found, expected, 1e-9)

        sides = {"ucle": lambda: small.run(program), "NumPy": small.numpy}
        times = race(sides, rounds, check)
    return (
        small.name,
        f"{1e3 * median(started):.0f}",
        f"{1e3 * median(again):.0f}",
        f"{1e3 * times['ucle']:.1f}",
        f"{1e3 * times['NumPy']:.2f}",
        ratio(times["ucle"] / times["NumPy"]),
    )


def _program_rows(rounds: int) -> Iterator[Sequence[str]]:
    for small in (gru(), attention(), logistic()):
        yield _program_row(small, rounds)


PROGRAMS = Table(
    "small_programs",
    "Small programs",
    "Compilation and execution are measured separately. `again` is the time to compile the\n"
    "same program once more. Compiled programs run on arrays from memory.",
    ("program", "compile, ms", "again, ms", "run, ms", "NumPy, ms", "run / NumPy"),
    _program_rows,
)

# ---- One execution of a program of three vertices on 100 rows ----

TEXT = "T[i] += A[i,j] * x[j]; S[j] += A[i,j] * T[i]; Z[j] = tanh(S[j] - x[j])"
REPEATS = 20
"""Executions that are timed together, as one is short."""


def _make_tables(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("""
        CREATE TABLE A AS
        SELECT range % 10 AS i, range // 10 AS j, 1.0 + range % 3 AS v FROM range(100);
        CREATE TABLE x AS SELECT range AS j, range / 10 AS v FROM range(10)
    """)


def bare(
    connection: duckdb.DuckDBPyConnection, program: ucle.EinsumProgram, *, read: bool = False
) -> Callable[[], None]:
    """Return a function that runs the statements of a program by hand, and drops their tables."""
    script = [x.query for x in connection.extract_statements(program.to_sql())]
    creates = [x for x in script if "CREATE TEMPORARY TABLE" in x]

    def run() -> None:
        for statement in creates:
            connection.execute(statement).fetchall()
        for name in program.outputs:
            if read:
                connection.execute(f'FROM "{name}"').fetchnumpy()
            connection.execute(f'DROP TABLE "{name}"').fetchall()

    return run


def _sides(
    where: str, connection: duckdb.DuckDBPyConnection, held: list[Any]
) -> Mapping[str, Callable[[], Any]]:
    program = ucle.einsum_program(TEXT, A="A", x="x", database=connection)
    prepared = program.prepare(carry={"x": "Z"})
    prepared()

    def read() -> np.ndarray:
        with program.execute() as result:
            return np.asarray(result["Z"].to_numpy())

    held.append(prepared)
    return {
        f"bare SQL, {where}": bare(connection, program),
        f"bare SQL and fetchnumpy, {where}": bare(connection, program, read=True),
        f"execute, {where}": lambda: program.execute().close(),
        f"execute and to_numpy, {where}": read,
        f"execute, {where}, others between": lambda: (
            connection.execute("SELECT 42").fetchall(),
            program.execute().close(),
        ),
        f"prepared, {where}": prepared,
    }


def _execution_rows(rounds: int) -> Iterator[Sequence[str]]:
    held: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        path, other = (str(Path(folder) / name) for name in ("open.duckdb", "closed.duckdb"))
        memory, file = (ucle.connect(name, threads=THREADS) for name in (":memory:", path))
        for connection in (memory, file):
            _make_tables(connection)
        with ucle.connect(other) as connection:
            _make_tables(connection)
        by_path = ucle.einsum_program(TEXT, A="A", x="x", database=other)
        A, x = np.random.default_rng(0).normal(size=(2, 10, 10))
        alone = ucle.einsum_program(TEXT, A=A, x=x[0])
        sides = {
            **_sides("in memory", memory, held),
            **_sides("in an open file", file, held),
            "execute, a file by its path": lambda: by_path.execute().close(),
            "execute, arrays alone": lambda: alone.execute().close(),
            "ucle.einsum of two matrices": lambda: ucle.einsum("ij,jk->ik", A, x),
        }
        measured = _measured(sides, rounds)
        held.clear()
        memory.close()
        file.close()
    for name, (wall, processor) in measured.items():
        where = "an open file" if "file" in name else "memory"
        reads = " and fetchnumpy" if " and " in name else ""
        base = measured[f"bare SQL{reads}, in {where}"][1]
        yield name, f"{wall:.2f}", f"{processor:.2f}", ratio(processor / base)


def _measured(
    sides: Mapping[str, Callable[[], Any]], rounds: int
) -> dict[str, tuple[float, float]]:
    """Measure milliseconds of one call of each side, by clock and processor: medians."""
    taken: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    for number in range(rounds + 1):
        for side, run in sides.items():
            start = time.perf_counter(), time.process_time()
            for _ in range(REPEATS):
                run()
            wall, processor = time.perf_counter() - start[0], time.process_time() - start[1]
            if number:
                taken[side].append((1e3 * wall / REPEATS, 1e3 * processor / REPEATS))
    return {
        side: (median(x for x, _ in both), median(x for _, x in both))
        for side, both in taken.items()
    }


EXECUTIONS = Table(
    "executions",
    "One execution of a small program",
    f"`{TEXT}` on\n"
    f"100 rows, executed {REPEATS} times in a row. `ms` is elapsed time; the ratios are\n"
    "those of processor times. Bare SQL runs the statements from `to_sql()` and drops their\n"
    "tables. In the rows with `others between`, another statement runs between two\n"
    "executions, and ucle therefore checks the tables again. Goals: at most 1.3 times bare\n"
    "SQL, whether the result is read or not, and at most 5 ms for `ucle.einsum`.",
    ("", "ms", "processor, ms", "times bare SQL"),
    _execution_rows,
)
