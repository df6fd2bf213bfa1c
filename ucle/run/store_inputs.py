"""Storage of inputs in the layouts in which a program reads them, for this and later programs.

An input is stored in one layout, and converting it to another costs a repartition on each read (the
paper assumes that this is free; sparse_einsum.txt, section 7.2). With ``store=`` the conversion is
done once: a program that copies the input into the layout is run like any other, and its result
becomes a table of the schema ``ucle``, which `ucle.inputs.stored_layouts` finds again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ucle.database.data_versions import digest
from ucle.database.session import Session
from ucle.errors import DatabaseError
from ucle.foundation.logs import STORE
from ucle.foundation.names import unique_names
from ucle.inputs.dictionaries import Dictionaries
from ucle.inputs.states import PlacedInput
from ucle.inputs.stored_layouts import (
    Storable,
    choose_kept_layout,
    free_name,
    kept_source,
    note_kept,
    place_inputs,
)
from ucle.ir.layouts import RESULT, Decomposition, Layout, Level
from ucle.ir.tensor_types import NamedTensor
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.optimiser.choose_decomposition import check_memory, price_program
from ucle.optimiser.join_order import Decided
from ucle.optimiser.optimise import program_statistics
from ucle.optimiser.pricing import price
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled, Planned
from ucle.pipeline.replan import read_from
from ucle.pipeline.stages import plan_decided
from ucle.plan.forms import WrittenForm
from ucle.plan.sources import TableName, TableSource
from ucle.run.execute import execute_script
from ucle.run.results import TensorRelation
from ucle.run.script import script_of
from ucle.run.write_table import WriteTarget
from ucle.sqlgen.database_queries import SCHEMA, create_schema, drop_table
from ucle.sqlgen.sql_trees import key_columns

COPY = "copy"
"""The name of the vertex that copies an input."""


def keep_inputs(session: Session, compiled: Compiled, options: Options) -> Compiled:
    """Find inputs in the layouts that a program reads, and store those that are to be stored.

    Args:
        session: where the inputs are.
        compiled: the program.
        options: those it was compiled with; `store` selects the inputs to store.

    Returns:
        The program with the same decomposition, reading the tables that exist now.

    Raises:
        DatabaseError: a table cannot be created. Nothing is left of it.
    """
    inputs = place_inputs(session, compiled.inputs, options.store)
    for name, layout, order in _layouts_read(compiled):
        bound = inputs[name]
        tables = [source for source in bound.sources if isinstance(source, TableSource)]
        stored = Storable.of(bound)
        if stored is None or any(_serves(table, layout, bound) for table in tables):
            continue
        kept = _keep(session, compiled, name, stored, layout, order, options)
        inputs[name] = replace(bound, kept=(*bound.kept, kept))
    if all(bound.kept == compiled.inputs[name].kept for name, bound in inputs.items()):
        return compiled
    return read_from(compiled, inputs, options)


def _serves(table: TableSource, layout: Layout, bound: PlacedInput) -> bool:
    """True if a table stores an input in the layout and form in which it is read."""
    return table.layout == layout and table.kept_as == choose_kept_layout(bound, layout)


def _layouts_read(compiled: Compiled) -> Iterator[tuple[str, Layout, tuple[int, ...]]]:
    """Yield inputs, the layouts in which vertices need them, and the axes that order their rows.

    These are the promoted axes, grouping axes first.
    """
    decomposed = compiled.decomposed
    for vertex in compiled.program.vertices:
        for operand, layout in decomposed.needed_layouts(vertex):
            if operand.tensor not in compiled.inputs:
                continue
            grouped = [axis for axis in layout.promoted if operand.labels[axis] in vertex.labels]
            ungrouped = [axis for axis in layout.promoted if axis not in grouped]
            yield operand.tensor, layout, (*grouped, *ungrouped)


def _keep(
    session: Session,
    compiled: Compiled,
    name: str,
    stored: Storable,
    layout: Layout,
    order: tuple[int, ...],
    options: Options,
) -> TableSource:
    """Create the table of an input in a layout, with rows ordered by these axes, and its note."""
    of, blobs = digest(session, stored.source), choose_kept_layout(stored.bound, layout)
    table = TableName((stored.database, SCHEMA, free_name(session, stored, layout)))
    copy = _copy(compiled, name, replace(stored.bound, keep_in=None), layout, options)
    keys = key_columns(copy.program.by_name[COPY].tensor.type)
    script = script_of(copy.physical, session.capabilities)
    executed = execute_script(session, copy.inputs, script)
    with session.writing(f"store {name}"):
        try:
            read = copy.plan.outputs[COPY]
            relation = TensorRelation(
                COPY, read.type, read.layout, executed.outputs[COPY], session, executed.dictionaries
            )
            session.run(create_schema(stored.database), f"store {name}")
            ordered = tuple(keys[axis] for axis in order)
            target = WriteTarget(table.parts, "replace", (), f"store {name}", ordered)
            relation.write(WrittenForm(read.layout, "stored" if blobs is None else "kept"), target)
        finally:
            for temporary in executed.tables:
                temporary.drop()
        named = [keys[axis] for axis in layout.promoted]
        kept = kept_source(stored.bound, table, named, layout, blobs)
        if not note_kept(session, stored, table, kept, of):
            session.run(drop_table(table), f"store {name}")
            raise DatabaseError(
                "an input cannot be stored",
                where=f"store {name}",
                expected="a database that is open for writing, by nobody else at this moment, "
                "and has space on its disk",
                found=f"no note could be written to the schema {SCHEMA}",
                hint="close other connections to the database, or end their transactions",
            )
    STORE.info("stored %s (%s) as %s", name, stored.source.origin, table)
    return kept


def _copy(
    compiled: Compiled, name: str, bound: PlacedInput, layout: Layout, options: Options
) -> Planned:
    """Build the program that copies an input into a layout."""
    type_ = compiled.program.types[name]
    distinct = unique_names(label.name for label in type_.axes)
    labels = tuple(
        replace(label, name=name) for label, name in zip(type_.axes, distinct, strict=True)
    )
    tensor = NamedTensor(COPY, replace(type_, axes=labels))
    vertex = Vertex(tensor, (Operand(name, labels),), labels)
    program = Program((NamedTensor(name, type_),), (vertex,), (COPY,))
    statistics = program_statistics(program, {name: bound}, options)
    compressed = layout.compressed
    roles = () if compressed is None else (0, RESULT)
    listed = (
        (role, distinct[axis]) for role in roles for axis in layout.dense if axis == compressed
    )
    levels = tuple(Level.DENSE if level is Level.COMPRESSED else level for level in layout.levels)
    copied = Decomposition(tuple(distinct), levels, frozenset(listed), layout.tile)
    costed = price_program(program, {name: bound}, statistics, options)
    decomposed = price(costed, {COPY: copied})
    check_memory(costed, decomposed)
    decided = Decided(program, statistics, decomposed)
    return plan_decided({name: bound}, decided, Dictionaries(), options)
