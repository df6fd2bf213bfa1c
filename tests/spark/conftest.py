"""A Spark of two workers of one core each; without PySpark and Java these tests are skipped."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import ELSEWHERE, MASTER, REMOTE, settings


@pytest.fixture(scope="session")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(event_log: Path) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="`make spark-test` runs it")
    if ELSEWHERE:
        yield sql.SparkSession.builder.remote(REMOTE).getOrCreate()
        return
    if shutil.which("java") is None:
        pytest.skip("`make spark-test` runs it: there is no Java")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    warnings.simplefilter("ignore", FutureWarning)
    if REMOTE is not None:
        # The server has these settings when it starts, and then refuses to change them.
        warnings.filterwarnings("ignore", "Failed to set", UserWarning)
        builder = sql.SparkSession.builder.remote(REMOTE).appName("ucle")
    else:
        builder = sql.SparkSession.builder.master(MASTER).appName("ucle")
    session = builder.config(map=settings(event_log)).getOrCreate()
    yield session
    session.stop()
