"""``%%ucle`` in a notebook: a cell of statements, over what the notebook and a database have.

``%load_ext ucle`` makes the magic known. A tensor of the cell is the variable of its name, or else
the table. What the cell gives is its result, which shows its tensors.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, MutableMapping
from typing import Any, NoReturn

from ucle.command.options import whole_number
from ucle.errors import ArgumentError
from ucle.language.parse import parse_program
from ucle.language.statements import input_labels
from ucle.program import EinsumProgram, einsum_program
from ucle.run.results import Result


class _CellOptions(argparse.ArgumentParser):
    """Options of a cell, of which a wrong one is an error and no end of the notebook."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(
            f"the first line of the cell is not understood: {message}",
            where="%%ucle",
            expected=self.format_usage().removeprefix("usage: ").strip(),
            found="other options",
        )


def _options() -> _CellOptions:
    parser = _CellOptions("%%ucle", add_help=False)
    parser.add_argument("-d", "--database", help="a connection, or the path of a file")
    parser.add_argument("-i", "--input", action="append", default=[], metavar="TENSOR=NAME")
    parser.add_argument("-b", "--bound", action="append", default=[], metavar="LABEL=SIZE")
    parser.add_argument("-o", "--output", action="append", metavar="TENSOR")
    parser.add_argument("-t", "--to", metavar="VARIABLE")
    parser.add_argument("-e", "--explain", action="store_true")
    return parser


def run_cell(line: str, cell: str, variables: MutableMapping[str, Any]) -> Result | EinsumProgram:
    """Run a cell.

    Args:
        line: what stands behind ``%%ucle``: ``-d connection``, ``-b r=10`` for sizes of labels,
            ``-i A=edges`` for inputs that are called otherwise, ``-o T`` for the tensors that are
            wanted, ``-t result`` for a variable that gets the result, ``-e`` to plan and not run.
        cell: statements.
        variables: those of the notebook.

    Returns:
        The result, or with ``-e`` the program, which shows what was decided.

    Raises:
        UcleError: options that there are not, and as `ucle.einsum_program`.

    >>> result = run_cell("-b r=1", "best[i,r] = top_k[j,r](A[i,j])", {"A": [[1.0, 3.0]]})
    >>> result["best"].to_numpy()
    array([[3.]])
    """
    options = _options().parse_args(shlex.split(line))
    given = dict(_pair(text, "TENSOR=NAME") for text in options.input)
    program = einsum_program(
        cell,
        inputs={
            name: _value(given.get(name, name), variables)
            for name in input_labels(parse_program(cell))
        },
        bounds={label: _size(label, size) for label, size in map(_parse_bound, options.bound)}
        or None,
        outputs=options.output,
        database=None if options.database is None else _value(options.database, variables),
    )
    shown = program if options.explain else program.execute()
    if options.to is not None:
        variables[options.to] = shown
    return shown


def load_ipython_extension(shell: Any) -> None:
    """Register the ``%%ucle`` magic; IPython calls this for ``%load_ext ucle``."""

    def ucle(line: str, cell: str) -> Result | EinsumProgram:
        """Run statements of ucle: see `ucle.command.cells.run_cell`."""
        return run_cell(line, cell, shell.user_ns)

    shell.register_magic_function(ucle, magic_kind="cell")


def _value(name: str, variables: Mapping[str, Any]) -> Any:
    return variables.get(name, name)


def _parse_bound(text: str) -> tuple[str, str]:
    return _pair(text, "LABEL=SIZE")


def _pair(text: str, form: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise ArgumentError(
            "an option of the cell has another form", where="%%ucle", expected=form, found=text
        )
    return name, value


def _size(label: str, size: str) -> int:
    number = whole_number(size)
    if number is None:
        raise ArgumentError(
            "a bound is not a size",
            where=f"%%ucle, label {label}",
            expected="an integer of at least 0",
            found=size,
        )
    return number
