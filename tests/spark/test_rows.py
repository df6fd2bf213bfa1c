"""Rows on their way, and errors on their way back, without a Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ucle.database.engine import DUCKDB
from ucle.errors import CoordinateError, ExecutionError, UnsupportedError
from ucle.run.execute import NaNError
from ucle.spark import tasks
from ucle.spark.failures import pack_error, unpack_error
from ucle.spark.program import SparkProgram
from ucle.spark.tasks import TaskContext, pack, unpack
from ucle.sqlgen import PLAIN


@pytest.mark.parametrize("length", [0, 1, 2, 7, 1001])
def test_packs_hold_all_rows(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MOST_BYTES", 16)
    table = pa.table({"i": np.arange(length), "val": np.ones(length)})
    packs = pack(table)
    assert len(packs) == max(1, length)
    assert pa.concat_tables(map(unpack, packs)) == table


def test_large_tables_are_several_packs() -> None:
    table = pa.table({"i": np.arange(20_000_000)})
    packs = pack(table)
    assert len(packs) == 3
    assert sum(len(unpack(each)) for each in packs) == len(table)


def test_errors_come_back_as_they_were() -> None:
    error = CoordinateError(
        "outside", where="input A", expected="0 to 1", found="2", hint="compile again"
    )
    back = unpack_error(RuntimeError(f"Job aborted:\n{pack_error(error)}\n at org.apache"))
    assert type(back) is CoordinateError
    assert str(back) == str(error)
    nan = unpack_error(RuntimeError(str(pack_error(NaNError("T")))))
    assert isinstance(nan, NaNError)
    assert str(nan) == "T"


def test_an_executor_has_to_agree() -> None:
    with DUCKDB.open(":memory:") as session:
        session.capabilities = PLAIN
        TaskContext(kernels=False).check(session)
        with pytest.raises(ExecutionError, match="has no kernels"):
            TaskContext(kernels=True).check(session)
    with pytest.raises(ExecutionError, match="another version"):
        TaskContext(version="0.0.1").check_version()


def test_no_ucle_on_an_executor() -> None:
    """Spark's error becomes a hint."""
    trace = "PythonException: ...\nModuleNotFoundError: No module named 'ucle'\n at org.apache"
    error = unpack_error(RuntimeError(trace))
    assert isinstance(error, ExecutionError)
    assert "pip install 'ucle[spark]'" in str(error)
    assert "No module named 'ucle'" in str(error)


def test_programs_on_spark_are_not_maintained() -> None:
    program = object.__new__(SparkProgram)
    program._inputs = {"A": None}  # type: ignore[dict-item]
    with pytest.raises(UnsupportedError, match="not followed"):
        program.maintain("sums", append_only=["A"])
