"""The history of ratios over the measurements: ``make history``.

Each change of a table in ``benchmarks/results`` is a measurement of its own, whose ratios to the
other sides are read from Git. They are kept in ``benchmarks/history.csv``, which outlives the
commits; ``docs/comparisons.md`` is made from it (`docs/comparisons_page.py`). Only ratios are
tracked: both sides of a ratio ran in turn, on one machine, in one run.
"""

from __future__ import annotations

import csv
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = "benchmarks/results"
KEPT = ROOT / "benchmarks" / "history.csv"


@dataclass(frozen=True)
class Comparison:
    """The cells of a table that compare ucle with something else.

    Attributes:
        table: its file, without the ending.
        title: its subject.
        work: the columns that identify rows.
        ratio: the column of ucle's time as a multiple of the other one's, or the inverse.
        against: the name of the other one.
        inverse: whether it is the inverse: the other one's time as a multiple of ucle's.
    """

    table: str
    title: str
    work: tuple[str, ...]
    ratio: str
    against: str
    inverse: bool = False


COMPARISONS = (
    Comparison("programs", "Whole programs", ("program", "graph"), "ucle / scipy", "scipy"),
    Comparison(
        "programs",
        "Whole programs, compared with SQL",
        ("program", "graph"),
        "relational / ucle",
        "relational SQL",
        inverse=True,
    ),
    Comparison("levels", "Sparse inside arrays", ("work",), "ucle / reference", "SciPy or NumPy"),
    Comparison("kernels", "Kernels", ("work",), "ucle / theirs", "SciPy or NumPy"),
    Comparison("growth", "Sparse times dense, by edges", ("edges",), "ucle / scipy", "scipy"),
    Comparison(
        "finch",
        "Finch's case studies",
        ("section", "work"),
        "ucle / SciPy or NumPy",
        "SciPy or NumPy",
    ),
    Comparison(
        "tensor_relational", "Tiles, as in TRA", ("section", "work"), "ucle / NumPy", "NumPy"
    ),
    Comparison(
        "tiled",
        "Tables of blocks",
        ("product",),
        "stored, to the better of SciPy",
        "the better of SciPy",
    ),
    Comparison("top_k", "Nearest rows", ("first of",), "of NumPy", "NumPy"),
    Comparison(
        "top_k", "Nearest rows, processor time", ("first of",), "of DuckDB", "DuckDB's `max_by`"
    ),
    Comparison(
        "windows", "Windows along dates, processor time", ("work", "series"), "ucle / DuckDB", "SQL"
    ),
    Comparison("products", "Products of sparse matrices", ("program", "data"), "to SciPy", "SciPy"),
    Comparison("training", "Steps of training", ("network",), "ucle / PyTorch", "PyTorch"),
    Comparison("loops", "Loops", ("loop",), "ratio", "SQL by hand"),
    Comparison("indices", "Arithmetic with labels", ("program",), "ucle / by hand", "SQL by hand"),
    Comparison(
        "subgraphs", "Counts of subgraphs", ("graph", "query"), "run to by hand", "SQL by hand"
    ),
    Comparison(
        "first_answer", "First answers of processes", ("answer",), "ratio", "the fastest of others"
    ),
    Comparison(
        "jobs",
        "Jobs from files, processor time",
        ("job",),
        "second / alternative",
        "the usual library",
    ),
    Comparison("small_programs", "Small programs", ("program",), "run / NumPy", "NumPy"),
    Comparison(
        "aggregates",
        "Aggregates of arrays",
        ("aggregate",),
        "plain / kernels",
        "plain SQL",
        inverse=True,
    ),
    Comparison(
        "extension",
        "Without Python",
        ("scenario",),
        "plain / extension",
        "plain SQL",
        inverse=True,
    ),
)


@dataclass(frozen=True)
class Measurement:
    """A ratio on a certain day: ucle's time as a multiple of the other one's."""

    date: str
    table: str
    work: str
    against: str
    ratio: float


