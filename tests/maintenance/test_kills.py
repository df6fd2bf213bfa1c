"""Refreshes that are killed, and processes that refresh at once: nothing is lost or stale unseen.

pytest tests/maintenance/test_kills.py --all -rP     # 100 kills in a row, and what they left
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from maintenance import killed

import ucle

KILLS = 100
TURNS = 3
"""A writer is killed within so many of its turns."""

STEPS = 40
"""About as many statements has one."""

SECONDS = 0.4
"""And about as long does its refresh take."""

CHILD = Path(killed.__file__)
COMBINATIONS = killed.combinations()


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start a process that writes."""
    command = [sys.executable, "-W", "ignore", CHILD, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


def kill(path: Path, mode: str, seed: int) -> str:
    """Kill a writer at a statement, or at a time after the beginning of a refresh."""
    rng = random.Random(seed)
    at_step = seed % 2 == 0
    step = rng.randint(1, TURNS * STEPS) if at_step else 0
    with start(path, mode, seed, step) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if not at_step:
            for _ in range(rng.randint(1, TURNS)):
                process.stdout.readline()
            time.sleep(rng.uniform(0, SECONDS))
            process.kill()
        error = process.stderr.read()
        assert process.wait() == -signal.SIGKILL, error
    return f"statement {step}" if at_step else "a time"


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
@pytest.mark.parametrize("seed", range(KILLS))
def test_kills(tmp_path: Path, seed: int) -> None:
    """What is kept is that of before or after, and a refresh goes on from it to a full run."""
    name, mode = COMBINATIONS[seed % len(COMBINATIONS)]
    path = tmp_path / "kept.duckdb"
    killed.begin(path, name, mode)
    moment = kill(path, mode, seed)
    with ucle.connect(path) as connection:
        found = killed.kept_rows(connection)
        now = killed.full_run(connection, name)
        if mode in ("told", "script"):  # inputs and outputs change in one transaction
            assert found == now, moment
        else:
            assert found in (killed.full_run(connection, name, "before_"), now), moment
        print(f"{name}, {mode}, {moment}: the state {'after' if found == now else 'before'}")
        report = ucle.maintained("kept", connection).refresh()
        assert killed.kept_rows(connection) == now, moment
        assert found == now or report.changed, moment
        killed.Writer(path, mode, seed + KILLS).turn(connection)
        assert killed.kept_rows(connection) == killed.full_run(connection, name), moment


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
@pytest.mark.parametrize("mode", killed.MODES)
def test_four_processes(tmp_path: Path, mode: str) -> None:
    """Four processes that begin at once, and have the file in turn: no change is lost."""
    path, name = tmp_path / "kept.duckdb", "steps"
    killed.begin(path, name, mode)
    processes = [start(path, mode, seed, TURNS, "turns") for seed in range(4)]
    for process in processes:
        said, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
        assert said.split() == ["refresh"] * TURNS
    with duckdb.connect(str(path)) as connection:
        assert killed.kept_rows(connection) == killed.full_run(connection, name)
        assert not ucle.maintained("kept", connection).refresh().changed
        if mode == "found":  # each turn adds 1 to one of the numbers
            added = connection.sql("SELECT sum(val - i - 1)::BIGINT FROM x").fetchall()
            assert added == [(4 * TURNS,)]
