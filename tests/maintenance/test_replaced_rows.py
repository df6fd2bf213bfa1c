"""Rows of kept tensors are replaced by what differs, without a second look at the kept table."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.database.session import Session
from ucle.maintenance import refresh
from ucle.sqlgen.maintained_tables import count_changed
from ucle.sqlgen.replaced_rows import create_differing, describe_differing

TEXT = "T[i,k] += A[i,j] * H[j,k]"
WAYS = ("auto", "differences", "affected keys", "from scratch")


def _data(kind: str = "DOUBLE") -> duckdb.DuckDBPyConnection:
    connection = ucle.connect()
    connection.execute(
        f"CREATE TABLE A AS SELECT (7 * i) % 20 AS i, i % 23 AS j, (i % 5)::{kind} AS val "
        "FROM range(150) r(i)"
    )
    connection.execute(
        f"CREATE TABLE H AS SELECT j, k, (j - k)::{kind} AS val FROM range(30) a(j), range(3) b(k)"
    )
    return connection


def _change(connection: duckdb.DuckDBPyConnection, rng: np.random.Generator) -> None:
    """Delete, update and insert rows of A, so that entries vanish, differ and appear."""
    i, j = (int(x) for x in rng.integers(0, 20, 2))
    connection.execute(f"DELETE FROM A WHERE i = {i}")
    connection.execute(f"UPDATE A SET val = val + 1 WHERE i = {(i + 1) % 20}")
    for row in range(3):
        key = f"{(i + 2 + row) % 25}, {24 + row + j % 3}"
        connection.execute(
            f"INSERT INTO A SELECT {key}, 2 WHERE ({key}) NOT IN (SELECT (i, j) FROM A)"
        )


def _same(connection: duckdb.DuckDBPyConnection, program: Any, output: str, table: str) -> None:
    with program.recompile().execute() as result:
        expected = sorted(result[output].shown(rows="nonfill").fetchall())
    assert sorted(connection.table(table).fetchall()) == expected


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["DOUBLE", "BIGINT"])
@pytest.mark.parametrize("compared", [0, 100_000])
def test_what_differs(way: str, kind: str, compared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests follow from the rows that differ: the next refresh finds the table as it was left."""
    monkeypatch.setattr(refresh, "COMPARED", compared)
    monkeypatch.setattr(refresh, "WORTH_COMPILING", 0)
    rng = np.random.default_rng(3)
    with _data(kind) as connection:
        program = ucle.einsum_program(TEXT, A="A", H="H", database=connection)
        kept = program.maintain("kept", connection)
        for _ in range(5):
            _change(connection, rng)
            report = kept.refresh(way=way)
            _same(connection, program, "T", "kept")
            if way == "from scratch" and not compared:
                assert report.rows == len(connection.table("kept"))
        assert kept.refresh().changed == {}


def test_a_table_with_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is made anew would lose it: its rows are replaced, as those of small ones."""
    monkeypatch.setattr(refresh, "COMPARED", 0)
    with _data() as connection:
        program = ucle.einsum_program(TEXT, A="A", H="H", database=connection)
        kept = program.maintain("kept", connection)
        connection.execute("CREATE INDEX of_kept ON kept (i)")
        connection.execute("UPDATE A SET val = val + 1 WHERE i = 3")
        report = kept.refresh(way="from scratch")
        assert 0 < report.rows <= 3
        assert len(connection.sql("FROM duckdb_indexes()")) == 1
        _same(connection, program, "T", "kept")


def test_what_others_read_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of a tensor that stay the same are not handed on."""
    monkeypatch.setattr(refresh, "COMPARED", 0)
    with _data("BIGINT") as connection:
        text = f"{TEXT}; Z[i,k] = max(T[i,k], 0)"
        program = ucle.einsum_program(text, A="A", H="H", database=connection, outputs=["T", "Z"])
        kept = program.maintain("kept", connection)
        connection.execute("INSERT INTO A VALUES (3, 29, 5)")
        first, second = kept.refresh(way="from scratch").tensors
        assert 0 < first.rows <= 3
        assert (first.way, second.way) == ("from scratch", "from scratch")
        _same(connection, program, "T", "kept_T")
        _same(connection, program, "Z", "kept_Z")


