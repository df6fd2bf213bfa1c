"""Every notebook runs in a kernel of its own, from first cell to last, and shows its plots."""

from __future__ import annotations

import base64
import io
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from matplotlib import font_manager, pyplot
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))

LIMIT = 300
"""Seconds for a notebook, so that one that hangs ends: with the machine to itself it takes less
than twenty."""


@pytest.fixture(scope="module", autouse=True)
def _no_settings_of_jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The kernel of this Python, whatever kernels and settings the user has."""
    folder = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(folder))
        patch.delenv("MPLBACKEND", raising=False)
        # Where there is no cache of fonts yet, whoever comes first says that it takes a moment.
        font_manager.findfont("sans")
        yield


def execute(notebook: Any, folder: Path, limit: float = LIMIT) -> None:
    """Run the cells in a new kernel, which is gone afterwards."""
    end = time.monotonic() + limit
    client = NotebookClient(
        notebook,
        timeout_func=lambda _: max(1, math.ceil(end - time.monotonic())),
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()


def outputs(cell: Any, kind: str) -> list[Any]:
    """What a cell showed, of one MIME type."""
    return [
        output.data[kind] for output in cell.get("outputs", ()) if kind in output.get("data", ())
    ]


def check_cells(path: Path, folder: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells), "kept without outputs"
    execute(notebook, folder)
    for cell in cells:
        said = [output.text for output in cell.outputs if output.get("name") == "stderr"]
        assert not said, "".join(said)
        plots = outputs(cell, "image/png")
        assert len(plots) == cell.source.count("plt.show()"), cell.source
        for plot in plots:
            assert pyplot.imread(io.BytesIO(base64.b64decode(plot))).std() > 0, cell.source
    assert any("image/png" in output.get("data", ()) for cell in cells for output in cell.outputs)
    assert "assert" in "".join(cell.source for cell in cells), "nothing is checked"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run(path: Path, tmp_path: Path) -> None:
    """Where there is no shared data, as for whoever has the repository alone.

    `make docs` runs them where they stand, on what there is.
    """
    folder = tmp_path / "repository" / "notebooks"
    folder.mkdir(parents=True)
    check_cells(path, folder)


def test_programs_show_themselves(tmp_path: Path) -> None:
    source = "import ucle\nucle.einsum_program('y[i] += A[i,j]', A=[[1, 2], [3, 4]])"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    execute(notebook, tmp_path)
    (shown,) = outputs(notebook.cells[0], "text/html")
    assert "<svg" in shown
    assert "y[i] += A[i,j]" in shown


def test_the_kernel_is_this_python(tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell("import sys; print(sys.prefix)")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    execute(notebook, tmp_path)
    assert cell.outputs[0].text.strip() == sys.prefix


def test_what_hangs_is_ended(tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell("while True: pass")]
    with pytest.raises(CellTimeoutError):
        execute(nbformat.v4.new_notebook(cells=cells), tmp_path, limit=2)


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 6
