"""Contractions of contractions, as one call of the kernel ``ein_path``.

Its argument is a program for a stack (``udf_kernels/csrc/path.c``): to bind and to plan it takes as
long as a single call, however many contractions it holds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from ucle.foundation.stackless import fold
from ucle.plan import kernel_choice
from ucle.plan.circumstances import Circumstances
from ucle.plan.nest_keyless import is_contraction
from ucle.plan.steps import (
    Constant,
    Contractions,
    Nested,
    Plan,
    Reduce,
    Relation,
    Step,
    inputs,
    with_inputs,
)
from ucle.udf_kernels import kernel_limits

_Numbers = dict[Hashable, int]
"""Numbers of operands by their keys."""


def fuse_contractions(plan: Plan, circumstances: Circumstances) -> Plan:
    """Make one call of contractions whose operands are contractions."""

    def fused(step: Step) -> Step:
        numbers: _Numbers = {}

        def part(relation: Relation, children: list[_Part]) -> _Part:
            return _part(relation, children, numbers)

        whole = fold(step.relation, inputs, part)
        views = tuple(map(fused, step.views))
        return replace(step, relation=_finished(whole, numbers), views=views)

    return replace(plan, steps=tuple(map(fused, plan.steps)))


@dataclass(frozen=True, eq=False)
class _Tree:
    """Contractions that one call does, of which `root` is the last.

    `parts` are the trees of its operands, None where an operand is no contraction of this call.
    """

    root: Reduce
    parts: tuple[_Tree | None, ...]
    size: _Size


@dataclass(frozen=True)
class _Size:
    """How many contractions there are, how deep their stack is, and the numbers of what is read."""

    steps: int
    depth: int
    leaves: frozenset[int]


@dataclass(frozen=True, eq=False)
class _Part:
    """A relation in which everything is fused but what `tree` says, whose root it is."""

    relation: Relation
    tree: _Tree | None = None

    def size(self, numbers: _Numbers) -> _Size:
        """Of its tree, or of one operand."""
        if self.tree is not None:
            return self.tree.size
        return _Size(0, 1, frozenset({numbers.setdefault(_key(self.relation), len(numbers))}))


def _part(relation: Relation, children: list[_Part], numbers: _Numbers) -> _Part:
    if isinstance(relation, Nested):
        (inner,) = children
        return _Part(with_inputs(relation, [inner.relation]), inner.tree)
    if not isinstance(relation, Reduce) or not is_contraction(relation):
        return _Part(with_inputs(relation, [_finished(x, numbers) for x in children]))
    tree = _tree(relation, children, numbers)
    return _Part(tree.root, tree)


def _finished(part: _Part, numbers: _Numbers) -> Relation:
    """The relation with its tree as one call; a single contraction stays as it is."""
    if part.tree is None or part.tree.size.steps == 1:
        return part.relation
    call = _as_call(part.tree, numbers)
    nested = isinstance(part.relation, Nested)
    return with_inputs(part.relation, [call]) if nested else call


def _tree(root: Reduce, children: list[_Part], numbers: _Numbers) -> _Tree:
    """The tree of a contraction with those of its operands, as far as one call takes them.

    An operand that is too much for it becomes a call of its own.
    """
    contraction = _contraction(root)
    parts = list(children)
    while True:
        sizes = [part.size(numbers) for part in parts]
        depths = [size.depth for size in sizes]
        if contraction.swapped is not None:
            depths.sort(reverse=True)
        depth, leaves = max(depths[0], depths[1] + 1), sizes[0].leaves | sizes[1].leaves
        limits = kernel_limits()
        large = depth > limits.stack or len(leaves) > limits.operands
        trees = [n for n, part in enumerate(parts) if part.tree is not None]
        if not large or not trees:
            rebuilt = with_inputs(root, [part.relation for part in parts])
            assert isinstance(rebuilt, Reduce)
            size = _Size(1 + sizes[0].steps + sizes[1].steps, depth, leaves)
            return _Tree(rebuilt, tuple(part.tree for part in parts), size)
        at = max(trees, key=lambda n: (len(sizes[n].leaves), sizes[n].depth))
        parts[at] = _Part(_finished(parts[at], numbers))


def _key(operand: Relation) -> Hashable:
    """The same for the same operand: of constants, what is in them."""
    match operand:
        case Nested(Constant(data, type_)):
            return data, type_.dtype
    return operand


def _contraction(relation: Reduce) -> kernel_choice.Contraction:
    assert relation.input.contraction is not None
    return relation.input.contraction


def _as_call(tree: _Tree, numbers: _Numbers) -> Contractions:
    """All contractions of a tree as one call."""
    steps = list(_postfix(tree))
    lengths = {numbers[_key(x)]: length for x, length in steps if not isinstance(x, str)}
    operands = {numbers[_key(x)]: x for x, _ in steps if not isinstance(x, str)}
    # Each is copied once more for every one behind it.
    order = sorted(operands, key=lengths.__getitem__)
    place = {number: str(n) for n, number in enumerate(order)}
    program = [x if isinstance(x, str) else place[numbers[_key(x)]] for x, _ in steps]
    header = " ".join(str(lengths[number]) for number in order)
    return Contractions(
        tuple(operands[number] for number in order),
        ";".join([header, *program]),
        tree.root.type,
        tree.root.layout,
    )


def _postfix(tree: _Tree) -> Iterator[tuple[Relation | str, int]]:
    """Operands with their lengths, and contractions behind theirs."""
    waiting: list[tuple[_Tree | Relation | str, int]] = [(tree, 0)]
    while waiting:
        item, length = waiting.pop()
        if not isinstance(item, _Tree):
            yield item, length
            continue
        contraction = _contraction(item.root)
        operands = zip(item.parts, inputs(item.root), contraction.lengths, strict=True)
        pairs = [(part or operand, length) for part, operand, length in operands]
        depths = [x.size.depth if isinstance(x, _Tree) else 1 for x, _ in pairs]
        step = contraction.step
        if contraction.swapped is not None and depths[1] > depths[0]:
            step = contraction.swapped
            pairs.reverse()
        waiting.extend([(step, 0), *reversed(pairs)])
