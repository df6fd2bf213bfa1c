"""The order in which several factors are joined, two at a time.

Of few factors every path is a candidate. Of more, opt_einsum proposes paths for the sizes of
labels, and for how many different coordinates of each are in use: it knows nothing of sparsity, by
which a product that keeps all labels may be the smallest. Statistics decide which candidate sends
the fewest tuples through joins. A path may also be given, as opt_einsum and NumPy write it:
positions of operands, whose result goes to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import opt_einsum

from ucle.errors import PathError
from ucle.ir import Operand, Program, Tensor, TensorType, Vertex
from ucle.stats.estimate import Occupancy
from ucle.stats.model import TensorStatistics

Path = tuple[tuple[int, ...], ...]

EVERY_PATH = 4
"""Of up to so many factors every path is a candidate: 18 of four, 180 of five."""

EXHAUSTIVE_FACTORS = 6
"""Up to so many factors opt_einsum looks at every path."""


def propose_paths(
    factors: Sequence[Operand],
    kept: frozenset[str],
    statistics: Mapping[str, TensorStatistics],
) -> list[Path]:
    """Different paths worth a closer look, at least one.

    Args:
        factors: what is joined.
        kept: names of the labels that stay; the others are aggregated.
        statistics: T and V by tensor.
    """
    if len(factors) <= EVERY_PATH:
        return list(_every_path(len(factors)))
    symbols: dict[str, str] = {}
    sizes: dict[str, int] = {}
    used: dict[str, int] = {}
    for factor in factors:
        for axis, label in enumerate(factor.labels):
            symbols.setdefault(label.name, opt_einsum.get_symbol(len(symbols)))
            sizes[label.name] = max(label.bound, 1)
            distinct = max(round(statistics[factor.tensor].distinct[axis]), 1)
            used[label.name] = max(used.get(label.name, 1), distinct)
    terms = ["".join(symbols[name] for name in factor.names) for factor in factors]
    output = "".join(symbol for name, symbol in symbols.items() if name in kept)
    methods = ["optimal" if len(factors) <= EXHAUSTIVE_FACTORS else "auto", "greedy"]
    found: dict[Path, None] = {}
    for bounds in (sizes, used):
        shapes = [tuple(bounds[name] for name in factor.names) for factor in factors]
        for method in methods:
            path, _ = opt_einsum.contract_path(
                ",".join(terms) + "->" + output, *shapes, shapes=True, optimize=method
            )
            found.setdefault(tuple(tuple(step) for step in path))
    return list(found)


def _every_path(count: int) -> Iterator[Path]:
    if count == 1:
        yield ()
    for pair in combinations(range(count), 2):
        for rest in _every_path(count - 1):
            yield (pair, *rest)


def cheapest_path(
    paths: Sequence[Path],
    contract: Callable[[Path], Sequence[Vertex]],
    types: Mapping[str, TensorType],
    statistics: Mapping[str, TensorStatistics],
) -> Path:
    """The path whose joins emit the fewest tuples, by estimate.

    Args:
        paths: the candidates.
        contract: the vertices that a path makes; their inputs are tensors that exist, and each
            other.
        types: types of the tensors that exist.
        statistics: T and V of the tensors that exist.
    """
    if len(paths) == 1:
        return paths[0]

    def tuples(path: Path) -> float:
        vertices = tuple(contract(path))
        made = {vertex.name for vertex in vertices}
        read = {x.tensor for vertex in vertices for x in vertex.inputs} - made
        program = Program(tuple(Tensor(name, types[name]) for name in sorted(read)), vertices, ())
        estimate = Occupancy(program, statistics)
        return sum(
            estimate.join_rows(vertex, {label.name for label in vertex.all_labels})
            for vertex in vertices
        )

    return min(paths, key=tuples)


def pairs(path: Path, count: int, where: str | None = None) -> list[tuple[int, int]]:
    """A path as steps of two operands: longer steps are taken from the left, single ones move.

    Raises:
        PathError: the path does not fit the number of operands.

    >>> pairs(((0, 1, 2),), 3)
    [(0, 1), (0, 1)]
    """
    steps: list[tuple[int, int]] = []
    # What stands where, in the path that is given and in that of pairs.
    written = held = list(range(count))
    made = count
    for step in path:
        if not step or len(set(step)) < len(step) or not set(step) <= set(range(len(written))):
            raise _bad_path(path, count, where)
        first, *others = (written[position] for position in step)
        for other in others:
            one, two = sorted((held.index(first), held.index(other)))
            steps.append((one, two))
            held = [term for term in held if term not in (first, other)] + [made]
            first, made = made, made + 1
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
