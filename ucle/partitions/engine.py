"""The interface of engines that hold tables in partitions, and the run of a plan on one.

DuckDB in this process runs programs as a whole (`ucle.database.engine`). An engine of this
interface distributes them: it brings rows to their partitions, and has each partition run our SQL
on a DuckDB of its own. `ucle.partitions.in_process` is the engine for tests, `ucle.spark` the one
for clusters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from ucle.foundation.libraries import pa
from ucle.inputs.states import BoundInput
from ucle.partitions.fragments import DistributedPlan, Fragment, FragmentInput
from ucle.pipeline.artifacts import Compiled
from ucle.plan.sources import Dictionary
from ucle.plan.steps import Plan


class PartitionEngine(Protocol):
    """An engine that runs fragments.

    A frame is the engine's own handle of a table: tuples of a relation, spread over partitions.
    """

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        ...

    def scan(self, incoming: FragmentInput) -> Any:
        """Return the frame of an input, with rows as stored: a table, an array or a dictionary."""
        ...

    def place(self, frame: Any, incoming: FragmentInput) -> Any:
        """Bring the rows of a frame to their placement."""
        ...

    def map(self, fragment: Fragment, placed: Mapping[str, Any]) -> dict[str, Any]:
        """Run a fragment on every partition; return the frames of its results by name.

        Args:
            fragment: what runs.
            placed: the frames that it reads, by their names there.

        Raises:
            NaNError: the program has to run as `ucle.pipeline.replan.plan_annihilated` plans it.
            UcleError: a partition failed.
        """
        ...

    def collect(self, frame: Any) -> pa.Table:
        """Return all rows of a frame."""
        ...

    def dictionary(self, dictionary: Dictionary) -> pa.Table:
        """Return the ids of a dictionary, with their positions."""
        ...

    def read(self, compiled: Compiled, inputs: Mapping[str, BoundInput]) -> None:
        """Run a program on these inputs from now on.

        Args:
            compiled: the program.
            inputs: those of its `named_inputs`, of which some may have other data.
        """
        ...

    def compute(self, frames: Mapping[str, Any], wanted: Collection[str]) -> dict[str, pa.Table]:
        """Compute frames that are not computed yet; return the rows of those that are wanted.

        Raises:
            NaNError: as for `map`.
            UcleError: a partition failed.
        """
        ...

    def end_step(
        self,
        frames: Mapping[str, Any],
        wanted: Collection[str],
        carried: Collection[str],
        *,
        due: bool,
    ) -> tuple[dict[str, pa.Table], Mapping[str, Any]]:
        """Compute the frames of a step.

        Args:
            frames: all of them.
            wanted: those whose rows are returned.
            carried: those that the next step reads; those that it is to read in the place of some
                of them are returned, too.
            due: whether these are no longer to depend on earlier steps.

        Raises:
            NaNError: as for `map`.
            UcleError: a partition failed.
        """
        ...

    def close(self) -> None:
        """Release frames that are kept between fragments."""
        ...


def dictionary_tables(plan: Plan, engine: PartitionEngine) -> dict[str, pa.Table]:
    """Return the tables of a program's dictionaries, for its results."""
    return {each.name: engine.dictionary(each) for each in plan.dictionaries}


def run_distributed(
    plan: DistributedPlan, engine: PartitionEngine, held: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Run a distributed plan; return the frames of all outputs by name.

    Args:
        plan: what runs.
        engine: where it runs.
        held: frames of earlier runs, by the names that the plan has for them.

    Raises:
        NaNError: the program has to run as `ucle.pipeline.replan.plan_annihilated` plans it.
        UcleError: a partition failed.
    """
    frames: dict[str, Any] = dict(held or {})
    for fragment in plan.fragments:
        placed = {}
        for incoming in fragment.incoming:
            origin = incoming.origin
            frame = frames[origin] if isinstance(origin, str) else engine.scan(incoming)
            placed[incoming.name] = engine.place(frame, incoming)
        frames |= engine.map(fragment, placed)
    return {output: frames[name] for output, name in plan.outputs.items()}
