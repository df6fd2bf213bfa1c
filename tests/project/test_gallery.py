"""The gallery: scripts that run as pasted, and the figures beside them.

`test_docs.py` runs the pages, and compares the figures with the results.
"""

from __future__ import annotations

import ast
import re
import sys

import gallery_pages
import pytest
from documents import ROOT, code_blocks
from gallery_pages import NAMES, PAGES, compare, first_sentence, read_figures

BENCHMARKS = ROOT / "benchmarks" / "gallery"


MODELS = {
    "churn_scores": {"sklearn"},
    "boosted_trees": {"sklearn"},
    "text_embeddings": {"onnx"},
    "graph_network": {"onnx"},
}
"""What the scripts of models read from."""


def test_each_job_has_a_page_a_benchmark_figures_and_a_picture() -> None:
    text = (BENCHMARKS / "recipe.py").read_text(encoding="utf-8")
    listed = re.search(r"NAMES = \((.*?)\)", text, re.DOTALL)
    assert listed is not None
    assert len(NAMES) == len(set(NAMES))
    assert set(re.findall(r'"(\w+)"', listed[1])) == set(NAMES) == set(read_figures())
    assert {path.stem for path in PAGES.glob("*.md")} == {*NAMES, "index"}
    for name in NAMES:
        assert (BENCHMARKS / f"{name}.py").exists()
        assert (PAGES / f"{name}.svg").stat().st_size < 100_000


@pytest.mark.sample(None)
@pytest.mark.parametrize("name", NAMES)
def test_scripts_need_nothing_but_ucle(name: str) -> None:
    """They make their own tables, with names, and print what comes of them."""
    first, *rest = [x for x in code_blocks(PAGES / f"{name}.md") if x.language == "python"]
    imported = {
        (getattr(node, "module", None) or alias.name).partition(".")[0]
        for node in ast.parse(first.text).body
        for alias in getattr(node, "names", [])
    }
    for name_of_package in MODELS.get(name, ()):
        pytest.importorskip(name_of_package)
    allowed = {"ucle", "numpy", *MODELS.get(name, ()), *sys.stdlib_module_names}
    assert {"ucle"} <= imported <= allowed
    assert re.search(r"CREATE TABLE \w+ AS\b.*'\w+'", first.text, re.DOTALL)
    for block in (first, *rest):
        assert block.printed, "each script prints its results"
        assert max(map(len, block.text.splitlines())) <= 88, "what is shown without scrolling"
    assert sum(len(x.text.splitlines()) for x in (first, *rest)) < 70


def test_the_index_says_what_is_won_and_what_is_lost() -> None:
    row = "| a | 5 rows, width 3 | 0.500 | ended at 60 | 0.100 | NumPy | seconds |\n"
    header = "| job | data | ucle | plain SQL | library | which | measured |\n"
    figures = read_figures(header + row)
    assert figures["a"].beside_sql == "**more than 120 times faster** than plain SQL"
    assert figures["a"].beside_peer == "5 times slower than NumPy"
    assert compare(1.0, 1.04, "NumPy") == compare(1.04, 1.0, "NumPy") == "as fast as NumPy"
    assert compare(2.0, 3.0, "NumPy") == "**1.5 times faster** than NumPy"
    index = gallery_pages.gallery_index("")
    for name, known in read_figures().items():
        assert f"{known.beside_sql}; {known.beside_peer} |" in index
        assert first_sentence((PAGES / f"{name}.md").read_text(encoding="utf-8")) in index
