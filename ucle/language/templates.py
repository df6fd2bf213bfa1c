"""Templates: expressions written as text over names, which are replaced by other expressions.

Functions that are defined by others (`ucle.language.functions`) use templates, and so do
derivatives (`ucle.operators`). Aggregations in a template do not name labels, and ``size`` is
the number of entries along the labels of its aggregations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ucle.ir.vertices import Span
from ucle.language.syntax import Access, Binary, Call, Expression, Number, Reduction, Size
from ucle.operators import REDUCES


def substitute(
    template: Expression, values: Mapping[str, Expression], over: tuple[str, ...], span: Span
) -> Expression:
    """Replace the names in a template by expressions.

    Args:
        template: a parsed template.
        values: the expressions, by name.
        over: the labels of its aggregations.
        span: the place of the result in the text.

    >>> from ucle.language.parse import template
    >>> from ucle.language.syntax_to_text import expression_text
    >>> here, x = Span(1, 1), Access("v", ("i",), Span(1, 1))
    >>> expression_text(substitute(template("sum(x) / size"), {"x": x}, ("i",), here))
    'sum[i](v[i]) / size[i]'
    """
    put: Callable[[Expression], Expression] = partial(
        substitute, values=values, over=over, span=span
    )
    match template:
        case Access(name):
            return Size(over, span) if name == "size" else values[name]
        case Number(value):
            return Number(value, span)
        case Call(str() as name, (argument,)) if name in REDUCES:
            return Reduction(REDUCES[name], over, put(argument), span)
        case Call(function, arguments):
            return Call(function, tuple(put(argument) for argument in arguments), span)
        case Binary(operator, left, right):
            return Binary(operator, put(left), put(right), span)
        case _:
            raise AssertionError(f"no template has {template}")
