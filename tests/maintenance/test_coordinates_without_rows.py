"""Coordinates at which a kept tensor is its fill: they are in no row of its table."""

from __future__ import annotations

import pytest
from maintenance.sequences import run_sequence

import ucle
from ucle.language.parse import parse_program
from ucle.maintenance import chosen_tensors
from ucle.maintenance.chosen_tensors import vanishes

TEXT = "m[i] min= A[i,j]; n[] = max[i](m[i]); r[i] = m[i] - n[]"


def test_a_new_coordinate_of_an_output() -> None:
    """The least of a row with a number above 0 is 0, which is the largest of all of them then."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE t (i VARCHAR, j VARCHAR, val DOUBLE)").fetchall()
        connection.execute("INSERT INTO t VALUES ('a', 'a', -1), ('b', 'b', -2)").fetchall()
        connection.execute("INSERT INTO t VALUES ('a', 'b', -3), ('b', 'a', -4)").fetchall()
        program = ucle.einsum_program(TEXT, A="t", outputs=["m", "n", "r"], database=connection)
        kept = program.maintain("kept", connection)
        for row in ("('c', 'a', 3)", "('a', 'c', -5)"):
            connection.execute(f"INSERT INTO t VALUES {row}").fetchall()
            kept.refresh()
            with ucle.einsum_program(
                TEXT, A="t", outputs=["m", "n", "r"], database=connection
            ).execute() as result:
                for name in ("m", "n", "r"):
                    expected = result[name].relation.fetchall()
                    found = connection.execute(f"FROM kept_{name}").fetchall()
                    assert sorted(found) == sorted(expected), name


@pytest.mark.sample(3)
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
@pytest.mark.parametrize("seed", range(5, 60, 4))
def test_everything_is_kept(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds with words for coordinates."""
    monkeypatch.setattr(chosen_tensors, "MOST_KEPT", 1e9)
    run_sequence(seed, ucle.connect)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("m[i]", True),
        ("A[i,j] * m[j]", True),
        ("sum[j](A[i,j] * (m[j] * A[j,i]))", True),
        ("m[j] * (A[i,j] + m[i])", False),
        ("max[j](A[i,j] * m[j])", False),
        ("A[i,j] + m[j]", False),
        ("A[i,j] / m[j]", False),
        ("relu(m[i])", False),
        ("m[i+1]", False),
        ("A[i,j]", False),
    ],
)
def test_what_is_0_where_a_tensor_is(expression: str, expected: bool) -> None:
    (statement,) = parse_program(f"y[i,j] = {expression}")
    assert vanishes(statement.expression, "m") == expected
