"""`ucle.einsum` for the suites: every result and every error is held against NumPy's.

A suite often compares two calls of einsum with each other. Here both would be ucle's, so NumPy
computes each call as well, on copies, and the two have to agree in value, shape, type and error.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

import ucle
from ucle.errors import NumberRangeError

NUMPY_EINSUM = np.einsum
"""NumPy's own, before a suite is given ucle's in its place."""

ERRORS = (ValueError, TypeError, RuntimeError, LookupError)

_local = threading.local()


@dataclass
class Count:
    """Calls of the running test, and overflows that ucle refused."""

    calls: int = 0
    overflows: int = 0


COUNT = Count()


def connection() -> duckdb.DuckDBPyConnection:
    """The connection of this thread, opened once: opening one costs more than most calls."""
    if not hasattr(_local, "connection"):
        _local.connection = ucle.connect(threads=1)
    opened: duckdb.DuckDBPyConnection = _local.connection
    return opened


def einsum(*operands: Any, **keywords: Any) -> Any:
    """`ucle.einsum`, checked."""
    return checked(operands, keywords, operands)


def checked(operands: Sequence[Any], keywords: Mapping[str, Any], given: Sequence[Any]) -> Any:
    """One call, made to NumPy with `operands` and to ucle with `given` in their place.

    Where integers overflow, which NumPy ignores and ucle refuses, the result is NumPy's.
    """
    COUNT.calls += 1
    theirs, their_error = _attempt(NUMPY_EINSUM, *copy.deepcopy((operands, dict(keywords))))
    ours, error = _attempt(ucle.einsum, given, {**keywords, "database": connection()})
    if error is not None and their_error is None and _overflows(error, operands, theirs):
        COUNT.overflows += 1
        return theirs
    if error is not None:
        if their_error is not None:
            expected = next(kind for kind in ERRORS if isinstance(their_error, kind))
            assert isinstance(error, expected), f"{their_error!r} of NumPy, {error!r} of ucle"
        raise error
    assert their_error is None, f"NumPy raises {their_error!r}, ucle gives {ours!r}"
    if keywords.get("out") is not None:
        assert ours is keywords["out"]
    assert_agree(ours, theirs)
    return ours


def assert_agree(ours: Any, theirs: Any) -> None:
    """Equality of type and shape, and of values but for the order of additions."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if theirs.dtype.kind not in "fc":
        np.testing.assert_array_equal(ours, theirs)
        return
    precision = 100 * float(np.finfo(theirs.dtype).eps)
    scale = float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0))
    np.testing.assert_allclose(ours, theirs, rtol=precision, atol=precision * scale)


def _overflows(error: Exception, operands: Sequence[Any], theirs: Any) -> bool:
    """True if ucle refused an overflow that really occurs: the result does not fit 64 bits."""
    if not isinstance(error, NumberRangeError) or np.asarray(theirs).dtype.kind not in "iu":
        return False
    widened = [x.astype(np.float64) if isinstance(x, np.ndarray) else x for x in operands]
    return bool(np.abs(NUMPY_EINSUM(*widened)).max(initial=0.0) >= 2.0**63)


def _attempt(
    function: Callable[..., Any], operands: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Any, Exception | None]:
    try:
        return function(*operands, **keywords), None
    except Exception as error:
        return None, error
