"""Values that are positions along an axis of names or dates are written as these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ucle

STARS = pa.table(
    {
        "who": ["ann", "ann", "ann", "bob", "bob"],
        "what": ["hat", "shoe", "cap", "hat", "tie"],
        "stars": [5.0, 1.0, 3.0, 2.0, 4.0],
    }
)
BEST = {("ann", 0): "hat", ("ann", 1): "cap", ("bob", 0): "tie", ("bob", 1): "hat"}


def random_matrix(rng: np.random.Generator, kind: str) -> pd.DataFrame:
    """A matrix with coordinates of a kind, in their order; many of its entries are equal."""
    rows, columns = rng.integers(1, 7, 2)
    numbers = np.arange(columns)
    match kind:
        case "names":
            names: Any = [f"n{x}" for x in numbers]
        case "dates":
            names = pd.Timestamp("2024-02-27") + pd.to_timedelta(numbers, unit="D")
        case "ids":
            names = numbers * 10**9 + 7
        case _:
            names = numbers
    values = rng.integers(-3, 4, (rows, columns)) / 2
    return pd.DataFrame(values, index=[f"u{x}" for x in range(rows)], columns=names)


def as_tensor(frame: pd.DataFrame, kind: str, connection: duckdb.DuckDBPyConnection) -> ucle.Tensor:
    """The tensor of a table with a row for each entry."""
    long = frame.rename_axis(index="u", columns="i").stack().rename("v").reset_index()
    connection.register("long", long.sample(frac=1, random_state=1))
    connection.execute("CREATE OR REPLACE TABLE scores AS FROM long")
    connection.unregister("long")
    coordinates = {"i": "ids"} if kind == "ids" else "auto"
    table = ucle.table("scores", ["u", "i"], "v", coordinates=coordinates)
    return ucle.tensor(table, axes=("u", "i"))


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", ["names", "dates", "ids", "positions"])
@pytest.mark.parametrize("seed", range(8))
def test_random_matrices(seed: int, kind: str, connection: duckdb.DuckDBPyConnection) -> None:
    rng = np.random.default_rng(seed)
    frame = random_matrix(rng, kind)
    x, count = as_tensor(frame, kind, connection), int(rng.integers(1, frame.shape[1] + 1))
    how = {"decomposition": ["auto", "relational"][seed % 2]}
    for found, expected in (
        (x.argmax("i"), frame.idxmax(axis=1)),
        (x.argmin("i"), frame.idxmin(axis=1)),
    ):
        shown = found.to_pandas(connection, **how).set_index("u")["val"].sort_index()
        assert shown.index.tolist() == expected.index.tolist()
        assert pd.Index(shown).astype(str).tolist() == pd.Index(expected).astype(str).tolist()
    order = np.argsort(-frame.to_numpy(), axis=1, kind="stable")[:, :count]
    best = x.top_k(count, "i")
    ranked = best.positions.to_pandas(connection, columns="rank", **how)
    expected = np.asarray(frame.columns.astype(str))[order]
    assert ranked.index.tolist() == frame.index.tolist()
    assert ranked.astype(str).to_numpy().tolist() == expected.tolist()
    with best.positions.program(connection).execute() as result:
        np.testing.assert_array_equal(result["out"].to_numpy(), order)


@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_every_way_out(
    decomposition: str, connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    connection.register("stars_rows", STARS)
    connection.execute("CREATE OR REPLACE TABLE stars AS FROM stars_rows")
    program = ucle.einsum_program(
        "P[u,r] = arg_top_k[i,r](S[u,i]); Q[r,u] = P[u,r]; G[u] = P[u,0]; n[u] = G[u] + 1",
        S="stars",
        bounds={"r": 2},
        outputs=["P", "Q", "G", "n"],
        database=connection,
        decomposition=decomposition,
    )

    def as_dict(rows: Any) -> dict[Any, Any]:
        return {(u, r): name for u, r, name in rows}

    with program.execute() as result:
        best = result["P"]
        assert best.value_coordinates is not None
        assert best.value_coordinates.to_pylist() == ["cap", "hat", "shoe", "tie"]
        assert best.to_numpy().tolist() == [[1, 0], [3, 1]]
        assert as_dict(best.relation.fetchall()) == BEST
        assert as_dict(best.to_pandas().itertuples(index=False)) == BEST
        assert as_dict(best.to_polars().rows()) == BEST
        assert as_dict(best.shown(rows="nonfill").fetchall()) == BEST
        assert dict(best.shown(keys=["u"]).fetchall()) == {
            "ann": ["hat", "cap"],
            "bob": ["tie", "hat"],
        }
        lists = best.to_arrow(keys=["u"]).sort_by("u")
        assert lists["val"].to_pylist() == [["hat", "cap"], ["tie", "hat"]]
        wide = best.to_arrow(columns="r")
        assert wide.to_pydict() == {"u": ["ann", "bob"], "0": ["hat", "tie"], "1": ["cap", "hat"]}
        assert "hat" in repr(best._repr_html_())
        best.to_table("best", mode="replace")
        assert as_dict(connection.sql("FROM best").fetchall()) == BEST
        best.save(tmp_path / "best.parquet")
        assert as_dict(pl.read_parquet(tmp_path / "best.parquet").rows()) == BEST
        assert pq.read_schema(tmp_path / "best.parquet").field("val").type == pa.string()
        swapped = {(u, r): name for r, u, name in result["Q"].relation.fetchall()}
        assert swapped == BEST
        assert dict(result["G"].relation.fetchall()) == {"ann": "hat", "bob": "tie"}
        assert dict(result["n"].relation.fetchall()) == {"ann": 2, "bob": 4}
    connection.execute("DROP TABLE best")


def test_views_show_names() -> None:
    with ucle.connect() as connection:
        connection.register("rows", STARS)
        connection.execute("CREATE TABLE stars AS FROM rows")
        text = "best_item[u] = argmax[i](S[u,i])"
        ucle.einsum_program(text, S="stars", database=connection).create_views(connection)
        assert dict(connection.sql("FROM best_item").fetchall()) == {"ann": "hat", "bob": "tie"}
        connection.execute("UPDATE stars SET what = 'bag' WHERE what = 'tie'")
        assert dict(connection.sql("FROM best_item").fetchall()) == {"ann": "hat", "bob": "bag"}


def test_loops_keep_names(connection: duckdb.DuckDBPyConnection) -> None:
    program = ucle.einsum_program(
        "next[u,i] = x[u,i] * S[u,i]; best[u] = argmax[i](next[u,i])",
        x=STARS,
        S=STARS,
        database=connection,
        outputs=["next", "best"],
    )
    with program.prepare(carry={"x": "next"}) as steps:
        for _ in range(2):
            found = dict(steps.run()["best"].relation.fetchall())
    assert found == {"ann": "hat", "bob": "tie"}


def test_position_0_is_written(connection: duckdb.DuckDBPyConnection) -> None:
    found = ucle.array([[3, 1], [0, 5]], axes=("a", "b")).argmax("b")
    assert sorted(found.to_arrow(connection)["val"].to_pylist()) == [0, 1]


def test_a_larger_bound_has_no_names(connection: duckdb.DuckDBPyConnection) -> None:
    """Of two entries that are not there, the first position comes first."""
    rows = pa.table({"i": ["p", "q"], "v": [-1.0, -2.0]})
    program = ucle.einsum_program(
        "P[r] = arg_top_k[i,r](S[i])", S=rows, bounds={"i": 4, "r": 3}, database=connection
    )
    with program.execute() as result:
        found = dict(result["P"].relation.fetchall())
        assert found == {0: None, 1: None, 2: "p"}
        assert result["P"].shown(keys=[]).fetchall() == [([None, None, "p"],)]


def test_an_axis_of_size_1_keeps_names(connection: duckdb.DuckDBPyConnection) -> None:
    stars = ucle.tensor(STARS, axes=("who", "what"))
    for found in (stars.top_k(1, "what").positions, stars.argmax("what", keepdims=True)):
        rows = found.to_arrow(connection).sort_by("who")
        assert rows["val"].to_pylist() == ["hat", "tie"]


def test_values_are_no_names(connection: duckdb.DuckDBPyConnection) -> None:
    program = ucle.einsum_program(
        "V[u] = int64(top_k[i](S[u,i])); n[u] = argmax[i](S[u,i]) + 0 * V[u]; "
        "W[u] = when(V[u] > 4, argmax[i](S[u,i]))",
        S=STARS,
        outputs=["V", "n", "W"],
        database=connection,
    )
    with program.execute() as result:
        assert all(tensor.value_coordinates is None for tensor in result.values())
        assert result["V"].to_numpy().tolist() == [5, 4]
