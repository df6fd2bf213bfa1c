"""The `ucle` command: `sql`, `explain` and `run` compile a program file, `demo` shows it all.

Arguments are turned into what `ucle.einsum_program` takes (`ucle.command.options`), and an
`UcleError` into a message and exit code 1. Nothing here knows how a program is compiled.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ucle.command.calibrate import calibrate as measure_machine
from ucle.command.calibrate import report
from ucle.command.completion import SHELLS, complete_tensor, script
from ucle.command.options import (
    RowsType,
    compile_file,
    json_option,
    pairs,
    program_options,
    verbose_option,
)
from ucle.command.score_models import models
from ucle.command.show_results import Pairs, WriteOptions, preview, preview_document, store
from ucle.command.start import EXIT_CODES, UcleGroup, demo
from ucle.database.open_sessions import connect
from ucle.explain.json import json_text
from ucle.foundation.progress import progress_bar
from ucle.foundation.version import __version__
from ucle.inputs.formats import SUFFIXES, WRITTEN
from ucle.maintenance import maintained as maintenance
from ucle.optimiser.profiles import save_profile
from ucle.plan.forms import MAX_ROWS
from ucle.program.arguments import FORMATS
from ucle.run.write_table import MODES, checked_mode

SET_UP = """\b
To set it up:
  bash  eval "$(ucle completion bash)"    in ~/.bashrc
  zsh   eval "$(ucle completion zsh)"     in ~/.zshrc
  fish  ucle completion fish > ~/.config/fish/completions/ucle.fish
"""


@click.group(cls=UcleGroup, epilog=EXIT_CODES)
@click.version_option(__version__, prog_name="ucle")
def main() -> None:
    """Compile EinSum programs to tensor-relational SQL for DuckDB, and run them.

    PROGRAM_FILE contains statements such as T[i,k] += X[i,j] * Y[j,k]; a dash stands for standard
    input.
    """


@main.command(epilog=EXIT_CODES)
@program_options
@click.option(
    "--macro",
    is_flag=True,
    help="Print a table macro for each output; its parameters are the tables that it reads.",
)
@json_option
def sql(macro: bool, as_json: bool, **options: Any) -> None:
    """Print the SQL script of a program."""
    program = compile_file(**options)
    script = program.macro_sql() if macro else program.to_sql()
    if not as_json:
        click.echo(script, nl=False)
        return
    document = {"outputs": program.outputs, "route": program.route, "sql": script}
    click.echo(json_text(document), nl=False)


@main.command(epilog=EXIT_CODES)
@program_options
@click.option(
    "--analyze", is_flag=True, help="Run the program, and add the rows and the time of each step."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="json: for other programs. html: a page for a browser. dot, svg: the DAG as a picture.",
)
@json_option
def explain(analyze: bool, form: str, as_json: bool, **options: Any) -> None:
    """Print the decomposition, its schemas, statistics and costs, and the second-best plan."""
    if as_json and form not in ("text", "json"):
        raise click.UsageError(f"--json does not go with --format {form}")
    form = "json" if as_json else form
    click.echo(compile_file(**options).explain(form, analyze=analyze), nl=False)


@main.command(epilog=EXIT_CODES)
@program_options
@click.option(
    "-o",
    "--output",
    "files",
    **pairs("NAME=FILE", suffixes=(*SUFFIXES, "/")),
    shell_complete=complete_tensor("="),
    help="Write a tensor to a file; its suffix decides the format: "
    f"{', '.join(format_.suffixes[0] for format_ in WRITTEN)}. With --partition-by, FILE is a "
    "folder, and ends in a slash.",
)
@click.option(
    "-t",
    "--to-table",
    "tables",
    **pairs("NAME=TABLE"),
    shell_complete=complete_tensor("="),
    help="Store a tensor as a table of the database.",
)
@click.option(
    "--keys",
    **pairs("NAME=LABELS"),
    shell_complete=complete_tensor("="),
    help="Labels of a tensor that become columns, as in Z=i or Z=i,k; the others are inside "
    "arrays. By default, every label becomes a column.",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default=MODES[0],
    show_default=True,
    help="What --to-table does if the table exists.",
)
@click.option("--replace", is_flag=True, help="The same as --mode replace.")
@click.option(
    "--on",
    **pairs("NAME=LABELS"),
    shell_complete=complete_tensor("="),
    help="Columns by which --mode upsert identifies a row; by default, all columns of labels.",
)
@click.option(
    "--partition-by",
    **pairs("NAME=LABELS"),
    shell_complete=complete_tensor("="),
    help="Labels by whose values --output partitions a tensor into folders of Parquet files, in "
    "Hive's style.",
)
@click.option(
    "--rows",
    type=RowsType(),
    help="Rows to print or write. nonfill: rows with an entry other than the fill; this is the "
    "default if the fill is 0 or the identity of the aggregation. all: every row; this is the "
    "default for other fills. stored: the rows that the plan has stored. A number has the meaning "
    "of --show.",
)
@click.option(
    "--max-rows",
    type=click.IntRange(0),
    default=MAX_ROWS,
    show_default=True,
    help="Largest number of rows that --rows all may write for a tensor.",
)
@click.option(
    "--show",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Number of rows of each tensor to print.",
)
@json_option
def run(
    files: Pairs,
    tables: Pairs,
    keys: Pairs,
    mode: str,
    replace: bool,
    on: Pairs,
    partition_by: Pairs,
    rows: str | int | None,
    max_rows: int,
    show: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Run a program.

    Without --output and --to-table, the first rows of every result are printed. With them, only
    the tensors that they name are computed and written. Only --to-table and --store write tables
    of tensors to the database; statistics of large tables may be stored, too (see --read-only).
    """
    if tables and options["database"] is None:
        raise click.UsageError("--to-table requires --database")
    if tables and options["read_only"]:
        raise click.UsageError("--to-table writes to the database, and --read-only forbids that")
    if isinstance(rows, int):
        show, rows = rows, None
    mode = checked_mode(mode, replace, "--mode")
    write_options = WriteOptions(keys, on, partition_by, rows, mode, max_rows)
    named = list(dict.fromkeys(name for name, _ in (*files, *tables)))
    program = compile_file(**options, outputs=named or None)
    with progress_bar() as watch:
        result = program.execute(progress=watch)
    with result:
        shown = [] if named else list(result)
        if as_json:
            stored = [x.document() for x in store(result, files, tables, write_options)]
            tensors = [preview_document(result[name], show, write_options) for name in shown]
            click.echo(json_text({"tensors": tensors, "stored": stored}), nl=False)
            return
        if shown:
            click.echo("\n\n".join(preview(result[name], show, write_options) for name in shown))
        for output in store(result, files, tables, write_options):
            click.echo(str(output))


