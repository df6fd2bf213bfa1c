"""Every notebook runs from its first cell to its last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert sources
    namespace: dict[str, object] = {}
    for number, source in enumerate(sources):
        exec(compile(source, f"{path.name}, code cell {number + 1}", "exec"), namespace)
    assert all(not cell.get("outputs") for cell in cells), "notebooks are kept without outputs"


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS
