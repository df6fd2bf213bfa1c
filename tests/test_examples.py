"""The examples that need nothing but ucle run, and the page about them shows what they say.

Those with dbt and Ibis are run by `make examples`.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def test_nightly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "nightly.py"))["main"](tmp_path)
    first, second, *error, last = capsys.readouterr().out.splitlines()
    assert first.startswith("first night")
    assert second.startswith("second night")
    assert "recompile()" in error[-1]
    assert last == "compiled again: the same"


def test_the_page_shows_the_dbt_model() -> None:
    _, _, model = (EXAMPLES / "dbt" / "models" / "smoothed.py").read_text().partition('"""\n\n')
    assert model in (ROOT / "docs" / "pipelines.md").read_text()


def test_make_runs_every_example() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for example in (*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*/run.py")):
        assert f"bin/python {example.relative_to(ROOT)}" in makefile
