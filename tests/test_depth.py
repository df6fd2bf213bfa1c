"""Programs that are nested too deeply, or hold numbers too long, end in a typed error."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ucle
from ucle.errors import DepthError, NameResolutionError, ProgramSyntaxError
from ucle.parse import parse_program
from ucle.statements import order_statements

X = np.arange(3.0)
TEXTS = {
    "calls": "T[i] = " + "relu(" * 500 + "X[i]" + ")" * 500,
    "calls that the parser cannot follow": "T[i] = " + "relu(" * 5000 + "X[i]" + ")" * 5000,
    "a sum": "T[i] = " + " + ".join(["X[i]"] * 5000),
    "signs": "T[i] = " + "-" * 3000 + "X[i]",
    "powers": "T[i] = X[i]" + "^1" * 2000,
}


@pytest.mark.parametrize("name", TEXTS)
def test_deep_programs(name: str) -> None:
    with pytest.raises(DepthError, match="statement of its own"):
        ucle.einsum_program(TEXTS[name], X=X)


def within(calls: int, function: Callable[[], Any]) -> Any:
    """What a function gives below so many calls of the caller's own."""
    return within(calls - 1, function) if calls else function()


def test_no_door_lets_a_recursion_error_out() -> None:
    """However deep the caller stands: the first to fail is another one each time."""
    program = ucle.einsum_program("T[i] = sqrt(exp(X[i]) + 1) * X[i]", X=X)
    tensor = ucle.sqrt(ucle.array(X))
    doors: list[Callable[[], Any]] = [
        lambda: ucle.einsum("i,i->", X, X),
        program.to_sql,
        tensor.to_sql,
    ]
    room = sys.getrecursionlimit() - len(inspect.stack())
    for door in doors:
        errors = set()
        for left in (20, 30, 40):
            calls = room - left
            try:
                within(calls, door)
            except Exception as error:  # whatever gets out
                errors.add(type(error))
        assert errors == {DepthError}


def test_long_numbers() -> None:
    with pytest.raises(ProgramSyntaxError, match="5000 digits"):
        ucle.einsum_program("T[i] = X[i] * " + "7" * 5000, X=X)
    program = ucle.einsum_program("T[i] = X[i] * " + "7" * 5000 + ".5", X=X)
    with program.execute() as result:
        np.testing.assert_array_equal(result["T"].to_numpy()[1:], np.inf)


def test_statements_in_any_order() -> None:
    lines = [f"T{n + 1}[i] = T{n}[i]" for n in range(2000)]
    ordered = order_statements(parse_program("\n".join(reversed(lines))))
    assert [s.target.tensor for s in ordered[:2]] == ["T1", "T2"]
    cyclic = [*lines, "T0[i] = T2000[i]"]
    with pytest.raises(NameResolutionError, match="by means of itself"):
        order_statements(parse_program("\n".join(cyclic)))
