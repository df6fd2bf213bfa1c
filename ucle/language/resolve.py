"""Resolution of statements: implied sums become explicit, and composed functions are expanded.

Takes a syntax tree and returns one in which nothing is implied:

- `+=`, `max=` etc. become an aggregation of the whole right side over the labels that are missing
  on the left.
- With `=`, a label that is missing on the left is summed over the smallest subexpression that holds
  all of its occurrences, so ``relu(T[i,m] * W[m,n])`` is the relu of a sum.
- Functions and aggregations that are defined by others (`ucle.language.functions`) are expanded.
- Functions along labels that stay, such as ``softmax[j](...)``, are expanded, too. Like those of
  relu, sums that are missing in their argument are inside it.
- A chain of comparisons becomes the conjunction of those of neighbours. Its sums are around the
  operands by then, each of which is one expression, though it is compared on both sides.
- The labels of an aggregation are local: if another label of the statement has the same name, they
  are renamed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial, reduce

from ucle.errors import LabelError, NameResolutionError, did_you_mean
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import find_free_name
from ucle.foundation.tree_walk import Calls, run
from ucle.ir.axis_functions import MATRIX_MAPS, RUNNING
from ucle.ir.forests import NAME as FOREST
from ucle.ir.linear_systems import NAME as SOLVE
from ucle.ir.vertices import Span
from ucle.language.forest_calls import check_labels
from ucle.language.functions import ALONG, CASTS, ELSEWHERE, FIRST, FUNCTIONS, DerivedAlong
from ucle.language.parse import comparison, template
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
    Hit,
    LabelDivision,
    Reduction,
    ScanExpression,
    Size,
    Statement,
    SystemCall,
    accesses,
    children,
    fold,
    walk,
    with_children,
    with_indices,
)
from ucle.language.system_calls import check_system
from ucle.language.templates import substitute
from ucle.operators import AND, MAPS, REDUCES, SUM


def resolve(statement: Statement, keep: Collection[str] = ()) -> Statement:
    """Make everything that a statement implies explicit.

    Args:
        statement: as it was parsed, or resolved already.
        keep: names of aggregations to keep although they are defined by others.

    Raises:
        NameResolutionError: an unknown function, or one with the wrong number of arguments.
        LabelError: an aggregation over a label that its argument does not have.

    >>> from ucle.language.parse import parse_program
    >>> resolved = resolve(parse_program("Z[i] = relu(A[i,j] * w[j])")[0])
    >>> resolved.expression.arguments[0].over
    ('j',)
    """
    expression, target = statement.expression, statement.target.labels
    if statement.accumulate is None:
        _check_summed(statement)
        expression = run(_sum_missing(expression, frozenset(target)))
    else:  # also over no label: a count or a sum changes the type
        over = tuple(dict.fromkeys(x for x in expression.labels if x not in target))
        expression = Reduction(statement.accumulate, over, expression, statement.span)
    aggregation = expression.operator if isinstance(expression, Reduction) else None
    if any(isinstance(part, ScanExpression) for part in walk(expression)):
        expression = fold(expression, _expand_along)
    expression = fold(expression, partial(_expand_expression, keep=keep))
    _check_sizes(expression, statement.like)
    names = _Names({*target, *expression.labels})
    expression = names.make_unique(expression, {})
    renamed = {**statement.renamed, **names.renamed}
    return replace(
        statement,
        accumulate=None,
        expression=expression,
        renamed=renamed,
        aggregation=aggregation,
    )


def _sum_missing(expression: Expression, kept: frozenset[str]) -> Calls[Expression]:
    """Sum over labels that are not kept, each in the smallest subexpression that holds it."""
    if isinstance(expression, LabelDivision):  # it has only labels
        here = [label for label in expression.labels if label not in kept]
        return Reduction(SUM, tuple(here), expression, expression.span) if here else expression
    staying: tuple[str, ...] = ()
    if isinstance(expression, ScanExpression):
        staying = expression.along.labels
    elif isinstance(expression, First) and expression.stays:
        staying = (expression.label,)
    elif isinstance(expression, SystemCall):
        staying = (expression.column,)
    if isinstance(expression, ForestCall):  # what it makes is summed, and not what it reads
        here = [label for label in expression.labels if label not in kept]
        parts = []
        for child in children(expression):
            parts.append((yield _sum_missing(child, frozenset(child.labels))))
        made = with_children(expression, parts)
        return Reduction(SUM, tuple(here), made, _span(made)) if here else made
    gone = tuple(x for x in staying if x not in kept and x in expression.labels)
    if gone:
        inner = yield _sum_missing(expression, kept.union(gone))  # they exist until the end
        return Reduction(SUM, gone, inner, expression.span)
    here = []
    # Labels of an index are those of the tensor that is read with it.
    inside = () if isinstance(expression, Access | Hit) else children(expression)
    below: list[set[str]] = [set() for _ in inside]
    for label in dict.fromkeys(expression.labels):
        if label in kept:
            continue
        holders = [n for n, child in enumerate(inside) if label in child.labels]
        if len(holders) == 1:
            below[holders[0]].add(label)
        else:
            here.append(label)
    parts = []
    for child, missing in zip(inside, below, strict=True):
        parts.append((yield _sum_missing(child, kept.union(child.labels) - missing)))
    inner = with_children(expression, parts) if inside else expression
    return Reduction(SUM, tuple(here), inner, _span(inner)) if here else inner


def _span(expression: Expression) -> Span:
    return expression.span


# ---- Functions defined by others ----


def _expand_along(expression: Expression, parts: list[Expression]) -> Expression:
    """Expand a function along labels that stay; its aggregations are expanded after this."""
    if isinstance(expression, ScanExpression) and isinstance(expression.along, DerivedAlong):
        along = expression.along
        return substitute(
            template(ALONG[along.name]), {"x": parts[0]}, along.labels, expression.span
        )
    return with_children(expression, parts)


def _expand_expression(
    expression: Expression, parts: list[Expression], keep: Collection[str]
) -> Expression:
    """Expand an expression if it is defined by others, given its parts."""
    match expression:
        case Call(str() as name, _, span):
            if (derived := FUNCTIONS.get(name)) is not None:
                _check_count(expression, len(derived.parameters))
                values = dict(zip(derived.parameters, parts, strict=True))
                return substitute(template(derived.text), values, (), span)
            with_labels = (*REDUCES, *RUNNING, *MATRIX_MAPS, *FIRST, *ALONG, FOREST, SOLVE)
            aggregates = name in with_labels
            raise (_without_labels if aggregates else _unknown_function)(expression)
        case Call():
            _check_count(expression, 1)
        case Comparisons(_, signs, span):
            each = map(comparison, parts, parts[1:], signs)
            return reduce(lambda left, right: Binary(AND, left, right, span), each)
        case ScanExpression(along, argument):
            missing = [label for label in along.labels if label not in argument.labels]
            if missing:
                raise LabelError(
                    f"{along.name} runs along the label {missing[0]!r}, which is not there",
                    where=str(expression.span),
                    expected="a label of its argument: " + (", ".join(argument.labels) or "none"),
                    found=f"{along.name}[{','.join(along.labels)}]",
                )
        case First(function, label, rank, argument):
            if label not in argument.labels:
                raise LabelError(
                    f"{function.name} is along the label {label!r}, which is not there",
                    where=str(expression.span),
                    expected="a label of its argument: " + (", ".join(argument.labels) or "none"),
                    found=f"{function.name}[{label}]",
                )
            if rank is not None and rank in argument.labels:
                raise LabelError(
                    f"{function.name} numbers what comes first by a label of its argument",
                    where=str(expression.span),
                    expected=f"a label that {', '.join(argument.labels)} are not",
                    found=rank,
                )
        case Flat(over, argument=argument):
            for label in over:
                if label not in argument.labels:
                    raise LabelError(
                        f"entries are ranked along the label {label!r}, which is not there",
                        where=str(expression.span),
                        expected="labels of the argument: " + ", ".join(argument.labels),
                        found=", ".join(over),
                    )
        case ForestCall():
            check_labels(expression)
        case SystemCall():
            check_system(expression)
        case Reduction(operator, over, argument, span):
            for label in over:
                if label not in argument.labels or over.count(label) > 1:
                    raise _bad_label(expression, label)
            if operator.derived and operator.name not in keep:
                return substitute(template(operator.definition), {"x": parts[0]}, over, span)
    return with_children(expression, parts)


# ---- Local labels ----


@dataclass
class _Names:
    """The used labels of a statement, and the original names of renamed ones."""

    taken: set[str]

    def __post_init__(self) -> None:
        self.renamed: dict[str, str] = {}
        self._sizes: dict[tuple[tuple[str, ...], Span], tuple[str, ...]] = {}

    def make_unique(self, expression: Expression, names: Mapping[str, str]) -> Expression:
        """Rename labels by `names`, and make the labels of aggregations unique."""
        return run(self._unique(expression, dict(names)))

    def _unique(self, expression: Expression, names: dict[str, str]) -> Calls[Expression]:
        match expression:
            case Access(indices=tuple(indices)):
                renamed = []
                for index in indices:
                    entries = index.entries
                    if entries is not None:
                        entries = yield self._unique(entries, names)
                    affine = index.affine.rename_labels(names)
                    renamed.append(replace(index, affine=affine, entries=entries))
                return with_indices(expression, renamed)
            case Access(tensor, labels, span):
                return Access(tensor, tuple(names.get(x, x) for x in labels), span)
            case Hit(entries, label):
                entries = yield self._unique(entries, names)
                return replace(expression, entries=entries, label=names.get(label, label))
            case Coordinate(label, span):
                return Coordinate(names.get(label, label), span)
            case ScanExpression(running, argument, span):
                inner = yield self._unique(argument, names)
                return ScanExpression(running.rename_labels(names), inner, span)
            case First(function, label, rank, argument, span) if expression.stays:
                inner = yield self._unique(argument, names)
                own_rank = None if rank is None else self._fresh(rank)
                return First(function, names.get(label, label), own_rank, inner, span)
            case First(function, label, rank, argument, span):
                own_label, outer_label = self._fresh(label), names.get(label)
                names[label] = own_label
                inner = yield self._unique(argument, names)
                del names[label]
                names.update({} if outer_label is None else {label: outer_label})
                outer_rank = None if rank is None else names.get(rank, rank)
                return First(function, own_label, outer_rank, inner, span)
            case Flat(over, label, argument, span):
                fresh = {x: self._fresh(x) for x in over}
                inner = yield self._unique(argument, {**names, **fresh})
                return Flat(tuple(fresh.values()), names.get(label, label), inner, span)
            case ForestCall(feature, node, features, packed, span):
                of_features, of_nodes = self._fresh(feature), self._fresh(node)
                features = yield self._unique(features, {**names, feature: of_features})
                packed = yield self._unique(packed, {**names, node: of_nodes})
                return ForestCall(of_features, of_nodes, features, packed, span)
            case SystemCall(row, column, matrix, sides, span):
                own_row = self._fresh(row)
                matrix = yield self._unique(matrix, {**names, row: own_row})
                sides = yield self._unique(sides, {**names, row: own_row})
                return SystemCall(own_row, names.get(column, column), matrix, sides, span)
            case Size(over, span):  # over the labels of the preceding aggregation in its template
                own = tuple(names.get(x, x) for x in over)
                return Size(self._sizes.get((over, span), own), span)
            case Reduction(operator, over, argument, span):
                fresh = {label: self._fresh(label) for label in over}
                outer = {label: names[label] for label in over if label in names}
                names.update(fresh)
                inner = yield self._unique(argument, names)
                for label in over:
                    del names[label]
                names.update(outer)
                self._sizes[over, span] = tuple(fresh.values())
                return Reduction(operator, self._sizes[over, span], inner, span)
        parts = []
        for child in children(expression):
            parts.append((yield self._unique(child, names)))
        return with_children(expression, parts)

    def _fresh(self, label: str) -> str:
        name = find_free_name(label, self.taken)
        self.taken.add(name)
        if name != label:
            self.renamed[name] = label
        return name


# ---- Errors ----


def _check_summed(statement: Statement) -> None:
    """Check that every label that is missing on the left is one at which a tensor is read.

    If only a condition has the label, the sum would be of the condition itself, or of the label.
    """
    kept = statement.target.labels
    missing = [label for label in statement.expression.labels if label not in kept]
    if not missing:
        return
    read = fold(statement.expression, _labels_read)
    for label in missing:
        if label not in read:
            target = f"{statement.target.tensor}[{','.join(kept)}]"
            raise LabelError(
                f"the label {label!r} stands in a condition alone, so that nothing is summed by it",
                where=str(statement.span),
                expected=f"{label} on the left, or on a tensor on the right",
                found=target,
                hint=f"sum[{label}](...) says what is to be summed",
            )


def _labels_read(expression: Expression, parts: list[frozenset[str]]) -> frozenset[str]:
    """The labels of an expression at which it reads tensors."""
    own = frozenset(expression.labels)
    if isinstance(expression, Access | Hit):
        return own
    inner = frozenset(label for part in parts for label in part)
    if isinstance(expression, First) and expression.rank is not None:
        inner |= {expression.rank}
    return inner & own


def _check_sizes(expression: Expression, known: Collection[str]) -> None:
    """Check that all sizes are those of labels that a tensor has, or of known labels."""
    labels = {*known, *(label for access in accesses(expression) for label in access.labels)}
    labels |= {x.rank for x in walk(expression) if isinstance(x, First) and x.rank is not None}
    labels |= {x.label for x in walk(expression) if isinstance(x, Coordinate)}  # in the bounds
    for size in _sizes(expression):
        for label in size.over:
            if label not in labels:
                raise LabelError(
                    f"no tensor has the label {label!r}, whose size is asked for",
                    where=str(size.span),
                    expected="labels of the tensors: " + (", ".join(sorted(labels)) or "none"),
                    found=f"size[{','.join(size.over)}]",
                )


def _sizes(expression: Expression) -> tuple[Size, ...]:
    return tuple(part for part in walk(expression) if isinstance(part, Size))


def _check_count(call: Call, expected: int) -> None:
    if len(call.arguments) != expected:
        raise NameResolutionError(
            f"{call.name} has another number of arguments",
            where=str(call.span),
            expected=f"{expected} argument{'s' if expected > 1 else ''}",
            found=f"{len(call.arguments)}",
        )


def _unknown_function(call: Call) -> NameResolutionError:
    unary = len(call.arguments) == 1
    names = sorted({*MAPS, *CASTS, *FUNCTIONS} if unary else FUNCTIONS)
    return NameResolutionError(
        f"unknown function {call.name!r}",
        where=str(call.span),
        expected="one of " + ", ".join(names),
        found=call.name,
        hint=ELSEWHERE.get(call.name) or did_you_mean(call.name, names),
    )


def _without_labels(call: Call) -> NameResolutionError:
    label = (call.labels or ("i",))[-1]
    return NameResolutionError(
        f"the aggregation {call.name!r} does not say over which labels",
        where=str(call.span),
        expected=f"{call.name}[{label}](...)",
        found=f"{call.name}(...)",
    )


def _bad_label(reduction: Reduction, label: str) -> LabelError:
    repeated = reduction.over.count(label) > 1
    available = ", ".join(reduction.argument.labels) or "none"
    return LabelError(
        f"the aggregation names the label {label!r} " + ("twice" if repeated else "in vain"),
        where=str(reduction.span),
        expected="each once" if repeated else f"labels of its argument: {available}",
        found=f"{reduction.operator.name}[{','.join(reduction.over)}]",
    )
