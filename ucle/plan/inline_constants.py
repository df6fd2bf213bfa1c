"""Small arrays from memory, written into the statements that read them."""

from __future__ import annotations

from dataclasses import replace

from ucle.plan.circumstances import Circumstances
from ucle.plan.steps import Constant, Load, Plan, Role, Step


def inline_constants(plan: Plan, circumstances: Circumstances) -> Plan:
    """Write out arrays that are read as one small tuple.

    A table from memory takes a millisecond to hand over and to take back.
    """

    def written(step: Step) -> Step:
        load = step.relation
        if not isinstance(load, Load) or load.layout.promoted or load.layout.scalar:
            return step
        if load.layout.compressed is not None:
            return step
        data = circumstances.constants.get(load.source.tensor)
        if data is None:
            return step
        return replace(step, role=Role.VIEW, relation=Constant(data, load.type, load.layout))

    return replace(plan, steps=tuple(map(written, plan.steps)))
