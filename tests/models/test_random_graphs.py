"""Random graphs against the reference implementation of ONNX, with and without open rows."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx.reference import ReferenceEvaluator
from random_graphs import Graph

from ucle.models import from_onnx
from ucle.testing.check_matrix import Routes


@pytest.mark.parametrize("seed", range(400))
def test_random_graphs(seed: int, routes: Routes) -> None:
    rng = np.random.default_rng(seed)
    model = Graph(seed, rows=seed % 4 != 0).model(int(rng.integers(1, 9)))
    shape = [n.dim_value or 5 for n in model.graph.input[0].type.tensor_type.shape.dim]
    x = rng.normal(size=shape).astype("f4")
    with np.errstate(all="ignore"):
        expected = ReferenceEvaluator(model).run(None, {"x": x})
    read = from_onnx(model)
    for connection in routes.values():
        program = read.program(x, database=connection)
        with program.execute() as result:
            for output, value in zip(read.outputs, expected, strict=True):
                found = result[output.name].to_numpy().reshape(value.shape)
                known = np.isfinite(value)  # the reference takes logarithms of what underflows
                scale = max(float(np.abs(value[known]).max(initial=0)), 1)
                np.testing.assert_allclose(found[known], value[known], rtol=1e-4, atol=1e-5 * scale)
