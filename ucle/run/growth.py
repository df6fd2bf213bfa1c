"""States that outgrow their plan: a graph search starts at one node and ends with all of them.

A loop is planned for the data that its inputs hold at the start. After its 1st, 2nd, 4th, ... step
the tuples of the state are counted. Where there are many more than the plan assumed, a
decomposition is chosen again for that number. The results of a step are the same with either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ucle.database.session import Session
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.pipeline.replan import plan_for_statistics
from ucle.run.results import TensorRelation
from ucle.sqlgen.script import array_bytes_query, count_tuples_query, sql_text
from ucle.stats.model import TensorStatistics
from ucle.udf_kernels.compressed import estimate_entries

GROWTH = 8
"""Growth in entries over the planned number from which on the program is planned again."""


def is_looked_at(steps: int) -> bool:
    """True if the state is checked after so many steps.

    >>> [n for n in range(20) if is_looked_at(n)]
    [1, 2, 4, 8, 16]
    """
    return steps > 0 and steps & (steps - 1) == 0


def steps_to_look(steps: int) -> int:
    """The number of steps after so many until the state is checked.

    >>> [steps_to_look(n) for n in range(9)]
    [1, 1, 2, 1, 4, 3, 2, 1, 8]
    """
    return int(1 << steps.bit_length()) - steps


def replan_outgrown(
    session: Session, compiled: Compiled, state: Mapping[str, TensorRelation], options: Options
) -> Compiled | None:
    """Plan the program for the current state; None where the plan is still right.

    Args:
        session: the session that holds the state.
        compiled: the program as it is planned.
        state: tensors by the inputs that they replace.
        options: with which it was compiled.

    Raises:
        UcleError: as `ucle.optimiser.choose_decomposition.decompose`.
    """
    if options.decomposition != "auto":
        return None
    known = {name: compiled.inputs[name].statistics for name in state if name in compiled.inputs}
    grown = {
        name: now
        for name, before in known.items()
        if (now := _statistics(session, state[name], before)) is not None
    }
    if not grown:
        return None
    inputs = {
        name: replace(bound, statistics=grown.get(name, bound.statistics))
        for name, bound in compiled.inputs.items()
    }
    return plan_for_statistics(compiled, inputs, options)


def _statistics(
    session: Session, tensor: TensorRelation, before: TensorStatistics
) -> TensorStatistics | None:
    """T and V of a state that has outgrown its plan; None where it has not, or cannot be told.

    Dense arrays without keys are one tuple, however many entries they have.
    """
    layout, type_ = tensor.layout, tensor.type
    if layout.compressed is not None:
        return _of_lists(session, tensor, before)
    if not layout.plain or not layout.promoted:
        return None
    size = type_.dense_size(layout)
    table, _ = tensor.table.place
    keys = [tensor.columns[axis] for axis in layout.promoted]
    ((tuples,),) = session.fetch(sql_text(count_tuples_query(table, [])))
    if tuples * size <= GROWTH * max(before.entries, 1):
        return None
    ((_, *counts),) = session.fetch(sql_text(count_tuples_query(table, keys)))
    distinct = [float(length) for length in type_.shape]
    for axis, count in zip(layout.promoted, counts, strict=True):
        distinct[axis] = float(count)
    return TensorStatistics(float(tuples * size), tuple(distinct))


def _of_lists(
    session: Session, tensor: TensorRelation, before: TensorStatistics
) -> TensorStatistics | None:
    """The same of compressed arrays, whose bytes tell how many entries they have."""
    layout, type_ = tensor.layout, tensor.type
    table, values = tensor.table.place
    ((arrays, size),) = session.fetch(sql_text(array_bytes_query(table, values)))
    entries = estimate_entries(arrays, type_.shape[layout.row], size or 0, type_.dtype.bytes)
    if entries <= GROWTH * max(before.entries, 1):
        return None
    return TensorStatistics(entries, tuple(min(float(x), entries) for x in type_.shape))
