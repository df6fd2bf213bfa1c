"""Texts of statements that are remembered: each call gets what it would get without that."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from sqlglot import exp, select

import ucle
from ucle.sqlgen.cached_texts import AnyQuery, Rows, cached_rows, cached_text, tree_of
from ucle.sqlgen.maintained_tables import changed_rows, rows_that_changed
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import column, integer, table
from ucle.sqlgen.write_statements import all_rows, create_table, insert_rows, table_rows


@pytest.fixture
def written() -> list[tuple[Any, ...]]:
    """The arguments with which texts were made."""
    return []


def test_what_varies_is_put_in(written: list[tuple[Any, ...]]) -> None:
    @cached_text(varying=["name", "last"])
    def behind(name: tuple[str, ...], last: int, key: str, most: int | None = None) -> str:
        written.append((name, last, key, most))
        later = exp.GT(this=column(key), expression=integer(last))
        return sql_text(select(column(key)).from_(table(*name)).where(later))

    assert behind(("m", "a"), 3, "i") == 'SELECT "i" FROM "m"."a" WHERE "i" > 3'
    assert behind(("m", 'b"c'), -1, "i") == 'SELECT "i" FROM "m"."b""c" WHERE "i" > -1'
    assert behind(("m", "a"), last=4, key="i") == 'SELECT "i" FROM "m"."a" WHERE "i" > 4'
    assert len(written) == 1
    assert behind(("n", "a"), 3, "i") == 'SELECT "i" FROM "n"."a" WHERE "i" > 3'
    assert behind(("m", "a"), 3, "j") == 'SELECT "j" FROM "m"."a" WHERE "j" > 3'
    assert len(written) == 3


def test_numbers_of_other_types_are_other_numbers() -> None:
    @cached_text
    def value(number_: float) -> str:
        return str(number_)

    assert [value(x) for x in (1, 1.0, True, 0.0, -0.0)] == ["1", "1.0", "True", "0.0", "-0.0"]


def test_queries_stand_in_statements(written: list[tuple[Any, ...]]) -> None:
    @cached_text
    def union(queries: list[tuple[AnyQuery, str]]) -> str:
        written.append(tuple(key for _, key in queries))
        sides = [select(column(key)).from_(tree_of(x).subquery("q")) for x, key in queries]
        return sql_text(exp.union(*sides))

    connection = duckdb.connect()
    connection.execute("CREATE TABLE a AS SELECT 1 AS i; CREATE TABLE b AS SELECT 2 AS i")
    for one, other in (("a", "b"), ("b", "a")):
        texts = [(Rows(f"SELECT i FROM {x}"), "i") for x in (one, other)]
        assert sorted(connection.sql(union(texts)).fetchall()) == [(1,), (2,)]
    assert len(written) == 1
    many = [(Rows(f"SELECT {n} AS i"), "i") for n in range(12)]
    assert sorted(connection.sql(union(many)).fetchall()) == [(n,) for n in range(12)]
    written.pop()
    assert union([(all_rows(["a"]), "i"), (all_rows(["b"]), "i")]).count("FROM") == 4
    assert union([(all_rows(["b"]), "i"), (all_rows(["a"]), "i")]).startswith('SELECT "i" FROM (')
    assert len(written) == 3  # trees have no key


def test_statements_of_trees_and_of_texts_do_the_same() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE a AS SELECT i, i + 1 AS val FROM range(4) r(i)")
    connection.execute("CREATE TABLE b AS SELECT i, 2 * i AS val FROM range(5) r(i)")
    trees, texts = ([x([y], ("i", "val")) for y in "ab"] for x in (all_rows, table_rows))
    query = changed_rows(trees[0], trees[1], ["i"], "val", 1)
    rows = rows_that_changed(*texts, ["i"], "val", 1)
    found = []
    for name, each in (("t", query), ("u", rows)):
        connection.execute(create_table([name], each, replace=False))
        connection.execute(insert_rows([name], table_rows([name])))
        found.append(sorted(connection.table(name).fetchall()))
    assert found[0] == found[1] != []


def test_a_text_is_forgotten_with_other_caches(written: list[tuple[Any, ...]]) -> None:
    @cached_rows
    def rows(fill: float) -> exp.Select:
        written.append((fill,))
        return select(integer(int(fill)))

    assert rows(2.0) == rows(2.0) == Rows("SELECT 2")
    assert len(written) == 1
    ucle.clear_caches()
    assert rows(2.0) == Rows("SELECT 2")
    assert len(written) == 2
