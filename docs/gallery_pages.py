"""The gallery's index, and the figures on its pages, from what is measured.

A page of `docs/gallery` is written by hand, and its scripts are run by the tests. The same job on
larger data, beside plain SQL and a library, is a module of `benchmarks/gallery`, whose results
stand in `benchmarks/results/gallery.md`. `write_figures` puts them on a page, between two comments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "gallery"
RESULTS = ROOT / "benchmarks" / "results" / "gallery.md"

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Graphs": (
        "personal_page_rank",
        "shortest_paths",
        "label_propagation",
        "triangles",
        "graph_inference",
    ),
    "Recommendation": (
        "alternating_least_squares",
        "nearest_neighbours",
        "cosine_join",
        "daily_baskets",
    ),
    "Text": ("text_search", "mean_pooling"),
    "Statistics and learning": (
        "logistic_regression",
        "star_regression",
        "principal_components",
        "nearest_centres",
    ),
    "Models from elsewhere": (
        "churn_scores",
        "boosted_trees",
        "text_embeddings",
        "graph_network",
    ),
    "Images and signals": ("convolution",),
    "Tensors of three and more axes": ("tensor_factors",),
}
"""The pages by what people look for."""

NAMES = tuple(name for names in GROUPS.values() for name in names)

INDEX = """\
{note}

# Gallery

Each page has a script for a common task, which you can copy and run without changes in any folder.
The script creates a small table, does the job in DuckDB, and prints the result. Replace the table
with your own table or Parquet file.

Below each task, you see how fast ucle is on larger data, compared with SQL on the same tables and
with a library that has the data in memory ([results](../../benchmarks/results/gallery.md)).

{groups}

```{{toctree}}
:hidden:

{names}
```
"""

FIGURES = """\
<!-- figures, written by docs/gallery_pages.py from benchmarks/results/gallery.md -->

## How long it takes

The same job on larger data: {data}.
ucle's time includes compilation. The library has the data in memory as arrays ([the
code](../../benchmarks/gallery/{name}.py), [all results](../../benchmarks/results/gallery.md)).

| | {measured} | |
| --- | --- | --- |
| ucle | {ucle:.3f} | |
| plain SQL | {sql} | ucle is {beside_sql} |
| {library} | {peer:.3f} | ucle is {beside_peer} |

![{title}]({name}.svg)

<!-- end of figures -->
"""


@dataclass(frozen=True)
class Figures:
    """A row of the results: seconds of the three sides."""

    name: str
    data: str
    ucle: float
    sql: float
    ended: bool
    """True if plain SQL was ended after `sql` seconds."""
    peer: float
    library: str
    measured: str
    """What the times are, such as 'seconds on 2 threads'."""

    @property
    def beside_sql(self) -> str:
        """How fast ucle is, compared with plain SQL."""
        ratio = compare(self.ucle, self.sql, "plain SQL")
        return ratio.replace("**", "**more than ", 1) if self.ended else ratio

    @property
    def beside_peer(self) -> str:
        """How fast ucle is, compared with the library."""
        return compare(self.ucle, self.peer, self.library)


def read_figures(text: str | None = None) -> dict[str, Figures]:
    """Return the rows of the results by the names of their pages.

    Args:
        text: a page of results; by default the one that is kept.
    """
    text = RESULTS.read_text(encoding="utf-8") if text is None else text
    found = {}
    for line in re.findall(r"^\| (\w+ \| .*[^|]) \|$", text, re.MULTILINE)[1:]:
        name, data, ucle, sql, peer, library, measured = line.split(" | ")
        number = sql.removeprefix("ended at ")
        found[name] = Figures(
            name, data, float(ucle), float(number), number != sql, float(peer), library, measured
        )
    return found


def compare(own: float, other: float, name: str) -> str:
    """Return by what factor ucle's time is shorter than another one, in bold, or longer.

    >>> compare(0.5, 5.0, "NumPy"), compare(3.0, 2.0, "NumPy"), compare(1.0, 1.02, "NumPy")
    ('**10 times faster** than NumPy', '1.5 times slower than NumPy', 'as fast as NumPy')
    """
    ratio = other / own
    if 0.95 < ratio < 1.05:
        return f"as fast as {name}"
    factor = max(ratio, 1 / ratio)
    text = f"{factor:.0f}" if factor >= 9.95 else f"{factor:.1f}".removesuffix(".0")
    speed = f"**{text} times faster**" if ratio > 1 else f"{text} times slower"
    return f"{speed} than {name}"


def write_figures(name: str) -> str:
    """Return the page of a job, with the figures as they are measured."""
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    figures = read_figures()[name]
    block = FIGURES.format(
        name=name,
        title=title_of(text),
        data=figures.data,
        measured=figures.measured,
        ucle=figures.ucle,
        sql=f"more than {figures.sql:.0f}" if figures.ended else f"{figures.sql:.3f}",
        peer=figures.peer,
        library=figures.library,
        beside_sql=figures.beside_sql,
        beside_peer=figures.beside_peer,
    )
    before, _, rest = text.partition("<!-- figures")
    _, _, after = rest.partition("<!-- end of figures -->\n")
    return f"{before.rstrip()}\n\n{block}{after}"


def title_of(page: str) -> str:
    """Return the heading of a page."""
    return page.partition("# ")[2].partition("\n")[0]


def first_sentence(page: str) -> str:
    r"""Return what a page asks: the first sentence below its heading.

    >>> first_sentence("# Title\n\nWho buys what,\nand when? Each sale names an item.\n")
    'Who buys what, and when?'
    """
    words = " ".join(page.partition("# ")[2].partition("\n\n")[2].split())
    return re.split(r"(?<=[?.]) ", words, maxsplit=1)[0]


def gallery_index(note: str) -> str:
    """Return the index: the pages by group, with a picture, a sentence and the two ratios."""
    figures = read_figures()
    groups = []
    for group, names in GROUPS.items():
        rows = "\n".join(_index_row(figures[name]) for name in names)
        groups.append(f"## {group}\n\n| | |\n| --- | --- |\n{rows}")
    return INDEX.format(note=note, groups="\n\n".join(groups), names="\n".join(NAMES))


def _index_row(figures: Figures) -> str:
    page = (PAGES / f"{figures.name}.md").read_text(encoding="utf-8")
    link = f"{figures.name}.md"
    return (
        f'| [<img src="{figures.name}.svg" alt="" width="180">]({link}) '
        f"| **[{title_of(page)}]({link})**<br>{first_sentence(page)}<br>"
        f"{figures.beside_sql}; {figures.beside_peer} |"
    )
