"""What `explain` says of steps that were run."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from leftovers import temporary_objects

import ucle


def measured(text: str) -> dict[str, list[str]]:
    """The cells of the last section, by step."""
    section = text.rsplit("\n\n", maxsplit=1)[-1].splitlines()[2:]
    return {line.split()[0]: line.split()[1:] for line in section}


@pytest.mark.parametrize("decomposition", ["auto", "relational", {"T": ["i"]}])
def test_rows_of_every_step(decomposition: object) -> None:
    rng = np.random.default_rng(0)
    a = sp.random_array((30, 20), density=0.2, rng=rng, format="coo")
    h = rng.random((20, 4))
    program = ucle.einsum_program(
        "T[i,k] += A[i,j] * H[j,k]\nZ[i,k] = relu(T[i,k])", A=a, H=h, decomposition=decomposition
    )
    steps = measured(program.explain(analyze=True))
    assert list(steps) == [step.name for step in program.compiled.plan.steps]
    with program.execute() as result:
        found = len(result["Z"].to_arrow())
    assert steps["Z"][1] == str(found)
    assert "Measured" not in program.explain()


def test_an_estimate_that_is_far_off_is_marked() -> None:
    """Two diagonals that never meet: a join of 200 tuples is expected, and has none."""
    n = np.arange(200)
    x = sp.coo_array((np.ones(200), (n, 2 * n)), shape=(400, 400))
    y = sp.coo_array((np.ones(200), (2 * n + 1, n)), shape=(400, 400))
    program = ucle.einsum_program("T[i,k] += X[i,j] * Y[j,k]", X=x, Y=y, decomposition="relational")
    steps = measured(program.explain(analyze=True))
    assert steps["T"][1] == "0"
    assert steps["T"][3:6] == ["<-", "off", "by"]
    assert len(steps["X"]) == 3 if "X" in steps else len(steps["X_2"]) == 3


def test_nothing_is_left_behind() -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE a AS SELECT range::INTEGER AS i, 1.0 AS v FROM range(5)")
        table = ucle.table("a", ["i"], "v")
        program = ucle.einsum_program("s += A[i] * A[i]", A=table, database=connection)
        before = temporary_objects(connection)
        program.explain(analyze=True)
        assert temporary_objects(connection) == before
        connection.execute("DROP TABLE a")
        with pytest.raises(ucle.UcleError):
            program.explain(analyze=True)
