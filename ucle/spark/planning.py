"""How Spark plans the steps of loops.

Adaptive execution plans a query again after each shuffle, which takes a job for each, and has both
plans inside the plan of a table that Spark keeps. Steps state their partitions, and gain nothing by
it. The plan of a step would contain those of all steps before it, with the rows that came from the
driver, and Spark compares plans with those of all tables that it keeps. So a step reads the state
as rows without a plan.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

UNITS = " kmgtp"
"""Units of sizes; each is 1024 of the one before."""

SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.localRelationThreshold": "0",
}
"""Settings of the session that plans steps."""


def session_for_steps(spark: Any) -> Any:
    """Return a session with the settings and data of another, but without adaptive execution.

    Servers that offer no such session, as with Spark Connect, plan steps in the session itself.
    """
    with contextlib.suppress(Exception):
        java = spark._jsparkSession.cloneSession()
        own = type(spark)(spark.sparkContext, java)
        for name, value in SETTINGS.items():
            own.conf.set(name, value)
        return own
    return spark


def without_plan(data: Any, spark: Any) -> Any:
    """Return the rows of a computed DataFrame of classic Spark, without the plan that made them.

    Args:
        data: the DataFrame.
        spark: the session that plans what reads it.
    """
    java = data._jdf
    # `toRdd` would hand on the plan, too, which Spark shows within that of the next step.
    rows = java.queryExecution().executedPlan().execute()
    return type(data)(
        spark._jsparkSession.internalCreateDataFrame(rows, java.schema(), False), spark
    )


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
