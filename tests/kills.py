"""Kills writers with -9 at every kind of moment, and looks at what they leave behind.

    python tests/kills.py 300

A writer is a forked process that writes version 1, 2, 3, ... of something, all of whose numbers are
the version, and says so after each. It is killed from outside after a random time, or kills itself
between two statements or two steps of the file system. Then another process looks: what is there is
a whole version, the last that was told of or the one after it, and the next version can be written.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse

import ucle
from ucle.database import statistics_cache
from ucle.optimiser.profiles import load_profile, save_profile
from ucle.plan.prices import ENGINE

SIDE = 20
ROWS = SIDE * SIDE
EDGES = (
    f"CREATE TABLE edges AS SELECT x // {SIDE} i, x % {SIDE} j, 1.0::DOUBLE v "
    f"FROM range({ROWS}) s(x)"
)

ROUNDS = 3
"""Versions that a writer writes when it is measured; it is killed within that time."""

FIRST = 1
"""The version that is there before a writer starts."""

HANGS = 120
"""Seconds after which a process is stuck."""

Write = Callable[[Path, int], None]
Look = Callable[[Path], int]


@dataclass(frozen=True)
class Kind:
    """A kind of writing: how a version is written, and which one is there.

    `look` raises AssertionError where what is there is not whole. `told` is whether all that was
    told of has to be there: notes may be missing at any time.
    """

    name: str
    write: Write
    look: Look
    told: bool = True


@dataclass
class Figures:
    """Record of a kind of writing: kills, versions that were found, and faults."""

    kind: str
    kills: Counter[str] = field(default_factory=Counter)
    versions: Counter[str] = field(default_factory=Counter)
    left: int = 0
    faults: list[str] = field(default_factory=list)


# ---- What is written ----


def computed(folder: Path, version: int, **options: Any) -> Any:
    """An execution whose result holds nothing but the version."""
    text = f"y[i,j] = {version} * E[i,j]"
    return ucle.einsum_program(text, E="edges", database=str(folder / "data.db"), **options)


def _execute(folder: Path, version: int) -> None:
    text = f"t[i,k] += E[i,j] * E[j,k]; y[i,k] = {version} * t[i,k] / {SIDE}"
    program = ucle.einsum_program(text, E="edges", database=str(folder / "data.db"))
    with program.execute() as result:
        assert (result["y"].to_numpy() == version).all()


def _table(mode: str) -> Write:
    def write(folder: Path, version: int) -> None:
        name = f"y{version}" if mode == "error" else "y"
        with computed(folder, version).execute() as result:
            on = ["i", "j"] if mode == "upsert" else None
            result["y"].to_table(name, mode=mode, on=on)

    return write


def _store(folder: Path, version: int) -> None:
    """Stores an input that is another one each time."""
    with ucle.connect(folder / "data.db") as connection:
        connection.execute("UPDATE edges SET v = ?", [version]).fetchall()
        layout = {"y": ["i"]} if version % 2 else {"y": ["j"]}
        program = ucle.einsum_program(
            "y[i,j] = relu(E[i,j])", E="edges", database=connection, store="E", decomposition=layout
        )
        with program.execute() as result:
            assert (result["y"].to_numpy() == version).all()


def _refreshed(*, told: bool) -> Write:
    """Changes the edges and refreshes, in one transaction or in two."""

    def write(folder: Path, version: int) -> None:
        with ucle.connect(folder / "data.db") as connection:
            if connection.sql("FROM duckdb_tables() WHERE table_name = 'kept_z'").fetchall():
                kept = ucle.maintained("kept", connection)
            else:
                text = f"y[i,j] = relu(E[i,j]); z[i] = sum[j](y[i,j]) / {SIDE}"
                kept = ucle.einsum_program(
                    text, E="edges", database=connection, outputs=["y", "z"]
                ).maintain("kept", connection)
            if told:
                kept.refresh(
                    inserted={"E": connection.sql(f"SELECT i, j, {version} AS v FROM edges")},
                    deleted={"E": connection.sql("SELECT i, j FROM edges")},
                )
            else:
                connection.execute("UPDATE edges SET v = ?", [version]).fetchall()
                kept.refresh()

    return write


def _views(folder: Path, version: int) -> None:
    text = f"p[i,j] = {version} * E[i,j]; q[i] = max[j]({version} * E[i,j])"
    path = str(folder / "data.db")
    program = ucle.einsum_program(text, E="edges", database=path, decomposition="relational")
    program.create_views(replace=True)


def _notes(folder: Path, version: int) -> None:
    statistics_cache.NOTED_ENTRIES = ROWS // 2
    statistics_cache.forget()
    with duckdb.connect(str(folder / "data.db")) as connection:
        connection.execute("UPDATE edges SET v = ?", [version]).fetchall()
    with computed(folder, 1).execute() as result:
        assert (result["y"].to_numpy() == version).all()


def _saved(name: str, **options: Any) -> Write:
    def write(folder: Path, version: int) -> None:
        with computed(folder, version).execute() as result:
            result["y"].save(folder / "files" / name, **options)

    return write


def _profile(folder: Path, version: int) -> None:
    save_profile(replace(ENGINE, name="machine", fixed=float(version)), folder / "profile.json")


# ---- What is found ----


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(folder / "data.db"), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def counted(folder: Path, table: str) -> dict[int, int]:
    """Count the rows of each version in a table."""
    return {int(v): n for v, n in rows(folder, f"SELECT val, count(*) FROM {table} GROUP BY val")}


def tables(folder: Path) -> set[str]:
    found = rows(folder, "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'")
    return {name for (name,) in found} - {"edges"}


def _whole(values: Any) -> int:
    """The version of an array, if it is one and whole."""
    array = np.asarray(values)
    assert array.size == ROWS, f"{array.size} of {ROWS} entries"
    assert (array == array.flat[0]).all(), f"parts of versions {np.unique(array)}"
    return int(array.flat[0])


def _untouched(folder: Path) -> int:
    assert not tables(folder)
    return FIRST


def _one_table(folder: Path) -> int:
    ((version, count),) = counted(folder, "y").items()
    assert count == ROWS, f"{count} rows"
    return version


def _new_tables(folder: Path) -> int:
    names = tables(folder)
    assert names == {f"y{n}" for n in range(1, len(names) + 1)}
    assert all(counted(folder, name) == {int(name[1:]): ROWS} for name in names)
    return len(names)


def _appended(folder: Path) -> int:
    found = counted(folder, "y")
    assert found == dict.fromkeys(range(1, len(found) + 1), ROWS), found
    return len(found)


def _changed_edges(folder: Path) -> int:
    """Whatever is stored or noted, later programs read what the table holds."""
    ((low, high, count),) = rows(folder, "SELECT min(v), max(v), count(*) FROM edges")
    assert low == high
    assert count == ROWS
    statistics_cache.NOTED_ENTRIES = ROWS // 2
    path = str(folder / "data.db")
    for layout in (["i"], ["j"]):
        text = "y[i,j] = relu(E[i,j])"
        program = ucle.einsum_program(text, E="edges", database=path, decomposition={"y": layout})
        with program.execute() as result:
            assert _whole(result["y"].to_numpy()) == low
    return int(low)


def _both_views(folder: Path) -> int:
    names = rows(folder, "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL")
    assert names == [("p",), ("q",)]
    version = _whole([v for (v,) in rows(folder, "SELECT val FROM p")])
    assert rows(folder, "SELECT DISTINCT val FROM q") == [(version,)]
    return version


def _in_file(name: str, read: Callable[[Path], Any]) -> Look:
    def look(folder: Path) -> int:
        assert not tables(folder)
        return _whole(read(folder / "files" / name))

    return look


def _in_kept_tables(*, told: bool) -> Look:
    """The outputs are of one version, and, if it was told, the edges are of the same."""

    def look(folder: Path) -> int:
        with duckdb.connect(str(folder / "data.db"), read_only=True) as connection:
            query = "SELECT val FROM kept_y UNION ALL SELECT val FROM kept_z"
            if told:
                query += " UNION ALL SELECT v FROM edges"
            values = np.array(connection.sql(query).fetchall()).ravel()
        assert len(values) == ROWS + SIDE + told * ROWS
        assert (values == values[0]).all()
        return int(values[0])

    return look


def _in_profile(folder: Path) -> int:
    return int(load_profile(folder / "profile.json").fixed)


def _values(table: pa.Table) -> Any:
    return table["val"].to_numpy()


def _arrow(path: Path) -> Any:
    with pa.ipc.open_file(path) as reader:
        return _values(reader.read_all())


FORMATS: dict[str, Callable[[Path], Any]] = {
    "y.parquet": lambda path: _values(pq.read_table(path)),
    "y.arrow": _arrow,
    "y.csv": lambda path: _values(pa.csv.read_csv(path)),
    "y.csv.gz": lambda path: _values(pa.csv.read_csv(path)),
    "y.mtx": lambda path: scipy.io.mmread(path).data,
    "y.tns": lambda path: np.loadtxt(path)[:, -1],
    "y.npy": np.load,
    "y.npz": lambda path: scipy.sparse.load_npz(path).data,
}

KINDS = (
    Kind("execute", _execute, _untouched, told=False),
    Kind("to_table error", _table("error"), _new_tables),
    Kind("to_table replace", _table("replace"), _one_table),
    Kind("to_table append", _table("append"), _appended),
    Kind("to_table upsert", _table("upsert"), _one_table),
    Kind("store=", _store, _changed_edges),
    Kind("create_views", _views, _both_views),
    Kind("notes", _notes, _changed_edges),
    *(Kind(f"save {name}", _saved(name), _in_file(name, read)) for name, read in FORMATS.items()),
    Kind(
        "save partitions",
        _saved("folder", partition_by=["i"]),
        _in_file("folder", lambda path: _values(pq.read_table(path))),
    ),
    Kind("refresh", _refreshed(told=False), _in_kept_tables(told=False)),
    Kind("refresh told", _refreshed(told=True), _in_kept_tables(told=True)),
    Kind("profile", _profile, _in_profile),
)


# ---- Processes ----


class Steps(logging.Handler):
    """Counts the steps of a writer, and kills it before one of them.

    A step is a statement, which ucle logs, or something that Python does to a file or a folder.
    """

    FILES = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir")

    def __init__(self, folder: Path, last: int) -> None:
        super().__init__(logging.DEBUG)
        self.folder, self.last, self.count = str(folder), last, 0

    def start(self) -> None:
        logger = logging.getLogger("ucle")
        logger.setLevel(logging.DEBUG)
        logger.addHandler(self)
        sys.addaudithook(self._audit)

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in self.FILES and self.folder in str(arguments[0]):
            self.emit(logging.makeLogRecord({}))


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """Start a process that does some work, and return its number and the end of its pipe."""
    mine, its = os.pipe()
    child = os.fork()
    if child:
        os.close(its)
        return child, mine
    try:
        signal.alarm(HANGS)
        work(its)
        os._exit(0)
    except BaseException:
        os.write(its, traceback.format_exc().encode())
        os._exit(1)


def ended(process: tuple[int, int]) -> tuple[int, str]:
    """Wait for the end of a process: how it ended, and what it said."""
    child, pipe = process
    with os.fdopen(pipe) as stream:
        said = stream.read()
    return os.waitpid(child, 0)[1], said


def writer(kind: Kind, folder: Path, step: int = 0) -> Callable[[int], None]:
    def work(pipe: int) -> None:
        steps = Steps(folder, step)
        steps.start()
        started = time.monotonic()
        version = FIRST
        while step or version < FIRST + ROUNDS:
            version += 1
            kind.write(folder, version)
            os.write(pipe, f"{version} {steps.count} {time.monotonic() - started}\n".encode())

    return work


def looker(kind: Kind, folder: Path) -> Callable[[int], None]:
    """Return a process body that looks, writes the next version and looks again."""

    def work(pipe: int) -> None:
        found = kind.look(folder)
        os.write(pipe, f"{found}\n".encode())
        if kind.told:
            kind.write(folder, found + 1)
            assert kind.look(folder) == found + 1
        else:
            kind.write(folder, found)
            kind.look(folder)

    return work


def _started(kind: Kind, folder: Path) -> None:
    """Make a folder with the database, and the first version of what is written."""
    (folder / "files").mkdir(parents=True)
    with duckdb.connect(str(folder / "data.db")) as connection:
        connection.execute(EDGES).fetchall()
    kind.write(folder, FIRST)


def measured(kind: Kind, folder: Path) -> tuple[int, float]:
    """Steps and seconds of a writer that lives."""
    status, said = ended(forked(lambda _: _started(kind, folder)))
    assert status == 0, said
    again = folder.with_name("measured")
    shutil.copytree(folder, again)
    status, said = ended(forked(writer(kind, again)))
    assert status == 0, said
    shutil.rmtree(again)
    _, steps, seconds = said.splitlines()[-1].split()
    return int(steps), float(seconds)


def kill(kind: Kind, start: Path, size: tuple[int, float], seed: int, figures: Figures) -> None:
    """Kill a writer once, and note what it has left."""
    rng = random.Random(seed)
    steps, seconds = size
    folder = start.with_name("killed")
    shutil.copytree(start, folder)
    at_step = seed % 2 == 0
    moment = rng.randint(1, steps) if at_step else rng.uniform(0, seconds)
    process = forked(writer(kind, folder, int(moment) if at_step else -1))
    if not at_step:
        time.sleep(moment)
        os.kill(process[0], signal.SIGKILL)
    status, said = ended(process)
    told = [FIRST, *(int(line.split()[0]) for line in said.splitlines() if line[:1].isdigit())][-1]
    fault = None
    if status != signal.SIGKILL:
        fault = f"it ended by itself: {said[-1000:]}"
    left = [x for x in (folder / "files").iterdir() if x.name.startswith(".ucle_")]
    figures.left += bool(left)
    status, said = ended(forked(looker(kind, folder)))
    found = int(said.split()[0]) if said[:1].isdigit() else -1
    if status != 0:
        fault = said[-1500:] or f"stuck: it ended with {status}"
    elif kind.told and found not in (told, told + 1):
        fault = f"version {told} was written, and {found} is there"
    figures.kills["at a step" if at_step else "at a time"] += 1
    figures.versions["new" if found > told else "old"] += 1
    if fault:
        what = f"step {moment} of {steps}" if at_step else f"{moment:.3f} s of {seconds:.3f} s"
        figures.faults.append(f"{kind.name}, seed {seed}, {what}: {fault}")
    shutil.rmtree(folder)


def run(count: int, seed: int = 0, kinds: tuple[Kind, ...] = KINDS) -> Iterator[Figures]:
    """Kill so many writers, of each kind in turn."""
    with tempfile.TemporaryDirectory() as place:
        for kind, seeds in _shared(kinds, count, seed):
            start = Path(place) / kind.name.replace(" ", "_") / "start"
            size = measured(kind, start)
            figures = Figures(kind.name)
            for one in seeds:
                kill(kind, start, size, one, figures)
            yield figures


def _shared(kinds: tuple[Kind, ...], count: int, seed: int) -> Iterator[tuple[Kind, range]]:
    """The kinds with their seeds; those that get one fewer are others with each seed."""
    for n, kind in enumerate(kinds):
        share = count // len(kinds) + ((n - seed) % len(kinds) < count % len(kinds))
        if share:
            yield kind, range(seed + n, seed + n + share)


def main(count: int, seed: int = 0) -> int:
    """Print the figures as a table, and the faults; how many faults there are."""
    line = "{:18}{:>7}{:>7}{:>6}{:>6}{:>6}{:>8}"
    print(line.format("kind", "steps", "times", "old", "new", "left", "faults"))
    kills = faults = 0
    for x in run(count, seed):
        numbers = (x.kills["at a step"], x.kills["at a time"], x.versions["old"], x.versions["new"])
        print(line.format(x.kind, *numbers, x.left, len(x.faults)), *x.faults, sep="\n", flush=True)
        kills, faults = kills + x.kills.total(), faults + len(x.faults)
    print(f"{kills} kills, {faults} faults")
    return faults


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
