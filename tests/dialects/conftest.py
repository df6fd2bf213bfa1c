"""One engine of each kind for all tests; what is not installed is skipped with a reason."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from sql_engines import ENGINES, NAMES, SqlEngine


@pytest.fixture(scope="session")
def started() -> Iterator[Callable[[str], SqlEngine]]:
    """Engines by their names, each started when it is asked for."""
    running: dict[str, SqlEngine] = {}
    missing: dict[str, str] = {}
    with contextlib.ExitStack() as stack:

        def get(name: str) -> SqlEngine:
            if name in missing:
                pytest.skip(missing[name])
            if name not in running:
                try:
                    running[name] = stack.enter_context(ENGINES[name]())
                except pytest.skip.Exception as skipped:
                    missing[name] = str(skipped.msg)
                    raise
            return running[name]

        yield get


@pytest.fixture
def engines(started: Callable[[str], SqlEngine]) -> Iterator[Callable[[str], SqlEngine]]:
    """Engines for one test, which are emptied after it."""
    used: dict[str, SqlEngine] = {}

    def get(name: str) -> SqlEngine:
        return used.setdefault(name, started(name))

    yield get
    for engine in used.values():
        engine.clear()


@pytest.fixture(params=NAMES)
def engine(request: pytest.FixtureRequest, engines: Callable[[str], SqlEngine]) -> SqlEngine:
    """Each of them."""
    return engines(request.param)
