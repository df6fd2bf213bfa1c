"""Random loops: a random program with statements for what replaces some of its inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ucle.testing.generate import Case

Array = np.ndarray[Any, Any]

SAME = {
    "f": ("0.5 * {x} + 0.25", "max({x}, 0.3)", "0.5 * {x}", "square({x})", "{x}"),
    "i": ("{x}", "0 - {x}", "max({x}, 1)", "{x} * 2"),
    "b": ("{x}", "not {x}"),
}
"""Functions of itself alone that an input may become, by kind of number."""


def with_carry(case: Case, seed: int) -> tuple[Case, dict[str, str]]:
    """The case with statements for what comes in the place of some inputs."""
    rng = np.random.default_rng([seed, 20])
    made = case.expected()
    lines, carry = [case.text], {}
    for name, array in case.arrays.items():
        kind = array.dtype.kind
        if kind not in SAME or array.dtype == np.float32 or rng.random() < 0.2:
            continue
        axes = ",".join(f"c{n}" for n in range(array.ndim))
        x = f"{name}[{axes}]"
        alike = [t for t, y in made.items() if y.shape == array.shape and y.dtype == array.dtype]
        if kind == "f" and alike and rng.random() < 0.8:
            other = f"{alike[rng.integers(len(alike))]}[{axes}]"
            text = rng.choice(
                [f"tanh({other})", f"0.5 * {x} + sigmoid({other})", f"{x} * sigmoid({other})"]
            )
        elif case.indexed and kind == "i":
            text = x  # they are places, and have to stay within the axis
        else:
            text = SAME[kind][rng.integers(len(SAME[kind]))].format(x=x)
        carry[name] = f"next_{name}"
        lines.append(f"next_{name}[{axes}] = {text}")
    return replace(case, text="\n".join(lines), outputs=None), carry


def is_tame(array: Array) -> bool:
    """True if numbers are small enough that a few more steps do not overflow."""
    return array.dtype.kind in "bi" or bool(np.isfinite(array).all() and (abs(array) < 1e6).all())
