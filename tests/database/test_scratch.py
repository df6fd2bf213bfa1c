"""The database in memory on which lazy tensors are computed, which the process keeps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from database.test_processes import needs_fork, run

import ucle
from ucle.database import open_sessions
from ucle.database.engine import DUCKDB
from ucle.database.session import Session

A = np.arange(6.0).reshape(2, 3)


def answer() -> list[float]:
    total: list[float] = ucle.array(A, axes=("i", "j")).sum("j").to_numpy().tolist()
    return total


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The databases that are opened during a test."""
    paths: list[str] = []
    connect = duckdb.connect

    def noted(database: str = ":memory:", *args: Any, **kwargs: Any) -> duckdb.DuckDBPyConnection:
        paths.append(str(database))
        return connect(database, *args, **kwargs)

    answer()  # the database is there
    with monkeypatch.context() as patch:
        patch.setattr(duckdb, "connect", noted)
        yield paths


def left_behind() -> list[Any]:
    """List what a database holds besides DuckDB's own, and settings that have changed."""
    with DUCKDB.scratch() as session:
        found: list[Any] = []
        for kind in ("tables", "views", "schemas"):
            of_kind = f"SELECT {kind[:-1]}_name FROM duckdb_{kind}() WHERE NOT internal"
            found += [name for (name,) in session.fetch(of_kind) if name != "main"]
        names = session.fetch("SELECT database_name FROM duckdb_databases() WHERE NOT internal")
        changed = session.fetch(
            "SELECT name FROM duckdb_settings() WHERE name IN "
            "('arrow_large_buffer_size', 'enable_progress_bar') AND value <> 'false'"
        )
    return [*found, *names[1:], *changed]


def test_no_other_database_is_opened(opened: list[str], tmp_path: Path) -> None:
    tensor = ucle.array(A, axes=("i", "j"))
    tensor.to_numpy()
    tensor.to_arrow(keys=["i"])
    tensor.to_pandas()
    tensor.to_polars()
    tensor.to_scipy()
    tensor.sum().item()
    tensor.save(tmp_path / "a.parquet")
    tensor.save(tmp_path / "folder", partition_by=["i"])
    np.testing.assert_array_equal(ucle.tensor(str(tmp_path / "a.parquet"), ndim=2).to_numpy(), A)
    ucle.einsum("ij->i", A)
    assert opened == []


def test_nothing_is_left_in_it(tmp_path: Path) -> None:
    frame = ucle.table(ucle.array(A, axes=("i", "j")).to_pandas(), ["i", "j"], "val")
    for _ in range(2):
        (ucle.tensor(frame, axes=("i", "j")) * 2).to_numpy()
        ucle.array(A).to_numpy(store=True)
        ucle.array(A > 2).save(tmp_path / "b.csv")
        with pytest.raises(ucle.UcleError):
            ucle.tensor("nowhere", ndim=2).to_numpy()
        assert left_behind() == []


def test_results_that_users_hold_have_a_database_of_their_own() -> None:
    result = ucle.array(A, axes=("i", "j")).compute()
    result.to_table("kept")
    assert left_behind() == []
    with pytest.raises(ucle.UcleError, match="kept"):
        ucle.tensor("kept", ndim=2).to_numpy()
    assert result.to_numpy().tolist() == A.tolist()


def test_an_error_leaves_it_usable(opened: list[str]) -> None:
    for _ in range(3):
        with pytest.raises(ucle.errors.NumberRangeError):
            ucle.array([2**62, 2**62, 2**62]).sum().to_numpy()
        assert answer() == [3, 12]
    assert opened == []
    assert left_behind() == []


def test_an_interrupt_leaves_it_usable(opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(BaseException):
        """An exception such as a signal handler raises."""

    def stop(self: Session, *_: object, **__: object) -> None:
        self.connection.interrupt()
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(Session, "run", stop)
        with pytest.raises(Stopped):
            answer()
    assert answer() == [3, 12]
    assert opened == []
    assert left_behind() == []


def test_one_that_is_closed_is_replaced(opened: list[str]) -> None:
    open_sessions._scratch[0].close()
    assert answer() == [3, 12]
    assert answer() == [3, 12]
    assert opened == [":memory:"]


def test_one_that_is_invalidated_is_replaced(
    opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a fatal error DuckDB answers nothing but that there was one."""

    class Invalidated:
        def cursor(self) -> Invalidated:
            return self

        def execute(self, *_: object) -> None:
            raise duckdb.FatalException("FATAL Error: database has been invalidated")

    broken: Any = Invalidated()
    monkeypatch.setattr(open_sessions, "_scratch", [broken])
    monkeypatch.setitem(open_sessions._turns, broken, threading.RLock())
    assert answer() == [3, 12]
    assert opened == [":memory:"]
    open_sessions._scratch.pop().close()


def test_threads(opened: list[str]) -> None:
    """Programs of the same names, each with its own answer, and errors between them."""

    def one(number: int) -> bool:
        array = np.full((20, 30), float(number))
        if number % 5 == 0:
            with pytest.raises(ucle.UcleError):
                ucle.array([2**62] * 4).sum().to_numpy()
        tensor = ucle.array(array, axes=("i", "j"))
        table = tensor.to_arrow(keys=["i"])
        return bool((tensor.sum("j").to_numpy() == 30.0 * number).all()) and len(table) in (0, 20)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, range(40)))
    assert opened == []
    assert left_behind() == []


def test_wide_columns_take_turns() -> None:
    """One thread does not take back the setting while another reads by it."""
    read, seen = threading.Barrier(2), []

    def wide() -> None:
        with DUCKDB.scratch() as session:
            read.wait()
            for _ in range(50):
                with session.wide_columns():
                    seen.append(session.setting("arrow_large_buffer_size"))

    threads = [threading.Thread(target=wide) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 100
    assert left_behind() == []


FORK = """
import os, sys
import numpy as np
import ucle

def answer():
    assert (ucle.array(np.eye(3)) * 2).sum().item() == 6

answer()
for number in range(3):
    child = os.fork()
    if child == 0:
        if number:
            answer()
        sys.exit(0)  # with all that a process does at its end
    print(os.waitpid(child, 0)[1])
    answer()
"""


@pytest.mark.slow
@needs_fork
def test_children_have_their_own() -> None:
    assert run(FORK) == "0\n" * 3


END = """
import atexit
import ucle
from ucle.database import open_sessions

ucle.einsum("i->", [1, 2])
(kept,) = open_sessions._scratch

def closed():
    try:
        kept.execute("SELECT 1")
    except Exception as error:
        print(type(error).__name__)

atexit._run_exitfuncs()
closed()
"""


@pytest.mark.slow
def test_it_is_closed_at_the_end() -> None:
    assert run(END) == "ConnectionException\n"


def test_memory_is_given_back() -> None:
    for _ in range(3):
        (ucle.array(np.ones((500, 500)), axes=("i", "j")) * 2).to_numpy()
    with DUCKDB.scratch() as session:
        ((held,),) = session.fetch(
            "SELECT sum(memory_usage_bytes) FROM duckdb_memory() "
            "WHERE tag IN ('IN_MEMORY_TABLE', 'HASH_TABLE', 'COLUMN_DATA')"
        )
    assert held == 0
