"""Behaviour that all commands share: errors, exit codes, and the help about them."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

import click

from ucle.errors import UcleError

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

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line; output that cannot be written is no traceback either."""
        try:
            return super().main(*args, **extra)
        except OSError as error:
            with contextlib.suppress(OSError):  # what is left in the buffer has nowhere to go
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            click.echo(f"Error: the output cannot be written: {error.strerror or error}", err=True)
            sys.exit(1)
