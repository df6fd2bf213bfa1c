"""Peak memory of one execution of a program, and its prediction.

Linux reports the peak, and can reset it; on other systems there is none.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

from ucle.program import EinsumProgram

MB = 1e6


def status(name: str) -> float:
    """Read a line of Linux's status of the process, in MB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(x.split()[1]) * 1024 / MB for x in lines if x.startswith(name))


def forget_peak() -> float:
    """Free memory and reset the peak; return the MB of the process."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return status("VmRSS")


def peak_since(before: float) -> float:
    """MB that the process had more at its highest since `forget_peak` returned `before`."""
    return status("VmHWM") - before


def peak_of(run: Callable[[], object]) -> float:
    """Return the peak MB of the process during a run, above those before it."""
    before = forget_peak()
    run()
    return peak_since(before)


def predicted_seconds(program: EinsumProgram) -> float:
    """Return the optimiser's estimate for an execution in seconds; costs are in nanoseconds."""
    return sum(cost.total for cost in program.compiled.decomposed.costs.values()) / 1e9
