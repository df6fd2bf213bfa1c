"""Number the keys of results when a reader asks for positions.

In: the tables of an execution whose keys are coordinates (`ucle.plan.keep_coordinates`). Out: the
same tables and the dictionaries of their keys, as `ucle.database.temporary_tables.DeferredTable`:
each is made when its name is asked for. What writes coordinates reads the tables as they are.
"""

from __future__ import annotations

from functools import partial

from ucle.database.session import Session
from ucle.database.temporary_tables import DeferredTable, Temporary, TemporaryTable
from ucle.plan.relation_nodes import Read
from ucle.plan.steps import Plan
from ucle.run.execute import Executed
from ucle.sqlgen.numbered_keys import create_dictionary, create_numbered
from ucle.sqlgen.sql_trees import key_columns

Dictionaries = dict[str, TemporaryTable | DeferredTable]


def number_later(
    session: Session, plan: Plan, executed: Executed
) -> tuple[dict[str, Temporary], Dictionaries]:
    """Return the outputs and dictionaries of an execution, with keys that are numbered later."""
    dictionaries: Dictionaries = {**executed.dictionaries}
    for name, output in plan.unnumbered.items():
        stored = _table_of(executed.outputs[output])
        read = plan.outputs[output]
        (axis,) = (n for n in read.layout.promoted if read.type.axes[n].dictionary == name)
        key = key_columns(read.type)[axis]
        title = f"{stored.name}_{name}"
        create = partial(create_dictionary, title, stored.name, key)
        dictionaries[name] = DeferredTable(session, title, create, stored)
    outputs: dict[str, Temporary] = {}
    for output, made in executed.outputs.items():
        read = plan.outputs[output]
        axes = {
            n: dictionaries[axis.dictionary]
            for n, axis in enumerate(read.type.axes)
            if axis.dictionary is not None and axis.dictionary in plan.unnumbered
        }
        outputs[output] = _deferred(session, read, _table_of(made), axes) if axes else made
    return outputs, dictionaries


def _table_of(made: Temporary) -> TemporaryTable:
    assert isinstance(made, TemporaryTable), "keys of a table"
    return made


def _deferred(
    session: Session,
    read: Read,
    stored: TemporaryTable,
    axes: dict[int, TemporaryTable | DeferredTable],
) -> DeferredTable:
    name = f"{stored.name}_numbered"

    def create() -> str:
        names = {axis: each.name for axis, each in axes.items()}
        return create_numbered(name, stored.name, read.type, read.layout, names)

    return DeferredTable(session, name, create, stored)
