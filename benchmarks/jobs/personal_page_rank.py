"""PageRank with favourite pages, from a CSV file of string ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import ucle

JOB = "personalised PageRank from CSV, 20,000 pages, 200,000 links"
OTHER = "pandas, SciPy"


def ucle_side(folder: Path) -> Any:
    pages = {"src": "page", "dst": "page"}
    web = ucle.table(str(folder / "links.csv"), ["src", "dst"], coordinates=pages)
    seeds = ucle.table(
        str(folder / "seeds.csv"), {"src": "page"}, "share", coordinates={"src": "page"}
    )
    links, liked = ucle.tensor(web, axes=("src", "dst")), ucle.tensor(seeds, axes=("src",))
    follow = links / ucle.maximum(links.sum("dst"), 1)

    def step(rank: ucle.Tensor) -> ucle.Tensor:
        return 0.15 * liked + 0.85 * follow.dot(rank, axis="src").rename({"dst": "src"})

    found = ucle.iterate(step, liked, until=lambda new, old: abs(new - old).sum() < 1e-9)
    return found.state.to_pandas()


def other_side(folder: Path) -> Any:
    links, seeds = pd.read_csv(folder / "links.csv"), pd.read_csv(folder / "seeds.csv")
    ids, pages = pd.factorize(np.concatenate([links.src, links.dst]))
    ends = ids.reshape(2, -1)
    out = np.bincount(ends[0], minlength=len(pages))
    follow = sp.csr_array((1 / out[ends[0]], (ends[1], ends[0])), shape=(len(pages),) * 2)
    liked = pd.Series(0.0, pages)
    liked[seeds.page] = seeds.share
    rank, moved = liked.to_numpy(), 1.0
    while moved >= 1e-9:
        before, rank = rank, 0.15 * liked.to_numpy() + 0.85 * (follow @ rank)
        moved = abs(rank - before).sum()
    return pd.DataFrame({"src": pages, "val": rank})
