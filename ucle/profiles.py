"""Cost profiles by name: those built in, and the one that `ucle calibrate` keeps for a machine."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, fields
from pathlib import Path

from ucle.cost import ENGINE, PROFILES, Profile
from ucle.errors import InputError

MACHINE = "machine"
"""Name of the profile of this machine."""

NAMES = (*PROFILES, MACHINE)


def find_profile(profile: str | Profile | None) -> Profile:
    """A profile by name; by default that of this machine, or else the built-in one.

    Raises:
        InputError: there is none of that name, or that of the machine cannot be read.
    """
    if isinstance(profile, Profile):
        return profile
    if profile is None:
        return load_profile() if profile_path().exists() else ENGINE
    if profile == MACHINE:
        return load_profile()
    if profile not in PROFILES:
        raise InputError(
            "unknown cost profile",
            where="profile",
            expected="one of " + ", ".join(NAMES),
            found=repr(profile),
        )
    return PROFILES[profile]


def profile_path() -> Path:
    """Where `ucle calibrate` keeps the profile of this machine, and programs look for it."""
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "ucle" / "profile.json"


def save_profile(profile: Profile, path: Path | None = None) -> Path:
    """Write a profile as JSON; by default to where programs look for it."""
    path = path or profile_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    values = {k: v for k, v in asdict(profile).items() if v != math.inf}
    partial.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    partial.replace(path)
    return path


def load_profile(path: Path | None = None) -> Profile:
    """Read a profile that `save_profile` has written.

    Raises:
        InputError: there is none, or it is damaged.
    """
    path = path or profile_path()
    known = {f.name for f in fields(Profile)}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return Profile(**{k: v for k, v in values.items() if k in known})
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            "the profile of this machine cannot be read",
            where=str(path),
            expected="a file that `ucle calibrate` has written",
            found=f"{type(error).__name__}: {error}",
            hint="run `ucle calibrate`",
        ) from error
