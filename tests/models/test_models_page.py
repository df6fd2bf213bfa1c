"""The page on models lists the operators that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from ucle.models.operators.known_operators import TABLE

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_page_lists_all_operators() -> None:
    text = PAGE.read_text(encoding="utf-8")
    listed = text.partition("<!-- operators -->")[2].partition("<!-- end of operators -->")[0]
    names = set(re.findall(r"`(\w+)`", listed))
    assert names == {name for domain, name in TABLE if domain != "ucle"}
