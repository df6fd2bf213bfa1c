"""The page of comparisons: every ratio that is measured, those that are lost among them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.history import COMPARISONS, Comparison, Measurement, kept, latest

SHOWN = 5
"""Measurements of one comparison, the last of all."""

PAGE = """\
{note}
# Comparisons

ucle's time as a multiple of something else's: below 1 it is faster. Every comparison that
`make bench` and `python -m benchmarks.jobs.run` make is here, won or lost; both sides ran in turn
in one run on two threads, and had the same answers before their times counted. What is in memory
and what in tables, and what is compiled apart, stands above each table of the
[benchmarks](../benchmarks/results/levels.md).

Of {count} comparisons, ucle is at least as fast in **{won}**. A plan of a few statements takes some
milliseconds to start, whatever it computes, so that small works are lost to libraries in memory.

| comparison | beside | rows | as fast | median | least | most |
| --- | --- | --- | --- | --- | --- | --- |
{summary}

What follows is the history of each: a ratio for each day on which it was measured, oldest
first. Machines differ from day to day, and so do versions of the other side.

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
        f"| work | of {comparison.against} | before |",
        "| --- | --- | --- |",
    ]
    for each in sorted(rows, key=lambda x: x[-1].ratio):
        before = "; ".join(_number(x.ratio) for x in each[-SHOWN:-1])
        lines.append(f"| {each[-1].work} | {_number(each[-1].ratio)} | {before} |")
    return "\n".join(lines)


def _number(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"
