"""Properties of a Spark session that programs use: its partitions, memory and network."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from ucle.partitions.network import Network


@dataclass(frozen=True)
class Cluster:
    """Properties of a Spark session that programs use."""

    partitions: int
    memory: str | None
    network: Network

    @staticmethod
    def of(spark: Any) -> Cluster:
        """Read the properties from the settings of a session.

        ``spark.ucle.partitions`` is the number of partitions, by default that of all cores;
        ``spark.ucle.memoryLimit`` is the memory of DuckDB in each task, ``spark.ucle.gigabits`` the
        speed of the network.
        """

        def setting(name: str, otherwise: Any) -> Any:
            with contextlib.suppress(Exception):
                return spark.conf.get(name) or otherwise
            return otherwise

        cores = setting("spark.default.parallelism", None)
        if cores is None:
            with contextlib.suppress(Exception):  # Spark Connect has no context
                cores = spark.sparkContext.defaultParallelism
        if cores is None:
            cores = min(int(setting("spark.sql.shuffle.partitions", 8)), 64)
        partitions = int(setting("spark.ucle.partitions", cores))
        gigabits = float(setting("spark.ucle.gigabits", Network.gigabits))
        network = Network(workers=int(cores), gigabits=gigabits)
        return Cluster(partitions, setting("spark.ucle.memoryLimit", None), network)