def test_tensors_behind_one_that_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """One program computes both: of what is made anew, every entry may differ for others."""
    monkeypatch.setattr(refresh, "COMPARED", 0)
    monkeypatch.setattr(refresh, "WORTH_COMPILING", 0)
    layer = "T[i,k] += A[i,j] * H[j,k]; Z[i,n] = max(T[i,k] * W[k,n], 0)"
    with _data() as connection:
        connection.execute(
            "CREATE TABLE W AS SELECT k, n, 1.0 + k AS val FROM range(3) a(k), range(3) b(n)"
        )
        inputs = {"A": ucle.table("A", bounds=[30, 30]), "H": "H", "W": "W"}
        text = f"{layer}; U[i,n] += A[i,j] * Z[j,n]; Y[i,m] = U[i,n] * W[n,m]"
        program = ucle.einsum_program(text, inputs=inputs, outputs=["Y"], database=connection)
        kept = program.maintain("kept", connection)
        together = 0
        for number in range(4):
            connection.execute("UPDATE A SET val = val + 1")
            ways = [x for x in kept.refresh().tensors if x.way == "from scratch"]
            together += len({x.cost for x in ways}) < len(ways)
            _same(connection, program, "Y", "kept")
            connection.execute(f"UPDATE A SET val = 9 WHERE i = {number}")
            kept.refresh(way="affected keys")
            _same(connection, program, "Y", "kept")
        assert together


@pytest.mark.sample(2)
@pytest.mark.parametrize("way", WAYS)
def test_a_label_called_rowid(way: str) -> None:
    """A column of that name hides the number of a row."""
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT i % 9 AS r, i AS j, 1.0 AS val FROM range(50) t(i)"
        )
        program = ucle.einsum_program("S[rowid] += A[rowid,j]", A="A", database=connection)
        kept = program.maintain("kept", connection)
        for j in (60, 61):
            connection.execute(f"INSERT INTO A VALUES (3, {j}, 4.0), ({j}, 1, 2.0)")
            kept.refresh(way=way)
            _same(connection, program, "S", "kept")
        connection.execute("DELETE FROM A WHERE r = 60")
        kept.refresh(way="affected keys")
        _same(connection, program, "S", "kept")


def test_few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kept table is read for its digest, for one join, and where rows are deleted."""
    monkeypatch.setattr(refresh, "WORTH_COMPILING", 0)
    with _data() as connection:
        program = ucle.einsum_program(TEXT, A="A", H="H", database=connection)
        kept = program.maintain("kept", connection, append_only=["A"])
        ran: list[str] = []
        for name in ("run", "fetch", "read"):
            monkeypatch.setattr(Session, name, _recorded(getattr(Session, name), ran))
        for j in (24, 25):
            connection.execute(f"INSERT INTO A VALUES (3, {j}, 4.0)")
            ran.clear()
            report = kept.refresh()
            assert [x.way for x in report.tensors] == ["differences"]
        reads = [x for x in ran if 'FROM "kept"' in x and "LIMIT 0" not in x]
        assert len(reads) == 3
        assert not any("storage_info" in x for x in ran)


def _recorded(method: Any, ran: list[str]) -> Any:
    def run(session: Session, sql: str, *others: Any, **named: Any) -> Any:
        ran.append(sql)
        return method(session, sql, *others, **named)

    return run


def test_texts_are_remembered_by_type() -> None:
    """1 and 1.0 are equal, and stand for columns of different types."""
    texts = [create_differing(("t",), ("kept",), ["i"], x) for x in (1, 1.0, None)]
    assert len(set(texts)) == 3
    assert create_differing(("t",), ("kept",), ["i"], 1) is texts[0]
    assert count_changed(("t",), ["i"], [], differs_by=True) != count_changed(
        ("t",), ["i"], [], differs_by=False
    )
    assert "delta" not in describe_differing(("t",), ["i"], ["i"], None)
