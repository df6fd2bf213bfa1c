"""The files of the jobs, with fixed seeds. Keys are names, as they are in most files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

FIRST_DAY = np.datetime64("2023-01-01")


def make(name: str, folder: Path) -> None:
    """Make the files of a job in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    MAKERS[name](folder, np.random.default_rng(sum(name.encode())))


def cosine_neighbours(folder: Path, rng: np.random.Generator) -> None:
    for table, count in (("queries", 2_000), ("documents", 50_000)):
        vectors = rng.normal(size=(count, 128)).astype(np.float32)
        _write(folder / f"{table}.parquet", name=_names(table[:3], count), vector=vectors)


def personal_page_rank(folder: Path, rng: np.random.Generator) -> None:
    links = _links(rng, pages=20_000, links=200_000)
    np.savetxt(folder / "links.csv", [("src", "dst"), *links], fmt="%s", delimiter=",")
    seeds = rng.choice(_names("page", 20_000), 5, replace=False)
    (folder / "seeds.csv").write_text("page,share\n" + "".join(f"{x},0.2\n" for x in seeds))


def text_regression(folder: Path, rng: np.random.Generator) -> None:
    documents, words, tokens = 10_000, 2_000, 600_000
    document = rng.integers(documents, size=tokens)
    word = np.minimum(rng.zipf(1.3, size=tokens), words) - 1
    pairs, counts = np.unique(document * words + word, return_counts=True)
    document, word = np.divmod(pairs, words)
    scores = np.bincount(document, rng.normal(size=words)[word], documents)
    scores += rng.normal(size=documents)
    _write(
        folder / "counts.parquet",
        doc=_names("doc", documents)[document],
        word=_names("word", words)[word],
        n=counts,
    )
    _write(folder / "scores.parquet", doc=_names("doc", documents), score=scores)


def co_purchases(folder: Path, rng: np.random.Generator) -> None:
    customers, items, purchases = 100_000, 5_000, 1_000_000
    _write(
        folder / "purchases.parquet",
        customer=_names("c", customers)[rng.integers(customers, size=purchases)],
        item=_names("item", items)[(items * rng.random(purchases) ** 2).astype(int)],
    )


def wide_covariance(folder: Path, rng: np.random.Generator) -> None:
    _wide(folder / "patients.parquet", rng, missing=0.05)


def wide_correlation(folder: Path, rng: np.random.Generator) -> None:
    _wide(folder / "patients.parquet", rng, missing=0)


def graph_inference(folder: Path, rng: np.random.Generator) -> None:
    papers = _names("paper", 50_000)
    cites = np.unique(rng.integers(len(papers), size=(500_000, 2)), axis=0)
    cites = cites[cites[:, 0] != cites[:, 1]]
    with duckdb.connect(str(folder / "papers.duckdb")) as connection:
        _store(connection, "papers", paper=papers, x=rng.normal(size=(len(papers), 64)))
        _store(connection, "cites", citing=papers[cites[:, 0]], cited=papers[cites[:, 1]])
    np.savez(
        folder / "weights.npz", W1=rng.normal(size=(64, 16)) / 8, W2=rng.normal(size=(16, 7)) / 4
    )


def logistic_regression(folder: Path, rng: np.random.Generator) -> None:
    features = rng.normal(size=(100_000, 20))
    features[:, 0] = 1
    chance = 1 / (1 + np.exp(-features @ rng.normal(size=20)))
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        names, bought = _names("c", len(features)), rng.random(len(features)) < chance
        _store(connection, "customers", name=names, features=features, bought=bought)


def tensor_network(folder: Path, rng: np.random.Generator) -> None:
    from benchmarks.jobs.tensor_network import NETWORK  # noqa: PLC0415  # which reads the file

    operands = NETWORK.split("->")[0].split(",")
    arrays = {f"T{n}": rng.normal(size=(12,) * len(x)) for n, x in enumerate(operands)}
    np.savez(folder / "network.npz", **arrays)


