"""Programs under the settings of a session: no answer depends on them, and none is changed.

In CI a sample of programs under pairs of settings; all programs under each setting with
``make settings``, on the newest DuckDB and on the oldest that is supported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import combinations

import duckdb
import numpy as np
import pytest
from session_settings import SETTINGS, STICKY, Setting, applied, available, check, connect, programs

PAIRS, CHUNKS = 160, 12


@pytest.fixture(scope="module")
def connections() -> Iterator[dict[str, duckdb.DuckDBPyConnection]]:
    """A connection of each route, whose settings come and go."""
    opened = {route: connect(route) for route in ("native", "arrow")}
    yield opened
    for connection in opened.values():
        connection.close()


def sampled() -> list[tuple[str, str, tuple[Setting, Setting]]]:
    """Program, route and two settings; every setting is there many times."""
    rng = np.random.default_rng(15)
    names = list(programs())
    loose = [setting for setting in available() if setting.name not in STICKY]
    pairs = [(a, b) for a, b in combinations(loose, 2) if a.name != b.name]
    rng.shuffle(pairs)
    return [
        (names[rng.integers(len(names))], ("native", "arrow")[n % 2], (a, b))
        for n, (a, b) in enumerate(pairs[:PAIRS])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_pairs_of_settings(chunk: int, connections: dict[str, duckdb.DuckDBPyConnection]) -> None:
    for name, route, settings in sampled()[chunk::CHUNKS]:
        assert check(name, connections[route], settings, sample=0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("setting", [x for x in SETTINGS if x.name in STICKY], ids=str)
@pytest.mark.parametrize("route", ["native", "arrow"])
def test_settings_that_stay(setting: Setting, route: str) -> None:
    for name in ("matmul", "words", "quotients"):
        with connect(route) as connection:
            assert check(name, connection, [setting])


def test_the_sample_covers_the_settings() -> None:
    found = {setting for _, _, settings in sampled() for setting in settings}
    assert len(found) >= 40
    assert found == {setting for setting in available() if setting.name not in STICKY}


def test_the_harness_sees_a_setting_that_changes() -> None:
    with (
        duckdb.connect() as connection,
        pytest.raises(AssertionError, match="settings are changed"),
        applied(connection, [Setting("default_order", "'DESC'")]),
    ):
        connection.execute("RESET default_order")


@pytest.mark.sample(None)
@pytest.mark.skipif("UCLE_SETTINGS" not in os.environ, reason="UCLE_SETTINGS is not set")
@pytest.mark.parametrize("route", ["native", "arrow"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_every_program(setting: Setting, route: str) -> None:
    if setting not in available():
        pytest.skip("this DuckDB has no such setting")
    connection = connect(route)
    step = int(os.environ["UCLE_SETTINGS"])
    for name in list(programs())[::step]:
        if setting.name in STICKY:
            connection.close()
            connection = connect(route)
        assert check(name, connection, [setting])
    connection.close()
