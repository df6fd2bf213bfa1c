"""Several Parquet files as one table, whose columns fit the values of all of them.

DuckDB takes the types of the first file and casts the others to them, 0.25 to 0 and 5 to true. This
module compares the schemas of all files, which reads no data. If the columns that hold a tensor
have different types, they are read as the union of these types, lazily as before, if that type
represents every value. Integers beside floats are checked, unless the caller declares floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ucle.database.session import Session
from ucle.errors import InputError, ValueTypeError
from ucle.foundation.dtypes import DType
from ucle.foundation.names import fold_name
from ucle.inputs.column_types import (
    EXACT_IN,
    INTEGER_TYPES,
    Column,
    element_of,
    nesting,
    value_type,
)
from ucle.inputs.table_input import TableInput
from ucle.inputs.wide_tables import read_columns
from ucle.plan.sources import ParquetFile
from ucle.sqlgen import file_queries as sql

Schema = tuple[Column, ...]


def is_pattern(path: str) -> bool:
    """True if a path is a glob pattern."""
    return any(sign in path for sign in "*?[")


def united_parquet(
    session: Session,
    name: str,
    origin: ParquetFile,
    spec: TableInput,
    labels: Sequence[str],
    columns: Sequence[Column],
    foreign: Mapping[str, str],
) -> tuple[ParquetFile, DType | None]:
    """The files of a pattern as they are read, and the element type if it is not the union's.

    Args:
        session: where the files are read.
        name: the tensor, for messages.
        origin: the files.
        spec: the caller's options for them.
        labels: labels of the tensor's axes.
        columns: the columns of the first file, and the columns from folder names.
        foreign: columns that the user did not put into the data, with a description of each.

    Raises:
        InputError: files have different columns, or no type fits a column in all files.
    """
    where = f"input {name}, {origin}"
    schemas = _schemas(session, origin.path, where)
    kinds: dict[Schema, str] = {}
    for file, schema in schemas.items():
        kinds.setdefault(schema, file)
    if len(kinds) < 2:
        return origin, None
    _check_names(kinds, spec, where)
    keys, values = read_columns(spec, columns, labels, where, foreign)
    own = {fold_name(column.name) for schema in kinds for column in schema}
    read = [x for x in (*keys, *values) if fold_name(x.name) in own]
    types = {column.name: _types(kinds, column.name, where) for column in read}
    if all(len(each) == 1 for each in types.values()):
        return origin, None
    rows = session.read(sql.union_query(origin.path), where)
    union = {fold_name(row[0]): str(row[1]) for row in rows}
    dtype = None
    for column in read:
        files, type_ = types[column.name], union[fold_name(column.name)]
        if len(files) == 1:
            continue
        if column not in values:
            _check_keys(files, column.name, where)
            continue
        own_dtype = _check_values(files, type_, column.name, where)
        dtype = None if spec.columns_as is not None else own_dtype
        stated = spec.dtype or own_dtype or value_type(type_)
        for file, schema in schemas.items():
            each = _type_in(schema, column.name) or ""
            _check_exact(session, file, column.name, each, type_, stated, spec, where)
    return replace(origin, united=True), dtype


def _schemas(session: Session, pattern: str, where: str) -> dict[str, Schema]:
    """Read the columns of each file."""
    nodes: dict[str, list[tuple[str, int, str]]] = {}
    for file, node, children, type_ in session.read(sql.schemas_query(pattern), where):
        nodes.setdefault(str(file), []).append((str(node), int(children or 0), str(type_ or "")))
    return {file: tuple(_top(each)) for file, each in nodes.items()}


def _top(nodes: Sequence[tuple[str, int, str]]) -> list[Column]:
    """The top-level columns among the nodes of a schema, whose first node is the root."""
    columns, open_ = [], 0
    for name, children, type_ in nodes[1:]:
        if not open_:
            columns.append(Column(name, type_))
        open_ += children - bool(open_)
    return columns


def _type_in(schema: Schema, name: str) -> str | None:
    return next((x.type for x in schema if fold_name(x.name) == fold_name(name)), None)


def _types(kinds: Mapping[Schema, str], name: str, where: str) -> dict[str, str]:
    """The types of a column, each with one file that has it."""
    types: dict[str, str] = {}
    for schema, file in kinds.items():
        type_ = _type_in(schema, name)
        if type_ is None:
            raise InputError(
                f"a file of the pattern has no column {name!r}",
                where=where,
                expected=f"the column in every file, as in {next(iter(types.values()), 'others')}",
                found=f"{file} with {', '.join(column.name for column in schema)}",
            )
        types.setdefault(type_, file)
    return types


def _check_names(kinds: Mapping[Schema, str], spec: TableInput, where: str) -> None:
    """Check that files have the same columns, unless the caller names the columns to read."""
    if spec.columns is not None and (spec.value is not None or spec.values is not None):
        return
    (first, file), *others = kinds.items()
    names = {fold_name(column.name) for column in first}
    for schema, other in others:
        if {fold_name(column.name) for column in schema} != names:
            raise InputError(
                "the files of a pattern have different columns",
                where=where,
                expected=f"the columns of {file}: {', '.join(column.name for column in first)}",
                found=f"{other} with {', '.join(column.name for column in schema)}",
                hint="name the columns that all have: ucle.table(pattern, columns, value)",
            )


def _list_types(types: Mapping[str, str]) -> str:
    return ", ".join(f"{type_} in {file}" for type_, file in types.items())


def _check_keys(types: Mapping[str, str], name: str, where: str) -> None:
    if any(type_ not in INTEGER_TYPES for type_ in types):
        raise ValueTypeError(
            "a key column has different types in the files of a pattern",
            where=f"{where}, column {name}",
            expected="one type, or integers, in all files",
            found=_list_types(types),
            hint="write the files again with one type, or use one input for each type",
        )


def _check_values(types: Mapping[str, str], union: str, name: str, where: str) -> DType | None:
    """Check that values are numbers in all files; return their type if not that of the union."""
    kinds = [value_type(type_) for type_ in types]
    depths = {nesting(type_) for type_ in (*types, union)}
    if None in kinds or len(depths) > 1 or value_type(union) is None:
        raise ValueTypeError(
            "the value column has different types in the files of a pattern",
            where=f"{where}, column {name}",
            expected="numbers, or lists of numbers, in all files",
            found=_list_types(types),
            hint="write the files again with one type, or use one input for each type",
        )
    wide = any(each is DType.INT64 and element_of(type_) not in EXACT_IN["FLOAT"]
               for each, type_ in zip(kinds, types, strict=True))  # fmt: skip
    wide |= any(element_of(type_).startswith("DECIMAL") for type_ in types)
    # NumPy's promotion of int32 and float32 is float64.
    return DType.FLOAT64 if wide and value_type(union) is DType.FLOAT32 else None


def _check_exact(
    session: Session,
    file: str,
    name: str,
    type_: str,
    union: str,
    dtype: DType | None,
    spec: TableInput,
    where: str,
) -> None:
    """Check that the type in which a file is read represents all of its values exactly.

    Raises:
        ValueTypeError: a value would be rounded, and the caller does not declare floats.
    """
    element, wide = element_of(type_), element_of(union)
    depth, floats = nesting(type_), dtype is not None and dtype.kind in "fc"
    if type_ == union and not (floats and element in INTEGER_TYPES):
        return
    if element in EXACT_IN.get(wide, ()) or element in ("BOOLEAN", "FLOAT"):
        return
    if value_type(type_) is value_type(union) and wide != "FLOAT":
        return
    if spec.dtype is not None and spec.dtype.kind in "fc" and wide != "FLOAT":
        return
    brackets = "[]" * depth
    read = [union] + (["DOUBLE" + brackets] if floats and element in INTEGER_TYPES else [])
    own = element + brackets
    rows = session.read(sql.rounded_query(file, name, [*read, own]), where)
    if rows:
        row, value = rows[0]
        raise ValueTypeError(
            "a number does not fit the type that the values of all files have",
            where=f"{where}, column {name}",
            expected=f"numbers of {wide}, as other files of the pattern hold them",
            found=f"{value} in row {row} of {file}, where the column is {type_}",
            hint="ucle.table(..., dtype=float) rounds such numbers"
            if wide != "FLOAT"
            else "write the files again with one type",
        )
