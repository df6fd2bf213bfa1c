"""Rows on their way, and errors on their way back, without a Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.errors import CoordinateError, ExecutionError, UnsupportedError
from ucle.partitions.run_fragment import Task
from ucle.plan.steps import Plan
from ucle.run.execute import NaNError
from ucle.spark import tasks, workers
from ucle.spark.failures import pack_error, unpack_error
from ucle.spark.labels import partition_labels, spark_hash
from ucle.spark.program import SparkProgram
from ucle.spark.tasks import FragmentTask, TaskContext, TaskInput, pack, scattered, unpack
from ucle.sqlgen import PLAIN

HASHES = [933211791, -559580957]


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


def test_rows_are_scattered_by_their_contents() -> None:
    """A task that runs again may meet the same rows in another order."""
    order = np.random.default_rng(0).permutation(1000)
    rows = pa.table({"i": np.arange(1000), "val": np.ones(1000)})
    parts = scattered(rows, 5)
    assert (scattered(rows.take(order), 5) == parts[order]).all()
    assert np.bincount(parts, minlength=5).min() > 150
    assert scattered(rows.select(["val"]), 3)[:4].tolist() == [0, 1, 2, 0]


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


def test_labels_have_the_hashes_of_spark() -> None:
    """The numbers are those of ``SELECT hash(CAST(id AS INT))`` in Spark."""
    assert spark_hash(np.arange(2, dtype="i4")).tolist() == HASHES
    assert partition_labels(4) == (12, 6, 2, 0)  # as Spark finds them, too
    for partitions in (1, 2, 5, 64):
        hashes = spark_hash(np.array(partition_labels(partitions), "i4"))
        assert (hashes.astype(np.int64) % partitions).tolist() == list(range(partitions))


def fragment_task(key: str | None) -> FragmentTask:
    """A task that adds up a fixed and a moving column, without a plan."""
    rows = pa.schema([("val", pa.float64())])
    task = Task(Plan((), {}), Plan((), {}), (), frozenset(), key=key)
    incoming = (TaskInput("A", "A", rows, kept=True), TaskInput("x", "x", rows))
    return FragmentTask(task, incoming, (0,), TaskContext(kernels=False))


def sent(source: int, values: list[float]) -> pa.RecordBatch:
    (value,) = pack(pa.table({"val": pa.array(values, pa.float64())}))
    columns = [pa.array([source], pa.int32()), pa.array([0], pa.int32()), pa.array([value])]
    return pa.record_batch(columns, names=["ucle_source", "ucle_part", "ucle_rows"])


def test_a_worker_keeps_what_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables are there for the next task, and those of moving inputs are not."""
    found = []

    def run(session: Session, *_: object) -> dict[str, pa.Table]:
        found.append([session.read(f'SELECT sum(val) FROM "{x}"', "test")[0][0] for x in "Ax"])
        return {}

    monkeypatch.setattr(tasks, "run_fragment", run)
    monkeypatch.setattr(workers, "_idle", [])
    seed = pa.record_batch(
        [pa.array([tasks.SEED], pa.int32()), pa.array([0], pa.int32()), pa.nulls(1, pa.binary())],
        names=["ucle_source", "ucle_part", "ucle_rows"],
    )
    for moving, fixed in ((2.0, 1.0), (3.0, 50.0)):
        batches = [seed, sent(0, [fixed]), sent(1, [moving])]
        list(fragment_task("kept_loop")(iter(batches)))
    assert found == [[1.0, 2.0], [1.0, 3.0]]  # the rows that came again are those of before
    (worker,) = workers._idle
    tables = worker.session.read(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'temp'", "test"
    )
    assert tables == [("kept_loop 0 0",)]
    worker.close()


def test_a_worker_that_failed_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_idle", [])
    with pytest.raises(ValueError, match="broken"), workers.open_worker():
        raise ValueError("broken")
    assert workers._idle == []
    with workers.open_worker() as one:
        pass
    with workers.open_worker() as other:
        assert other is one
    other.close()
