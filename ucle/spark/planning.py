"""How Spark plans the steps of loops.

Adaptive execution plans a query again after each shuffle, which takes a job for each, and has both
plans inside the plan of a table that Spark keeps. The plan of a step contains those of all steps
before it, so that it would double from step to step. Steps state their partitions, and gain nothing
by it.
"""

from __future__ import annotations

import contextlib
from typing import Any


def session_for_steps(spark: Any) -> Any:
    """Return a session with the settings and data of another, but without adaptive execution.

    Servers that offer no such session, as with Spark Connect, plan steps in the session itself.
    """
    with contextlib.suppress(Exception):
        java = spark._jsparkSession.cloneSession()
        own = type(spark)(spark.sparkContext, java)
        own.conf.set("spark.sql.adaptive.enabled", "false")
        return own
    return spark


def without_plan(data: Any) -> Any:
    """Return the rows of a computed DataFrame of classic Spark, without the plan that made them.

    Spark can still compute lost partitions again.
    """
    session = data.sparkSession
    frame, java = data._jdf, session._jsparkSession
    rows = frame.queryExecution().toRdd()
    return type(data)(java.internalCreateDataFrame(rows, frame.schema(), False), session)