def measurements(comparison: Comparison, date: str, text: str) -> Iterator[Measurement]:
    r"""Yield the ratios of a table.

    Args:
        comparison: locates them in it.
        date: of the table.
        text: of its page; without the columns there is nothing.

    >>> page = "| work | ucle / theirs |\n| --- | --- |\n| norm | 0.50 |\n| sum |  |"
    >>> [x.ratio for x in measurements(COMPARISONS[3], "2026-01-02", page)]
    [0.5]
    """
    rows = [_cells(line) for line in text.splitlines() if line.startswith("|")]
    if not rows or not {*comparison.work, comparison.ratio}.issubset(rows[0]):
        return
    for row in rows[2:]:
        cells = dict(zip(rows[0], row, strict=False))
        number = re.fullmatch(r"\d[\d,]*(\.\d+)?", cells.get(comparison.ratio, ""))
        if number is None:
            continue
        ratio = float(number[0].replace(",", ""))
        if ratio:
            work = ", ".join(filter(None, (cells[name] for name in comparison.work)))
            ratio = 1 / ratio if comparison.inverse else ratio
            yield Measurement(date, comparison.table, work, comparison.against, ratio)


def latest(history: Iterable[Measurement]) -> dict[tuple[str, str, str], list[Measurement]]:
    """Group the measurements by comparison, oldest first."""
    found: dict[tuple[str, str, str], list[Measurement]] = {}
    for each in sorted(history, key=lambda x: x.date):
        found.setdefault((each.table, each.against, each.work), []).append(each)
    return found


WORSE = 1.1
"""A ratio that is this many times the one before is reported."""


def find_worse(history: Iterable[Measurement]) -> Iterator[str]:
    """Yield a line for each comparison whose last ratio is worse by a tenth than the one before.

    >>> days = [Measurement(f"2026-01-0{n}", "growth", "10", "scipy", n / 2) for n in (2, 3)]
    >>> list(find_worse(days))
    ['growth, 10: 1.5 of scipy on 2026-01-03, 1 on 2026-01-02']
    """
    for (table, against, work), found in latest(history).items():
        if len(found) > 1 and found[-1].ratio > WORSE * found[-2].ratio:
            before, last = found[-2:]
            yield (
                f"{table}, {work}: {last.ratio:.3g} of {against} on {last.date}, "
                f"{before.ratio:.3g} on {before.date}"
            )


def now(results: Path = ROOT / RESULTS) -> Mapping[str, str]:
    """Return the current tables, by name."""
    return {x.table: (results / f"{x.table}.md").read_text("utf-8") for x in COMPARISONS}


def kept(path: Path = KEPT) -> list[Measurement]:
    """Return the stored measurements."""
    with path.open(encoding="utf-8", newline="") as lines:
        return [Measurement(*row[:-1], float(row[-1])) for row in [*csv.reader(lines)][1:]]


def keep(history: Sequence[Measurement], path: Path = KEPT) -> None:
    """Write all measurements, oldest first."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        rows = csv.writer(lines, lineterminator="\n")
        rows.writerow(field.name for field in fields(Measurement))
        for each in sorted(history, key=lambda x: astuple(x)[:-1]):
            rows.writerow((*astuple(each)[:-1], f"{each.ratio:.3g}"))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _from_git() -> Iterator[Measurement]:
    """Yield the ratios of each day on which a table changed, and of uncommitted changes."""
    for table in dict.fromkeys(x.table for x in COMPARISONS):
        path = f"{RESULTS}/{table}.md"
        days: dict[str, str] = {}
        for line in _git("log", "--format=%cs %H", "--", path).splitlines():
            date, commit = line.split()
            days.setdefault(date, commit)  # the last one of a day comes first
        texts = {date: _git("show", f"{commit}:{path}") for date, commit in days.items()}
        if _git("diff", "--name-only", "HEAD", "--", path):
            texts[f"{datetime.now(UTC).date()}"] = now()[table]
        for date, text in texts.items():
            for comparison in COMPARISONS:
                if comparison.table == table:
                    yield from measurements(comparison, date, text)


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Add the measurements of Git to the stored ones, and print their number."""
    known = {astuple(x)[:-1]: x for x in (kept() if KEPT.exists() else [])}
    known |= {astuple(x)[:-1]: x for x in _from_git()}
    keep(list(known.values()))
    print(f"{len(known)} ratios of {len(latest(known.values()))} comparisons")
    for line in find_worse(known.values()):
        print("worse by a tenth:", line)


if __name__ == "__main__":
    main()
