"""The table of what the jobs of the gallery take, and a picture of each result.

`docs/gallery_pages.py` shows both on the pages of the gallery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from compare import LIMIT, Measured
from recipe import NAMES, Connection, Recipe

mpl.use("svg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "gallery.md"
PICTURES = ROOT / "docs" / "gallery"

COLUMNS = ("job", "data", "ucle", "plain SQL", "library", "which", "measured")

TIMES = ("seconds on 2 threads", "processor seconds on 1 thread")
"""What the columns of times hold: the second on a busy machine."""

PAGE = """\
# Jobs of the gallery

The jobs of the [gallery](../../docs/gallery/index.md) on larger data with integer ids, in
seconds: with ucle, which compiles the program in each run; with SQL on the same tables; and with
a library that has the data in memory as arrays. The answers are compared before anything is
measured. SQL is stopped after {limit:.0f} seconds. Rows may have been measured on different days,
so compare only times in the same row. On a busy machine, `--processor` measures processor time,
with one thread for each side. `make gallery` measures all jobs again.

{machine}

{rows}
"""

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ucle",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#7d8590"
    ),
}
"""Letters and lines of a grey that is seen on white and on black, and no background."""


def draw(recipe: Recipe, connection: Connection, *, write: bool) -> None:
    """Draw what `by_ucle` has left, and perhaps write the picture."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(5.5, 3), layout="constrained")
        recipe.picture(axes, connection)
        if write:
            path = PICTURES / f"{recipe.name}.svg"
            figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


def results_page(rows: Mapping[str, str], machine: str) -> str:
    """Return the table of all jobs."""
    lines = [_line(COLUMNS), _line(["---"] * len(COLUMNS)), *(rows[x] for x in NAMES if x in rows)]
    return PAGE.format(limit=LIMIT, machine=machine, rows="\n".join(lines))


def _line(row: Sequence[str]) -> str:
    return f"| {' | '.join(row)} |"


def rows_of(page: str) -> dict[str, str]:
    r"""Return the rows of a page by the names of their jobs.

    >>> rows_of("text\n\n| job | data |\n| --- | --- |\n| triangles | 10 nodes |")
    {'triangles': '| triangles | 10 nodes |'}
    """
    _, _, table = page.partition("| --- ")
    lines = table.splitlines()[1:]
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def row_of(recipe: Recipe, run: Measured, *, processor: bool) -> str:
    """Return the row of a job; `processor` says by what clock it was measured."""
    sizes = ", ".join(
        f"{number:,} {what}" if what.endswith("s") else f"{what} {number:,}"
        for what, number in recipe.full.items()
    )
    return _line([recipe.name, sizes, cells(run), recipe.peer, TIMES[processor]])


def cells(run: Measured) -> str:
    """Seconds of the three sides, as cells of a table."""
    sql = f"{run.seconds['SQL']:.3f}" if "SQL" in run.seconds else f"ended at {run.limit:.0f}"
    return f"{run.seconds['ucle']:.3f} | {sql} | {run.seconds['peer']:.3f}"
