"""Random programs in processes that may take 0.3 to 3 times the memory that is predicted for them.

    python -m benchmarks.memory_limits --programs 150
    python -m benchmarks.memory_limits --programs 40 --by cgroup

Each program runs in a process of its own: once where it may take so much more than it has when it
is compiled: of addresses (``ulimit -v``), or of memory in a control group, where Linux kills a
process that needs more; and once without a limit. It should give the same answer, or raise
MemoryLimitError before its first statement. Where it is refused, it runs without the check as it
was planned, and as it is planned for less memory, each in a new process, as allocators keep what an
attempt has freed: if one of these runs, it was refused wrongly. An error while it runs is late.
Sizes are in MB.
"""

from __future__ import annotations

import gc
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import scipy.sparse as sp

import ucle
from benchmarks import memory
from benchmarks.memory import Drawn
from benchmarks.peaks import MB, status
from benchmarks.stored import input_tables
from ucle.errors import MemoryLimitError
from ucle.foundation.free_memory import PER_THREAD, reserve_no_addresses
from ucle.pipeline import memory_check
from ucle.program import EinsumProgram

if TYPE_CHECKING:  # DuckDB reads its options when it is imported, after ucle
    import duckdb

THREADS = 2
SMALLEST, LARGEST = 50.0, 120.0
"""MB of the largest tensor of a program, without its intermediate results."""
LEAST, MOST = 0.3, 3.0
"""The limit as a factor on the prediction, drawn evenly by its logarithm."""
SLOWEST = 60
"""Seconds after which a process is ended."""
SLOW_FACTOR, SLOW_SECONDS = 10.0, 10.0
"""A run is slow if it takes so many times as long as without a limit, and so many seconds."""
UNRESERVED = 6 << 30
"""Bytes of addresses while the program is compiled: DuckDB must not reserve its memory limit."""
LESS = (1.0, 0.5, 0.25)
"""Shares of the free memory for which a refused program is planned again."""
GROUPS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
"""Where control groups of version 1 and of version 2 are made."""

DENSE = 5e7
"""Positions up to which a result is read as a dense array; more take longer than the programs."""

ANSWERS = "right", "refused", "refused wrongly", "late", "slow", "wrong", "killed", "failed"


def _pairs(rng: np.random.Generator, size: float) -> Drawn:
    """Draw a sparse product, whose groups are keys."""
    entries = int(size / 16)
    rows = int(rng.uniform(0.02, 0.2) * entries) + 1
    A, B = (
        sp.random_array((rows, rows), density=entries / 20 / rows / rows, rng=rng, format="csr")
        for _ in range(2)
    )
    return "Z[i,k] += A[i,j] * B[j,k]", {"A": A, "B": B}


def _entries(rng: np.random.Generator, size: float) -> Drawn:
    """Draw a sum of two sparse matrices, which is a full join, and its sums by rows."""
    entries = int(size / 24)
    rows = max(int(rng.uniform(1e3, 1e5)), math.isqrt(2 * entries))
    A, B = (
        sp.random_array((rows, rows), density=entries / rows / rows, rng=rng, format="csr")
        for _ in range(2)
    )
    return "S[i,j] = A[i,j] + B[i,j]; Z[j] max= S[i,j]", {"A": A, "B": B}


FAMILIES = (*memory.FAMILIES, _pairs, _entries)


def draw(seed: int) -> tuple[str, Drawn, float]:
    """Draw the name of a family, a program with its inputs, and the factor of its limit."""
    rng = np.random.default_rng(seed)
    factor = float(np.exp(rng.uniform(np.log(LEAST), np.log(MOST))))
    family = FAMILIES[int(rng.integers(len(FAMILIES)))]
    return (
        family.__name__.strip("_"),
        family(rng, float(rng.uniform(SMALLEST, LARGEST)) * MB),
        factor,
    )


@dataclass(frozen=True)
class Trial:
    """An execution under a limit: its error, or the sums of its outputs; and its seconds."""

    seconds: float
    error: MemoryLimitError | None = None
    sums: Mapping[str, float] | None = None


