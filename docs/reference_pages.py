"""The pages that are made from the program itself: operators, commands, and pictures.

Each is a function to the text of a Markdown file that lies in this folder, so that it can be read
without a build. ``tests/project/test_docs.py`` compares them, and writes them with
``--update-golden``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

import click
import gallery_pages
import pipeline_picture
from array_api_page import array_api_page
from comparisons_page import comparisons_page
from layers import architecture_page, picture
from public_names import stub

from ucle.command.cli import main
from ucle.foundation.dtypes import DType
from ucle.language.functions import FUNCTIONS
from ucle.operators import COMBINES, MAPS, REDUCES, Combine, PointwiseMap, Reduce

NOTE = (
    "<!-- Made by docs/reference_pages.py: `pytest tests/project/test_docs.py --update-golden`. -->"
)

KINDS = {"b": "bool", "i": "int64", "f": "floats", "c": "complex"}
"""Kinds of number, as the operator tables letter them."""

ESCAPED_BAR = r"\|"
"""A bar inside a cell of a Markdown table."""

Row = tuple[str, str]

VALUES = {0: "0", 1: "1", math.inf: "inf", -math.inf: "-inf"}
"""Values of which operators are asked whether they absorb others."""


OPERATORS = """\
{note}

# Functions, aggregations and operators

