"""Cost profiles by name: the built-in ones, and the one that `ucle calibrate` stores."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ucle.errors import InputError, did_you_mean
from ucle.foundation.atomic_files import fresh_file
from ucle.plan.prices import ENGINE, PROFILES, Profile

MACHINE = "machine"
"""The name of this machine's profile."""

NAMES = (*PROFILES, MACHINE)

BOUNDS = ("kernel_bytes", "spread")
"""The constants that are left out of the file if they are infinite."""

UNREACHABLE = (OSError, RuntimeError)
"""The errors of file access, and of `Path.expanduser` if there is no home."""


def find_profile(profile: str | Profile | None, own: Profile = ENGINE) -> Profile:
    """Return a profile by name; by default that of this machine, or else the engine's own.

    Args:
        profile: its name, or the profile itself.
        own: the engine's profile if nothing was measured.

    Raises:
        InputError: no profile has that name, or this machine's profile cannot be read.
    """
    if isinstance(profile, Profile):
        return profile
    if profile is None:
        return load_profile() if _exists() else own
    if profile == MACHINE:
        return load_profile()
    if profile not in PROFILES:
        raise InputError(
            "unknown cost profile",
            where="profile",
            expected="one of " + ", ".join(NAMES),
            found=repr(profile),
            hint=did_you_mean(str(profile), NAMES),
        )
    return PROFILES[profile]


def _exists() -> bool:
    """Return whether this machine has a readable profile; a user without a home has none."""
    try:
        return profile_path().exists()
    except UNREACHABLE:
        return False


def profile_path() -> Path:
    """Return the path of this machine's profile, which `ucle calibrate` writes."""
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "ucle" / "profile.json"


def save_profile(profile: Profile, path: Path | None = None) -> Path:
    """Write a profile as JSON; by default to the path where programs look for it.

    Raises:
        InputError: the file cannot be written.
    """
    values = {k: v for k, v in asdict(profile).items() if v != math.inf}
    try:
        path = path or profile_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh_file(path) as file:
            file.write((json.dumps(values, indent=2) + "\n").encode())
    except UNREACHABLE as error:
        raise InputError(
            "the profile cannot be written",
            where=str(path or "the profile of this machine"),
            expected="a file in a folder that may be written to",
            found=f"{type(error).__name__}: {error}",
            hint="name another file, as in `ucle calibrate --output FILE`",
        ) from error
    return path


def load_profile(path: Path | None = None) -> Profile:
    """Read a profile that `save_profile` has written.

    Raises:
        InputError: the file is missing or damaged.
    """
    try:
        path = path or profile_path()
        return _check_profile(json.loads(path.read_text(encoding="utf-8")))
    except (*UNREACHABLE, ValueError) as error:
        raise InputError(
            "the profile of this machine cannot be read",
            where=str(path or "the profile of this machine"),
            expected="a file that `ucle calibrate` has written",
            found=f"{type(error).__name__}: {error}",
            hint="run `ucle calibrate`",
        ) from error


def _check_profile(values: Any) -> Profile:
    """Return a profile of the given values; they must be valid costs: finite and not negative."""
    if not isinstance(values, dict):
        raise ValueError("expected names and values")
    kinds = {f.name: str(f.type) for f in fields(Profile)}
    # A profile that lacks a constant is older than this model.
    needed = [
        name for name, kind in kinds.items() if kind in ("str", "float") and name not in BOUNDS
    ]
    if unknown := sorted(values.keys() - kinds.keys()):
        raise ValueError(f"{unknown[0]} is not a constant of the cost model")
    for name, value in values.items():
        match kinds[name]:
            case "str":
                right = isinstance(value, str)
            case "bool":
                right = isinstance(value, bool)
            case _:
                number = isinstance(value, int | float) and not isinstance(value, bool)
                right = number and math.isfinite(value) and value >= 0
        if not right:
            raise ValueError(f"{name} is {value!r}")
    if missing := [name for name in needed if name not in values]:
        raise ValueError(f"{missing[0]} is missing")
    return Profile(**values)
