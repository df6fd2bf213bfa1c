"""Fits the constants of the cost model to this machine: `ucle calibrate`.

The model (`ucle.plan.prices`) is linear in its constants. So a few small programs are run under
pinned decompositions, each with another mix of work; what a plan costs under a profile that has a
single constant is how often that constant is charged, and non-negative least squares over the
relative errors gives the constants that explain the times best. What the programs hardly tell is
held near the built-in profile.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np

from ucle.database.open_sessions import connect
from ucle.explain.columns import align_rows
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa, scipy_module
from ucle.foundation.progress import Progress, Watch
from ucle.inputs.sparse_arrays import is_sparse
from ucle.inputs.table_options import table
from ucle.pipeline.replan import costed_program
from ucle.plan.prices import ENGINE, Profile
from ucle.program import EinsumProgram, einsum_program

CHARGED = (
    "fixed", "group", "transfer", "read", "write", "fresh", "call", "made", "state", "flop", "gemm",
    "dot", "scan", "position", "differs", "near", "far", "step", "view",
)  # fmt: skip
"""Constants that the cost of a plan is made of."""

CONSTANTS = (*CHARGED, "statement")
"""The constants that are fitted; `statement` is a plan's fixed cost."""

LINEAR = replace(ENGINE, spread=math.inf)
"""The built-in profile without what is not linear in its constants: threads that wait."""

HELD = 0.3
"""The weight of an error of 100% in a constant, relative to one of 100% in the time of a plan."""

Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class Probe:
    """One small program under one decomposition."""

    name: str
    text: str
    decomposition: Mapping[str, list[str]]
    inputs: Callable[[np.random.Generator], Inputs]


@dataclass(frozen=True)
class Calibration:
    """A fitted profile, and for each probe the seconds measured and predicted with it."""

    profile: Profile
    measured: Mapping[str, float]
    predicted: Mapping[str, float]


def calibrate(
    threads: int | None = None, rounds: int = 3, watch: Watch | None = None
) -> Calibration:
    """Measure this machine; takes less than twenty seconds where nothing else runs.

    Args:
        threads: of DuckDB, whose default it is otherwise.
        rounds: runs of each probe, of which the median counts.
        watch: receives the next probe.

    Raises:
        MissingPackageError: scipy is not installed.
    """
    scipy_module("scipy.optimize", "calibrate")  # at once, and not when all is measured
    charged, seconds = [], {}
    settings: dict[str, Any] = {} if threads is None else {"threads": threads}
    with connect(**settings) as connection:
        for number, probe in enumerate(PROBES, 1):
            if watch is not None:
                watch(Progress(probe.name, number, len(PROBES)))
            program = _prepare(connection, probe)
            charged.append(_charges(program))
            seconds[probe.name] = _median_time(program, connection, rounds)
    return fit(np.array(charged), seconds)


def fit(charges: np.ndarray[Any, Any], seconds: Mapping[str, float]) -> Calibration:
    """The constants that explain measured times.

    Args:
        charges: for each probe how often each of `CONSTANTS` is charged.
        seconds: the time of each probe, in the same order.
    """
    nnls = scipy_module("scipy.optimize", "calibrate").nnls
    builtin = np.array([getattr(ENGINE, name) for name in CONSTANTS])
    nanoseconds = 1e9 * np.array(list(seconds.values()))
    relative = charges * builtin / nanoseconds[:, None]
    held = HELD * np.eye(len(CONSTANTS))
    target = np.concatenate([np.ones(len(relative)), np.full(len(CONSTANTS), HELD)])
    factors, _ = nnls(np.vstack([relative, held]), target)
    fitted: dict[str, Any] = dict(zip(CONSTANTS, (factors * builtin).tolist(), strict=True))
    predicted = dict(zip(seconds, relative @ factors * nanoseconds / 1e9, strict=True))
    return Calibration(replace(ENGINE, name="machine", **fitted), dict(seconds), predicted)


def report(calibration: Calibration) -> list[str]:
    """Format the constants and the times of the probes as lines of text."""
    rows: list[tuple[str, ...]] = [("constant", "built in", "here")]
    for name in CONSTANTS:
        pair = (getattr(profile, name) for profile in (ENGINE, calibration.profile))
        rows.append((name, *(f"{value:.3g}" for value in pair)))
    probes: list[tuple[str, ...]] = [("probe", "ms", "predicted")]
    for name, seconds in calibration.measured.items():
        probes.append((name, f"{1000 * seconds:.1f}", f"{1000 * calibration.predicted[name]:.1f}"))
    return ["Constants in nanoseconds", *align_rows(rows), "", "Probes", *align_rows(probes)]


# ---- Probes ----


def _sparse(rng: np.random.Generator, rows: int, columns: int, entries: int) -> Any:
    """A matrix with about so many entries, anywhere."""
    places = rng.integers(0, [[rows], [columns]], size=(2, entries))
    coordinates = np.unique(places, axis=1)
    placed = rng.random(coordinates.shape[1]), tuple(coordinates)
    return scipy_module("scipy.sparse", "calibrate").coo_array(placed, shape=(rows, columns))


def _graph_and_rows(entries: int, width: int) -> Callable[[np.random.Generator], Inputs]:
    return lambda rng: {
        "A": _sparse(rng, 20_000, 20_000, entries),
        "H": rng.random((20_000, width)),
    }


