"""The bytes that the driver of a session accepts."""

from __future__ import annotations

import contextlib
import math
from typing import Any

UNITS = " kmgtp"
"""Units of sizes; each is 1024 of the one before."""


def most_result_bytes(spark: Any) -> float:
    """Return what the driver accepts of a job in bytes, ``spark.driver.maxResultSize``."""
    text = "1g"
    with contextlib.suppress(Exception):  # Spark Connect has no context
        text = spark.sparkContext.getConf().get("spark.driver.maxResultSize", text)
    return size_of(text) or math.inf


def size_of(text: str) -> float:
    """Return the bytes of a size as Spark writes it.

    >>> size_of("512m"), size_of("1g"), size_of("0")
    (536870912.0, 1073741824.0, 0.0)
    """
    number = text.lower().removesuffix("b")
    unit = number[-1:] if number[-1:] in UNITS else ""
    return float(number.removesuffix(unit)) * (1 << UNITS.index(unit) * 10 if unit else 1)
