"""The meaning of a tape: calls of kernels, of which each may take what earlier ones made.

    vec_sqrt($0);ein("ab,b->a",[3 4],$1,$2);$3 or full(3,0);return $4 $6

A dollar and a number stand for a tensor: first for the operands, then for what each line makes. A
number that a kernel makes is a tensor of one element, and is taken for a number where one is asked
for. ``$3 or`` before a call is that operand, unless it is NULL. The last line names the results.
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
    word, *results = last.split(" ")
    assert word == "return"
    found = [made[int(result.removeprefix("$"))] for result in results]
    return [result for result in found if result is not None]


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
