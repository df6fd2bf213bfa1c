"""Rows on their way, and errors on their way back, without a Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.errors import CoordinateError, ExecutionError, UnsupportedError
from ucle.partitions.divide import partition_of
from ucle.partitions.run_fragment import Task
from ucle.plan.placement_rules import REPLICATED, Placement
from ucle.plan.steps import Plan
from ucle.run.execute import NaNError
from ucle.spark import packs, tasks, workers
from ucle.spark.failures import pack_error, unpack_error
from ucle.spark.labels import partition_labels, spark_hash
from ucle.spark.packs import (
    FRAMES,
    CutPacks,
    Frames,
    FramesOfAll,
    Key,
    MergedReports,
    PlacePacks,
    Reports,
    RunPacks,
)
from ucle.spark.program import SparkProgram
from ucle.spark.tasks import (
    FragmentTask,
    PlaceTask,
    TaskContext,
    TaskInput,
    pack,
    scattered,
    unpack,
)
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


@pytest.fixture
def worker_sums(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[float]]]:
    """The sums of A and x that each fragment finds, on a worker that starts without tables."""
    found: list[list[float]] = []

    def run(session: Session, *_: object) -> dict[str, pa.Table]:
        found.append([session.read(f'SELECT sum(val) FROM "{x}"', "test")[0][0] for x in "Ax"])
        return {}

    monkeypatch.setattr(tasks, "run_fragment", run)
    monkeypatch.setattr(workers, "_idle", [])
    yield found
    for worker in workers._idle:
        worker.close()


def test_a_worker_keeps_what_is_fixed(worker_sums: list[list[float]]) -> None:
    """Its tables are there for the next task, and those of moving inputs are not."""
    seed = pa.record_batch(
        [pa.array([tasks.SEED], pa.int32()), pa.array([0], pa.int32()), pa.nulls(1, pa.binary())],
        names=["ucle_source", "ucle_part", "ucle_rows"],
    )
    for moving, fixed in ((2.0, 1.0), (3.0, 50.0)):
        batches = [seed, sent(0, [fixed]), sent(1, [moving])]
        list(fragment_task("kept_loop")(iter(batches)))
    assert worker_sums == [[1.0, 2.0], [1.0, 3.0]]  # the rows that came again are those of before
    (worker,) = workers._idle
    tables = worker.session.read(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'temp'", "test"
    )
    assert tables == [("kept_loop 0 0",)]


class Told:
    """An accumulator of one process."""

    def __init__(self) -> None:
        self.value: Reports = {}

    def add(self, reports: Reports) -> None:
        MergedReports().addInPlace(self.value, reports)


class Batches:
    """A serializer of batches, whose stream is a list."""

    def dump_stream(self, batches: Iterator[list[Any]], stream: list[list[Any]]) -> None:
        stream.extend(batches)


@pytest.mark.parametrize("count", [0, 1, FRAMES, 40 * FRAMES])
def test_partitions_have_as_many_batches(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later batches of a large partition are larger; together they have all packs in order."""
    monkeypatch.setattr(packs, "PIECE_BYTES", 30)
    given = [(0, ((1, number), bytes(10 + number % 7))) for number in range(count)]
    written: list[list[Any]] = []
    Frames(Batches()).dump_stream(iter(given), written)
    assert len(written) == FRAMES
    assert [pack for batch in written for pack in batch] == given
    sizes = [sum(len(value) for _, (_, value) in batch) for batch in written]
    assert all(size < (30 << number // 32) + 17 for number, size in enumerate(sizes))


def test_partitions_that_are_written_together_are_found_apart() -> None:
    """Spark divides elements evenly: those of each partition are as many, and in its place."""
    given = [
        [(part, ((1, n), bytes(3))) for n in range(count)] for part, count in enumerate((2, 0, 5))
    ]
    written: list[list[Any]] = []
    FramesOfAll(Frames(Batches())).dump_stream(given, written)
    apart = [written[FRAMES * part : FRAMES * (part + 1)] for part in range(len(given))]
    assert len(written) == FRAMES * len(given)
    assert [[pack for batch in batches for pack in batch] for batches in apart] == given


def packed(values: list[float]) -> bytes:
    (value,) = pack(pa.table({"val": pa.array(values, pa.float64())}))
    return value


def test_packs_are_read_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed and moved ones go by the numbers of inputs, results of earlier runs by their own."""

    def run(session: Session, *_: object) -> dict[str, pa.Table]:
        text = 'SELECT (SELECT sum(val) FROM "A") + (SELECT sum(val) FROM "x") AS val'
        return {"y": session.table(text), "empty": session.table('SELECT val FROM "x" LIMIT 0')}

    monkeypatch.setattr(tasks, "run_fragment", run)
    monkeypatch.setattr(workers, "_idle", [])
    made = fragment_task(None)
    task = replace(made, task=replace(made.task, made=("y", "empty")))
    told = Told()
    work = RunPacks(task, 7, frozenset({0}), {(6, 2): (1,)}, told)
    given: list[tuple[int, tuple[Key, Any]]] = [
        (0, (0, packed([1.0, 2.0]))),
        (0, ((6, 2), packed([4.0]))),
        (0, ((6, 0), packed([100.0]))),  # a result that nothing reads
    ]
    (_, (key, value)), (_, (other, _)) = work(0, iter(given))
    assert (key, other) == ((7, 0), (7, 1))
    assert unpack(value)["val"].to_pylist() == [7.0]
    assert list(told.value) == [(7, 0)]
    size, small = told.value[7, 0][0]
    assert (size, small) == (len(value), (value,))
    assert told.value[7, 0][1][1] == ()
    workers._idle.pop().close()


def test_packs_that_stay_are_read_in_pieces(worker_sums: list[list[float]]) -> None:
    """A worker puts them together once; later it has their rows, whatever comes."""
    work = RunPacks(fragment_task("kept_loop"), 0, frozenset(), {}, Told())
    for moving, fixed in ((2.0, [1.0, 3.0]), (3.0, [50.0])):
        staying: list[tuple[int, tuple[Key, Any]]] = [(0, (0, packed([x] * 99))) for x in fixed]
        cut = list(CutPacks(100, {})(iter(staying)))
        assert len(cut) > 8 * len(fixed)
        (moved,) = CutPacks(10_000, {})(iter([(0, (1, packed([moving])))]))
        list(work(0, iter([*cut[:3], moved, *cut[3:]])))
    assert worker_sums == [[99 * 4.0, 2.0], [99 * 4.0, 3.0]]


def test_results_that_are_where_they_are_wanted_are_cut_there() -> None:
    """Under the numbers of all inputs that they are; other results of their run go."""
    value = packed([1.0] * 99)
    given: list[tuple[int, tuple[Key, Any]]] = [
        (3, ((6, 2), value)),
        (3, ((6, 0), packed([100.0]))),
        (3, (5, packed([2.0]))),
    ]
    cut = list(CutPacks(100, {(6, 2): (1, 4)})(iter(given)))
    whole = {
        number: b"".join(piece.value for _, (key, piece) in cut if key == number)
        for number in (1, 4, 5)
    }
    assert {part for part, _ in cut} == {3}
    assert whole == {1: value, 4: value, 5: packed([2.0])}
    assert sum(piece.ends for _, (_, piece) in cut) == 3


def test_results_are_placed_for_all_that_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "FLUSH", 100)
    context = TaskContext(kernels=False)
    copies = PlaceTask(0, REPLICATED, (), (0, 1), 0, context)
    by_key = PlaceTask(1, Placement.by(0), ("i",), (0, 1), 0, context)
    rows = pa.table({"i": np.arange(50, dtype="i4"), "val": np.ones(50)})
    results = [(0, ((3, 0), value)) for part in (rows[:20], rows[20:]) for value in pack(part)]
    results.append((0, ((3, 1), pack(rows)[0])))
    there: dict[tuple[int, int], list[pa.Table]] = {}
    for part, (number, value) in PlacePacks({(3, 0): [copies, by_key]})(iter(results)):
        assert isinstance(number, int)
        there.setdefault((number, part), []).append(unpack(value))
    found = {place: pa.concat_tables(tables) for place, tables in there.items()}
    assert found[0, 0] == found[0, 1] == rows
    for part in (0, 1):
        assert (partition_of(found[1, part], ["i"], 2) == part).all()
    both = sorted(x for part in (0, 1) for x in found[1, part]["i"].to_pylist())
    assert both == list(range(50))


def test_a_worker_computes_in_the_thread_of_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keyboard interrupts it, so that no other thread has to wait for it."""
    monkeypatch.setattr(workers, "_idle", [])
    monkeypatch.setattr("ucle.database.session.borrowed_thread", None)
    with workers.open_worker() as worker:
        assert worker.session.read("SELECT 1", "test") == [(1,)]
        assert worker.session.run("SELECT ?", "test", values=[2]) == [(2,)]
    worker.close()


def test_a_worker_does_not_import_pandas() -> None:
    """Arrow does where it is given lists and arrays: this takes longer than a small task."""
    script = """
import sys
import numpy as np, pyarrow as pa
from ucle.partitions.divide import partition_of
from ucle.plan.placement_rules import Placement
from ucle.spark.packs import PlacePacks
from ucle.spark.tasks import PlaceTask, TaskContext, binary_value, made_batch, pack
numbers = pa.Array.from_buffers(pa.int32(), 4, [None, pa.py_buffer(np.arange(4, dtype="i4"))])
rows = pa.table({"i": numbers})
task = PlaceTask(0, Placement.by(0), ("i",), (0, 1), 0, TaskContext(kernels=False))
list(PlacePacks({0: [task]})([(0, (0, value)) for value in pack(rows)]))
list(task(made_batch(0, rows)))
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_worker_does_not_search_its_modules_for_garbage() -> None:
    """Spark collects garbage after each task, which takes longer than a small one."""
    script = """
import gc
from ucle.spark.workers import open_worker
with open_worker() as worker:
    worker.session.read("SELECT 1", "test")
gc.collect()
assert len(gc.get_objects()) < 0.1 * gc.get_freeze_count()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_keys_that_are_missing_have_some_partition() -> None:
    """The check of coordinates is what refuses them."""
    rows = pa.table({"i": pa.array([1, None, 3], pa.int32())}).slice(1)
    assert partition_of(rows, ["i"], 2).tolist()[1:] == partition_of(rows[1:], ["i"], 2).tolist()


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
