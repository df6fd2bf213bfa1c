"""Derivatives at zeros, ties and infinities, first and second, against vectors of PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from special_cases import SPECIAL, Special, weights

import ucle

KEPT = json.loads(Path(__file__).with_name("special_vectors.json").read_text())

GROUPS = 8
"""Cases are computed together, so that each test is a short one."""


def derivatives(case: Special) -> tuple[ucle.Tensor, ucle.Tensor]:
    """The gradient of a case's weighed sum, and the gradient of the sum of that."""
    x = ucle.array(np.array(case.x, float), name="x")
    y = ucle.array(np.array(case.y, float), name="y")
    made = eval(case.ucle, {"u": ucle, "x": x, "y": y, "abs": abs})
    first = ucle.grad((made * np.array(weights(int(made.shape[0])))).sum(), x)
    return first, ucle.grad(first.sum(), x)


@pytest.mark.sample(1)
@pytest.mark.parametrize("group", range(GROUPS))
def test_special_points(group: int) -> None:
    names = sorted(SPECIAL)[group::GROUPS]
    tensors = [each for name in names for each in derivatives(SPECIAL[name])]
    found = iter(ucle.compute(*tensors))
    for name in names:
        for order in ("first", "second"):
            values = next(found).to_numpy().ravel()
            expected = np.array([float(x) for x in KEPT[name][order]])
            if (instead := SPECIAL[name].instead) is not None:
                expected[np.isnan(expected)] = instead
            np.testing.assert_allclose(
                values, expected, rtol=1e-9, atol=1e-12, err_msg=f"{name}, {order} derivative"
            )
