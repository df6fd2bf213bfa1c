"""Parser: from text in index notation to the syntax tree.

The grammar is `grammar.lark`; `ucle.language.lr_parser` parses by its tables. Errors are
`ProgramSyntaxError` with line, column, the offending text and the expected tokens. Names of
operators are looked up only here: a tree refers to the operators registered at that time. Tensor
names and ranks are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NoReturn

from ucle.errors import (
    DepthError,
    LabelError,
    NameResolutionError,
    ProgramSyntaxError,
    did_you_mean,
)
from ucle.foundation.arguments import text as a_text
from ucle.foundation.arguments import validated
from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import find_free_name
from ucle.ir.affine import Affine
from ucle.ir.axis_functions import MATRIX_MAPS, RUNNING, MatrixMap, Running
from ucle.ir.forests import NAME as FOREST
from ucle.ir.linear_systems import NAME as SOLVE
from ucle.ir.vertices import Span
from ucle.language.forest_calls import forest_call
from ucle.language.functions import (
    ALONG,
    ELSEWHERE,
    FIRST,
    DerivedAlong,
    FirstFunction,
    Gives,
    function_named,
    own_name,
)
from ucle.language.label_arithmetic import LARGEST, affine_of
from ucle.language.lr_parser import Parser, Token, UnexpectedError, build
from ucle.language.scatter import rewrite_scatter
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Comparisons,
    Coordinate,
    Expression,
    First,
    Flat,
    ForestCall,
    Index,
    LabelDivision,
    Number,
    Reduction,
    ScanExpression,
    Statement,
    SystemCall,
    accesses,
    fold,
    walk,
    with_children,
    with_indices,
)
from ucle.language.syntax_to_text import expression_text
from ucle.language.system_calls import system_call
from ucle.operators import (
    ADD,
    AND,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    BITWISE_LEFT_SHIFT,
    BITWISE_RIGHT_SHIFT,
    COMBINES,
    DIV,
    FLOOR_DIVIDE,
    LESS,
    LESS_EQUAL,
    MULT,
    NEG,
    NOT,
    OR,
    POW,
    REDUCES,
    REMAINDER,
    SUB,
    TRUTHS,
    XOR,
    Combine,
    Reduce,
)

OPENING, CLOSING = frozenset({"LPAR", "LSQB"}), frozenset({"RPAR", "RSQB"})
CONTINUING = frozenset(
    {"PLUS", "MINUS", "STAR", "SLASH", "CIRCUMFLEX", "__ANON_0", "ASSIGN", "REDUCE", "COMMA"}
    | {"COMPARISON", "AND", "OR", "XOR", "NOT", "FLOOR", "PERCENT"}
    | {"VBAR", "AMPERSAND", "SHIFT"}
)

GOES_ON = "a statement ends with its line, unless that ends with an operator or within brackets"

MOST_TOKENS = 50_000
"""The largest number of tokens in a statement; DuckDB refuses longer ones only after seconds."""

MOST_DIGITS = 300
"""The largest number of digits of an integer: larger ones exceed float64, too."""

SWAPPED = {
    name: other
    for other, names in ((LESS, (">", "greater")), (LESS_EQUAL, (">=", "greater_equal")))
    for name in names
}
"""Comparisons that are parsed as another one with its sides swapped."""

# Readable names of the parser's terminals.
TERMINALS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "ASSIGN": "'=', '+=', '*='",
    "REDUCE": "an aggregation like 'max='",
    "COMPARISON": "a comparison",
    "AND": "'and'",
    "OR": "'or'",
    "XOR": "'xor'",
    "NOT": "'not'",
    "_END": "the end of the statement",
    "$END": "the end of the program",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "COMMA": "','",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "STAR": "'*'",
    "SLASH": "'/'",
    "FLOOR": "'//'",
    "PERCENT": "'%'",
    "CIRCUMFLEX": "'^'",
    "__ANON_0": "'**'",
    "TILDE": "'~'",
    "VBAR": "'|'",
    "AMPERSAND": "'&'",
    "SHIFT": "'<<', '>>'",
    "TRUE": "'True'",
    "FALSE": "'False'",
}

BITS = {row.symbol: row for row in (BIT_XOR, BITWISE_LEFT_SHIFT, BITWISE_RIGHT_SHIFT)}
"""Operators on bits by how they are written; ``xor`` is one where it is called as a function."""


def _drop_line_breaks(stream: Iterator[Token]) -> Iterator[Token]:
    """Drop line breaks inside brackets and after operators, where a statement continues."""
    depth, previous, count = 0, "_END", 0
    for token in stream:
        depth += (token.type in OPENING) - (token.type in CLOSING)
        if token.type == "_END":
            goes_on = token != ";" and (depth > 0 or previous in CONTINUING)
            if goes_on or previous == "_END":
                continue
            count = 0
        count += 1
        if count > MOST_TOKENS:
            raise DepthError(
                "the statement is too long",
                where=f"line {token.line}, column {token.column}",
                expected=f"at most {MOST_TOKENS} words and signs in one statement",
                found="more",
                hint="split it: compute parts of it in separate statements",
            )
        previous = token.type
        yield token


def _parser() -> Parser:
    return _parser_for(tuple(name for name, row in REDUCES.items() if not row.symbol))


MOST_BYTES = 1 << 24
"""Bytes of all parsed texts that are kept."""

_parsed = BoundedCache[tuple[Statement, ...]](MOST_BYTES)


@cache
def _parser_for(reduces: tuple[str, ...]) -> Parser:
    """Prepare the parser for these aggregations (users may register more)."""
    return Parser(reduces, _drop_line_breaks)


@validated(text=a_text)
def parse_program(text: str) -> tuple[Statement, ...]:
    """Parse statements in index notation.

    Args:
        text: statements such as ``T[i,k] += X[i,j] * Y[j,k]``, one a line or separated by ``;``,
            with ``#`` comments.

    Returns:
        The statements in the order of the text.

    Raises:
        ProgramSyntaxError: with line, column, the offending text and the expected tokens.
        NameResolutionError: an unknown aggregation.

    >>> parse_program("y[i] += A[i,j] * x[j]")[0].expression.labels
    ('i', 'j')
    """
    return _parsed.get_or_make(text, lambda: _parse(text))


@cache
def template(text: str) -> Expression:
    """Parse the text of a template (`ucle.language.templates`)."""
    return parse_program(f"_ = {text.strip()}")[0].expression


def forget_parsed() -> None:
    """Forget parsed texts: an operator was registered or removed, and they hold operators."""
    _parsed.clear()


def _parse(text: str) -> tuple[Statement, ...]:
    try:
        history = _parser().history(text)
    except UnexpectedError as error:
        _raise_syntax_error(error, text)
    statements = build(history, _Builder(text))
    if not statements:
        raise ProgramSyntaxError(
            "the program is empty",
            where="line 1, column 1",
            expected="at least one statement",
            found="nothing but blanks and comments" if text else "an empty text",
        )
    return tuple(statements)


def _raise_syntax_error(error: UnexpectedError, text: str) -> NoReturn:
    found, expected, goes_on = error.found, error.expected, False
    line, column = error.line, error.column
    unexpected = "the end of the program" if found is None else repr(found)
    if isinstance(found, Token):
        unexpected = repr(found.replace("\r", ""))
        if found.type == "_END" and found != ";":
            unexpected = "the end of the line"
        goes_on = found.type in CONTINUING and "$END" in expected
    if found is None:
        lines = text.splitlines() or [""]
        line, column = len(lines), len(lines[-1]) + 1
    words = sorted({TERMINALS.get(name, name) for name in expected})
    source = (text.splitlines() or [""])[line - 1] if line - 1 < len(text.splitlines()) else ""
    hint = GOES_ON if goes_on and line > 1 and not source[: column - 1].strip() else None
    if found is not None and found in FIRST and "REDUCE" in expected:
        hint = f"after =, write {FIRST[found].form}"
    raise ProgramSyntaxError(
        "the program does not follow the grammar",
        where=f"line {line}, column {column}",
        expected=" or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words),
        found=f"{unexpected} in {source.strip()!r}",
        hint=hint,
    ) from None


def comparison(left: Expression, right: Expression, sign: str) -> Binary:
    """Return the comparison of two expressions by a sign; ``x > y`` is ``y < x``."""
    if (swapped := SWAPPED.get(sign)) is not None:
        return Binary(swapped, right, left, left.span)
    operator = next(row for row in COMBINES.values() if row.symbol == sign)
    return Binary(operator, left, right, left.span)


@dataclass(frozen=True)
class _Permissive:
    """An index after a ``~`` in brackets."""

    expression: Expression


def _index(part: Expression | _Permissive, tensor: str, span: Span) -> Index:
    """Convert an expression in brackets to an index."""
    permissive = isinstance(part, _Permissive)
    expression = part.expression if isinstance(part, _Permissive) else part
    affine = affine_of(expression)
    if affine is None and any(not x.bare for x in accesses(expression)):
        entries = _at_labels(expression)
        return Index(Affine(), permissive, entries, expression_text(entries))
    if affine is None:
        raise ProgramSyntaxError(
            f"an index of {tensor} is no sum of labels, multiples of labels and integers",
            where=str(span),
            expected="an index such as i, i+1, 2*i+w, i//3, i%3 or ~(i-1), or entries of a tensor, "
            "as idx[i]",
            found=", ".join(map(str, accesses(expression))) or "another expression",
        )
    return Index(affine, permissive)


def _at_labels(expression: Expression) -> Expression:
    """Convert names without brackets in an index to labels as numbers."""

    def put(part: Expression, parts: list[Expression]) -> Expression:
        if isinstance(part, Access) and part.bare:
            return Coordinate(part.tensor, part.span)
        return with_children(part, parts)

    return fold(expression, put)


def _label(part: Expression | _Permissive, span: Span) -> str:
    """Check that a part is a label to aggregate over."""
    if isinstance(part, Access) and part.bare:
        return part.tensor
    raise ProgramSyntaxError(
        "an aggregation is over something other than labels",
        where=str(span),
        expected="labels, as in sum[j,k](...)",
        found="another expression",
    )


def _with_coordinates(target: Access, expression: Expression) -> Expression:
    """Convert names without brackets to labels, if they are labels of the statement."""
    labels = set(target.labels)
    for part in walk(expression):
        match part:
            case Access(labels=own):
                labels.update(own)
            case Reduction(over=own):
                labels.update(own)
            case ScanExpression(along):
                labels.update(along.labels)
            case First(label=label):
                labels.update((label, *part.labels))
            case Flat(over=own):
                labels.update(own)
            case ForestCall(feature, node):
                labels.update((feature, node))
            case SystemCall(row, column):
                labels.update((row, column))
    names = {x.tensor for x in accesses(expression) if x.bare}
    if names.isdisjoint(labels):
        return expression

    def put(part: Expression, parts: list[Expression]) -> Expression:
        if isinstance(part, Access) and part.bare and part.tensor in labels:
            return Coordinate(part.tensor, part.span)
        return with_children(part, parts)

    return fold(expression, put)


def _of_values(expression: Expression) -> Expression:
    """Make ``//`` and ``%`` operators on values, unless they are applied to labels alone."""
    if not any(isinstance(part, LabelDivision) for part in walk(expression)):
        return expression

    def put(part: Expression, parts: list[Expression]) -> Expression:
        made = with_children(part, parts)
        if isinstance(made, LabelDivision) and (accesses(made) or affine_of(made) is None):
            by = Number(made.by, made.span)
            return _divided(made.argument, by, remainder=made.remainder)
        return made

    return fold(expression, put)


