"""Inputs of a program bound to their data: sources, statistics, types and bounds.

Takes the names and ranks that a program needs and the objects that a caller passed, looks at tables
through a session, and gives for each input a `BoundInput`. All checks on data happen here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ucle.database.engine_errors import EngineError, error_text
from ucle.database.facts import check_facts, known_facts
from ucle.database.session import Session
from ucle.database.table_names import find_relation
from ucle.errors import (
    BoundError,
    CoordinateError,
    InputError,
    LabelError,
    NameResolutionError,
    UcleError,
    ValueTypeError,
    did_you_mean,
)
from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.exact_numbers import exact_scalar
from ucle.foundation.names import unique_names
from ucle.inputs.column_types import Column
from ucle.inputs.columns import ANEW, check_columns, declared_shape, table_source
from ucle.inputs.csv_types import csv_types
from ucle.inputs.files import folder_columns
from ucle.inputs.inputs import Described, TableInput, describe, known_sizes
from ucle.ir.ranges import Values
from ucle.language.bounds import AxisBound
from ucle.plan.sources import (
    ArraySource,
    CsvFile,
    DataFile,
    InMemory,
    Origin,
    Source,
    TableName,
    TableSource,
)
from ucle.sqlgen import input_queries as sql
from ucle.sqlgen.database_queries import KEPT, SCHEMA, first_file_query, relations_query
from ucle.stats.measure import Checked
from ucle.stats.model import TensorStatistics, array_statistics, array_values


@dataclass(frozen=True)
class BoundInput:
    """One input: where it lies, what is known of it, and its data if that is in memory."""

    source: Source
    statistics: TensorStatistics
    bounds: tuple[AxisBound, ...]
    dtype: DType
    fill: Scalar
    values: Values
    """What the entries can be that are stored."""
    labels: tuple[str, ...]
    """Names of the axes in their first use."""
    dictionaries: Mapping[str, str] = field(default_factory=dict)
    """Names that the caller gave to the dictionaries of labels."""
    data: Any = None
    shape: tuple[int, ...] = ()
    """Bounds of the axes, once they are inferred."""
    kept: tuple[TableSource, ...] = ()
    """Tables that hold the same tensor in other layouts (`ucle.inputs.stored_layouts`)."""
    described: Described | None = None
    """What the caller said of it, for when its data has changed."""
    keep_in: str | None = None
    """The database in which `ucle.run.store_inputs` stores it in the layouts that are read."""

    @property
    def origin(self) -> str:
        """Where it lies, for messages."""
        return str(self.source.origin) if isinstance(self.source, TableSource) else "an array"

    @property
    def sources(self) -> tuple[Source, ...]:
        """All places from where the tensor can be read."""
        return (self.source, *self.kept)


def bind_inputs(
    session: Session,
    labels: Mapping[str, Sequence[str]],
    inputs: Mapping[str, Any],
    prefix: str,
    mode: str = "auto",
) -> dict[str, BoundInput]:
    """Bind every input of a program.

    Args:
        session: where tables are looked up.
        labels: for every input tensor the labels of its axes (their number is its rank).
        inputs: what the caller passed, by tensor name.
        prefix: names of temporarily registered tables start with it.
        mode: how to measure tables, one of `ucle.options.STATISTICS`.

    Raises:
        NameResolutionError: an input is missing, or one is passed that the program does not use.
        InputError: an unknown table or column, a wrong shape, bad data (see its subclasses).
    """
    if missing := [name for name in labels if name not in inputs]:
        raise NameResolutionError(
            f"nothing is passed for the tensor {missing[0]}",
            where=f"input {missing[0]}",
            expected="a table name, an array or another input for " + ", ".join(labels),
            found="inputs " + (", ".join(inputs) or "none"),
            hint=f"pass it as a keyword or in inputs: {missing[0]}=...",
        )
    if unused := [name for name in inputs if name not in labels]:
        raise NameResolutionError(
            f"the program does not use the input {unused[0]}",
            where=f"input {unused[0]}",
            expected="one of " + (", ".join(labels) or "no inputs"),
            found=unused[0],
            hint=did_you_mean(unused[0], labels),
        )
    places = unique_names(f"{name} in memory" for name in labels)
    bound = {}
    for (name, axes), place in zip(labels.items(), places, strict=True):
        described = describe(name, inputs[name], place)
        _check_shape(name, described, axes)
        bound[name] = (
            _bind_array(name, described, axes)
            if described.origin is None
            else _bind_table(session, name, described, axes, prefix, mode)
        )
    return bound


def _bind_array(name: str, described: Described, labels: Sequence[str]) -> BoundInput:
    array, dtype = described.data, described.dtype
    assert dtype is not None
    fill = _fill(name, described, dtype)
    bounds = tuple(AxisBound(n, True, f"input {name}, axis {a}") for a, n in enumerate(array.shape))
    return BoundInput(
        ArraySource(name, array.shape),
        array_statistics(array, fill),
        bounds,
        dtype,
        fill,
        array_values(array, fill, dtype),
        tuple(labels),
        data=array,
    )


def _bind_table(
    session: Session,
    name: str,
    described: Described,
    labels: Sequence[str],
    prefix: str,
    mode: str,
) -> BoundInput:
    assert described.origin is not None
    with registered(session, described, prefix):
        foreign = {**described.foreign, **_folders(session, described.origin)}
        source = _source(session, name, described, labels, prefix, foreign)
        if source.nesting and not source.dense:
            source = replace(source, dense=_shape_of_data(session, name, source, prefix))
        fill = _fill(name, described, source.dtype)
        measured = known_facts(session, name, source, fill, mode, prefix)
    return BoundInput(
        source,
        measured.statistics,
        _table_bounds(name, source, measured, described),
        source.dtype,
        fill,
        measured.values(source.dtype, fill),
        tuple(labels),
        dict(described.spec.dictionaries),
        described.data,
        described=described,
    )


def rebind_inputs(
    session: Session, inputs: Mapping[str, BoundInput]
) -> tuple[dict[str, BoundInput], dict[str, float]]:
    """Look again at inputs that lie in databases and files: at their sizes, with all checks.

    Returns:
        The inputs with the bounds that their data tells now, and how many entries each of those
        holds that was looked at.

    Raises:
        CoordinateError: a coordinate is NULL, negative or outside a bound that is stated.
        InputError: a table or a column is gone.
        ValueTypeError: a column has another type, or values are not finite where the program
            relies on it.
        UcleError: whatever `ucle.stats.measure` finds wrong.
    """
    rebound, entries = dict(inputs), {}
    for name, bound in inputs.items():
        source = bound.source
        if isinstance(source, TableSource) and source.from_database:
            rebound[name], entries[name] = _rebind(session, name, bound, source)
    return rebound, entries


def _rebind(
    session: Session, name: str, bound: BoundInput, source: TableSource
) -> tuple[BoundInput, float]:
    described = bound.described
    assert described is not None
    if isinstance(source.origin, CsvFile):  # it may have been written anew, without rows
        foreign = {**described.foreign, **_folders(session, source.origin)}
        typed = _typed(session, name, described, bound.labels, "", foreign)
        assert typed.origin is not None
        source = replace(source, origin=typed.origin)
    columns = table_columns(session, name, source)
    source, value = check_columns(name, source, columns)
    if source.nesting:
        shape = declared_shape(described.spec, value, source.nesting)
        source = replace(source, dense=shape or _shape_of_data(session, name, source, ""))
    measured = check_facts(session, name, source, bound.fill)
    if bound.values.finite and not measured.finite:
        raise ValueTypeError(
            "a value is not finite, and all were when the program was compiled",
            where=f"input {name}, {source.origin}, column {source.value}",
            expected="finite numbers",
            found="NaN or infinity",
            hint=ANEW,
        )
    most, known = measured.entries, bound.statistics.distinct
    made = replace(
        bound,
        source=source,
        bounds=_table_bounds(name, source, measured, described),
        values=measured.values(source.dtype, bound.fill),
        statistics=TensorStatistics(most, tuple(min(v, most) for v in known)),
        kept=(),
    )
    return made, most


def _fill(name: str, described: Described, dtype: DType) -> Scalar:
    """The fill of an input in its element type.

    Raises:
        ValueTypeError: the type cannot hold it.
    """
    fill = 0.0 if described.spec.fill is None else described.spec.fill
    if (held := exact_scalar(fill, dtype)) is None:
        raise ValueTypeError(
            "the fill is not of the tensor's element type",
            where=f"input {name}",
            expected=f"a fill that {dtype.value} can hold",
            found=repr(fill),
            hint="pass ucle.table(..., dtype=...)",
        )
    return held


def _table_bounds(
    name: str, source: TableSource, measured: Checked, described: Described
) -> tuple[AxisBound, ...]:
    sizes = known_sizes(described) or ()
    where = f"input {name}, {source.origin}"
    bounds = []
    for axis, size in enumerate(measured.sizes):
        column = source.keys[axis] if axis < len(source.keys) else source.value
        stated = sizes[axis] if axis < len(sizes) else None
        dense = axis >= len(source.keys)
        if dense and stated is not None and stated != size:
            raise _contradiction(f"{where}, column {column}", size, stated)
        if stated is not None and stated < size:
            raise CoordinateError(
                "a coordinate is outside its bound",
                where=f"{where}, column {column}",
                expected=f"coordinates below {stated}",
                found=f"coordinate {size - 1}",
                hint="ucle.table(bounds=...) takes a larger one, or None for what the data says",
            )
        exact = dense or stated is not None
        bounds.append(AxisBound(size if stated is None else stated, exact, f"{where}, {column}"))
    return tuple(bounds)


def _check_shape(name: str, described: Described, labels: Sequence[str]) -> None:
    """The shape that an array has and the bounds that its caller states fit each other."""
    exact, stated = described.exact, described.spec.bounds
    if exact is not None and len(exact) != len(labels):
        raise LabelError(
            f"the array has rank {len(exact)}",
            where=f"input {name}",
            expected=f"rank {len(labels)}: {name}[{','.join(labels)}]",
            found="shape " + " x ".join(map(str, exact)),
        )
    if stated is not None and len(stated) != len(labels):
        raise InputError(
            "the number of bounds is not the rank of the tensor",
            where=f"input {name}",
            expected=f"{len(labels)} bounds: {name}[{','.join(labels)}]",
            found=str(stated),
        )
    for axis, (size, bound) in enumerate(zip(exact or (), stated or (), strict=False)):
        if bound is not None and bound != size:
            raise _contradiction(f"input {name}, axis {axis}", size, bound)


def _contradiction(where: str, size: int, stated: int) -> BoundError:
    return BoundError(
        "the stated bound is not the size of the array",
        where=where,
        expected=f"{size}, as in the array",
        found=f"{stated} in table(bounds=...)",
    )


def input_dtype(session: Session, name: str, value: Any, labels: Sequence[str]) -> DType:
    """The element type of an input, for which the database is asked if it is a table.

    Raises:
        InputError: it cannot be read as a tensor.
    """
    described = describe(name, value, f"{name} in memory")
    if described.origin is None:
        assert described.dtype is not None
        return described.dtype
    with registered(session, described, ""):
        return _source(session, name, described, labels, "", described.foreign).dtype


def _source(
    session: Session,
    name: str,
    described: Described,
    labels: Sequence[str],
    prefix: str,
    foreign: Mapping[str, str],
) -> TableSource:
    """The columns of a relation that is there; an array's shape may be left open."""
    described = _typed(session, name, described, labels, prefix, foreign)
    assert described.origin is not None
    columns = table_columns(session, name, TableSource(described.origin, (), None), prefix)
    return table_source(name, described, columns, labels, foreign)


