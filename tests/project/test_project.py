"""Metadata, workflows and templates of the repository agree with each other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import ucle

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [
    path
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    if path.stem != "config"
]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def commands(workflow: Any) -> Iterator[str]:
    """The commands of a workflow's steps, with the values of its matrix filled in."""
    for job in workflow["jobs"].values():
        rows = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
        for step in job["steps"]:
            for row in rows if "run" in step else ():
                text = step["run"]
                for key, value in row.items():
                    text = text.replace(f"${{{{ matrix.{key} }}}}", value)
                yield text


def in_package(module: str) -> str:
    """The name under which a module is installed, as packages write it."""
    named = {"sklearn": "scikit-learn", "yaml": "pyyaml", "xdist": "pytest-xdist"}
    return named.get(module, module).casefold().replace("_", "-")


# ---- Workflows, forms, citation ----


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_what_there_is(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}, "no job has more than it asks for"
    assert {"name", "jobs"} <= workflow.keys()
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands(workflow):
        assert "${{" not in command, "what others write never becomes a command"
        if (steps := re.fullmatch(r"(?:make|\.ci/run)((?: [a-z-]+)*) ?", command)) is not None:
            assert set(steps[1].split()) <= set(targets), command
        for file in re.findall(r"\b(?:tests|ucle)/\w+\.py\b", command):
            assert (ROOT / file).exists(), file
    for job in workflow["jobs"].values():
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
        assert all("@" in step["uses"] for step in job["steps"] if "uses" in step)


def test_ci_runs_on_every_python() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "ci.yml")
    rows = workflow["jobs"]["run"]["strategy"]["matrix"]["include"]
    pythons = [row["python"] for row in rows]
    title = "Programming Language :: Python :: "
    known = [c.removeprefix(title) for c in PROJECT["classifiers"] if c.startswith(f"{title}3.")]
    assert pythons == known
    assert PROJECT["requires-python"] == f">={known[0]}"
    assert rows[0]["steps"] == "", "the whole of .ci/run on the oldest one"


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_of_issues(path: Path) -> None:
    form = read(path)
    assert {"name", "description", "body"} <= form.keys()
    names = [field["id"] for field in form["body"]]
    assert len(set(names)) == len(names)
    for field in form["body"]:
        assert field["type"] == "textarea"
        assert field["attributes"].keys() >= {"label"}


def test_there_are_workflows_and_forms() -> None:
    assert {path.stem for path in WORKFLOWS} == {"all-tests", "ci", "docs", "release"}
    assert len(FORMS) == 3
    updates = read(ROOT / ".github" / "dependabot.yml")["updates"]
    assert {one["package-ecosystem"] for one in updates} == {"github-actions", "pip"}


def test_the_citation_is_of_this_version() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == ucle.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Repository"]
    assert citation["url"] == PROJECT["urls"]["Documentation"]
    assert all(paper["authors"] and paper["doi"] for paper in citation["references"])


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, *versions = re.split(r"^## ", text, flags=re.MULTILINE)
    names = [re.match(r"\[([^]]+)\]( - \d{4}-\d\d-\d\d)?\n", version) for version in versions]
    assert all(names), "## [version] - date"
    assert names[0][1] == "Unreleased"
    for name, version in zip(names, versions, strict=True):
        assert f"\n[{name[1]}]: {PROJECT['urls']['Homepage']}/" in text
        kinds = re.findall(r"^### (.*)$", version, re.MULTILINE)
        known = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
        assert kinds == [kind for kind in known if kind in kinds], "each once, in this order"


def test_addresses_are_those_of_the_project() -> None:
    home = PROJECT["urls"]["Homepage"]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob(".github/*/*.yml")]
    for page in pages:
        for address in re.findall(r"https://github\.com/ucle[^\s)>]*", page.read_text()):
            assert address == home or address.startswith(f"{home}/"), page.name


# ---- Packages ----


def test_tests_need_what_their_extra_brings() -> None:
    """So that ``pip install '.[test]'`` and ``pytest`` work without Jupyter and the like."""
    required = (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"])
    brought = {re.split(r"[\[>=<]", name)[0].casefold().replace("_", "-") for name in required}
    local = {path.stem for path in TESTS.rglob("*.py")} | {path.name for path in TESTS.iterdir()}
    local |= {"ucle", "benchmarks"}
    for folder in ("docs", "examples/training"):
        local |= {path.stem for path in (ROOT / folder).glob("*.py")}
    missing = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sorted(TESTS.rglob("*.py"))
        if "suites" not in path.parts  # which have an extra of their own
        for module in imported(path)
        if module not in sys.stdlib_module_names | local and in_package(module) not in brought
    ]
    assert not missing, "take it from pytest.importorskip, or add it to the extra `test`"


def imported(path: Path) -> Iterator[str]:
    """The imports of a module at import time, by the first part of their names."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0]


# ---- What stays out of the repository ----

LEFT_BEHIND = (
    "some-1.0-cp311-abi3-linux_x86_64.whl", "dist/ucle-0.1.0.tar.gz", "ucle-0.1.0.tar.gz",
    "demo.duckdb", "demo.duckdb.wal", "folder/web.db", "run.prof", "flamegraph.svg",
    "perf.data.old", ".coverage", ".coverage.host.1", "htmlcov/index.html",
    "notebooks/.ipynb_checkpoints/x.ipynb",
)  # fmt: skip


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode == 128:
        pytest.skip("this is not a clone, or git is not installed")
    return done.stdout


def test_what_is_left_behind_is_ignored() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a clone")
    assert git("check-ignore", "--no-index", *LEFT_BEHIND).split() == list(LEFT_BEHIND)


def test_nothing_is_kept_that_is_ignored() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a clone")
    assert git("ls-files", "--cached", "--ignored", "--exclude-standard") == ""
