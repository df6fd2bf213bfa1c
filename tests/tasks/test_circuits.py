"""Quantum circuits: gates as small complex arrays, states as tensors with one axis per qubit."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
import scipy.linalg

import ucle

H = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
X = np.array([[0, 1], [1, 0]])
Y = np.array([[0, -1j], [1j, 0]])
Z = np.diag([1, -1])
CNOT = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]).reshape(2, 2, 2, 2)


def test_bell_state() -> None:
    zero = np.array([1, 0])
    found = ucle.einsum("xyab,ac,c,b->xy", CNOT, H, zero, zero)
    np.testing.assert_allclose(found, np.eye(2) / np.sqrt(2))


def test_ghz_state_of_nine_qubits_as_rows() -> None:
    """Two amplitudes of 512 are stored; the probabilities are asked for in SQL."""
    qubits = 9
    state = ucle.array([1.0, 0.0], axes=("q0",)).dot(ucle.array(H, axes=("q0", "p0")), axis="q0")
    state = state.rename({"p0": "q0"})
    for n in range(1, qubits):
        fresh = ucle.array([1.0, 0.0], axes=("target",))
        gate = ucle.array(CNOT, axes=("out", f"q{n}", "control", "target"))
        state = state.rename({f"q{n - 1}": "control"}).dot(
            gate.dot(fresh, axis="target"), axis="control"
        )
        state = state.rename({"out": f"q{n - 1}"})
    with duckdb.connect() as connection:
        state.to_table("amplitudes", connection)
        columns = ", ".join(f"q{n}" for n in range(qubits))
        query = f"SELECT [{columns}], round(val * val, 9) FROM amplitudes ORDER BY 1"
        found = connection.sql(query).fetchall()
    assert found == [([0] * qubits, 0.5), ([1] * qubits, 0.5)]


def test_expectation_values() -> None:
    random = np.random.default_rng(61)
    state = random.normal(size=(2, 2, 2)) + 1j * random.normal(size=(2, 2, 2))
    state /= np.linalg.norm(state)
    program = ucle.einsum_program(
        """
        zz = sum[a,b,c,d,e](conj(S[a,b,c]) * Z[a,d] * Z[b,e] * S[d,e,c])
        y = sum[a,b,c,d](conj(S[a,b,c]) * Y[c,d] * S[a,b,d])
        R[a,d] += S[a,b,c] * conj(S[d,b,c])
        """,
        S=state,
        Z=Z,
        Y=Y,
    )
    with program.execute() as result:
        found = {name: result[name].to_numpy() for name in result}
    flat = state.ravel()
    eye = np.eye(2)
    np.testing.assert_allclose(found["zz"], flat.conj() @ np.kron(np.kron(Z, Z), eye) @ flat)
    np.testing.assert_allclose(found["y"], flat.conj() @ np.kron(np.eye(4), Y) @ flat)
    np.testing.assert_allclose(found["R"], state.reshape(2, 4) @ state.reshape(2, 4).conj().T)


def test_a_step_in_time_is_unitary(tmp_path: Path) -> None:
    """exp(-iHt) by its series, against scipy's; the result is saved and read again."""
    random = np.random.default_rng(62)
    half = random.normal(size=(4, 4)) + 1j * random.normal(size=(4, 4))
    energy = (half + half.conj().T) / 16
    generator = ucle.array(-1j * energy)
    term = step = ucle.array(np.eye(4, dtype=complex))
    for order in range(1, 9):
        term = term @ generator / order
        step = step + term
    norm = (ucle.conj(step).T @ step).to_numpy()
    step.save(tmp_path / "step.parquet")
    found = ucle.tensor(str(tmp_path / "step.parquet")).to_numpy()
    np.testing.assert_allclose(found, scipy.linalg.expm(-1j * energy), atol=1e-8)
    np.testing.assert_allclose(norm, np.eye(4), atol=1e-8)


def test_complex_numbers_have_no_order() -> None:
    amplitudes = ucle.array(np.array([1j, 2]), axes=("state",))
    with pytest.raises(ucle.UcleError) as refused:
        amplitudes.max().to_numpy()
    assert "complex" in str(refused.value)
    likely = ucle.abs(amplitudes).max()
    assert likely.item() == 2.0