def _divided(argument: Expression, by: Expression, *, remainder: bool) -> Binary:
    return Binary(REMAINDER if remainder else FLOOR_DIVIDE, argument, by, argument.span)


class _Builder:
    """Builds the structures of `ucle.language.syntax`; a method for each kind of rule."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._bare = set[str]()
        """Names without brackets in the statement, which may be labels."""

    def _span(self, token: Token) -> Span:
        text = self._lines[token.line - 1].strip() if self._lines else ""
        return Span(token.line, token.column, text)

    def start(self, children: list[Statement]) -> list[Statement]:
        return children

    def statement(self, children: list[Any]) -> Statement:
        target, assign, expression = children
        accumulate = {row.assignment: row for row in REDUCES.values()}.get(str(assign))
        _check_target(target, accumulate)
        if self._bare:
            expression = _with_coordinates(target, expression)
            self._bare.clear()
        expression = _of_values(expression)
        if accumulate is not None and target.computed:
            return rewrite_scatter(target, accumulate, expression, target.span)
        return Statement(target, accumulate, expression, target.span)

    def access(self, children: list[Any]) -> Access:
        name, *indices = children
        span = self._span(name)
        if not indices:
            self._bare.add(str(name))
            return Access(str(name), (), span, bare=True)
        indices = [_index(x, str(name), span) for x in indices if x is not None]
        plain = tuple(index.plain for index in indices if index.plain is not None)
        if len(plain) == len(indices):
            return Access(str(name), plain, span)
        return with_indices(Access(str(name), (), span), indices)

    def permissive(self, children: list[Expression]) -> _Permissive:
        return _Permissive(children[0])

    def number(self, children: list[Token]) -> Number:
        (token,) = children
        span = self._span(token)
        if token[-1] in "jJ":
            return Number(complex(token), span)
        if token.isdigit() and len(token) > MOST_DIGITS:
            raise ProgramSyntaxError(
                "an integer has too many digits",
                where=str(span),
                expected=f"at most {MOST_DIGITS} digits; int64 holds 19",
                found=f"{len(token)} digits",
                hint="1e30 is the same kind of number with a decimal exponent",
            )
        return Number(int(token) if token.isdigit() else float(token), span)

    def call(self, children: list[Any]) -> Expression:
        written, *arguments = children
        name, span = own_name(str(written)), self._span(written)
        if len(arguments) == 2 and (operator := BITS.get(name, COMBINES.get(name))) is not None:
            left, right = arguments
            return Binary(operator, left, right, span)
        if len(arguments) == 2 and (swapped := SWAPPED.get(name)) is not None:
            left, right = arguments
            return Binary(swapped, right, left, span)
        return Call(function_named(name), tuple(arguments), span)

    def arguments(self, children: list[Expression]) -> tuple[Expression, ...]:
        return tuple(children)

    def reduction(self, children: list[Any]) -> Expression:
        name, *indices, arguments = children
        span = self._span(name)
        over = tuple(_label(x, span) for x in indices if x is not None)
        if name == FOREST:
            return forest_call(over, arguments, span)
        if name == SOLVE:
            return system_call(over, arguments, span)
        if len(arguments) != 1:
            raise ProgramSyntaxError(
                f"{name} has more than one argument",
                where=str(span),
                expected=f"{name}[{','.join(over)}](...)",
                found=f"{len(arguments)} arguments",
            )
        (argument,) = arguments
        if name in RUNNING:
            if len(over) != 1:
                raise ProgramSyntaxError(
                    f"{name} runs along one label",
                    where=str(span),
                    expected=f"{name}[j](...)",
                    found=f"{name}[{','.join(over)}](...)",
                )
            return ScanExpression(Running(RUNNING[name], over[0]), argument, span)
        if name in MATRIX_MAPS:
            if len(set(over)) != 2 or len(over) != 2:
                raise ProgramSyntaxError(
                    f"{name} needs a matrix, which has two labels",
                    where=str(span),
                    expected=f"{name}[i,j](...)",
                    found=f"{name}[{','.join(over)}](...)",
                )
            return ScanExpression(MatrixMap(str(name), *over), argument, span)
        if name in FIRST:
            function = FIRST[name]
            if len(over) > 1 + function.several and function.gives is not Gives.MEMBERS:
                return _first_of_several(function, over, argument, span)
            if not 1 <= len(over) <= 1 + function.several or len(set(over)) < len(over):
                raise ProgramSyntaxError(
                    f"{name} is along one label"
                    + (", and another one numbers what comes first" if function.several else ""),
                    where=str(span),
                    expected=function.form,
                    found=f"{name}[{','.join(over)}](...)",
                )
            return First(function, over[0], over[1] if over[1:] else None, argument, span)
        if name in ALONG and name not in REDUCES:
            _check_along(str(name), over, argument, span)
            return ScanExpression(DerivedAlong(str(name), tuple(over)), argument, span)
        return Reduction(_aggregation(str(name), span), over, argument, span)

    def compare(self, children: list[Any]) -> Expression:
        operands, signs = tuple(children[::2]), tuple(map(str, children[1::2]))
        if len(signs) > 1:
            return Comparisons(operands, signs, operands[0].span)
        return comparison(operands[0], operands[1], signs[0])

    def bit_or(self, children: list[Expression]) -> Binary:
        return self._binary(BIT_OR, children)

    def bit_and(self, children: list[Expression]) -> Binary:
        return self._binary(BIT_AND, children)

    def shift(self, children: list[Any]) -> Binary:
        left, sign, right = children
        return self._binary(BITS[sign], [left, right])

    def truth(self, children: list[Token]) -> Number:
        (token,) = children
        return Number(TRUTHS[token], self._span(token))

    def or_(self, children: list[Expression]) -> Binary:
        return self._binary(OR, children)

    def xor(self, children: list[Expression]) -> Binary:
        return self._binary(XOR, children)

    def and_(self, children: list[Expression]) -> Binary:
        return self._binary(AND, children)

    def not_(self, children: list[Expression]) -> Call:
        (argument,) = children
        return Call(NOT, (argument,), argument.span)

    def neg(self, children: list[Expression]) -> Expression:
        (argument,) = children
        if isinstance(argument, Number):
            return Number(-argument.value, argument.span)
        return Call(NEG, (argument,), argument.span)

    def add(self, children: list[Expression]) -> Binary:
        return self._binary(ADD, children)

    def sub(self, children: list[Expression]) -> Binary:
        return self._binary(SUB, children)

    def mult(self, children: list[Expression]) -> Binary:
        return self._binary(MULT, children)

    def div(self, children: list[Expression]) -> Binary:
        return self._binary(DIV, children)

    def quotient(self, children: list[Expression]) -> Expression:
        return self._split(children, remainder=False)

    def remainder(self, children: list[Expression]) -> Expression:
        return self._split(children, remainder=True)

    def _split(self, children: list[Expression], *, remainder: bool) -> Expression:
        """Return a quotient that may be of labels; what has another divisor is of values."""
        argument, by = children
        value = by.value if isinstance(by, Number) else None
        if type(value) is int and 1 <= value <= LARGEST:
            return LabelDivision(argument, value, remainder, argument.span)
        return _divided(argument, by, remainder=remainder)

    def pow(self, children: list[Expression]) -> Binary:
        return self._binary(POW, children)

    def _binary(self, operator: Combine, children: list[Expression]) -> Binary:
        left, right = children
        return Binary(operator, left, right, left.span)


def _check_target(target: Access, accumulate: Reduce | None) -> None:
    """Check that the left side has labels, or entries of tensors with an aggregation."""
    if target.tensor in TRUTHS:
        raise ProgramSyntaxError(
            f"{target.tensor} is a constant, and no name of a tensor",
            where=str(target.span),
            expected="another name on the left side",
            found=str(target),
        )
    for index in target.indices or ():
        if index.plain is None and (index.entries is None or index.permissive):
            raise ProgramSyntaxError(
                "the left side of a statement is indexed by something other than labels",
                where=str(target.span),
                expected="labels, as in Z[i,j], or entries of a tensor, as in Z[idx[i],j] += ...",
                found=str(target),
                hint="shift the read instead: Z[i] = A[i+1]",
            )
    if target.indices is not None and accumulate is None:
        raise ProgramSyntaxError(
            "the statement does not say what happens to entries that meet at one place "
            "of the left side",
            where=str(target.span),
            expected="an aggregation, such as +=, max= or min=",
            found=f"{target} = ...",
            hint=f"{target} += ... adds them up; an entry that meets no other stays as it is",
        )


def _check_along(name: str, over: tuple[str, ...], argument: Expression, span: Span) -> None:
    """Check that a function along labels that stay names some labels of its argument, each once."""
    if over and set(over) <= set(argument.labels) and len(set(over)) == len(over):
        return
    label = (argument.labels or ("j",))[-1]
    raise LabelError(
        f"{name} is along labels of its argument",
        where=str(span),
        expected=f"{name}[{label}](...)",
        found=f"{name}[{','.join(over)}](...)",
    )


def _first_of_several(
    function: FirstFunction, over: tuple[str, ...], argument: Expression, span: Span
) -> First:
    """The first entries along several labels; with a rank, it is the last label."""
    along, rank = (over[:-1], over[-1]) if function.several else (over, None)
    if len(set(over)) < len(over):
        raise ProgramSyntaxError(
            f"{function.name} names a label twice",
            where=str(span),
            expected=f"{function.name}[i,j{',r' if function.several else ''}](...)",
            found=f"{function.name}[{','.join(over)}](...)",
        )
    label = find_free_name("_".join(along), {*argument.labels, *over})
    return First(function, label, rank, Flat(along, label, argument, span), span)


def _aggregation(name: str, span: Span) -> Reduce:
    if name not in REDUCES:
        raise NameResolutionError(
            f"unknown aggregation {name!r}",
            where=str(span),
            expected="one of "
            + ", ".join(sorted({*REDUCES, *RUNNING, *MATRIX_MAPS, *ALONG, SOLVE})),
            found=name,
            hint=ELSEWHERE.get(name)
            or did_you_mean(name, [*REDUCES, *RUNNING, *MATRIX_MAPS, *ALONG, SOLVE]),
        )
    return REDUCES[name]
