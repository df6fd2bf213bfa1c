"""Runs a distributed plan on an engine: fragment by fragment, with a shuffle before each."""

from __future__ import annotations

from typing import Any

from ucle.partitions.engine import PartitionEngine
from ucle.partitions.fragments import DistributedPlan


def run_distributed(plan: DistributedPlan, engine: PartitionEngine) -> dict[str, Any]:
    """Run a distributed plan; return the frames of all outputs by name.

    Raises:
        NaNError: the program has to run as `ucle.pipeline.replan.plan_annihilated` plans it.
        UcleError: a partition failed.
    """
    frames: dict[str, Any] = {}
    for fragment in plan.fragments:
        placed = {}
        for incoming in fragment.incoming:
            origin = incoming.origin
            frame = frames[origin] if isinstance(origin, str) else engine.scan(incoming)
            placed[incoming.name] = engine.place(frame, incoming)
        frames |= engine.map(fragment, placed)
    return {output: frames[name] for output, name in plan.outputs.items()}