def rolling_sales(folder: Path, rng: np.random.Generator) -> None:
    shops, days = 200, 1_000
    shop, day = np.nonzero(rng.random((shops, days)) < 0.9)
    _write(
        folder / "sales.parquet",
        shop=_names("shop", shops)[shop],
        day=FIRST_DAY + day,
        amount=rng.gamma(2, 50, len(shop)).round(2),
    )


def monthly_sums(folder: Path, rng: np.random.Generator) -> None:
    shops, sales = 300, 500_000
    shop, month = rng.integers(shops, size=sales), rng.integers(36, size=sales)
    closed = rng.random((shops, 36)) < 0.1
    shop, month = (x[~closed[shop, month]] for x in (shop, month))
    starts = (np.datetime64("2021-01") + month).astype("datetime64[D]")
    _write(
        folder / "sales.parquet",
        shop=_names("shop", shops)[shop],
        day=starts + rng.integers(28, size=len(shop)),
        amount=rng.gamma(2, 50, len(shop)).round(2),
    )


def grid_paths(folder: Path, rng: np.random.Generator) -> None:
    side = 100
    place = np.arange(side * side).reshape(side, side)
    ends = np.concatenate(
        [
            np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()], axis=1),
            np.stack([place[:-1].ravel(), place[1:].ravel()], axis=1),
        ]
    )
    length = rng.integers(1, 100, size=len(ends))
    _write(folder / "roads.parquet", a=ends[:, 0], b=ends[:, 1], metres=length)
    _write(folder / "start.parquet", place=np.array([0]), metres=np.array([0]))


def pivot(folder: Path, rng: np.random.Generator) -> None:
    shops, products = 2_000, 300
    shop, product = np.nonzero(rng.random((shops, products)) < 0.5)
    _write(
        folder / "sales.parquet",
        shop=_names("shop", shops)[shop],
        product=_names("product", products)[product],
        amount=rng.gamma(2, 50, len(shop)).round(2),
    )


def token_attention(folder: Path, rng: np.random.Generator) -> None:
    sentences, tokens, width = 500, 64, 64
    sentence, token = np.divmod(np.arange(sentences * tokens), tokens)
    with duckdb.connect(str(folder / "text.duckdb")) as connection:
        names, vectors = _names("s", sentences)[sentence], rng.normal(size=(len(token), width))
        _store(connection, "tokens", sentence=names, position=token, x=vectors)
    weights = {name: rng.normal(size=(width, width)) / 8 for name in ("Q", "K", "V")}
    np.savez(folder / "weights.npz", **weights)


def page_rank_kept(folder: Path, rng: np.random.Generator) -> None:
    links = _links(rng, pages=20_000, links=210_000)
    for table, rows in (("links", links[:-1_000]), ("new_links", links[-1_000:])):
        _write(folder / f"{table}.parquet", src=rows[:, 0], dst=rows[:, 1])


def star_statistics(folder: Path, rng: np.random.Generator) -> None:
    stores, products, sales = 1_000, 5_000, 1_000_000
    area, rent = rng.gamma(4, 50, stores).round(), rng.gamma(4, 5, stores).round(1)
    price, weight = rng.gamma(2, 5, products).round(2), rng.gamma(2, 1, products).round(2)
    store, product = rng.integers(stores, size=sales), rng.integers(products, size=sales)
    amount = 5 + 0.1 * area[store] - 0.2 * rent[store] - 2 * price[product] + weight[product]
    _write(folder / "stores.parquet", store=_names("store", stores), area=area, rent=rent)
    products_ = _names("product", products)
    _write(folder / "products.parquet", product=products_, price=price, weight=weight)
    _write(
        folder / "sales.parquet",
        store=_names("store", stores)[store],
        product=products_[product],
        amount=amount + rng.normal(size=sales),
    )


