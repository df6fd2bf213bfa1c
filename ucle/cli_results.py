"""What `ucle run` does with results: print their first rows, write files, make tables."""

from __future__ import annotations

from typing import Any

import click
import duckdb

from ucle.errors import DatabaseError
from ucle.explain import aligned
from ucle.results import Result, TensorRelation

Pairs = tuple[tuple[str, str], ...]
"""What options of the form ``NAME=VALUE`` hold."""


def store(
    result: Result,
    files: Pairs,
    tables: Pairs,
    *,
    replace: bool,
) -> None:
    """Write tensors to files and tables, and say so."""
    for name, path in files:
        result[name].save(path)
        click.echo(f"{name} {shape_text(result[name])} -> {path}")
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
        click.echo(f"{name} {shape_text(result[name])} -> table {target}")


def shape_text(tensor: TensorRelation) -> str:
    """The shape as a person writes it."""
    return " x ".join(map(str, tensor.shape)) or "scalar"


def preview(tensor: TensorRelation, rows: int) -> str:
    """The first tuples of a tensor relation in the order of their keys."""
    keys = [duckdb.ColumnExpression(name) for name in tensor.columns[:-1]]
    relation = tensor.relation
    found = (relation.sort(*keys) if keys else relation).limit(rows + 1).fetchall()
    shown = [[cell_text(value) for value in row] for row in found[:rows]]
    lines = [f"{tensor.name}: {shape_text(tensor)}, fill {tensor.fill:g}"]
    lines += aligned([tensor.columns, *shown])
    if len(found) > rows:
        lines.append("  ...")
    return "\n".join(lines)


def cell_text(value: Any, shown: int = 4) -> str:
    """A value of a tuple: a number, or the first numbers of an array and its length."""
    if not isinstance(value, list):
        return f"{value:g}" if isinstance(value, float) else str(value)
    numbers = ", ".join(f"{number:.4g}" for number in value[:shown])
    return f"[{numbers}]" if len(value) <= shown else f"[{numbers}, ...] ({len(value)} numbers)"
