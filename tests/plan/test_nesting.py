"""Steps without key columns: a few calls written into each other, more of them as one."""

from __future__ import annotations

import itertools
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

A, B, C = np.random.default_rng(7).normal(size=(3, 4, 4))


def whole(text: str, inputs: Mapping[str, Any]) -> ucle.EinsumProgram:
    """A program in which no label is promoted, in the order of its text."""
    names = [statement.target.tensor for statement in parse_program(text)]
    return ucle.einsum_program(
        text, inputs=inputs, decomposition=dict.fromkeys(names, ()), association="as-written"
    )


def unwritten(program: ucle.EinsumProgram, **switches: bool) -> ucle.EinsumProgram:
    """The program with small arrays stored as tables, as large ones are."""
    return recompiled(program, Optimisations(constants=False, **switches))


def made(program: ucle.EinsumProgram) -> str:
    """The only statement of the script that makes a table."""
    script = script_of(unwritten(program).compiled.physical, NATIVE)
    (statement,) = (s.create for s in script.statements if s.create is not None)
    return statement


def check(program: ucle.EinsumProgram, expected: Mapping[str, Any]) -> None:
    """The results on both routes, with small arrays in statements and in tables."""
    for config in ({"allow_unsigned_extensions": "true"}, {}):
        for each in (program, unwritten(program)):
            with duckdb.connect(config=config) as connection, each.execute(connection) as result:
                for name, value in expected.items():
                    found = result[name].to_numpy()
                    np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-12)


def test_contractions_of_contractions_are_calls_inside_of_calls() -> None:
    text = "P[i,k] += A[i,j] * B[j,k]; Q[k,i] += C[k,l] * P[i,l]; R[i] += Q[k,i] * A[k,i]"
    program = whole(text, {"A": A, "B": B, "C": C})
    assert made(program).count("mat_mat_mult(") == 1
    assert made(program).count("ein(") == 2
    check(program, {"R": np.einsum("ki,ki->i", C @ (A @ B).T, A)})


def test_many_contractions_are_one_call() -> None:
    lines = [f"P{n + 1}[i,k] += P{n}[j,i] * {'ABC'[n % 3]}[j,k]" for n in range(12)]
    program = whole("\n".join(["P0[i,j] = A[i,j]", *lines]), {"A": A, "B": B, "C": C})
    (call,) = made(program).split("tape('")[1:]
    assert call.partition("'")[0].count(";") == 12
    expected = A
    for n in range(12):
        expected = expected.T @ (A, B, C)[n % 3]
    check(program, {"P12": expected})


def test_what_is_read_twice_is_computed_once() -> None:
    text = "P[i,k] += A[i,j] * B[j,k]; Q[i,k] += P[i,j] * P[j,k]"
    program = whole(text, {"A": A, "B": B})
    assert "'mat_mat_mult($0,$1,4);\nmat_mat_mult($2,$2,4);\nreturn $3'" in made(program)
    check(program, {"Q": A @ B @ A @ B})


def test_several_results_are_columns_of_one_row() -> None:
    text = "P[i,k] += A[i,j] * B[j,k]; n = sum[i,j](P[i,j]); Q[i] = P[i,i] / n[]; R[] = n[] * 2"
    program = whole(text, {"A": A, "B": B})
    found = A @ B
    expected = {"Q": np.diag(found) / found.sum(), "R": found.sum() * 2}
    check(program, expected)
    with program.execute() as result:
        assert {name: result[name].stored.columns for name in result} == {
            "Q": ["val"],
            "R": ["val"],
        }
        result["Q"].to_table("q")
        kept = result["R"]
        del result
        assert kept.to_numpy() == pytest.approx(expected["R"])


def test_maps_between_contractions() -> None:
    text = """
    P[i,k] = relu(A[i,j] * B[j,k])
    Q[i,k] += P[i,j] * C[j,k]
    R[i,k] += Q[j,i] * A[k,j]
    S[i,k] = exp(R[i,k]) / B[i,k]
    """
    program = whole(text, {"A": A, "B": B, "C": C})
    assert " AS MATERIALIZED" not in made(program)
    found = (np.maximum(A @ B, 0) @ C).T @ A.T
    check(program, {"S": np.exp(found) / B})


def test_element_types_part_a_chain() -> None:
    text = "P[i,k] += A[i,j] * B[j,k]; Q[i,k] += float32(P[i,j]) * half[j,k]; R[i] += Q[i,j] * v[j]"
    half, v = C.astype(np.float32), np.arange(4, dtype=np.float32)
    program = whole(text, {"A": A, "B": B, "half": half, "v": v})
    expected = (A @ B).astype(np.float32) @ half @ v
    with program.execute() as result:
        np.testing.assert_allclose(result["R"].to_numpy(), expected, rtol=1e-5)


@pytest.mark.slow
def test_what_does_not_commute() -> None:
    steps = 50  # each on the right of the next, which a stack holds only in parts
    lines = [f"P{n + 1}[i,j] = A[i,j] - P{n}[j,i]" for n in range(steps)]
    program = whole("\n".join(["P0[i,j] = A[i,j] - B[j,i]", *lines]), {"A": A, "B": B})
    expected = A - B.T
    for _ in range(steps):
        expected = A - expected.T
    check(program, {f"P{steps}": expected})


def test_a_tensor_that_is_nowhere_stored() -> None:
    text = "P[i,k] += A[i,j] * B[j,k]; Q[i,k] += P[i,j] * C[j,k]"
    check(whole(text, {"A": A, "B": 0 * B, "C": C}), {"Q": 0 * A})


