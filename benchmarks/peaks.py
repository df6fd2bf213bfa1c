"""What one execution of a program takes of a process's memory, and what is predicted of it.

Linux tells the peak, which can be set back: elsewhere there is none.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

from ucle.program import EinsumProgram

MB = 1e6


def status(name: str) -> float:
    """A line of what Linux knows of the process, in MB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(x.split()[1]) * 1024 / MB for x in lines if x.startswith(name))


def forget_peak() -> float:
    """Give back what is free, begin to look for the peak anew; MB that the process has."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return status("VmRSS")


def peak_of(run: Callable[[], object]) -> float:
    """MB that the process has more at its highest than before a run."""
    before = forget_peak()
    run()
    return status("VmHWM") - before


def predicted_seconds(program: EinsumProgram) -> float:
    """What the optimiser expects of an execution, whose prices are in nanoseconds."""
    return sum(cost.total for cost in program.compiled.decomposed.costs.values()) / 1e9
