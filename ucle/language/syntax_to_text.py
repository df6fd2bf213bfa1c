"""Conversion of statements to text that `ucle.language.parse` reads back.

Parentheses are written only where the grammar needs them.
"""

from __future__ import annotations

import math

from ucle import operators
from ucle.foundation.dtypes import Scalar
from ucle.language.functions import Direction
from ucle.language.syntax import (
    Access,
    Binary,
    Bounded,
    Call,
    Comparisons,
    Coordinate,
    Expression,
    First,
    Flat,
    ForestCall,
    Hit,
    LabelDivision,
    Number,
    Pairs,
    Reduction,
    Reindexed,
    Retyped,
    ScanExpression,
    Size,
    Statement,
    SystemCall,
)
from ucle.operators import ADD, AND, BIT_OR, EQUAL, MULT, POW

NOT = AND.binding + 1
COMPARISON = EQUAL.binding
COMPARED = BIT_OR.binding
"""The lowest precedence of what may be compared without parentheses."""
SUM, PRODUCT = ADD.binding, MULT.binding
MINUS = PRODUCT + 1
POWER = POW.binding
ATOM = POWER + 1
"""The precedence of names, calls and numbers."""


def statement_text(statement: Statement) -> str:
    """Format a statement as a person would write it.

    >>> from ucle.language.parse import parse_program
    >>> print(statement_text(parse_program("T[i]=sum[j](A[i,j]*(x[j]+1))")[0]))
    T[i] = sum[j](A[i,j] * (x[j] + 1))
    """
    assign = "=" if statement.accumulate is None else statement.accumulate.assignment
    return f"{_access(statement.target)} {assign} {expression_text(statement.expression)}"


def expression_text(expression: Expression) -> str:
    """Format an expression as a person would write it."""
    return _text(expression)[0]


def _access(access: Access) -> str:
    return str(access)


def _text(expression: Expression) -> tuple[str, int]:
    """Return the text of an expression, and the precedence of its outermost operator."""
    match expression:
        case Number(value):
            return _number(value)
        case Access():
            return _access(expression), ATOM
        case Coordinate(label):
            return label, ATOM
        case Hit(entries, label):
            return f"{_within(entries, COMPARED)} == {label}", COMPARISON
        case Reindexed(source, indices):
            return f"{source.tensor}[{','.join(map(str, indices))}]", ATOM
        case LabelDivision(argument, by):
            return f"{_within(argument, PRODUCT)} {expression.sign} {by}", PRODUCT
        case Call(operators.NOT, (argument,)):
            return f"not {_within(argument, NOT)}", NOT
        case Call(operators.NEG, (argument,)):
            return f"-{_within(argument, POWER)}", MINUS
        case Call(_, arguments):
            return f"{expression.name}({', '.join(map(expression_text, arguments))})", ATOM
        case Reduction(operator, over, argument):
            labels = f"[{','.join(over)}]"
            return f"{operator.name}{labels}({expression_text(argument)})", ATOM
        case ScanExpression(along, argument):
            labels = ",".join(along.labels)
            return f"{along.name}[{labels}]({expression_text(argument)})", ATOM
        case First(function, _, rank, Flat(over, argument=argument)):
            labels = ",".join(over if rank is None else (*over, rank))
            return f"{function.name}[{labels}]({expression_text(argument)})", ATOM
        case Flat(over, label, argument):
            return f"flat[{','.join(over)};{label}]({expression_text(argument)})", ATOM
        case First(function, label, rank, argument):
            labels = label if rank is None else f"{label},{rank}"
            return f"{function.name}[{labels}]({expression_text(argument)})", ATOM
        case ForestCall(feature, node, features, packed):
            both = f"{expression_text(features)}, {expression_text(packed)}"
            return f"forest[{feature},{node}]({both})", ATOM
        case SystemCall(row, column, matrix, sides):
            both = f"{expression_text(matrix)}, {expression_text(sides)}"
            return f"solve[{row},{column}]({both})", ATOM
        case Pairs(order, label, rank, _, source):
            name = "top_k" if order is Direction.GREATEST else "bottom_k"
            return f"{name}[{label},{rank}]({expression_text(source)})", ATOM
        case Retyped(argument):
            return _text(argument)
        case Bounded(argument, pick, bound):
            return pick.text(expression_text(argument), _number(bound)[0]), ATOM
        case Size(over):
            return f"size[{','.join(over)}]", ATOM
        case Binary(operator, left, right) if operator.binding:
            binding, power = operator.binding, operator is POW
            # Comparisons would chain; a power binds to the right, the others to the left.
            first = binding + (power or binding == COMPARISON)
            second = MINUS if power else binding + 1
            return operator.text(_within(left, first), _within(right, second)), binding
        case Binary(operator, left, right):
            return operator.text(expression_text(left), expression_text(right)), ATOM
        case Comparisons(operands, signs):
            texts = [_within(operand, COMPARED) for operand in operands]
            links = (f" {sign} {text}" for sign, text in zip(signs, texts[1:], strict=True))
            return texts[0] + "".join(links), COMPARISON


def _within(expression: Expression, least: int) -> str:
    text, binding = _text(expression)
    return text if binding >= least else f"({text})"


def _number(value: Scalar) -> tuple[str, int]:
    if isinstance(value, bool):
        return str(value), ATOM
    if isinstance(value, complex):
        sign = "-" if value.imag < 0 else "+"
        return f"{_number(value.real)[0]} {sign} {_number(abs(value.imag))[0]}j", SUM
    if math.isnan(value):
        return "1e999 - 1e999", SUM
    if abs(value) == math.inf:
        return ("1e999", ATOM) if value > 0 else ("-1e999", MINUS)
    return repr(value), MINUS if value < 0 else ATOM
