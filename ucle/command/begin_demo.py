"""The command `ucle demo`, up to the point where it needs more of ucle than this.

Importing the libraries that ucle stands on takes longer than finding and reading what modules
import, all the more right after an installation, when nothing is compiled to bytecode. So modules
are read in the background, with a bar, and the rest is imported meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ucle.command.demo_bar import bar
from ucle.command.demo_options import DemoOptions
from ucle.command.group import EXIT_CODES
from ucle.command.read_source import find_modules, installation_roots
from ucle.command.readers import Reading


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


def begin_demo(options: DemoOptions, echo: Callable[[str], object]) -> None:
    """Read the modules of this Python, and show with `ucle.command.demo` what is made of them.

    Raises:
        DatabaseError: the file is not the demo's to overwrite, or cannot be written.
    """
    modules = list(find_modules(installation_roots()))[: options.limit]
    version = sys.version.split()[0]
    echo(f"Reading {len(modules):,} modules of Python {version} at {sys.prefix} ...")
    with Reading(modules) as reading:
        with bar("Reading imports", len(modules), reading.imports_done, sys.stderr):
            rest = import_module("ucle.command.demo")
            rest.check_replaceable(options.database, force=options.force)
            reading.imports()
        rest.run_demo(options, reading, echo)
