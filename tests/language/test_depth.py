"""Programs that are deep or long compile; what no stage can follow ends in a typed error."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ucle
from ucle.errors import DepthError, NameResolutionError, ProgramSyntaxError
from ucle.language.parse import parse_program
from ucle.language.statements import order_statements

X = np.arange(3.0)
DEEP = {
    "calls": "T[i] = " + "relu(" * 500 + "X[i]" + ")" * 500,
    "more calls": "T[i] = " + "relu(" * 5000 + "X[i]" + ")" * 5000,
    "calls of two": "T[i] = " + "max(X[i], " * 500 + "X[i]" + ")" * 500,
    "a sum": "T[i] = " + " + ".join(["X[i]"] * 500),
    "differences": "T[i] = " + "X[i] - (" * 500 + "X[i]" + ")" * 500,
    "signs": "T[i] = " + "-" * 1000 + "X[i]",
    "powers": "T[i] = X[i]" + "^1" * 500,
    "sums of sums": "T[i] = " + "X[i] * sum[i](" * 300 + "X[i]" + ")" * 300,
    "sums in functions": "T[i] = " + "X[i] * relu(sum[i](" * 150 + "X[i]" + "))" * 150,
    "statements": "\n".join(
        ["T0[i] = X[i]", *(f"T{n + 1}[i] = relu(T{n}[i]) * X[i]" for n in range(2000))]
    ),
}
CALLS = 250
"""Calls that compiling may take above those of the test; Python allows a thousand."""


def below(calls: int, function: Callable[[], Any]) -> Any:
    """Call a function with `calls` frames left before Python's recursion limit."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + calls)
    try:
        return function()
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", DEEP)
def test_deep_programs_compile(name: str) -> None:
    ucle.einsum_program("T[i] = relu(X[i])", X=X)  # what is imported late is not counted
    program = below(CALLS, lambda: ucle.einsum_program(DEEP[name], X=X))
    assert program.compiled.plan.steps


ANSWERS = {
    "calls": X,
    "calls of two": X,
    "a sum": 500 * X,
    "differences": X,
    "signs": X,
    "powers": X,
    "statements": np.array([0.0, 1.0, np.inf]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_deep_programs_run(name: str) -> None:
    """Not in one statement of DuckDB's: it nests views and calls a thousand deep at most."""
    program = ucle.einsum_program(DEEP[name], X=X)
    assert program.to_sql()
    with program.execute() as result:
        (tensor,) = result
        np.testing.assert_array_equal(result[tensor].to_numpy(), ANSWERS[name])


def within(calls: int, function: Callable[[], Any]) -> Any:
    """Call a function from `calls` frames further down."""
    return within(calls - 1, function) if calls else function()


def test_no_entry_point_lets_a_recursion_error_out() -> None:
    """However deep the caller stands: the first to fail is another one each time."""
    program = ucle.einsum_program("T[i] = sqrt(exp(X[i]) + 1) * X[i]", X=X)
    tensor = ucle.sqrt(ucle.array(X))
    einsum = ucle.einsum  # imports the compiler, which is no entry point
    entry_points: list[Callable[[], Any]] = [
        lambda: einsum("i,i->", X, X),
        program.to_sql,
        tensor.to_sql,
    ]
    room = sys.getrecursionlimit() - len(inspect.stack())
    for entry_point in entry_points:
        errors = set()
        for left in (20, 30, 40):
            calls = room - left
            try:
                within(calls, entry_point)
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
