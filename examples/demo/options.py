"""What `ucle demo` may be told. Light: it is there before the rest of ucle is imported."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DemoOptions:
    """What `ucle demo` may be told; see its help."""

    database: Path
    force: bool = False
    limit: int | None = None
    iterations: int = 20
    time_limit: float | None = None
    all_sql: bool = False
    train: bool = False
