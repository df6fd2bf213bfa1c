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
from cluster import MASTER, REMOTE, settings


@pytest.fixture(scope="session")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(event_log: Path) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="`make spark-test` runs it")
    if REMOTE is None and shutil.which("java") is None:
        pytest.skip("`make spark-test` runs it: there is no Java")
    if REMOTE is not None:
        yield sql.SparkSession.builder.remote(REMOTE).getOrCreate()
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    warnings.simplefilter("ignore", FutureWarning)
    builder = sql.SparkSession.builder.master(MASTER).appName("ucle")
    session = builder.config(map=settings(event_log)).getOrCreate()
    yield session
    session.stop()
