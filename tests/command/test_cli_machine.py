"""The `ucle` command for machines: JSON, logs, and a bar that is not there for them."""

from __future__ import annotations

import io
import json
import logging
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

import ucle
from ucle.command.cli import main
from ucle.database import statistics_cache
from ucle.explain.json import json_text, plain
from ucle.foundation import progress as cli_progress
from ucle.foundation.progress import Progress, progress_bar

ARGUMENTS = ("program.ein", "-d", "graph.duckdb")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("program.ein").write_text("y[i,k] = edges[i,j] * x[j,k]\n")
    with duckdb.connect("graph.duckdb") as connection:
        connection.execute(
            """
            CREATE TABLE edges AS FROM (VALUES (0, 1, 1.5), (1, 2, 2.0)) t(src, dst, weight);
            CREATE TABLE x AS SELECT i, [i, 1.0]::DOUBLE[2] AS val FROM range(3) t(i);
            """
        )
    return tmp_path


def invoke(*arguments: str, exit_code: int = 0) -> Any:
    outcome = CliRunner().invoke(main, arguments)
    assert outcome.exit_code == exit_code, outcome.output
    return outcome


def document(*arguments: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    outcome = invoke(*arguments)
    assert outcome.stderr == ""
    return json.loads(outcome.stdout, parse_constant=refuse)


def test_run() -> None:
    made = document("run", *ARGUMENTS, "--keys", "y=i", "--show", "1", "--json")
    assert made == {
        "tensors": [
            {
                "name": "y",
                "labels": ["i", "k"],
                "shape": [2, 2],
                "dtype": "float64",
                "fill": 0.0,
                "columns": ["i", "val"],
                "rows": [[0, [1.5, 1.5]]],
                "complete": False,
            }
        ],
        "stored": [],
    }
    for shown in ((), ("--show", "2")):
        (tensor,) = document("run", *ARGUMENTS, "--keys", "y=i", *shown, "--json")["tensors"]
        assert tensor["complete"]
        assert [val for _, val in tensor["rows"]] == [[1.5, 1.5], [4.0, 2.0]]


def test_run_and_store() -> None:
    made = document("run", *ARGUMENTS, "--json", "-o", "y=y.npy", "-t", "y=kept")
    assert made == {
        "tensors": [],
        "stored": [
            {"tensor": "y", "file": "y.npy", "table": None},
            {"tensor": "y", "file": None, "table": "kept"},
        ],
    }
    np.testing.assert_array_equal(np.load("y.npy"), [[1.5, 1.5], [4, 2]])


def test_sql() -> None:
    made = document("sql", *ARGUMENTS, "--decomposition", "relational", "--json")
    script = invoke("sql", *ARGUMENTS, "--decomposition", "relational").stdout
    assert made == {"outputs": ["y"], "route": "plain", "sql": script}


def test_explain() -> None:
    made = document("explain", *ARGUMENTS, "--promote", "y=i", "--json")
    assert made == document("explain", *ARGUMENTS, "--promote", "y=i", "--format", "json")
    program = ucle.einsum_program(
        "y[i,k] = edges[i,j] * x[j,k]",
        edges="edges",
        x="x",
        database="graph.duckdb",
        decomposition={"y": ["i"]},
    )
    assert made["cost"] == pytest.approx(program.cost)
    assert (made["route"], made["outputs"]) == ("native", ["y"])
    sizes = {tensor["name"]: tensor["shape"] for tensor in made["tensors"]}
    assert sizes == {"edges": [2, 3], "x": [3, 2], "y": [2, 2]}
    entries = {tensor["name"]: tensor["entries"] for tensor in made["tensors"]}
    assert (entries["edges"], entries["x"]) == (2, 5)
    (vertex,) = made["vertices"]
    assert vertex["promoted"] == sorted(program.compiled.decomposed.promoted["y"])
    assert vertex["text"] in program.explain()
    assert sum(vertex["cost"].values()) == pytest.approx(program.cost)
    assert [read["tensor"] for read in vertex["reads"]] == ["edges", "x"]
    best = document("explain", *ARGUMENTS, "--json")
    assert best["runner_up"]["cost"] >= best["cost"]
    assert best["runner_up"]["changes"][0].keys() == {"chosen", "other"}
    assert "seconds" not in made["steps"][0]


def test_explain_analyze() -> None:
    made = document("explain", *ARGUMENTS, "--promote", "y=i", "--analyze", "--json")
    steps = {step["name"]: step for step in made["steps"]}
    assert steps["y"]["rows"] == 2
    assert all(step["seconds"] >= 0 for step in steps.values())


def test_json_is_no_picture() -> None:
    outcome = invoke("explain", *ARGUMENTS, "--format", "dot", "--json", exit_code=2)
    assert "--json does not go with --format dot" in outcome.stderr


def test_faults_end_as_without_json() -> None:
    outcome = invoke("run", *ARGUMENTS, "-i", "x=nosuch", "--json", exit_code=1)
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("Error: input x, nosuch")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
        (1 - 2j, {"re": 1.0, "im": -2.0}),
        ((1, [True, None]), [1, [True, None]]),
        ({"val": {"re": float("inf"), "im": 0.0}}, {"val": {"re": "Infinity", "im": 0.0}}),
        (np.datetime64("2026-01-02"), "2026-01-02"),
    ],
)
def test_what_json_has_no_form_for(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    assert json.loads(json_text(value)) == expected


def test_verbose() -> None:
    statistics_cache.forget()
    before = logging.getLogger("ucle").level, len(logging.getLogger("ucle").handlers)
    outcome = invoke("run", *ARGUMENTS, "-v")
    assert "ucle.statistics: measured edges (edges)" in outcome.stderr
    assert "ucle.compile: compiled in" in outcome.stderr
    assert "ucle.execute: executed in" in outcome.stderr
    assert "SELECT" not in outcome.stderr
    assert "ucle." not in outcome.stdout
    assert "ucle.execute: step y: " in invoke("run", *ARGUMENTS, "-vv").stderr
    assert invoke("run", *ARGUMENTS).stderr == ""
    assert (logging.getLogger("ucle").level, len(logging.getLogger("ucle").handlers)) == before


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    with progress_bar() as watch:
        assert watch is None
    stream, now = Terminal(), [0.0]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(cli_progress.time, "monotonic", lambda: now[0])
    with progress_bar() as watch:
        assert watch is not None
        watch(Progress("a", 1, 2, 0.0))
        assert stream.getvalue() == ""  # it may be done soon
        now[0] = 2.0
        watch(Progress("a", 1, 2, 0.5))
        now[0] = 3.0
        watch(Progress("b", 2, 2, 0.0))
        watch(Progress("b", 2, 2, 1.0))
    shown = stream.getvalue()
    assert "25%" in shown
    assert "b (2/2)" in shown
    assert "100%" in shown


def test_a_short_run_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar() as watch:
        assert watch is not None
        program = ucle.einsum_program("y[i] = 2 * x[i]", x=[1.0, 2.0])
        program.execute(progress=watch).close()
    assert stream.getvalue() == ""
