"""A result that another program reads, in every way and on every engine in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from fed_programs import FED, PAGE_RANK, Fed, P

import ucle
from ucle.testing.partitions import run_on_partitions

Connection = duckdb.DuckDBPyConnection


def to_table(result: Any, _: Path) -> Any:
    result["N"].to_table("fed", mode="replace")
    return "fed"


def saved(suffix: str) -> Callable[[Any, Path], Any]:
    def to_file(result: Any, folder: Path) -> Any:
        path = folder / f"fed{suffix}"
        result["N"].save(path)
        return str(path)

    to_file.__name__ = suffix
    return to_file


def relation(result: Any, _: Path) -> Any:
    return result["N"].relation


def to_arrow(result: Any, _: Path) -> Any:
    return result["N"].to_arrow()


def to_pandas(result: Any, _: Path) -> Any:
    return result["N"].to_pandas()


def to_polars(result: Any, _: Path) -> Any:
    return result["N"].to_polars()


def to_numpy(result: Any, _: Path) -> Any:
    return result["N"].to_numpy()


def stream(result: Any, _: Path) -> Any:
    return result["N"]


WAYS = (relation, to_arrow, to_pandas, to_polars, to_numpy, stream, to_table, saved(".parquet"))


def native(program: Any, _: Connection) -> Any:
    return program.execute()


def on_partitions(program: Any, connection: Connection) -> Any:
    return run_on_partitions(program, connection, 3, seed=1)


ENGINES = {
    "native": (ucle.connect, native, {}),
    "arrow": (duckdb.connect, native, {}),
    "relational": (ucle.connect, native, {"decomposition": "relational"}),
    "partitions": (ucle.connect, on_partitions, {}),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("engine", ENGINES)
def test_each_way_on_each_engine(engine: str, tmp_path: Path) -> None:
    connect, run, options = ENGINES[engine]
    wrong = []
    with connect() as connection:
        for n, fed in enumerate(FED):
            program = ucle.einsum_program(fed.text, P=fed.p, database=connection, **options)
            with run(program, connection) as result:
                for way in WAYS[n % 3 :: 3] if n else WAYS:
                    try:
                        found = read(way(result, tmp_path), fed, connection)
                    except Exception as error:
                        wrong.append(f"{fed.text}, {way.__name__}: {error!r}")
                        continue
                    if not np.array_equal(found, fed.expected):
                        wrong.append(f"{fed.text}, {way.__name__}: {found.tolist()}")
    assert not wrong, "\n".join(wrong)


def read(value: Any, fed: Fed, connection: Connection) -> Any:
    bounds = dict.fromkeys(fed.labels.split(",") if fed.labels else (), 4)
    options: Any = {"bounds": bounds, "database": connection}
    with ucle.einsum_program(fed.next, N=value, **options).execute() as result:
        return result["M"].to_numpy()


def test_page_rank_by_hand() -> None:
    """Two of four nodes have no incoming edge: their rank is the fill, and counts."""
    with ucle.connect() as connection:
        text = "N[j] = 0.15/4 + 0.85*sum[i](P[i,j]*R[i])"
        held: Any = np.full(4, 0.25)
        expected = held
        kept = []
        for _ in range(3):
            expected = 0.15 / 4 + 0.85 * P.T @ expected
            program = ucle.einsum_program(text, P=P, R=held, database=connection)
            kept.append(run_on_partitions(program, connection, 2))
            held = kept[-1]["N"].relation
            assert np.allclose(kept[-1]["N"].to_numpy(), expected, rtol=1e-14)
        assert len(held.fetchall()) == len(PAGE_RANK.expected)
