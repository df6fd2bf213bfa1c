"""The commands that keep results in a database file, and bring them up to date."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

import ucle
from ucle.command.cli import main


def call(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_maintain_list_and_refresh(tmp_path: Path) -> None:
    path, program = str(tmp_path / "data.duckdb"), tmp_path / "sums.ein"
    program.write_text("S[i] += A[i,j]")
    with ucle.connect(path) as connection:
        connection.execute("CREATE TABLE A AS SELECT 1 AS i, 2 AS j, 5.0 AS val")
    options = ["--database", path, "--append-only", "A"]
    assert call("maintain", "sums", str(program), *options) == "S in sums\n"
    assert call("maintained", path) == "sums: S in sums\n"
    assert json.loads(call("maintained", path, "--json")) == {"sums": {"S": "sums"}}
    with ucle.connect(path) as connection:
        connection.execute("INSERT INTO A VALUES (1, 3, 2.0)")
    assert "A (1 keys)" in call("refresh", path)
    assert json.loads(call("refresh", path, "sums", "--json")) == {
        "sums": {"changed": {}, "rows": 0}
    }
    with ucle.connect(path) as connection:
        assert connection.sql("FROM sums").fetchall() == [(1, 7.0)]
    result = CliRunner().invoke(main, ["refresh", path, "others"])
    assert result.exit_code == 1
    assert "others" in result.output
    assert CliRunner().invoke(main, ["maintain", "sums", str(program)]).exit_code == 2
