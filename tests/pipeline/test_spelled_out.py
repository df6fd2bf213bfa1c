"""Statements are spelled out once for a text and the options that name parts of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ucle
from ucle.errors import ArgumentError, LabelError, NameResolutionError, UcleError
from ucle.pipeline import spelled_out, stages

TEXT = "P[i,k] = A[i,j] * B[j,k]\ny[i] = P[i,k] * x[k]"
INPUTS = {"A": np.eye(2), "B": np.ones((2, 3)), "x": np.arange(3.0)}
WRONG: tuple[tuple[dict[str, Any], type[UcleError]], ...] = (
    ({"bounds": {"z": 3}}, LabelError),
    ({"outputs": ["Q"]}, NameResolutionError),
    ({"path": {"Q": [(0, 1)]}}, NameResolutionError),
    ({"store": ["Q"]}, NameResolutionError),
)


@pytest.fixture(autouse=True)
def own_cache() -> Iterator[None]:
    ucle.clear_caches()
    yield
    ucle.clear_caches()


def count_calls(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[Any]:
    calls, function = [], getattr(module, name)

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return function(*arguments)

    monkeypatch.setattr(module, name, counted)
    return calls


def test_the_same_text_is_spelled_out_and_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = count_calls(monkeypatch, spelled_out, "resolve")
    planned = count_calls(monkeypatch, stages, "plan_program")
    for _ in range(3):
        with ucle.einsum_program(TEXT, inputs=INPUTS).execute() as result:
            assert result["y"].to_numpy().tolist() == [3.0, 3.0]
    assert (len(resolved), len(planned)) == (2, 1)


@pytest.mark.parametrize(("options", "error"), WRONG)
def test_options_are_checked_against_a_text_that_is_known(
    options: dict[str, Any], error: type[UcleError]
) -> None:
    ucle.einsum_program(TEXT, inputs=INPUTS)
    with pytest.raises((error, ArgumentError)):
        ucle.einsum_program(TEXT, inputs=INPUTS, **options)


def test_bounds_are_spelled_out_anew() -> None:
    """Labels in expressions become inputs, whose sizes are those of the bounds."""
    text = "y[i] = i + x[i]"
    for size in (3, 5):
        with ucle.einsum_program(text, x=np.zeros(5)[:size], bounds={"i": size}).execute() as made:
            assert made["y"].to_numpy().tolist() == list(range(size))


def test_other_outputs() -> None:
    for outputs in (["y"], ["P", "y"], ["P"]):
        with ucle.einsum_program(TEXT, inputs=INPUTS, outputs=outputs).execute() as result:
            assert sorted(result) == sorted(outputs)


def test_a_plan_is_made_for_each_table() -> None:
    """Two tables of the same content, and the same table after its columns have other names."""
    with ucle.connect() as connection:
        for name, offset in (("one", 1), ("other", 2)):
            connection.execute(f"CREATE TABLE {name} AS SELECT 1 AS i, 0 AS j, {offset}.0 AS v")
        for name, expected in (("one", 1.0), ("other", 2.0), ("one", 1.0)):
            program = ucle.einsum_program("s += A[i,j]", A=name, database=connection)
            with program.execute() as result:
                assert result["s"].to_numpy() == expected
        connection.execute("ALTER TABLE one RENAME COLUMN v TO w")
        with ucle.einsum_program("s += A[i,j]", A="one", database=connection).execute() as result:
            assert result["s"].to_numpy() == 1.0
