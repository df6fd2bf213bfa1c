"""Pointwise functions of pointwise functions: one call, with the very answer of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.language.parse import parse_program
from ucle.options import Optimisations
from ucle.run.script import script_of
from ucle.sqlgen import NATIVE
from ucle.testing import recompiled
from ucle.udf_kernels import kernel_limits

rng = np.random.default_rng(3)
A, B, C = rng.normal(size=(3, 60, 50))
S = rng.normal(size=(60, 60))
BOARD = (rng.random((40, 40)) < 0.3).astype(float)
BAND = (abs(np.subtract.outer(np.arange(40), np.arange(40))) <= 1).astype(float)


def life(steps: int) -> tuple[str, np.ndarray[Any, Any]]:
    """The game of life as a program over X0 and S, and the board that it ends with."""
    lines, board = [], BOARD
    for n in range(steps):
        lines.append(f"N{n}[i,j] += S[i,k] * X{n}[k,l] * S[l,j]")
        lines.append(f"X{n + 1}[i,j] = N{n}[i,j] == 3 or (X{n}[i,j] > 0 and N{n}[i,j] == 4)")
        count = BAND @ board @ BAND
        board = ((count == 3) | ((board > 0) & (count == 4))).astype(float)
    return "; ".join(lines), board


TEXTS: dict[str, tuple[str, Mapping[str, Any], Any]] = {
    "sums": ("Z[i,j] = relu(A[i,j] * B[i,j] + C[i,j])", {}, np.maximum(A * B + C, 0)),
    "twice": ("Z[i,j] = A[i,j] * A[i,j] - abs(A[i,j])", {}, A * A - abs(A)),
    "constants": ("Z[i,j] = 2 - exp(A[i,j] / 3) * 0.1", {}, 2 - np.exp(A / 3) * 0.1),
    "types": (
        "Z[i,j] = int64(A[i,j] > 0.5) * 3 - int64(B[i,j] < C[i,j])",
        {},
        (A > 0.5) * 3 - (B < C).astype(int),
    ),
    "reduced": ("Z[] += relu(A[i,j] * B[i,j] + C[i,j])", {}, np.maximum(A * B + C, 0).sum()),
    "largest": ("Z[] max= exp(A[i,j]) - 1", {}, (np.exp(A) - 1).max()),
    "after a product": (
        "P[i,k] += A[i,j] * B[k,j]; Z[i,k] = relu(P[i,k] + S[i,k])",
        {"S": S},
        np.maximum(A @ B.T + S, 0),
    ),
    "life": (life(3)[0], {"X0": BOARD, "S": BAND}, life(3)[1]),
}


def inputs_of(text: str, more: Mapping[str, Any]) -> dict[str, Any]:
    known = {"A": A, "B": B, "C": C, **more}
    return {name: value for name, value in known.items() if f"{name}[" in text}


def whole(text: str, inputs: Mapping[str, Any]) -> ucle.EinsumProgram:
    """A program in which no label is promoted, in the order of its text."""
    names = [statement.target.tensor for statement in parse_program(text)]
    return ucle.einsum_program(
        text, inputs=inputs, decomposition=dict.fromkeys(names, ()), association="as-written"
    )


def script(program: ucle.EinsumProgram) -> list[str]:
    """The statements that make tables."""
    made = script_of(program.compiled.physical, NATIVE).statements
    return [statement.create for statement in made if statement.create is not None]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", TEXTS)
def test_one_call_gives_what_several_give(name: str) -> None:
    text, more, expected = TEXTS[name]
    inputs = inputs_of(text, more)
    program = whole(text, inputs)
    apart = recompiled(program, Optimisations(chains=False))
    some = ucle.einsum_program(text, inputs=inputs)
    for config in ({"allow_unsigned_extensions": "true"}, {}):
        with duckdb.connect(config=config) as connection:
            answers = []
            for each in (program, apart, some):
                with each.execute(connection) as result:
                    (output,) = list(result)[-1:]
                    answers.append(np.asarray(result[output].to_numpy()))
            np.testing.assert_array_equal(answers[0], answers[1])
            for answer in answers:
                np.testing.assert_allclose(answer, expected, rtol=1e-9, atol=1e-12)


def test_calls_are_one() -> None:
    for name in ("sums", "constants", "types"):
        text, more, _ = TEXTS[name]
        program = whole(text, inputs_of(text, more))
        (statement,) = script(program)
        assert statement.count("chain") == 1, statement
        assert "vec_" not in statement
    (statement,) = script(whole(TEXTS["constants"][0], {"A": A}))
    assert "chain1('2 a 3 div exp 0.1 mult sub'" in statement


def test_a_grid_is_stepped_in_one_statement() -> None:
    text, more, _ = TEXTS["life"]
    (statement,) = script(whole(text, more))
    assert statement.count("chain2_bool(") == 3
    assert "FULL JOIN" not in statement


def test_more_than_a_call_takes_is_several() -> None:
    """Operands beyond the kernel's, and more functions than a program may have."""
    names = [f"X{n}" for n in range(kernel_limits().chain_operands + 3)]
    values = {name: rng.normal(size=(40, 60)) for name in names}
    text = "Z[i,j] = " + " + ".join(f"exp({name}[i,j])" for name in names)
    program = whole(text, values)
    assert "".join(script(program)).count("chain") >= 2
    with program.execute() as result:
        expected = sum(np.exp(value) for value in values.values())
        np.testing.assert_allclose(result["Z"].to_numpy(), expected)
    x = values["X0"]
    text, expected = "Y0[i,j] = X0[i,j]", x
    for n in range(kernel_limits().chain_steps + 20):
        text += f"; Y{n + 1}[i,j] = tanh(Y{n}[i,j])"
        expected = np.tanh(expected)
    with whole(text, {"X0": x}).execute() as result:
        (output,) = list(result)[-1:]
        np.testing.assert_allclose(result[output].to_numpy(), expected)


@pytest.mark.parametrize("kept", [True, False])
def test_a_tensor_that_is_nowhere_stored_is_its_fill(kept: bool) -> None:
    """An outer join keeps what is there: so does a join of tensors that were made complete."""
    value = rng.normal(size=(40, 60))
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE X (val DOUBLE[60][40])")
        connection.execute("CREATE TABLE Y AS SELECT ?::DOUBLE[60][40] AS val", [value.tolist()])
        program = ucle.einsum_program(
            "Z[i,j] = relu(X[i,j] + Y[i,j]) - 1",
            X=ucle.table("X", [], "val", shape=(40, 60)),
            Y=ucle.table("Y", [], "val", shape=(40, 60)),
            database=connection,
            decomposition={"Z": []},
        )
        assert "_complete" in program.to_sql()
        if not kept:
            connection.execute("DELETE FROM Y")
        with program.execute() as result:
            expected = np.maximum(value * kept, 0) - 1
            np.testing.assert_allclose(result["Z"].to_numpy(), expected)


def test_what_is_read_by_arithmetic_with_labels_stays(connection: Any) -> None:
    A = np.random.default_rng(0).normal(size=(4, 4))
    program = ucle.einsum_program(
        "P[i,j] = exp(A[i,j]); Q[i,j] = when(i <= j, P[i,j]); Z[i,j] = relu(P[i,j]) * A[i,j] + 1",
        A=A,
        database=connection,
    )
    with program.execute() as result:
        np.testing.assert_allclose(result["Q"].to_numpy(), np.triu(np.exp(A)), rtol=1e-12)
        np.testing.assert_allclose(result["Z"].to_numpy(), np.exp(A) * A + 1, rtol=1e-12)
