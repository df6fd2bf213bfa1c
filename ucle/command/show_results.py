"""Results of `ucle run`: show their first rows, write files, make tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb

from ucle.errors import ArgumentError, DatabaseError
from ucle.explain.columns import align_rows
from ucle.explain.json import type_document
from ucle.foundation.dataclasses import dataclass
from ucle.plan.forms import MAX_ROWS
from ucle.run.results import Result, TensorRelation

Pairs = tuple[tuple[str, str], ...]
"""The values of options of the form ``NAME=VALUE``."""


@dataclass(frozen=True)
class StoredOutput:
    """A tensor that was written to a file or made a table."""

    tensor: str
    shape: str
    file: str | None = None
    table: str | None = None

    def __str__(self) -> str:
        place = self.file if self.table is None else f"table {self.table}"
        return f"{self.tensor} {self.shape} -> {place}"

    def document(self) -> dict[str, Any]:
        """Return the fields of a JSON object."""
        return {"tensor": self.tensor, "file": self.file, "table": self.table}


@dataclass(frozen=True)
class WriteOptions:
    """The arguments with which tensors are written by `TensorRelation.to_table` and `save`."""

    keys: Pairs = ()
    on: Pairs = ()
    partition_by: Pairs = ()
    rows: str | None = None
    mode: str = "error"
    max_rows: int = MAX_ROWS

    def form(self, name: str) -> dict[str, Any]:
        """Columns and rows of a tensor."""
        return {"keys": _labels(self.keys, name), "rows": self.rows, "max_rows": self.max_rows}


def _labels(pairs: Pairs, name: str) -> list[str] | None:
    """The labels that an option names for a tensor."""
    listed = dict(pairs).get(name)
    return None if listed is None else [x.strip() for x in listed.split(",") if x.strip()]


def store(
    result: Result, files: Pairs, tables: Pairs, write_options: WriteOptions
) -> Iterator[StoredOutput]:
    """Write tensors to files and tables, one at a time."""
    for name, path in files:
        parts = _labels(write_options.partition_by, name)
        result[name].save(path, partition_by=parts, **write_options.form(name))
        yield StoredOutput(name, shape_text(result[name]), file=path)
    for name, target in tables:
        try:
            on = _labels(write_options.on, name)
            result[name].to_table(
                target, mode=write_options.mode, on=on, **write_options.form(name)
            )
        except DatabaseError as error:
            if "already exists" in (error.found or ""):
                error = DatabaseError(
                    error.message,
                    where=f"--to-table {name}={target}",
                    found=error.found,
                    hint="--mode replace replaces a table, append and upsert add to it",
                )
            raise error from None
        yield StoredOutput(name, shape_text(result[name]), table=target)


def shape_text(tensor: TensorRelation) -> str:
    """The shape as a person writes it."""
    return " x ".join(map(str, tensor.shape)) or "scalar"


def preview(tensor: TensorRelation, rows: int, write_options: WriteOptions) -> str:
    """The first rows of a tensor in the order of their keys, as text."""
    columns, first_rows = _first(tensor, rows + 1, write_options)
    shown = [[cell_text(value) for value in row] for row in first_rows[:rows]]
    lines = [f"{tensor.name}: {shape_text(tensor)}, fill {tensor.fill:g}"]
    lines += align_rows([columns, *shown])
    if len(first_rows) > rows:
        lines.append("  ...")
    return "\n".join(lines)


def preview_document(
    tensor: TensorRelation, rows: int, write_options: WriteOptions
) -> dict[str, Any]:
    """Return the preview as a JSON object, with whole arrays."""
    columns, first_rows = _first(tensor, rows + 1, write_options)
    return {
        "name": tensor.name,
        **type_document(tensor.type),
        "columns": columns,
        "rows": [list(row) for row in first_rows[:rows]],
        "complete": len(first_rows) <= rows,
    }


def _first(
    tensor: TensorRelation, rows: int, write_options: WriteOptions
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and first rows. Where there are too many to show by default, the fill is left out."""
    form = write_options.form(tensor.name)
    try:
        relation = tensor.shown(**form)
    except ArgumentError:
        if write_options.rows is not None:
            raise
        relation = tensor.shown(**{**form, "rows": "nonfill"})
    columns = list(relation.columns)
    keys = [duckdb.ColumnExpression(name) for name in columns[:-1]]
    return columns, (relation.sort(*keys) if keys else relation).limit(rows).fetchall()


def cell_text(value: Any, shown: int = 4) -> str:
    """A value of a tuple: a number, or the first numbers of an array and its length."""
    if not isinstance(value, list):
        return f"{value:g}" if isinstance(value, float) else str(value)
    numbers = ", ".join(f"{number:.4g}" for number in value[:shown])
    return f"[{numbers}]" if len(value) <= shown else f"[{numbers}, ...] ({len(value)} numbers)"
