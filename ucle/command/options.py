"""Arguments and options of the `ucle` command, turned into what `ucle.einsum_program` takes."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from typing import Any, TextIO

import click

from ucle.command.completion import complete_file, complete_input, complete_tensor
from ucle.command.show_results import Pairs
from ucle.database.open_sessions import open_for_reading
from ucle.foundation.arguments import SHOWN
from ucle.inputs.formats import is_text_table, reader_of
from ucle.inputs.table_input import TableInput
from ucle.inputs.table_options import table
from ucle.language.parse import parse_program
from ucle.language.statements import input_labels
from ucle.optimiser.profiles import NAMES
from ucle.options import ASSOCIATIONS, REWRITES
from ucle.plan.forms import ROWS
from ucle.program import EinsumProgram, einsum_program


def pairs(form: str, suffixes: tuple[str, ...] = ("",)) -> dict[str, Any]:
    """Arguments for a repeatable option whose values have the form ``NAME=VALUE``."""

    def parse(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Pairs:
        return tuple(parse_one(text) for text in values)

    def parse_one(text: str) -> tuple[str, str]:
        name, value = (part.strip() for part in (*text.split("=", 1), "")[:2])
        if not name or not value or not value.casefold().endswith(suffixes):
            suffix_note = f", which ends in {', '.join(suffixes)}" if suffixes != ("",) else ""
            raise click.BadParameter(f"expected {form}{suffix_note}, got {text!r}")
        return name, value

    return {"multiple": True, "callback": parse, "metavar": form}


def whole_number(text: str) -> int | None:
    """A number as digits tell it; None where they do not, or are more than Python reads."""
    if not (text.isascii() and text.isdecimal()):
        return None
    try:
        return int(text)
    except ValueError:
        return None


def sizes_of(given: Pairs, option: str) -> dict[str, int]:
    """Sizes by the names that an option gives them.

    Raises:
        click.BadParameter: one is not a number.
    """
    sizes = {}
    for name, text in given:
        if (size := whole_number(text)) is None:
            raise click.BadParameter(f"{text[:SHOWN]!r} is not a size", param_hint=option)
        sizes[name] = size
    return sizes


class RowsType(click.ParamType):  # type: ignore[type-arg]  # older ones are not generic
    """The rows that are written, or the number of rows that are shown."""

    name = "|".join(ROWS)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | int:
        """One of the words, or a number."""
        if isinstance(value, int) or value in ROWS:
            return value  # type: ignore[no-any-return]
        if (count := whole_number(value)) is not None:
            return count
        raise click.BadParameter(
            f"expected {', '.join(ROWS)} or a number, got {value[:SHOWN]!r}", ctx=ctx, param=param
        )


INPUT = re.compile(
    r"""(?P<relation>.*?)                           # a table, a view or a file
        (?:\( (?P<keys>[^():]*) (?::(?P<value>[^():]*))? \))?   # (key, key: value)
    """,
    re.VERBOSE | re.DOTALL,
)


NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def parse_input(text: str, duplicates: str, **form: Any) -> TableInput:
    """An input as the command line writes it: ``edges`` or ``edges(src, dst: weight)``.

    A number behind the colon is what every row holds. `form` is what `ucle.table` takes of text
    files, and is for these alone.

    >>> parse_input("edges(src, dst: weight)", "error").columns
    ('src', 'dst')
    """
    match = INPUT.fullmatch(text)
    assert match is not None  # the relation may be anything
    relation, keys, value = (
        part.strip() if part is not None else None for part in match.group(1, 2, 3)
    )
    columns = None if keys is None else [key.strip() for key in keys.split(",") if key.strip()]
    assert relation is not None
    if not (is_text_table(relation) or (os.path.isfile(relation) and not reader_of(relation))):
        form = {}
    return table(relation, columns, _column_or_number(value), duplicates=duplicates, **form)


def _column_or_number(text: str | None) -> str | float | None:
    """Parse the text behind the colon: a column, or the number that each row holds."""
    if not text:
        return None
    return float(text) if NUMBER.fullmatch(text) else text


def program_options(command: Callable[..., None]) -> Callable[..., None]:
    """The argument and the options of every command that compiles a program."""
    parameters: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
        click.argument("program_file", type=click.File(encoding="utf-8")),
        click.option(
            "-d",
            "--database",
            metavar="PATH",
            shell_complete=complete_file,
            is_eager=True,  # what completes other options looks into it
            help="DuckDB file with the tables.",
        ),
        click.option(
            "--read-only",
            is_flag=True,
            help="Write nothing to the database, not even statistics of its tables.",
        ),
        click.option(
            "-i",
            "--input",
            "inputs",
            **pairs("NAME=TABLE"),
            shell_complete=complete_input,
            help="The table, view or file that contains a tensor. By default, its first columns "
            "are the coordinates and the next column is the value; to name the columns, write "
            "'A=edges(src, dst: weight)'. With --database, a tensor without this option is the "
            "table of the same name.",
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
            shell_complete=complete_tensor("="),
            help="Labels of a tensor that the plan promotes to key columns, as in Z=i or Z=i,k; "
            "SparseEinSum chooses the rest.",
        ),
        click.option(
            "--association",
            type=click.Choice(ASSOCIATIONS),
            default=ASSOCIATIONS[0],
            show_default=True,
            help="free: the factors of products are joined in the cheapest order, also across "
            "statements. as-written: they are joined in the order of the text.",
        ),
        click.option(
            "--rewrite",
            type=click.Choice(REWRITES),
            default=REWRITES[0],
            show_default=True,
            help="safe: sums of products are rewritten if that is cheaper and loses no digits. "
            "auto: brackets whose terms may cancel are multiplied out, too, if that is several "
            "times cheaper and an error bound stays below 1e-9. algebraic: the same without "
            "an error bound. none: sums of products are computed as written.",
        ),
        click.option(
            "--bound",
            "bounds",
            **pairs("LABEL=SIZE"),
            help="Size of a label, as in i=10; by default, it is taken from the data.",
        ),
        click.option(
            "--duplicates",
            type=click.Choice(["error", "sum"]),
            default="error",
            show_default=True,
            help="What to do with input rows that have the same coordinates.",
        ),
        click.option(
            "--delimiter",
            metavar="TEXT",
            help="Delimiter of the fields in text files that are inputs, if it is not a comma, "
            'tab, semicolon or |; " " stands for any number of blanks and tabs.',
        ),
        click.option(
            "--header/--no-header",
            default=None,
            help="Read the first line of text files as names of columns, or as data.",
        ),
        click.option(
            "--comment", metavar="SIGN", help="Character that begins a comment in text files."
        ),
        click.option(
            "--memory-limit",
            metavar="SIZE",
            help="Memory that plans may use, such as 2GB; by default, DuckDB's own limit.",
        ),
        click.option(
            "--profile",
            type=click.Choice(NAMES),
            help="Cost profile; by default, that of `ucle calibrate` if you have run it, otherwise "
            "duckdb.",
        ),
        click.option(
            "--store",
            multiple=True,
            metavar="NAME",
            shell_complete=complete_tensor(),
            help="Input to store in the layouts in which the program reads it, as tables in the "
            "schema ucle of the database, for this program and later ones.",
        ),
        verbose_option,
    ]
    for parameter in reversed(parameters):
        command = parameter(command)
    return command


def json_option(command: Callable[..., None]) -> Callable[..., None]:
    """The option of commands that can print a document for other programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for other programs.")(
        command
    )


