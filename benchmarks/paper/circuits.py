"""Quantum circuits, layer by layer (equation 8), from files of QASMBench.

``NAME`` starts from the basis state in which every qubit is 0, ``NAME+`` from a state in which
every amplitude is nonzero: the first stays nearly empty for long, the second is full at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from qiskit.quantum_info import Statevector

from benchmarks.paper.relational import Script, Step, contract
from benchmarks.paper.tasks import Task
from benchmarks.workloads import GRAPHS
from tests.circuits import Circuit, Gate, programs, read_circuit

CIRCUITS = GRAPHS.parent / "qasm"
SUPERPOSED = "+"


def circuit(name: str) -> Task:
    """Return a circuit of the folder as a program of one statement for each layer."""
    read = read_circuit(CIRCUITS / f"{name.removesuffix(SUPERPOSED)}.qasm")
    state = _superposed(read.qubits) if name.endswith(SUPERPOSED) else read.zeros()
    return of_circuit(name, read, state)


def of_circuit(name: str, read: Circuit, state: Any) -> Task:
    """Return the task of a circuit from a state; NumPy and qiskit compute the expected result."""
    layers = read.layers()
    (piece,) = programs(layers, read.qubits, len(layers))
    gates = [gate for layer in layers for gate in layer]
    names = {tensor.tobytes(): key for key, tensor in piece.tensors.items()}

    def in_memory() -> Any:
        found = state
        for gate in gates:
            count = len(gate.qubits)
            found = np.tensordot(gate.tensor, found, (range(count, 2 * count), gate.qubits))
            found = np.moveaxis(found, range(count), gate.qubits)
        return found

    def truth() -> Any:
        vector = Statevector(state.transpose().reshape(-1)).evolve(read.unitary).data
        return vector.reshape(state.shape).transpose()

    return Task(
        "circuit",
        name,
        piece.text,
        {piece.first: state, **piece.tensors},
        piece.last,
        _script(piece.first, layers, read.qubits, names),
        in_memory,
        truth,
        stored=False,
        steps=tuple(gates),
    )


def _superposed(qubits: int) -> Any:
    random = np.random.default_rng(0)
    shape = (2,) * qubits
    state = random.normal(size=shape) + 1j * random.normal(size=shape)
    return state / np.linalg.norm(state)


def _script(
    first: str, layers: Sequence[Sequence[Gate]], qubits: int, names: dict[bytes, str]
) -> Script:
    """Write a table for each gate: one statement for all takes longer to plan than to run."""
    steps: list[Step] = []
    state, labels = first, [f"q{n}" for n in range(qubits)]
    for number, gate in enumerate(gate for layer in layers for gate in layer):
        outputs = [f"a{qubit}" for qubit in gate.qubits]
        inputs = [f"q{qubit}" for qubit in gate.qubits]
        changed = dict(zip(gate.qubits, outputs, strict=True))
        made = [changed.get(n, label) for n, label in enumerate(labels)]
        factor = (names[gate.tensor.tobytes()], [*outputs, *inputs])
        steps.append(contract(f"u{number}", made, (state, labels), factor, is_complex=True))
        state = steps[-1].name
    return Script(tuple(steps))
