"""The `ucle` command: `sql`, `explain` and `run` compile a program file, `demo` shows it all.

Arguments are turned into what `ucle.einsum_program` takes, and an `UcleError` into a message and
exit code 1. Nothing here knows how a program is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import click

from ucle.association import CHOICES
from ucle.calibrate import calibrate as measure_machine
from ucle.calibrate import report
from ucle.cli_results import Pairs, preview, store
from ucle.demo import DemoOptions, run_demo
from ucle.errors import UcleError
from ucle.inputs import TableInput, table
from ucle.parse import parse_program
from ucle.profiles import NAMES, save_profile
from ucle.program import FORMATS, EinsumProgram, einsum_program
from ucle.saving import SUFFIXES
from ucle.statements import input_labels
from ucle.version import __version__

EXIT_CODES = """\b
Exit codes:
  0  success
  1  the program, its inputs or the database are at fault; the message says where
  2  the command line itself is wrong
"""


class UcleGroup(click.Group):
    """Commands whose `UcleError` ends as a message on stderr and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except UcleError as error:
            raise click.ClickException(str(error)) from error


def pairs(form: str, suffixes: tuple[str, ...] = ("",)) -> dict[str, Any]:
    """What makes an option repeatable, with values of the form ``NAME=VALUE``."""

    def parse(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Pairs:
        return tuple(parse_one(text) for text in values)

    def parse_one(text: str) -> tuple[str, str]:
        name, value = (part.strip() for part in (*text.split("=", 1), "")[:2])
        if not name or not value or not value.casefold().endswith(suffixes):
            known = f", which ends in {', '.join(suffixes)}" if suffixes != ("",) else ""
            raise click.BadParameter(f"expected {form}{known}, got {text!r}")
        return name, value

    return {"multiple": True, "callback": parse, "metavar": form}


INPUT = re.compile(
    r"""(?P<relation>.*?)                           # a table, a view or a file
        (?:\( (?P<keys>[^():]*) (?::(?P<value>[^():]*))? \))?   # (key, key: value)
    """,
    re.VERBOSE | re.DOTALL,
)


def parse_input(text: str, duplicates: str) -> TableInput:
    """An input as the command line writes it: ``edges`` or ``edges(src, dst: weight)``.

    >>> parse_input("edges(src, dst: weight)", "error").columns
    ('src', 'dst')
    """
    match = INPUT.fullmatch(text)
    assert match is not None  # the relation may be anything
    relation, keys, value = (
        part.strip() if part is not None else None for part in match.group(1, 2, 3)
    )
    columns = None if keys is None else [key.strip() for key in keys.split(",") if key.strip()]
    return table(relation, columns, value or None, duplicates=duplicates)


def program_options(command: Callable[..., None]) -> Callable[..., None]:
    """The argument and the options of every command that compiles a program."""
    parameters: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
        click.argument("program_file", type=click.File(encoding="utf-8")),
        click.option("-d", "--database", metavar="PATH", help="DuckDB file with the tables."),
        click.option(
            "-i",
            "--input",
            "inputs",
            **pairs("NAME=TABLE"),
            help="Where a tensor lies: a table, a view or a file. Its first columns are "
            "the coordinates and the next one is the value; otherwise name them, as in "
            "'A=edges(src, dst: weight)'. With --database, a tensor of which nothing is said is "
            "the table of its own name.",
        ),
        click.option(
            "--decomposition",
            type=click.Choice(["auto", "relational", "as-written"]),
            default="auto",
            show_default=True,
            help="auto: SparseEinSum chooses. relational: plain SQL, every label a key column. "
            "as-written: the labels in upper case are key columns.",
        ),
        click.option(
            "--promote",
            "promoted",
            **pairs("NAME=LABELS"),
            help="Fix one tensor's key columns, as in Z=i or Z=i,k, and choose the rest. So a "
            "stored result has the columns that are wanted of it.",
        ),
        click.option(
            "--association",
            type=click.Choice(CHOICES),
            default=CHOICES[0],
            show_default=True,
            help="free: the factors of products are joined in the cheapest order, across "
            "statements, too. as-written: in that of the text.",
        ),
        click.option(
            "--bound",
            "bounds",
            **pairs("LABEL=SIZE"),
            help="Size of the dimension of a label, as in i=10; otherwise the data tells it.",
        ),
        click.option(
            "--duplicates",
            type=click.Choice(["error", "sum"]),
            default="error",
            show_default=True,
            help="What to do with input rows that share their coordinates.",
        ),
        click.option("--memory-limit", metavar="SIZE", help="Such as 2GB; DuckDB's by default."),
        click.option(
            "--profile",
            type=click.Choice(NAMES),
            help="Cost profile; by default that of `ucle calibrate`, if it was run.",
        ),
        click.option(
            "--store",
            multiple=True,
            metavar="NAME",
            help="An input to keep in the layouts in which it is read, in the schema ucle of the "
            "database, for this program and later ones.",
        ),
    ]
    for parameter in reversed(parameters):
        command = parameter(command)
    return command


