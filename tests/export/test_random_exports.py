"""Random programs as ONNX models: a runtime gives the answers of ucle, and so does the way back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import numpy as np
import pytest
from random_programs.gathers import gathered_case
from random_programs.indices import indexed_case
from random_programs.product_chains import chain_case

pytest.importorskip("onnx")

from runtimes import run_model

from ucle.errors import UnsupportedError
from ucle.testing import Case, evaluate, random_case

GENERATORS: Mapping[str, Callable[[int], Case]] = {
    "random": random_case,
    "indexed": indexed_case,
    "gathered": gathered_case,
    "chain": chain_case,
}
WITHOUT = re.compile(
    r"complex numbers|cum(prod|max|min),|bitwise_(left|right)_shift,|random_bits,|normal_quantile,"
    r"|along an axis of size 0"
)
"""What has no operator there, in messages."""


def assert_close(found: Any, expected: Any, context: object) -> None:
    """Check an output of a runtime: its type and shape, and its entries up to rounding."""
    assert found.shape == expected.shape, context
    assert found.dtype == expected.dtype, context
    digits = 1e-4 if found.dtype == np.float32 else 1e-8
    np.testing.assert_allclose(found, expected, rtol=digits, atol=digits, err_msg=str(context))


def export(case: Case, seed: int, program: Any) -> Any:
    """A program as a model, with some inputs as weights; None if it has no operators for it."""
    weights = [name for n, name in enumerate(case.arrays) if (seed + n) % 3 == 0]
    try:
        return program.to_onnx(weights=weights)
    except UnsupportedError as error:
        message = str(error)
    assert WITHOUT.search(message), message
    return None


@pytest.mark.parametrize("seed", range(70))
@pytest.mark.parametrize("kind", GENERATORS)
def test_random_programs(kind: str, seed: int, native: duckdb.DuckDBPyConnection) -> None:
    case = GENERATORS[kind](seed)
    case.create_tables(native)
    try:
        program = case.compile(native)
        if (model := export(case, seed, program)) is None:
            return
        found = run_model(model, case.arrays)
        with program.execute(native) as result:
            for name in result:
                assert_close(found[name], result[name].to_numpy(), f"{name}\n{case}")
    finally:
        case.drop_tables(native)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", ["random", "chain"])
def test_open_axes(kind: str, seed: int, native: duckdb.DuckDBPyConnection) -> None:
    """Axes with names take other sizes: the oracle evaluates the program for these."""
    case = GENERATORS[kind](seed)
    case.create_tables(native)
    try:
        model = export(case, seed, case.compile(native))
    finally:
        case.drop_tables(native)
    rng = np.random.default_rng(seed)
    if model is None or 0 in case.bounds.values():
        return
    sizes: dict[str, int] = {}
    arrays = dict(case.arrays)
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        shape = [
            sizes.setdefault(x.dim_param, int(rng.integers(1, 6))) if x.dim_param else x.dim_value
            for x in dims
        ]
        own = case.arrays[value.name]
        arrays[value.name] = rng.choice(own.ravel(), shape).astype(own.dtype)
    with np.errstate(all="ignore"):
        expected = evaluate(case.text, arrays)
    if not all(np.isfinite(x).all() for x in expected.values()):
        return
    for name, value in run_model(model, arrays).items():
        own = expected[name]
        digits = 1e-3 if own.dtype == np.float32 else 1e-7
        np.testing.assert_allclose(value, own, rtol=digits, atol=digits, err_msg=str(case))


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("kind", GENERATORS)
def test_there_and_back(kind: str, seed: int, native: duckdb.DuckDBPyConnection) -> None:
    """`from_onnx` reads what `to_onnx` writes."""
    from ucle.models import from_onnx

    case = GENERATORS[kind](seed)
    case.create_tables(native)
    try:
        program = case.compile(native)
        model = export(case, seed, program)
        if model is None or not model.graph.input:
            return
        with program.execute(native) as result:
            expected = {name: result[name].to_numpy() for name in result}
    finally:
        case.drop_tables(native)
    open_axes = {
        dim.dim_param: size
        for value in model.graph.input
        for dim, size in zip(
            value.type.tensor_type.shape.dim, case.arrays[value.name].shape, strict=True
        )
        if dim.dim_param
    }
    try:
        back = from_onnx(model, sizes=open_axes)
    except UnsupportedError as error:
        back, message = None, str(error)
    if back is None:
        assert "size 0" in message or "operators of the model" in message, message
        return
    names = {x.original: x.name for x in back.outputs}
    given = {x.original: case.arrays[x.original] for x in back.inputs}
    with back.program(inputs=given, database=native).execute() as result:
        for name, value in expected.items():
            own = result[names[name]].to_numpy().reshape(value.shape)
            digits = 1e-4 if value.dtype == np.float32 else 1e-8
            np.testing.assert_allclose(own, value, rtol=digits, atol=digits, err_msg=str(case))
