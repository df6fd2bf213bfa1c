"""`ucle demo` prints its findings first, in a screen or two, and plain text into files."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ucle.command.cli import main
from ucle.demo import begin_demo, read_source, run_demo
from ucle.demo.bar import CLEAR
from ucle.demo.options import DemoOptions

LINES, COLUMNS = 70, 100
"""A screen or two."""

WORDS = ("open", "read", "parse", "token", "matrix", "node")


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty modules in three packages."""
    root = tmp_path_factory.mktemp("installation")
    for package in range(3):
        folder = root / f"package{package}"
        folder.mkdir()
        (folder / "__init__.py").write_text("import os\n")
        for number in range(19):
            words = [f"{WORDS[(package + number * k) % 6]}_{k}()" for k in range(5)]
            imports = f"import sys\nfrom . import m{(3 * number + 1) % 19}\n"
            (folder / f"m{number}.py").write_text(imports + "\n".join(words) + "\n")
    (root / "asyncio.py").write_text("import sys\nopen_1(read_2)\n")
    return root


@pytest.fixture
def _small(installation: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin_demo, "installation_roots", lambda: [installation])


def run(folder: Path, *options: str) -> Result:
    arguments = ["demo", "--iterations", "3", "-d", str(folder / "demo.duckdb"), *options]
    shown = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert shown.exit_code == 0
    return shown


@pytest.mark.usefixtures("_small")
def test_a_screen_or_two(tmp_path: Path) -> None:
    shown = run(tmp_path)
    assert shown.stderr == ""
    # Neither a bar nor what makes letters bold.
    assert not {"\r", "\x1b"} & set(shown.output)
    lines = shown.output.splitlines()
    assert len(lines) <= LINES
    # Two lines quote paths, which are as long as they are.
    assert all(len(x) <= COLUMNS or str(tmp_path) in x or sys.prefix in x for x in lines)
    parts = (
        "Reading 61 modules of Python",
        "63 modules, ",
        "The most central modules, by 3 iterations of PageRank",
        "  sys ",
        "identifiers in ",
        "The nearest modules, by a graph convolution",
        "  asyncio ",
        "relational",
        "PageRank, 3 iterations",
        "Sums, by SparseEinSum",
        "--all-sql",
        "  SELECT\n",
        "look around",
    )
    places = [shown.output.index(part) for part in parts]
    assert places == sorted(places)
    assert shown.output.count("SELECT\n") == 1


@pytest.mark.usefixtures("_small")
def test_all_sql(tmp_path: Path) -> None:
    shown = run(tmp_path, "--all-sql").output
    for part in (
        'CREATE TEMPORARY TABLE "R3" AS',
        'CREATE TEMPORARY TABLE "E" AS',
        "R0(j INTEGER, val DOUBLE)",
        "E(i INTEGER, val DOUBLE[128])",
    ):
        assert part in shown
    assert "--all-sql" not in shown


@pytest.mark.usefixtures("_small")
def test_the_first_result_comes_before_identifiers_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    read = read_source.read_words

    def note(module: Any) -> Any:
        events.append("words")
        return read(module)

    monkeypatch.setattr(read_source, "read_words", note)
    begin_demo.begin_demo(DemoOptions(tmp_path / "demo.duckdb", iterations=3), events.append)
    first = events.index("words")
    assert any("most central" in event for event in events[:first])
    assert any("  sys " in event for event in events[:first])
    assert not any("nearest" in event for event in events[:first])


@pytest.mark.usefixtures("_small")
def test_a_bar_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    begin_demo.begin_demo(DemoOptions(tmp_path / "demo.duckdb", iterations=1), lambda text: None)
    shown = stream.getvalue()
    assert all(part in shown for part in ("imports", "identifiers"))
    assert shown.endswith(CLEAR)


def test_reading_begins_without_the_libraries_of_the_rest() -> None:
    heavy = "duckdb", "numpy", "pyarrow", "sqlglot"
    code = f"import sys, ucle.command.start; print([x for x in {heavy} if x in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.usefixtures("_small")
def test_few_modules_have_neighbours_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the well-known ones is among them, as with a small limit."""
    monkeypatch.setattr(run_demo, "WELL_KNOWN", ("json.decoder",))
    shown = run(tmp_path, "--limit", "20").output
    table = shown[shown.index("The nearest modules") :].split("\n\n")[0]
    assert len([line for line in table.splitlines() if "package" in line]) >= 3, shown