def new_user(folder: Path, rng: np.random.Generator) -> None:
    people, films, ratings = 20_000, 2_000, 1_000_000
    pairs = np.unique(rng.integers(people * films, size=ratings))
    person, film = np.divmod(pairs, films)
    titles = _names("film", films)
    stars = rng.integers(1, 6, len(pairs))
    _write(
        folder / "ratings.parquet",
        person=_names("p", people)[person],
        film=titles[film],
        stars=stars,
    )
    rows = zip(rng.choice(titles, 20, replace=False), rng.integers(1, 6, 20), strict=True)
    lines = "".join(f"{title},{number}\n" for title, number in rows)
    (folder / "mine.csv").write_text("film,stars\n" + lines)


def customer_ridge(folder: Path, rng: np.random.Generator) -> None:
    count = 200_000
    age, visits = rng.integers(18, 90, count), rng.gamma(2, 3, count)
    region = rng.choice(["east", "north", "south", "west"], count)
    plan, member = rng.choice(["basic", "family", "pro"], count), rng.random(count) < 0.4
    spent = age / 10 + 2 * visits + 5 * (plan == "pro") + rng.normal(size=count)
    _write(
        folder / "customers.parquet",
        customer=_names("c", count),
        age=age,
        visits=visits,
        region=region,
        plan=plan,
        is_member=member,
        spent=spent,
    )


def odd_readings(folder: Path, rng: np.random.Generator) -> None:
    times = np.datetime64("2024-01-01T00:00:00") + np.arange(100_000) * np.timedelta64(5, "m")
    values = 20 + rng.normal(size=(5, len(times))) + rng.normal(size=len(times)).cumsum() / 100
    values[rng.random(values.shape) < 1e-4] += 12
    there = rng.random(values.shape) < 0.97
    sensor, time = np.nonzero(there)
    _write(
        folder / "readings.parquet",
        sensor=_names("sensor", 5)[sensor],
        time=times[time],
        value=values[there],
    )


def category_correlation(folder: Path, rng: np.random.Generator) -> None:
    count = 100_000
    table = {"id": pa.array(_names("id", count))}
    for n in range(12):
        table[f"x{n}"] = pa.array(rng.normal(size=count), mask=rng.random(count) < 0.05)
    region = rng.choice(["east", "north", "south", "west"], count)
    table["region"] = pa.array(region, mask=rng.random(count) < 0.1)
    table["is_active"] = pa.array(rng.random(count) < 0.3)
    pq.write_table(pa.table(table), folder / "people.parquet")


def value_at_risk(folder: Path, rng: np.random.Generator) -> None:
    days, papers, books, held = 750, 2_000, 300, 30_000
    names = _names("paper", papers)
    returns = dict(zip(names, 0.01 * rng.standard_t(4, (papers, days)), strict=True))
    _write(folder / "returns.parquet", day=FIRST_DAY + np.arange(days), **returns)
    book, paper = np.divmod(rng.choice(books * papers, held, replace=False), papers)
    _write(
        folder / "positions.parquet",
        book=_names("book", books)[book],
        paper=names[paper],
        amount=rng.normal(0, 1e5, held).round(),
    )


def survival(folder: Path, rng: np.random.Generator) -> None:
    patients = 200_000
    _write(
        folder / "trial.parquet",
        arm=np.array(["control", "drug a", "drug b"])[rng.integers(3, size=patients)],
        days=np.minimum(rng.exponential(400, patients).astype(int) + 1, 1_500),
        died=rng.random(patients) < 0.7,
    )


def nearest_shop(folder: Path, rng: np.random.Generator) -> None:
    for table, count in (("customer", 20_000), ("shop", 500)):
        places = {"lat": rng.uniform(45, 55, count), "lon": rng.uniform(5, 15, count)}
        _write(folder / f"{table}s.parquet", **{table: _names(table, count)}, **places)


def correlated_returns(folder: Path, rng: np.random.Generator) -> None:
    days, tickers = 1_000, 300
    moves = rng.normal(0, 0.01, (days, tickers)) + rng.normal(0, 0.01, (days, 1))
    prices = (50 * np.exp(moves.cumsum(axis=0))).round(4)
    day, ticker = np.divmod(np.arange(prices.size), tickers)
    frame = pd.DataFrame(
        {
            "date": FIRST_DAY + day,
            "ticker": _names("ticker", tickers)[ticker],
            "close": np.where(rng.random(prices.size) < 0.01, np.nan, prices.ravel()),
        }
    )
    frame.to_csv(folder / "closes.csv", index=False)


