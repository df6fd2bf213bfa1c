"""PageRank once more after new edges, beginning with the ranks of the day before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import ucle

JOB = "PageRank, and again after 1,000 new links of 210,000"
OTHER = "pandas, SciPy"


def ucle_side(folder: Path) -> Any:
    with ucle.connect() as db:
        db.execute(f"CREATE TABLE links AS FROM '{folder / 'links.parquet'}'")
        pages = {"src": "page", "dst": "page"}
        links = ucle.tensor(
            ucle.table("links", ["src", "dst"], coordinates=pages),
            axes=("src", "dst"),
            database=db,
        )
        out = links.sum("dst")
        count = (out >= 0).sum()
        follow = links / ucle.maximum(out, 1)

        def step(rank: ucle.Tensor) -> ucle.Tensor:
            followed = follow.dot(rank, axis="src").rename({"dst": "src"})
            stuck = (rank * (out == 0)).sum()
            return 0.85 * (followed + stuck / count) + 0.15 / count

        def near(new: ucle.Tensor, old: ucle.Tensor) -> ucle.Tensor:
            return abs(new - old).sum() < 1e-9

        first = ucle.iterate(step, (out >= 0) / count, until=near)
        first.state.to_table("ranks")
        db.execute(f"INSERT INTO links FROM '{folder / 'new_links.parquet'}'")
        before = ucle.table("ranks", ["src"], coordinates={"src": "page"})
        second = ucle.iterate(step, ucle.tensor(before, axes=("src",), database=db), until=near)
        return second.state.to_pandas()


def other_side(folder: Path) -> Any:
    links = pd.read_parquet(folder / "links.parquet")
    first = _page_rank(links, pd.Series(dtype=float))
    links = pd.concat([links, pd.read_parquet(folder / "new_links.parquet")])
    return _page_rank(links, first).rename_axis("src").reset_index()


def _page_rank(links: pd.DataFrame, start: pd.Series) -> pd.Series:
    ids, pages = pd.factorize(np.concatenate([links.src, links.dst]))
    ends, count = ids.reshape(2, -1), len(pages)
    out = np.bincount(ends[0], minlength=count)
    follow = sp.csr_array((1 / out[ends[0]], (ends[1], ends[0])), shape=(count, count))
    rank, moved = start.reindex(pages, fill_value=1 / count).to_numpy(), 1.0
    while moved >= 1e-9:
        before = rank
        rank = 0.85 * (follow @ rank + rank[out == 0].sum() / count) + 0.15 / count
        moved = abs(rank - before).sum()
    return pd.Series(rank, pages)
