"""Translation of the nodes of lazy tensors to the statements of a program.

A node that is read once becomes a part of the expression that reads it, so that nested products
form one chain and are contracted in the cheapest order. A node that is read several times, or would
make an expression too long, gets a statement of its own. Labels are named after the axes; axes
without names get letters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import count
from typing import Any

import numpy as np

from ucle.errors import InputError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.foundation.names import fold_name, unique_names
from ucle.gradients.differentiate import differentiate
from ucle.inputs.operands import is_relation
from ucle.inputs.random_tensors import RandomTensor
from ucle.inputs.table_input import TableInput
from ucle.ir.affine import Affine
from ucle.ir.axis_functions import MatrixMap, Running
from ucle.ir.conditions import All, Compare, Some, rename_condition_labels
from ucle.ir.linear_systems import NAME as SOLVE
from ucle.ir.vertices import Span
from ucle.language.label_arithmetic import affine_expression, condition_expression
from ucle.language.statements import input_labels
from ucle.language.syntax import (
    Access,
    Expression,
    First,
    Flat,
    Index,
    Number,
    ScanExpression,
    Statement,
    SystemCall,
)
from ucle.language.syntax_to_text import statement_text
from ucle.lazy.inputs import axes_by_name
from ucle.lazy.meaning import expression_of
from ucle.lazy.nodes import (
    Apply,
    Axis,
    Backward,
    Gradient,
    Lazy,
    Leaf,
    Node,
    NodeOperand,
    in_order,
    sources,
)
from ucle.lazy.share_nodes import identity
from ucle.lazy.types import Types, operand_types
from ucle.operators import (
    LOGSUMEXP,
    PICK,
    REDUCES,
    WHEN,
    WORDS,
)

LONGEST = 32
"""The largest number of operands in one statement."""


LETTERS = "ijklmnpqrstuvwxyz"


@dataclass(frozen=True)
class LazyProgram:
    """Statements, and the inputs that they read, by name."""

    statements: tuple[Statement, ...]
    inputs: Mapping[str, Any]

    def __str__(self) -> str:
        return "\n".join(map(_text, self.statements))


def _text(statement: Statement) -> str:
    sizes = ", ".join(f"{label} < {size}" for label, size in statement.sizes.items())
    return statement_text(statement) + (f"  # {sizes}" if sizes else "")


def to_program(outputs: Mapping[str, Node], types: Types) -> LazyProgram:
    """Build the program that computes some nodes.

    Args:
        outputs: the nodes by the names that they get.
        types: element types of the nodes; for nodes that an output reads, they have to be known if
            `meaning.depends_on_types` is true.
    """
    nodes = in_order(outputs.values())
    inputs = _name_inputs(nodes, outputs)
    taken = {fold_name(name) for name in (*inputs.values(), *outputs)}
    writer = _StatementWriter(types, dict(inputs.items()), taken)
    own: dict[Node, str] = {}
    for name, node in outputs.items():
        own.setdefault(node, name)
    uses = _uses(nodes, outputs.values())
    sizes: dict[Node, int] = {}
    read_whole = set(_read_whole(nodes))
    for node in nodes:
        if isinstance(node, Gradient):
            writer.differentiate(node)
            sizes[node] = 1
            continue
        size = sum(1 if s in writer.names else sizes[s] for s in _reads(node)) + 1
        sizes[node] = size
        shared = (uses[node] > 1 and not _is_trivial(node)) or size > LONGEST
        # An operation along a label would affect a second axis if its result's diagonal is read.
        along = isinstance(node, Apply) and (node.placed or node.along is not None)
        alone = along or node in read_whole
        if isinstance(node, Apply) and (node in own or shared or alone):
            writer.write(node, own[node] if node in own else unique_names(["t"], writer.taken)[0])
    for name, node in outputs.items():
        if writer.names[node] != name:
            writer.write(node, name)
    statements = tuple(writer.statements)
    labels = input_labels(statements)
    values = {
        name: relabel_dictionaries(leaf, labels[name]) for leaf, name in reversed(inputs.items())
    }
    return LazyProgram(statements, values)


def with_units(tensor: Lazy) -> Node:
    """A node for an output tensor, with labels also for its axes of size 1."""
    units = tuple(n for n, axis in enumerate(tensor.axes) if axis.unit)
    if not units:
        return tensor.node
    every = range(len(tensor.axes))
    values = TableInput(np.ones([1] * len(units), dtype=bool), fill=True)
    leaf = Leaf(values, tuple(tensor.axes[n] for n in units), "ones", DType.BOOL)
    read = (NodeOperand(leaf, units), tensor.operand(every))
    # A product would make NaN of infinite complex numbers.
    return Apply(WHEN, read, tuple(every), tensor.axes)


def _name_inputs(nodes: Sequence[Node], outputs: Iterable[str]) -> dict[Leaf, str]:
    """Name each input, a table after itself; the same input gets only one name."""
    by_identity: dict[Any, list[Leaf]] = {}
    for node in nodes:
        if isinstance(node, Leaf):
            by_identity.setdefault(identity(node), []).append(node)
    firsts = [leaves[0] for leaves in by_identity.values()]
    stems = [x if (x := re.sub(r"\W", "_", leaf.name)).isidentifier() else "X" for leaf in firsts]
    taken = {name.casefold() for name in (*outputs, *WORDS, *REDUCES)}
    names = unique_names(stems, taken)
    return {
        leaf: name
        for name, leaves in zip(names, by_identity.values(), strict=True)
        for leaf in leaves
    }


def _read_whole(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield the nodes that need a name: read at indices instead of labels, or differentiated."""
    for node in nodes:
        match node:
            case Gradient():
                yield from sources(node)
            case Apply(operands=operands):
                for number, operand in enumerate(operands):
                    at_entries = node.reduce is PICK and number == 1
                    whole = operand.indices is not None or at_entries
                    if whole and isinstance(operand.source, Apply):
                        yield operand.source