def verbose_option(command: Callable[..., None]) -> Callable[..., None]:
    """The option that shows on stderr what is logged."""
    return click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        callback=_show_logs,
        help="Log each step and its time to stderr; -vv also logs the SQL.",
    )(command)


def _show_logs(ctx: click.Context, param: click.Parameter, count: int) -> None:
    if not count or ctx.resilient_parsing:
        return
    log, handler = logging.getLogger("ucle"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO if count == 1 else logging.DEBUG)

    def end() -> None:
        log.removeHandler(handler)
        log.setLevel(before)

    ctx.call_on_close(end)


def compile_file(
    program_file: TextIO,
    database: str | None,
    inputs: Pairs,
    decomposition: str,
    promoted: Pairs,
    bounds: Pairs,
    duplicates: str,
    read_only: bool = False,
    outputs: list[str] | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    comment: str | None = None,
    **options: Any,
) -> EinsumProgram:
    """Compile a program file with the options of the command line."""
    try:
        text = program_file.read()
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"not UTF-8 text: {error}", param_hint="PROGRAM_FILE") from error
    sizes = sizes_of(bounds, "--bound")
    if promoted and decomposition != "auto":
        raise click.UsageError("--promote requires --decomposition auto")
    pinned = {
        name: [label.strip() for label in labels.split(",") if label.strip()]
        for name, labels in promoted
    }
    places = dict(inputs)
    if database is not None:
        places = {name: name for name in input_labels(parse_program(text))} | places
    if delimiter is not None:
        delimiter = delimiter.replace("\\t", "\t")  # as shells pass it on
    form = {"delimiter": delimiter, "header": header, "comment": comment}
    if read_only and (database is None or options.get("store")):
        raise click.UsageError("--read-only requires --database, and excludes --store")
    return einsum_program(
        text,
        database=open_for_reading(database) if read_only and database else database,
        inputs={name: parse_input(value, duplicates, **form) for name, value in places.items()},
        bounds=sizes,
        outputs=outputs,
        decomposition=pinned or decomposition,
        **options,
    )