The compiler uses the same tables. You can add operators with `ucle.register_operator`
([Language](language.md#operators-of-your-own)).

## Pointwise functions

These are functions of one value, `f(x)`. Values of a type that is not listed under "computed on"
are converted to the next type that is. The column "f(0)" is the result for entries that are not
stored, if the fill is 0. If it is another number, the fill of the tensor changes, but the tensor
stays sparse.

{maps}

`gelu` is the tanh approximation (with `erf`, the error function, the exact one is
`0.5 * x * (1 + erf(x / 1.4142135623730951))`);
`leaky_relu` has the slope 0.01 below 0; `round` rounds halves to
the even neighbour; `bit_count` counts the bits of two's complement, which of -1 are 64;
`normal_quantile` is the quantile function of the standard normal distribution.
The names of element types are functions that convert values: {casts}.

## Functions defined by others

{functions}

## Operators and functions of two values

These are the ⊗ of an EinSum. An operator *absorbs* on one side if a certain value on that side
decides the result, whatever the other operand is. If the fill has this value, a join can omit the
pairs in which that operand is not stored. An operator *distributes over* an aggregation if the two
can be exchanged; the orders of products depend on this.

{combines}

`when(c, x)` is x where c is true, and 0 elsewhere; `unless(c, x)` is 0 where c is true, and x
elsewhere. Where c is false, `when_one(c, x)` is 1, `when_lowest(c, x)` is the identity of the
maximum (-inf, the least integer, or false) and `when_highest(c, x)` the identity of the minimum
(inf, the greatest integer, or true). `>` and `>=` are `<` and `<=` with their operands exchanged,
and `**` is `^`. `random_bits(seed, position)` returns 53 bits of Philox4x32-10
([Training](training.md#random-numbers)).

## Aggregations

These are the ⊕ of an EinSum, as the operator of a statement (`T[i] max= X[i,j]`) and as a function
(`max[j](X[i,j])`). "Of nothing" is the result over an axis of size 0. "n equal entries x" is the
result for n entries with the value x: ucle includes entries that are not stored in this way,
without creating them.

{reduces}

These aggregations are defined by others; `size` is the number of entries.

{derived}
"""


def operators_page() -> str:
    """Functions, ⊗ and ⊕ with what the compiler knows of them."""
    # Operators that users register have no kernels, and are no part of the language as it comes.
    maps = [m for m in MAPS.values() if m.compiled]
    combines = [c for c in COMBINES.values() if c.compiled]
    reduces = [r for r in REDUCES.values() if r.compiled]
    absorbs = "absorbs on the left", "on the right"
    facts = "commutative", "associative", "distributes over"
    counts = "of nothing", "n equal entries x", "partial results join by"
    return OPERATORS.format(
        note=NOTE,
        maps=table(("function", "f(0)", "computed on", "leaves as they are"), map(map_row, maps)),
        casts=", ".join(f"`{dtype.value}`" for dtype in DType),
        functions=table(
            ("function", "stands for"),
            ((f"`{n}({', '.join(d.parameters)})`", f"`{d.text}`") for n, d in FUNCTIONS.items()),
        ),
        combines=table(("operator", *absorbs, *facts), map(combine_row, combines)),
        reduces=table(
            ("statement", "function", *counts),
            (reduce_row(row) for row in reduces if not row.derived),
        ),
        derived=table(
            ("statement", "function", "stands for"),
            (derived_row(row) for row in reduces if row.derived),
        ),
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', ESCAPED_BAR) for cell in cells)} |" for cells in lines
    )


def map_row(row: PointwiseMap) -> tuple[str, ...]:
    """What there is to say of a pointwise function."""
    at_zero = row.scalar(0.0, DType.FLOAT64)
    kinds = ", ".join(name for kind, name in KINDS.items() if kind in row.kinds + row.zero_on)
    left = ", ".join(name for kind, name in KINDS.items() if kind in row.nothing_on)
    return f"`{row.name}`", number(at_zero), kinds, left


def combine_row(row: Combine) -> tuple[str, ...]:
    """What there is to say of a ⊗."""
    name = f"`{row.symbol}`" if row.infix else f"`{row.text('x', 'y')}`"
    left, right = (
        ", ".join(text for value, text in VALUES.items() if absorbs(value))
        for absorbs in (row.absorbs_left, row.absorbs_right)
    )
    over = ", ".join(f"`{REDUCES[each].assignment}`" for each in sorted(row.distributes_over))
    return name, left, right, yes(row.commutative), yes(row.associative), over


def reduce_row(row: Reduce) -> tuple[str, ...]:
    """What there is to say of a ⊕."""
    empty = "an error" if row.needs_one else "none"
    if row.identity is not None and not row.needs_one:
        logical = DType.BOOL if row.kinds == "b" else DType.FLOAT64
        empty = number(row.identity(logical))
    equal = f"`{row.repeat_by.text('x', 'n')}`" if row.repeat_by else "`x`"
    joined = row.merge.text("x", "y") if row.merge else ""
    return f"`{row.assignment}`", f"`{row.name}[j](x)`", empty, equal, f"`{joined}`"


def derived_row(row: Reduce) -> tuple[str, ...]:
    """What an aggregation that is written with others stands for."""
    text = row.definition
    return f"`{row.assignment}`", f"`{row.name}[j](x)`", f"`{text}`"


def number(value: object) -> str:
    """A value as a person writes it."""
    # The sum takes the sign off a zero.
    return f"{value + 0.0:.6g}" if isinstance(value, float) else str(value).lower()


def yes(fact: bool) -> str:
    """A fact in a table."""
    return "yes" if fact else ""


def commands_page() -> str:
    """The commands with their options, as `--help` has them."""
    with click.Context(main, info_name="ucle") as context:
        parts = [
            NOTE,
            "# Commands and their options",
            "`ucle COMMAND --help` prints the same text in a shell, and\n"
            "[Command line](command_line.md) shows how they are used.",
            *command_parts(main, context, set()),
            *below_parts(main, context),
        ]
    return "\n\n".join(parts) + "\n"


def below_parts(
    group: click.Group, context: click.Context, told: Collection[Row] | None = None
) -> Iterator[str]:
    """The commands of a group; options that all that compile a program have come first, once."""
    contexts = contexts_below(group, context)
    if told is None:
        compiling = [c for c in every_context(contexts) if takes_program(c.command)]
        told = set.intersection(*(set(options(c)) for c in compiling)) if compiling else set()
        if told:
            named = [f"`{c.command_path}`" for c in compiling]
            yield "## Options of commands that compile a program"
            yield f"{', '.join(named[:-1])} and {named[-1]} have all of these."
            yield table(("option", ""), (row for row in options(compiling[0]) if row in told))
    for below in contexts:
        yield from command_parts(below.command, below, told)
        if isinstance(below.command, click.Group):
            yield from below_parts(below.command, below, told)


def contexts_below(group: click.Group, context: click.Context) -> list[click.Context]:
    """The contexts of the commands of a group that are shown."""
    commands = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return [
        click.Context(command, parent=context, info_name=name)
        for name, command in commands
        if command is not None and not command.hidden
    ]


def every_context(contexts: Iterable[click.Context]) -> Iterator[click.Context]:
    """Some contexts, each followed by those of the commands below it."""
    for context in contexts:
        yield context
        if isinstance(context.command, click.Group):
            yield from every_context(contexts_below(context.command, context))


def takes_program(command: click.Command) -> bool:
    """Whether a command compiles a program file."""
    return any(parameter.name == "program_file" for parameter in command.params)


def command_parts(
    command: click.Command, context: click.Context, shared: Collection[Row]
) -> Iterator[str]:
    """A command: what it does, how it is called, and its options but for those told already."""
    yield f"## `{context.command_path}`"
    for part in (command.help or "").split("\f")[0].split("\n\n"):
        yield prose(part)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```"
    if own := [row for row in options(context) if row not in shared]:
        yield table(("option", ""), own)


def options(context: click.Context) -> list[Row]:
    """Each option of a command but `--help`: how it is written, and what it does."""
    records = (
        parameter.get_help_record(context)
        for parameter in context.command.get_params(context)
        if isinstance(parameter, click.Option) and "--help" not in parameter.opts
    )
    return [(f"`{name}`", prose(text)) for name, text in filter(None, records)]


def prose(text: str) -> str:
    """A paragraph of help as Markdown: one line, with names of options as code."""
    return re.sub(r"(?<![\w`-])--[a-z][a-z-]*", r"`\g<0>`", " ".join(text.split()))


GENERATED: dict[str, Callable[[], str]] = {
    "operators.md": operators_page,
    "array_api.md": lambda: array_api_page(NOTE),
    "commands.md": commands_page,
    "comparisons.md": lambda: comparisons_page(NOTE),
    "architecture.md": architecture_page,
    "gallery/index.md": lambda: gallery_pages.gallery_index(NOTE),
    **{f"gallery/{x}.md": partial(gallery_pages.write_figures, x) for x in gallery_pages.NAMES},
    "_static/layers.svg": picture,
    "_static/pipeline.svg": pipeline_picture.light,
    "_static/pipeline-dark.svg": pipeline_picture.dark,
    "../ucle/__init__.pyi": stub,
}
"""Pages by the names of their files."""
