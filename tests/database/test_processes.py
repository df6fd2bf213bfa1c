"""Several processes: forks, servers that fork their workers, kills, and readers of one file.

Each script runs in a process of its own, and has HANGS seconds before it is taken for stuck.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import ucle

HANGS = 300

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def run(script: str, *arguments: str, **environment: str) -> str:
    """Run a script, which has to end well, and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


FORKS = """
import os, signal, sys, threading, time
import numpy as np
import ucle

def answer():
    assert ucle.einsum("ij,j->i", np.eye(3), np.ones(3)).tolist() == [1, 1, 1]
    with ucle.connect() as connection:
        sql = "SELECT inner_prod(pack([1, 2]), pack([3, 4]))"
        assert connection.execute(sql).fetchall() == [(11.0,)]

def connect():
    while not done:
        ucle.connect().close()

answer()  # what is loaded on first use is there before the forks, and they take less time
done = False
thread = threading.Thread(target=connect)
thread.start()
lost = []
for number in range(int(sys.argv[1])):
    time.sleep(0.01 * (number % 5))  # another moment of opening a database each time
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # ends a child that is stuck
        answer()
        os._exit(0)
    lost += [status] if (status := os.waitpid(child, 0)[1]) else []
done = True
thread.join()
answer()
print(lost)
"""


@pytest.mark.slow
@needs_fork
def test_forks_beside_a_thread_that_connects() -> None:
    assert run(FORKS, "25") == "[]\n"


WORKERS = """
import os, sys
import numpy as np
import ucle

A = np.arange(6.0).reshape(2, 3)
ucle.connect().close()  # before the fork, as a server that loads its program first
for number in range(3):
    child = os.fork()
    if child == 0:
        assert (ucle.einsum("ij->i", A) == A.sum(1)).all()
        sys.exit(0)  # with all that a process does at its end
    assert os.waitpid(child, 0)[1] == 0
    with ucle.connect() as connection:
        program = ucle.einsum_program("y[i] += A[i,j] * A[i,j]", A=A, database=connection)
        print(program.route)
"""


@pytest.mark.slow
@needs_fork
def test_the_end_of_a_child_takes_nothing_from_its_parent() -> None:
    assert run(WORKERS) == "native\n" * 3


NATIVE = """
import os, signal, sys
import numpy as np
import ucle

program = ucle.einsum_program("y[i] += A[i,j] * A[i,j]", A=np.ones((2, 3)))
print(program.route, program.execute()["y"].to_numpy(), flush=True)
if sys.argv[1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["", "gone"])
def test_no_temporary_folder_is_needed(folder: str, tmp_path: Path) -> None:
    """Kernels load if the folder is clean or missing; a killed process leaves nothing."""
    place = str(tmp_path / folder)
    done = subprocess.run(
        [sys.executable, "-c", NATIVE, "kill"],
        env={**os.environ, "TMPDIR": place, "TEMP": place, "TMP": place},
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout == "native [3. 3.]\n", done.stderr
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


KILLS = """
import sys
from kills import KINDS, run

few = tuple(kind for kind in KINDS if kind.name in sys.argv[1:])
figures = list(run(9, 0, few))
print([x.kills.total() for x in figures], [x.faults for x in figures])
"""


@pytest.mark.slow
@needs_fork
def test_some_kills() -> None:
    """A few of a few kinds of writing; `make kills` has all of them."""
    folder = str(Path(__file__).parents[1])
    said = run(KILLS, "to_table upsert", "refresh told", "save y.parquet", PYTHONPATH=folder)
    assert said.splitlines()[-1] == "[3, 3, 3] [[], [], []]"


READER = """
import sys
import ucle

sys.stdin.readline()  # all of them begin at once
for number in range(3):
    program = ucle.einsum_program("y[i] += E[i,j]", E="edges", database=sys.argv[1])
    with program.execute() as result:
        print(result["y"].to_numpy().sum())
"""


@pytest.mark.slow
def test_four_processes_read_one_file_at_once(tmp_path: Path) -> None:
    """Each compiles and executes; they used to lock each other out."""
    path, text = str(tmp_path / "data.db"), tmp_path / "y.ein"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE edges AS SELECT x i, 2 * x j, 1.5 v FROM range(300) s(x)"
        ).fetchall()
    text.write_text("y += E[i,j]")
    command = [
        "-m",
        "ucle.command.cli",
        "run",
        str(text),
        "--read-only",
        "-d",
        path,
        "-i",
        "E=edges",
    ]
    reader = ["-c", READER, path]
    started = [
        subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for arguments in (reader, command, reader, command)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=HANGS) for process in started]
    assert [process.returncode for process in started] == [0] * 4, said
    for out, _ in said[::2]:
        assert out.count("450.0\n") == 3  # where it takes long, DuckDB shows a bar besides
    for out, _ in said[1::2]:
        assert "450" in out


REFRESHER = """
import sys, time
import pyarrow as pa
import ucle
from ucle.errors import DatabaseError

path, first = sys.argv[1], int(sys.argv[2])
sys.stdin.readline()  # all of them begin at once
for number in range(3):
    for attempt in range(500):
        try:
            kept = ucle.maintained("sums", path)
            rows = pa.table({"i": [first + number], "j": [7], "v": [1.5]})
            kept.refresh(inserted={"E": rows})
            break
        except DatabaseError:  # another process has the file open
            time.sleep(0.02)
    else:
        raise AssertionError("never")
"""


@pytest.mark.slow
def test_four_processes_refresh_at_once(tmp_path: Path) -> None:
    """One at a time opens the file; the others get a typed error, and lose nothing."""
    path = str(tmp_path / "data.db")
    with ucle.connect(path) as connection:
        connection.execute("CREATE TABLE edges AS SELECT x i, 2 * x j, 1.5 v FROM range(300) s(x)")
        connection.execute("ALTER TABLE edges ALTER v TYPE DOUBLE")
        program = ucle.einsum_program("y[i] += E[i,j]; s[] = sum[i](y[i])", E="edges",
                                      database=connection, outputs=["y", "s"])  # fmt: skip
        program.maintain("sums", connection)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", REFRESHER, path, str(1000 + 10 * n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=HANGS) for process in started]
    assert [process.returncode for process in started] == [0] * 4, said
    with ucle.connect(path) as connection:
        assert connection.sql("SELECT count(*), sum(v) FROM edges").fetchall() == [(312, 468.0)]
        assert connection.sql("SELECT count(*), sum(val) FROM sums_y").fetchall() == [(312, 468.0)]
        assert connection.sql("FROM sums_s").fetchall() == [(468.0,)]
        assert ucle.maintained("sums", connection).refresh().changed == {}
