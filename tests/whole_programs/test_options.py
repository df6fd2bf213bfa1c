"""Options are refused at once, before a database is opened or a table is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ucle
from ucle.errors import (
    ArgumentTypeError,
    BoundError,
    InputError,
    LabelError,
    NameResolutionError,
)

REFUSED = [
    ({"search": "luck"}, InputError, "search"),
    ({"search": None}, InputError, "search"),
    ({"search": "luck", "decomposition": "relational"}, InputError, "search"),
    ({"association": "left"}, InputError, "association"),
    ({"statistics": "guess"}, InputError, "statistics"),
    ({"nonfinite": "dense"}, InputError, "nonfinite"),
    ({"decomposition": "relationl"}, LabelError, 'Did you mean "relational"'),
    ({"decomposition": 7}, LabelError, "decomposition"),
    ({"decomposition": {"y": 7}}, ArgumentTypeError, "7 for y"),
    ({"bounds": [3]}, ArgumentTypeError, "a dict from label to size"),
    ({"bounds": {"i": -1}}, BoundError, "label i"),
    ({"bounds": {"i": "3"}}, BoundError, "label i"),
    ({"outputs": 7}, ArgumentTypeError, "outputs"),
    ({"outputs": [7]}, ArgumentTypeError, "outputs"),
    ({"store": 7}, ArgumentTypeError, "store"),
    ({"profile": "fast"}, InputError, "profile"),
    ({"memory_limit": "much"}, InputError, "memory limit"),
]
OF_THE_PROGRAM = [
    ({"bounds": {"zz": 3}}, LabelError, "labels of the program: column, row"),
    ({"bounds": {"rows": 3}}, LabelError, 'Did you mean "row"'),
    ({"outputs": ["z"]}, NameResolutionError, "unknown output z"),
    ({"store": "B"}, NameResolutionError, "no input B"),
    ({"path": {"z": [(0, 1)]}}, NameResolutionError, "unknown tensor z"),
]


@pytest.mark.sample(None)
@pytest.mark.parametrize(("options", "error", "message"), REFUSED, ids=str)
def test_before_anything_is_opened(
    options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "new.db"
    with pytest.raises(error, match=message):
        ucle.einsum_program("y[i] += A[i,j]", A="t", database=str(path), **options)
    assert not path.exists()


@pytest.mark.parametrize(("options", "error", "message"), OF_THE_PROGRAM, ids=str)
def test_before_a_table_is_looked_for(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    text = "y[row] += A[row,column]"
    with pytest.raises(error, match=message):
        ucle.einsum_program(text, A="nowhere", **options)


def test_another_decomposition_is_checked_as_well() -> None:
    program = ucle.einsum_program("y[i] += A[i,j]", A=np.eye(2))
    with pytest.raises(LabelError, match="unknown decomposition"):
        program.with_decomposition("fastest")
