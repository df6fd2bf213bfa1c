"""What `ucle run` does with results: show their first rows, write files, make tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from ucle.errors import DatabaseError
from ucle.explain import aligned
from ucle.explain_json import type_document
from ucle.results import Result, TensorRelation

Pairs = tuple[tuple[str, str], ...]
"""What options of the form ``NAME=VALUE`` hold."""


@dataclass(frozen=True)
class Stored:
    """A tensor that was written to a file or made a table."""

    tensor: str
    shape: str
    file: str | None = None
    table: str | None = None

    def __str__(self) -> str:
        place = self.file if self.table is None else f"table {self.table}"
        return f"{self.tensor} {self.shape} -> {place}"

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"tensor": self.tensor, "file": self.file, "table": self.table}


def store(result: Result, files: Pairs, tables: Pairs, *, replace: bool) -> Iterator[Stored]:
    """Write tensors to files and tables, one at a time."""
    for name, path in files:
        result[name].save(path)
        yield Stored(name, shape_text(result[name]), file=path)
    for name, target in tables:
        try:
            result[name].to_table(target, replace=replace)
        except DatabaseError as error:
            if "already exists" in (error.found or ""):
                error = DatabaseError(
                    error.message,
                    where=f"--to-table {name}={target}",
                    found=error.found,
                    hint="--replace replaces a table",
                )
            raise error from None
        yield Stored(name, shape_text(result[name]), table=target)


def shape_text(tensor: TensorRelation) -> str:
    """The shape as a person writes it."""
    return " x ".join(map(str, tensor.shape)) or "scalar"


def preview(tensor: TensorRelation, rows: int) -> str:
    """The first tuples of a tensor relation in the order of their keys, as text."""
    found = _first(tensor, rows + 1)
    shown = [[cell_text(value) for value in row] for row in found[:rows]]
    lines = [f"{tensor.name}: {shape_text(tensor)}, fill {tensor.fill:g}"]
    lines += aligned([tensor.columns, *shown])
    if len(found) > rows:
        lines.append("  ...")
    return "\n".join(lines)


def preview_document(tensor: TensorRelation, rows: int) -> dict[str, Any]:
    """The same as JSON has it, with the whole arrays."""
    found = _first(tensor, rows + 1)
    return {
        "name": tensor.name,
        **type_document(tensor.type),
        "columns": list(tensor.columns),
        "rows": [list(row) for row in found[:rows]],
        "complete": len(found) <= rows,
    }


def _first(tensor: TensorRelation, rows: int) -> list[tuple[Any, ...]]:
    keys = [duckdb.ColumnExpression(name) for name in tensor.columns[:-1]]
    relation = tensor.relation
    return (relation.sort(*keys) if keys else relation).limit(rows).fetchall()


def cell_text(value: Any, shown: int = 4) -> str:
    """A value of a tuple: a number, or the first numbers of an array and its length."""
    if not isinstance(value, list):
        return f"{value:g}" if isinstance(value, float) else str(value)
    numbers = ", ".join(f"{number:.4g}" for number in value[:shown])
    return f"[{numbers}]" if len(value) <= shown else f"[{numbers}, ...] ({len(value)} numbers)"
