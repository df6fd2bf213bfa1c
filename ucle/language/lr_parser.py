"""An LALR(1) parser over the tables of the grammar, with a lexer that depends on the state.

In: a text, and the names of aggregations. Out: tokens and reductions in the order in which the
parser meets them (`Parser.history`), which `build` turns into values. What the rules mean is not
known here: `ucle.language.parse` says so.

`ucle.language.grammar_tables` holds the tables, which Lark makes of `grammar.lark`:

TERMINALS  name, regular expression, and the text where there is but one; the first that matches
           counts. ``REDUCES`` stands for the names of aggregations.
IGNORED    terminals that are dropped.
RULES      name of the left side, number of symbols on the right, what is built of it (nothing: the
           one child itself), and its children: positions on the right, None for a part that is
           left out, and the complement of a position whose list of children is spliced in.
STATES     per state and symbol the next state, or the complement of the rule to reduce by.
END        the state after the whole text; 0 is the first one.

In each state the lexer looks only for terminals that the parser can take, so that words such as
``or`` may be names of tensors where no operator can stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ucle.language.grammar_tables import END, IGNORED, RULES, STATES, TERMINALS

WORDS = {text: name for name, _, text in TERMINALS if text is not None and text.isalpha()}
"""Terminals that are words, by the words: they take precedence over names."""


class Token(str):
    """A word or a sign: its text, with the name of its terminal and its place, counted from 1."""

    __slots__ = ("column", "line", "type")

    type: str
    line: int
    column: int

    def __new__(cls, text: str, type_: str, line: int, column: int) -> Token:
        """Make a token of a terminal."""
        token = super().__new__(cls, text)
        token.type, token.line, token.column = type_, line, column
        return token


class UnexpectedError(Exception):
    """A text that does not follow the grammar, with the place and what was expected there."""

    def __init__(
        self, found: Token | str | None, expected: Iterable[str], line: int, column: int
    ) -> None:
        """Say what was found and expected.

        Args:
            found: a token; a character that begins none; None is the end of the text.
            expected: names of terminals, among them ``$END`` for the end.
            line: the line, from 1.
            column: the column, from 1.
        """
        super().__init__(found, expected, line, column)
        self.found, self.expected = found, frozenset(expected)
        self.line, self.column = line, column


class _Scanner(NamedTuple):
    """The terminals of a state."""

    match: Callable[[str, int], re.Match[str] | None]
    words: frozenset[str]
    """Words that are terminals here, not names."""


class Parser:
    """A parser for the names of aggregations that are known.

    >>> parser = Parser(("sum",), iter)
    >>> [str(x) for x in parser.history("s = 2 * x") if isinstance(x, Token)]
    ['s', '=', '2', '*', 'x']
    """

    def __init__(
        self, aggregations: Iterable[str], process: Callable[[Iterator[Token]], Iterable[Token]]
    ) -> None:
        """Prepare a parser.

        Args:
            aggregations: names that stand before ``=``.
            process: drops tokens between the lexer and the parser.
        """
        names = "|".join(aggregations)
        self._patterns = {name: text.replace("REDUCES", names) for name, text, _ in TERMINALS}
        self._process = process
        self._scanners: dict[frozenset[str], _Scanner] = {}

    def history(self, text: str) -> list[Token | int]:
        """Return tokens, and the numbers of the rules that reduce them, in their order.

        Raises:
            UnexpectedError: the text does not follow the grammar.
        """
        states, history = [0], list[Token | int]()
        for token in self._process(self._tokens(text, states)):
            if not _feed(token.type, states, history):
                raise UnexpectedError(token, _accepted(states), token.line, token.column)
            history.append(token)
        if not _feed("$END", states, history):
            raise UnexpectedError(None, _accepted(states), 1, 1)
        return history

    def _tokens(self, text: str, states: Sequence[int]) -> Iterator[Token]:
        """Yield the tokens of a text, each for the state in which the parser is by then."""
        place, line, line_start = 0, 1, 0
        while place < len(text):
            scanner = self._scanner(STATES[states[-1]].keys())
            column = place - line_start + 1
            match = scanner.match(text, place)
            if match is None:
                raise self._unexpected(text, place, states, line, column)
            name, found = match.lastgroup or "", match[0]
            if name == "NAME" and found in scanner.words:
                name = WORDS[found]
            if name not in IGNORED:
                yield Token(found, name, line, column)
            place = match.end()
            if "\n" in found:
                line += found.count("\n")
                line_start = place - len(found) + found.rindex("\n") + 1

    def _unexpected(
        self, text: str, place: int, states: Sequence[int], line: int, column: int
    ) -> UnexpectedError:
        """Say what stands at a place where nothing that the state can take begins."""
        scanner = self._scanner(self._patterns.keys())
        found: Token | str = text[place]
        if (match := scanner.match(text, place)) is not None:
            name = match.lastgroup or ""
            found = Token(match[0], WORDS.get(match[0], name), line, column)
        return UnexpectedError(found, _accepted(states), line, column)

    def _scanner(self, symbols: Iterable[str]) -> _Scanner:
        """Return the scanner of a state that can take these symbols; line breaks may be dropped."""
        known = {*symbols, *IGNORED, "_END"} & self._patterns.keys()
        names = frozenset(known)
        if names not in self._scanners:
            words = frozenset(text for text, name in WORDS.items() if name in names)
            apart = {WORDS[text] for text in words} if "NAME" in names else set()
            alternatives = (
                f"(?P<{name}>{pattern})"
                for name, pattern in self._patterns.items()
                if name in names - apart
            )
            self._scanners[names] = _Scanner(re.compile("|".join(alternatives)).match, words)
        return self._scanners[names]


def _feed(symbol: str, states: list[int], history: list[Token | int]) -> bool:
    """Reduce, and take a terminal; False if it cannot stand here."""
    while (target := STATES[states[-1]].get(symbol)) is not None:
        if target >= 0:
            states.append(target)
            return True
        origin, size, _, _ = RULES[~target]
        del states[len(states) - size :]
        states.append(STATES[states[-1]][origin])
        history.append(~target)
        if states[-1] == END:
            return True
    return False


def _accepted(states: Sequence[int]) -> frozenset[str]:
    """The terminals that can stand here, where the end is called ``$END``."""
    terminals = (symbol for symbol in STATES[states[-1]] if symbol.isupper())
    return frozenset(x for x in terminals if _feed(x, list(states), []))


def build(history: Iterable[Token | int], builder: object) -> Any:
    """Build the value of a text: rules call the methods of their names with their children."""
    values: list[Any] = []
    for step in history:
        if isinstance(step, Token):
            values.append(step)
            continue
        _, size, action, places = RULES[step]
        parts = values[len(values) - size :]
        del values[len(values) - size :]
        children: list[Any] = []
        for place in places:
            if place is None:
                children.append(None)
            elif place >= 0:
                children.append(parts[place])
            else:
                children += parts[~place]
        if not action:
            (value,) = children
        elif action.startswith("_"):
            value = children
        else:
            value = getattr(builder, action)(children)
        values.append(value)
    (value,) = values
    return value
