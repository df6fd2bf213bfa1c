"""The Spark that tests run on."""

from __future__ import annotations

import os

MASTER = os.environ.get("UCLE_SPARK_MASTER", "local-cluster[2,1,1024]")

REMOTE = os.environ.get("UCLE_SPARK_REMOTE")
"""The address of a server of Spark Connect, such as ``sc://localhost:50051``: Spark's or Sail's."""
