"""Fixtures that all tests share: connections of both routes, and options of the runner."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import settings
from selection import Selection, add_marks, add_options

import ucle
from ucle.pipeline import plan_cache
from ucle.program.registry import KINDS, unregister_operator
from ucle.run import script
from ucle.testing.check_matrix import Routes

# A deadline would make a test fail on a busy machine.
settings.register_profile("ucle", deadline=None)
settings.load_profile("ucle")

ROOT = Path(__file__).parents[1]
GRAPHS = ROOT.parent / "shared" / "data" / "graphs"

# For `benchmarks`. The last, so that `ucle` stays the one that is installed, which has all of its
# sub-packages.
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the compiler emits now to tests/golden, instead of comparing",
    )
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "fuzz: a long run of random programs; their number is read from UCLE_FUZZ_PROGRAMS",
    )
    add_marks(config)
    config.pluginmanager.register(Selection(config), "selection")


@pytest.fixture(scope="session", autouse=True)
def _no_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The built-in cost profile for all tests, whatever was measured on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(autouse=True)
def own_operators() -> Iterator[None]:
    """Takes back the operators that a test registers: they are the whole process's."""
    before = {kind: set(table) for kind, table in KINDS.items()}
    yield
    for kind, table in KINDS.items():
        for name in set(table) - before[kind]:
            unregister_operator(name)


@pytest.fixture(autouse=True)
def own_caches(request: pytest.FixtureRequest) -> Iterator[None]:
    """Clears the caches around a test that changes the compiler; the others share them.

    Plans for data of like shape are shared by none: a test may show a plan, which must then be the
    one of its own data.
    """
    plan_cache.models.clear()
    plan_cache.fitted_choices.clear()
    changes = "monkeypatch" in request.fixturenames
    if changes:
        ucle.clear_caches()
    yield
    if changes:
        ucle.clear_caches()


@pytest.fixture
def results_in_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No result stays in memory, however small."""
    monkeypatch.setattr(script, "MOST_ROW_BYTES", -1)


@pytest.fixture(scope="session")
def native() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the kernels loaded."""
    with ucle.connect(threads=2) as connection:
        yield connection


@pytest.fixture(scope="session")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that allows no extension: kernels take the Arrow route."""
    with duckdb.connect(config={"threads": 2}) as connection:
        yield connection


@pytest.fixture(scope="session")
def routes(native: duckdb.DuckDBPyConnection, plain: duckdb.DuckDBPyConnection) -> Routes:
    """Either route by its name."""
    return {"native": native, "arrow": plain}


@pytest.fixture(params=["native", "arrow"])
def connection(request: pytest.FixtureRequest) -> duckdb.DuckDBPyConnection:
    """Either route."""
    name = {"native": "native", "arrow": "plain"}[request.param]
    return request.getfixturevalue(name)


@pytest.fixture(params=["native", "arrow"])
def fresh(request: pytest.FixtureRequest) -> Iterator[duckdb.DuckDBPyConnection]:
    """Either route, on a database of its own."""
    opened = ucle.connect(threads=2) if request.param == "native" else duckdb.connect()
    with opened as connection:
        yield connection


@pytest.fixture(scope="session")
def graphs() -> Path:
    """The folder of real graphs."""
    if not GRAPHS.is_dir():
        pytest.skip(f"the real graphs are not here: no folder {GRAPHS}")
    return GRAPHS
