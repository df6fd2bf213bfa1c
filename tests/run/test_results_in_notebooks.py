"""Display of results in a notebook: their shape, stored entries, the first rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import duckdb
import numpy as np
import pytest

import ucle
from ucle.database.session import Session
from ucle.run import description
from ucle.run.description import NUMBERS, ROWS, TENSORS

READS = ("fetch", "read", "reader", "table", "one_row", "run", "relation")


def cells(page: str) -> list[list[str]]:
    """The rows of all tables of an element, which has to be well-formed."""
    element = ElementTree.fromstring(
        page.replace("<br>", "<br/>").replace("<details open>", "<details>")
    )
    return [["".join(cell.itertext()) for cell in row] for row in element.iter("tr")]


@pytest.fixture
def result() -> Iterator[ucle.Result]:
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE sold AS SELECT 'shop <' || i || '>' AS shop, i AS day, i / 2 AS val"
            " FROM range(100) t(i)"
        )
        sold = ucle.table("sold", ["shop", "day"], coordinates={"shop": "shop"})
        program = ucle.einsum_program(
            "S[shop] += X[shop,day]; Z[shop,k] = S[shop] * w[k]",
            X=sold,
            w=np.arange(8.0),
            database=connection,
            decomposition={"Z": ["shop"], "S": ["shop"]},
            outputs=("S", "Z"),
        )
        with program.execute() as made:
            yield made


def test_rows_that_are_stored(result: ucle.Result) -> None:
    page = result["Z"]._repr_html_()
    found = cells(page)
    assert ["shop", "100", "values of the data", "a key column"] in found
    assert ["k", "8", "positions", "the arrays"] in found
    assert "float64, fill 0, 99 rows stored of 100, each an array of 8" in page
    rows = found[found.index(["shop", "val"]) + 1 :]
    assert rows[0] == ["shop <10>", "[0, 5, 10, 15, ...]"]
    assert rows[1] == ["shop <11>", "[0, 5.5, 11, 16.5, ...]"]
    assert len(rows) == ROWS
    assert rows[1][1].count(",") == NUMBERS


def test_names_and_values_are_escaped(result: ucle.Result) -> None:
    assert "<10>" not in result["Z"]._repr_html_()
    assert "&lt;10&gt;" in result["Z"]._repr_html_()


def test_a_result_shows_its_tensors(result: ucle.Result) -> None:
    page = result._repr_html_()
    assert ["shop", "100", "values of the data", "a key column"] in cells(page)
    assert page.count("rows stored") == 2
    assert page.count('class="ucle"') == 1


def test_few_small_queries(result: ucle.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two for each tensor: how many rows there are, and the first of them."""
    ran: list[str] = []
    for name in READS:
        inner = getattr(Session, name)

        def count(self: Session, sql: str, *rest: Any, _inner: Any = inner, **named: Any) -> Any:
            ran.append(sql)
            return _inner(self, sql, *rest, **named)

        monkeypatch.setattr(Session, name, count)
    repr(result["Z"])
    assert not ran
    result["Z"]._repr_html_()
    reads = [sql for sql in ran if "current_setting" not in sql]
    assert len(reads) == 2
    assert "count(*)" in reads[0].lower()
    assert f"LIMIT {ROWS}" in reads[1]


def test_what_is_gone_is_said() -> None:
    program = ucle.einsum_program("s += x[i]", x=[1.0, 2.0])
    result = program.execute()
    assert ["3"] in cells(result._repr_html_())
    result.close()
    page = result._repr_html_()
    assert "the result is gone" in page
    assert "First rows" not in page
    assert repr(result) == "<Result of s>"


def test_what_cannot_be_read_is_said() -> None:
    with ucle.connect() as connection:
        program = ucle.einsum_program("y[i] = x[i]", x=[1.0, 2.0], database=connection)
        with program.execute() as result:
            connection.execute("BEGIN")
            with pytest.raises(duckdb.Error, match="nothing_of_that_name"):
                connection.execute("FROM nothing_of_that_name")
            page = result["y"]._repr_html_()
            connection.execute("ROLLBACK")
            assert "First rows" in result["y"]._repr_html_()
    assert ["i", "2", "positions", "the arrays"] in cells(page)


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float32, np.complex128])
def test_every_type(dtype: type) -> None:
    data = np.array([[0, 1], [1, 1]]).astype(dtype)
    for keys in ([], ["i"], ["i", "j"]):
        program = ucle.einsum_program("Z[i,j] = A[i,j]", A=data, decomposition={"Z": keys})
        with program.execute() as result:
            page = result["Z"]._repr_html_()
            assert "First rows" in page
            assert "cannot be read" not in page
            assert len(cells(page)) > 4


def test_the_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "; ".join(f"y{n}[i] = x[i] + {n}" for n in range(30))
    names = tuple(f"y{n}" for n in range(30))
    with ucle.einsum_program(text, x=np.arange(1000.0), outputs=names).execute() as result:
        page = result._repr_html_()
        assert page.count("First rows") == TENSORS
        assert len(page) < 15_000
        monkeypatch.setattr(description, "LARGEST_ROW", 100)
        assert "First rows" not in result["y0"]._repr_html_()


def test_nothing_is_stored() -> None:
    import scipy.sparse as sp

    empty = sp.coo_array((4, 5))
    with ucle.einsum_program("y[i] += A[i,j]", A=empty, decomposition="relational").execute() as r:
        page = r["y"]._repr_html_()
    assert "0 rows stored of 4" in page
    assert "First rows" not in page
