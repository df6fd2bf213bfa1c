"""The README and the documentation show real output, and their links lead somewhere."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pipeline_picture
import pytest
from documents import LANGUAGES, PAGES, ROOT, Block, anchors, code_blocks, compare, links, run_page
from reference_pages import GENERATED

import ucle
from ucle.operators import COMBINES, MAPS, REDUCES

IDS = [page.name for page in PAGES]
LONG_PAGES = ("command_line.md", "loops.md", "papers.md", "training.md")


# Pages with commands of a shell start a process for each of them: `make pages` runs them all.
RUNNING = [
    pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in LONG_PAGES else [])
    for page in PAGES
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("page", RUNNING)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run_page(page)
    shown = [b for b in code_blocks(page) if b.language == "python" or b.calls_ucle]
    assert ran == len(shown)


@pytest.mark.sample(None)
@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_blocks_say_what_they_are(page: Path) -> None:
    assert {block.language for block in code_blocks(page)} <= set(LANGUAGES)
    # A fence without a language would be skipped, and all after it read inside out.
    assert len(re.findall(r"^```", page.read_text(encoding="utf-8"), re.MULTILINE)) % 2 == 0
    assert not re.search(r"^```\n(?!\n|\Z)", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.sample(None)
@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.sample(None)
@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_target_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?\bmake ([a-z-]+)\b(?:`|$|  )", page.read_text(encoding="utf-8")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("name", GENERATED)
def test_generated_pages_are_fresh(name: str, pytestconfig: pytest.Config) -> None:
    page, made = ROOT / "docs" / name, GENERATED[name]()
    if pytestconfig.getoption("update_golden"):
        page.write_text(made, encoding="utf-8")
    fresh = page.exists() and page.read_text(encoding="utf-8") == made
    assert fresh, f"docs/{name} is stale: pytest tests/project/test_docs.py --update-golden"


def test_the_picture_shows_what_is_run() -> None:
    """The picture shows the program; its SQL is checked where it is made."""
    start = " ".join((ROOT / "docs" / "start.md").read_text(encoding="utf-8").split())
    assert all(" ".join(x.split()) in start for x in pipeline_picture.PROGRAM.splitlines())
    widest = max(len(line) for x in pipeline_picture.stations() for line in x.lines)
    assert widest * 0.61 * pipeline_picture.SIZE < pipeline_picture.WIDTH - 28


def test_every_operator_is_listed() -> None:
    rows = re.findall(r"^\| `(\S+)` \|", GENERATED["operators.md"](), re.MULTILINE)
    assert {*MAPS, *(r.assignment for r in REDUCES.values())} <= set(rows)
    signs = {c.symbol.replace("|", r"\|") for c in COMBINES.values() if c.infix}
    assert signs <= set(rows)


def test_figures_are_those_of_the_benchmarks() -> None:
    quoted = 0
    for page in (ROOT / "README.md", ROOT / "docs" / "performance.md"):
        text = page.read_text(encoding="utf-8")
        # A link to results at the end of a sentence, and the table that comes next.
        for name, rows in re.findall(r"results/(\w+\.md)\)\):\n\n((?:\|.*\n)+)", text):
            results = ROOT / "benchmarks" / "results" / name
            known = results.read_text(encoding="utf-8").splitlines()
            for row in rows.splitlines():
                assert row in known, f"{page.name}: {row}"
                quoted += 1
    assert quoted > 30


def test_every_public_name_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. (?:auto(?:function|class)|py:data):: (\w+)$", text, re.MULTILINE)
    modules = re.findall(r"^\.\. (?:auto|current|)module:: ucle\.(\w+)$", text, re.MULTILINE)
    assert "errors" in modules
    for name in [x for x in ucle.optim.__all__ if x.islower()]:
        assert f".. autofunction:: ucle.optim.{name}\n" in text, name
    assert {*listed, *modules, *vars(ucle.errors), "__version__"} >= set(ucle.__all__)


def test_every_setting_is_listed() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page.partition("## All settings")[2], re.MULTILINE)
    parameters = inspect.signature(ucle.einsum_program).parameters.values()
    settings = {x.name for x in parameters if x.kind is x.KEYWORD_ONLY} - {"inputs"}
    assert settings == {name for name in listed if name.islower()}


def test_modules_do_not_stand_among_the_public_names() -> None:
    assert dir(ucle) == sorted(ucle.__all__)


@pytest.mark.slow
def test_a_wrong_page_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    assert code_blocks(page)[0] == Block("python", "print(1 + 1)\n", 2, "3\n")
    with pytest.raises(AssertionError, match=r"page\.md, line 2 prints\n2"):
        run_page(page)
    page.write_text("```python\nx = 1\nprint(x)\n```\n")  # prints what the page does not tell
    with pytest.raises(AssertionError, match="line 2"):
        run_page(page)
    page.write_text("```sh\nucle no-such-command\n```\n")
    with pytest.raises(AssertionError, match="No such command"):
        run_page(page)
    compare("a\nb\nc\n", "a\n...\nc\n", "")