def _typed(
    session: Session,
    name: str,
    described: Described,
    labels: Sequence[str],
    prefix: str,
    foreign: Mapping[str, str],
) -> Described:
    """The input with the types of the columns that DuckDB would guess wrong."""
    if not isinstance(described.origin, CsvFile):
        return described
    columns = table_columns(session, name, TableSource(described.origin, (), None), prefix)
    types = csv_types(session, name, described, columns, labels, foreign)
    return replace(described, origin=replace(described.origin, types=types))


def _folders(session: Session, origin: Origin) -> dict[str, str]:
    """The columns that DuckDB makes of the folders of files."""
    if not isinstance(origin, DataFile):
        return {}
    path = origin.path
    if any(sign in path for sign in "*?["):
        files = session.fetch(first_file_query(path))
        path = str(files[0][0]) if files else path
    return folder_columns(path)


def table_columns(
    session: Session, name: str, source: TableSource, prefix: str = ""
) -> tuple[Column, ...]:
    """The columns of an input's relation.

    Raises:
        InputError: DuckDB cannot find or read it.
    """
    _check_exists(session, name, source.origin)
    try:
        rows = session.read(sql.describe_query(source, prefix), f"input {name}, {source.origin}")
    except UcleError as error:
        if not isinstance(error, InputError) or not isinstance(error.__cause__, EngineError):
            raise
        raise InputError(
            "DuckDB cannot read this table",
            where=f"input {name}, {source.origin}",
            expected="a table or view of the database, or the path of a Parquet or CSV file",
            found=error_text(error.__cause__).splitlines()[0],
        ) from error.__cause__
    return tuple(Column(row[0], row[1]) for row in rows)


