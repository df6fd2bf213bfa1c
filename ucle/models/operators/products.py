"""Products of matrices: `MatMul`, `Gemm`, `Einsum`, and dense layers on top of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ucle.errors import UnsupportedError
from ucle.models.calls import Call, Operator
from ucle.models.operators.elementwise import dtype_of
from ucle.models.values import Outputs
from ucle.models.views import (
    Atom,
    Axis,
    Position,
    View,
    at,
    common_refinement,
    fresh_atoms,
    rewrite_atoms,
)
from ucle.models.writer import Writer, number


def contract(writer: Writer, wish: str, one: View, other: View, dtype: np.dtype) -> View:
    """The product of matrices, or of stacks of them: the last axis of one by the second to last.

    Vectors are rows on the left and columns on the right, as in NumPy.
    """
    left, right = fresh_atoms(one), fresh_atoms(other)
    columns = left.axes[-1]
    rows = right.axes[-2 if right.rank > 1 else -1]
    refined = common_refinement(columns, rows)
    if refined is None:
        left, right = (
            writer.flatten(left, [left.rank - 1]),
            writer.flatten(right, [max(right.rank - 2, 0)]),
        )
        left, right = fresh_atoms(left), fresh_atoms(right)
        refined = common_refinement(left.axes[-1], right.axes[-2 if right.rank > 1 else -1])
        assert refined is not None
    summed, positions = refined
    left, right = rewrite_atoms(left, positions), rewrite_atoms(right, positions)
    tail = () if right.rank == 1 else (right.axes[-1],)
    head = () if left.rank == 1 else (left.axes[-2],)
    stacks, left, right = broadcast_stacks(left, right)
    axes = (*stacks, *head, *tail)

    def expression(reading: Callable[[View], str]) -> str:
        return f"{reading(left)} * {reading(right)}"

    return writer.emit(wish, axes, expression, dtype, accumulate="+=", summed=summed)


def broadcast_stacks(left: View, right: View) -> tuple[tuple[Axis, ...], View, View]:
    """Align the axes before the last two of both operands."""
    one = left.axes[: max(left.rank - 2, 0)]
    two = right.axes[: max(right.rank - 2, 0)]
    depth = max(len(one), len(two))
    one = ((),) * (depth - len(one)) + one
    two = ((),) * (depth - len(two)) + two
    axes: list[Axis] = []
    for place in range(depth):
        a, b = one[place], two[place]
        if not a or not b or a == b:
            axes.append(a or b)
            continue
        refined = common_refinement(a, b)
        if refined is None:
            raise _misfit(left, right)
        atoms, positions = refined
        left, right = rewrite_atoms(left, positions), rewrite_atoms(right, positions)
        axes.append(atoms)
    return tuple(axes), left, right


def _misfit(left: View, right: View) -> UnsupportedError:
    shapes = " and ".join(str([str(size) for size in x.shape]) for x in (left, right))
    return UnsupportedError("stacks of matrices do not fit each other", found=shapes)


def matmul(call: Call) -> Outputs:
    """NumPy's ``matmul``."""
    one, other = call.view(0), call.view(1)
    return contract(call.writer, call.name, one, other, dtype_of(call.operand(0)))


def transposed(view: View) -> View:
    """A matrix with its axes exchanged."""
    return view.with_axes((*view.axes[:-2], view.axes[-1], view.axes[-2]))


def gemm(call: Call) -> Outputs:
    """``alpha A B + beta C``, each of A and B transposed or not."""
    a, b = call.view(0), call.view(1)
    a = transposed(a) if call.get("transA", 0) else a
    b = transposed(b) if call.get("transB", 0) else b
    alpha, beta = float(call.get("alpha", 1.0)), float(call.get("beta", 1.0))
    bias = call.given(2)
    dtype = dtype_of(call.operand(0))
    wish = call.name if bias is None and alpha == 1 else f"{call.name}_product"
    product = contract(call.writer, wish, a, b, dtype)
    if bias is None:
        if alpha == 1:
            return product
        return call.writer.pointwise(
            call.name, [product], lambda x: f"{number(alpha)} * {x}", dtype
        )
    scaled = "" if alpha == 1 else f"{number(alpha)} * "
    weight = "" if beta == 1 else f"{number(beta)} * "
    return call.writer.pointwise(
        call.name, [product, bias], lambda x, y: f"{scaled}{x} + {weight}{y}", dtype
    )


def einsum(call: Call) -> Outputs:
    """A sum of products by NumPy's subscripts, with `...` and repeated labels.

    Raises:
        UnsupportedError: sizes of one label differ.
    """
    subscripts = call.get("equation", "").replace(" ", "")
    terms, arrow, result = subscripts.partition("->")
    views = [fresh_atoms(call.writer.flatten(call.view(n))) for n in range(len(call.inputs))]
    spelt: list[list[str]] = []
    for term, view in zip(terms.split(","), views, strict=True):
        spelt.append(_spell(term, view.rank))
    if not arrow:
        counts = [label for labels in spelt for label in labels]
        dots = sorted({x for x in counts if x.startswith(".")}, key=lambda x: -int(x[1:]))
        output = dots + sorted({x for x in counts if counts.count(x) == 1 and x[0] != "."})
    else:
        deepest = max((int(x[1:]) for labels in spelt for x in labels if x[0] == "."), default=0)
        output = _spell(
            result, len(result.replace("...", "")) + (deepest if "..." in result else 0)
        )
    atoms: dict[str, Atom] = {}
    for n, labels in enumerate(spelt):
        renamed: dict[Atom, Position] = {}
        for label, axis in zip(labels, views[n].axes, strict=True):
            for atom in axis:
                known = atoms.setdefault(label, atom)
                if known.size != atom.size:
                    raise call.refuse(f"the label {label!r} has two sizes", "one size")
                renamed[atom] = at(known)
        views[n] = replace(views[n], positions=views[n].substitute(renamed))
    axes = tuple((atoms[label],) if label in atoms else () for label in output)
    kept = {atom for axis in axes for atom in axis}
    summed = [atom for atom in atoms.values() if atom not in kept]
    return call.writer.emit(
        call.name,
        axes,
        lambda reading: " * ".join(map(reading, views)),
        dtype_of(call.operand(0)),
        accumulate="+=",
        summed=summed,
    )


def _spell(term: str, rank: int) -> list[str]:
    """The labels of a term; those of `...` are ``.2``, ``.1`` and so on, counted from the last."""
    before, dots, after = term.partition("...")
    if not dots:
        return list(term)
    hidden = rank - len(before) - len(after)
    return [*before, *(f".{n}" for n in range(hidden, 0, -1)), *after]


OPERATORS: dict[str, Operator] = {"MatMul": matmul, "Gemm": gemm, "Einsum": einsum}
