"""Contractions of contractions, as one call of the kernel ``ein_path``.

Its argument is a program for a stack (``udf_kernels/csrc/path.c``): to bind and to plan it takes as
long as a single call, however many contractions it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from ucle.plan.kernel_choice import Contraction
from ucle.sqlgen.sql_trees import function, text
from ucle.udf_kernels import kernel_limits

_MARK = "contraction"


@dataclass(frozen=True)
class _Call:
    """What a marked call contracts: its function in a path, and where its operands stand."""

    path: str
    contraction: Contraction
    places: tuple[int, int]


def mark(call: exp.Expr, path: str, contraction: Contraction, places: tuple[int, int]) -> exp.Expr:
    """The call of a kernel, marked as one that may be a step of a path.

    Args:
        call: of any kernel that contracts two tensors.
        path: name of ``ein_path`` for its element type.
        contraction: what it does.
        places: of the first and the second operand among its arguments.
    """
    call.meta[_MARK] = _Call(path, contraction, places)
    return call


def is_contraction(node: exp.Expr | None) -> bool:
    """Whether a node is a call that was marked."""
    return _marked(node) is not None


def with_paths(value: exp.Expr) -> exp.Expr:
    """An expression whose contractions of contractions are single calls. It is changed."""
    trees: dict[int, _Tree] = {}
    calls = [node for node in value.find_all(exp.Anonymous) if is_contraction(node)]
    for node in reversed(calls):  # those inside come first
        trees[id(node)] = _tree(node, trees)
        if not is_contraction(node.parent):
            call = _as_call(node, trees)
            value = call if node is value else value
    return value


@dataclass(frozen=True)
class _Tree:
    """Contractions that one call does: how many, how deep its stack is, and what it reads."""

    steps: int
    depth: int
    leaves: frozenset[str]


def _tree(node: exp.Expr, trees: dict[int, _Tree]) -> _Tree:
    """The tree of a contraction with those of its operands, as far as one call takes them.

    An operand that is too much for it becomes a call of its own.
    """
    marked = _marked(node)
    assert marked is not None
    while True:
        operands = _operands(node, marked)
        parts = [trees.get(id(x)) or _Tree(0, 1, frozenset({_key(x)})) for x in operands]
        depths = [part.depth for part in parts]
        if marked.contraction.swapped is not None:
            depths.sort(reverse=True)
        depth, leaves = max(depths[0], depths[1] + 1), parts[0].leaves | parts[1].leaves
        limits = kernel_limits()
        large = depth > limits.stack or len(leaves) > limits.operands
        if not large or not any(part.steps for part in parts):
            return _Tree(1 + parts[0].steps + parts[1].steps, depth, leaves)
        at = max((0, 1), key=lambda n: (len(parts[n].leaves), parts[n].depth))
        _as_call(operands[at], trees)


def _as_call(root: exp.Expr, trees: dict[int, _Tree]) -> exp.Expr:
    """Put the call of ``ein_path`` in the place of a tree; a single contraction stays as it is."""
    marked = _marked(root)
    assert marked is not None
    if trees.pop(id(root)).steps == 1:
        return root
    steps = list(_postfix(root, trees))
    operands = {_key(x): (x, length) for x, length in steps if not isinstance(x, str)}
    # Each is copied once more for every one behind it.
    texts = sorted(operands, key=lambda name: operands[name][1])
    lengths = " ".join(str(operands[name][1]) for name in texts)
    numbers = {name: str(number) for number, name in enumerate(texts)}
    program = [x if isinstance(x, str) else numbers[_key(x)] for x, _ in steps]
    first, *others = (operands[name][0].copy() for name in texts)
    for other in others:
        first = exp.DPipe(this=first, expression=other)
    call = function(marked.path, text(";".join([lengths, *program])), first)
    root.replace(call)
    return call


def _postfix(root: exp.Expr, trees: dict[int, _Tree]) -> Iterator[tuple[exp.Expr | str, int]]:
    """Operands with their lengths, and contractions behind theirs."""
    waiting: list[tuple[exp.Expr | str, int]] = [(root, 0)]
    while waiting:
        item, length = waiting.pop()
        marked = None if isinstance(item, str) else _marked(item)
        if isinstance(item, str) or marked is None or (item is not root and id(item) not in trees):
            yield item, length
            continue
        pairs = list(zip(_operands(item, marked), marked.contraction.lengths, strict=True))
        depths = [trees[id(x)].depth if id(x) in trees else 1 for x, _ in pairs]
        step, swapped = marked.contraction.step, marked.contraction.swapped
        if swapped is not None and depths[1] > depths[0]:
            step = swapped
            pairs.reverse()
        waiting.extend([(step, 0), *reversed(pairs)])


def _key(operand: exp.Expr) -> str:
    """The same text for the same operand, most of which are columns or stand in a list."""
    if isinstance(operand, exp.Column):
        return f"{operand.table}.{operand.name}"
    if isinstance(operand, exp.Bracket) and isinstance(operand.this, exp.Column):
        return f"{_key(operand.this)}[]"
    return operand.sql()


def _marked(node: exp.Expr | None) -> _Call | None:
    return None if node is None else node.meta.get(_MARK)


def _operands(node: exp.Expr, marked: _Call) -> list[exp.Expr]:
    return [node.expressions[place] for place in marked.places]