@pytest.mark.slow
@pytest.mark.parametrize("first", ["state", "gate"])
def test_many_different_gates(first: str) -> None:
    """A product has as many operands as gates, in statements and in tables."""
    random = np.random.default_rng(3)
    qubits, count = 5, 150
    state = random.normal(size=(2,) * qubits) + 1j * random.normal(size=(2,) * qubits)
    inputs: dict[str, Any] = {"s0": state}
    before = [f"q{n}" for n in range(qubits)]
    lines = []
    expected = state
    for number in range(count):
        acts = sorted(random.permutation(qubits)[: random.integers(1, 4)].tolist())
        size = 2 ** len(acts)
        gate = np.linalg.qr(random.normal(size=(size, size)))[0].astype(complex)
        inputs[f"g{number}"] = gate.reshape((2,) * (2 * len(acts)))
        after = [f"a{n}" if n in acts else name for n, name in enumerate(before)]
        labels = [f"a{n}" for n in acts] + [f"q{n}" for n in acts]
        factors = [f"s{number}[{','.join(before)}]", f"g{number}[{','.join(labels)}]"]
        product = " * ".join(factors if first == "state" else reversed(factors))
        lines.append(f"s{number + 1}[{','.join(after)}] += {product}")
        found = np.tensordot(
            inputs[f"g{number}"], expected, (range(len(acts), 2 * len(acts)), acts)
        )
        expected = np.moveaxis(found, range(len(acts)), acts)
    check(whole("\n".join(lines), inputs), {f"s{count}": expected})


def test_a_tensor_of_more_labels_than_kernels_take() -> None:
    """Every second label is summed, so that no two of them are one axis."""
    labels = [f"x{n}" for n in range(18)]
    tensor = np.random.default_rng(0).normal(size=(2,) * 18)
    matrix = np.random.default_rng(1).normal(size=(2,) * 9)
    text = f"T[{','.join(labels[::2])}] += X[{','.join(labels)}] * Y[{','.join(labels[1::2])}]"
    program = ucle.einsum_program(text, X=tensor, Y=matrix)
    letters = "abcdefghijklmnopqr"
    expected = np.einsum(f"{letters},{letters[1::2]}->{letters[::2]}", tensor, matrix)
    with program.execute() as result:
        np.testing.assert_allclose(result["T"].to_numpy(), expected)


def test_constants_side_by_side_are_no_deeper_for_it() -> None:
    """Many gates in one call stand beside each other in it, not one above the other."""
    count = 150
    gates = {f"G{n}": np.linspace(n, n + 1, 4).reshape(2, 2) / count for n in range(count)}
    lines = [f"s{n + 1}[a] += s{n}[q] * G{n}[a,q]" for n in range(count)]
    program = ucle.einsum_program(
        "; ".join(lines), s0=np.ones(2), **gates, association="as-written"
    )
    state = np.ones(2)
    for gate in gates.values():
        state = gate @ state
    np.testing.assert_allclose(program.execute()[f"s{count}"].to_numpy(), state)
    assert program.to_sql().count("SELECT") <= 8


BINARY = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "==": np.equal,
    "<": np.less,
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int64", "float64", "complex128"])
def test_what_is_written_into_an_operator_stands_in_brackets(dtype: str) -> None:
    """Such as ``0 * (T - 2)`` in two statements, for each two operators, and on either side."""
    operators = [symbol for symbol in BINARY if dtype != "complex128" or symbol != "<"]
    start, lines, expected = np.array(7).astype(dtype), [], {}
    for number, (one, other) in enumerate(itertools.product(operators, repeat=2)):
        for inner, outer in itertools.product((False, True), repeat=2):  # the constant comes first
            names = [f"{letter}{number}{inner:d}{outer:d}" for letter in "pq"]
            value: Any = start
            for name, read, symbol, first in zip(
                names, ("T", names[0]), (one, other), (inner, outer), strict=True
            ):
                sides = ("3", f"{read}[]") if first else (f"{read}[]", "3")
                lines.append(f"{name}[] = {sides[0]} {symbol} {sides[1]}")
                with np.errstate(all="ignore"):
                    value = BINARY[symbol](*((3, value) if first else (value, 3)))
            expected[names[1]] = value
    check(ucle.einsum_program("; ".join(lines), T=start, decomposition="relational"), expected)


def test_counts_of_floats_are_computed_with_them() -> None:
    """What is true is 1 or 0, of NaN too; a float that becomes an integer may be NaN."""
    text = "P[i,k] += A[i,j] * B[j,k]; Q[i] = P[i,i] + P[i,0]; n = sum[i](int64({})); d = n[] * 2"
    Q = np.diag(A @ B) + (A @ B)[:, 0]
    program = whole(text.format("Q[i] < 0"), {"A": A, "B": B})
    (call,) = made(program).split("tape('")[1:]
    assert "less" in call.partition("'")[0]
    check(program, {"d": 2 * (Q < 0).sum()})
    cast = whole(text.format("Q[i]"), {"A": A, "B": B})
    statements = script_of(unwritten(cast).compiled.physical, NATIVE).statements
    calls = [call for x in statements if x.create for call in x.create.split("tape('")[1:]]
    assert not any("f64 i64" in call.partition("'")[0] for call in calls)
    check(cast, {"d": 2 * Q.astype(int).sum()})


def test_conditions_without_labels_hold_on_tapes(connection: duckdb.DuckDBPyConnection) -> None:
    b = np.arange(1.0, 9.0).reshape(4, 2)
    text = "T[i,r] = (i <= r and {}) * b[r,i]; s = sum[i,r](T[i,r])"
    for never, left in (("i >= i + 1", 0.0), ("i <= i + 1", 34.0)):
        program = ucle.einsum_program(
            text.format(never), b=b, database=connection, outputs=["T", "s"]
        )
        with program.execute() as result:
            assert (result["T"].to_numpy().sum(), result["s"].item()) == (left, left)
