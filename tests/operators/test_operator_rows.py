"""The rows of operators: each is complete."""

from __future__ import annotations

import math

import pytest

from ucle.foundation.dtypes import DType
from ucle.operators import COMBINES, MAPS, REDUCES, Combine, PointwiseMap, Reduce, Typing
from ucle.operators.rows import Exactness

BUILT_IN = [row for table in (COMBINES, MAPS, REDUCES) for row in table.values() if row.compiled]
IDS = [f"{type(row).__name__}-{row.name}" for row in BUILT_IN]


@pytest.mark.sample(None)
@pytest.mark.parametrize("row", BUILT_IN, ids=IDS)
def test_a_row_is_complete(row: Combine | PointwiseMap | Reduce) -> None:
    assert callable(row.numpy)
    derivative = row.derivatives if isinstance(row, Combine) else row.derivative
    assert derivative is not None
    assert set(row.texts) == set(row.kinds)
    if row.kinds:  # what is written with others has no values of its own
        assert row.rule is not None
    if isinstance(row, Reduce) and row.kinds:
        assert row.identity is not None
        assert row.repeat is not None
        assert row.merge is not None


@pytest.mark.sample(None)
@pytest.mark.parametrize("row", BUILT_IN, ids=IDS)
def test_truth_is_what_types_say(row: Combine | PointwiseMap | Reduce) -> None:
    truth = row.typing in (Typing.COMPARISON, Typing.LOGICAL) and not isinstance(row, Reduce)
    assert (row.exactness is Exactness.TRUTH) == truth


@pytest.mark.parametrize("row", MAPS.values(), ids=MAPS)
def test_what_keeps_nan_makes_nan_of_it(row: PointwiseMap) -> None:
    if row.keeps_nan and "f" in row.kinds:
        assert math.isnan(float(row.scalar(math.nan, DType.FLOAT64).real))


@pytest.mark.parametrize("row", COMBINES.values(), ids=COMBINES)
def test_a_sparse_form_differs_where_nan_is_met_by_zero(row: Combine) -> None:
    if row.sparse is not None:
        assert math.isnan(float(row.scalar(0.0, math.nan, DType.FLOAT64).real))
        assert row.sparse.scalar(0.0, math.nan, DType.FLOAT64) == 0
