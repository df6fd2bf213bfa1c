"""Shared parts of comparisons between random programs and the second oracle."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from draw import Drawn
from storage import create, drop, hand_over

from ucle import einsum_program
from ucle.errors import ValueTypeError
from ucle.program import EinsumProgram
from ucle.testing.check_matrix import Routes

BEYOND = "what entries that are not stored are worth does not fit int64"
PRODUCT = re.compile(r"\*=|prod")


@contextmanager
def handed_over(
    drawn: Drawn, rng: np.random.Generator, routes: Routes, folder: Path
) -> Iterator[dict[str, Any]]:
    """The inputs of a program, in some of the ways that people have them; tables are dropped."""
    inputs: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for name, array in drawn.arrays.items():
        inputs[name], own = hand_over(rng, name, array, drawn.fills[name], folder)
        tables |= own
    for connection in routes.values():
        create(connection, tables)
    try:
        yield inputs
    finally:
        for connection in routes.values():
            drop(connection, tables)


def compiled(
    text: str, inputs: Mapping[str, Any], outputs: list[str] | None, routes: Routes
) -> EinsumProgram | None:
    """The program; None where it is refused rightly."""
    first = next(iter(routes.values()))
    try:
        return einsum_program(text, inputs=inputs, outputs=outputs, database=first)
    except ValueTypeError as error:
        # A product of many equal integers is beyond 64 bits, and NumPy's is what is left of it.
        if error.message != BEYOND or not PRODUCT.search(text):
            raise
        return None


def assert_close(got: np.ndarray, expected: np.ndarray, kind: str, context: str) -> None:
    """Equal where arithmetic is exact, and else within 1e-8 of the largest number."""
    assert got.shape == expected.shape, context
    assert got.dtype == expected.dtype, f"{got.dtype} and not {expected.dtype}\n{context}"
    if kind == "exact":
        assert np.array_equal(got, expected), f"{got}\nand not\n{expected}\n{context}"
        return
    finite = np.abs(expected[np.isfinite(expected)])
    scale = float(finite.max(initial=1.0)) if expected.dtype.kind in "fc" else 1.0
    close = np.allclose(got, expected, rtol=1e-8, atol=1e-8 * scale, equal_nan=True)
    assert close, f"{got}\nand not\n{expected}\n{context}"
