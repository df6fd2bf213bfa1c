"""The cost of moving tuples, in addition to that of computing.

Costs of steps are nanoseconds of one processor (`ucle.cost.prices`); so are those here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """Constants of a cluster.

    `workers` is the number of those that compute at once. A byte that is moved costs `byte` for
    writing and reading it, and is sent over a link of `gigabits` a second. `job` is the time that
    one stage of fragments takes to start, however small it is.
    """

    workers: int = 2
    gigabits: float = 10.0
    byte: float = 4.0
    job: float = 1.0e9

    def moved(self, size: float) -> float:
        """Nanoseconds for moving so many bytes, by all workers at once."""
        return self.fetched(size) / self.workers

    def fetched(self, size: float) -> float:
        """Nanoseconds for moving so many bytes through the link of one worker."""
        return size * (self.byte + 8.0 / self.gigabits)


NETWORK = Network()
"""A small cluster, with constants measured on Spark 4.3 with local workers."""
