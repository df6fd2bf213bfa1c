"""One small program for each mistake that a program can show, by the name of the mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.language.parse import parse_program
from ucle.language.syntax import accesses
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case
from ucle.testing.random_inputs import coo_columns, random_array

PROGRAMS = {
    "full-join-inner": "T[i,j] = X[i,j] + Y[i,j]",
    "left-join-right": "T[i,j] = X[i,j] * (Y[i,j] + 1)",
    "infinite-operands-dropped": "T[i,j] = X[i,j] * holes[i,j]",
    "densify-forgotten": "T[i,j] = c[i] + b[j]",
    "densify-not-planned": "T[i,j] = c[i] + b[j]",
    "demoted-labels-counted": "T[i] += exp(cube[i,j,k])",
    "missing-entries-ignored": "T[i] += exp(X[i,j])",
    "map-keeps-the-fill": "T[i,j] = exp(X[i,j])",
    "reduced-fill-not-repeated": "T[i] += X[i,j] + 1",
    "fill-taken-for-zero": "T[i,j] = filled[i,j] + 1",
    "result-filled-with-zero": "T[i,j] = X[i,j] + 1",
    "alpha-renaming-dropped": "T[i,j] = X[i,j] * sum[j](Y[i,j] * b[j])",
    "sum-at-the-top": "T[i] = relu(X[i,j] * b[j])",
    "cse-ignores-maps": "T[i,j] = exp(X[i,j]) * square(X[i,j])",
    "cse-swaps-operands": "T[i,j] = relu(X[i,j] - Y[i,j]) + relu(Y[i,j] - X[i,j])",
    "cse-forgets-label-order": "P[j,i] = exp(A[i,j]); T[i,j] = exp(A[i,j]) / P[i,j]",
    "two-to-a-power": "T[i,j] = 2 ^ X[i,j]",
    "constant-on-the-wrong-side": "T[i,j] = 2 - X[i,j]",
    "chains-of-infinities": "T += c[i] * spikes[j]",
    "summed-too-early": "T[i,l] += A[i,j] * A[j,k] * A[k,l]",
    "product-distributes-over-max": "T[i] max= X[i,j] * c[k]",
    "comparisons-give-numbers": "T[i,j] = X[i,j] < Y[i,j]",
    "float32-widened-by-constants": "T[i,j] = 2 * half[i,j]",
    "subtraction-swapped": "T[i,j] = c[i] - b[j]",
    "product-not-swapped": "T[k,i] += A[j,i] * X[k,j]",
    "values-not-swapped": "T[k,i] += A[j,i] * X[k,j]",
    "outer-product-transposed": "T[j,i] = c[i] * b[j]",
    "capacity-too-small": "T[j,k] += X[i,j] * Y[i,k]",
    "slice-strides": "P[i,j] = X[i,j] + 1; T[i,j] = P[i,j] * Y[i,j]",
    "stack-ignores-strides": "P[i,j] = X[i,j] + 1; T[i,j] = P[i,j] * Y[i,j]",
    "last-tile-as-long": "T[i,j] = X[i,j] + Y[i,j]",
    "tiles-in-one-piece": "P[i,j] = X[i,j] + 1; T[i,j] = P[i,j] * Y[i,j]",
    "compressed-operand-not-reversed": "T[i,j] = when(Y[i,j], X[i,j])",
    "absent-entries-as-zeros": "T[i,j] = X[i,j] * (Y[i,j] + 1)",
    "mask-by-its-columns": "S[i,j] += X[k,i] * Y[k,j]; T[j] += A[i,j] * S[i,j]",
    "full-join-keys": "T[i,j] = X[i,j] + Y[i,j]",
    "absent-sides-swapped": "T[i,j] = X[i,j] * (Y[i,j] + 1)",
    "diagonal-not-picked": "T[i] = A[i,i]",
    "count-of-what-was-met": "T[i] += exp(X[i,j])",
    "integers-rounded": "T[i,j] = int64(X[i,j])",
    "brackets-dropped": "T[i,j] = (1 - X[i,j]) / 4",
    "nan-not-noticed": "T[i,j] = X[i,j] * holes[i,j]",
    "float32-kernels-of-float64": "T[i] += half[i,j] * half[i,j]",
    "parts-of-complex-swapped": "T += pairs[i,j] * pairs[i,j]",
    "gathered-arguments": "T[j,k] += X[i,j] * Y[i,k]",
}


def _arrays() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    made = {name: random_array(rng, (5, 4), 0.4) for name in ("X", "Y", "filled")}
    made |= {"A": random_array(rng, (4, 4), 0.6), "cube": random_array(rng, (5, 3, 2), 0.3)}
    made |= {"b": random_array(rng, (4,), 0.6), "c": random_array(rng, (5,), 0.6)}
    made["half"] = random_array(rng, (5, 4), 0.5, "float32")
    made["pairs"] = random_array(rng, (5, 4), 0.5, "complex128")
    made["X"][2] = 0
    made["holes"] = np.where(made["X"] == 0, np.nan, made["Y"])
    made["spikes"] = np.array([1.0, np.inf, 0.0, 2.0])
    return made


ARRAYS = _arrays()


def _input(name: str) -> Any:
    """A COO table, or for some names an array."""
    if name == "filled":
        return ucle.table(ARRAYS[name], fill=0.25)
    if name in ("Y", "c"):
        return ARRAYS[name]
    columns = coo_columns(ARRAYS[name], np.random.default_rng(0), 0)
    return ucle.table(pa.table(columns), bounds=ARRAYS[name].shape)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, routes: Routes) -> None:
    text = PROGRAMS[name]
    used = {a.tensor for s in parse_program(text) for a in accesses(s.expression)}
    used &= ARRAYS.keys()
    case = Case(text, {x: ARRAYS[x] for x in used}, {x: _input(x) for x in used}, {})
    check_everywhere(case, routes, seed=0, sample=80)  # each on both routes