def _check_exists(session: Session, name: str, origin: Origin) -> None:
    """Ask before trying: a query that fails aborts the transaction that is open."""
    if isinstance(origin, DataFile):
        plain = not any(sign in origin.path for sign in ("*", "?", "[", "://"))
        if plain and not Path(origin.path).exists():
            raise _unknown_relation(name, origin, "no such file", None)
    if not isinstance(origin, TableName):
        return
    found = find_relation(session, origin)
    kept = {(SCHEMA, table.name) for table in KEPT}
    if found is not None and (found.schema, found.name) not in kept:
        return
    known = session.fetch(relations_query())
    hint = did_you_mean(origin.parts[-1], {row[2] for row in known})
    raise _unknown_relation(name, origin, "no table or view of that name", hint)


def _unknown_relation(name: str, origin: Origin, found: str, hint: str | None) -> InputError:
    return InputError(
        "DuckDB cannot find this table",
        where=f"input {name}, {origin}",
        expected="a table or view of the database, or the path of a Parquet or CSV file",
        found=found,
        hint=hint,
    )


def _shape_of_data(
    session: Session, name: str, source: TableSource, prefix: str
) -> tuple[int, ...]:
    """The shape of the first array of a list column."""
    query = sql.first_value_query(source, prefix)
    rows = session.read(query, f"input {name}, {source.origin}")
    value = rows[0][0] if rows else None
    shape: list[int] = []
    while isinstance(value, list | tuple):
        shape.append(len(value))
        value = value[0] if value else None
    if len(shape) != source.nesting:
        raise ValueTypeError(
            "the first array does not tell a shape",
            where=f"input {name}, {source.origin}, column {source.value}",
            expected=f"lists {source.nesting} deep, none of them NULL or empty",
            found=repr(rows[0][0]) if rows else "an empty table",
            hint="pass ucle.table(..., shape=...)",
        )
    return tuple(shape)


@contextmanager
def registered_inputs(
    session: Session, inputs: Mapping[str, BoundInput], prefix: str
) -> Iterator[None]:
    """Registers all tables from memory for the time of a block, under prefixed names."""
    with ExitStack() as stack:
        for bound in inputs.values():
            if isinstance(bound.source, TableSource) and not bound.source.from_database:
                described = Described(TableInput(None), bound.source.origin, bound.data)
                stack.enter_context(registered(session, described, prefix))
        yield


@contextmanager
def registered(session: Session, described: Described, prefix: str) -> Iterator[None]:
    """Registers a table from memory for the time of a block, under a prefixed name."""
    if not isinstance(described.origin, InMemory):
        yield
        return
    name = prefix + described.origin.name
    session.register(name, described.data)
    try:
        yield
    finally:
        session.unregister(name)
