"""Pages of the gallery: one for each recipe, and a table of all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from compare import Measured
from recipe import Connection, Recipe

mpl.use("svg")
from matplotlib import pyplot as plt

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
NOTE = "<!-- Made by `make gallery`. -->"
WIDTH = 110
"""The number of characters of a script's line that are shown; the rest is left out."""

LINES = 60
"""The number of lines of a script that are shown; the rest is left out."""

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
            GALLERY.mkdir(exist_ok=True)
            path = GALLERY / f"{recipe.name}.svg"
            figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


def page(recipe: Recipe, run: Measured, script: str) -> str:
    """Write the page of a recipe."""
    sizes = ", ".join(f"{number:,} {what}" for what, number in recipe.full.items())
    return "\n".join(
        [
            f"{NOTE}\n\n# {recipe.title}\n\n{recipe.question}\n",
            f"![{recipe.title}]({recipe.name}.svg)\n",
            f"Seconds, with {sizes}:\n",
            f"| ucle | plain SQL | {recipe.peer} |\n| --- | --- | --- |\n| {cells(run)} |\n",
            f"## The recipe\n\n```py\n{recipe.source}```\n",
            f"## Its SQL\n\n```sql\n{shorten(script)}\n```\n",
        ]
    )


def index(runs: Mapping[Recipe, Measured], machine: str) -> str:
    """The table of all recipes."""
    rows = [
        f"| [{recipe.title}]({recipe.name}.md) | {cells(run)} | {recipe.peer} |"
        for recipe, run in runs.items()
    ]
    return "\n".join(
        [
            f"{NOTE}\n\n# Gallery\n",
            "What people come for, ready to take: each page has a question, a program, its SQL, a",
            "picture, and how long it takes beside plain SQL and a library that has the data in",
            "memory as arrays. The answers are compared before anything is measured. ucle compiles",
            "in each run. `make gallery` measures again.\n",
            f"{machine}\n",
            "| recipe | ucle | plain SQL | library | which |\n| --- | --- | --- | --- | --- |",
            *rows,
            "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n",
        ]
    )


def cells(run: Measured) -> str:
    """Seconds of the three sides, as cells of a table."""
    sql = f"{run.seconds['SQL']:.3f}" if "SQL" in run.seconds else f"ended at {run.limit:.0f}"
    return f"{run.seconds['ucle']:.3f} | {sql} | {run.seconds['peer']:.3f}"


def shorten(script: str) -> str:
    """The first lines of a script, and how many follow; no text in quotes is left open."""
    lines = [line if len(line) <= WIDTH else _cut(line) for line in script.splitlines()]
    kept = lines[:LINES]
    while "\n".join(kept).count("'") % 2:
        kept.pop()
    rest = len(lines) - len(kept)
    return "\n".join(kept + ([f"-- and {rest} more lines"] if rest else []))


def _cut(line: str) -> str:
    begin = f"{line[:WIDTH]} ..."
    return f"{begin}'" if begin.count("'") % 2 else begin
