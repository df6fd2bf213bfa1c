"""The Spark that tests run on."""

from __future__ import annotations

import os

MASTER = os.environ.get("UCLE_SPARK_MASTER", "local-cluster[2,1,1024]")
