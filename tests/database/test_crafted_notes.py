"""Notes that somebody else has written: every one is refused, and the answers stay right."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.database import statistics_cache
from ucle.database.statistics_store import read_layout
from ucle.stats import measure

GOOD: dict[str, Any] = {
    "sizes": [6, 5],
    "finite": True,
    "entries": 12.0,
    "distinct": [6.0, 5.0],
    "exact": True,
}
FACTS = [
    "",
    "{",
    "[]",
    "null",
    "7",
    "[" * 100_000,
    "{}",
    *(json.dumps({name: GOOD[name] for name in GOOD if name != left}) for left in GOOD),
    *(
        json.dumps(GOOD | change)
        for change in (
            {"sizes": [6]},
            {"sizes": [6, -1]},
            {"sizes": [6, 2**63]},
            {"sizes": [6, 5.5]},
            {"sizes": [6, "5"]},
            {"sizes": [6, True]},
            {"sizes": 6},
            {"entries": -1},
            {"entries": float("nan")},
            {"entries": float("inf")},
            {"entries": 31},
            {"entries": "12"},
            {"distinct": [6]},
            {"distinct": [6, float("nan")]},
            {"distinct": [6, -1]},
            {"finite": "yes"},
            {"finite": 1},
            {"exact": None},
            {"counted": [2]},
            {"counted": [True]},
        )
    ),
]
"""30 of them."""

KEPT = [
    "DELETE FROM ucle.A_by_i",
    "DELETE FROM ucle.A_by_i WHERE i = 2",
    "UPDATE ucle.A_by_i SET val = [0, 0, 0, 0, 0]",
    "INSERT INTO ucle.A_by_i FROM ucle.A_by_i LIMIT 1",
    "ALTER TABLE ucle.A_by_i RENAME val TO other",
    "CREATE OR REPLACE TABLE ucle.A_by_i AS SELECT 'x' AS i, 1 AS val",
    "UPDATE ucle.layouts SET axes = '[7]'",
    "UPDATE ucle.layouts SET axes = '[0, 0]'",
    "UPDATE ucle.layouts SET axes = '[0, \"i\"]'",
    "UPDATE ucle.layouts SET axes = '{'",
    "UPDATE ucle.layouts SET keys = '[1]'",
    """UPDATE ucle.layouts SET keys = '["v"]'""",
    "UPDATE ucle.layouts SET \"table\" = 'layouts'",
    "UPDATE ucle.layouts SET digest = '[]'",
    """UPDATE ucle.layouts SET digest = '{"data": 1, "table": 2}'""",
]


@pytest.fixture(autouse=True)
def _all_tables_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics_cache, "NOTED_ENTRIES", 1)
    monkeypatch.setattr(measure, "EXACT_ENTRIES", 1)


@pytest.fixture
def path(tmp_path: Path) -> str:
    with duckdb.connect(str(tmp_path / "data.db")) as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT (range // 5)::INT i, (range % 5)::INT j, range + 1.0 v "
            "FROM range(30) WHERE range % 5 <= 1 OR range = 29"
        ).fetchall()
    return str(tmp_path / "data.db")


def answer(path: str, **options: Any) -> np.ndarray[Any, Any]:
    program = ucle.einsum_program(
        "Y[i,k] += A[i,j] * A[k,j]", A="A", database=path, decomposition={"Y": {"i"}}, **options
    )
    with program.execute() as result:
        return result["Y"].to_numpy()


def expected(path: str) -> np.ndarray[Any, Any]:
    dense = np.zeros((6, 5))
    with duckdb.connect(path) as connection:
        for i, j, value in connection.execute("FROM A").fetchall():
            dense[i, j] = value
    return dense @ dense.T


def change(path: str, sql: str, *values: Any) -> None:
    with duckdb.connect(path) as connection:
        connection.execute(sql, values).fetchall()
    statistics_cache.forget()


def test_how_many() -> None:
    assert len(FACTS) == 32


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", FACTS, ids=range(len(FACTS)))
def test_notes_of_facts(path: str, text: str, caplog: pytest.LogCaptureFixture) -> None:
    right = expected(path)
    np.testing.assert_allclose(answer(path), right)
    change(path, "UPDATE ucle.facts SET facts = ?", text)
    with caplog.at_level(logging.WARNING, "ucle"):
        np.testing.assert_allclose(answer(path), right)
    (told,) = caplog.messages
    assert "made again" in told
    with duckdb.connect(path) as connection:
        ((noted,),) = connection.execute("SELECT facts FROM ucle.facts").fetchall()
    assert json.loads(noted)["entries"] == 13


@pytest.mark.parametrize("axes", ["[0, 3]", "[-1, 0]", '[0, "1"]', "[true, false]", "[[0]]", "{}"])
def test_axes_that_no_layout_has(axes: str) -> None:
    for keys in "[]", '["i"]', '["i", "k"]':
        assert read_layout(axes, keys, 3) is None


@pytest.mark.sample(1)
@pytest.mark.parametrize("sql", KEPT)
def test_kept_tables(path: str, sql: str, caplog: pytest.LogCaptureFixture) -> None:
    right = expected(path)
    np.testing.assert_allclose(answer(path, store="A"), right)
    change(path, sql)
    with caplog.at_level(logging.WARNING, "ucle"):
        np.testing.assert_allclose(answer(path), right)
    assert any("is not read from" in told for told in caplog.messages)
    np.testing.assert_allclose(answer(path, store="A"), right)
    caplog.clear()
    np.testing.assert_allclose(answer(path), right)
    assert caplog.messages == []
