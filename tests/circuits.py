"""Quantum circuits as EinSum programs, and what qiskit says of them.

A state of n qubits is a complex tensor with n axes of bound 2, one label per qubit; a gate on k of
them is a tensor with 2k axes, the labels of what comes out before those of what goes in. A layer
holds gates on different qubits and is one statement:

    s2[a0,a1,a2] = s1[q0,q1,q2] * h[a0,q0] * cx[a1,a2,q1,q2]

The state comes first, so that in the order of the text it meets one gate after the other.

Labels of qubits that are to be promoted are in upper case, for ``decomposition="as-written"``.

Qubit 0 is the first axis. Qiskit counts the other way: in its vectors and matrices the first qubit
is the least significant bit, so that axes are reversed where its numbers come in.

Of a circuit only its gates are kept: measurements, resets, barriers and whatever depends on
classical bits are left out, in the program and in the simulation alike. The state is thus that of
the unitary part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from qiskit import QuantumCircuit, qasm2
from qiskit.circuit import Gate as QiskitGate
from qiskit.quantum_info import Operator, Statevector


@dataclass(frozen=True, eq=False)
class Gate:
    """A gate on some qubits; `tensor` has the axes of its outputs, then those of its inputs."""

    name: str
    tensor: Any
    qubits: tuple[int, ...]


@dataclass(frozen=True)
class Circuit:
    """The gates of a circuit in order; `unitary` is qiskit's circuit of the same gates."""

    qubits: int
    gates: tuple[Gate, ...]
    unitary: QuantumCircuit

    @cached_property
    def state(self) -> Any:
        """The state that qiskit computes from all zeros."""
        vector = Statevector.from_instruction(self.unitary).data
        return vector.reshape((2,) * self.qubits).transpose()

    def layers(self) -> list[list[Gate]]:
        """The gates, each in the first layer after the last one that works on its qubits."""
        busy = [0] * self.qubits
        layers: list[list[Gate]] = []
        for gate in self.gates:
            number = max(busy[qubit] for qubit in gate.qubits)
            layers.extend([[]] if number == len(layers) else [])
            layers[number].append(gate)
            for qubit in gate.qubits:
                busy[qubit] = number + 1
        return layers

    def gate_by_gate(self) -> list[list[Gate]]:
        """Every gate as a layer of its own."""
        return [[gate] for gate in self.gates]

    def zeros(self) -> Any:
        """The state in which every qubit is 0."""
        state = np.zeros((2,) * self.qubits, dtype=np.complex128)
        state.flat[0] = 1
        return state


def read_circuit(path: Path) -> Circuit:
    """The circuit of an OpenQASM 2.0 file.

    Files of that time use gates of the standard header by names that the header has not, hence
    the legacy instructions.
    """
    legacy = qasm2.LEGACY_CUSTOM_INSTRUCTIONS
    return convert(qasm2.load(str(path), custom_instructions=legacy))


def convert(circuit: QuantumCircuit) -> Circuit:
    """The gates of a qiskit circuit as tensors."""
    unitary = QuantumCircuit(circuit.qubits)
    gates = []
    for instruction in circuit.data:
        if not isinstance(instruction.operation, QiskitGate) or instruction.clbits:
            continue
        unitary.append(instruction.operation, instruction.qubits)
        qubits = tuple(circuit.find_bit(qubit).index for qubit in instruction.qubits)
        matrix = Operator(instruction.operation).data
        gates.append(Gate(instruction.operation.name, gate_tensor(matrix), qubits))
    return Circuit(circuit.num_qubits, tuple(gates), unitary)


def gate_tensor(matrix: Any) -> Any:
    """A matrix of qiskit as a tensor whose axes are in the order of the gate's qubits."""
    count = int(matrix.shape[0]).bit_length() - 1
    outputs, inputs = range(count), range(count, 2 * count)
    axes = (*reversed(outputs), *reversed(inputs))
    return np.ascontiguousarray(matrix.reshape((2,) * (2 * count)).transpose(axes))


@dataclass(frozen=True)
class Piece:
    """A program for some layers: text, gate tensors by name, and the names of its two states."""

    text: str
    tensors: dict[str, Any]
    first: str
    last: str


def programs(
    layers: Sequence[list[Gate]], qubits: int, size: int, promoted: int = 0
) -> Iterator[Piece]:
    """Programs of some layers each; the last state of one is the first of the next.

    Args:
        layers: gates that work on different qubits.
        qubits: how many there are.
        size: how many layers a program has at most.
        promoted: the labels of so many first qubits are in upper case.
    """
    for start in range(0, len(layers), size):
        part, names = layers[start : start + size], _Names()
        lines = [
            _statement(layer, number, qubits, promoted, names) for number, layer in enumerate(part)
        ]
        yield Piece("\n".join(lines), names.tensors, "s0", f"s{len(part)}")


def _statement(layer: list[Gate], number: int, qubits: int, promoted: int, names: _Names) -> str:
    def label(letter: str, qubit: int) -> str:
        return f"{letter.upper() if qubit < promoted else letter}{qubit}"

    before = [label("q", qubit) for qubit in range(qubits)]
    after, factors = list(before), [f"s{number}[{','.join(before)}]"]
    for gate in layer:
        for qubit in gate.qubits:
            after[qubit] = label("a", qubit)
        labels = [after[qubit] for qubit in gate.qubits] + [before[qubit] for qubit in gate.qubits]
        factors.append(f"{names.of(gate)}[{','.join(labels)}]")
    return f"s{number + 1}[{','.join(after)}] = {' * '.join(factors)}"


class _Names:
    """A name for every different gate tensor of a program."""

    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}
        self._known: dict[bytes, str] = {}

    def of(self, gate: Gate) -> str:
        key = gate.tensor.tobytes()
        if key not in self._known:
            self._known[key] = f"g{len(self._known)}_{gate.name}"
            self.tensors[self._known[key]] = gate.tensor
        return self._known[key]
