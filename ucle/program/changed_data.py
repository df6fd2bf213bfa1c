"""Inputs whose data has changed since a program was compiled."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ucle.compile.build import Build
from ucle.database.session import Database
from ucle.inputs.fingerprints import fingerprints


def find_changed_inputs(build: Build, besides: Collection[str] = ()) -> dict[str, Any]:
    """Return the inputs that were changed in place since a program was compiled, by name.

    Args:
        build: the program.
        besides: names of inputs that do not count.
    """
    marks = {x: mark for x, mark in build.marks.items() if x not in besides}
    given = {name: build.request.inputs[name] for name in marks}
    now = fingerprints(given)
    return {name: value for name, value in given.items() if now.get(name) != marks[name]}


def has_inputs(build: Build, inputs: Mapping[str, Any], database: Database) -> bool:
    """True if a program has these inputs, with the contents that it was compiled for."""
    own = build.request.inputs
    same = all(own[name] is value for name, value in inputs.items())
    return same and build.target.database is database and not find_changed_inputs(build)