def compile_file(
    program_file: TextIO,
    database: str | None,
    inputs: Pairs,
    decomposition: str,
    promoted: Pairs,
    bounds: Pairs,
    duplicates: str,
    outputs: list[str] | None = None,
    **options: Any,
) -> EinsumProgram:
    """Compile a program file with the options of the command line."""
    try:
        text = program_file.read()
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"not UTF-8 text: {error}", param_hint="PROGRAM_FILE") from error
    sizes = {}
    for label, size in bounds:
        if not size.isdecimal():
            raise click.BadParameter(f"{size!r} is not a size", param_hint="--bound")
        sizes[label] = int(size)
    if promoted and decomposition != "auto":
        raise click.UsageError("--promote goes with --decomposition auto alone")
    pinned = {
        name: [label.strip() for label in labels.split(",") if label.strip()]
        for name, labels in promoted
    }
    places = dict(inputs)
    if database is not None:
        places = {name: name for name in input_labels(parse_program(text))} | places
    return einsum_program(
        text,
        database=database,
        inputs={name: parse_input(value, duplicates) for name, value in places.items()},
        bounds=sizes,
        outputs=outputs,
        decomposition=pinned or decomposition,
        **options,
    )


@click.group(cls=UcleGroup, epilog=EXIT_CODES)
@click.version_option(__version__, prog_name="ucle")
def main() -> None:
    """Compile EinSum programs to tensor-relational SQL for DuckDB, and run them.

    PROGRAM_FILE holds statements such as T[i,k] += X[i,j] * Y[j,k]; a dash is standard input.
    """


@main.command(epilog=EXIT_CODES)
@program_options
def sql(**options: Any) -> None:
    """Print the SQL script of a program."""
    click.echo(compile_file(**options).to_sql(), nl=False)


@main.command(epilog=EXIT_CODES)
@program_options
@click.option("--analyze", is_flag=True, help="Run the program and add what each step took.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="html: a page for a browser. dot, svg: the DAG as a picture.",
)
def explain(analyze: bool, form: str, **options: Any) -> None:
    """Print the decomposition, its schemas, statistics and costs, and why the next best lost."""
    click.echo(compile_file(**options).explain(form, analyze=analyze), nl=False)


@main.command(epilog=EXIT_CODES)
@program_options
@click.option(
    "-o",
    "--output",
    "files",
    **pairs("NAME=FILE", suffixes=SUFFIXES),
    help="Write a tensor to a file; its suffix tells the format: .parquet, .arrow, .csv, .mtx, "
    ".tns, .npy, .npz.",
)
@click.option(
    "-t",
    "--to-table",
    "tables",
    **pairs("NAME=TABLE"),
    help="Store a tensor as a table of the database.",
)
@click.option("--replace", is_flag=True, help="Let --to-table replace a table.")
@click.option("--rows", default=10, show_default=True, help="Rows to print of each tensor.")
def run(
    files: Pairs,
    tables: Pairs,
    replace: bool,
    rows: int,
    **options: Any,
) -> None:
    """Run a program.

    Without --output and --to-table the first rows of every result are printed; with them the
    tensors named there are computed and stored. The database is changed by --to-table and --store
    alone.
    """
    if tables and options["database"] is None:
        raise click.UsageError("--to-table needs a --database to put the table in")
    wanted = list(dict.fromkeys(name for name, _ in (*files, *tables)))
    program = compile_file(**options, outputs=wanted or None)
    with program.execute() as result:
        if not wanted:
            click.echo("\n\n".join(preview(result[name], rows) for name in result))
        store(result, files, tables, replace=replace)


@main.command(epilog=EXIT_CODES)
@click.option(
    "-d",
    "--database",
    type=click.Path(path_type=Path, dir_okay=False),
    default="demo.duckdb",
    show_default=True,
    help="File to build.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that is not a demo database.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Read only the first N modules.")
@click.option(
    "--iterations",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Iterations of PageRank.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds after which an execution is interrupted.",
)
@click.option("--all-sql", is_flag=True, help="Print the whole SQL of PageRank.")
def demo(**options: Any) -> None:
    """PageRank and a graph convolution on the import graph of this Python.

    Reads the standard library and the installed packages (nothing is run, nothing is downloaded),
    builds a DuckDB file, runs two programs on it and prints what they find.
    """
    run_demo(DemoOptions(**options), click.echo)


@main.command(epilog=EXIT_CODES)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; by default the one that programs look for.",
)
@click.option("--threads", type=click.IntRange(1), help="Of DuckDB, whose default it is otherwise.")
def calibrate(output: Path | None, threads: int | None) -> None:
    """Fit the cost model to this machine.

    Runs small programs for less than twenty seconds. Programs are compiled with what is found from
    then on, unless they ask for another profile.
    """
    found = measure_machine(threads)
    click.echo("\n".join(report(found)))  # before what may fail
    click.echo(f"\nwritten to {save_profile(found.profile, output)}")


if __name__ == "__main__":
    main()
