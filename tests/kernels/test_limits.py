"""The limits of kernels: C's numbers are those that Python goes by, and kernels keep to them."""

from __future__ import annotations

import re
from dataclasses import astuple
from pathlib import Path

import duckdb
import pytest

from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Label
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.optimiser.pricing import CostedProgram
from ucle.plan.decomposition import StoredInput
from ucle.plan.prices import ENGINE
from ucle.plan.resources import Resources
from ucle.stats import Occupancy, ProgramStatistics, TensorStatistics
from ucle.udf_kernels import ELEMENT_TYPES, kernel_limits
from ucle.udf_kernels.native import load_module

SOURCES = Path(__file__).parents[2] / "udf_kernels" / "csrc"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def declared() -> dict[str, int]:
    """The constants of the header."""
    text = (SOURCES / "kernel_limits.h").read_text(encoding="utf-8")
    return {name: int(number, 0) for name, number in re.findall(r"(UCLE_\w+) = (\w+)", text)}


def test_python_goes_by_the_numbers_of_the_compiled_module() -> None:
    """And these are those of the header: else the module is to be built again."""
    numbers = declared()
    assert len(numbers) == len(astuple(kernel_limits())) == 8
    assert {name: getattr(load_module().lib, name) for name in numbers} == numbers
    assert sorted(astuple(kernel_limits())) == sorted(numbers.values())


def test_no_other_place_has_them() -> None:
    """A number that stands for a limit is written as its name."""
    spelled = re.compile(r"128 ?\* ?1024|128 ?<< ?10|131_?072|0xfffffff8|2 ?\*\* ?32")
    root = SOURCES.parents[1]
    for folder in ("ucle", "sqlgen", "stats", "udf_kernels"):
        for path in (root / folder).rglob("*.[chp]*"):
            if path.suffix in (".c", ".h", ".py") and path.stem != "kernel_limits":
                assert not spelled.search(path.read_text(encoding="utf-8")), path


def refused(connection: duckdb.DuckDBPyConnection, call: str) -> str:
    """The error of a kernel that refuses a call; empty if it takes the call."""
    try:
        connection.execute(f"SELECT {call}").fetchall()
    except duckdb.Error as error:
        return str(error)
    return ""


def test_kernels_keep_to_them(native: duckdb.DuckDBPyConnection) -> None:
    """An argument at a limit is accepted; one beyond it is refused."""
    limits = kernel_limits()
    calls = []
    for more in (0, 1):
        names = LETTERS[: limits.labels + more]
        sizes = [1] * len(names)
        calls.append((f"ein('{names},{names}->', {sizes}, pack([2]), pack([3]))", more))
        calls.append((f"slice(pack([1]), 0, {sizes}, {sizes})", more))
        tensors = ", ".join(["pack([1])"] * (limits.operands + more))
        calls.append((f"tape('return $0', {tensors})", more))
        letters = LETTERS[: limits.chain_operands + more]
        operands = ", ".join(["pack([1])"] * limits.chain_operands)
        program = " ".join([*letters, *["add"] * (len(letters) - 1)])
        calls.append((f"chain{limits.chain_operands}('{program}', {operands})", more))
        relus = " relu" * (limits.chain_steps + more)
        calls.append((f"chain1('a{relus}', pack([1]))", more))
        waiting = limits.stack + more
        calls.append((f"chain1('{'a ' * waiting}{'add ' * (waiting - 1)}relu', pack([1]))", more))
    for call, more in calls:
        text = refused(native, call)
        assert ("expected" in text) if more else not text, call


@pytest.mark.parametrize("tag", ["f64", "f32", "bool", "c64"])
def test_no_plan_has_a_tensor_beyond_a_blob(tag: str) -> None:
    """A tensor of as many elements as the kernels take fits, one of one more does not."""
    dtype = next(x for x in DType if x.numpy == ELEMENT_TYPES[tag].dtype)
    most = min(kernel_limits().blob_bytes // dtype.bytes, 2**31 - 1)
    for size in (most, most + 1):
        axis = Label("i", size)
        type_ = TensorType((axis,), dtype=dtype)
        made = TensorType((axis,), dtype=dtype)
        vertex = Vertex(NamedTensor("Z", made), (Operand("X", (axis,)),), (axis,))
        program = Program((NamedTensor("X", type_),), (vertex,), ("Z",))
        known = ProgramStatistics(program, {"X": TensorStatistics(1, (1,))}, Occupancy())
        costed = CostedProgram(program, known, {"X": StoredInput()}, ENGINE, Resources())
        assert costed.fits(vertex, vertex.decomposition(())) is (size == most)
