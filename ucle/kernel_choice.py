"""Which kernel does the demoted part of a vertex.

One place maps (⊗, ⊕, pattern of demoted labels) to a kernel: a kernel of the field with a name of
its own where the pattern has one, the general contraction ``ein`` for every other. The answer says
what to call; how the call is spelled in SQL is `ucle.sqlgen`'s business.
"""

from __future__ import annotations

import string
from collections.abc import Set
from dataclasses import dataclass

from ucle.dtypes import DType
from ucle.ir import Label, Vertex
from ucle.operators import COMBINES, REDUCES

Labels = tuple[Label, ...]

MAX_RANK = 16
"""Axes of a tensor that the general kernels take."""


@dataclass(frozen=True)
class Kernel:
    """A call of one kernel on the values of a pair of tuples, or of one tuple.

    `name` is None where plain SQL does it: both sides are scalars, or the value passes as it is.
    `swap` says that the right value comes first. `specification` and `sizes` are the leading
    arguments of the general kernels, `inner` the trailing one of `mat_mat_mult`. `scalar` tells
    whether the result is a number. `fusible` says that an aggregate exists that multiplies and adds
    in one pass. `batched` says that it can become a matrix product.
    """

    name: str | None
    scalar: bool
    swap: bool = False
    specification: str | None = None
    sizes: tuple[int, ...] = ()
    inner: int | None = None
    fusible: bool = False
    batched: bool = False


def choose_kernel(vertex: Vertex, promoted: Set[str]) -> Kernel:
    """The kernel of a vertex under a decomposition.

    Args:
        vertex: unary or binary.
        promoted: names of the promoted labels.

    >>> from ucle.ir import Operand, Tensor, TensorType
    >>> i, j = Label("i", 3), Label("j", 4)
    >>> y = Tensor("y", TensorType((i,)))
    >>> v = Vertex(y, (Operand("A", (i, j)), Operand("x", (j,))), (i,), "mult", reduce="sum")
    >>> choose_kernel(v, {"i"}).name, choose_kernel(v, {"j"}).name
    ('inner_prod', 'vec_sca_mult')
    """
    output = _demoted(vertex.labels, promoted)
    inputs = [_demoted(operand.labels, promoted) for operand in vertex.inputs]
    if len(inputs) == 1:
        if inputs[0] == output:
            return Kernel(None, scalar=not output)
        return _general(vertex, "ein1", inputs, output)
    left, right = inputs
    if not left and not right:
        return Kernel(None, scalar=True)
    empty = any(label.bound == 0 for label in (*left, *right))
    named = None if empty else _named(vertex, left, right, output)
    aggregated = bool(output) and vertex.aggregates(promoted)
    if named is None or (aggregated and not named.fusible):
        return _general(vertex, "ein", inputs, output)  # its aggregates make no tensor for each row
    return named


def needs_scalars(vertex: Vertex) -> bool:
    """Whether a vertex works on numbers only: its ⊗ or ⊕ has SQL and no kernels."""
    combined = vertex.combine is not None and not COMBINES[vertex.combine].compiled
    return combined or (vertex.reduce is not None and not REDUCES[vertex.reduce].compiled)


def has_kernel(vertex: Vertex, promoted: Set[str]) -> bool:
    """Whether there is a kernel: the general ones do not take tensors of any number of axes."""
    ranks = (
        sum(label.name not in promoted for label in labels)
        for labels in (vertex.labels, *(operand.labels for operand in vertex.inputs))
    )
    return max(ranks) <= MAX_RANK or choose_kernel(vertex, promoted).specification is None


def _named(vertex: Vertex, left: Labels, right: Labels, output: Labels) -> Kernel | None:
    assert vertex.combine is not None
    operator = COMBINES[vertex.combine]
    fusible = (
        operator.stem == "mult"
        and vertex.reduce in (None, "sum")
        and vertex.tensor.type.dtype is not DType.BOOL
    )
    if (left == output and not right) or (right == output and not left):
        if not right or operator.commutative:
            return Kernel(f"vec_sca_{operator.stem}", False, swap=not left, fusible=fusible)
        return Kernel(f"sca_vec_{operator.stem}", False)
    if left == right == output:
        return Kernel(f"vec_{operator.stem}", False, fusible=fusible)
    if fusible:
        return _product(left, right, output, False) or _product(right, left, output, True)
    return None


def _product(left: Labels, right: Labels, output: Labels, swap: bool) -> Kernel | None:
    """Dot, outer and matrix products, where each group of labels lies together and in order."""
    if len(set(left)) < len(left) or len(set(right)) < len(right):
        return None
    if left == right and not output:
        return Kernel("inner_prod", True, swap=swap)
    shared = tuple(label for label in left if label in right)
    if not shared and output == left + right:
        return Kernel("outer_prod", False, swap=swap, fusible=True)
    rows, columns = left[: len(left) - len(shared)], right[len(shared) :]
    fits = left == rows + shared and right == shared + columns and output == rows + columns
    if not fits or not shared or set(shared) & set(output):
        return None
    if rows and columns:
        size = 1
        for label in shared:
            size *= label.bound
        return Kernel("mat_mat_mult", False, swap, inner=size, fusible=True, batched=True)
    name = "mat_vec_mult" if rows else "vec_mat_mult"
    return Kernel(name, False, swap=swap, fusible=True, batched=True)


def _general(vertex: Vertex, stem: str, inputs: list[Labels], output: Labels) -> Kernel:
    symbols: dict[Label, str] = {}
    for label in (x for labels in inputs for x in labels):
        symbols.setdefault(label, string.ascii_letters[len(symbols)])
    terms = ",".join("".join(symbols[label] for label in labels) for labels in inputs)
    specification = f"{terms}->{''.join(symbols[label] for label in output)}"
    # Of yes and no there is no sum; where nothing is reduced, any reduction will do.
    default = "max" if vertex.tensor.type.dtype is DType.BOOL else "sum"
    reduce = REDUCES[vertex.reduce].stem if vertex.reduce else default
    words = [reduce, *([COMBINES[vertex.combine].stem] if vertex.combine else [])]
    plain = words in (["sum"], ["sum", "mult"])
    prefix = "" if plain else ".".join(words) + " "
    return Kernel(
        stem if output else f"{stem}_sca",
        not output,
        specification=prefix + specification,
        sizes=tuple(label.bound for label in symbols),
        fusible=bool(output),
        batched=words == ["sum", "mult"],
    )


def _demoted(labels: Labels, promoted: Set[str]) -> Labels:
    return tuple(label for label in labels if label.name not in promoted)
