"""Truth values in the bits of words, as an input of programs: `bits`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.errors import ArgumentError, ValueTypeError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.bit_words import WORD, words_of
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.table_input import TableInput


@dataclass(frozen=True, eq=False)
class PackedBits:
    """A tensor of truth values whose last axis is packed into words; made by `bits`."""

    words: Any
    length: int
    """The positions of the last axis."""


@validated(words=args.tensor_data, length=args.anything)
def bits(words: Any, length: int) -> PackedBits:
    """Describe truth values that are packed into words of 64 bits along their last axis.

    Bit ``b`` of word ``w``, from the lowest on, is position ``64 * w + b``. Statements compute with
    whole words if they combine such tensors by ``and``, ``or``, ``xor`` and ``not``, also shifted
    as in ``A[i,~(j-1)]``, or aggregate them by sums, ``any`` and ``all``. Other statements read the
    single truth values.

    Args:
        words: 64-bit integers: an array, or a table or anything else that a program takes.
        length: the positions along the last axis. Bits beyond them are ignored.

    Raises:
        ArgumentError: the length is invalid, or does not fit the number of words.
        ValueTypeError: the words of an array are not 64-bit integers.

    >>> import numpy as np, ucle
    >>> image = np.eye(100, dtype=bool)
    >>> padded = np.pad(image, ((0, 0), (0, 28)))
    >>> words = np.packbits(padded, axis=1, bitorder="little").view(np.int64)
    >>> program = ucle.einsum_program("n += A[i,j] and A[i,~(j-1)]", A=ucle.bits(words, 100))
    >>> program.execute()["n"].to_numpy().item()
    0
    """
    whole = isinstance(length, int | np.integer) and not isinstance(length, bool)
    if not whole or length < 1:
        raise ArgumentError(
            "no number of positions",
            where="bits(length=...)",
            expected="a whole number, at least 1",
            found=repr(length),
        )
    if isinstance(words, np.ndarray):
        words = _signed(words, int(length))
    elif isinstance(words, TableInput) and words.fill not in (None, 0):
        raise ArgumentError(
            "words that are not stored have no bits",
            where="bits(words)",
            expected="a fill of 0",
            found=repr(words.fill),
        )
    return PackedBits(words, int(length))


def _signed(words: NDArray[Any], length: int) -> NDArray[np.int64]:
    """The words of an array as the integers that programs know."""
    if words.dtype not in (np.dtype(np.int64), np.dtype(np.uint64)) or not words.ndim:
        raise ValueTypeError(
            "these are no words of 64 bits",
            where="bits(words)",
            expected="an array of int64 or uint64",
            found=f"{words.dtype} of shape {words.shape}",
            hint="np.packbits(..., bitorder='little').view(np.int64) packs booleans into words",
        )
    if words.shape[-1] != words_of(length):
        raise ArgumentError(
            "the words do not have as many bits",
            where="bits(length=...)",
            expected=f"{words_of(length)} words of {WORD} bits along the last axis for {length} "
            "positions",
            found=f"{words.shape[-1]}",
        )
    return words.astype(np.int64, copy=False) if words.dtype == np.int64 else words.view(np.int64)
