"""The commands ``ucle models``: what a model computes, scores of rows, and programs as models."""

from __future__ import annotations

from typing import Any

import click

from ucle.command.options import (
    compile_file,
    pairs,
    program_options,
    sizes_of,
    verbose_option,
)
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


stored_option = click.option(
    "--stored",
    is_flag=True,
    help="MODEL is the name of a model that `ucle models store` has put into the database.",
)
version_option = click.option(
    "--version", metavar="TEXT", help="The version of a stored model; the newest by default."
)


@click.group(epilog=EXIT_CODES)
def models() -> None:
    """Show, store or score with models in ONNX files, or export a program as one."""


@models.command(epilog=EXIT_CODES)
@click.argument("model", type=FILE)
@size_option
@verbose_option
def show(model: str, sizes: Pairs) -> None:
    """Print the inputs and the statements of MODEL."""
    read = _read(model, sizes)
    for own in read.inputs:
        shape = " x ".join("rows" if size is None else str(size) for size in own.sizes)
        click.echo(f"# {own.name}: {shape}, {own.dtype}")
    click.echo(read.statements)


@models.command(epilog=EXIT_CODES)
@click.argument("model", type=FILE)
@click.option(
    "--database",
    "-d",
    type=click.Path(dir_okay=False),
    required=True,
    help="The DuckDB file to store it in; it is created if it does not exist.",
)
@click.option("--name", required=True, metavar="TEXT", help="The name of the stored model.")
@click.option(
    "--version", default="1", show_default=True, metavar="TEXT", help="The version of the model."
)
@click.option("--replace", is_flag=True, help="Overwrite the model of this name and version.")
@size_option
@verbose_option
def store(model: str, database: str, name: str, version: str, replace: bool, sizes: Pairs) -> None:
    """Store MODEL as tables in a database, so that other processes can score with it."""
    _read(model, sizes).store(database, name, version=version, replace=replace)
    click.echo(f"{name}, version {version}, in {database}")


@models.command(epilog=EXIT_CODES)
@click.argument("model")
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
@stored_option
@version_option
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
    stored: bool,
    version: str | None,
    sizes: Pairs,
) -> None:
    """Score rows in DATABASE with MODEL, which is a file or a model stored in the database.

    Each output becomes a table with a row for each key. With several outputs, each table is
    called INTO_OUTPUT.
    """
    if stored:
        if sizes:
            raise click.BadParameter("a stored model has its sizes", param_hint="--size")
        read = import_late("ucle.models.stored_models").stored(model, database, version=version)
    else:
        if version is not None:
            raise click.BadParameter("only a stored model has one", param_hint="--version")
        FILE.convert(model, None, click.get_current_context())
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


@models.command(epilog=EXIT_CODES)
@program_options
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False),
    required=True,
    metavar="FILE",
    help="The ONNX file to write.",
)
@click.option(
    "--rows",
    metavar="LABELS",
    help="The labels of the rows that the model is applied to, separated by commas. Tensors "
    "without these labels are stored in the model.",
)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="NAME",
    help="A tensor that is stored in the model.",
)
@click.option("--tensor", "tensors", multiple=True, metavar="NAME", help="An output of the model.")
@click.option("--float32", is_flag=True, help="Compute float64 in float32.")
def export(
    path: str,
    rows: str | None,
    weights: tuple[str, ...],
    tensors: tuple[str, ...],
    float32: bool,
    **options: Any,
) -> None:
    """Write a program as an ONNX model, for other runtimes."""
    labels = [label.strip() for label in rows.split(",")] if rows else ()
    model = compile_file(**options).to_onnx(
        path,
        outputs=tensors or None,
        rows=labels,
        weights=weights,
        dtype="float32" if float32 else None,
    )
    for value in model.graph.input:
        sizes = (x.dim_param or str(x.dim_value) for x in value.type.tensor_type.shape.dim)
        click.echo(f"# {value.name}: {' x '.join(sizes)}")
    click.echo(f"{', '.join(x.name for x in model.graph.output)} in {path}")


def _read(model: str, sizes: Pairs) -> Any:
    """A model; what reads it is imported late, as no other command needs it."""
    return import_late("ucle.models.from_onnx").from_onnx(model, sizes=sizes_of(sizes, "--size"))
