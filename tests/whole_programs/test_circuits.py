"""State vectors of quantum circuits against qiskit: complex tensors with an axis for each qubit.

Small circuits run over decompositions and both routes. Those of the shared folder with up to 11
qubits run under the chosen plan as long as choosing among the 2^n layouts of a state is quick, and
under pinned decompositions: all labels promoted, none, and one half.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from circuits import Circuit, convert, programs, read_circuit
from known import check_known, known
from qiskit import QuantumCircuit
from qiskit.circuit.library import QFTGate
from qiskit.circuit.random import random_circuit
from qiskit.quantum_info import SparsePauliOp, Statevector

import ucle
from ucle.testing.check_matrix import Routes

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "qasm"
MOST_QUBITS = 11
CHOSEN_QUBITS = 5
"""The optimiser looks at every pair of layouts: 4^n for a state of n qubits."""
LONG = 100
"""Circuits of more gates run gate by gate, as planning a layer takes longer than its gates."""
TOLERANCE = 1e-9


# ---- Small circuits, in every way ----


def entangled() -> QuantumCircuit:
    made = QuantumCircuit(3)
    made.h(1)
    made.cx(1, 0)
    made.cx(0, 2)
    return made


def out_of_order() -> QuantumCircuit:
    """Gates whose qubits are not in order, and differ in what they do."""
    made = QuantumCircuit(3)
    made.ry(0.3, 2)
    made.rx(0.7, 0)
    made.cu(0.1, 0.2, 0.3, 0.4, 2, 1)
    made.ccx(2, 0, 1)
    made.iswap(1, 0)
    made.ccx(1, 2, 0)
    return made


def fourier() -> QuantumCircuit:
    """The transform as one gate on all qubits, a tensor of rank 6."""
    made = QuantumCircuit(3)
    made.x(0)
    made.append(QFTGate(3), [0, 2, 1])
    return made


SMALL: dict[str, Callable[[], QuantumCircuit]] = {
    "entangled": entangled,
    "out of order": out_of_order,
    "fourier": fourier,
    "random": lambda: random_circuit(3, 4, max_operands=3, seed=5),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("layered", [True, False], ids=["layers", "gates"])
@pytest.mark.parametrize("name", SMALL)
def test_small_circuits(name: str, layered: bool, routes: Routes) -> None:
    circuit = convert(SMALL[name]())
    layers = circuit.layers() if layered else circuit.gate_by_gate()
    (piece,) = programs(layers, circuit.qubits, len(layers))
    inputs = {piece.first: circuit.zeros(), **piece.tensors}
    check_known(known(piece.text, {piece.last: circuit.state}, **inputs), routes, sample=8)


@pytest.mark.turns(3)
def test_what_is_measured(routes: Routes) -> None:
    """Probabilities of two of the qubits, and the expectation of a product of observables."""
    quantum = random_circuit(3, 5, max_operands=2, seed=11)
    vector = Statevector.from_instruction(quantum)
    text = """
        P[a,c] += real(conj(s[a,b,c]) * s[a,b,c])
        e = real(conj(s[x,b,z]) * X[x,a] * Z[z,c] * s[a,b,c])
        norm = sqrt(sum[a,b,c](square(abs(s[a,b,c]))))
    """
    probabilities = vector.probabilities([0, 2]).reshape(2, 2).T
    expectation = vector.expectation_value(SparsePauliOp("ZIX")).real
    case = known(
        text,
        {"P": probabilities, "e": expectation, "norm": 1.0},
        s=convert(quantum).state,
        X=np.array([[0, 1], [1, 0]], dtype=complex),
        Z=np.diag([1.0 + 0j, -1]),
    )
    check_known(case, routes)


def test_layers_hold_every_gate_once_and_in_order() -> None:
    circuit = convert(random_circuit(5, 12, max_operands=3, seed=2))
    layers = circuit.layers()
    assert sum(map(len, layers)) == len(circuit.gates)
    for layer in layers:
        used = [qubit for gate in layer for qubit in gate.qubits]
        assert len(set(used)) == len(used)
    for qubit in range(circuit.qubits):
        ordered = [gate for gate in circuit.gates if qubit in gate.qubits]
        assert [gate for layer in layers for gate in layer if qubit in gate.qubits] == ordered


# ---- The circuits of the shared folder ----


def circuits_up_to(qubits: int) -> list[Any]:
    """The circuits of the folder with up to so many qubits; a skipped one where there is none."""
    read = {path.stem: read_circuit(path) for path in sorted(FOLDER.glob("*.qasm"))}
    found = [pytest.param(c, id=name) for name, c in read.items() if c.qubits <= qubits]
    reason = f"the circuits are not here: no files in {FOLDER.name}"
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=reason))]


def simulate(
    circuit: Circuit, connection: duckdb.DuckDBPyConnection, decomposition: str, promoted: int = 0
) -> Any:
    """The state after all gates, handed on from program to program."""
    layers = circuit.layers() if len(circuit.gates) <= LONG else circuit.gate_by_gate()
    state = circuit.zeros()
    for piece in programs(layers, circuit.qubits, 6, promoted):
        program = ucle.einsum_program(
            piece.text,
            inputs={piece.first: state, **piece.tensors},
            decomposition=decomposition,
            database=connection,
        )
        with program.execute(connection) as result:
            state = result[piece.last].to_numpy()
    assert state.dtype == np.complex128
    return state


@pytest.mark.sample(1)
@pytest.mark.parametrize("circuit", circuits_up_to(CHOSEN_QUBITS))
def test_chosen_plan(circuit: Circuit, connection: duckdb.DuckDBPyConnection) -> None:
    state = simulate(circuit, connection, "auto")
    np.testing.assert_allclose(state, circuit.state, rtol=0, atol=TOLERANCE)


@pytest.mark.sample(1)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["dense", "half", "relational"])
@pytest.mark.parametrize("circuit", circuits_up_to(MOST_QUBITS))
def test_pinned(circuit: Circuit, share: float, native: duckdb.DuckDBPyConnection) -> None:
    state = simulate(circuit, native, "as-written", int(share * circuit.qubits))
    np.testing.assert_allclose(state, circuit.state, rtol=0, atol=TOLERANCE)
