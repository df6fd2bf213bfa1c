"""The command `ucle demo`: its options, handed on to the example that it runs, `ucle.demo`.

Light, as `ucle.demo.begin_demo` is: it is there before the rest of ucle is imported.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ucle.command.group import EXIT_CODES
from ucle.demo.begin_demo import begin_demo
from ucle.demo.options import DemoOptions


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
    help="Seconds after which an execution that is timed is interrupted, by default 5, and after "
    "which no step of training begins: never later than 20.",
)
@click.option("--all-sql", is_flag=True, help="Print the whole SQL of both programs, or of a step.")
@click.option(
    "--train",
    is_flag=True,
    help="Train a graph convolutional network to tell which package a module belongs to, instead.",
)
def demo(**options: Any) -> None:
    """PageRank and a graph convolution on the import graph of this Python.

    Reads the standard library and the installed packages (nothing is run, nothing is downloaded),
    builds a DuckDB file, runs two programs on it and prints what they find. With --train a network
    learns which package a module belongs to, in at most 20 seconds.
    """
    begin_demo(DemoOptions(**options), click.echo)
