"""The constants of the cost model, fitted to times, and kept for programs to find."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ucle
from ucle.command.calibrate import CONSTANTS, PROBES, Calibration, Probe, calibrate, fit
from ucle.command.cli import main
from ucle.errors import InputError
from ucle.optimiser.profiles import find_profile, load_profile, profile_path, save_profile
from ucle.plan.prices import ENGINE


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def measured() -> Calibration:
    return calibrate(threads=2, rounds=1)


def test_constants_are_found_again() -> None:
    """Times made up from other constants than the built-in ones."""
    rng = np.random.default_rng(0)
    builtin = np.array([getattr(ENGINE, name) for name in CONSTANTS])
    truth = builtin * np.resize([2.0, 0.5, 3.0, 1.0, 0.7, 1.5, 4.0, 0.8], len(CONSTANTS))
    charges = rng.random((20_000, len(CONSTANTS))) / builtin
    seconds = dict(zip(map(str, range(20_000)), charges @ truth / 1e9, strict=True))
    found = fit(charges, seconds)
    fitted = [getattr(found.profile, name) for name in CONSTANTS]
    np.testing.assert_allclose(fitted, truth, rtol=0.05)
    np.testing.assert_allclose(list(found.predicted.values()), list(seconds.values()), rtol=0.02)


def test_what_is_not_told_stays_near_the_built_in_profile() -> None:
    """Probes that only charge for tuples say nothing of matrix products."""
    charges = np.zeros((50, len(CONSTANTS)))
    charges[:, 0] = 1e6
    found = fit(charges, {str(n): 4e-3 * ENGINE.fixed for n in range(50)})
    assert found.profile.fixed == pytest.approx(4 * ENGINE.fixed, rel=0.05)
    assert found.profile.gemm == pytest.approx(ENGINE.gemm)


def test_probes_leave_no_choice_of_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cheaper of two repartitions is no linear function of the constants."""
    probe = Probe(
        "an exchange of keys",
        "Y[i,k] = relu(H[i,k])\nZ[i,k] = relu(Y[i,k])",
        {"Y": ["i"], "Z": ["k"]},
        lambda rng: {"H": rng.random((300, 200))},
    )
    monkeypatch.setattr("ucle.command.calibrate.PROBES", (probe,))
    with pytest.raises(AssertionError, match="not linear"):
        calibrate(threads=1, rounds=1)


@pytest.mark.slow
def test_this_machine(measured: Calibration) -> None:
    assert list(measured.measured) == [probe.name for probe in PROBES]
    assert all(seconds > 0 for seconds in measured.measured.values())
    assert all(getattr(measured.profile, name) >= 0 for name in CONSTANTS)
    assert measured.profile.fixed > 0
    assert measured.profile.once


@pytest.mark.turns(3)
def test_programs_find_the_profile(home: Path, measured: Calibration) -> None:
    def profile() -> str:
        text = ucle.einsum_program("y[i] += A[i,j]", A=np.eye(3)).explain()
        return next(line for line in text.splitlines() if line.startswith("cost profile"))

    assert "duckdb" in profile()
    with pytest.raises(InputError, match="cannot be read"):
        find_profile("machine")
    assert save_profile(measured.profile) == profile_path() == home / "ucle" / "profile.json"
    assert load_profile() == find_profile(None) == find_profile("machine") == measured.profile
    assert "machine" in profile()
    assert find_profile("duckdb") == ENGINE
    profile_path().write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="ucle calibrate"):
        ucle.einsum_program("y[i] += A[i,j]", A=np.eye(3))


@pytest.mark.parametrize("value", ["abc", None, float("nan"), float("inf"), -1.0, True])
def test_values_that_no_cost_can_be_made_of(home: Path, value: object) -> None:
    values = {x: y for x, y in asdict(ENGINE).items() if y != math.inf}
    values |= {"name": "machine", "fixed": value}
    path = home / "p.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(InputError, match="fixed"):
        load_profile(path)
    path.write_text(json.dumps(values | {"fixed": 2}), encoding="utf-8")
    assert load_profile(path).fixed == 2
    del values["dot"]  # which there was not in an earlier model
    path.write_text(json.dumps(values | {"fixed": 2}), encoding="utf-8")
    with pytest.raises(InputError, match="missing"):
        load_profile(path)


def test_without_a_home_there_is_the_built_in_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(Path, "expanduser", nobody)
    assert find_profile(None) == ENGINE
    for function in (load_profile, lambda: save_profile(ENGINE)):
        with pytest.raises(InputError, match="home"):
            function()


def test_a_profile_that_cannot_be_written(home: Path) -> None:
    (home / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        save_profile(ENGINE, home / "file" / "p.json")


def test_a_bound_without_end_is_kept(tmp_path: Path) -> None:
    some = replace(ENGINE, kernel_bytes=1000.0)
    assert load_profile(save_profile(some, tmp_path / "p.json")) == some
    assert load_profile(save_profile(ENGINE, tmp_path / "q.json")) == ENGINE


def test_the_command(home: Path, monkeypatch: pytest.MonkeyPatch, measured: Calibration) -> None:
    monkeypatch.setattr("ucle.command.cli.measure_machine", lambda threads, watch: measured)
    outcome = CliRunner().invoke(main, ["calibrate"])
    assert outcome.exit_code == 0, outcome.output
    assert "predicted" in outcome.output
    assert load_profile() == measured.profile
    elsewhere = home / "other.json"
    CliRunner().invoke(main, ["calibrate", "--output", str(elsewhere)])
    assert load_profile(elsewhere) == measured.profile