def run(seed: int, by: str, share: float | None = None) -> Iterator[dict[str, Any]]:
    """Run a program here under its limit; yield what comes out, each time more is known.

    Args:
        seed: the seed of the program and of the factor of its limit.
        by: what is limited.
        share: run it without the check, as it is planned for this share of what is free; 0 to run
            it as it was planned.
    """
    _, (text, inputs), factor = draw(seed)
    with ucle.connect(threads=THREADS) as connection:
        connection.execute("SET enable_progress_bar = false")
        tables = input_tables(connection, inputs)

        def compiled(**options: Any) -> EinsumProgram:
            return ucle.einsum_program(text, inputs=tables, database=connection, **options)

        # Threads and what they reserve are there before a program that matters.
        ucle.einsum_program("z = x[i] + 1", x=np.ones(9), database=connection).execute().close()
        program = compiled()
        predicted = program.compiled.peak_memory
        if by == "addresses":
            predicted += THREADS * PER_THREAD
        free = max(factor * predicted, memory_check.ALWAYS_FREE)
        found: dict[str, Any] = {"predicted": predicted / MB, "free": free / MB}
        if share is not None:
            memory_check.ALWAYS_FREE = math.inf
            other = compiled(memory_limit=int(share * free)) if share else program
            ran = try_under(by, free, other, connection)
            yield {**found, "seconds": ran.seconds, "kind": "late" if ran.error else "right"}
            return
        limited = try_under(by, free, program, connection)
        found["seconds"] = limited.seconds
        if limited.error is not None:
            kind = "refused" if _is_early(limited.error) else "late"
            yield {**found, "kind": kind, "why": limited.error.message}
            return
        always, memory_check.ALWAYS_FREE = memory_check.ALWAYS_FREE, math.inf
        plain = try_under("none", 0.0, program, connection)
        memory_check.ALWAYS_FREE = always
        assert limited.sums is not None
        assert plain.sums is not None
        close = all(np.isclose(limited.sums[x], y, rtol=1e-6) for x, y in plain.sums.items())
        slow = limited.seconds > max(SLOW_FACTOR * plain.seconds, SLOW_SECONDS)
        kind = ("slow" if slow else "right") if close else "wrong"
        yield {**found, "kind": kind, "why": f"{plain.seconds:.2f} without a limit"}


def try_under(
    by: str, free: float, program: EinsumProgram, connection: duckdb.DuckDBPyConnection
) -> Trial:
    """Execute a program where it may take so many more bytes."""
    _ = program.compiled.physical
    gc.collect()
    _limit(by, free)
    started = time.perf_counter()
    try:
        result = program.execute(connection)
    except MemoryLimitError as error:
        return Trial(time.perf_counter() - started, error)
    finally:
        _unlimit(by)
    seconds = time.perf_counter() - started
    with result:
        return Trial(seconds, sums={name: _sum(result[name]) for name in result})


def _sum(tensor: ucle.TensorRelation) -> float:
    dense = np.prod(tensor.shape) <= DENSE
    return float(np.nansum(tensor.to_numpy()) if dense else tensor.to_scipy().sum())


def _is_early(error: Exception) -> bool:
    return "needs more memory than is free" in str(error) or "no decomposition" in str(error)


def _limit(by: str, free: float) -> None:
    if by == "addresses":
        reserve_no_addresses()  # what Arrow would have reserved for the inputs
        most = int(status("VmSize") * MB + free)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    elif by == "cgroup":
        group = Path(os.environ["UCLE_GROUP"])
        used, limit = _files(group)
        (group / limit).write_text(str(int(int((group / used).read_text()) + free)))


def _unlimit(by: str, group: Path | None = None) -> None:
    if by == "addresses":
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    elif by == "cgroup":
        group = group or Path(os.environ["UCLE_GROUP"])
        (group / _files(group)[1]).write_text("-1" if "in_bytes" in _files(group)[1] else "max")


def _files(group: Path) -> tuple[str, str]:
    if (group / "memory.max").exists():
        return "memory.current", "memory.max"
    return "memory.usage_in_bytes", "memory.limit_in_bytes"


