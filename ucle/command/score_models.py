"""The commands ``ucle models``: what a model computes, and the scores of rows."""

from __future__ import annotations

from typing import Any

import click

from ucle.command.options import pairs, verbose_option, whole_number
from ucle.command.show_results import Pairs
from ucle.command.start import EXIT_CODES
from ucle.database.open_sessions import connect
from ucle.foundation.threads import import_late
from ucle.run.write_table import MODES

FILE = click.Path(exists=True, dir_okay=False)
size_option = click.option(
    "--size",
    "sizes",
    **pairs("AXIS=SIZE"),
    help="The size of an axis that the model leaves open, such as that of a sequence.",
)


@click.group(epilog=EXIT_CODES)
def models() -> None:
    """Models that were trained elsewhere, in ONNX files: what they compute, and scores of rows."""


@models.command(epilog=EXIT_CODES)
@click.argument("model", type=FILE)
@size_option
@verbose_option
def show(model: str, sizes: Pairs) -> None:
    """Print the inputs and the statements of a MODEL."""
    read = _read(model, sizes)
    for own in read.inputs:
        shape = " x ".join("rows" if size is None else str(size) for size in own.sizes)
        click.echo(f"# {own.name}: {shape}, {own.dtype}")
    click.echo(read.statements)


@models.command(epilog=EXIT_CODES)
@click.argument("model", type=FILE)
@click.argument("database", type=FILE)
@click.option(
    "--rows",
    required=True,
    metavar="TABLE",
    help="The table or view with the rows: a key column, and a column for each input.",
)
@click.option("--key", required=True, metavar="COLUMN", help="The column that identifies a row.")
@click.option(
    "--columns",
    metavar="NAMES",
    help="The columns that are the features, separated by commas, if the model has one input.",
)
@click.option("--into", default="scores", show_default=True, help="The table of the scores.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="error",
    show_default=True,
    help="What to do with an existing table.",
)
@size_option
@verbose_option
def score(
    model: str,
    database: str,
    rows: str,
    key: str,
    columns: str | None,
    into: str,
    mode: str,
    sizes: Pairs,
) -> None:
    """Score the rows of a table of a DATABASE with a MODEL.

    Each output is a table with a row for each key; those of several outputs are called
    INTO_OUTPUT.
    """
    read = _read(model, sizes)
    if columns is not None:
        names = tuple(name.strip() for name in columns.split(","))
        read = read.with_columns({own.name: names for own in read.inputs[:1]})
    with connect(database) as connection:
        program = read.program(rows, database=connection, rows=key)
        with program.execute(connection) as result:
            for output in read.outputs:
                table = into if len(read.outputs) == 1 else f"{into}_{output.name}"
                result[output.name].to_table(table, rows="all", mode=mode)
                click.echo(f"{output.name} in {table}")


def _read(model: str, sizes: Pairs) -> Any:
    """A model; what reads it is imported late, as no other command needs it."""
    return import_late("ucle.models.from_onnx").from_onnx(model, sizes=sizes_of(sizes))


def sizes_of(given: Pairs) -> dict[str, int]:
    """Sizes by the names of axes.

    Raises:
        click.BadParameter: one is not a number.
    """
    found: dict[str, int] = {}
    for name, value in given:
        number = whole_number(value)
        if number is None:
            raise click.BadParameter(f"{value!r} is not a size", param_hint="--size")
        found[name] = number
    return found
