"""Products in which 0 annihilates what is not finite, and where a program needs them.

``0 * inf`` is NaN, and 0 where the 0 is not stored and the pair is never made. Where infinities are
made of finite numbers by an operation (log 0, 1 / 0), a fill of 0 is not taken to absorb them, and
NumPy's answer comes out. Where numbers outgrow their type on the way, 0 annihilates them, on every
plan: nothing is made dense for numbers that hardly ever come up. Such a product, of finite numbers,
never gives NaN by itself, so a NaN in the result says that this rule was needed somewhere, and the
program runs once more with products that annihilate. `checked_tensors` are those to look at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ucle.foundation.dtypes import is_finite
from ucle.ir.maps import Cast, Map, Partial, Pointwise
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Program, Vertex
from ucle.operators import Combine
from ucle.operators.values import with_fill


def annihilating(operator: Combine, left: TensorType, right: TensorType) -> Combine:
    """⊗ of two tensors where entries that are not stored annihilate what is not finite.

    That is ⊗ itself unless it meets NaN or infinities, or divides by 0.
    """
    if operator.sparse is None:
        return operator
    if operator.division is not None:
        return operator if left.fill != 0 or right.every.excludes_zero else operator.sparse
    sides = (left, right), (right, left)
    if any(one.fill == 0 and not _is_finite(other) for one, other in sides):
        return operator.sparse
    return operator


def _is_finite(type_: TensorType) -> bool:
    return type_.entries.finite and is_finite(type_.fill)


def uncertain_vertices(program: Program) -> frozenset[str]:
    """The vertices whose ⊗ may meet a 0 and a number that has outgrown its type."""
    types = program.types
    return frozenset(v.name for v in program.vertices if _is_uncertain(v, types))


def _is_uncertain(vertex: Vertex, types: Mapping[str, TensorType]) -> bool:
    if vertex.combine is None or vertex.combine.sparse is None:
        return False
    operands = [types[operand.tensor] for operand in vertex.inputs]
    if vertex.tensor.type.dtype.kind not in "fc" or not all(x.every.finite for x in operands):
        return False  # NaN is NumPy's answer there, and says nothing
    left, right = (type_.entries for type_ in operands)
    if vertex.combine.division is None:
        return left.overflows or right.overflows
    divisor = with_fill(right, operands[1].fill, operands[1].dtype)
    return divisor.excludes_zero and (divisor.overflows or divisor.touches_zero)


def checked_tensors(program: Program) -> frozenset[str]:
    """The tensors in which a NaN says that an uncertain vertex needs the other rule.

    A NaN goes on from vertex to vertex. It is looked for where it would be lost, and in outputs.
    """
    uncertain = uncertain_vertices(program)
    suspect, checked = set(uncertain), set[str]()
    for vertex in program.vertices:
        read = {operand.tensor for operand in vertex.inputs} & suspect
        if read and _keeps_nan(vertex):
            suspect.add(vertex.name)
        else:
            checked |= read
    return frozenset(checked | suspect.intersection(program.outputs))


def _keeps_nan(vertex: Vertex) -> bool:
    if vertex.reduce is not None and not vertex.reduce.keeps_nan:
        return False
    if vertex.combine is not None:
        return vertex.combine.keeps_nan
    return all(_map_keeps_nan(step) for step in vertex.maps)


def _map_keeps_nan(step: Pointwise) -> bool:
    match step:
        case Cast(source, result):
            return result.kind == "c" or (result.kind == "f" and source.kind == "f")
        case Map(function):
            return function.keeps_nan
        case Partial(combine):
            return combine.keeps_nan


def annihilate_products(program: Program, names: Collection[str]) -> Program:
    """The program with products in which 0 annihilates all, in the place of some of its own."""

    def sparse(vertex: Vertex) -> Vertex:
        if vertex.combine is None or vertex.name not in names:
            return vertex
        return replace(vertex, combine=vertex.combine.sparse or vertex.combine)

    return replace(program, vertices=tuple(map(sparse, program.vertices)))
