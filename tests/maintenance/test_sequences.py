"""Random sequences of changes, on both routes; `make fuzz` runs many."""

from __future__ import annotations

import os

import duckdb
import pytest
from maintenance.sequences import PROGRAMS, Connect, run_sequence

import ucle

ROUTES = {"native": ucle.connect, "plain": duckdb.connect}
FEW = 3 * len(PROGRAMS)


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
@pytest.mark.parametrize("seed", range(FEW))
@pytest.mark.parametrize("route", ROUTES)
def test_sequences(route: str, seed: int) -> None:
    run_sequence(seed, ROUTES[route])


@pytest.mark.fuzz
@pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="`make fuzz` runs it")
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
@pytest.mark.parametrize("route", ROUTES)
def test_many_sequences(route: str) -> None:
    connect: Connect = ROUTES[route]
    for seed in range(FEW, FEW + int(os.environ["UCLE_FUZZ_PROGRAMS"])):
        run_sequence(seed, connect, 10)
