"""Syntax tree to EinSum DAG: unary and binary vertices only.

A statement may hold a whole expression; here it becomes a chain of vertices.
`ucle.language.resolve` has made explicit what is aggregated where. A product of several factors, or
any other ⊗ that chains under an ⊕ it distributes over, is contracted pairwise, each label
aggregated as soon as no factor needs it; in which order is the caller's choice
(`ucle.optimiser.association`). What two expressions have in common is computed once.

Types (bounds, element type, fill, values) are derived on the way (`ucle.ir.vertex_types`). Which
joins are right when a fill is not 0 is not decided here but in `ucle.ir.fills`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache

from ucle.errors import (
    NameResolutionError,
    UnsupportedError,
    ValueTypeError,
    did_you_mean,
)
from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.stackless import Calls, run
from ucle.ir.annihilation import annihilating
from ucle.ir.contraction_trees import Tree, joins, leaves, tree_of
from ucle.ir.layouts import Label
from ucle.ir.maps import Cast, Map, Partial, Pointwise
from ucle.ir.operators import WHEN, Combine, PointwiseMap, Reduce, Typing
from ucle.ir.tensor_types import Tensor, TensorType
from ucle.ir.vertex_types import binary_type, unary_type
from ucle.ir.vertices import Operand, Program, Span, Vertex
from ucle.language.bounds import Bounds
from ucle.language.factors import (
    Chain,
    chain,
    constant_value,
    may_chain,
    scalar_case,
    types_used,
    with_sizes,
)
from ucle.language.promotion import combine_signature, expression_type, map_signature, reduce_type
from ucle.language.syntax import Access, Binary, Call, Expression, Reduction, Statement, accesses
from ucle.lowering.contraction_orders import Path, pairs, propose_trees, ranked_trees
from ucle.stats.estimate import Estimator, Statistics
from ucle.stats.estimators import DEFAULT, ESTIMATORS
from ucle.stats.model import TensorStatistics

Labels = tuple[Label, ...]

MOST_MAPS = 50
"""Pointwise functions of one vertex, which becomes one expression of SQL: what writes it and what
reads it call themselves for each."""

ProductKey = tuple[str, int]
"""A product: the tensor of its statement, and its number among the products there."""


@dataclass(frozen=True)
class Source:
    """What is lowered: resolved statements, and what is known of their tensors.

    `statements` are in the order that `order_statements` gives, `types` and `statistics` are those
    of the inputs. `outputs` are the tensors wanted; None stands for those that nobody consumes.
    `paths` are contraction paths that are given, by the tensor of a statement.
    """

    statements: tuple[Statement, ...]
    types: Mapping[str, TensorType]
    bounds: Bounds
    statistics: Mapping[str, TensorStatistics]
    outputs: tuple[str, ...] | None = None
    paths: Mapping[str, Path] = field(default_factory=dict)
    exact: bool = True
    """Whether NaN and infinities meet entries that are not stored as in NumPy."""
    estimator: Estimator = ESTIMATORS[DEFAULT]
    """What ranks the orders of products."""


@dataclass(frozen=True)
class Product:
    """A product that was lowered: its factors, and the tree in which they were joined.

    `written` is the tree of the text. `ranked` holds the trees that were compared, if they were;
    the first one is that which sends the fewest tuples through joins.
    """

    key: ProductKey
    combine: Combine
    factors: tuple[Operand, ...]
    written: Tree
    tree: Tree
    ranked: tuple[Tree, ...] = ()


@dataclass(frozen=True)
class Lowered:
    """An EinSum DAG, the types of all tensors, and the products whose order was chosen."""

    program: Program
    types: Mapping[str, TensorType]
    products: tuple[Product, ...]


def normalise(
    source: Source, trees: Mapping[ProductKey, Tree] | None = None, *, rank: bool = False
) -> Lowered:
    """Lower resolved statements to an EinSum DAG.

    Args:
        source: the statements.
        trees: in which order to join the factors of products; the others as they are written.
        rank: whether to join the factors of all others in the order of the fewest tuples.

    Raises:
        NameResolutionError: an unknown output.
        ValueTypeError: an operation that NumPy does not have for the types at hand.
    """
    statements = source.statements
    taken = {s.target.tensor for s in statements} | set(source.types)
    lowering = _Lowering(
        dict(source.types),
        source.bounds,
        taken,
        dict(source.statistics),
        source.paths,
        trees or {},
        rank,
        source.exact,
        source.estimator,
    )
    for statement in statements:
        lowering.lower_statement(statement)
    inputs = tuple(Tensor(name, type_) for name, type_ in source.types.items())
    program = Program(inputs, tuple(lowering.vertices), wanted(statements, source.outputs))
    return Lowered(remove_dead_vertices(program), dict(lowering.types), tuple(lowering.products))


def wanted(
    statements: tuple[Statement, ...], outputs: Iterable[str] | None = None
) -> tuple[str, ...]:
    """The outputs of a program: those that are named, or else what no statement uses.

    Raises:
        NameResolutionError: an unknown output.
    """
    defined = {s.target.tensor for s in statements}
    if outputs is None:
        used = {access.tensor for s in statements for access in accesses(s.expression)}
        outputs = [s.target.tensor for s in statements if s.target.tensor not in used]
    names = tuple(dict.fromkeys(outputs))
    if missing := [name for name in names if name not in defined]:
        raise NameResolutionError(
            f"unknown output {missing[0]}",
            where="outputs",
            expected="one of " + ", ".join(sorted(defined)),
            found=missing[0],
            hint=did_you_mean(missing[0], defined),
        )
    return names


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
    """A lowered subexpression: one tensor access followed by maps that are still to be applied.

    `indicator` says that its yes or no was a 1 or 0 of another type before the last cast.
    """

    operand: Operand
    dtype: DType
    maps: tuple[Pointwise, ...] = ()
    indicator: bool = False

    def then(self, function: Pointwise) -> _Value:
        """The value with one more map."""
        return _Value(self.operand, function.result, (*self.maps, function))

    def cast(self, dtype: DType) -> _Value:
        """The value in another element type."""
        if dtype is self.dtype:
            return self
        if self.indicator and isinstance(self.maps[-1], Cast):  # 1 and 0 are what they were
            source = self.maps[-1].source
            return _Value(self.operand, source, self.maps[:-1]).cast(dtype)
        return self.then(Cast(self.dtype, dtype))

    def indicating(self, dtype: DType) -> _Value:
        """The value, which is 1 or 0, in the type of yes and no."""
        return self if dtype is self.dtype else replace(self.cast(dtype), indicator=True)


@dataclass(frozen=True)
class _Shape:
    """What makes two vertices compute the same, whatever their labels are called."""

    tensors: tuple[str, ...]
    labels: tuple[tuple[int, ...], ...]
    kept: frozenset[int]
    combine: Combine | None
    maps: tuple[Pointwise, ...]
    reduce: Reduce | None


@dataclass
class _Lowering:
    """Collects the vertices of a program; one instance lowers all of its statements."""

    types: dict[str, TensorType]
    bounds: Bounds
    taken: set[str]
    statistics: dict[str, TensorStatistics]
    paths: Mapping[str, Path]
    trees: Mapping[ProductKey, Tree]
    rank: bool
    exact: bool = True
    estimator: Estimator = ESTIMATORS[DEFAULT]
    vertices: list[Vertex] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._places: dict[_Shape, int] = {}
        """Where among the vertices the first one of each shape stands."""
        self._target = ""
        self._span: Span | None = None
        self._lowered: dict[int, _Value] = {}
        """The values of parts of the statement, by their identity."""
        self._first_product = 0
        """Of the statement that is being lowered."""
        self._next_number = 1
        """All smaller ones are taken in names of the statement's vertices."""

    def lower_statement(self, statement: Statement) -> None:
        """Add the vertices of a statement; the last one bears its name."""
        self._target = statement.target.tensor
        self._span = statement.span
        self._first_product, self._next_number = len(self.products), 1
        self._lowered.clear()
        output = tuple(self._label(name) for name in statement.target.labels)
        expression = with_sizes(statement.expression, lambda name: self._label(name).bound)
        if (value := constant_value(expression)) is not None:
            raise UnsupportedError(
                "an expression of constants alone is not a tensor",
                where=str(self._span),
                expected="at least one tensor in the expression",
                found=repr(value)[:80],
            )
        first = len(self.vertices)
        self._finish(run(self._lower(expression)), output, first)

    def _finish(self, value: _Value, output: Labels, first: int) -> None:
        """Give the statement's last vertex its name and the order of its labels."""
        last = self.vertices[-1] if len(self.vertices) > first else None
        if last is None or value.maps or last.name != value.operand.tensor:
            self._add(self._unary(value, output, None, self._target), share=False)
            return
        del self.types[last.name]
        self.statistics.pop(last.name, None)
        self.taken.discard(last.name)
        # Labels of the last vertex may be those of the vertex whose work it repeats.
        type_ = replace(last.tensor.type, axes=output)
        self.vertices[-1] = replace(last, tensor=Tensor(self._target, type_), labels=output)
        self._record(self.vertices[-1])

    def _label(self, name: str) -> Label:
        return self.bounds.label(self._target, name)

    def _fresh(self) -> str:
        while (name := f"{self._target}_{self._next_number}") in self.taken:
            self._next_number += 1
        self._next_number += 1
        self.taken.add(name)
        return name

    def _release(self, name: str) -> None:
        """Give the name back that was made last."""
        self._next_number -= 1
        self.taken.discard(name)

    # ---- Expressions ----

    def _lower(self, expression: Expression) -> Calls[_Value]:
        """The value of a part of the statement; what was asked for before is not lowered again."""
        value = self._lowered.get(id(expression))
        if value is None:
            value = yield self._lower_anew(expression)
            if len(value.maps) >= MOST_MAPS:
                value = _Value(self._plain(value), value.dtype)
            self._lowered[id(expression)] = value
        return value

    def _lower_anew(self, expression: Expression) -> Calls[_Value]:
        value: _Value
        match expression:
            case Access():
                value = self._lower_access(expression)
            case Call(DType() as dtype, (argument,)):
                uncast = yield self._lower(argument)
                value = uncast.cast(dtype)
            case Call(PointwiseMap() as function, (argument,)):
                inner = yield self._lower(argument)
                value = self._apply(function, inner, str(expression.span))
            case Reduction():
                value = yield self._lower_reduction(expression)
            case Binary() if (found := chain(expression)) and (yield self._may_chain(found)):
                value = yield self._lower_chain(found)
            case Binary() if constant := scalar_case(expression):
                other = yield self._lower(constant.other)
                value = self._with_constant(
                    expression.operator, other, constant.value, constant.first
                )
            case Binary():
                value = yield self._lower_binary(expression, None, ())
            case _:
                raise AssertionError(f"{expression} is not resolved")
        return value

    def _lower_access(self, access: Access) -> _Value:
        operand = self._operand(access)
        value = _Value(operand, self.types[access.tensor].dtype)
        distinct = tuple(dict.fromkeys(operand.labels))
        if len(distinct) == len(operand.labels):
            return value
        return self._add(self._unary(value, distinct))

    def _operand(self, access: Access) -> Operand:
        return Operand(access.tensor, tuple(self._label(x) for x in access.labels))

    def _apply(self, function: PointwiseMap, value: _Value, where: str) -> _Value:
        """A pointwise function of a value."""
        signature = map_signature(function, value.dtype, where)
        if signature is None:
            return value
        if value.dtype.kind in function.zero_on:
            return self._with_constant(WHEN, value, False, True)
        made = value.cast(signature.compute).then(Map(function, signature.compute))
        if function.indicates:
            return made.indicating(signature.result)
        return made.cast(signature.result)

    def _with_constant(
        self, operator: Combine, value: _Value, constant: Scalar, first: bool
    ) -> _Value:
        """⊗ of a value and a constant."""
        where = str(self._span)
        left: DType | Scalar = constant if first else value.dtype
        right: DType | Scalar = value.dtype if first else constant
        signature = combine_signature(operator, left, right, where)
        if operator.typing is Typing.SELECTION:
            if first:
                constant = bool(constant)
            else:
                value = value.cast(DType.BOOL)
        try:
            number = signature.compute.scalar(constant)
        except (OverflowError, ValueError) as error:
            raise ValueTypeError(
                "a constant does not fit the type of its operand",
                where=where,
                expected=signature.compute.value,
                found=str(constant),
            ) from error
        step = Partial(operator, number, first, signature.compute)
        made = value.cast(signature.compute).then(step)
        return made.indicating(signature.result) if operator.indicates else made

    def _lower_reduction(self, expression: Reduction) -> Calls[_Value]:
        operator, argument = expression.operator, expression.argument
        over = tuple(self._label(name) for name in expression.over)
        value: _Value
        if (found := chain(expression)) and (yield self._may_chain(found)):
            value = yield self._lower_chain(found)
            return value
        if isinstance(argument, Binary) and scalar_case(argument) is None:
            value = yield self._lower_binary(argument, operator, over)
            return value
        if isinstance(argument, Access):  # one vertex picks the diagonal and aggregates
            value = _Value(self._operand(argument), self.types[argument.tensor].dtype)
        else:
            value = yield self._lower(argument)
        return self._reduce(value, operator, over)

    def _reduce(self, value: _Value, operator: Reduce, over: Labels) -> _Value:
        value = value.cast(reduce_type(operator, value.dtype, str(self._span)))
        every = tuple(dict.fromkeys(value.operand.labels))
        kept = tuple(label for label in every if label not in over)
        if kept == value.operand.labels:
            return value
        return self._add(self._unary(value, kept, operator if over else None))

    def _lower_binary(
        self, expression: Binary, reduce: Reduce | None, over: Labels
    ) -> Calls[_Value]:
        """⊗ of two expressions, aggregated in the same vertex where there are kernels for that."""
        left = yield self._lower(expression.left)
        right = yield self._lower(expression.right)
        operator, where = expression.operator, str(expression.span)
        signature = combine_signature(operator, left.dtype, right.dtype, where)
        if operator.typing is Typing.SELECTION:
            left = left.cast(DType.BOOL)
        one, other = (self._plain(side.cast(signature.compute)) for side in (left, right))
        both = tuple(dict.fromkeys((*one.labels, *other.labels)))
        fused = (
            reduce is not None
            and not operator.indicates
            and reduce.compiled
            and reduce_type(reduce, signature.result, where) is signature.result
        )
        if fused:
            kept = tuple(label for label in both if label not in over)
            return self._add(self._binary(operator, one, other, kept, reduce if over else None))
        value = self._add(self._binary(operator, one, other, both, None))
        if operator.indicates:
            value = value.indicating(signature.result)
        return value if reduce is None else self._reduce(value, reduce, over)

    def _plain(self, value: _Value) -> Operand:
        """The value as one tensor access without pending maps."""
        if not value.maps:
            return value.operand
        return self._add(self._unary(value, value.operand.labels)).operand

    # ---- Chains ----

    def _may_chain(self, found: Chain) -> Calls[bool]:
        """Whether a chain may be contracted in parts; of its factors it is known what they make."""
        if not may_chain(found, types_used(found, self.types), self.exact):
            return False
        if found.reduce is None or all(isinstance(x, Access) for x in found.factors):
            return True
        values = yield self._lower_all(found.factors)
        return may_chain(found, [self._type_of(value) for value in values], self.exact)

    def _lower_all(self, factors: Iterable[Expression]) -> Calls[list[_Value]]:
        values = []
        for factor in factors:
            values.append((yield self._lower(factor)))
        return values

    def _type_of(self, value: _Value) -> TensorType:
        source, labels = self.types[value.operand.tensor], value.operand.labels
        return unary_type(source, labels, value.maps, labels, None, self._span)

    def _lower_chain(self, found: Chain) -> Calls[_Value]:
        """Contract the factors pairwise, aggregating each label as soon as no factor needs it."""
        combine = found.combine
        values = yield self._lower_all(found.factors)
        # What is cast first and what last is all one: a product of yes and no that is summed, say.
        dtype = expression_type(found.expression, self.types)
        assert isinstance(dtype, DType)
        factors = [self._plain(value.cast(dtype)) for value in values]
        over = {self._label(name) for name in found.over}
        holders = Counter(label for factor in factors for label in set(factor.labels))
        alone = {label for label in over if holders[label] == 1}
        factors = [self._reduced_alone(factor, alone, found.reduce) for factor in factors]
        made = self._contract(found, factors, over)
        for constant in found.constants:
            made = self._with_constant(combine, made, constant, found.constants_first)
        return made

    def _reduced_alone(self, factor: Operand, alone: Set[Label], reduce: Reduce | None) -> Operand:
        """A factor without the labels that no other factor has and that are aggregated."""
        own = tuple(label for label in factor.labels if label in alone)
        if not own or reduce is None:
            return factor
        value = _Value(factor, self.types[factor.tensor].dtype)
        return self._reduce(value, reduce, own).operand

    def _contract(self, found: Chain, factors: list[Operand], over: set[Label]) -> _Value:
        dtype = self.types[factors[0].tensor].dtype
        if len(factors) == 1:
            return _Value(factors[0], dtype)
        kept = frozenset(x.name for factor in factors for x in factor.labels if x not in over)

        @cache
        def vertices(tree: Tree) -> list[Vertex]:
            return self._contraction(found.combine, found.reduce, factors, tree, kept)

        renamed: dict[str, Operand] = {}
        value = _Value(factors[0], dtype)
        for vertex in vertices(self._tree(found, factors, kept, vertices)):
            # A vertex that was found to exist already may have its labels in another order.
            left, right = (renamed.get(operand.tensor, operand) for operand in vertex.inputs)
            assert vertex.combine is not None
            made = self._binary(vertex.combine, left, right, vertex.labels, vertex.reduce)
            value = self._add(made)
            renamed[vertex.name] = value.operand
        return value

    def _tree(
        self,
        found: Chain,
        factors: Sequence[Operand],
        kept: frozenset[str],
        contract: Callable[[Tree], Sequence[Vertex]],
    ) -> Tree:
        """The tree of a product, which is noted."""
        assert found.written is not None
        path = self.paths.get(self._target)
        steps = None if path is None else pairs(path, len(factors), str(self._span))
        if len(factors) == 2:
            return found.written
        if steps is not None:
            return tree_of(steps, len(factors))
        if self._outgrows(contract(found.written)):
            return found.written  # the order decides what outgrows its type
        ranked: tuple[Tree, ...] = ()
        key = self._target, len(self.products) - self._first_product
        tree = self.trees.get(key, found.written)
        if key not in self.trees and self.rank:
            proposed = propose_trees(factors, kept, self.statistics, found.written)
            ranked = ranked_trees(proposed, contract, self.types, self.statistics, self.estimator)
            tree = ranked[0]
        if len(leaves(tree)) != len(factors):  # a fill that turned infinite parts a chain
            tree = found.written
        product = Product(key, found.combine, tuple(factors), found.written, tree, ranked)
        self.products.append(product)
        return tree

    def _outgrows(self, vertices: Sequence[Vertex]) -> bool:
        types = [v.tensor.type for v in vertices if v.tensor.type.dtype.kind == "f"]
        return any(type_.entries.finite and type_.entries.overflows for type_ in types)

    def _contraction(
        self,
        combine: Combine,
        reduce: Reduce | None,
        factors: Sequence[Operand],
        tree: Tree,
        kept: frozenset[str],
    ) -> list[Vertex]:
        """The vertices of a contraction, under names that no program can have."""
        waiting = dict(enumerate(factors))
        types = {factor.tensor: self.types[factor.tensor] for factor in factors}
        made = list[Vertex]()
        holders = Counter(name for factor in factors for name in set(factor.names))

        for first, second in joins(tree):
            left, right = waiting.pop(first), waiting.pop(second)
            for factor in (left, right):
                holders.subtract(set(factor.names))
            names = {*left.names, *right.names}
            needed = {name for name in names if name in kept or holders[name]}
            labels = _labels_in_place(left.labels, right.labels, needed)
            aggregate = reduce if len(labels) < len({*left.labels, *right.labels}) else None
            name = f"({len(made)})"
            vertex = _binary_vertex(
                types, combine, (left, right), labels, aggregate, name, self._span, self.exact
            )
            types[name] = vertex.tensor.type
            made.append(vertex)
            waiting[first] = Operand(name, labels)
            holders.update(waiting[first].names)
        return made

    # ---- Vertices ----

    def _unary(
        self, value: _Value, labels: Labels, reduce: Reduce | None = None, name: str | None = None
    ) -> Vertex:
        source, every = self.types[value.operand.tensor], value.operand.labels
        type_ = unary_type(source, every, value.maps, labels, reduce, self._span)
        tensor = Tensor(name or self._fresh(), type_)
        return Vertex(
            tensor, (value.operand,), labels, maps=value.maps, reduce=reduce, span=self._span
        )

    def _binary(
        self,
        operator: Combine,
        left: Operand,
        right: Operand,
        labels: Labels,
        reduce: Reduce | None,
    ) -> Vertex:
        made = self._fresh(), self._span, self.exact
        return _binary_vertex(self.types, operator, (left, right), labels, reduce, *made)

    def _add(self, vertex: Vertex, share: bool = True) -> _Value:
        """Add a vertex, or find the one that computes the same."""
        shape, order = _shape(vertex)
        if share and (place := self._places.get(shape)) is not None:
            self._release(vertex.name)
            kept = {x: label for label, x in order.items()}
            existing = self.vertices[place]
            _, theirs = _shape(existing)
            labels = tuple(kept[theirs[label]] for label in existing.labels)
            return _Value(Operand(existing.name, labels), existing.tensor.type.dtype)
        self._places.setdefault(shape, len(self.vertices))
        self.vertices.append(vertex)
        self._record(vertex)
        return _Value(Operand(vertex.name, vertex.labels), vertex.tensor.type.dtype)

    def _record(self, vertex: Vertex) -> None:
        """Remember type and statistics of a vertex's tensor."""
        self.types[vertex.name] = vertex.tensor.type
        if not self.rank:
            return  # statistics would not be asked for
        operands = tuple(
            Statistics(self.types[x.tensor], self.statistics[x.tensor]) for x in vertex.inputs
        )
        self.statistics[vertex.name] = self.estimator.derive(vertex, operands).counts


