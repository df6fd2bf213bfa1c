"""Arguments that a function does not have are refused in the caller's words."""

from __future__ import annotations

import numpy as np
import pytest

import ucle
from ucle.errors import ArgumentTypeError
from ucle.foundation.arguments import ELSEWHERE, validated


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"overwrite": True}, 'Did you mean "replace"?'),
        ({"if_exists": "replace"}, 'Did you mean "mode"?'),
        ({"mods": "replace"}, 'Did you mean "mode"?'),
        ({"xyz": 1}, None),
    ],
)
def test_an_unknown_argument_of_a_method(arguments: dict[str, object], hint: str | None) -> None:
    with ucle.connect() as connection:
        program = ucle.einsum_program("y[i] += A[i,j]", A=np.eye(3), database=connection)
        with program.execute() as result, pytest.raises(ArgumentTypeError) as raised:
            result["y"].to_table("t", **arguments)
        assert connection.execute("SHOW TABLES").fetchall() == []
    (name,) = arguments
    assert str(raised.value).startswith(f"to_table({name}=...): there is no such argument")
    assert "name, keys, rows, mode" in str(raised.value)
    assert "self" not in str(raised.value)
    assert raised.value.hint == hint


def test_an_argument_is_checked_before_anything_runs() -> None:
    ran = []

    @validated()
    def work(database: object = None) -> None:
        ran.append(database)

    for name in ELSEWHERE:
        with pytest.raises(ArgumentTypeError):
            work(**{name: 1})
    assert not ran
    work(database=1)
    assert ran == [1]


def test_an_argument_too_many_is_refused() -> None:
    with ucle.connect() as connection:
        program = ucle.einsum_program("y[i] += A[i,j]", A=np.eye(3), database=connection)
        with program.execute() as result, pytest.raises(ArgumentTypeError) as raised:
            result["y"].to_table("t", connection)
    assert str(raised.value).startswith("to_table: there is one argument too many")
    assert "name, keys=, rows=" in str(raised.value)
    assert "DuckDBPyConnection" in str(raised.value)
