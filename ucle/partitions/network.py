"""What it costs to move tuples, beside what it costs to compute.

Costs of steps are nanoseconds of one processor (`ucle.cost.prices`); so are those here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """Constants of a cluster.

    `workers` are those that compute at once. A byte that is moved costs `byte`, written, sent over
    a link of `gigabits` a second and read again; `job` is what one stage of fragments takes to
    start, however small it is.
    """

    workers: int = 2
    gigabits: float = 10.0
    byte: float = 4.0
    job: float = 1.0e9

    def moved(self, size: float) -> float:
        """Nanoseconds in which so many bytes are moved, by all workers at once."""
        return self.fetched(size) / self.workers

    def fetched(self, size: float) -> float:
        """Nanoseconds in which so many bytes are moved through the link of one worker."""
        return size * (self.byte + 8.0 / self.gigabits)


NETWORK = Network()
"""Of a small cluster, with what was measured on Spark 4.3 with local workers."""