def page_transitions(folder: Path, rng: np.random.Generator) -> None:
    others = ["home", "search", "item", "cart", *_names("category", 40)]
    pages = np.array([*others, "pay", "left"])
    lengths = rng.integers(2, 12, 100_000)
    visit = np.repeat(np.arange(len(lengths)), lengths)
    step = np.arange(len(visit)) - np.repeat(lengths.cumsum() - lengths, lengths)
    page = rng.integers(len(others), size=len(visit))
    last = np.append(visit[1:] != visit[:-1], True)
    page[last] = len(others) + (rng.random(len(lengths)) < 0.8)
    _write(folder / "clicks.parquet", visit=visit, step=step, page=pages[page])


def parts_needed(folder: Path, rng: np.random.Generator) -> None:
    counts = (200, 1_000, 3_000, 5_000)
    lines = ["part,component,quantity"]
    for level, (count, below) in enumerate(pairwise(counts)):
        for part in range(count):
            for component in rng.choice(below, 6, replace=False):
                quantity = rng.integers(1, 5)
                lines.append(f"part-{level}-{part},part-{level + 1}-{component},{quantity}")
    (folder / "parts.csv").write_text("\n".join(lines) + "\n")


MAKERS: Mapping[str, Callable[[Path, np.random.Generator], None]] = {
    function.__name__: function
    for function in (
        cosine_neighbours,
        personal_page_rank,
        text_regression,
        co_purchases,
        wide_covariance,
        graph_inference,
        logistic_regression,
        tensor_network,
        rolling_sales,
        grid_paths,
        pivot,
        token_attention,
        page_rank_kept,
        star_statistics,
        monthly_sums,
        wide_correlation,
        new_user,
        customer_ridge,
        odd_readings,
        category_correlation,
        value_at_risk,
        survival,
        nearest_shop,
        correlated_returns,
        page_transitions,
        parts_needed,
    )
}
"""What makes the files of each job, by the name of its module."""


def _wide(path: Path, rng: np.random.Generator, missing: float) -> None:
    rows, columns = 200_000, 60
    mixed = rng.normal(size=(rows, 8)) @ rng.normal(size=(8, columns))
    values = mixed + rng.normal(size=(rows, columns)) + np.arange(columns)
    absent = rng.random((rows, columns)) < missing
    table = {"id": pa.array(_names("patient", rows))}
    for n in range(columns):
        table[f"measure_{n}"] = pa.array(values[:, n], mask=absent[:, n])
    pq.write_table(pa.table(table), path)


def _links(rng: np.random.Generator, pages: int, links: int) -> NDArray[Any]:
    """Return pairs of names of pages, each pair once, in random order."""
    ends = (pages * rng.random((links, 2)) ** (1, 3)).astype(int)
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    return _names("page", pages)[rng.permutation(ends)]


def _names(word: str, count: int) -> NDArray[Any]:
    return np.array([f"{word}-{n}" for n in range(count)])


def _arrow(columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    """Return a table of columns; a matrix becomes a column of lists."""
    table = {}
    for name, column in columns.items():
        array = pa.array(column.ravel())
        if column.ndim == 2:
            array = pa.FixedSizeListArray.from_arrays(array, column.shape[1])
        table[name] = array
    return pa.table(table)


def _write(path: Path, **columns: NDArray[Any]) -> None:
    pq.write_table(_arrow(columns), path)


def _store(connection: duckdb.DuckDBPyConnection, table: str, **columns: NDArray[Any]) -> None:
    """Create a table; a matrix becomes a column of lists of any length, such as DOUBLE[]."""
    arrow = _arrow(columns)
    cast = [
        f"{name}::DOUBLE[] AS {name}" if column.ndim == 2 else name
        for name, column in columns.items()
    ]
    connection.execute(f"CREATE TABLE {table} AS SELECT {', '.join(cast)} FROM arrow")
    del arrow
