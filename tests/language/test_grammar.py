"""The parser's tables are those of the grammar, and it parses as Lark, which made them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from lark_tables import TABLES, module_text, parsed_by_lark

from ucle.language.lr_parser import Parser, Token, UnexpectedError, build
from ucle.language.parse import _drop_line_breaks

AGGREGATIONS = ("sum", "max", "any")

PROGRAMS = (
    "T[i,k] += X[i,j] * Y[j,k]; Z[i] = max[k](T[i,k])",
    "y[i] max= A[i,j] ^ 2 - -x[j] / 3.5e-2 ** z[] % 4 // 5\n# a comment\n\nz = +y[0]",
    "s = a and not b or c xor d < 2\r\nt[i] = where(x[i] == 1, y[~(i-1)], log(2j))",
    "r[i] = (a[i] +\n  b[i])\n;; ;\norder = or * and * not_ + maxi",
    "u[] = f[]\nv = max[](w[i,j])\n",
    "any = any[i](x[i] >= .5); any any= x[i] != 1.; max = max(1, 2)",
    "h[i,n] = relu(A[i,l]*X[l,m]*W[m,n])\n\n",
    "b[i] = x[i] & 7 | y[i] << 2 >> 1; c = True\nd[i] = 0 < z[idx[i] & 3] <= 5 != a and False\n",
)
SIGNS = "()[]+-*/^~,;=<>!%&|#.\n\r \t0a_é"
WORDS = (
    *("+=", "**", "//", "==", "<<", ">>", "max=", "any", "or", "and", "not", "xor", "sum=", "1e5"),
    *("\n\n", "True"),
)
PIECES = (*SIGNS, *WORDS, "")
"""What is put into programs."""


class Nodes:
    """Builds nested tuples, as `lark_tables` makes of Lark's trees."""

    def __getattr__(self, name: str) -> Callable[[list[Any]], Any]:
        return lambda children: (name, children)


def parsed(text: str) -> Any:
    """The tree of a text, or what is unexpected, as `parsed_by_lark` has it."""
    try:
        return build(Parser(AGGREGATIONS, _drop_line_breaks).history(text), Nodes())
    except UnexpectedError as error:
        found = None if error.found is None else str(error.found)
        return found, error.expected, error.line, error.column


def places(tree: Any) -> list[tuple[str, int, int]]:
    """The tokens of a tree with their lines and columns."""
    if isinstance(tree, str):
        token: Any = tree
        return [(str(token), token.line, token.column)]
    return [place for child in (tree[1] if tree else ()) for place in places(child)]


def changed(text: str, rng: random.Random) -> str:
    """The text with one to three pieces put in, left out or replaced."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(text) + 1)
        piece = rng.choice(PIECES)
        text = text[:start] + piece + text[start + rng.randrange(4) :]
    return text


def test_tables_are_those_of_the_grammar(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        TABLES.write_text(module_text(), encoding="utf-8")
    assert TABLES.read_text(encoding="utf-8") == module_text(), "see --update-golden"


def test_it_parses_as_lark() -> None:
    rng = random.Random(0)
    texts = [*PROGRAMS, "", *(changed(rng.choice(PROGRAMS), rng) for _ in range(1500))]
    trees = 0
    for text in texts:
        ours, larks = parsed(text), parsed_by_lark(text, AGGREGATIONS)
        assert ours == larks, repr(text)
        if ours[0] == "start":
            trees += 1
            assert places(ours) == places(larks), repr(text)
    assert 100 < trees < len(texts) - 500


def test_tokens_know_their_places() -> None:
    history = Parser((), iter).history("a = b\n\n  c = d")
    tokens = [step for step in history if isinstance(step, Token)]
    assert [(x.type, x.line, x.column) for x in tokens[3:5]] == [("_END", 1, 6), ("NAME", 3, 3)]
