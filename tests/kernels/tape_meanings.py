"""The meaning of a tape: calls of kernels, of which each may take what earlier ones made.

    vec_sqrt($0);ein("ab,b->a",[3 4],$1,$2);$3 or full(3,0);return $4 $6

A dollar and a number stand for a tensor: first for the operands, then for what each line makes. A
number that a kernel makes is a tensor of one element, and is taken for a number where one is asked
for. ``$3 or`` before a call is that operand, unless it is NULL. The last line names the results, or
says how the lines are repeated (`_repeat`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from kernel_table import compressed_arguments

from ucle.udf_kernels import ELEMENT_TYPES, Csr, Kernel

_BETWEEN_LINES = re.compile(r';\n?(?=(?:[^"]*"[^"]*")*[^"]*$)')
_LINE = re.compile(r"(?:\$(?P<operand>\d+) or )?(?P<name>\w+)\((?P<arguments>.*)\)")


def run_tape(
    kernels: Mapping[str, Kernel],
    meanings: Mapping[str, Callable[..., Any]],
    program: str,
    operands: Sequence[bytes | None],
) -> list[bytes]:
    """The results of a tape.

    Args:
        kernels: by name.
        meanings: of the kernels, by name (`kernel_meanings.MEANINGS`).
        program: the lines.
        operands: the bytes of each, or nothing.
    """
    *lines, last = _BETWEEN_LINES.split(program)
    word, *words = last.split(" ")
    if word == "repeat":
        return _repeat(words, lambda given: _run_lines(kernels, meanings, lines, given), operands)
    assert word == "return"
    made = _run_lines(kernels, meanings, lines, operands)
    found = [made[_number(result)] for result in words]
    return [result for result in found if result is not None]


def _number(word: str) -> int:
    return int(word.removeprefix("$"))


def _repeat(
    words: Sequence[str],
    run_round: Callable[[Sequence[bytes | None]], list[bytes | None]],
    operands: Sequence[bytes | None],
) -> list[bytes]:
    """The results of rounds: the operands that are set, and what is kept of all rounds.

    Args:
        words: the operand with the most rounds; then pairs, such as ``until $6``, ``set $0=$5``.
        run_round: returns all tensors of a round with some operands.
        operands: of the first round.
    """
    most = operands[_number(words[0])]
    assert most is not None
    pairs = list(zip(words[1::2], words[2::2], strict=True))
    sets = [word.split("=") for name, word in pairs if name == "set"]
    keeps = [word for name, word in pairs if name == "keep"]
    state, kept = list(operands), [b""] * len(keeps)
    for _ in range(int(np.frombuffer(most, np.int64)[0])):
        made = run_round(state)
        flags = [(name, made[_number(word)] == b"\1") for name, word in pairs if "=" not in word]
        if ("while", False) in flags or ("unless", True) in flags:
            break
        kept = [old + (made[_number(x)] or b"") for old, x in zip(kept, keeps, strict=True)]
        for one, other in sets:
            state[_number(one)] = made[_number(other)]
        if ("until", True) in flags:
            break
    return [state[_number(one)] or b"" for one, _ in sets] + kept


def _run_lines(
    kernels: Mapping[str, Kernel],
    meanings: Mapping[str, Callable[..., Any]],
    lines: Sequence[str],
    operands: Sequence[bytes | None],
) -> list[bytes | None]:
    """The operands, and what each line makes."""
    made = list(operands)
    for line in lines:
        match = _LINE.fullmatch(line)
        assert match is not None, line
        operand = match["operand"]
        if operand is not None and (given := made[int(operand)]) is not None:
            made.append(given)
            continue
        kernel = kernels[match["name"]]
        words = _words(match["arguments"], kernel)
        arguments = [
            _argument(word, parameter, n in compressed_arguments(kernel.name), kernel, made)
            for n, (word, parameter) in enumerate(zip(words, kernel.parameters, strict=True))
        ]
        made.append(_bytes(meanings[kernel.name](*arguments), kernel))
    return made


def _words(text: str, kernel: Kernel) -> list[str]:
    """The arguments of a line; a complex number has a comma inside."""
    complex_ = ELEMENT_TYPES[kernel.tag].dtype.kind == "c"
    number = ELEMENT_TYPES[kernel.tag].sql
    words, rest = [], text
    for parameter in kernel.parameters:
        pattern = r'"[^"]*"|\[[^]]*\]|[^,]*'
        if complex_ and parameter == number:
            pattern = r"\$\d+|[^,]+,[^,]+"
        match = re.match(pattern, rest)
        assert match is not None, rest
        words.append(match[0])
        rest = rest[match.end() :].removeprefix(",")
    assert not rest, text
    return words


OF_ANY_TYPE = ("chain", "csr_with")
"""Kernels that take tensors of other types than their own, as bytes."""


def _argument(
    word: str, parameter: str, compressed: bool, kernel: Kernel, made: Sequence[bytes | None]
) -> Any:
    dtype = ELEMENT_TYPES[kernel.tag].dtype
    if word.startswith("$"):
        data = made[int(word[1:])]
        assert data is not None
        if kernel.name.startswith(OF_ANY_TYPE) and (compressed or "csr" not in kernel.name):
            dtype = np.dtype("u1")
        if compressed:
            return Csr.from_bytes(data, dtype)
        tensor = np.frombuffer(data, dtype)
        return tensor if parameter == "BLOB" else tensor[0]
    if word.startswith('"'):
        return word[1:-1]
    if word.startswith("["):
        return [int(x) for x in word[1:-1].split()]
    if parameter == "BIGINT":
        return int(word)
    if dtype.kind == "c":
        real, _, imaginary = word.partition(",")
        return dtype.type(complex(float(real), float(imaginary)))
    return word == "true" if dtype.kind == "b" else dtype.type(word)


def _bytes(result: Any, kernel: Kernel) -> bytes:
    if isinstance(result, Csr):
        return result.to_bytes()
    if kernel.returns == "BLOB":
        return np.ascontiguousarray(result).tobytes()
    if kernel.returns == "BIGINT":
        return np.int64(result).tobytes()
    if kernel.returns == "BOOLEAN":
        return np.bool_(result).tobytes()
    return ELEMENT_TYPES[kernel.tag].dtype.type(result).tobytes()
