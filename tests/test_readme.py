"""What the README shows is what happens: its Python runs in order and prints what stands there."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from ucle.cli import main
from ucle.operators import MAPS, REDUCES
from ucle.registry import unregister_operator

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """Language and text of every code block."""
    return BLOCK.findall(README.read_text(encoding="utf-8"))


def test_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    following = [*blocks()[1:], ("", "")]
    ran = 0
    for (language, text), (next_language, expected) in zip(blocks(), following, strict=True):
        if language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, "README.md", "exec"), names)
            assert printed.getvalue() == (expected if next_language == "text" else ""), text
            ran += 1
    assert ran > 5
    run_commands()
    for name in re.findall(r'register_operator\("(\w+)"', README.read_text(encoding="utf-8")):
        unregister_operator(name)


def run_commands() -> None:
    """The shell block with `ucle` commands, on the database that the Python blocks made."""
    (script,) = (text for language, text in blocks() if language == "sh" and "ucle sql" in text)
    first, *commands = script.splitlines()
    program, file = re.fullmatch(r"echo '(.*)' > (\S+)", first).groups()  # type: ignore[union-attr]
    Path(file).write_text(program)
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "ucle"
        outcome = CliRunner().invoke(main, arguments)
        assert outcome.exit_code == 0, f"{command}\n{outcome.output}"


def test_every_function_is_listed() -> None:
    (listed,) = re.findall(r"Pointwise functions: (.*?)\. ", README.read_text(), re.DOTALL)
    assert re.findall(r"`(\w+)`", listed) == list(MAPS)


def test_every_aggregation_is_listed() -> None:
    (listed,) = re.findall(r"as `\+=` with another aggregation: (.*?) \|", README.read_text())
    assignments = {reduce.assignment for reduce in REDUCES.values()}
    assert {"+=", *re.findall(r"`(\S+)`", listed)} == assignments


def test_every_target_exists() -> None:
    makefile = (README.parent / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", README.read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
