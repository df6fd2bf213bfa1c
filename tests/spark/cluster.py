"""The Spark that tests run on."""

from __future__ import annotations

import os
from pathlib import Path

MASTER = os.environ.get("UCLE_SPARK_MASTER", "local-cluster[2,1,1024]")

REMOTE = os.environ.get("UCLE_SPARK_REMOTE")
"""The address of a server of Spark Connect, such as ``sc://localhost:50051``: Spark's or Sail's.

A master such as ``local-cluster[2,1,1024]`` has a server of Spark's own started here.
"""

ELSEWHERE = REMOTE is not None and "://" in REMOTE
"""True if the server was started by someone else, and notes no events here."""


def settings(log: Path) -> dict[str, str]:
    """Settings of a session on this machine, which writes an event log to a folder."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.sql.warehouse.dir": str(log.with_name("warehouse")),
        "spark.executor.memory": "1g",
        # Every executor imports ucle: it writes byte code, where an installed package has some.
        "spark.executorEnv.PYTHONDONTWRITEBYTECODE": "",
    }