PROBES = (
    *(
        Probe(
            f"sums of rows of {width}",
            "Z[i,k] += A[i,j] * H[j,k]",
            {"Z": ["i", "j"]},
            _graph_and_rows(entries, width),
        )
        for width, entries in ((8, 400_000), (64, 400_000), (256, 100_000))
    ),
    Probe(
        "sums of numbers",
        "z[i] += A[i,j] * x[j]",
        {"z": ["i", "j"]},
        lambda rng: {"A": _sparse(rng, 20_000, 20_000, 400_000), "x": rng.random(20_000)},
    ),
    Probe(
        "products of entries",
        "Z[i,j] = A[i,j] * B[i,j]",
        {"Z": ["i", "j"]},
        lambda rng: {
            "A": _sparse(rng, 1000, 1000, 300_000),
            "B": _sparse(rng, 1000, 1000, 300_000),
        },
    ),
    Probe(
        "products of rows",
        "z[i] += X[i,k] * Y[i,k]",
        {"z": ["i"]},
        lambda rng: {"X": rng.random((40_000, 128)), "Y": rng.random((40_000, 128))},
    ),
    Probe(
        "products of all rows",
        "Z[i,j] += X[i,k] * Y[j,k]",
        {"Z": ["i", "j"]},
        lambda rng: {"X": rng.random((300, 1500)), "Y": rng.random((200, 1500))},
    ),
    Probe(
        "a dense layer",
        "Z[i,n] += X[i,m] * W[m,n]",
        {"Z": ["i"]},
        lambda rng: {"X": rng.random((40_000, 64)), "W": rng.random((64, 128))},
    ),
    Probe(
        "a product of matrices",
        "Z[i,k] += X[i,j] * Y[j,k]",
        {"Z": []},
        lambda rng: {"X": rng.random((1000, 1000)), "Y": rng.random((1000, 1000))},
    ),
    Probe(
        "a map of rows",
        "Z[i,k] = relu(H[i,k])",
        {"Z": ["i"]},
        lambda rng: {"H": rng.random((40_000, 128))},
    ),
    Probe(
        "a map of long rows",
        "Z[i,k] = relu(H[i,k])",
        {"Z": ["i"]},
        lambda rng: {"H": rng.random((40, 1 << 17))},
    ),
    Probe(
        "entries stacked into rows",
        "Z[i,k] = relu(A[i,k])",
        {"Z": ["i"]},
        lambda rng: {"A": _sparse(rng, 20_000, 64, 400_000)},
    ),
    Probe(
        "many groups",
        "Z[i,k] += A[i,j] * B[j,k]",
        {"Z": ["i", "j", "k"]},
        lambda rng: {
            "A": _sparse(rng, 20_000, 20_000, 100_000),
            "B": _sparse(rng, 20_000, 20_000, 100_000),
        },
    ),
    Probe(
        "entries stacked into long rows",
        "Z[i,k] = relu(A[i,k])",
        {"Z": ["i"]},
        lambda rng: {"A": _sparse(rng, 2000, 2000, 50_000)},
    ),
    Probe(
        "rows taken apart",
        "Y[i,k] = relu(H[i,k])\nZ[i,k] = relu(Y[i,k])",
        {"Y": ["i"], "Z": ["i", "k"]},
        lambda rng: {"H": _sparse(rng, 20_000, 64, 40_000).toarray()},
    ),
    Probe(
        "small repartitions",
        "B[i,k] = relu(A[i,k])\nC[i,k] = relu(B[i,k])\n"
        "D[i,k] = relu(C[i,k])\nE[i,k] = relu(D[i,k])",
        {"B": [], "C": ["i", "k"], "D": [], "E": ["i", "k"]},
        lambda rng: {"A": rng.random((8, 8))},
    ),
    Probe("next to nothing", "z[i] = relu(x[i])", {"z": []}, lambda rng: {"x": rng.random(8)}),
)


def _prepare(connection: duckdb.DuckDBPyConnection, probe: Probe) -> EinsumProgram:
    """A probe whose sparse inputs are tables, as users' are."""
    inputs = dict(probe.inputs(np.random.default_rng(0)))
    for name, value in inputs.items():
        if is_sparse(value):
            columns = dict(zip("ij", value.coords, strict=True)) | {"v": value.data}
            connection.register("probe", pa.table(columns))
            connection.execute(f"CREATE OR REPLACE TABLE probe_{name} AS FROM probe").fetchall()
            connection.unregister("probe")
            inputs[name] = table(f"probe_{name}", ["i", "j"], "v", bounds=value.shape)
    return einsum_program(
        probe.text,
        database=connection,
        decomposition=probe.decomposition,
        inputs=inputs,
        profile=LINEAR,
    )


def _charges(program: EinsumProgram) -> list[float]:
    """Count how often a plan is charged each constant, and add 1 for its statement.

    Where the model takes the cheaper of two ways (`ucle.optimiser.pricing`, to exchange keys), it
    is no longer linear: a profile of one constant may take the other way. Probes must leave no
    choice.
    """
    chosen, charges = program.compiled.decomposed.decompositions, []
    for name in CHARGED:
        alone: dict[str, Any] = dict.fromkeys(CONSTANTS, 0.0) | {name: 1.0}
        options = replace(program.options, profile=replace(LINEAR, **alone))
        charges.append(costed_program(program.compiled, options).total(chosen))
    total = sum(getattr(ENGINE, name) * x for name, x in zip(CHARGED, charges, strict=True))
    if not math.isclose(total, program.cost, rel_tol=1e-9):
        raise AssertionError(f"the cost of a probe is not linear: {total:g}, not {program.cost:g}")
    return [*charges, 1.0]


def _median_time(
    program: EinsumProgram, connection: duckdb.DuckDBPyConnection, rounds: int
) -> float:
    """Seconds of an execution; the first one is not counted."""
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        result = program.execute(connection)
        times.append(time.perf_counter() - start)
        result.close()
    return statistics.median(times[1:])
