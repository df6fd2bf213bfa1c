"""Propose orders in which the factors of a product are joined, two at a time.

For few factors every tree is proposed. For more, opt_einsum proposes paths for the sizes of labels,
and for the number of distinct coordinates of each label in use: it knows nothing of sparsity, which
may make a product that keeps all labels the smallest. Statistics rank the trees by the tuples that
they send through joins; `ucle.optimiser.join_order` finds their cost with decompositions. A path
may also be given, as opt_einsum and NumPy write it: positions of operands, whose result goes to the
end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ucle.errors import PathError
from ucle.foundation.libraries import LateModule
from ucle.ir.contraction_trees import Path, Tree, every_tree, in_order, tree_of
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.lowering.share_subexpressions import SharedVertices
from ucle.stats.estimate import Estimator, ProgramStatistics, Statistics

if TYPE_CHECKING:
    import opt_einsum
else:
    opt_einsum = LateModule("opt_einsum")

EVERY_TREE = 4
"""The most factors for which every tree is proposed: 15 trees of four, 105 of five."""

EXHAUSTIVE_FACTORS = 6
"""The most factors for which opt_einsum tries every path."""


def propose_trees(
    factors: Sequence[Operand],
    kept: frozenset[str],
    statistics: Mapping[str, Statistics],
    written: Tree,
) -> list[Tree]:
    """Return distinct orders worth a closer look, that of the text first.

    Args:
        factors: the factors to join.
        kept: names of the labels that stay; the others are aggregated.
        statistics: statistics of the factors, by tensor.
        written: the order of the text.
    """
    if len(factors) <= EVERY_TREE:
        trees = list(every_tree(len(factors)))
    else:
        paths = _opt_einsum_paths(factors, kept, statistics)
        trees = [in_order(tree_of(pairs(path, len(factors)), len(factors))) for path in paths]
    return list(dict.fromkeys([written, *trees]))


def _opt_einsum_paths(
    factors: Sequence[Operand],
    kept: frozenset[str],
    statistics: Mapping[str, Statistics],
) -> list[Path]:
    symbols: dict[str, str] = {}
    sizes: dict[str, int] = {}
    used: dict[str, int] = {}
    for factor in factors:
        for axis, label in enumerate(factor.labels):
            symbols.setdefault(label.name, opt_einsum.get_symbol(len(symbols)))
            sizes[label.name] = max(label.bound, 1)
            distinct = max(round(statistics[factor.tensor].counts.distinct[axis]), 1)
            used[label.name] = max(used.get(label.name, 1), distinct)
    terms = ["".join(symbols[name] for name in factor.names) for factor in factors]
    output = "".join(symbol for name, symbol in symbols.items() if name in kept)
    methods = ["optimal" if len(factors) <= EXHAUSTIVE_FACTORS else "auto", "greedy"]
    paths: dict[Path, None] = {}
    for bounds in (sizes, used):
        shapes = [tuple(bounds[name] for name in factor.names) for factor in factors]
        for method in methods:
            path, _ = opt_einsum.contract_path(
                ",".join(terms) + "->" + output, *shapes, shapes=True, optimize=method
            )
            paths.setdefault(tuple(tuple(step) for step in path))
    return list(paths)


def ranked_trees(
    trees: Sequence[Tree],
    contract: Callable[[Tree], Sequence[Vertex]],
    types: Mapping[str, TensorType],
    statistics: Mapping[str, Statistics],
    estimator: Estimator,
    read: Mapping[str, str],
) -> tuple[Tree, ...]:
    """Return trees sorted by the estimated tuples that their joins emit, the fewest first.

    What a tree computes twice counts once: `(A B) (A B)` of the same two tensors joins them once.

    Args:
        trees: the candidates.
        contract: gives the vertices of a tree; they read tensors that exist, and each other.
        types: types of the tensors that exist.
        statistics: statistics of the tensors that exist.
        estimator: estimates the others.
        read: what these tensors are; two of them may be the same.
    """
    if len(trees) == 1:
        return tuple(trees)
    repeats = len(set(read.values())) < len(read)

    def tuples(tree: Tree) -> float:
        vertices = tuple(contract(tree))
        own = {vertex.name for vertex in vertices}
        inputs = sorted({x.tensor for vertex in vertices for x in vertex.inputs} - own)
        program = Program(tuple(NamedTensor(name, types[name]) for name in inputs), vertices, ())
        known = ProgramStatistics(program, statistics, estimator)
        return _tuples_of(_each_once(vertices, read) if repeats else vertices, known)

    return tuple(sorted(trees, key=tuples))


def _each_once(vertices: Sequence[Vertex], read: Mapping[str, str]) -> Iterator[Vertex]:
    """Yield the vertices that do not compute what one before them does."""
    shared, made = SharedVertices(), dict[str, Operand]()
    for vertex in vertices:
        inputs = [
            made.get(x.tensor) or Operand(read.get(x.tensor, x.tensor), x.labels)
            for x in vertex.inputs
        ]
        same = replace(vertex, inputs=tuple(inputs))
        existing = shared.find(same)
        if existing is None:
            shared.add(same)
            yield vertex
        else:
            made[vertex.name] = existing


def joined_tuples(program: Program, statistics: ProgramStatistics) -> float:
    """Return the estimated tuples that a program's joins emit with every label promoted."""
    return _tuples_of(program.vertices, statistics)


def _tuples_of(vertices: Iterable[Vertex], statistics: ProgramStatistics) -> float:
    return sum(statistics.join_rows(vertex, vertex.all_promoted) for vertex in vertices)


def pairs(path: Path, count: int, where: str | None = None) -> list[tuple[int, int]]:
    """Return a path as pairs of operands: longer steps are split from the left, single ones move.

    Raises:
        PathError: the path does not fit the number of operands.

    >>> pairs(((0, 1, 2),), 3)
    [(0, 1), (0, 1)]
    """
    steps: list[tuple[int, int]] = []
    # The operands by position, in the given path and in that of pairs.
    written = held = list(range(count))
    result = count
    for step in path:
        if not step or len(set(step)) < len(step) or not set(step) <= set(range(len(written))):
            raise _bad_path(path, count, where)
        first, *others = (written[position] for position in step)
        for other in others:
            one, two = sorted((held.index(first), held.index(other)))
            steps.append((one, two))
            held = [term for term in held if term not in (first, other)] + [result]
            first, result = result, result + 1
        written = [x for position, x in enumerate(written) if position not in step] + [first]
    if len(written) > 1:
        raise _bad_path(path, count, where)
    return steps


def _bad_path(path: Path, count: int, where: str | None) -> PathError:
    return PathError(
        "the contraction path does not fit the factors",
        where=where,
        expected=f"positions of {count} operands, down to one result",
        found=str(list(path)),
    )
