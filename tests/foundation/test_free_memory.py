"""The memory that a process may take, as Linux reports it below a folder, and by its own limits."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from ucle.foundation.free_memory import free_memory

GROUP = "sys/fs/cgroup"
FREE = "MemTotal: 9000 kB\nMemAvailable:    5000 kB\n"


def report(root: Path, files: dict[str, str]) -> Path:
    """Write files of a system that is reported below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return root


def test_nothing_reported_is_no_limit(tmp_path: Path) -> None:
    assert free_memory(root=tmp_path).size == math.inf


def test_the_machine(tmp_path: Path) -> None:
    free = free_memory(root=report(tmp_path, {"proc/meminfo": FREE}))
    assert (free.size, free.limit) == (5000 * 1024, "the memory of the machine")


def test_a_machine_that_promises_no_more_than_it_has(tmp_path: Path) -> None:
    facts = FREE + "CommitLimit: 3000 kB\nCommitted_AS: 1000 kB\n"
    files = {"proc/meminfo": facts, "proc/sys/vm/overcommit_memory": "2\n"}
    assert free_memory(root=report(tmp_path, files)).size == 2000 * 1024


VERSION_1 = {
    "proc/self/cgroup": "4:memory:/jobs/one\n0::/\n",
    f"{GROUP}/memory/jobs/one/memory.limit_in_bytes": "900000\n",
    f"{GROUP}/memory/jobs/one/memory.usage_in_bytes": "500000\n",
    f"{GROUP}/memory/jobs/one/memory.stat": "total_active_file 1000\ntotal_inactive_file 99000\n",
    f"{GROUP}/memory/memory.limit_in_bytes": "9223372036854771712\n",
    f"{GROUP}/memory/memory.usage_in_bytes": "700000\n",
}
VERSION_2 = {
    "proc/self/cgroup": "0::/jobs/one\n",
    f"{GROUP}/jobs/one/memory.max": "900000\n",
    f"{GROUP}/jobs/one/memory.current": "500000\n",
    f"{GROUP}/jobs/one/memory.stat": "active_file 1000\ninactive_file 99000\nanon 400000\n",
    f"{GROUP}/jobs/memory.max": "max\n",
    f"{GROUP}/jobs/memory.current": "600000\n",
}


@pytest.mark.parametrize("files", [VERSION_1, VERSION_2])
def test_a_control_group(tmp_path: Path, files: dict[str, str]) -> None:
    free = free_memory(root=report(tmp_path, {"proc/meminfo": FREE, **files}))
    assert (free.size, free.limit) == (500_000, "the control group one")


def test_a_group_around_that_of_the_process(tmp_path: Path) -> None:
    around = {f"{GROUP}/jobs/memory.max": "650000\n"}
    assert free_memory(root=report(tmp_path, VERSION_2 | around)).size == 50_000


@pytest.mark.parametrize("path", ["/docker/7f", "/../../outside"])
def test_a_container_sees_its_own_group_at_the_top(tmp_path: Path, path: str) -> None:
    files = {
        "proc/self/cgroup": f"0::{path}\n",
        f"{GROUP}/memory.max": "800\n",
        f"{GROUP}/memory.current": "1000\n",
    }
    assert free_memory(root=report(tmp_path, files)).size == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process has")
def test_limits_of_the_process() -> None:
    script = (
        "import resource; from ucle.foundation.free_memory import free_memory\n"
        "resource.setrlimit(resource.RLIMIT_{0}, ({1}, -1)); print(free_memory())"
    )
    for kind, option in (("AS", "-v"), ("DATA", "-d")):
        code = script.format(kind, 800 << 20)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert f"limit='ulimit {option}'" in done.stdout, done.stderr
        size = float(done.stdout.partition("size=")[2].partition(",")[0])
        assert 0 < size < 800 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits addresses")
def test_addresses_that_duckdb_has_freed_are_free_for_others() -> None:
    script = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
import ucle
from ucle.foundation.free_memory import free_memory
with ucle.connect(threads=2) as connection:
    connection.execute("SET enable_progress_bar = false")
    query = "SELECT count(*) FROM (SELECT DISTINCT i % 7 AS a, i AS b FROM range({}) t(i))"
    connection.execute(query.format(100_000)).fetchall()
    before = free_memory().size
    connection.execute(query.format(3_000_000)).fetchall()
    connection.execute("SET memory_limit = '2GB'").fetchall()  # after which DuckDB frees
    print(before - free_memory().size)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert float(done.stdout) < 100e6, done.stderr  # the query needs twice as much
