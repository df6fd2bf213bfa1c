"""The tables of the parser from `ucle/language/grammar.lark`, by Lark, which builds them.

Lark takes longer to build them than most programs take to compile, so that they are kept in
`ucle/language/grammar_tables.py`. `tests/language/test_grammar.py` checks that this module is what
the grammar says, and writes it with ``--update-golden``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lark import PostLex
from lark.lexer import PatternStr
from lark.parsers.lalr_analysis import Shift

import ucle.language
from ucle.language.parse import _drop_line_breaks

FOLDER = Path(ucle.language.__file__).parent
TABLES = FOLDER / "grammar_tables.py"
AGGREGATIONS = "sum|max"
"""Stands for the names of aggregations while tables are built."""

RULE = "tuple[str, int, str, tuple[int | None, ...]]"

HEAD = '''"""The tables of the parser: generated from `grammar.lark`, not to be edited.

`pytest tests/language/test_grammar.py --update-golden` writes this module.
`ucle.language.lr_parser` describes the tables.
"""
# ruff: noqa: E501
# fmt: off

from __future__ import annotations
'''


def grammar() -> str:
    """The grammar, in which ``REDUCES`` stands for the names of aggregations."""
    return (FOLDER / "grammar.lark").read_text(encoding="utf-8")


def module_text() -> str:
    """The module of tables."""
    lark = Lark(grammar().replace("REDUCES", AGGREGATIONS), parser="lalr")
    parser: Any = lark.parser
    table, lexer = parser.parser.parser.parse_table, parser.lexer.root_lexer
    numbers = _numbered_states(table)
    used = (arg for row in table.states.values() for act, arg in row.values() if act is not Shift)
    rules = sorted({str(rule): rule for rule in used}.values(), key=str)
    rows = []
    for state in sorted(numbers, key=numbers.__getitem__):
        row = {
            symbol: numbers[arg] if action is Shift else ~rules.index(arg)
            for symbol, (action, arg) in sorted(table.states[state].items())
        }
        rows.append(row)
    terminals = [
        (
            each.name,
            each.pattern.to_regexp().replace(AGGREGATIONS, "REDUCES"),
            each.pattern.value if isinstance(each.pattern, PatternStr) else None,
        )
        for each in lexer.terminals
    ]
    parts = [
        HEAD,
        _assigned("TERMINALS", "tuple[tuple[str, str, str | None], ...]", terminals),
        f"IGNORED = {tuple(sorted(lexer.ignore_types))!r}\n",
        _assigned("RULES", f"tuple[{RULE}, ...]", map(_rule, rules)),
        _assigned("STATES", "tuple[dict[str, int], ...]", rows),
        f"END = {numbers[table.end_states['start']]}\n",
    ]
    return "\n".join(parts)


def _assigned(name: str, type_: str, values: Any) -> str:
    return "\n".join([f"{name}: {type_} = (", *(f"    {value!r}," for value in values), ")", ""])


def _numbered_states(table: Any) -> dict[Any, int]:
    """Number the states from the first one on, in an order that does not depend on Lark's."""
    order = [table.start_states["start"]]
    for state in order:
        row = sorted(table.states[state].items(), key=lambda item: item[0])
        shifted = (arg for _, (action, arg) in row if action is Shift)
        order += dict.fromkeys(arg for arg in shifted if arg not in order)
    return {state: number for number, state in enumerate(order)}


def _rule(rule: Any) -> tuple[str, int, str, tuple[int | None, ...]]:
    """A rule as `ucle.language.lr_parser` has it."""
    origin, size = str(rule.origin.name), len(rule.expansion)
    empty = "".join("01"[x] for x in rule.options.empty_indices) or "0" * size
    gaps = [len(ones) for ones in empty.split("0")]
    children: list[int | None] = []
    for place, symbol in enumerate(rule.expansion):
        children += [None] * gaps[place]
        if not (symbol.is_term and symbol.filter_out):
            is_list = not symbol.is_term and symbol.name.startswith("_")
            children.append(~place if is_list else place)
    children += [None] * gaps[size]
    if rule.alias is None and rule.options.expand1 and len(children) == 1:
        return origin, size, "", tuple(children)
    return origin, size, str(rule.alias or origin), tuple(children)


class _LineBreaks(PostLex):
    always_accept = ("_END",)

    def process(self, stream: Iterator[Token]) -> Iterator[Any]:
        each: Any = stream
        yield from _drop_line_breaks(each)


class _Nodes(Transformer[Token, Any]):
    """Trees as nested tuples."""

    def __default__(self, data: str, children: list[Any], meta: Any) -> Any:
        return str(data), children


@cache
def _lark(aggregations: tuple[str, ...]) -> Lark:
    text = grammar().replace("REDUCES", "|".join(aggregations))
    return Lark(text, parser="lalr", postlex=_LineBreaks())


def parsed_by_lark(text: str, aggregations: Iterable[str]) -> Any:
    """The tree of a text, or what is unexpected: found, expected, line and column."""
    try:
        return _Nodes().transform(_lark(tuple(aggregations)).parse(text))
    except UnexpectedToken as error:
        if error.token.type == "$END":
            return None, error.accepts, 1, 1
        return str(error.token), error.accepts, error.line, error.column
    except UnexpectedCharacters as error:
        expected = error.interactive_parser.accepts()  # type: ignore[attr-defined]
        return text[error.pos_in_stream or 0], expected, error.line, error.column
    except UnexpectedInput as error:
        raise AssertionError(text) from error
