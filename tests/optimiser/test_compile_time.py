"""Compiling takes steps in proportion to the program; calls are counted, as time varies."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import ucle
import ucle.optimiser.join_order
from benchmarks.compile_time import SERIES, Case, gated, pagerank, product

TWICE = 2.2
"""Times the calls that twice as many vertices may take."""


def calls(case: Case) -> int:
    """Calls of functions, those of C among them, that compiling a program takes."""
    text, inputs = case
    count = 0

    def counting(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    ucle.clear_caches()
    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        ucle.einsum_program(text, inputs=inputs)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("name", SERIES)
def test_twice_the_program_takes_twice_the_calls(name: str) -> None:
    make = SERIES[name]
    calls(make(10))  # what is made once is not counted
    assert calls(make(600)) < TWICE * calls(make(300))


def test_what_is_read_several_times_is_looked_at_once() -> None:
    """Sparsity is tested once, even in programs small enough to look for masks everywhere."""
    calls(gated(10))
    assert calls(gated(20)) < TWICE * calls(gated(10))


@pytest.mark.parametrize("make", [pagerank, product])
def test_orders_of_long_products_are_not_contracted_in_vain(
    make: Callable[[int], Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many orders there are to try, the budget says how many programs are made."""
    contracted: list[int] = []
    contract = ucle.optimiser.join_order.contract

    def counting(*args: Any, **options: Any) -> Any:
        result = contract(*args, **options)
        contracted.append(len(result.program.vertices))
        return result

    monkeypatch.setattr(ucle.optimiser.join_order, "contract", counting)
    text, inputs = make(60)
    ucle.clear_caches()
    ucle.einsum_program(text, inputs=inputs)
    assert len(contracted) < 20
