"""Views over data whose sizes change: right, or an error before a row is returned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import duckdb
import numpy as np
import pytest

import ucle
from ucle.errors import ArgumentError, BoundError, LabelError, UnsupportedError

T = TypeVar("T")

TEXT = """
    y[i] += A[i,j]
    gram[i,k] += A[i,j] * A[k,j]
    mean = sum[i](y[i]) / sum[i](float64(y[i] >= 0))
    power += exp(A[i,j])
"""
OUTPUTS = ["y", "gram", "mean", "power"]
MODES = ["relational", {"y": [], "gram": [], "mean": []}]
CHANGES = [
    "UPDATE t SET v = v + 1",
    "DELETE FROM t WHERE i = (SELECT max(i) FROM t)",
    "INSERT INTO t SELECT i, j, 4 FROM t WHERE false",
    "INSERT INTO t VALUES ({5}, {1}, 2)",
    "DELETE FROM t WHERE i <> {0}",
]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with ucle.connect() as opened:
        yield opened


def fill(connection: duckdb.DuckDBPyConnection, text: str) -> Any:
    """A table keyed by integers, or by text, and its input."""
    strings = text == "strings"
    key = "chr(97 + {})" if strings else "{}"
    i, j = (key.format(x) for x in ("(x % 4)::INT", "(x // 3)::INT"))
    connection.execute(
        f"CREATE TABLE t AS SELECT {i} AS i, {j} AS j, x::DOUBLE AS v FROM range(1, 10) r(x)"
    ).fetchall()
    return ucle.table("t")


def keyed(change: str, text: str) -> str:
    name = "'{}'" if text == "strings" else "{}"
    letters = "abcdefgh" if text == "strings" else range(8)
    return re.sub(r"{(\d)}", lambda x: name.format(letters[int(x[1])]), change)


def total(rows: list[tuple[Any, ...]]) -> float:
    """The sum of all entries of a relation, as numbers or in arrays."""
    return float(sum(np.sum(row[-1]) for row in rows))


def unless_refused(show: Callable[[], T], pattern: str) -> T | None:
    """What a function returns; None if a guard with such a message refuses to show anything."""
    try:
        return show()
    except duckdb.Error as error:
        if re.search(pattern, str(error)):
            return None
        raise


def shown_or_refused(connection: duckdb.DuckDBPyConnection, view: str) -> float | None:
    """The sum of what a view shows; None if its guard refuses to show anything."""
    return unless_refused(
        lambda: total(connection.sql(f"FROM {view}").fetchall()),
        r"(grown beyond|shrunk below) \d+; create_views again",
    )


@pytest.mark.slow
@pytest.mark.parametrize("keys", ["integers", "strings"])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_views_are_right_or_raise(
    connection: duckdb.DuckDBPyConnection, keys: str, mode: Any
) -> None:
    given = fill(connection, keys)
    program = ucle.einsum_program(
        TEXT, A=given, database=connection, decomposition=mode, outputs=OUTPUTS
    )
    program.create_views()
    raised = set()
    for change in CHANGES:
        connection.execute(keyed(change, keys)).fetchall()
        with program.execute() as result:
            for name in OUTPUTS:
                if (shown := shown_or_refused(connection, name)) is None:
                    raised.add(name)
                else:
                    assert shown == pytest.approx(result[name].to_numpy().sum()), change
    if mode == "relational":
        assert not raised  # sizes are computed
    else:
        assert "power" in raised  # kernels need them as constants
    program.create_views(replace=True)
    for name in OUTPUTS:
        with program.execute() as result:
            shown = connection.sql(f"FROM {name}").fetchall()
            assert total(shown) == pytest.approx(result[name].to_numpy().sum())


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", ["relational", "auto"])
def test_ranks_of_pages(connection: duckdb.DuckDBPyConnection, mode: str) -> None:
    """Once a view of them summed to less than nothing after new pages had appeared."""
    connection.execute("CREATE TABLE t AS FROM (VALUES ('a', 'b'), ('b', 'c'), ('c', 'a')) r(i, j)")
    links = ucle.tensor(
        ucle.table("t", ["i", "j"], coordinates={"i": "page", "j": "page"}), axes=("i", "j")
    )
    out = links.sum("j")
    count = (out >= 0).sum()
    rank = (out >= 0) / count
    for _ in range(3):
        followed = (links / ucle.maximum(out, 1)).dot(rank, axis="i").rename({"j": "i"})
        stuck = (rank * (out == 0)).sum()
        rank = 0.85 * (followed + stuck / count) + 0.15 / count
    program = rank.program(connection, decomposition=mode)
    (view,) = program.create_views()
    assert total(connection.sql(f"FROM {view}").fetchall()) == pytest.approx(1)
    for change in ("INSERT INTO t VALUES ('d', 'e')", "DELETE FROM t WHERE i IN ('b', 'd')"):
        connection.execute(change).fetchall()
        refused = [None] if mode == "auto" else []
        assert shown_or_refused(connection, view) in [*refused, pytest.approx(1)]
        with program.execute() as result:
            assert result[program.outputs[0]].to_numpy().sum() == pytest.approx(1)


def test_capacity_for_growth(connection: duckdb.DuckDBPyConnection) -> None:
    given = fill(connection, "integers")
    program = ucle.einsum_program(
        "gram[i,k] += A[i,j] * A[k,j]", A=given, database=connection, decomposition={"gram": []}
    )
    program.create_views(capacity={"i": 20, "j": 9})
    connection.execute("INSERT INTO t VALUES (15, 8, 2)").fetchall()
    shown = sorted(connection.sql("FROM gram").fetchall())
    with program.execute() as result:
        assert shown == sorted(result["gram"].relation.fetchall())
    connection.execute("INSERT INTO t VALUES (20, 8, 2)").fetchall()
    with pytest.raises(duckdb.Error, match="grown beyond 20; create_views again"):
        connection.sql("FROM gram").fetchall()


def test_the_old_name_of_capacity(connection: duckdb.DuckDBPyConnection) -> None:
    given = fill(connection, "integers")
    program: Any = ucle.einsum_program("y[i] += A[i,j]", A=given, database=connection)
    with pytest.warns(DeprecationWarning, match=r"write create_views\(capacity="):
        program.create_views(room={"i": 20})
    with pytest.warns(DeprecationWarning, match=r"write macro_sql\(capacity="):
        assert program.macro_sql(room={"i": 20}) == program.macro_sql(capacity={"i": 20})
    with pytest.raises(ArgumentError, match="two names"):
        program.macro_sql(room={"i": 20}, capacity={"i": 20})


@pytest.mark.parametrize(
    ("text", "capacity", "bounds", "error", "message"),
    [
        ("y[i] += A[i,j]", {"q": 9}, {}, LabelError, "no label 'q'"),
        ("y[i] += A[i,j]", {"i": 1}, {}, BoundError, "capacity is less"),
        ("y[i] += A[i,j]", {"i": -1}, {}, BoundError, "not a size"),
        ("y[i] += A[i,j]", {"i": 99}, {"i": 50}, ArgumentError, "is fixed"),
        ("y[j] += exp(A[i,j])", {"i": 99}, {}, UnsupportedError, "answer depends"),
    ],
)
def test_where_there_can_be_no_capacity(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    capacity: dict[str, int],
    bounds: dict[str, int],
    error: type[Exception],
    message: str,
) -> None:
    program = ucle.einsum_program(
        text, A=fill(connection, "integers"), database=connection, bounds=bounds
    )
    with pytest.raises(error, match=message):
        program.create_views(capacity=capacity)
    views = "SELECT count(*) FROM duckdb_views() WHERE NOT internal"
    assert connection.sql(views).fetchall() == [(0,)]


@pytest.mark.parametrize("mode", ["relational", {"y": []}], ids=str)
def test_stated_bounds_are_kept(connection: duckdb.DuckDBPyConnection, mode: Any) -> None:
    given = fill(connection, "integers")
    program = ucle.einsum_program(
        "y mean= A[i,j]",
        A=given,
        database=connection,
        bounds={"i": 10, "j": 10},
        decomposition=mode,
    )
    program.create_views()
    connection.execute("INSERT INTO t VALUES (9, 9, 55)").fetchall()
    assert total(connection.sql("FROM y").fetchall()) == pytest.approx(1)
    connection.execute("INSERT INTO t VALUES (10, 9, 55)").fetchall()
    with pytest.raises(duckdb.Error, match="grown beyond 10"):
        connection.sql("FROM y").fetchall()


def test_arrays_of_another_length(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE h AS SELECT x AS i, [x, 1]::DOUBLE[] AS v FROM range(3) r(x)")
    program = ucle.einsum_program("m[k] += H[i,k]", H="h", database=connection)
    program.create_views()
    connection.execute("INSERT INTO h VALUES (1, [1, 2, 3])").fetchall()
    with pytest.raises(duckdb.Error, match="no longer has the shape 2; create_views again"):
        connection.sql("FROM m").fetchall()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "keys"), [("float64", "strings"), ("float32", "integers"), ("int64", "strings")]
)
def test_sizes_are_computed(connection: duckdb.DuckDBPyConnection, keys: str, dtype: str) -> None:
    """Counts that include unstored entries follow new and vanished coordinates."""
    given = ucle.table(fill(connection, keys).relation, dtype=dtype)
    text = """
        rows mean= A[i,j]
        of[i] mean= A[i,j]
        no[j] += int64(A[i,j] == 0)
        share[j] mean= float64(A[i,j] == 0)
        least min= A[i,j]
        centred[i,j] = A[i,j] - rows
        waves[j] += exp(A[i,j] / 8)
    """
    outputs = ["rows", "of", "no", "share", "least", "centred", "waves"]
    program = ucle.einsum_program(
        text, A=given, database=connection, decomposition="relational", outputs=outputs
    )
    program.create_views(rows="all")
    for change in (
        "INSERT INTO t VALUES ({7}, {6}, 2), ({6}, {0}, 3)",
        "DELETE FROM t WHERE i = {7}",
        "DELETE FROM t WHERE i <> {0}",
    ):
        connection.execute(keyed(change, keys)).fetchall()
        with program.execute() as result:
            for name in outputs:
                expected = result[name].to_numpy().astype(float).sum()
                shown = shown_or_refused(connection, name)
                assert shown == pytest.approx(expected, rel=1e-5, abs=1e-5), (change, name)
    connection.execute("DELETE FROM t").fetchall()
    with pytest.raises(duckdb.Error, match="shrunk below 1; create_views again"):
        connection.sql("FROM of").fetchall()


def rounded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in the order of their keys; their values are approximations, or names as they are."""
    return [
        (*keys, value if isinstance(value, str) else pytest.approx(value, rel=1e-12, abs=0))
        for *keys, value in sorted(rows)
    ]


