"""Parameters: dense whatever they hold, never in the SQL, and right in every plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import ucle
from ucle.errors import ArgumentTypeError, ValueTypeError
from ucle.testing.check_matrix import Routes, some_decompositions
from ucle.testing.oracle import evaluate

PROGRAMS = {
    "product": "Z[i,k] = relu(sum[j](X[i,j] * W[j,k]))",
    "greatest": "Z[k] = max[j](W[j,k]); Y[j] = min[k](W[j,k])",
    "all": "Z = max[j,k](W[j,k]); Y = prod[j,k](W[j,k] + 1)",
    "softmax": "E[j,k] = exp(W[j,k]); Z[j,k] = E[j,k] / sum[k](E[j,k]);"
    " s[j] = logsumexp[k](W[j,k])",
    "quotient": "Z[j] = sum[k](W[j,k]) / sum[k](W[j,k] != 0); Y[j,k] = 1 / (W[j,k] + 2)",
    "places": "Z[j,k] = W[j,k] - W[j,~(k-1)]; Y[j,k] = cumsum[k](W[j,k])",
}
RNG = np.random.default_rng(0)
ARRAYS: dict[str, Any] = {
    "zeros": np.zeros((4, 6)),
    "half": RNG.normal(size=(4, 6)) * (np.arange(4) % 2)[:, None],
    "negative": -np.abs(RNG.normal(size=(4, 6))) * (np.arange(6) > 2),
    "full": RNG.normal(size=(4, 6)),
    "narrow": np.zeros((4, 6), np.float32),
    "integers": np.arange(24).reshape(4, 6) % 5,
}
X = RNG.normal(size=(3, 4))


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("text", PROGRAMS)
def test_parameters_are_like_other_arrays(text: str, array: str, routes: Routes) -> None:
    inputs = {"W": ARRAYS[array], **({"X": X} if "X" in PROGRAMS[text] else {})}
    with np.errstate(all="ignore"):
        expected = evaluate(PROGRAMS[text], inputs)
    given = {**inputs, "W": ucle.parameter(inputs["W"])}
    program = ucle.einsum_program(PROGRAMS[text], inputs=given, database=routes["native"])
    for n, way in enumerate(["auto", "relational", *some_decompositions(program, 0, 4)]):
        route = ("native", "arrow")[n % 2]
        with program.with_decomposition(way).execute(routes[route]) as result:
            for name in result:
                np.testing.assert_allclose(
                    result[name].to_numpy(), expected[name], 1e-5 if array == "narrow" else 1e-12
                )


def test_plans_and_sql_do_not_depend_on_the_numbers() -> None:
    text = "Z[i,k] += X[i,j] * W[j,k]; Y[j,k] = W[j,k] / (s[] + 1)"
    scripts = set()
    for array, scalar in ((ARRAYS["zeros"], 0.0), (ARRAYS["half"], 7.25), (ARRAYS["full"], -3.5)):
        inputs = {"X": X, "W": ucle.parameter(array), "s": ucle.parameter(scalar)}
        scripts.add(ucle.einsum_program(text, inputs=inputs).to_sql())
    assert len(scripts) == 1
    assert "7.25" not in scripts.pop()


def test_lazy_tensors_take_parameters() -> None:
    W = ucle.parameter(np.zeros(4), name="W")
    loss = ((X @ W - 1) ** 2).sum() + (W * W).sum()
    slope = ucle.grad(loss, W)
    np.testing.assert_allclose(slope.to_numpy(), -2 * X.sum(axis=0), rtol=1e-12)
    assert "W[" in str(loss)


def test_a_parameter_of_a_parameter_is_that() -> None:
    W = ucle.parameter(np.zeros(4))
    assert ucle.parameter(W) is W
    renamed = ucle.parameter(W, name="V")
    assert renamed.relation is W.relation
    assert str(ucle.tensor(renamed)).endswith("V[i]")


@pytest.mark.parametrize("data", ["edges", ucle.table("edges"), scipy.sparse.eye_array(3)])
def test_what_is_no_dense_array_is_refused(data: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="a parameter is a dense array"):
        ucle.parameter(data)


def test_what_are_no_numbers_is_refused() -> None:
    with pytest.raises(ValueTypeError):
        ucle.parameter(np.array(["a", "b"]))
