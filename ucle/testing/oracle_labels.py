"""The labels of expressions: which of them are free, and which belong to an aggregation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ucle.language.syntax import (
    Access,
    Coordinate,
    Expression,
    First,
    Flat,
    ForestCall,
    Hit,
    Reduction,
    ScanExpression,
    SystemCall,
    children,
    with_children,
)


def with_own_labels(
    expression: Expression, names: Mapping[str, str], numbers: Iterator[int]
) -> Expression:
    """Return the expression with unique names for the labels of its aggregations."""
    match expression:
        case Access(tensor, labels, span, indices):
            own = tuple(names.get(x, x) for x in labels)
            if indices is not None:
                indices = tuple(
                    replace(
                        x,
                        affine=x.affine.rename_labels(names),
                        entries=None
                        if x.entries is None
                        else with_own_labels(x.entries, names, numbers),
                    )
                    for x in indices
                )
            return Access(tensor, own, span, indices)
        case Hit(entries, label):
            entries = with_own_labels(entries, names, numbers)
            return replace(expression, entries=entries, label=names.get(label, label))
        case Coordinate(label, span):
            return Coordinate(names.get(label, label), span)
        case ScanExpression(running, argument, span):
            argument = with_own_labels(argument, names, numbers)
            return ScanExpression(running.rename_labels(names), argument, span)
        case First(function, label, rank, argument, span) if expression.stays:
            argument = with_own_labels(argument, names, numbers)
            rank = None if rank is None else f"{rank} {next(numbers)}"
            return First(function, names.get(label, label), rank, argument, span)
        case First(function, label, rank, argument, span):
            own_label = f"{label} {next(numbers)}"
            argument = with_own_labels(argument, {**names, label: own_label}, numbers)
            rank = None if rank is None else names.get(rank, rank)
            return First(function, own_label, rank, argument, span)
        case Flat(over, label, argument, span):
            inner = {**names, **{x: f"{x} {next(numbers)}" for x in over}}
            argument = with_own_labels(argument, inner, numbers)
            own = tuple(inner[x] for x in over)
            return Flat(own, names.get(label, label), argument, span)
        case ForestCall(feature, node, features, packed, span):
            feature, node = f"{feature} {next(numbers)}", f"{node} {next(numbers)}"
            f, p = expression.feature, expression.node
            features = with_own_labels(features, {**names, f: feature}, numbers)
            packed = with_own_labels(packed, {**names, p: node}, numbers)
            return ForestCall(feature, node, features, packed, span)
        case SystemCall(row, column, matrix, sides, span):
            own_row = f"{row} {next(numbers)}"
            inner = {**names, row: own_row}
            matrix = with_own_labels(matrix, inner, numbers)
            sides = with_own_labels(sides, inner, numbers)
            return SystemCall(own_row, names.get(column, column), matrix, sides, span)
        case Reduction(operator, over, argument, span):
            inner = {**names, **{label: f"{label} {next(numbers)}" for label in over}}
            argument = with_own_labels(argument, inner, numbers)
            return Reduction(operator, tuple(inner[x] for x in over), argument, span)
    parts = [with_own_labels(x, names, numbers) for x in children(expression)]
    return with_children(expression, parts)


def occurrences(expression: Expression) -> Counter[str]:
    """Count the occurrences of each free label of an expression."""
    if isinstance(expression, Access | Coordinate | Hit):
        return Counter(set(expression.labels))
    if isinstance(expression, ForestCall):
        return Counter(set(expression.labels))
    counted: Counter[str] = Counter()
    for child in children(expression):
        counted.update(occurrences(child))
    if isinstance(expression, Reduction):
        for label in expression.over:
            counted.pop(label, None)
    if isinstance(expression, Flat):
        for label in expression.over:
            counted.pop(label, None)
        counted[expression.label] = 1
    if isinstance(expression, SystemCall):
        counted.pop(expression.row, None)
    if isinstance(expression, First) and not expression.stays:
        counted.pop(expression.label, None)
        counted.update(() if expression.rank is None else (expression.rank,))
    return counted
