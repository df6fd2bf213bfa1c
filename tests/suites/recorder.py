"""A pytest plugin that writes down what became of each test of a suite, for `run.py`.

Adapters say with `skip`, `sample` and `adapt` where a test does not run as it was written. A test
that calls no einsum says nothing about ucle, and counts as skipped.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from checked import COUNT

NOT_OURS = "calls no einsum"

_records: list[dict[str, Any]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--suite-report", required=True, help="the JSON file to write")


def skip(items: list[pytest.Item], reasons: Mapping[str, str]) -> None:
    """Skip tests, by name with or without parameters."""
    for item in items:
        names = (item.name, item.name.partition("[")[0])
        if reason := next((reasons[name] for name in names if name in reasons), None):
            item.add_marker(pytest.mark.skip(reason=reason))


def sample(items: list[pytest.Item], more_than: int, step: int) -> None:
    """Run about one in `step` sets of parameters of a test that has more than `more_than`.

    The names decide which, so that all processes agree, whatever the order of parameters.
    """
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        groups[item.nodeid.partition("[")[0]].append(item)
    for group in groups.values():
        if len(group) > more_than:
            reason = f"sampled: about 1 in {step} of {len(group)} parameter sets runs"
            for item in group:
                if crc32(item.name.encode()) % step:
                    item.add_marker(pytest.mark.skip(reason=reason))


def adapt(item: pytest.Item, reason: str) -> None:
    """Note that a test was changed."""
    item.user_properties.append(("note", f"{item.name}: {reason}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    COUNT.calls = COUNT.overflows = 0
    try:
        result = yield
    finally:
        item.user_properties.append(("calls", COUNT.calls))
        if COUNT.overflows:
            text = f"an integer overflow, which NumPy ignores, was refused {COUNT.overflows} times"
            adapt(item, text)
    if not COUNT.calls:
        pytest.skip(NOT_OURS)
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called where the run is started, with the reports of all processes."""
    if report.when != "call" and report.outcome == "passed":
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple | list) else ""
    properties: dict[str, Any] = {}
    for name, value in report.user_properties:
        properties.setdefault(name, []).append(value)
    _records.append({
        "test": report.nodeid.rpartition("::")[2],
        "outcome": report.outcome,
        "reason": reason.removeprefix("Skipped: ").rstrip("."),
        "calls": sum(properties.get("calls", [])),
        "notes": properties.get("note", []),
    })  # fmt: skip


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        Path(session.config.getoption("--suite-report")).write_text(json.dumps(_records))
