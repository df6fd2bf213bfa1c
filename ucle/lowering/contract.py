"""Contract a logical program: trees of its products become vertices of the EinSum DAG.

Steps become unary and binary vertices in sequence; the factors of chains are joined in a tree, the
text's or another one. Here vertices get their names, and common work is computed once
(`ucle.lowering.share_subexpressions`). Types (bounds, element type, fill, values) are derived from
those of the operands (`ucle.ir.vertex_types`). The kind of join that a fill other than 0 needs is
decided not here but in `ucle.ir.fills`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ucle.foundation.dataclasses import dataclass
from ucle.ir.axis_functions import Along, TopK
from ucle.ir.contraction_trees import Tree, leaves, tree_of
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import Label
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertex_types import along_type, pair_type, reindexed_type, top_type, unary_type
from ucle.ir.vertices import Operand, PairFunction, Program, Span, Vertex
from ucle.lowering.contraction_orders import pairs
from ucle.lowering.logical import (
    MOST_MAPS,
    Contraction,
    Labels,
    LogicalProgram,
    LogicalStatement,
    Use,
)
from ucle.lowering.pairwise import KnownPairwise, Pairwise, alone, binary_vertex, leaf
from ucle.lowering.products import ContractedProduct, ProductKey, outgrow, ranked_orders
from ucle.lowering.share_subexpressions import SharedVertices
from ucle.operators import Reduce
from ucle.stats.estimate import MeasuredInputs, Statistics, as_measured


@dataclass(frozen=True)
class Contracted:
    """An EinSum DAG, the types of all tensors, and the products whose order was chosen."""

    program: Program
    types: Mapping[str, TensorType]
    products: tuple[ContractedProduct, ...]


def contract(
    logical: LogicalProgram,
    trees: Mapping[ProductKey, Tree] | None = None,
    measured: MeasuredInputs | None = None,
    known: KnownPairwise | None = None,
) -> Contracted:
    """Make the vertices of a logical program.

    Args:
        logical: the program.
        trees: orders in which to join the factors of products; the others are joined as written.
        measured: T and V of the inputs; if given, the factors of all other products are joined in
            the order of the fewest tuples.
        known: pairs of factors already worked out for other orders of the same statements.

    Raises:
        PathError: a given contraction path does not fit.
        ValueTypeError: an element type cannot hold a fill.
        BoundError: an aggregation over no entries has no value.
    """
    contraction = _Contraction(logical, trees or {}, measured, known or KnownPairwise())
    for statement in logical.statements:
        contraction.add_statement(statement)
    inputs = tuple(NamedTensor(name, logical.types[name]) for name in logical.inputs)
    program = Program(
        inputs, tuple(contraction.vertices), logical.outputs, logical.condition_numbers
    )
    return Contracted(remove_dead_vertices(program), contraction.types, tuple(contraction.products))


class KnownContractions:
    """Programs over the same inputs, contracted in the orders of the fewest tuples, each once.

    Args:
        measured: T and V of the inputs.
    """

    def __init__(self, measured: MeasuredInputs) -> None:
        self.measured = measured
        self.pairs = KnownPairwise()
        """Pairs of factors already worked out for other programs or other orders."""
        self._known: dict[int, tuple[LogicalProgram, Contracted]] = {}
        """Keyed by the identity of the program, which is kept alive with the result."""

    def contract(self, logical: LogicalProgram) -> Contracted:
        """Make the vertices of a program; errors are those of `contract`."""
        if id(logical) not in self._known:
            contracted = contract(logical, measured=self.measured, known=self.pairs)
            self._known[id(logical)] = logical, contracted
        return self._known[id(logical)][1]


def remove_dead_vertices(program: Program) -> Program:
    """Drop the vertices and inputs that no result depends on."""
    needed = set(program.results)
    for vertex in reversed(program.vertices):
        if vertex.name in needed:
            needed |= {operand.tensor for operand in vertex.inputs}
    return replace(
        program,
        inputs=tuple(tensor for tensor in program.inputs if tensor.name in needed),
        vertices=tuple(vertex for vertex in program.vertices if vertex.name in needed),
    )


class _Contraction:
    """Collects the vertices of a program; one instance contracts all of its statements."""

    _statement: LogicalStatement
    """The statement that is being contracted."""

    def __init__(
        self,
        logical: LogicalProgram,
        trees: Mapping[ProductKey, Tree],
        measured: MeasuredInputs | None,
        pairwise: KnownPairwise,
    ) -> None:
        self.types = {name: logical.types[name] for name in logical.inputs}
        self.vertices = SharedVertices()
        self.products: list[ContractedProduct] = []
        self._exact = logical.exact
        self._trees = trees
        self._pairwise = pairwise
        self._measured = measured
        self._known: dict[str, Statistics] = {}
        if measured is not None:
            self._known = {x: measured.input(x, self.types[x]) for x in logical.inputs}
        self._taken = {*logical.inputs, *logical.by_name}
        self._repeated: dict[str, tuple[Labels, Operand]] = {}
        """Tensors that an earlier vertex computes: their labels, and that vertex's tensor under
        these labels."""
        self._made: dict[str, Use] = {}
        """The uses that the steps of the statement have become."""
        self._first_product = 0
        """The number of products before the statement."""
        self._next_number = 1
        """The next number for a vertex name; all smaller ones are taken in this statement."""

    def add_statement(self, statement: LogicalStatement) -> None:
        """Add the vertices of a statement; the last one has its name."""
        self._statement = statement
        if statement.index is not None:
            vertex = self._build_reindex(statement, statement.index)
            (self._add_or_repeat if statement.lifted else self._record)(vertex)
            return
        self._first_product, self._next_number = len(self.products), 1
        self._made.clear()
        first = len(self.vertices)
        for step in statement.steps:
            self._made[step.name] = self._add_step(step)
        if statement.along is not None:
            self._record(self._along(statement, statement.along))
            return
        if statement.top is not None:
            self._add_or_repeat(self._first_entries(statement, statement.top))
            return
        if statement.pair is not None:
            self._record(self._pair(statement, *statement.pair))
            return
        self._finish(self._value(statement.result), statement, first)

    def _finish(self, use: Use, statement: LogicalStatement, first: int) -> None:
        """Give the statement's last vertex its name and the order of its labels."""
        last = self.vertices.last if len(self.vertices) > first else None
        name, labels = statement.target, statement.labels
        if last is None or use.maps or last.name != use.tensor:
            self._record(self._unary(use, labels, None, name))
            return
        del self.types[last.name]
        self._known.pop(last.name, None)
        self._taken.discard(last.name)
        # The last vertex may have the labels of the vertex whose work it repeats.
        type_ = replace(last.tensor.type, axes=last.labels).transpose_axes(labels)
        renamed = replace(last, tensor=NamedTensor(name, type_), labels=labels)
        self.vertices.replace_last(renamed)
        self._know(renamed)

    def _fresh(self) -> str:
        target = self._statement.target
        while (name := f"{target}_{self._next_number}") in self._taken:
            self._next_number += 1
        self._next_number += 1
        self._taken.add(name)
        return name

    def _release(self, name: str) -> None:
        """Release the name that was made last."""
        self._next_number -= 1
        self._taken.discard(name)

    @property
    def _span(self) -> Span:
        return self._statement.span

    # ---- Steps ----

    def _add_step(self, step: Contraction) -> Use:
        """Add the vertices of a step."""
        factors = [self._value(factor) for factor in step.factors]
        if step.combine is None:
            (use,) = factors
            return self._reduce_use(use, step.over, step.reduce)
        operands = [self._plain(use.cast(step.dtype)) for use in factors]
        if not step.is_chain:
            one, other = operands
            labels = _without((*one.labels, *other.labels), step.over)
            rest = labels, step.reduce, self.types, self._span, self._exact
            return self._add(binary_vertex(self._fresh(), step.combine, (one, other), *rest))
        if step.reduce is not None:
            gone = alone([operand.labels for operand in operands], step.over)
            operands = [
                self._reduce_use(self._read(operand), own, step.reduce).operand if own else operand
                for operand, own in zip(operands, gone, strict=True)
            ]
        use = self._join_factors(step, operands)
        use = Use(use.tensor, use.labels, use.dtype, step.maps)
        return self._read(self._plain(use)) if len(use.maps) >= MOST_MAPS else use

    def _value(self, use: Use) -> Use:
        """Return a use of an existing tensor in place of a step's use."""
        if use.tensor in self._repeated:
            labels, operand = self._repeated[use.tensor]
            names = dict(zip(labels, use.labels, strict=True))
            read = tuple(names[label] for label in operand.labels)
            return replace(use, tensor=operand.tensor, labels=read)
        source = self._made.get(use.tensor)
        if source is None:
            return use
        maps = (*source.maps, *use.maps)
        return Use(source.tensor, source.labels, use.dtype, maps, use.indicator)

    def _read(self, operand: Operand) -> Use:
        return Use(operand.tensor, operand.labels, self.types[operand.tensor].dtype)

    def _plain(self, use: Use) -> Operand:
        """Return a use as a tensor access without maps."""
        if not use.maps:
            return use.operand
        return self._add(self._unary(use, use.labels)).operand

    def _reduce_use(self, use: Use, over: Labels, reduce: Reduce | None) -> Use:
        return self._add(self._unary(use, _without(use.labels, over), reduce))

    # ---- Chains ----

    def _join_factors(self, step: Contraction, factors: list[Operand]) -> Use:
        """Join the factors of a chain two at a time."""
        if len(factors) == 1:
            return self._read(factors[0])

        known = [(operand.labels, self.types[operand.tensor]) for operand in factors]
        wanted = self._statement.labels
        pairwise = self._pairwise.of(step, known, self._span, self._exact, wanted)
        operands = {leaf(number): operand for number, operand in enumerate(factors)}
        use = self._read(factors[0])
        for vertex in pairwise.vertices(self._tree(step, factors, pairwise)):
            # A shared vertex may have its labels in another order.
            inputs = tuple(operands[operand.tensor] for operand in vertex.inputs)
            tensor = NamedTensor(self._fresh(), vertex.tensor.type)
            use = self._add(replace(vertex, tensor=tensor, inputs=inputs))
            operands[vertex.name] = use.operand
        return use

    def _tree(
        self,
        step: Contraction,
        factors: Sequence[Operand],
        pairwise: Pairwise,
    ) -> Tree:
        """Return the tree of a product, and record the product."""
        written = step.written
        assert written is not None
        assert step.combine is not None
        path = self._statement.path
        steps = None if path is None else pairs(path, len(factors), str(self._span))
        if len(factors) == 2:
            return written
        if steps is not None:
            return tree_of(steps, len(factors))
        if outgrow(pairwise.vertices(written)):
            return written  # the order decides which numbers overflow
        ranked: tuple[Tree, ...] = ()
        key = self._statement.target, len(self.products) - self._first_product
        tree = self._trees.get(key, written)
        if key not in self._trees and self._measured is not None:
            ranked = ranked_orders(
                step,
                factors,
                written,
                pairwise,
                self.types,
                self._known,
                self._measured.estimator,
            )
            tree = ranked[0]
        if len(leaves(tree)) != len(factors):  # the tree of another chain, as types have changed
            tree = written
        self.products.append(
            ContractedProduct(
                key,
                step.combine,
                tuple(factors),
                frozenset(x.name for x in step.over),
                step.reduce,
                written,
                tree,
                ranked,
            )
        )
        return tree

    # ---- Vertices ----

    def _unary(
        self, use: Use, labels: Labels, reduce: Reduce | None = None, name: str | None = None
    ) -> Vertex:
        source = self.types[use.tensor]
        type_ = unary_type(source, use.labels, use.maps, labels, reduce, self._span)
        tensor = NamedTensor(name or self._fresh(), type_)
        return Vertex(tensor, (use.operand,), labels, maps=use.maps, reduce=reduce, span=self._span)

    def _build_reindex(self, statement: LogicalStatement, index: IndexMap) -> Vertex:
        operand, labels = self._value(statement.result).operand, statement.labels
        type_ = reindexed_type(self.types[operand.tensor], operand.labels, index, labels)
        tensor = NamedTensor(statement.target, type_)
        return Vertex(tensor, (operand,), labels, span=statement.span, index=index)

    def _along(self, statement: LogicalStatement, along: Along) -> Vertex:
        operand, labels = self._plain(self._value(statement.result)), statement.labels
        if operand.labels != labels:
            operand = self._add(self._unary(self._read(operand), labels)).operand
        tensor = NamedTensor(
            statement.target, along_type(self.types[operand.tensor], along, labels)
        )
        return Vertex(tensor, (operand,), labels, span=statement.span, along=along)

    def _first_entries(self, statement: LogicalStatement, top: TopK) -> Vertex:
        result, labels = self._value(statement.result), statement.labels
        operand = self._plain(result)
        kept = tuple(x for x in operand.labels if x.name != top.label)
        if kept != labels[: len(kept)]:
            operand = self._add(self._unary(self._read(operand), statement.result.labels)).operand
        type_ = top_type(self.types[operand.tensor], top, operand.labels, labels)
        tensor = NamedTensor(statement.target, type_)
        return Vertex(tensor, (operand,), labels, span=statement.span, top=top)

    def _pair(self, statement: LogicalStatement, pair: PairFunction, second: Use) -> Vertex:
        labels, operands = statement.labels, []
        wanted = pair.operand_names(tuple(label.name for label in labels))
        for use, names in zip((statement.result, second), wanted, strict=True):
            order = tuple(_named(use.labels, name) for name in names)
            operand = self._plain(self._value(use))
            if operand.labels != order:
                operand = self._add(self._unary(self._read(operand), order)).operand
            operands.append(operand)
        one, other = operands
        type_ = pair_type((self.types[one.tensor], self.types[other.tensor]), pair, labels)
        tensor = NamedTensor(statement.target, type_)
        return Vertex(tensor, (one, other), labels, span=statement.span, pair=pair)

    def _add_or_repeat(self, vertex: Vertex) -> None:
        """Add the vertex of a lifted statement, or remember the vertex that computes the same."""
        existing = self.vertices.find(vertex)
        if existing is None:
            self._record(vertex)
            return
        self._repeated[vertex.name] = vertex.labels, existing
        self.types[vertex.name] = vertex.tensor.type

    def _add(self, vertex: Vertex) -> Use:
        """Add a vertex, or find the one that computes the same."""
        if (existing := self.vertices.find(vertex)) is not None:
            self._release(vertex.name)
            return self._read(existing)
        self._record(vertex)
        return self._read(Operand(vertex.name, vertex.labels))

    def _record(self, vertex: Vertex) -> None:
        self.vertices.add(vertex)
        self._know(vertex)

    def _know(self, vertex: Vertex) -> None:
        """Record the type and the statistics of a vertex's tensor."""
        self.types[vertex.name] = vertex.tensor.type
        if self._measured is None:
            return  # nothing reads them
        estimator = self._measured.estimator
        derived = estimator.derive(vertex, tuple(self._known[x.tensor] for x in vertex.inputs))
        # Orders of one product are ranked without looking back at other products.
        self._known[vertex.name] = as_measured(estimator, derived)


def _named(labels: Labels, name: str) -> Label:
    """Return the label with a name."""
    return next(label for label in labels if label.name == name)


def _without(labels: Labels, over: Labels) -> Labels:
    """Return the labels that are left, each once."""
    gone: set[Label] = set(over)
    return tuple(label for label in dict.fromkeys(labels) if label not in gone)
