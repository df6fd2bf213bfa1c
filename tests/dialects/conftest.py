"""One engine of each kind for all tests; what is not installed is skipped with a reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sql_engines import ENGINES, NAMES, SqlEngine


@pytest.fixture(scope="session", params=NAMES)
def started(request: pytest.FixtureRequest) -> Iterator[SqlEngine]:
    with ENGINES[request.param]() as engine:
        yield engine


@pytest.fixture
def engine(started: SqlEngine) -> Iterator[SqlEngine]:
    yield started
    started.clear()
