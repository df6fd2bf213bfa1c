"""Lift scans, matrix functions and top-k into statements of their own, applied to plain tensors.

``Z[i] = cumsum[i](x[i] * y[i]) + 1`` becomes ``Z_part[i] = x[i] * y[i]; Z_scan[i] =
cumsum[i](Z_part[i]); Z[i] = Z_scan[i] + 1``. Top-k entries become pairs of values and positions, of
which one half is read: ``P[i,r] = arg_top_k[j,r](S[i,j])`` becomes ``P_first[i,r,part] =
top_k[j,r](S[i,j]); P[i,r] = int64(P_first[i,r,1])``. A result of a factorisation is a part of it:
``U[i,j] = svd_u[i,j](A[i,j])`` becomes ``U_part[part,i,j] = when(part == 0, A[i,j]);
U_scan[part,i,j] = svd[part,i,j](U_part[part,i,j]); U[i,j] = U_scan[0,i,j]``. Forests and systems
of equations get two plain tensors. Takes and returns resolved statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.foundation.names import find_free_name, fold_name, unique_names
from ucle.foundation.tree_walk import Calls, run
from ucle.ir.affine import Affine
from ucle.ir.axis_functions import MATRIX_FUNCTIONS, PAIR, POSITION, VALUE, MatrixMap
from ucle.ir.conditions import Compare, Sign
from ucle.language.bounds import statement_labels
from ucle.language.forest_calls import output_label
from ucle.language.functions import Gives
from ucle.language.label_arithmetic import condition_expression
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Expression,
    First,
    Flat,
    ForestCall,
    Hit,
    Index,
    Pairs,
    Reduction,
    Retyped,
    ScanExpression,
    Site,
    Statement,
    SystemCall,
    accesses,
    children,
    walk,
    with_children,
    with_indices,
)
from ucle.language.syntax_to_text import expression_text
from ucle.operators import ANY, WHEN

LiftedScans = dict[tuple[str, tuple[str, ...]], Access]
"""Arguments of top-k and factorisations that are already tensors, by their texts and labels."""


def lift_scans(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Lift each scan, each matrix function and each top-k into a statement of its own.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.resolve import resolve
    >>> lifted = lift_scans((resolve(parse_program("Z[i] = cumsum[i](2 * x[i]) + 1")[0]),))
    >>> [str(statement.target) for statement in lifted]
    ['Z_part[i]', 'Z_scan[i]', 'Z[i]']
    """
    if not any(map(_has_scan, statements)):
        return statements
    uses = (x.tensor for s in statements for x in (s.target, *accesses(s.expression)))
    taken = {fold_name(name) for name in uses}
    lifted: list[Statement] = []
    known: LiftedScans = {}
    for statement in statements:
        if _has_scan(statement):
            lifted += _ScanLift(statement, taken, known).statements()
        else:
            lifted.append(statement)
    return tuple(lifted)


def _has_scan(statement: Statement) -> bool:
    lifted = ScanExpression | First | Flat | ForestCall | SystemCall
    return any(isinstance(part, lifted) for part in walk(statement.expression))


