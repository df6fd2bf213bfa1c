"""Coordinates at which a kept tensor is its fill: they are in no row of its table."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from maintenance.sequences import run_sequence

import ucle
from ucle.maintenance import chosen_tensors

PROGRAMS = [
    ("m[i] min= A[i,j]; n[] = max[i](m[i]); r[i] = m[i] - n[]", ("m", "n", "r")),
    # t has too many entries to be kept, so that n is computed from m.
    ("m[i] min= A[i,j]; t[i] = 2 * m[i]; n[] = max[i](t[i])", ("m", "n")),
]


@pytest.mark.parametrize(("text", "outputs"), PROGRAMS)
@pytest.mark.parametrize("columns", ["ab", "a"])
def test_a_new_coordinate_of_an_output(
    text: str, outputs: Sequence[str], columns: Sequence[str]
) -> None:
    """The least of a row with a number above 0 is 0, which is the largest of all of them then."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE t (i VARCHAR, j VARCHAR, val DOUBLE)").fetchall()
        for number, (row, column) in enumerate(itertools.product("ab", columns)):
            connection.execute(f"INSERT INTO t VALUES ('{row}', '{column}', {-1 - number})")
        program = ucle.einsum_program(text, A="t", outputs=outputs, database=connection)
        kept = program.maintain("kept", connection)
        for row in ("('c', 'a', 3)", "('a', 'c', -5)"):
            connection.execute(f"INSERT INTO t VALUES {row}").fetchall()
            kept.refresh()
            with ucle.einsum_program(
                text, A="t", outputs=outputs, database=connection
            ).execute() as result:
                for name in outputs:
                    expected = result[name].relation.fetchall()
                    found = connection.execute(f"FROM kept_{name}").fetchall()
                    assert sorted(found) == sorted(expected), name


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
@pytest.mark.parametrize("seed", range(5, 60, 4))
def test_everything_is_kept(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds with words for coordinates."""
    monkeypatch.setattr(chosen_tensors, "MOST_KEPT", 1e9)
    run_sequence(seed, ucle.connect)
