"""Statements as nodes of a graph, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from ucle.errors import UnsupportedError
from ucle.export.entries import (
    Entries,
    FirstEntries,
    Hits,
    Tensor,
    Term,
    Weak,
    every_label,
)
from ucle.export.formulas import COMBINES, MAPS, reduce_axes
from ucle.export.graph import Graph, Value, choose
from ucle.export.open_axes import Extents, OpenAxes
from ucle.export.products import equation_of, sum_of_products
from ucle.export.reads import read_elsewhere
from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.tree_walk import Calls, run
from ucle.ir.axis_functions import POSITION, Running, pair_dtype
from ucle.ir.tensor_types import TensorType
from ucle.language.factors import ProductChain, chain, may_chain, types_used, with_sizes
from ucle.language.functions import Direction
from ucle.language.promotion import (
    combine_signature,
    expression_type,
    map_signature,
    reduce_type,
)
from ucle.language.syntax import (
    Access,
    Binary,
    Bounded,
    Call,
    Expression,
    Flat,
    ForestCall,
    Number,
    Outside,
    Pairs,
    Reduction,
    Reindexed,
    Retyped,
    ScanExpression,
    Size,
    Statement,
    SystemCall,
    fold,
    walk,
    with_children,
)
from ucle.operators import (
    AND,
    MULT,
    ONE_IF_ZERO,
    SUM,
    Combine,
    PointwiseMap,
    Reduce,
    Typing,
)


class Statements:
    """Adds statements to a graph, and keeps the values of their tensors.

    Args:
        graph: where nodes are added.
        axes: the axes that stay open.
        types: of all tensors.
        tensors: those of the inputs, by name; those of statements are added.
        exact: whether NaN and infinities have to be as in NumPy.
    """

    def __init__(
        self,
        graph: Graph,
        axes: OpenAxes,
        types: Mapping[str, TensorType],
        tensors: dict[str, Tensor],
        inputs: Mapping[str, Value],
        exact: bool = True,
    ) -> None:
        self.graph = graph
        self.axes = axes
        self.types = types
        self.tensors = tensors
        self.inputs = inputs
        self.exact = exact
        self.extents = Extents(axes, graph, inputs, "")
        self._unreduced: set[int] = set()

    def add(self, statement: Statement) -> None:
        """Add a statement, whose tensors are there.

        Raises:
            UnsupportedError: there is no operator for a part of it.
        """
        target, labels = statement.target.tensor, statement.target.labels
        self.graph.stem = target
        self.extents = Extents(self.axes, self.graph, self.inputs, target)
        self._unreduced.clear()
        self.tensors[target] = self._whole(statement.expression, labels)

    def _whole(self, expression: Expression, labels: tuple[str, ...]) -> Tensor:
        """The value of a statement."""
        match expression:
            case Reindexed():
                return self._reindexed(expression, labels)
            case Pairs():
                return self._pairs(expression)
            case ScanExpression():
                return self._scan(expression).in_order(labels)
            case Flat():
                raise UnsupportedError("a ranking along several labels")
            case ForestCall():
                raise UnsupportedError("forest, which packs its trees in another way")
            case SystemCall():
                raise UnsupportedError("solve, for which ONNX has no operator")
        term = run(self._lower(_with_known_sizes(expression, self.extents)))
        return self._entries(term, DType.FLOAT64).in_order(labels)

    def _entries(self, term: Term, dtype: DType) -> Entries:
        """A term as entries; numbers get a type."""
        if isinstance(term, Entries):
            return term
        if isinstance(term, Weak):
            return Entries(term.value.cast(dtype), ())
        return Entries(self.graph.constant(term, dtype), ())

    def _tensor(self, name: str, labels: Sequence[str]) -> Entries:
        """A tensor under labels, which differ from each other."""
        tensor = self.tensors[name]
        if isinstance(tensor, Hits):
            return self._all_hits(tensor).relabel(labels)
        assert isinstance(tensor, Entries), "first entries are read by halves"
        return tensor.relabel(labels)

    # ---- Expressions ----

    def _lower(self, expression: Expression) -> Calls[Term]:
        match expression:
            case Number(value):
                return value
            case Size(over):
                count = self.extents.count(over)
                assert isinstance(count, Value), "known sizes are numbers by now"
                return Weak(count, prod(map(self.extents.number, over)))
            case Access():
                return self._access(expression)
            case Retyped(argument, like):
                inner = yield self._lower(argument)
                return self._entries(inner, DType.FLOAT64).cast(self._dtype(like))
            case Bounded(argument, pick, bound):
                inner = yield self._lower(argument)
                if not (isinstance(inner, Entries) and inner.dtype is DType.BOOL):
                    return self._combine(pick, inner, bound)
                return self._call(ONE_IF_ZERO, inner) if expression.is_nonzero else inner
            case Call(function, (argument,)):
                inner = yield self._lower(argument)
                return self._call(function, inner)
            case Reduction(operator, over, argument) if not operator.picks:
                if (found := self._product(expression)) is not None:
                    result: Term = yield self._lower_product(found)
                    return result
                inner = yield self._lower(argument)
                return self._reduce(operator, over, self._entries(inner, DType.FLOAT64))
            case Reduction():
                result = yield self._lower_pick(expression)
                return result
            case Binary(operator, left, right):
                if (found := self._product(expression)) is not None:
                    result = yield self._lower_product(found)
                    return result
                one = yield self._lower(left)
                other = yield self._lower(right)
                return self._combine(operator, one, other)
        raise AssertionError(f"{expression} is not resolved")

    def _dtype(self, tensor: str) -> DType:
        return self.types[tensor].dtype

    def _access(self, access: Access) -> Entries:
        labels = access.labels
        if len(set(labels)) == len(labels):
            return self._tensor(access.tensor, labels)
        own = [f"{label} {n}" for n, label in enumerate(labels)]
        return self._diagonal(self._tensor(access.tensor, own), labels)

    def _diagonal(self, entries: Entries, labels: tuple[str, ...]) -> Entries:
        """The entries at which labels that stand twice agree."""
        distinct = tuple(dict.fromkeys(labels))
        counted = entries.value
        if entries.dtype is DType.BOOL:
            counted = counted.cast(DType.INT64)
        value = counted.apply("Einsum", equation=equation_of([labels], distinct))
        return Entries(value.cast(entries.dtype), distinct)

    def _call(self, function: PointwiseMap | DType | str, inner: Term) -> Term:
        if not isinstance(inner, Entries):
            sample = inner.sample if isinstance(inner, Weak) else inner
            known = _known(function, sample)
            if not isinstance(inner, Weak):
                return known
            dtype = _type_of(sample)
            made = self._call(function, Entries(inner.value.cast(dtype), ()))
            assert isinstance(made, Entries)
            return Weak(made.value, known)
        if isinstance(function, DType):
            return inner.cast(function)
        assert isinstance(function, PointwiseMap)
        signature = map_signature(function, inner.dtype)
        if signature is None:
            return inner
        if inner.dtype.kind in function.zero_on:
            zeros = inner.value & False if inner.dtype is DType.BOOL else inner.value * 0
            return Entries(zeros, inner.labels)
        formula = MAPS.get(function)
        if formula is None:
            raise UnsupportedError(f"{function.name}, which no operator computes")
        value = formula(inner.value.cast(signature.compute))
        return Entries(value, inner.labels).cast(signature.result)

    def _combine(self, operator: Combine, one: Term, other: Term) -> Term:
        samples = [_sample(side) for side in (one, other)]
        if not any(isinstance(side, Entries) for side in (one, other)):
            known = _known(operator, *samples)
            if not any(isinstance(side, Weak) for side in (one, other)):
                return known
            types = [_type_of(sample) for sample in samples]
            sides = [self._entries(x, y) for x, y in zip((one, other), types, strict=True)]
            made = self._combine(operator, *sides)
            assert isinstance(made, Entries)
            return Weak(made.value, known)
        formula = COMBINES.get(operator)
        if formula is None:
            raise UnsupportedError(f"{operator.name}, which no operator computes")
        signature = combine_signature(operator, samples[0], samples[1])
        compute = signature.compute
        first = DType.BOOL if operator.typing is Typing.SELECTION else compute
        left, right = self._entries(one, first), self._entries(other, compute)
        every = every_label(left, right)
        value = formula(left.cast(first).aligned(every), right.cast(compute).aligned(every))
        return Entries(value, every).cast(signature.result)

    def _reduce(self, operator: Reduce, over: Sequence[str], entries: Entries) -> Entries:
        entries = entries.cast(reduce_type(operator, entries.dtype))
        axes = tuple(entries.labels.index(label) for label in over)
        value = reduce_axes(operator, entries.value, axes)
        if value is None:
            raise UnsupportedError(f"{operator.name}, which no operator computes")
        return Entries(value, tuple(x for x in entries.labels if x not in over))

    # ---- Products ----

    def _product(self, expression: Expression) -> ProductChain | None:
        """A sum of products, if an expression is one whose factors may take any order."""
        found = chain(expression, self._unreduced)
        if found is None or found.combine is not MULT or found.reduce is not SUM:
            return None
        pair = len(found.factors) == 2 and not found.constants and found.outermost
        if not pair and not may_chain(found, types_used(found, self.types), self.exact):
            return None
        return found

    def _lower_product(self, found: ProductChain) -> Calls[Entries]:
        factors: list[Entries] = []
        for factor in found.factors:
            term = yield self._lower(factor)
            factors.append(self._entries(term, DType.FLOAT64))
        dtype = expression_type(with_sizes(found.expression, self.extents.number), self.types)
        assert isinstance(dtype, DType)
        numbers = [self.graph.constant(x, dtype) for x in found.constants if x != 1]
        made = sum_of_products([x.cast(dtype) for x in factors], found.over, self.extents.number)
        for number in numbers:
            made = Entries(made.value * number, made.labels)
        return made

    # ---- Gathers ----

    def _lower_pick(self, pick: Reduction) -> Calls[Entries]:
        """The entries of a tensor at positions that other tensors hold."""
        selection = pick.argument
        assert isinstance(selection, Binary)
        source: Term = yield self._lower(selection.right)
        assert isinstance(source, Entries)
        hits: list[tuple[Hits, Entries, str]] = []
        waiting = [selection.left]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Binary) and part.operator is AND:
                waiting += [part.right, part.left]
                continue
            assert isinstance(part, Access)
            hit = self.tensors[part.tensor]
            assert isinstance(hit, Hits)
            hits.append((hit, hit.entries.relabel(part.labels[:-1]), part.labels[-1]))
        return self._gather(source, hits, selection.right)

    def _gather(
        self, source: Entries, hits: Sequence[tuple[Hits, Entries, str]], read: Expression
    ) -> Entries:
        """The entries of a source at positions; those outside read the fill, if they may."""
        places = [label for _, _, label in hits]
        own = every_label(*(entries for _, entries, _ in hits))
        mask: Value | None = None
        columns: list[Entries] = []
        for hit, positions, label in hits:
            assert hit.read.hit is not None
            if not hit.read.hit.permissive:
                columns.append(positions)
                continue
            last, value = self.extents.size(label) - 1, positions.value
            within = Entries((value >= 0) & (value <= last), positions.labels).aligned(own)
            mask = within if mask is None else mask & within
            value = value.apply("Max", value.like(0)).apply("Min", value.like(last))
            columns.append(Entries(value, positions.labels))
        rest = [label for label in source.labels if label not in places and label not in own]
        batch = [label for label in source.labels if label in own]
        if len(columns) == 1 and not batch:
            axis = source.labels.index(places[0])
            value = source.value.apply("Gather", columns[0].value, axis=axis)
            labels = (*source.labels[:axis], *columns[0].labels, *source.labels[axis + 1 :])
            found = Entries(value, labels)
        else:
            every = (*batch, *(label for label in own if label not in batch))
            shape = self.extents.shape(every)
            stacked = [
                self.graph.node("Expand", (x.aligned(every), shape), DType.INT64).axes(
                    "Unsqueeze", [len(every)]
                )
                for x in columns
            ]
            index = self.graph.node("Concat", stacked, DType.INT64, axis=len(every))
            data = source.in_order([*batch, *places, *rest])
            value = data.value.apply("GatherND", index, batch_dims=len(batch))
            found = Entries(value, (*every, *rest))
        if mask is None:
            return found
        whole = every_label(found, Entries(mask, own))
        fill = self._fill_of(read)
        inside = Entries(mask, own).aligned(whole)
        return Entries(choose(inside, found.aligned(whole), fill, found.dtype), whole)

    def _fill_of(self, read: Expression) -> Scalar:
        """The fill of the tensor that is read at positions."""
        while isinstance(read, Reduction) and isinstance(read.argument, Binary):
            read = read.argument.right
        if not isinstance(read, Access):
            raise UnsupportedError("a read outside of what an expression computes")
        return self.types[read.tensor].fill

    # ---- Statements of one kind ----

    def _reindexed(self, read: Reindexed, labels: tuple[str, ...]) -> Tensor:
        """A tensor at other indices, or under a condition."""
        tensor = self.tensors[read.source.tensor]
        type_ = self.types[read.source.tensor]
        if read.outside is Outside.PRODUCT and self.exact and not type_.every.finite:
            assert read.written is not None
            return self._whole(read.written, labels)
        if isinstance(tensor, FirstEntries):
            return self._half(read, tensor, labels)
        source = self._tensor(read.source.tensor, read.source.labels)
        if read.hit is not None:
            return Hits(source, read.hit.label, read, self.extents)
        outside: Scalar = type_.fill if read.outside is Outside.FILL else 0
        if read.outside is Outside.IDENTITY and read.aggregation is not None:
            identity = read.aggregation.identity
            outside = 0 if identity is None else identity(source.dtype)
        return read_elsewhere(read, source, labels, self.extents, outside)

    def _half(self, read: Reindexed, first: FirstEntries, labels: tuple[str, ...]) -> Entries:
        """The values or the positions of first entries."""
        *indices, part = read.indices
        half = first.positions if part.affine.constant == POSITION else first.values
        names = tuple(index.affine.label for index in indices)
        if None in names:  # a single entry, at rank 0
            single = half.value.axes("Squeeze", [names.index(None)])
            half, names = Entries(single, ()), tuple(x for x in names if x is not None)
        return half.relabel([str(x) for x in names]).in_order(labels)

    def _all_hits(self, hits: Hits) -> Entries:
        """True where positions are the coordinates of a label."""
        labels = (*hits.entries.labels, hits.label)
        places = hits.extents.coordinates(hits.label)
        value = hits.entries.value.axes("Unsqueeze", [len(labels) - 1])
        return Entries(value.equals(places), labels)

    def _pairs(self, pairs: Pairs) -> FirstEntries:
        """The first entries along a label, with their positions."""
        source = self._tensor(pairs.source.tensor, pairs.source.labels)
        others = tuple(x for x in source.labels if x != pairs.label)
        dtype = pair_dtype(source.dtype)
        assert dtype is not None
        own = source.in_order((*others, pairs.label))
        value = own.value.cast(DType.INT64) if own.dtype is DType.BOOL else own.value
        count = self.graph.integers([self.extents.number(pairs.rank)])
        values, positions = self.graph.several(
            "TopK",
            (value, count),
            (value.dtype, DType.INT64),
            largest=int(pairs.order is Direction.GREATEST),
        )
        labels = (*others, pairs.rank)
        return FirstEntries(Entries(values, labels), Entries(positions, labels))

    def _scan(self, scan: ScanExpression) -> Entries:
        """A running aggregation."""
        source, along = scan.argument, scan.along
        if not isinstance(along, Running) or along.reduce is not SUM:
            raise UnsupportedError(f"{along.name}, which no operator computes")
        assert isinstance(source, Access), "lifted"
        entries = self._access(source)
        entries = entries.cast(reduce_type(along.reduce, entries.dtype))
        axis = self.graph.constant(entries.labels.index(along.label), DType.INT64)
        return Entries(entries.value.apply("CumSum", axis), entries.labels)


def _with_known_sizes(expression: Expression, extents: Extents) -> Expression:
    """An expression with numbers in place of the sizes that are not open."""

    def insert_sizes(part: Expression, parts: list[Expression]) -> Expression:
        if isinstance(part, Size) and isinstance(count := extents.count(part.over), int):
            return Number(count, part.span)
        return with_children(part, parts)

    if not any(isinstance(part, Size) for part in walk(expression)):
        return expression
    return fold(expression, insert_sizes)


def _sample(term: Term) -> DType | Scalar:
    """The type of a term; the number itself where it takes the type of what it meets."""
    if isinstance(term, Entries):
        return term.dtype
    return term.sample if isinstance(term, Weak) else term


def _known(function: PointwiseMap | Combine | DType | str, *values: DType | Scalar) -> Scalar:
    """The value of an operator at numbers."""
    if isinstance(function, DType):
        return function.scalar(values[0])
    assert not isinstance(function, str), "expanded"
    with np.errstate(all="ignore"):
        result: Scalar = np.asarray(function.numpy(*values)).item()
    return result


def _type_of(value: DType | Scalar) -> DType:
    """The type of a number of Python."""
    if isinstance(value, bool):
        return DType.BOOL
    return DType.INT64 if isinstance(value, int) else DType.FLOAT64
