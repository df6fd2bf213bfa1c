"""Labels that no tensor has: those of conditions alone are refused, those with bounds are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ucle
from ucle.errors import BoundError, LabelError


def run(text: str, bounds: dict[str, int] | None = None, **inputs: Any) -> Any:
    """The result of the last statement."""
    with ucle.einsum_program(text, inputs=inputs, bounds=bounds).execute() as result:
        return list(result.values())[-1].to_numpy()


@pytest.mark.parametrize(
    "text",
    [
        "Z[i] = (i < j) * x[i] + 0 * sum[j](w[j])",
        "Z[i] = (i < j) * sum[j](w[j]) * x[i]",
        "Z[i] = when(i < j and j != 1, x[i]) - sum[j](w[j])",
        "Z[i] = x[i] * j + sum[j](w[j])",
    ],
)
def test_a_label_that_stands_in_a_condition_alone(text: str) -> None:
    with pytest.raises(LabelError, match="'j' stands in a condition alone"):
        run(text, x=np.ones(5), w=np.ones(3))


def test_a_label_that_a_tensor_has_too_is_summed() -> None:
    assert run("Z[i] = (i < j) * w[j] * x[i]", x=np.ones(3), w=np.ones(3)).tolist() == [2, 1, 0]
    text = "Z[i] = sum[j]((i < j) * x[i])"
    assert run(text, {"j": 3}, x=np.ones(5)).tolist() == [2, 1, 0, 0, 0]


def test_means_over_labels_that_bounds_alone_tell() -> None:
    assert run("y = mean[k](k)", {"k": 2}) == 0.5
    text = "y[j] = unless((j % 2 == 0), mean[k](k))"
    assert run(text, {"k": 2, "j": 3}).tolist() == [0, 0.5, 0]
    text = "y[j] = mean[k](mean[l](k * l + j))"
    assert run(text, {"k": 2, "j": 3, "l": 5}).tolist() == [1, 2, 3]
    with pytest.raises(BoundError, match="size of the label 'k' cannot be inferred"):
        run("y = mean[k](k)")


def test_tables_of_more_than_64_axes(fresh: Any) -> None:
    for count in (64, 130):
        keys = ", ".join(f"(i % 2)::INT AS a{n}" for n in range(count))
        fresh.execute(
            f"CREATE OR REPLACE TABLE w AS SELECT {keys}, i * 1.0 AS v FROM range(2) t(i)"
        )
        labels = ",".join(f"a{n}" for n in range(count))
        program = ucle.einsum_program(f"s[a0] += W[{labels}]", W="w", database=fresh)
        with program.execute() as result:
            assert result["s"].to_numpy().tolist() == [0, 1]
