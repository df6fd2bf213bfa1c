"""The targets of the report, and the checks that the measurements meet them.

Every target is computed from the measurements of one run; none is typed in.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.paper.workers import TOLERANCE

Measurements = Mapping[str, Any]
RELATIONAL, IN_MEMORY, TORCH, OURS = "DuckDB, relational", "SciPy / NumPy", "PyTorch", "ucle"
COMPILING = ("statistics", "optimisation", "SQL", "other")
COMPILE_SECONDS = 2.0


@dataclass(frozen=True)
class Target:
    """One row; `met` is None where a required measurement is missing."""

    what: str
    reach: str
    seen: str
    met: bool | None
    task: str = ""
    """The task whose profile explains the time."""


def seconds_of(measurement: Mapping[str, Any] | None) -> float | None:
    """Return the median time; None without one."""
    if measurement is None or measurement["status"] != "ok":
        return None
    return statistics.median(measurement["seconds"])


def targets(measured: Measurements) -> Iterator[Target]:
    """Yield all targets in the order of the report."""
    for task, least in (("attention:planetoid_cora", 30), ("attention:amazon_photo", 50)):
        yield _faster(measured, task, RELATIONAL, least)
    for engine in (TORCH, IN_MEMORY):
        yield _at_most(measured, "attention:amazon_photo", engine, 1.0)
    yield _at_most(measured, "gcn:amazon_photo", IN_MEMORY, 1.0)
    yield _at_most(measured, "gcn:planetoid_cora", IN_MEMORY, 2.0)
    yield _faster(measured, "dense:planetoid_cora", RELATIONAL, 100)
    yield _at_most(measured, "dense:planetoid_cora", IN_MEMORY, 1.5)
    for name in ("seca_n11", "multiplier_n13"):
        yield _right(measured, f"circuit:{name}")
        yield _faster(measured, f"circuit:{name}", RELATIONAL, 1)
    for name in ("seca_n11+", "multiplier_n13+", "ising_n10"):
        yield _right(measured, f"circuit:{name}")
        yield _faster(measured, f"circuit:{name}", RELATIONAL, 10)
    for task, parts in measured.get("components", {}).items():
        seconds = sum(parts[name] for name in COMPILING)
        yield Target(
            f"{task}: statistics, optimisation and SQL",
            f"< {COMPILE_SECONDS:g} s",
            f"{seconds:.2f} s",
            seconds < COMPILE_SECONDS,
        )
    yield from _beyond_memory(measured.get("beyond_memory"))


def _faster(measured: Measurements, task: str, engine: str, least: float) -> Target:
    """The target that an engine takes so many times as long; interrupted ones count as more."""
    what, reach = f"{task}: {engine} / ucle", f"≥ {least:g}"
    found = measured["tasks"].get(task, {})
    ours, theirs, more = seconds_of(found.get(OURS)), seconds_of(found.get(engine)), ""
    if theirs is None and found.get(engine, {}).get("status") == "TLE":
        theirs, more = found[engine].get("limit"), "> "
    if ours is None or theirs is None:
        return Target(what, reach, _missing(found, OURS, engine), None, task)
    times = theirs / ours
    return Target(what, reach, f"{more}{_number(times)}", times >= least, task)


def _at_most(measured: Measurements, task: str, engine: str, most: float) -> Target:
    """The target that ucle takes at most so many times as long."""
    what, reach = f"{task}: ucle / {engine}", f"≤ {most:g}"
    found = measured["tasks"].get(task, {})
    ours, theirs = seconds_of(found.get(OURS)), seconds_of(found.get(engine))
    if ours is None or theirs is None:
        return Target(what, reach, _missing(found, OURS, engine), None, task)
    return Target(what, reach, _number(ours / theirs), ours / theirs <= most, task)


def _right(measured: Measurements, task: str) -> Target:
    """The target for the error of ucle's result; a wrong one has no time."""
    found = measured["tasks"].get(task, {}).get(OURS, {})
    error = found.get("error")
    seen = "not measured" if error is None else f"{error:.0e}"
    met = None if error is None else error <= TOLERANCE
    return Target(f"{task}: error of ucle", f"≤ {TOLERANCE:.0e}", seen, met)


def _beyond_memory(found: Mapping[str, Any] | None) -> Iterator[Target]:
    if found is None:
        return
    for case, engines in found["cases"].items():
        status = {engine: run["status"] for engine, run in engines.items()}
        times = found["sizes"][case] / found["limits"][case]
        yield Target(
            f"{case} on tensors of {times:.1f} times the memory",
            "ucle ok, SciPy OOM",
            ", ".join(f"{engine} {text}" for engine, text in status.items()),
            status == {"ucle": "ok", "SciPy": "OOM"},
        )


def _missing(found: Mapping[str, Any], *engines: str) -> str:
    parts = [
        f"{engine} {found[engine]['status'] if engine in found else 'not measured'}"
        for engine in engines
        if seconds_of(found.get(engine)) is None
    ]
    return ", ".join(parts)


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def missed(measured: Measurements) -> list[Target]:
    """Return the targets that were measured and missed."""
    return [target for target in targets(measured) if target.met is False]
