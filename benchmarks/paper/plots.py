"""The plots of the report, as SVG files that depend on nothing but the measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks.paper.targets import IN_MEMORY, OURS, RELATIONAL, TORCH, Measurements, seconds_of

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "ucle"

from matplotlib import pyplot as plt  # noqa: E402 - reads the settings above

COMPARED = (RELATIONAL, IN_MEMORY, TORCH)


def relational(measured: Measurements, path: Path) -> None:
    """Times of other engines as multiples of ucle's, task by task."""
    tasks = [key for key, found in measured["tasks"].items() if seconds_of(found.get(OURS))]
    figure, axes = plt.subplots(figsize=(9, 1.5 + 0.32 * len(tasks)))
    for engine in COMPARED:
        found = [
            (at, theirs / ours)
            for at, key in enumerate(tasks)
            if (ours := seconds_of(measured["tasks"][key].get(OURS)))
            and (theirs := seconds_of(measured["tasks"][key].get(engine)))
        ]
        axes.plot([x for _, x in found], [at for at, _ in found], "o", label=engine)
    axes.axvline(1, color="black", linewidth=1, label=OURS)
    axes.set(xscale="log", xlabel="time as a multiple of ucle's")
    axes.set_yticks(range(len(tasks)), tasks)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    _save(figure, path)


def scale(measured: Measurements, path: Path) -> None:
    """Time of a layer against the edges of the graph."""
    figure, axes = plt.subplots(figsize=(7, 4.5))
    engines = dict.fromkeys(name for found in measured["scale"].values() for name in found)
    for engine in engines:
        points = [
            (int(key.split("-")[2]), seconds)
            for key, found in measured["scale"].items()
            if (seconds := seconds_of(found.get(engine)))
        ]
        if points:
            axes.plot(*zip(*sorted(points), strict=True), "o-", label=engine)
    axes.set(xscale="log", yscale="log", xlabel="edges", ylabel="seconds")
    axes.grid(alpha=0.3)
    axes.legend()
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
