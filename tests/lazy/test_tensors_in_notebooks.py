"""Display of a lazy tensor: known facts, escaped and bounded; nothing is computed."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import ucle
from ucle.database.session import Session
from ucle.lazy.description import SHOWN, describe


def cells(page: str) -> list[list[str]]:
    """The rows of all tables of an element, which has to be well-formed."""
    element = ElementTree.fromstring(
        page.replace("<br>", "<br/>").replace("<details open>", "<details>")
    )
    return [["".join(cell.itertext()) for cell in row] for row in element.iter("tr")]


@pytest.fixture
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a session was opened")

    monkeypatch.setattr(Session, "__init__", refuse)


@pytest.mark.usefixtures("_no_session")
def test_no_database_is_looked_at() -> None:
    """Neither the file nor the table is there."""
    pages = {"src": "page", "dst": "page"}
    edges = ucle.table("no_such_file.parquet", ["src", "dst"], coordinates=pages)
    links = ucle.tensor(edges, axes=("src", "dst"))
    H = ucle.tensor("no_such_table", axes=("dst", "feature"), database="no_such.duckdb")
    W = ucle.array(np.ones((64, 16)), axes=("feature", "hidden"), name="W")
    found = cells((links @ H @ W).relu()._repr_html_())
    assert ["src", "as in the data", "values of the data"] in found
    assert ["hidden", "16", "positions"] in found
    assert ["no_such_file", "(src: ?, dst: ?)", "no_such_file.parquet"] in found
    assert ["no_such_table", "(dst: ?, feature: ?)", "no_such_table"] in found
    assert ["W", "(feature: 64, hidden: 16)", "memory (numpy.ndarray)"] in found


def test_names_are_escaped() -> None:
    tensor = ucle.tensor('"<script>alert(1)</script>"', axes=("i",), database="x.duckdb")
    page = tensor._repr_html_()
    assert "<script" not in page
    assert any("<script>" in cell for row in cells(page) for cell in row)


def test_the_size_is_bounded() -> None:
    tensor = ucle.array([1.0, 2.0], axes=("i",))
    many = tensor
    for n in range(300):
        many = (many + ucle.array([float(n), 1.0], axes=("i",), name=f"x{n}")).map("exp")
    assert len(many._repr_html_()) < 20_000
    assert len(many._repr_html_()) < 3 * len(tensor._repr_html_()) + 15_000
    names = tuple(f"{'x' * 200}{n}" for n in range(5))
    page = ucle.array(np.ones((2,) * 5), axes=names)._repr_html_()
    assert len(page) < 15_000


def test_line_and_page_say_the_same() -> None:
    tensor = ucle.array([[1.0, 2.0], [3.0, 4.0]], axes=("i", "j")).sum("j")
    description = describe(tensor.lazy)
    assert repr(tensor) == description.text
    assert repr(tensor).splitlines()[0] == f"<Tensor {description.axes}>"
    for line in description.statements:
        assert line in repr(tensor)
        assert line in description.html
    for _ in range(20):
        tensor = ucle.maximum(tensor, tensor.sum()) / tensor.max()
    assert len(repr(tensor).splitlines()) == SHOWN + 2


def test_what_has_no_names() -> None:
    found = cells(ucle.array([[1, 2, 3]])._repr_html_())
    assert ["0", "1", "positions"] in found
    assert ["1", "3", "positions"] in found
    assert not [row for row in cells(ucle.array(3.0)._repr_html_()) if "positions" in row]


def test_files_and_frames_are_told_apart(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    frame = pa.table({"i": [1, 2], "val": [1.0, 2.0]})
    found = cells(ucle.tensor(frame, axes=("i",))._repr_html_())
    assert found[-1][-1] == "a table in memory (pyarrow.Table)"
    found = cells(ucle.tensor(tmp_path / "a.parquet", axes=("i",))._repr_html_())
    assert found[-1][-1] == str(tmp_path / "a.parquet")
