"""Every notebook runs in a kernel of its own, from first cell to last, and shows what is kept.

Outputs are kept in the notebooks, so that they can be read where nothing runs. They are those of
the repository alone, without shared data beside it. After a change that is meant:
``pytest tests/project/test_notebooks.py --update-golden``.
"""

from __future__ import annotations

import base64
import copy
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from notebook_outputs import NOT_COMPARED, PRIVATE, code_cells, execute, shown, take_outputs

MISSING = "pip install '.[test,notebooks]' brings what runs notebooks"
nbformat = pytest.importorskip("nbformat", reason=MISSING)
nbclient = pytest.importorskip("nbclient", reason=MISSING)
pytest.importorskip("ipykernel", reason=MISSING)
pyplot = pytest.importorskip("matplotlib.pyplot", reason=MISSING)
font_manager = pytest.importorskip("matplotlib.font_manager", reason=MISSING)

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
IDS = [path.stem for path in NOTEBOOKS]


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


def outputs(cell: Any, kind: str) -> list[Any]:
    """The outputs of a cell that have one MIME type."""
    return [
        output.data[kind] for output in cell.get("outputs", ()) if kind in output.get("data", ())
    ]


def check_cells(notebook: Any) -> None:
    """Nothing was complained of, every plot has something in it, and the answers were checked."""
    for cell in code_cells(notebook):
        said = [output.text for output in cell.outputs if output.get("name") == "stderr"]
        assert not said, "".join(said)
        plots = outputs(cell, "image/png")
        assert len(plots) == cell.source.count("plt.show()"), cell.source
        for plot in plots:
            assert pyplot.imread(io.BytesIO(base64.b64decode(plot))).std() > 0, cell.source
    assert any(outputs(cell, "image/png") for cell in code_cells(notebook))
    assert "assert" in "".join(cell.source for cell in code_cells(notebook)), "nothing is checked"


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_cells_show_what_is_kept(path: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Cells show what is kept without the shared data, as with the repository alone."""
    kept = nbformat.read(path, as_version=4)
    nbformat.validate(kept)
    fresh = copy.deepcopy(kept)
    for cell in code_cells(fresh):
        cell.outputs, cell.execution_count = [], None
    folder = tmp_path / "repository" / "notebooks"
    folder.mkdir(parents=True)
    execute(fresh, folder)
    check_cells(fresh)
    if pytestconfig.getoption("update_golden") and take_outputs(kept, fresh):
        nbformat.write(kept, path)
    for number, (old, new) in enumerate(zip(code_cells(kept), code_cells(fresh), strict=True), 1):
        assert shown(new) == shown(old), f"{path.name}, cell [{number}]:\n{new.source}"
        assert old.execution_count == number, "cells are kept as they run, from first to last"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_what_is_kept_is_of_no_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    for cell in code_cells(notebook):
        for kind, text in shown(cell):
            assert not PRIVATE.search(text), f"{kind}: {text}"
        assert "execution" not in cell.metadata, "when it ran"
    assert set(notebook.metadata.language_info) == {"name"}, "the version that it ran on"


@pytest.mark.slow
def test_what_differs_is_noticed(tmp_path: Path) -> None:
    """Another text, another picture, and what a cell tagged as not compared shows."""
    sources = ["print(1)", "print(2)", "from IPython.display import HTML; HTML('<b>3</b>')"]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[1].metadata["tags"] = [NOT_COMPARED]
    notebook = nbformat.v4.new_notebook(cells=cells)
    execute(notebook, tmp_path)
    kept = copy.deepcopy(notebook)
    assert not take_outputs(kept, notebook)
    assert [shown(cell) for cell in kept.cells[:2]] == [[("stdout", "1\n")], [("stdout", "")]]
    assert ("text/html", "3") in shown(kept.cells[2])
    kept.cells[1].outputs[0].text = "5\n"  # as a time would be
    assert not take_outputs(kept, notebook)
    kept.cells[0].outputs[0].text = "5\n"
    assert take_outputs(kept, notebook)
    assert kept.cells[0].outputs == notebook.cells[0].outputs
    kept.cells[1].outputs = []  # but that it shows something is compared
    assert take_outputs(kept, notebook)
    assert PRIVATE.search("<object at 0x7f3a12b45c90>")
    assert PRIVATE.search("File '/home/someone/x.py'")
    assert not PRIVATE.search("SELECT a/b FROM x")


@pytest.mark.slow
def test_programs_show_themselves(tmp_path: Path) -> None:
    source = "import ucle\nucle.einsum_program('y[i] += A[i,j]', A=[[1, 2], [3, 4]])"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    execute(notebook, tmp_path)
    (page,) = outputs(notebook.cells[0], "text/html")
    assert "<svg" in page
    assert "y[i] += A[i,j]" in page


@pytest.mark.slow
def test_the_kernel_is_this_python(tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell("import sys; print(sys.prefix)")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    execute(notebook, tmp_path)
    assert cell.outputs[0].text.strip() == sys.prefix


@pytest.mark.slow
def test_what_hangs_is_ended(tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell("while True: pass")]
    with pytest.raises(nbclient.exceptions.CellTimeoutError):
        execute(nbformat.v4.new_notebook(cells=cells), tmp_path, limit=2)


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 6


@pytest.mark.slow
def test_cells_of_statements(tmp_path: Path) -> None:
    """``%%ucle`` over variables and tables, into a variable, and planned alone."""
    sources = [
        "%load_ext ucle\nimport duckdb, numpy as np\nA, con = np.eye(3), duckdb.connect()",
        "con.execute('CREATE TABLE edges AS SELECT 1 AS i, 2 AS j, 5.0 AS v')",
        "%%ucle -d con -i B=edges -o Z -t found\nT[i,j] = A[i,j] * 2\nZ[i,j] = T[i,j] + B[i,j]",
        "found['Z'].to_numpy().tolist()",
        "%%ucle -e -b r=2\nfirst[i,r] = top_k[j,r](A[i,j])",
        "%%ucle --sizes\ny[i] += A[i,j]",
        "%%ucle -b r=two\nfirst[i,r] = top_k[j,r](A[i,j])",
        "%%ucle -b r\nfirst[i,r] = top_k[j,r](A[i,j])",
    ]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    for cell in cells[-3:]:
        cell.metadata["tags"] = ["raises-exception"]
    notebook = nbformat.v4.new_notebook(cells=cells)
    execute(notebook, tmp_path)
    assert "Z" in outputs(notebook.cells[2], "text/html")[0]
    assert outputs(notebook.cells[3], "text/plain") == [
        "[[2.0, 0.0, 0.0], [0.0, 2.0, 5.0], [0.0, 0.0, 2.0]]"
    ]
    assert "top_k[j,r](A[i,j])" in outputs(notebook.cells[4], "text/html")[0]
    for cell, part in zip(
        notebook.cells[-3:], ("--sizes", "at least 0", "LABEL=SIZE"), strict=True
    ):
        (error,) = cell.outputs
        assert error.ename == "ArgumentError"
        assert part in error.evalue
