"""Tests of the examples on the page on Spark."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
FENCE = re.compile(r"^```py\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_blocks_print_what_the_page_says(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 4
    names: dict[str, Any] = {"spark": spark}
    for code, printed in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)  # the page's own words
        pattern = ".*?".join(map(re.escape, printed.split("...")))
        assert re.fullmatch(pattern, out.getvalue(), re.DOTALL), out.getvalue()