def _labels_in_place(left: Labels, right: Labels, needed: Set[str]) -> Labels:
    """Those labels of a product that are needed, in the order of the factor that has more of them.

    What only the other one has stands where this one's aggregated labels stood. So a state keeps
    the order of its axes whatever acts on it, and kernels work on long runs of it.

    >>> i, j, k, l = (Label(name, 2) for name in "ijkl")
    >>> [x.name for x in _labels_in_place((i, j), (k, j, l), {"i", "k", "l"})]
    ['k', 'i', 'l']
    """
    base, other = (left, right) if len(left) >= len(right) else (right, left)
    new = [label for label in other if label not in base and label.name in needed]
    gone = [label for label in other if label in base and label.name not in needed]
    places = dict(zip(gone, new, strict=False))
    order = [places.get(label, label) for label in base] + new[len(gone) :]
    return tuple(dict.fromkeys(label for label in order if label.name in needed))


def _shape(vertex: Vertex) -> tuple[_Shape, dict[Label, int]]:
    """The shape of a vertex, and the number of each of its labels in it."""
    inputs = vertex.inputs
    if vertex.combine is not None and vertex.combine.commutative:
        inputs = tuple(sorted(inputs, key=lambda operand: operand.tensor))
    order: dict[Label, int] = {}
    for label in (x for operand in inputs for x in operand.labels):
        order.setdefault(label, len(order))
    shape = _Shape(
        tuple(operand.tensor for operand in inputs),
        tuple(tuple(order[label] for label in operand.labels) for operand in inputs),
        frozenset(order[label] for label in vertex.labels),
        vertex.combine,
        vertex.maps,
        vertex.reduce,
    )
    return shape, order


def _binary_vertex(
    types: Mapping[str, TensorType],
    operator: Combine,
    inputs: tuple[Operand, Operand],
    labels: Labels,
    reduce: Reduce | None,
    name: str,
    span: Span | None,
    exact: bool,
) -> Vertex:
    one, other = (types[operand.tensor] for operand in inputs)
    if not exact:
        operator = annihilating(operator, one, other)
    every = (*inputs[0].labels, *inputs[1].labels)
    type_ = binary_type(operator, (one, other), every, labels, reduce, span)
    return Vertex(Tensor(name, type_), inputs, labels, combine=operator, reduce=reduce, span=span)
