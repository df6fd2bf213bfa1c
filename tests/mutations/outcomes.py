"""A plugin of pytest that writes down the outcome of each test, one line of JSON for each.

pytest -p mutations.outcomes --outcomes=FILE
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest


class Outcomes:
    """Writes to `path`; a test that was not run is not written."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.begun: float | None = None
        self.failed: set[str] = set()
        self.passed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Time a test, and end it where it does not end."""
        before = _processor_seconds()
        self.begun = before if self.begun is None else self.begun
        if limit := item.config.option.no_end:
            signal.signal(signal.SIGPROF, _give_up)
            signal.setitimer(signal.ITIMER_PROF, limit)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds = _processor_seconds() - before
            outcome = "failed" if item.nodeid in self.failed else "passed"
            if outcome == "failed" or item.nodeid in self.passed:
                entry = {"test": item.nodeid, "outcome": outcome, "seconds": round(seconds, 4)}
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
            spent = _processor_seconds() - self.begun
            if spent > (item.config.option.budget or float("inf")):
                item.session.shouldstop = "the budget is spent"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a phase of a test: each may fail, and only its call may pass."""
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.passed and report.when == "call":
            self.passed.add(report.nodeid)


def _processor_seconds() -> float:
    """Return the processor time of this process and the children that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _give_up(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError("the test has no end")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("outcomes")
    group.addoption("--outcomes", metavar="FILE", help="where outcomes are written")
    group.addoption("--instances", action="store_true", help="one instance of each test function")
    group.addoption("--listed", metavar="FILE", help="run the tests of this list, one on a line")
    group.addoption("--budget", type=float, help="seconds of processor time for all tests")
    group.addoption("--no-end", type=float, help="seconds of processor time for one test")


def pytest_configure(config: pytest.Config) -> None:
    """Write outcomes: each worker to a file of its own."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    config.pluginmanager.register(Outcomes(f"{config.option.outcomes}.{worker}"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the first instance of each function, or what is listed, in the order of the list."""
    if config.option.listed:
        places = {
            test: n for n, test in enumerate(Path(config.option.listed).read_text().split("\n"))
        }
        items[:] = sorted(
            (item for item in items if item.nodeid in places), key=lambda x: places[x.nodeid]
        )
    if config.option.instances:
        first: dict[str, pytest.Item] = {}
        for item in items:
            first.setdefault(item.nodeid.partition("[")[0], item)
        items[:] = first.values()
