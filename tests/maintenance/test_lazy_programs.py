"""Programs of lazy tensors that are maintained: what their statements say beside their text."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.errors import CoordinateError, MaintenanceError, NameResolutionError
from ucle.language.parse import parse_program
from ucle.maintenance.maintained import Maintained

PROGRAMS: dict[str, Callable[[ucle.Tensor, ucle.Tensor], ucle.Tensor]] = {
    "top_k": lambda t, q: t.top_k(2, "b").values,
    "among_top_k": lambda t, q: t[t.among_top_k(2, "b")],
    "median": lambda t, q: ucle.median(t, "b", stored=True),
    "quantile": lambda t, q: ucle.quantile(t.unnamed(), 0.3),
    "pad": lambda t, q: ucle.pad(t.unnamed(), 1),
    "concat": lambda t, q: ucle.concat([t.unnamed(), 2 * t.unnamed()]),
    "reshape": lambda t, q: t.unnamed().reshape(2, 10),
    "roll": lambda t, q: ucle.roll(t.unnamed(), 1, axis=1),
    "tile": lambda t, q: ucle.tile(t.unnamed(), (2, 1)),
    "positions": lambda t, q: ucle.arange(5) * t.unnamed(),
    "identity": lambda t, q: t.unnamed() + ucle.eye(4, 5),
    "take": lambda t, q: t.unnamed().take(q, axis=1),
    "take of a sum": lambda t, q: (t.unnamed() + 1).take(q + 1),
    "slice": lambda t, q: t[1:3, ::2],
    "reversed": lambda t, q: t.unnamed()[::-1],
    "one": lambda t, q: t.unnamed()[2],
    "list": lambda t, q: t.unnamed()[:, [3, 1, 3]],
    "sel": lambda t, q: t.sel(b=[0, 4]),
    "diagonal": lambda t, q: ucle.diagonal(t.unnamed()),
    "take along": lambda t, q: ucle.take_along_axis(t.unnamed(), ucle.argsort(t.unnamed()), axis=1),
}
CHANGES = (
    "UPDATE t SET v = v + 1.5 WHERE a = 1; DELETE FROM t WHERE a = 2 AND b = 2",
    "DELETE FROM t WHERE b = 0; UPDATE q SET v = 2 - v; INSERT INTO t VALUES (1, 0, -2.5)",
)


def tensors() -> tuple[ucle.Tensor, ucle.Tensor]:
    """A matrix with named axes, and positions along its axes, one of which is left out."""
    t = ucle.tensor(ucle.table("t", ["a", "b"], "v", bounds=[4, 5]), axes=("a", "b"))
    return t, ucle.tensor(ucle.table("q", ["i"], "v", bounds=[3]))


@pytest.mark.sample(4)
@pytest.mark.parametrize("way", ["auto", "affected keys", "from scratch"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_refreshes(name: str, way: str, fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("""
        CREATE TABLE t AS
        SELECT i % 4 AS a, i % 5 AS b, (i * 7 % 11 - 3) / 2.0 AS v FROM range(20) r(i)
        WHERE i % 3 <> 1
    """)
    fresh.execute("CREATE TABLE q AS SELECT i, i::BIGINT AS v FROM range(3) r(i)")
    wanted = PROGRAMS[name](*tensors())
    kept = wanted.program(fresh).maintain("kept", fresh)
    assert_kept(wanted, fresh)
    for change in CHANGES:
        fresh.execute(change)
        kept.refresh(way=way)
        assert_kept(wanted, fresh)


def assert_kept(wanted: ucle.Tensor, connection: duckdb.DuckDBPyConnection) -> None:
    """Check that the kept table has the entries of a tensor."""
    with wanted.program(connection).execute() as result:
        expected: Any = result["out"].to_numpy()
        found = np.full(expected.shape, result["out"].type.fill, expected.dtype)
    for *at, value in connection.sql("FROM kept").fetchall():
        found[tuple(at)] = value
    np.testing.assert_allclose(found, expected)


def selected_words(
    connection: duckdb.DuckDBPyConnection,
) -> tuple[ucle.EinsumProgram, Maintained]:
    """Rows of a table of words, in another order, and what keeps them."""
    connection.execute(
        "CREATE TABLE w AS SELECT 'n' || i AS a, i AS b, 1.5 * i AS v FROM range(5) r(i)"
    )
    w = ucle.tensor(ucle.table("w", ["a", "b"], "v"), axes=("a", "b"))
    program = w.sel(a=["n3", "n1"]).program(connection)
    return program, program.maintain("kept", connection)


def rows_of(program: ucle.EinsumProgram) -> set[tuple[Any, ...]]:
    with program.recompile().execute() as result:
        return set(result["out"].shown(rows="nonfill").fetchall())


def test_selected_words(fresh: duckdb.DuckDBPyConnection) -> None:
    program, kept = selected_words(fresh)
    for change in ("UPDATE w SET v = 7 WHERE a = 'n3'", "INSERT INTO w VALUES ('n1', 3, 2.5)"):
        fresh.execute(change)
        kept.refresh()
        assert set(fresh.sql("FROM kept").fetchall()) == rows_of(program)
    fresh.execute("CREATE TABLE new AS SELECT 'n1' AS a, 4 AS b, 8.0 AS v")
    fresh.execute(kept.to_sql(inserted={"w": "new"}, kernels=False))
    assert ("n1", 4, 8) in fresh.sql("FROM kept").fetchall()
    kept.refresh()
    before = fresh.sql("FROM kept").fetchall()
    fresh.execute("DELETE FROM w WHERE a = 'n3'")
    with pytest.raises(CoordinateError, match="does not occur"):
        kept.refresh()
    assert fresh.sql("FROM kept").fetchall() == before


def test_tables_of_selections(fresh: duckdb.DuckDBPyConnection) -> None:
    """They belong to the program: nobody tells their rows or changes them, and they go with it."""
    _, kept = selected_words(fresh)
    with pytest.raises(NameResolutionError, match="no input of this name"):
        kept.refresh(inserted={"picked": "w"})
    fresh.execute("""UPDATE ucle."kept: input picked" SET picked = 'n2' WHERE picked = 'n1'""")
    with pytest.raises(MaintenanceError, match="changed by others"):
        kept.refresh()
    kept.drop()
    left = fresh.sql("SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, 'kept')")
    assert left.fetchall() == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_texts_are_programs(name: str) -> None:
    parse_program(PROGRAMS[name](*tensors()).program_text())


def forget_sizes(connection: duckdb.DuckDBPyConnection) -> None:
    """Write the description of a maintained program as versions did that kept no sizes."""
    ((text,),) = connection.sql("SELECT document FROM ucle.maintained").fetchall()
    old = json.loads(text)
    del old["stated"]
    connection.execute("UPDATE ucle.maintained SET document = ?", [json.dumps(old)])


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["pad", "concat", "top_k", "among_top_k", "quantile"])
def test_programs_that_were_kept_without_sizes(name: str, fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute(
        "CREATE TABLE t AS SELECT i % 4 AS a, i % 5 AS b, i * 1.5 AS v FROM range(20) r(i)"
    )
    fresh.execute("CREATE TABLE q AS SELECT i, i::BIGINT AS v FROM range(3) r(i)")
    kept = PROGRAMS[name](*tensors()).program(fresh).maintain("kept", fresh)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept.refresh()
    forget_sizes(fresh)
    with pytest.warns(ucle.MeaningWarning, match="'kept' was maintained by an earlier version"):
        kept = ucle.maintained("kept", fresh)
    for _ in range(2):  # a refresh does not make it one that is known to have no sizes
        with pytest.warns(ucle.MeaningWarning, match=r"drop\(\), and maintain"):
            kept.refresh()
    kept.drop()


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("s[i] = x[i] - x[~(i-1)]; c[i] = cumsum[i](x[i])", {}),
        ("s[r] = top_k[i,r](x[i])", {"r": 2}),
        ("p[i] = i; s[i] = p[i] * x[i]", {}),
    ],
)
def test_programs_that_state_no_sizes(
    text: str, bounds: dict[str, int], fresh: duckdb.DuckDBPyConnection
) -> None:
    fresh.execute("CREATE TABLE x AS SELECT i, i * 1.5 AS v FROM range(5) r(i)")
    program = ucle.einsum_program(text, x="x", bounds=bounds, database=fresh)
    program.maintain("kept", fresh)
    forget_sizes(fresh)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ucle.maintained("kept", fresh).refresh()
