"""Syntax tree to EinSum DAG: unary and binary vertices only.

A statement may hold a whole expression; here it becomes a chain of vertices. The rules of meaning:

- `=`: an index that is missing on the left is summed over the smallest subexpression that holds all
  its occurrences, so ``relu(T[i,m] * W[m,n])`` is the relu of a sum.
- `+=`, `*=`, `max=`, `min=`: the right-hand side as a whole is aggregated.
- A product of more than two factors is contracted pairwise in the order that opt_einsum finds.

Statements may stand in any order; they are sorted by what they use. Types (bounds, fill,
finiteness) are derived on the way. Which sums and joins are right when a fill is not 0 is not
decided here but in `ucle.plan`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import opt_einsum

from ucle.bounds import Bounds
from ucle.errors import BoundError, NameResolutionError, UnsupportedError
from ucle.factors import constant_value, flatten_product, scalar_case
from ucle.ir import Label, Map, Operand, Program, Span, Tensor, TensorType, Vertex
from ucle.operators import COMBINES, MAPS, REDUCES
from ucle.syntax import Access, Binary, Call, Expression, Number, Statement, accesses


def normalise(
    statements: tuple[Statement, ...],
    types: Mapping[str, TensorType],
    bounds: Bounds,
    outputs: Iterable[str] | None = None,
) -> Program:
    """Lower ordered statements to an EinSum DAG.

    Args:
        statements: in the order that `order_statements` gives.
        types: type of every input.
        bounds: what `ucle.bounds.infer_bounds` found for these statements.
        outputs: names of the tensors wanted; the ones that nobody consumes by default.

    Raises:
        NameResolutionError: an unknown function or output.
    """
    lowering = _Lowering(dict(types), bounds, {s.target.tensor for s in statements} | set(types))
    for number, statement in enumerate(statements):
        lowering.lower_statement(number, statement)
    vertices = tuple(lowering.vertices)
    if outputs is None:
        used = {operand.tensor for vertex in vertices for operand in vertex.inputs}
        outputs = [s.target.tensor for s in statements if s.target.tensor not in used]
    wanted = tuple(dict.fromkeys(outputs))
    defined = {s.target.tensor for s in statements}
    if missing := [name for name in wanted if name not in defined]:
        raise NameResolutionError(
            f"unknown output {missing[0]}",
            where="outputs",
            expected="one of " + ", ".join(sorted(defined)),
            found=missing[0],
        )
    inputs = tuple(Tensor(name, type_) for name, type_ in types.items())
    return remove_dead_vertices(Program(inputs, vertices, wanted))


def remove_dead_vertices(program: Program) -> Program:
    """Drop the vertices and inputs that no output depends on."""
    needed = set(program.outputs)
    for vertex in reversed(program.vertices):
        if vertex.name in needed:
            needed |= {operand.tensor for operand in vertex.inputs}
    return Program(
        tuple(tensor for tensor in program.inputs if tensor.name in needed),
        tuple(vertex for vertex in program.vertices if vertex.name in needed),
        program.outputs,
    )


@dataclass(frozen=True)
class _Value:
    """A lowered subexpression: one tensor access followed by maps that are still to be applied."""

    operand: Operand
    maps: tuple[Map, ...] = ()

    def then(self, function: Map) -> _Value:
        """The value with one more map."""
        return _Value(self.operand, (*self.maps, function))


class _Lowering:
    """Collects the vertices of a program; one instance lowers all of its statements."""

    def __init__(self, types: dict[str, TensorType], bounds: Bounds, taken: set[str]) -> None:
        self.vertices: list[Vertex] = []
        self._types = types
        self._bounds = bounds
        self._taken = taken
        self._statement = 0
        self._target = ""
        self._span: Span | None = None
        self._aggregation = "sum"

    def lower_statement(self, number: int, statement: Statement) -> None:
        self._statement, self._target = number, statement.target.tensor
        self._span = statement.span
        # With `=` every sum is implied; with `+=`, `max=` and the like only the root aggregates.
        self._aggregation = statement.accumulate or "sum"
        labels = statement.target.labels
        # With `+=` nothing is summed inside: every label survives up to the root.
        keep = frozenset(statement.expression.labels if statement.accumulate else labels)
        output = tuple(self._label(name) for name in labels)
        root = statement.expression
        if isinstance(root, Binary) and not scalar_case(root):
            value = self._lower_binary(root, keep, output, self._target)
        elif isinstance(root, Access):  # one vertex picks the diagonal, sums and permutes
            operand = Operand(root.tensor, tuple(self._label(x) for x in root.labels))
            value = self._unary(_Value(operand), output, self._target)
        else:
            value = self._lower(root, keep)
        self._finish(value, output)

    def _finish(self, value: _Value, output: tuple[Label, ...]) -> None:
        """Make sure that the statement's last vertex bears its name and labels."""
        done = self.vertices and self.vertices[-1].name == self._target
        if not (done and not value.maps and value.operand.labels == output):
            self._unary(value, output, self._target)

    def _label(self, name: str) -> Label:
        return self._bounds.label(self._statement, name)

    def _fresh(self) -> str:
        number = 1
        while (name := f"{self._target}_{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name

    def _lower(self, expression: Expression, keep: frozenset[str]) -> _Value:
        """Lower a subexpression; labels outside `keep` are summed within it."""
        match expression:
            case Access():
                return self._lower_access(expression, keep)
            case Call(function, argument):
                if function not in MAPS:
                    raise NameResolutionError(
                        f"unknown function {function!r}",
                        where=str(expression.span),
                        expected="one of " + ", ".join(sorted(MAPS)),
                        found=function,
                    )
                return self._lower(argument, keep).then(Map(function))
            case Binary() if constant := scalar_case(expression):
                scalar = Map(expression.operator, constant.value, constant.first)
                return self._lower(constant.other, keep).then(scalar)
            case Binary():
                labels = tuple(self._label(x) for x in expression.labels if x in keep)
                return self._lower_binary(expression, keep, labels, None)
            case Number():
                raise UnsupportedError(
                    "an expression of constants alone is not a tensor",
                    where=str(expression.span),
                    expected="at least one tensor in the expression",
                    found=f"{expression.value:g}",
                )

    def _lower_access(self, access: Access, keep: frozenset[str]) -> _Value:
        operand = Operand(access.tensor, tuple(self._label(x) for x in access.labels))
        distinct = tuple(dict.fromkeys(operand.labels))
        remaining = tuple(label for label in distinct if label.name in keep)
        if len(distinct) == len(operand.labels) and remaining == distinct:
            return _Value(operand)
        return self._unary(_Value(operand), remaining, None)

    def _lower_binary(
        self,
        expression: Binary,
        keep: frozenset[str],
        labels: tuple[Label, ...],
        name: str | None,
    ) -> _Value:
        # A product takes sums in only where all is finite: 1 * inf + 0 * inf is NaN, (1 + 0) * inf
        # is inf.
        finite = all(self._types[access.tensor].finite for access in accesses(expression))
        if COMBINES[expression.operator].distributes_over_sum and finite:
            return self._lower_product(expression, keep, labels, name)
        sides = (expression.left, expression.right)
        for side, other in (sides, sides[::-1]):
            if (constant := constant_value(other)) is not None:
                scalar = Map(expression.operator, constant, constant_first=other is sides[0])
                return self._lower(side, keep).then(scalar)
        values = []
        for side, other in (sides, sides[::-1]):
            values.append(self._plain(self._lower(side, keep | set(other.labels))))
        return self._binary(expression.operator, values[0], values[1], labels, name)

    def _lower_product(
        self,
        expression: Binary,
        keep: frozenset[str],
        labels: tuple[Label, ...],
        name: str | None,
    ) -> _Value:
        """Contract the factors pairwise, summing each label as soon as no factor needs it."""
        coefficient, expressions = flatten_product(expression)
        factors: list[Operand] = []
        for position, factor in enumerate(expressions):
            others = expressions[:position] + expressions[position + 1 :]
            outside = keep.union(*(other.labels for other in others))
            factors.append(self._plain(self._lower(factor, outside)))
        scaled = coefficient != 1.0
        linear = self._aggregation == "sum"
        if len(factors) == 1:
            return _Value(factors[0], (Map(expression.operator, coefficient),))
        wanted = frozenset(label.name for label in labels)
        for pair in _contraction_path(factors, labels):
            left, right = (factors[p] for p in sorted(pair))
            factors = [f for p, f in enumerate(factors) if p not in pair]
            last = not factors
            needed = wanted.union(*(f.names for f in factors))
            both = tuple(dict.fromkeys((*left.labels, *right.labels)))
            if linear:
                kept = labels if last else tuple(x for x in both if x.name in needed)
            else:  # only a sum may be taken before all factors, or the coefficient, are in
                kept = labels if last and not scaled else both
            title = name if last and not scaled else None
            factors.append(self._binary(expression.operator, left, right, kept, title).operand)
        maps = (Map(expression.operator, coefficient),) if scaled else ()
        return _Value(factors[0], maps)

    def _plain(self, value: _Value) -> Operand:
        """The value as one tensor access without pending maps."""
        if not value.maps:
            return value.operand
        return self._unary(value, value.operand.labels, None).operand

    def _unary(self, value: _Value, labels: tuple[Label, ...], name: str | None) -> _Value:
        source = self._types[value.operand.tensor]
        fill, finite = source.fill, source.finite
        for function in value.maps:
            fill = function(fill)
        reduced = _reduced(value.operand.labels, labels)
        fill = self._reduced_fill(fill, reduced)
        return self._add(Vertex(
            Tensor(name or self._fresh(), TensorType(labels, source.dtype, fill, finite)),
            (value.operand,),
            labels,
            maps=value.maps,
            reduce=self._aggregation if reduced else None,
            span=self._span,
        ))  # fmt: skip

    def _binary(
        self,
        operator: str,
        left: Operand,
        right: Operand,
        labels: tuple[Label, ...],
        name: str | None,
    ) -> _Value:
        one, other = self._types[left.tensor], self._types[right.tensor]
        fill = COMBINES[operator].scalar(one.fill, other.fill)
        reduced = _reduced((*left.labels, *right.labels), labels)
        fill = self._reduced_fill(fill, reduced)
        finite = one.finite and other.finite
        return self._add(Vertex(
            Tensor(name or self._fresh(), TensorType(labels, one.dtype, fill, finite)),
            (left, right),
            labels,
            combine=operator,
            reduce=self._aggregation if reduced else None,
            span=self._span,
        ))  # fmt: skip

    def _reduced_fill(self, fill: float, reduced: tuple[Label, ...]) -> float:
        """What a cell is worth whose whole fibre is fill."""
        size = math.prod(label.bound for label in reduced)
        operator = REDUCES[self._aggregation]
        if reduced and not size and math.isinf(operator.identity):
            raise BoundError(
                f"the {self._aggregation} of nothing is not defined",
                where=str(self._span),
                expected="labels with a bound of at least 1",
                found=", ".join(str(label) for label in reduced),
            )
        return operator.repeat(fill, size) if reduced else fill

    def _add(self, vertex: Vertex) -> _Value:
        self.vertices.append(vertex)
        self._types[vertex.name] = vertex.tensor.type
        return _Value(Operand(vertex.name, vertex.labels))


def _reduced(every: tuple[Label, ...], kept: tuple[Label, ...]) -> tuple[Label, ...]:
    return tuple(label for label in dict.fromkeys(every) if label not in kept)


def _contraction_path(factors: list[Operand], output: tuple[Label, ...]) -> list[tuple[int, ...]]:
    """Pairs of positions to contract; each result goes to the end, as in opt_einsum."""
    if len(factors) == 2:
        return [(0, 1)]
    symbols: dict[str, str] = {}
    for factor in factors:
        for name in factor.names:
            symbols.setdefault(name, opt_einsum.get_symbol(len(symbols)))
    terms = ["".join(symbols[name] for name in factor.names) for factor in factors]
    equation = ",".join(terms) + "->" + "".join(symbols[label.name] for label in output)
    shapes = [tuple(max(label.bound, 1) for label in factor.labels) for factor in factors]
    path, _ = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize="auto")
    return [tuple(pair) for pair in path]