def _is_trivial(node: Node) -> bool:
    return isinstance(node, Apply) and node.trivial


def _reads(node: Node) -> Iterator[Node]:
    """Yield the nodes that a node reads, as often as its expression will contain them."""
    if isinstance(node, Gradient):
        yield from sources(node)
    elif isinstance(node, Apply):
        for number, operand in enumerate(node.operands):
            if isinstance(operand.source, Node):
                twice = (node.function == "where" and not number) or node.reduce is LOGSUMEXP
                yield from (operand.source,) * (2 if twice else 1)


def _uses(nodes: Sequence[Node], outputs: Iterable[Node]) -> Counter[Node]:
    """Count how often each node would be written; trivial nodes pass their uses on."""
    uses = Counter(outputs)
    for node in reversed(nodes):
        for source in _reads(node):
            uses[source] += uses[node] if _is_trivial(node) else 1
    return uses


def relabel_dictionaries(leaf: Leaf, labels: Sequence[str]) -> Any:
    """Rename the dictionaries of an input after the program's labels for its axes."""
    spec = leaf.value
    _check_shape(leaf)
    if not (isinstance(spec, TableInput) and spec.dictionaries):
        return spec
    places = axes_by_name(spec, [axis.name for axis in leaf.axes])
    pairs = tuple((labels[places[name]], dictionary) for name, dictionary in spec.dictionaries)
    return replace(spec, dictionaries=pairs)


def _check_shape(leaf: Leaf) -> None:
    """Check that an array still has the shape that it had when a tensor was made from it.

    Raises:
        InputError: it has another shape.
    """
    array = leaf.value.relation if isinstance(leaf.value, TableInput) else leaf.value
    if is_relation(array) or isinstance(array, RandomTensor):
        return
    before = tuple(axis.size for axis in leaf.axes)
    now = tuple(array.shape) if hasattr(array, "shape") else np.shape(array)
    if now != before:
        raise InputError(
            "the array has another shape than when the tensor was made",
            where=f"input {leaf.name}",
            expected=f"shape {before}",
            found=f"shape {now}",
            hint="make a new lazy tensor from it",
        )


