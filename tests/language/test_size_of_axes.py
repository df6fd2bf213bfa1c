"""Labels that only permissive reads have: they are as long as the axis that they move along."""

from __future__ import annotations

import numpy as np
import pytest

import ucle
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case

A = np.array([[1.0, 1, 0], [0, 1, 1]])
X = np.arange(1.0, 6.0)

PROGRAMS = {
    "kept[c,k] = sum[u](A[u,c] * A[u,~(c+k)]); share[c,k] = kept[c,k] / kept[c,0]": {
        "c": 3,
        "k": 3,
    },
    "y[i] = x[~(i-1)]; z[j] = y[j+1] - y[j]": {"i": 5, "j": 4},
    "y[i] = x[~(i-1)]; z[j] = y[j+1] * x[~(j-1)]": {"i": 5, "j": 4},
    "y[i] = x[~(i-1)]; v[i] = y[~(i-1)]; z[i] = v[4-i] + v[0]": {"i": 5},
    "z[i,k] = x[~(i+k)]; d[i] = z[i,0] * z[i,4]": {"i": 5, "k": 5},
    "y[i] = x[~(i-1)]; z[r] = top_k[i,r](y[i])": {"i": 5, "r": 5},
}


@pytest.mark.parametrize("text", PROGRAMS)
def test_sizes_follow(text: str, routes: Routes) -> None:
    arrays = {"A": A} if "A[" in text else {"x": X}
    case = Case(text, arrays, dict(arrays), PROGRAMS[text], indexed=True)
    assert check_everywhere(case, routes, 0, 4)
    alone = ucle.einsum_program(text, inputs=arrays)
    for name, values in case.expected().items():
        program = ucle.einsum_program(text, inputs=arrays, outputs=[name])
        with alone.execute() as all_outputs, program.execute() as result:
            np.testing.assert_allclose(result[name].to_numpy(), values)
            if name in alone.outputs:
                np.testing.assert_allclose(all_outputs[name].to_numpy(), values)
