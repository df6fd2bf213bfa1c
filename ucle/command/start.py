"""Entry point of the script `ucle`: behaviour that all commands share, and `ucle demo`.

Light, as `ucle.demo.begin_demo` is: `ucle demo` begins before the rest of ucle is imported, and the
other commands (`ucle.command.cli`) are imported when they are called.
"""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ucle.demo.begin_demo import begin_demo
from ucle.demo.options import DemoOptions
from ucle.errors import UcleError

EXIT_CODES = """\b
Exit codes:
  0  success
  1  an error in the program, its inputs or the database; the message says where
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

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line; output that cannot be written is no traceback either."""
        try:
            return super().main(*args, **extra)
        except OSError as error:
            with contextlib.suppress(OSError):  # what is left in the buffer has nowhere to go
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            click.echo(f"Error: the output cannot be written: {error.strerror or error}", err=True)
            sys.exit(1)


@click.command(epilog=EXIT_CODES)
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
    default=DemoOptions.iterations,
    show_default=True,
    help="Iterations of PageRank.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    help="Seconds after which a timed execution is interrupted (default: 5), or after which "
    "training begins no further step (default and maximum: 20).",
)
@click.option(
    "--all-sql",
    is_flag=True,
    help="Print all SQL of both programs, or of a training step.",
)
@click.option(
    "--train",
    is_flag=True,
    help="Instead, train a graph convolutional network that predicts the package of a module.",
)
def demo(**options: Any) -> None:
    """Run PageRank and a graph convolution on the import graph of this Python installation.

    Reads the standard library and the installed packages (nothing is run, nothing is downloaded),
    builds a DuckDB file, runs two programs on it and prints their results. With --train, it trains
    a network that predicts the package of a module, for at most 20 seconds.
    """
    begin_demo(DemoOptions(**options), click.echo)


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["demo"]:
        UcleGroup(commands={"demo": demo})()
    else:
        import_module("ucle.command.cli").main()
