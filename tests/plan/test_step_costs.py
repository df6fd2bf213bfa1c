"""Costs are known by the step, whose name may differ from its tensor's."""

from __future__ import annotations

import numpy as np
import pytest

import ucle
from ucle.plan.materialise import materialise_shared
from ucle.plan.steps import Role, Step

X = np.random.default_rng(0).random((600, 600))
SHARED = """
{other}[i] = relu(u[i])
{shared}[i,k] += A[i,j] * B[j,k]
P[i] = {shared}[i,k] * u[k] + {other}[i]
Q[k] = {shared}[i,k] * u[i]
"""


def steps(shared: str, other: str) -> dict[str, Step]:
    """The steps that vertices of a program make, by tensor: one is costly and read twice."""
    program = ucle.einsum_program(
        SHARED.format(shared=shared, other=other),
        A=X,
        B=X,
        u=X[0],
        association="as-written",
        decomposition={shared: {"i"}},
    )
    made = program.compiled.after((materialise_shared,)).steps
    return {step.tensor: step for step in made if step.cost}


@pytest.mark.parametrize(
    ("shared", "other"),
    [("Z", "z"), ("A_by_i", "O"), ("A_BY_I", "O")],
    ids=["case is folded", "a layout of an input", "both"],
)
def test_names_do_not_decide_what_is_a_table(shared: str, other: str) -> None:
    plain, renamed = steps("Y", "O"), steps(shared, other)
    assert renamed[shared].name != shared  # else there is nothing to see
    assert renamed[shared].role is plain["Y"].role is Role.TABLE
    assert renamed[shared].cost == pytest.approx(plain["Y"].cost)


def test_only_vertices_cost() -> None:
    program = ucle.einsum_program(
        "A_by_i[i] = A[i,j] * u[j]", A=X, u=X[0], decomposition={"A_by_i": {"i"}}
    )
    decomposed, made = program.compiled.decomposed, program.compiled.plan.steps
    costs = {step.tensor: step.cost for step in made if step.cost}
    assert costs == {"A_by_i": decomposed.costs["A_by_i"].total}
    assert "A_by_i" in {step.name for step in made if step.tensor == "A"}
