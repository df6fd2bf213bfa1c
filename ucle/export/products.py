"""Sums of products: pairs of factors in the order of fewest multiplications."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from ucle.export.entries import Entries, every_label

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def sum_of_products(
    factors: Sequence[Entries], over: Collection[str], size: Callable[[str], int]
) -> Entries:
    """The sum over labels of a product of factors of one type.

    Args:
        factors: the factors.
        over: the labels to sum over.
        size: the size of a label, from which the order of products is chosen.
    """
    waiting = list(factors)
    kept = [label for label in every_label(*factors) if label not in over]
    for pair in _order(waiting, kept, size):
        taken = [waiting[n] for n in pair]
        waiting = [x for n, x in enumerate(waiting) if n not in pair]
        later = {*kept, *every_label(*waiting)}
        made = _sum_alone(taken[0], later.union(*(x.labels for x in taken[1:])))
        for other in taken[1:]:
            made = _contract(made, _sum_alone(other, later.union(made.labels)), later)
        waiting.append(made)
    (whole,) = waiting
    return _sum_alone(whole, kept)


def equation_of(operands: Sequence[Sequence[str]], result: Sequence[str]) -> str:
    """Labels as an equation of `Einsum`.

    >>> equation_of([("row", "by"), ("by", "column")], ("row", "column"))
    'ab,bc->ac'
    """
    labels = dict.fromkeys(label for operand in operands for label in operand)
    letters = dict(zip(labels, LETTERS, strict=False))
    terms = ["".join(letters[label] for label in operand) for operand in operands]
    return f"{','.join(terms)}->{''.join(letters[label] for label in result)}"


def _order(
    factors: Sequence[Entries], kept: Sequence[str], size: Callable[[str], int]
) -> list[tuple[int, ...]]:
    """The pairs of factors to be multiplied, by their places among those that are left."""
    if len(factors) < 3:
        return [(0, 1)] if len(factors) == 2 else []
    labels = every_label(*factors)
    if len(labels) > len(LETTERS):
        return [(0, 1)] * (len(factors) - 1)
    shapes = [np.broadcast_to(0.0, [max(size(x), 1) for x in factor.labels]) for factor in factors]
    equation = equation_of([factor.labels for factor in factors], kept)
    path, _ = np.einsum_path(equation, *shapes, optimize="greedy")
    return [tuple(sorted(pair)) for pair in path[1:]]


def _sum_alone(factor: Entries, kept: Collection[str]) -> Entries:
    """A factor summed over the labels that nothing else has."""
    gone = [n for n, label in enumerate(factor.labels) if label not in kept]
    labels = tuple(label for label in factor.labels if label in kept)
    return Entries(factor.value.axes("ReduceSum", gone, keepdims=0), labels)


def _contract(left: Entries, right: Entries, kept: Collection[str]) -> Entries:
    """The product of two factors, summed over the labels that both have and nothing else."""
    both = [label for label in left.labels if label in right.labels]
    batch = [label for label in both if label in kept]
    summed = [label for label in both if label not in kept]
    if not summed:
        every = every_label(left, right)
        return Entries(left.aligned(every) * right.aligned(every), every)
    if len(summed) == 1 and (found := _by_vector(left, right, summed[0])) is not None:
        return found
    own = [label for label in left.labels if label not in both]
    others = [label for label in right.labels if label not in both]
    if len(summed) == 1 and not batch and len(own) <= 1 < len(others):
        return _contract(right, left, kept)  # a product takes many rows on its left side
    fits = len(others) == 1 and (not batch or len(own) == 1)
    if len(summed) == 1 and own and fits:
        one = left.in_order([*batch, *own, *summed])
        other = right.in_order([*batch, *summed, *others])
        return Entries(one.value.apply("MatMul", other.value), (*batch, *own, *others))
    every = (*batch, *own, *others)
    equation = equation_of([left.labels, right.labels], every)
    return Entries(left.value.apply("Einsum", right.value, equation=equation), every)


def _by_vector(left: Entries, right: Entries, summed: str) -> Entries | None:
    """The product of a vector and a tensor as that lies; None if there is no vector.

    Where the tensor would be transposed first, some versions of onnxruntime compute another one.
    """
    if len(right.labels) == 1:
        vector, tensor = right, left
    elif len(left.labels) == 1:
        vector, tensor = left, right
    else:
        return None
    labels = tuple(label for label in tensor.labels if label != summed)
    if tensor.labels[-1] == summed:
        return Entries(tensor.value.apply("MatMul", vector.value), labels)
    if tensor.labels[-2] == summed:
        return Entries(vector.value.apply("MatMul", tensor.value), labels)
    return None
