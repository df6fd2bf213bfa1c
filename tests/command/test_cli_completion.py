"""Tests of the completion of `ucle` in shells."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from click.shell_completion import get_completion_class
from click.testing import CliRunner

from ucle.command.cli import main
from ucle.command.completion import SHELLS, VARIABLE, script


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("program.ein").write_text("t[i] += edges[i,j]\ny[i] = t[i] * x[i]\n")
    Path("broken.ein").write_text("y[i = edges")
    with duckdb.connect("graph.duckdb") as connection:
        connection.execute(
            """
            CREATE TABLE edges AS SELECT 1 AS i, 2 AS j;
            CREATE SCHEMA more;
            CREATE VIEW more.edges AS FROM edges;
            """
        )
    return tmp_path


PROGRAM = ("run", "program.ein", "-d", "graph.duckdb")


def completions(shell: str, *words: str) -> list[str]:
    found = get_completion_class(shell)
    assert found is not None
    made = found(main, {}, "ucle", VARIABLE)
    *before, last = words
    return [item.value for item in made.get_completions(before, last)]


@pytest.mark.parametrize("shell", SHELLS)
def test_names_of_tensors_and_tables(shell: str) -> None:
    assert completions(shell, "co") == ["completion"]
    assert completions(shell, *PROGRAM, "-i", "") == ["edges=", "x="]
    assert completions(shell, *PROGRAM, "--input", "e") == ["edges="]
    assert completions(shell, *PROGRAM, "-i", "x=") == ["x=edges", "x=more.edges"]
    assert completions(shell, *PROGRAM, "-i", "x=m") == ["x=more.edges"]
    assert completions(shell, *PROGRAM, "--promote", "") == ["t=", "y=", "edges=", "x="]
    assert completions(shell, *PROGRAM, "--store", "x") == ["x"]
    assert completions(shell, *PROGRAM, "-o", "y") == ["y="]


def test_where_nothing_is_known() -> None:
    assert completions("bash", "run", "-i", "x=") == []
    assert completions("bash", "run", "nosuch.ein", "-d", "nosuch.duckdb", "-i", "x=") == []
    assert completions("bash", "run", "broken.ein", "-i", "") == []
    assert completions("bash", "run", "program.ein", "-d", "program.ein", "-i", "x=") == []
    assert not Path("nosuch.duckdb").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed(shell: str) -> None:
    outcome = CliRunner().invoke(main, ["completion", shell])
    assert outcome.exit_code == 0
    assert outcome.stdout == script(main, shell) + "\n"
    assert VARIABLE in outcome.stdout


def test_an_unknown_shell() -> None:
    assert CliRunner().invoke(main, ["completion", "csh"]).exit_code == 2


TRY = r"""
compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_ucle_completion "$1"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("expl",), ["explain"]),
        ((*PROGRAM, "-i", "ed"), ["edges="]),
        ((*PROGRAM, "-i", "edges", "="), ["edges", "more.edges"]),  # as bash breaks words
        ((*PROGRAM, "-i", "edges", "=", "mo"), ["more.edges"]),
        ((*PROGRAM, "-i", "x", "=", "edges", "-i", "edges", "=", "e"), ["edges"]),
    ],
)
def test_bash_breaks_words_at_equals_signs(
    words: tuple[str, ...], expected: list[str], tmp_path: Path
) -> None:
    command = tmp_path / "ucle"
    run = "import ucle.command.cli as cli; cli.main(prog_name='ucle')"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{run}" "$@"\n')
    command.chmod(0o755)
    sourced = script(main, "bash")
    done = subprocess.run(
        ["bash", "-c", sourced + TRY, "ucle", str(command), *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == expected
