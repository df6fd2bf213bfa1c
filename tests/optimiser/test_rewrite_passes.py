"""The table of rewrites: a pass that stands in it is tried, recorded, shown and replayed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import pytest

import ucle
from ucle.lowering.applied_rewrites import RewriteCosts
from ucle.lowering.logical import LogicalProgram
from ucle.lowering.syntax_to_logical import syntax_to_logical
from ucle.optimiser import rewrite_passes
from ucle.optimiser.rewrite_passes import Choice, Rest, RewriteContext

TEXT = "T[i,k] += X[i,j] * Y[j,k]\nZ[i] += exp(T[i,k])"


COSTS = RewriteCosts(1.0, 2.0, (4.0, 3.0))


@dataclass(frozen=True)
class Noted:
    """A record of a rewrite that changes nothing, and counts how often it is replayed."""

    replayed: list[LogicalProgram] = field(default_factory=list)
    lines: tuple[str, ...] = ("nothing was changed",)
    costs: RewriteCosts = COSTS
    key: str = "noted"

    def replay(self, logical: LogicalProgram) -> LogicalProgram | None:
        self.replayed.append(logical)
        return logical


def test_a_pass_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    record = Noted()

    def note(logical: LogicalProgram, context: RewriteContext, rest: Rest) -> Choice:
        decided, association = rest(logical, context)
        return rewrite_passes._record((decided, association), record)

    x, y = np.ones((3, 4)), np.ones((4, 5))
    plain = ucle.einsum_program(TEXT, X=x, Y=y)
    monkeypatch.setattr(rewrite_passes, "REWRITES", (note, *rewrite_passes.REWRITES))
    ucle.clear_caches()
    program = ucle.einsum_program(TEXT, X=x, Y=y)
    assert program.to_sql() == plain.to_sql()
    shown = program.explain()
    assert "noted: nothing was changed" in shown
    assert "noted: cost 1; as written it costs 2; in other forms 3, 4" in shown
    assert "noted" not in plain.explain()
    lines = {"lines": ["nothing was changed"], "cost": 1.0, "written": 2.0}
    document = json.loads(program.explain("json"))
    assert document == {**json.loads(plain.explain("json")), "noted": lines}
    with program.execute() as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), np.full(3, 5 * np.exp(4)))


def test_replays_run_in_the_order_of_the_table() -> None:
    """A rewrite that is no longer allowed ends the replay: the program stands as it is written."""
    program = ucle.einsum_program(TEXT, X=np.ones((3, 4)), Y=np.ones((4, 5)))
    front = program.compiled.front
    first, second = Noted(), Noted()
    lowering = front.lowering.after(second).after(first)
    assert lowering.rewrites[:2] == (first, second)
    assert lowering.rewrite("noted") is first
    assert lowering.rewrite("masks") is None

    class Refused(Noted):
        def replay(self, logical: LogicalProgram) -> LogicalProgram | None:
            return None

    logical = syntax_to_logical(front.source)
    lowering.contract(logical)
    assert len(first.replayed) == len(second.replayed) == 1
    contracted = front.lowering.after(second).after(Refused()).contract(logical)
    assert len(second.replayed) == 1
    assert [v.name for v in contracted.program.vertices][-1] == "Z"
