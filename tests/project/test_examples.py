"""The examples that need nothing but ucle run, and the page about them shows what they say.

Those with Ibis and marimo are run by `make examples`, those of training by
`tests/gradients/test_training_examples.py`.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documents import code_blocks

import ucle
from ucle.command.show_results import WriteOptions, preview_document

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def test_nightly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "nightly.py"))["main"](tmp_path)
    first, second, drift, last = capsys.readouterr().out.splitlines()
    assert first.startswith("first night")
    assert second.startswith("second night")
    assert drift.startswith("bought (purchases) held 798 entries")
    assert last == "compiled again: the same"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "environment"),
    [
        ("daily.py", ".venv-examples"),
        ("dbt/run.py", ".venv-examples"),
        ("sqlmesh/run.py", ".venv-sqlmesh"),
    ],
)
def test_pipelines(example: str, environment: str) -> None:
    """Two days of rows each; what is kept is compared with a full run after both."""
    python = ROOT / environment / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no {environment}: `make {environment}/installed`")
    done = subprocess.run(
        [python, EXAMPLES / example],
        env=os.environ | {"UCLE_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_the_page_shows_the_examples() -> None:
    page = (ROOT / "docs" / "pipelines.md").read_text()
    for name in ("smoothed", "together"):
        _, _, model = (EXAMPLES / "dbt" / "models" / f"{name}.py").read_text().partition('"""\n\n')
        assert model in page
    for name in ("dbt/models/popular.sql", "sqlmesh/models/popular.sql"):
        _, _, model = (EXAMPLES / name).read_text().partition("\n")
        assert model in page
    begin = "    @asset(partitions_def=DAYS, deps"
    _, _, rest = (EXAMPLES / "daily.py").read_text().partition(begin)
    step = begin + rest.partition("    @asset_check")[0]
    assert textwrap.dedent(step).strip() in page


def test_the_page_shows_the_examples_of_training() -> None:
    sources = [path.read_text() for path in sorted((EXAMPLES / "training").glob("*.py"))]
    page = ROOT / "docs" / "examples.md"
    blocks = code_blocks(page)
    printed = {block.printed for block in blocks if block.language == "python"}
    shown = [x.text for x in blocks if x.language in ("py", "text") and x.text not in printed]
    assert len(shown) >= 7
    for text in shown:
        assert any(text in source for source in sources), text
    for path in (EXAMPLES / "training").glob("*.py"):
        assert path.name == "tables.py" or f"(../examples/training/{path.name})" in page.read_text()


def test_the_page_names_every_key_of_the_documents() -> None:
    page = (ROOT / "docs" / "pipelines.md").read_text()
    program = ucle.einsum_program("y[i] += A[i,j]", A=[[1.0, 0.0], [2.0, 3.0]])
    document = json.loads(program.explain("json", analyze=True))
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    explain = page.partition("The document of `explain`")[2].partition("\n\n`")[0]
    for key in _keys(document):
        assert f"`{key}`" in explain
    with program.execute() as result:
        for key in _keys(preview_document(result["y"], 3, WriteOptions())):
            assert f"`{key}`" in rows["run"]


def _keys(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        yield from document
    if isinstance(document, dict | list):
        for item in document.values() if isinstance(document, dict) else document:
            yield from _keys(item)


def test_make_runs_every_example() -> None:
    makefile = (ROOT / "Makefile").read_text()
    training = {*EXAMPLES.glob("training/*.py")} - {EXAMPLES / "training" / "tables.py"}
    for example in (*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*/run.py"), *training):
        assert f"bin/python {example.relative_to(ROOT)}" in makefile


def test_projects_run_the_macro_that_the_program_makes() -> None:
    """dbt's is compared with it where there is a database; the body of SQLMesh's is the same."""
    macros = [EXAMPLES / name / "macros" / "steps.sql" for name in ("dbt", "sqlmesh")]
    bodies = [re.search(r"AS TABLE (.*?;)$", x.read_text(), re.MULTILINE) for x in macros]
    assert bodies[0] is not None
    assert bodies[1] is not None
    assert bodies[0][1] == bodies[1][1]
