"""The catalogue of planted mistakes is not stale, and its runner tells caught from survived.

All of them are planted by ``make mutations``; here a few.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mutations.catalogue import MUTATIONS
from mutations.mutation import Mutation
from mutations.run import (
    PACKAGES,
    ROOT,
    baseline,
    check_copy,
    copy_tree,
    main,
    run_mutation,
    stale,
)

BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}
FEW = ("map-keeps-the-fill", "minimum-not-reset", "stack-ignores-strides")


def test_every_text_occurs_once() -> None:
    assert not stale()
    assert len(BY_NAME) == len(MUTATIONS) >= 24
    assert all(mutation.old != mutation.new and mutation.breaks for mutation in MUTATIONS)


def test_they_reach_every_folder() -> None:
    files = (mutation.file for mutation in MUTATIONS)
    # What tests hold the code against has mistakes of its own.
    reached = {str(Path(file).parent) for file in files if not file.startswith("tests/")}
    modules = (path for package in PACKAGES for path in (ROOT / package).rglob("[!_]*.py"))
    assert reached == {str(path.parent.relative_to(ROOT)) for path in modules}


def test_a_stale_one_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    gone = Mutation("gone", "ucle/ir/fills.py", "no such text", "", "nothing")
    often = Mutation("often", "ucle/ir/fills.py", "return", "", "nothing")
    nowhere = Mutation("nowhere", "ucle/no_such_file.py", "x", "", "nothing")
    counts = [
        int(problem.split(" occurs ")[1].split()[0]) for problem in stale((gone, often, nowhere))
    ]
    assert counts[0] == counts[2] == 0
    assert counts[1] > 1
    assert main(["--only", "unheard-of"]) == 1
    assert "unheard-of" in capsys.readouterr().out


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources that is imported instead of them."""
    made = copy_tree(tmp_path_factory.mktemp("mutations"))
    check_copy(made)
    return made


@pytest.mark.slow
def test_some_are_caught(tree: Path) -> None:
    few = [BY_NAME[name] for name in FEW]
    assert baseline(tree, few).noticed, "the tests pass without a mistake"
    for mutation in few:
        outcome = run_mutation(tree, mutation)
        assert outcome.noticed, outcome
        assert outcome.by.startswith(mutation.targets), outcome


@pytest.mark.slow
def test_what_changes_nothing_survives(tree: Path) -> None:
    """And what cannot be imported is not taken for caught."""
    mutation = BY_NAME["map-keeps-the-fill"]
    before = (tree / mutation.file).read_bytes()
    harmless = replace(mutation, new=mutation.old.replace("step(fill)", "step( fill)"))
    outcome = run_mutation(tree, harmless)
    assert not outcome.noticed, outcome
    outcome = run_mutation(tree, replace(mutation, new="("))
    assert not outcome.noticed
    assert "do not run" in outcome.by
    assert (tree / mutation.file).read_bytes() == before, "it was taken back"