main.add_command(demo)
main.add_command(models)


@main.command(epilog=EXIT_CODES)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; by default, the one that programs read.",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    help="Number of threads of DuckDB; by default, its own choice.",
)
@verbose_option
@json_option
def calibrate(output: Path | None, threads: int | None, as_json: bool) -> None:
    """Fit the cost model to this machine.

    Runs small programs for less than twenty seconds. From then on, programs are compiled with the
    fitted profile, unless they select another one.
    """
    with progress_bar() as watch:
        calibration = measure_machine(threads, watch=watch)
    if as_json:
        document = {
            "profile": asdict(calibration.profile),
            "measured": calibration.measured,
            "predicted": calibration.predicted,
        }
        path = str(save_profile(calibration.profile, output))
        click.echo(json_text({"path": path, **document}), nl=False)
        return
    click.echo("\n".join(report(calibration)))  # before what may fail
    click.echo(f"\nwritten to {save_profile(calibration.profile, output)}")


DATABASE_FILE = click.Path(exists=True, dir_okay=False)


@main.command(epilog=EXIT_CODES)
@click.argument("name")
@program_options
@click.option(
    "--append-only",
    multiple=True,
    help="An input table to which rows are only appended.",
)
def maintain(name: str, append_only: tuple[str, ...], **options: Any) -> None:
    """Keep the outputs of a program as tables; `ucle refresh` brings them up to date by this NAME.

    With one output, the table is called NAME; with several, each is called NAME_OUTPUT.
    """
    if options["database"] is None:
        raise click.UsageError("maintain requires --database")
    kept = compile_file(**options).maintain(name, append_only=append_only)
    click.echo(", ".join(f"{x} in {table}" for x, table in kept.outputs.items()))


@main.command("maintained", epilog=EXIT_CODES)
@click.argument("database", type=DATABASE_FILE)
@verbose_option
@json_option
def list_maintained(database: str, as_json: bool) -> None:
    """List the programs that are maintained in a database, with the tables of their outputs.

    `ucle maintain`, or `program.maintain(...)` in Python, creates such a program.
    """
    with connect(database) as connection:
        found = maintenance.list_maintained(connection)
    if as_json:
        click.echo(json_text(found), nl=False)
        return
    for name, outputs in found.items():
        click.echo(f"{name}: {', '.join(f'{x} in {table}' for x, table in outputs.items())}")


@main.command(epilog=EXIT_CODES)
@click.argument("database", type=DATABASE_FILE)
@click.argument("names", nargs=-1)
@verbose_option
@json_option
def refresh(database: str, names: tuple[str, ...], as_json: bool) -> None:
    """Bring maintained programs in DATABASE up to date: those with these NAMES, or all of them."""
    with connect(database) as connection:
        chosen = names or tuple(maintenance.list_maintained(connection))
        reports = {x: maintenance.maintained(x, connection).refresh() for x in chosen}
    if as_json:
        document = {x: {"changed": dict(y.changed), "rows": y.rows} for x, y in reports.items()}
        click.echo(json_text(document), nl=False)
        return
    for name, done in reports.items():
        click.echo(f"{name}\n  " + str(done).replace("\n", "\n  "))


@main.command(epilog=f"{SET_UP}\n{EXIT_CODES}")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that makes a shell complete this command.

    The shell then completes commands, options and tensors of the program file and, after
    --database, tables and views.
    """
    click.echo(script(main, shell))


if __name__ == "__main__":
    main()
