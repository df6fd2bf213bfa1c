"""The page of comparisons: every ratio that is measured, also where ucle is slower."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.history import COMPARISONS, Comparison, Measurement, kept, latest

SHOWN = 5
"""The most ratios that are listed for one comparison, the current one included."""

PAGE = """\
{note}
# Comparisons

This page shows ucle's time divided by the time of another system: if the ratio is below 1, ucle is
faster. The page contains every comparison that `make bench` and `python -m benchmarks.jobs.run`
measure, whether ucle is faster or slower. Both sides ran alternately, in one run on two threads,
and their answers were checked to be the same. The text above the table of each
[benchmark](measurements.md) says which data was in memory and which in tables, and whether the time
includes compilation.

ucle is at least as fast in **{won}** of {count} comparisons. A plan of a few statements takes
several milliseconds to start, whatever it computes, so libraries that work in memory are faster on
small inputs.

| benchmark | compared with | comparisons | at least as fast | median ratio | lowest | highest |
| --- | --- | --- | --- | --- | --- | --- |
{summary}

The sections below list the ratio of each comparison, and up to four earlier ratios, oldest first,
with one ratio for each day on which it was measured. The machine and the version of the
other system may differ from day to day.

{sections}
"""


def comparisons_page(note: str) -> str:
    """The page, from what is kept in `benchmarks/history.csv`."""
    found = latest(kept())
    groups = [
        (comparison, rows)
        for comparison in COMPARISONS
        if (rows := [x for x in found.values() if _is_of(comparison, x[-1])])
    ]
    every = [x[-1].ratio for _, rows in groups for x in rows]
    return PAGE.format(
        note=note,
        count=len(every),
        won=sum(ratio <= 1 for ratio in every),
        summary="\n".join(_summary(*group) for group in groups),
        sections="\n\n".join(_section(*group) for group in groups),
    )


def _is_of(comparison: Comparison, last: Measurement) -> bool:
    return (comparison.table, comparison.against) == (last.table, last.against)


def _summary(comparison: Comparison, rows: Sequence[Sequence[Measurement]]) -> str:
    ratios = [x[-1].ratio for x in rows]
    cells = [
        f"[{comparison.title}](../benchmarks/results/{comparison.table}.md)",
        comparison.against,
        str(len(ratios)),
        str(sum(ratio <= 1 for ratio in ratios)),
        *map(_number, (statistics.median(ratios), min(ratios), max(ratios))),
    ]
    return f"| {' | '.join(cells)} |"


def _section(comparison: Comparison, rows: Sequence[Sequence[Measurement]]) -> str:
    lines = [
        f"## {comparison.title}\n",
        f"| work | ucle / {comparison.against} | earlier ratios |",
        "| --- | --- | --- |",
    ]
    for each in sorted(rows, key=lambda x: x[-1].ratio):
        before = "; ".join(_number(x.ratio) for x in each[-SHOWN:-1])
        lines.append(f"| {each[-1].work} | {_number(each[-1].ratio)} | {before} |")
    return "\n".join(lines)


def _number(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"
