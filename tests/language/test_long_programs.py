"""Long statements take time in proportion to their length; endless ones are refused early."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ucle
from ucle.errors import DepthError
from ucle.language.factors import chain
from ucle.language.parse import parse_program
from ucle.language.resolve import resolve
from ucle.language.syntax import Binary

X = np.ones(3)


def cpu(call: Callable[[], Any]) -> float:
    """Seconds of CPU that a call takes: the least of three times, as others use the machine, too.

    Nothing is kept from one call for the next.
    """
    times = []
    for _ in range(3):
        ucle.clear_caches()
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.turns(3)
def test_a_sum_of_many_terms() -> None:
    def run(terms: int) -> None:
        text = "y[i] = " + " + ".join(["x[i]"] * terms)
        with ucle.einsum_program(text, x=X).execute() as result:
            assert result["y"].to_numpy().tolist() == [terms] * 3

    run(20)
    assert cpu(lambda: run(600)) < 8 * cpu(lambda: run(150)) + 0.2  # 16 times where it is quadratic


def test_the_parts_of_a_long_sum_are_looked_through_once() -> None:
    (statement,) = parse_program("y[i] = " + " + ".join(["x[i]"] * 50))
    expression, unreduced = resolve(statement).expression, set[int]()
    assert chain(expression, unreduced) is None
    parts = [expression]
    while isinstance(parts[-1], Binary):
        parts.append(parts[-1].left)
    assert {id(part) for part in parts[:-1]} == unreduced


@pytest.mark.parametrize(
    "text", ["y[i] = " + " + ".join(["x[i]"] * 100_000), "y[i] = " + "-" * 10**5 + "x[i]"]
)
def test_endless_statements(text: str) -> None:
    with pytest.raises(DepthError, match="too long"):
        parse_program(text)


def test_many_short_statements_are_no_long_one() -> None:
    assert len(parse_program(";".join(f"t{n}[i] = x[i] + 1" for n in range(6000)))) == 6000


def test_blank_lines() -> None:
    text = "\n" * 300_000 + "y[i] = x[i]" + "\r\n \t" * 1000 + "; ;\n# nothing\n\n" + "z[i] = y[i]"
    assert cpu(lambda: parse_program(text)) < 2
    assert [str(x.target) for x in parse_program(text)] == ["y[i]", "z[i]"]


def test_nothing_stays_of_a_compilation() -> None:
    def compile_some(first: int) -> int:
        for n in range(first, first + 25):
            ucle.einsum_program(f"y[i] = x[i] * {n}.5 + 1", x=X)
        ucle.clear_caches()
        gc.collect()
        return len(gc.get_objects())

    compile_some(0)
    before = compile_some(100)
    assert compile_some(200) - before < 10
