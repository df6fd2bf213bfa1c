"""Random programs on a cluster of two workers, against NumPy."""

from __future__ import annotations

from typing import Any

import pytest
from on_spark import on_spark

from ucle import einsum_program
from ucle.testing.generate import random_case
from ucle.testing.oracle import assert_equal

PROGRAMS = 60


@pytest.mark.sample(None)
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed: int, spark: Any) -> None:
    case = random_case(seed)
    expected = case.expected()
    program = einsum_program(
        case.text,
        inputs=on_spark(case, spark),
        bounds=case.stated,
        outputs=case.outputs,
        database=spark,
        engine="duckdb" if seed % 6 == 5 else "spark",
    )
    with program.execute() as result:
        assert tuple(result) == program.outputs
        for name in result:
            assert_equal(result[name].to_numpy(), expected[name], f"{name}\n{case}")