def make_group() -> Path | str:
    """Make a control group for a process, or say why there can be none."""
    reasons = []
    for top in GROUPS:
        group = top / f"ucle-memory-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            reasons.append(f"{top}: {error.strerror}")
            continue
        if (group / _files(group)[1]).exists():
            return group
        group.rmdir()
        reasons.append(f"{top}: no control of memory")
    return "; ".join(reasons)


def classify(seed: int, by: str, group: Path | None) -> dict[str, Any]:
    """Return what a program does under its limit; if it is refused, whether that is right."""
    found = in_its_own_process(seed, by, group)
    if found["kind"] != "refused":
        return found
    for share in (0.0, *LESS):
        if in_its_own_process(seed, by, group, share)["kind"] == "right":
            why = f"runs if planned for {share} of it" if share else "runs as planned"
            return {**found, "kind": "refused wrongly", "why": why}
    return {**found, "why": ""}


def in_its_own_process(
    seed: int, by: str, group: Path | None, share: float | None = None
) -> dict[str, Any]:
    """Return what `run` finds in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory_limits", "--one", str(seed), "--by", by]
    if share is not None:
        command += ["--share", str(share)]
    environment = dict(os.environ)
    if group is not None:
        environment["UCLE_GROUP"] = str(group)
        _unlimit("cgroup", group)  # one that was killed could not do so
        command = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *command]
    elif by == "addresses":  # as from a shell with a limit: DuckDB is imported within it
        command = ["sh", "-c", f'ulimit -Sv {UNRESERVED >> 10} && exec "$@"', "sh", *command]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            out, err = process.communicate(timeout=SLOWEST)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return json.loads(out.splitlines()[-1]) if out else {"kind": "slow"}
    if out:
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        return found
    if process.returncode < 0:
        return {"kind": "killed", "why": f"signal {-process.returncode}"}
    return {"kind": "failed", "why": (err.strip().splitlines() or ["no message"])[-1]}


@click.command()
@click.option("--programs", default=150, show_default=True, help="How many random programs.")
@click.option("--first", default=0, show_default=True, help="The seed of the first one.")
@click.option(
    "--by",
    type=click.Choice(["addresses", "cgroup", "none"]),
    default="addresses",
    show_default=True,
    help="What is limited.",
)
@click.option("--one", type=int, help="Run this one here, and print what is found.")
@click.option("--share", type=float, help="Run it unchecked, planned for this share of its limit.")
def main(programs: int, first: int, by: str, one: int | None, share: float | None) -> None:
    """Run random programs under limits, and print what comes of them."""
    if one is not None:
        for found in run(one, by, share):
            print(json.dumps(found), flush=True)
        return
    group = None
    if by == "cgroup":
        made = make_group()
        if isinstance(made, str):
            print(f"skipped: no control group can be made ({made})")
            return
        group = made
    counts: Counter[str] = Counter()
    print("     program      outcome          predicted   free  seconds")
    try:
        for seed in range(first, first + programs):
            found = classify(seed, by, group)
            counts[found["kind"]] += 1
            sizes = f"{found.get('predicted', 0):9.0f} {found.get('free', 0):6.0f}"
            figures = f"{sizes} {found.get('seconds', 0):8.2f} {found.get('why', '')[:120]}"
            print(f"{seed:4} {draw_name(seed):12} {found['kind']:16} {figures}", flush=True)
    finally:
        if group is not None:
            group.rmdir()
    print(", ".join(f"{counts[kind]} {kind}" for kind in ANSWERS if counts[kind]))
    wrongly = counts["refused wrongly"] / max(counts.total(), 1)
    sys.exit(bool(counts["killed"] or counts["failed"] or counts["wrong"] or wrongly > 0.02))


def draw_name(seed: int) -> str:
    """Return the family of a random program."""
    rng = np.random.default_rng(seed)
    rng.uniform()  # the factor
    return FAMILIES[int(rng.integers(len(FAMILIES)))].__name__.strip("_")


if __name__ == "__main__":
    main()
