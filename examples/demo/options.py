"""Options of `ucle demo`. Light: it is imported before the rest of ucle."""

from __future__ import annotations

from pathlib import Path

from ucle.foundation.dataclasses import dataclass


@dataclass(frozen=True)
class DemoOptions:
    """Options of `ucle demo`; see its help."""

    database: Path
    force: bool = False
    limit: int | None = None
    iterations: int = 20
    time_limit: float | None = None
    all_sql: bool = False
    train: bool = False