RANKED = """
    best[i] = argmax[j](A[i,j])
    worst[j] = argmin[i](A[i,j])
    among[i,j] = among_top_k[j](A[i,j])
    firsts[i,n] = top_k[j,n](A[i,j])
    soft[i,j] = softmax[j](A[i,j])
    whole = logsumexp[i,j](A[i,j])
    waves[i,j] = exp(A[i,j] / 8)
"""
AFTER = {
    "one more": "INSERT INTO t VALUES ({5}, {1}, -2)",
    "more of both": "INSERT INTO t VALUES ({6}, {4}, 9), ({7}, {5}, 0)",
    "one less": "DELETE FROM t WHERE i = (SELECT max(i) FROM t)",
    "one of one": "DELETE FROM t WHERE i <> {0}",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("keys", ["integers", "strings"])
def test_ranks_and_exponentials_follow(connection: duckdb.DuckDBPyConnection, keys: str) -> None:
    """Arguments of range and least, and logarithms of sizes, are computed like other numbers."""
    program = ucle.einsum_program(
        RANKED,
        A=fill(connection, keys),
        database=connection,
        decomposition="relational",
        bounds={"n": 2},
    )
    program.create_views()
    for title, change in AFTER.items():
        connection.execute(keyed(change, keys)).fetchall()
        with program.execute() as result:
            for name in program.outputs:
                expected = result[name].relation.fetchall()
                shown = connection.execute(f"FROM {name}").fetchall()
                assert sorted(shown) == rounded(expected), (title, name)
    connection.execute("DELETE FROM t").fetchall()
    connection.execute(keyed("INSERT INTO t VALUES ({0}, {0}, 1)", keys)).fetchall()
    with pytest.raises(BoundError, match="not so many entries"):
        program.execute()
    with pytest.raises(duckdb.Error, match="shrunk below 2; create_views again"):
        connection.execute("FROM firsts").fetchall()


def test_scores_of_a_wide_table_follow(connection: duckdb.DuckDBPyConnection) -> None:
    """Rows become lists as long as the axis of the names of their columns is now."""
    connection.execute(
        "CREATE TABLE x AS FROM (VALUES ('a', 1.0, 2.0), ('b', 3.0, 1.0)) t(id, q, p)"
    )
    connection.execute("CREATE TABLE w AS FROM (VALUES ('q', 0, 1.0), ('p', 1, 1.0)) t(f, k, v)")
    text = """
        S[r,k] = sum[f](X[r,f] * W[f,k])
        best[r] = argmax[k](S[r,k])
        soft[r,k] = softmax[k](S[r,k])
        among[r,k] = among_top_k[k](S[r,k])
        whole mean= exp(S[r,k])
    """
    program = ucle.einsum_program(
        text,
        X=ucle.table("x", ["id"], columns_as="f"),
        W="w",
        outputs=["best", "soft", "among", "whole"],
        database=connection,
        decomposition="relational",
    )
    program.create_views()
    for change in (
        "INSERT INTO x VALUES ('c', -5.0, 9.0)",
        "INSERT INTO w VALUES ('another', 2, 1.0), ('p', 2, 0.5)",
        "DELETE FROM x WHERE id <> 'c'",
    ):
        connection.execute(change).fetchall()
        with program.execute() as result:
            for name in program.outputs:
                shown = connection.sql(f"FROM {name}").fetchall()
                expected = rounded(result[name].relation.fetchall())
                assert sorted(shown) == expected, (change, name)
