"""Texts of statements that are remembered: each call gets what it would get without that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp, select

import ucle
from ucle.sqlgen import written_form
from ucle.sqlgen.cached_texts import Rows, cached_rows, cached_text, subquery_of
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import column, identifier, integer, table


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


def test_names_in_a_mapping_are_put_in(written: list[tuple[Any, ...]]) -> None:
    @cached_rows(varying=["names"])
    def both(names: Mapping[str, str]) -> exp.Select:
        written.append(tuple(names))
        return select(*(exp.Column(this=identifier(each)) for each in names.values()))

    for one, other in (("a", 'b"c'), ("b", "a"), ("a", "a")):
        quoted = other.replace('"', '""')
        assert both({"x": one, "y": other}) == Rows(f'SELECT "{one}", "{quoted}"')
    assert both({"y": "a"}) == Rows('SELECT "a"')
    assert written == [("x", "y"), ("y",)]


def test_the_query_of_a_result_with_names_is_written_once(
    written: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each execution has tables and dictionaries of other names."""
    make = written_form.written_query

    def noting(place: tuple[str, str], *arguments: Any, **named: Any) -> exp.Select:
        written.append(place)
        return make(place, *arguments, **named)

    monkeypatch.setattr(written_form, "written_query", noting)
    ucle.clear_caches()
    for names in (["b", "a"], ["d", "c"]):
        rows = pa.table({"i": names, "j": names[::-1], "v": [1.0, 2.0]})
        table = ucle.table(rows, ["i", "j"], "v", coordinates={"i": "name", "j": "name"})
        program = ucle.einsum_program("Y[i,j] = A[i,j] + A[j,i]", A=table)
        with program.execute() as result:
            columns = result["Y"].to_arrow().to_pydict().values()
            found = {(i, j): v for i, j, v in zip(*columns, strict=True)}
        one, other = names
        assert found == {(one, other): 3, (other, one): 3}
    assert len(written) == 1


def test_numbers_of_other_types_are_other_numbers() -> None:
    @cached_text
    def value(number_: float) -> str:
        return str(number_)

    assert [value(x) for x in (1, 1.0, True, 0.0, -0.0)] == ["1", "1.0", "True", "0.0", "-0.0"]


def test_queries_stand_in_statements(written: list[tuple[Any, ...]]) -> None:
    @cached_text
    def union(queries: list[tuple[Rows, str]]) -> str:
        written.append(tuple(key for _, key in queries))
        sides = [select(column(key)).from_(subquery_of(x, "q")) for x, key in queries]
        return sql_text(exp.union(*sides))

    connection = duckdb.connect()
    connection.execute("CREATE TABLE a AS SELECT 1 AS i; CREATE TABLE b AS SELECT 2 AS i")
    for one, other in (("a", "b"), ("b", "a")):
        texts = [(Rows(f"SELECT i FROM {x}"), "i") for x in (one, other)]
        assert sorted(connection.sql(union(texts)).fetchall()) == [(1,), (2,)]
    assert len(written) == 1
    many = [(Rows(f"SELECT {n} AS i"), "i") for n in range(12)]
    assert sorted(connection.sql(union(many)).fetchall()) == [(n,) for n in range(12)]
    assert len(written) == 2


def test_remembered_texts_of_remembered_texts(written: list[tuple[Any, ...]]) -> None:
    """Marks of one call are put into the text of another, which has marks of the same names."""

    @cached_rows(varying=["last", "most"])
    def between(rows: Rows, last: int, most: int) -> exp.Select:
        written.append(("between",))
        later = exp.GT(this=column("i"), expression=integer(last))
        upto = exp.LTE(this=column("i"), expression=integer(most))
        return select(exp.Star()).from_(subquery_of(rows, "q")).where(later, upto)

    @cached_rows(varying=["name", "last", "most"])
    def twice(most: int, last: int, rows: Rows, other: Rows, name: str) -> exp.Query:
        written.append(("twice",))
        sides = between(other, last, most), between(rows, last, most)
        own = select(column("i")).from_(table(name))
        return exp.union(own, *map(subquery_of, sides), distinct=False)

    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 0 AS i")
    for last, most in ((1, 4), (6, 9)):
        one, other = (Rows(f"SELECT i FROM range({n}, {n + 5}) r(i)") for n in (0, 5))
        found = connection.sql(twice(most, last, one, other, "t").text).fetchall()
        assert sorted(found) == [(0,), *((i,) for i in range(last + 1, most + 1))]
    assert [x for (x,) in written] == ["twice", "between"]


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