@dataclass
class _StatementWriter:
    """Collects statements; `names` holds the names of inputs and of nodes with a statement."""

    types: Types
    names: dict[Node, str]
    taken: set[str]
    """Used names of tensors, folded for comparison."""
    statements: list[Statement] = field(default_factory=list)
    gradients: dict[Backward, tuple[str, ...]] = field(default_factory=dict)

    def write(self, node: Node, name: str) -> None:
        """Add the statement of a node; afterwards the node is read by its name."""
        span = Span(len(self.statements) + 1, 1)
        labels = _Labels(node.axes)
        sizes: dict[str, int] = {}
        if node in self.names:
            expression: Expression = Access(self.names[node], labels.output, span)
        else:
            expression = self._expression(node, labels.output, labels, span)
            self.names[node] = name
            if isinstance(node, Apply) and node.placed:
                pairs = zip(labels.output, node.axes, strict=True)
                sizes = {label: axis.size for label, axis in pairs if axis.size is not None}
                sizes |= labels.sizes
        target = Access(name, labels.output, span)
        self.statements.append(
            Statement(target, None, expression, span, labels.renamed, sizes=sizes)
        )

    def differentiate(self, gradient: Gradient) -> None:
        """Add the backward pass that computes a gradient, unless it was added before."""
        backward = gradient.backward
        if backward not in self.gradients:
            by = [self.names[node] for node in backward.by]
            types = {name: self.types[node] for name, node in zip(by, backward.by, strict=True)}
            narrow = {name: x for name, x in types.items() if x not in (None, DType.FLOAT64)}
            loss = self.names[backward.loss]
            made = differentiate(self.statements, loss, by, dtypes=narrow, reserved=self.taken)
            self.statements = list(made.statements)
            self.taken.update(fold_name(x.target.tensor) for x in made.statements)
            self.gradients[backward] = tuple(made.names[name] for name in by)
        self.names[gradient] = self.gradients[backward][gradient.number]

    def _expression(
        self, node: Node, output: tuple[str, ...], labels: _Labels, span: Span
    ) -> Expression:
        if node in self.names:
            return Access(self.names[node], output, span)
        assert isinstance(node, Apply)
        label_names = dict(zip(node.output, output, strict=True))
        over = []
        for operand in node.operands:
            if operand.indices is not None or not isinstance(operand.source, Node):
                continue  # it has only labels of the output
            for label, axis in zip(operand.labels, operand.source.axes, strict=True):
                if label not in label_names:
                    label_names[label] = labels.fresh(axis)
                    if node.first is None:
                        over.append(label_names[label])
        parts = [self._operand(o, label_names, labels, span) for o in node.operands]
        if node.flat:
            return Flat(tuple(over), output[0], parts[0], span)
        if node.along is not None and node.along[0] == SOLVE:
            row, column = (label_names[label] for label in node.along[1])
            matrix, sides = parts
            return SystemCall(row, column, matrix, sides, span)
        kinds = operand_types(node, self.types)
        expression = expression_of(node, parts, kinds, tuple(over), span)
        if node.first is not None:
            first = node.first
            rank = None if first.rank is None else label_names.get(first.rank)
            if first.rank is not None and rank is None:
                rank = labels.fresh(Axis("rank" if node.axes[0].name else None, first.count))
                labels.sizes[rank] = first.count
            return First(first.function, label_names[first.label], rank, expression, span)
        if node.along is None:
            return expression
        what, places = node.along
        own, *other = (label_names[label] for label in places)
        if isinstance(what, str):
            return ScanExpression(MatrixMap(what, own, *other), expression, span)
        return ScanExpression(Running(what, own), expression, span)

    def _operand(
        self, operand: NodeOperand, names: Mapping[int, str], labels: _Labels, span: Span
    ) -> Expression:
        source, own = operand.source, tuple(names[x] for x in operand.labels)
        texts = {str(number): name for number, name in names.items()}
        match source:
            case Compare() | All() | Some():
                return condition_expression(rename_condition_labels(source, texts), span)
            case Affine():
                return affine_expression(source.rename_labels(texts), span)
            case Leaf() | Apply() | Gradient() if operand.indices is not None:
                indices = (
                    Index(x.affine.rename_labels(texts), x.permissive) for x in operand.indices
                )
                return Access(self.names[source], own, span, tuple(indices))
            case Leaf() | Apply() | Gradient():
                return self._expression(source, own, labels, span)
        return Number(source, span)


class _Labels:
    """Labels for the axes of one statement: the axes' names, or letters."""

    def __init__(self, output: Iterable[Axis]) -> None:
        self._taken: set[str] = set()
        self.renamed: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        """Sizes of labels that the output does not have."""
        self.output = tuple(self.fresh(axis) for axis in output)

    def fresh(self, axis: Axis) -> str:
        """A label that is not yet used in the statement."""
        if axis.name is None:
            numbered = (f"{x}{n or ''}" for n in count() for x in LETTERS)
            label = next(x for x in numbered if x not in self._taken)
        else:
            numbered = (f"{axis.name}_{n}" if n else axis.name for n in count())
            label = next(x for x in numbered if x not in self._taken)
            self.renamed |= {label: axis.name} if label != axis.name else {}
        self._taken.add(label)
        return label