@dataclass
class _ScanLift:
    """Rewrites one statement to several."""

    statement: Statement
    taken: set[str]
    known: LiftedScans
    made: list[Statement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._labels = statement_labels(self.statement)

    def statements(self) -> list[Statement]:
        """The statements that replace the statement, each after those that it uses."""
        expression, labels = self.statement.expression, self.statement.target.labels
        if isinstance(expression, ScanExpression) and _fits(labels, expression):
            argument = run(self._lift_expression(expression.argument))
            whole: Expression = replace(
                expression, argument=self._name_expression(argument, labels)
            )
        elif isinstance(expression, Flat) and labels == expression.labels:
            argument = run(self._lift_expression(expression.argument))
            named = self._name_expression(argument, (*labels[:-1], *expression.over))
            whole = replace(expression, argument=named)
        elif isinstance(expression, ForestCall) and _fits_forest(labels, expression):
            operands = []
            for child in children(expression):
                operands.append(run(self._lift_expression(child)))
            whole = self._name_operands(expression, labels, operands)
        elif isinstance(expression, SystemCall) and _fits_system(labels, expression):
            operands = []
            for child in children(expression):
                operands.append(run(self._lift_expression(child)))
            whole = self._name_system(expression, labels, operands)
        else:
            whole = run(self._lift_expression(expression))
        return [*self.made, replace(self.statement, expression=whole)]

    def _lift_expression(self, expression: Expression) -> Calls[Expression]:
        parts = []
        for child in children(expression):
            parts.append((yield self._lift_expression(child)))
        if isinstance(expression, First):
            return self._first(expression, parts[0])
        if isinstance(expression, Flat):
            *others, label = expression.labels
            source = self._name_expression(parts[0], (*others, *expression.over))
            return self._add("flat", (*others, label), replace(expression, argument=source))
        if isinstance(expression, ForestCall):
            labels = tuple(dict.fromkeys(expression.labels))
            return self._add("forest", labels, self._name_operands(expression, labels, parts))
        if isinstance(expression, SystemCall):
            labels = expression.labels
            return self._add("solved", labels, self._name_system(expression, labels, parts))
        if not isinstance(expression, ScanExpression):
            return with_children(expression, parts) if parts else expression
        labels = tuple(dict.fromkeys(expression.labels))
        if isinstance(expression.along, MatrixMap):
            own = expression.along.labels
            labels = (*(label for label in labels if label not in own), *own)
            if (part_of := expression.along.function.part_of) is not None:
                return self._part(expression, expression.along, part_of, parts[0], labels)
        source = self._name_expression(parts[0], labels)
        return self._add("scan", labels, replace(expression, argument=source))

    def _first(self, first: First, argument: Expression) -> Expression:
        """Lift a top-k into a tensor of pairs, and read one half of these in its own type."""
        function, span = first.function, first.span
        labels = tuple(dict.fromkeys(first.argument.labels))
        key = expression_text(argument), labels
        source = self.known.get(key) or self._name_expression(argument, labels)
        self.known[key] = source
        part, rank = self._fresh_label("part"), first.rank or self._fresh_label("rank")
        pairs = Pairs(function.order, first.label, rank, part, source, span)
        sizes = {part: PAIR} if first.rank is not None else {part: PAIR, rank: 1}
        made = self._add("first", pairs.labels, pairs, sizes)
        *kept, _, _ = pairs.labels
        numbered_by = Affine(((rank, 1),)) if first.rank is not None else Affine()
        half = Affine((), VALUE if function.gives is Gives.VALUES else POSITION)
        places = [*map(_coordinate, kept), numbered_by, half]
        read = with_indices(Access(made.tensor, (), span), map(Index, places))
        if function.gives is Gives.VALUES:
            return Retyped(read, source.tensor, span)
        positions = Call(DType.INT64, (read,), span)
        if function.gives is Gives.POSITIONS:
            return positions
        axis = source.tensor, source.labels.index(first.label)
        self.statement = replace(self.statement, like={**self.statement.like, first.label: axis})
        members = Hit(positions, first.label, "", span, permissive=True, own=True)
        return members if first.rank is None else Reduction(ANY, (rank,), members, span)

    def _name_operands(
        self, call: ForestCall, labels: tuple[str, ...], operands: Sequence[Expression]
    ) -> ForestCall:
        """Return a forest of tensors, whose result has these labels, the outputs last."""
        features, packed = operands
        wanted = (*labels[:-1], call.feature), (call.node, output_label(call))
        return replace(
            call,
            features=self._name_expression(features, wanted[0]),
            packed=self._name_expression(packed, wanted[1]),
        )

    def _name_system(
        self, call: SystemCall, labels: tuple[str, ...], operands: Sequence[Expression]
    ) -> SystemCall:
        """Return a system of tensors, whose solutions have these labels.

        Sides that all matrices share are repeated for each of them.
        """
        place = labels.index(call.column)
        others, own = labels[:place], labels[place + 1 :]
        matrix = self._name_expression(operands[0], (*others, call.row, call.column))
        wanted = *others, call.row, *own
        shared = {x: (matrix.tensor, n) for n, x in enumerate(others) if x not in call.sides.labels}
        if shared:
            sides = self._add("part", wanted, operands[1], like=shared)
        else:
            sides = self._name_expression(operands[1], wanted)
        return replace(call, matrix=matrix, sides=sides)

    def _part(
        self,
        scan: ScanExpression,
        along: MatrixMap,
        part_of: tuple[str, int],
        argument: Expression,
        labels: tuple[str, ...],
    ) -> Expression:
        """Lift a factorisation into a tensor of all its parts, and read one of them."""
        (of, number), span = part_of, scan.span
        key = f"{of}[{along.row},{along.column}]({expression_text(argument)})", labels
        if key not in self.known:
            part = self._fresh_label("part")
            own = part, *labels[-2:]
            first = condition_expression(Compare(Affine(((part, 1),)), Sign.EQUAL), span)
            sizes = {part: MATRIX_FUNCTIONS[of].parts}
            every = (*labels[:-2], *own)
            padded = Binary(WHEN, first, argument, span)
            source = self._add("part", every, padded, sizes)
            whole = ScanExpression(MatrixMap(of, along.row, along.column, part), source, span)
            self.known[key] = self._add("scan", every, whole, sizes)
        others, matrix = map(_coordinate, labels[:-2]), map(_coordinate, labels[-2:])
        places = *others, Affine((), number), *matrix
        return with_indices(Access(self.known[key].tensor, (), span), map(Index, places))

    def _fresh_label(self, stem: str) -> str:
        name = find_free_name(stem, self._labels)
        self._labels.add(name)
        return name

    def _name_expression(self, expression: Expression, labels: tuple[str, ...]) -> Access:
        """Convert an expression to a tensor with these labels."""
        plain = isinstance(expression, Access) and expression.indices is None
        if isinstance(expression, Access) and plain and expression.labels == labels:
            return expression
        return self._add("part", labels, expression)

    def _add(
        self,
        suffix: str,
        labels: tuple[str, ...],
        expression: Expression,
        sizes: Mapping[str, int] | None = None,
        like: Mapping[str, Site] | None = None,
    ) -> Access:
        (name,) = unique_names([f"{self.statement.target.tensor}_{suffix}"], self.taken)
        target = Access(name, labels, expression.span)
        made = replace(self.statement, target=target, expression=expression, aggregation=None)
        if sizes is not None:
            made = replace(made, sizes={**made.sizes, **sizes}, lifted=True)
        if like is not None:
            made = replace(made, like={**made.like, **like})
        self.made.append(made)
        return target


def _fits(labels: tuple[str, ...], expression: ScanExpression) -> bool:
    """True if a scan may be the whole statement for a target with these labels."""
    if set(labels) != set(expression.labels):
        return False
    along = expression.along
    if not isinstance(along, MatrixMap):
        return True
    return along.function.part_of is None and labels[-2:] == along.labels


def _fits_forest(labels: tuple[str, ...], call: ForestCall) -> bool:
    """True if a forest may be the whole statement for a target with these labels."""
    same = len(labels) == len(call.labels) and set(labels) == set(call.labels)
    return same and labels[-1] == output_label(call)


def _fits_system(labels: tuple[str, ...], call: SystemCall) -> bool:
    """True if solutions may be the whole statement for a target with these labels."""
    place, same = len(call.others), len(labels) == len(call.labels)
    return same and {*labels[:place]} == {*call.others} and labels[place] == call.column


def _coordinate(label: str) -> Affine:
    return Affine(((label, 1),))
