"""Operators against the node tests of ONNX, each on both routes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from ucle.models.operators.known_operators import TABLE
from ucle.testing.check_matrix import Routes

NAMES = (Path(__file__).parent / "node_tests.txt").read_text().split()


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sample(1)
def test_a_node_test_of_onnx(name: str, routes: Routes) -> None:
    node_cases = import_module("node_cases")
    if name not in node_cases.cases():
        pytest.skip("this version of onnx has no such test")
    proto = node_cases.read(name)
    given = dict(
        zip(
            [value.name for value in proto.graph.input],
            node_cases.values(name, "input", proto.graph.input),
            strict=True,
        )
    )
    expected = node_cases.values(name, "output", proto.graph.output)
    model = node_cases.model_of(name, given)
    loose = 2e-3 if expected[0].dtype == np.float16 else 1e-3
    for connection in routes.values():
        program = model.program(inputs=node_cases.inputs_of(model, given), database=connection)
        with program.execute() as result:
            for output, value in zip(model.outputs, expected, strict=True):
                found = result[output.name].to_numpy().reshape(value.shape)
                kind = complex if value.dtype.kind == "c" else float
                np.testing.assert_allclose(
                    found.astype(kind), value.astype(kind), rtol=loose, atol=loose / 100
                )


@pytest.mark.slow
def test_every_listed_operator_is_tested() -> None:
    node_cases = import_module("node_cases")
    assert set(node_cases.names()) == set(NAMES)
    tested = {node.op_type for name in NAMES for node in node_cases.read(name).graph.node}
    assert len(tested & {operator for domain, operator in TABLE if domain != "ucle"}) >= 60
