"""The door of engines that hold tables in partitions.

DuckDB in this process runs programs as a whole (`ucle.database.engine`). What spreads them is one
of these: it brings rows to where they are wanted and has each partition run our SQL on a DuckDB of
its own. `ucle.partitions.in_process` is the engine of tests, `ucle.spark` that of clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ucle.foundation.libraries import pa
from ucle.partitions.fragments import Fragment, FragmentInput


class PartitionEngine(Protocol):
    """What runs fragments.

    A frame is whatever the engine holds a table by: tuples of a relation, spread over partitions.
    """

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        ...

    def scan(self, incoming: FragmentInput) -> Any:
        """The frame of an input, as its rows lie: a table, an array or a dictionary."""
        ...

    def place(self, frame: Any, incoming: FragmentInput) -> Any:
        """Bring the rows of a frame to where they are wanted."""
        ...

    def map(self, fragment: Fragment, placed: Mapping[str, Any]) -> dict[str, Any]:
        """Run a fragment on every partition: the frames of what it makes, by name.

        Args:
            fragment: what runs.
            placed: the frames that it reads, by their names there.

        Raises:
            NaNError: the program has to run as `ucle.pipeline.replan.plan_annihilated` plans it.
            UcleError: a partition failed.
        """
        ...

    def collect(self, frame: Any) -> pa.Table:
        """All rows of a frame."""
        ...

    def close(self) -> None:
        """Let go of frames that are kept between fragments."""
        ...
