"""The threads on which statements run."""

from __future__ import annotations

import threading
import time

import pytest

from ucle.foundation.threads import borrowed_thread


def number() -> int:
    with borrowed_thread() as pool:
        return pool.submit(threading.get_ident).result()


def test_threads_are_kept_after_errors() -> None:
    """A new one may not get what it needs where memory is short."""
    before, ended = number(), threading.Event()

    def work() -> None:
        time.sleep(0.01)
        ended.set()

    def fail() -> None:
        with borrowed_thread() as pool:
            pool.submit(work)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert ended.is_set()
    assert number() == before


def test_each_statement_has_a_thread_of_its_own() -> None:
    with borrowed_thread() as one, borrowed_thread() as other:
        assert one is not other
