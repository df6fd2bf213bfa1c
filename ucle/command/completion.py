"""Completion in a shell: names of tensors from the program, names of tables from the database.

Nothing is said where something is wrong: a completion is no place for messages.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
)

from ucle.database.engine import DUCKDB
from ucle.errors import UcleError
from ucle.language.parse import parse_program
from ucle.language.statements import input_labels
from ucle.sqlgen.database_queries import current_database_query, relations_query

SHELLS = ("bash", "zsh", "fish")

VARIABLE = "_UCLE_COMPLETE"
"""The environment variable by which a shell's script asks `ucle` for completions."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@add_completion_class
class WholeWords(BashComplete):
    """Bash takes ``A=edges`` for three words; here they are one, and bash gets back its third.

    After ``A=`` it puts no space.
    """

    source_template = BashComplete.source_template.replace(
        "    return 0\n",
        "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n    return 0\n",
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is completed, and that one."""
        words, incomplete = super().get_completion_args()
        joined: list[str] = []
        for word in (*words, incomplete):
            if joined and (word == "=" or joined[-1].endswith("=")):
                joined[-1] += word
            else:
                joined.append(word)
        self._taken = joined[-1].rfind("=") + 1 if joined else 0
        return joined[:-1], joined[-1] if joined else ""

    def format_completion(self, item: CompletionItem) -> str:
        """A line of the answer."""
        return f"{item.type},{str(item.value)[self._taken :]}"


def script(command: click.Command, shell: str) -> str:
    """The script that a shell sources to complete `ucle`."""
    completion_class = get_completion_class(shell)
    assert completion_class is not None  # one of SHELLS
    return completion_class(command, {}, "ucle", VARIABLE).source()


def complete_file(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Files, by the shell itself."""
    return [CompletionItem(incomplete, type="file")]


def complete_tensor(end: str = "") -> Complete:
    """Return a completer for the names of the program's tensors, each followed by `end`."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return _starting_with(incomplete, (name + end for name in _tensors(ctx)))

    return complete


def complete_input(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """An input as ``NAME=TABLE``: first a tensor, then a table or view of the database."""
    name, equals, _ = incomplete.partition("=")
    if not equals:
        return _starting_with(incomplete, (f"{name}=" for name in _tensors(ctx, inputs=True)))
    return _starting_with(incomplete, (f"{name}={table}" for table in _tables(ctx)))


def _starting_with(incomplete: str, values: Iterator[str]) -> list[CompletionItem]:
    return [CompletionItem(value) for value in values if value.startswith(incomplete)]


def _tensors(ctx: click.Context, inputs: bool = False) -> Iterator[str]:
    """Tensors of the program file, if the command line names one already."""
    # An option without its value, which is what is completed, leaves arguments unassigned.
    words = [getattr(ctx.params.get("program_file"), "name", None), *ctx.args]
    path = next((x for x in words if isinstance(x, str) and Path(x).is_file()), None)
    with contextlib.suppress(UcleError, OSError, UnicodeDecodeError):
        if path is not None:
            statements = parse_program(Path(path).read_text(encoding="utf-8"))
            if not inputs:
                yield from dict.fromkeys(statement.target.tensor for statement in statements)
            yield from input_labels(statements)


def _tables(ctx: click.Context) -> Iterator[str]:
    """Tables and views of the database, if the command line names one already."""
    path = ctx.params.get("database")
    if not path or not Path(path).is_file():
        return
    with contextlib.suppress(UcleError), DUCKDB.catalogue(path) as session:
        ((current,),) = session.fetch(current_database_query())
        for database, schema, name in sorted(session.fetch(relations_query())):
            if database == current:
                yield name if schema == "main" else f"{schema}.{name}"
