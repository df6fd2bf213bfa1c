"""Words of 64 bits that hold truth values: how many there are, and masks of them."""

from __future__ import annotations

WORD = 64
"""The bits of a word."""


def words_of(length: int) -> int:
    """Return the number of words for so many positions.

    >>> words_of(64), words_of(65)
    (1, 2)
    """
    return -(-length // WORD)


def mask_words(length: int) -> list[int]:
    """Return words in which the bits of so many positions are set.

    >>> mask_words(66)
    [-1, 3]
    """
    rest = length % WORD
    return [-1] * (length // WORD) + ([(1 << rest) - 1] if rest else [])
