"""`ucle.einsum`, which takes the place of `numpy.einsum`.

This module handles NumPy's conventions, around a program of one statement that is compiled like any
other: subscripts in both forms (`ucle.language.subscripts`), broadcasting, types and casts
(`ucle.lazy.einsum_casting`), the order of contraction (`ucle.lazy.einsum_path`), `out` and the
memory layout of the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ucle.database.macro_check import open_passing
from ucle.errors import (
    ArgumentError,
    ArgumentTypeError,
    BoundError,
    InputError,
    ValueTypeError,
)
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.libraries import LateModule
from ucle.inputs.labelled_arrays import check_same_coordinates, coordinates_of, is_labelled
from ucle.inputs.objects import dense_array, in_memory, is_instance, read_stream
from ucle.inputs.operands import assignment, is_relation, known_rank
from ucle.inputs.sparse_arrays import is_sparse, to_coordinates, without_axes
from ucle.language.subscripts import Notation, Subscripts, parse_lists, parse_string, resolve
from ucle.lazy.einsum_casting import NumpyType, check_cast, computation_type, element_type
from ucle.lazy.einsum_path import contraction_path
from ucle.lazy.kept_programs import kept_program
from ucle.options import check_decomposition
from ucle.program import einsum_program

if TYPE_CHECKING:
    from ucle.lazy import creation
else:
    creation = LateModule("ucle.lazy.creation")

OPTIONS = ("database", "bounds", "decomposition", "memory_limit", "profile", "nonfinite")
ORDERS = ("C", "F", "A", "K")
CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
MAX_ITERATED = 64
"""The most arrays, and axes, that NumPy's iterator supports."""
MAX_VOLUME = 2**62
"""The most positions that it supports: those of all labels together, of which a chain has many."""

Shape = tuple[int, ...]


@validated(database=args.database)
def einsum(
    *operands: Any,
    out: Any = None,
    optimize: Any = "auto",
    dtype: Any = None,
    order: str | None = "K",
    casting: str = "safe",
    **options: Any,
) -> Any:
    """Evaluate an Einstein summation: `numpy.einsum`, computed in DuckDB.

    The result is always a new array, while NumPy returns a view of an operand if possible. As in
    NumPy, `dtype` and `casting` have no effect if there is a single operand and nothing is summed.
    Unlike in NumPy, 64-bit integers do not wrap around: an overflow is an error.

    Args:
        operands: subscripts such as ``"...ij,jk->...ik"``, then the operands; or each operand
            followed by the list of its labels (integers and Ellipsis), and a last list for the
            result. An operand is an array or a scipy.sparse matrix, which broadcast as in NumPy, or
            anything else that `einsum_program` accepts: the name of a table, a data frame,
            ``ucle.table(...)``.
        out: an array for the result.
        optimize: the contraction order of more than two operands: the name of an algorithm of
            opt_einsum, or a path as `numpy.einsum_path` or opt_einsum returns it. The compiler
            decides if it is True or False, or if the algorithm cannot know the sizes of tables.
        dtype: type to compute in; by default the type to which the operands and `out` promote.
        order: memory layout of the result, ``"C"``, ``"F"``, ``"A"`` or ``"K"``.
        casting: which casts of operands and result are allowed.
        options: `database`, `bounds`, `decomposition`, `memory_limit`, `profile` and `nonfinite`,
            as in `einsum_program`; the tensors are called ``X0``, ``X1`` and ``out``.

    Returns:
        An array of the type that NumPy would give, a NumPy number if it has no axes, or `out`; a
        lazy tensor if the subscripts are a string and an operand is a lazy tensor.

    Raises:
        UcleError: if NumPy raises a ValueError or TypeError, it is also one of these.

    >>> einsum("ij,jk->ik", [[1, 2], [3, 4]], [[1, 0], [0, 1]])
    array([[1, 2],
           [3, 4]])
    >>> einsum(np.ones((3, 2)), [..., 0], [...])
    array([2., 2., 2.])
    """
    if isinstance(operands[0] if operands else None, str) and any(
        is_instance(operand, "ucle.lazy.tensor", "Tensor") for operand in operands
    ):
        return creation.einsum(*operands)
    _check_arguments(out, order, casting, options)
    notation, values = _arguments(operands)
    tensors = [_tensor(operand, number) for number, operand in enumerate(values)]
    ranks = [known_rank(tensor) for tensor in tensors]
    subscripts = resolve(notation, ranks, summed=optimize is not False and optimize != "auto")
    _check_coordinates(subscripts, values)
    shapes = [None if is_relation(tensor) else tensor.shape for tensor in tensors]
    sizes = _broadcast_sizes(subscripts, shapes)
    squeezed = _squeeze_subscripts(subscripts, shapes)

    types = [None if is_relation(tensor) else tensor.dtype for tensor in tensors]
    target = None if out is None else out.dtype
    compute = computation_type(types, target, dtype, casting, _is_viewed(subscripts, out))
    options["path"] = contraction_path(optimize, squeezed, None if None in shapes else sizes)
    if isinstance(decomposition := options.get("decomposition"), Mapping):
        options["decomposition"] = _drop_labels(decomposition, set(sizes) - set(squeezed.labels))
    result = _evaluate(squeezed, [_prepare_operand(x, compute) for x in tensors], compute, options)

    result_sizes = dict(zip(squeezed.output, result.shape, strict=True))
    result = result.reshape([result_sizes.get(label, 1) for label in subscripts.output])
    if out is not None:
        return _write_to_out(result, out, casting)
    if not result.ndim:
        return result[()]
    return _in_order(result, tensors, subscripts, sizes, (order or "K").upper())


def _check_arguments(out: Any, order: Any, casting: Any, options: Mapping[str, Any]) -> None:
    order = "K" if order is None else order
    for name, value, choices in (("order", order, ORDERS), ("casting", casting, CASTINGS)):
        expected, shown = " or ".join(choices), repr(value)
        if not isinstance(value, str):
            raise ArgumentTypeError("not a string", where=name, expected=expected, found=shown)
        if (value.upper() if choices is ORDERS else value) not in choices:
            raise ArgumentError("unknown value", where=name, expected=expected, found=shown)
    if "decomposition" in options:
        check_decomposition(options["decomposition"])
    if not (out is None or isinstance(out, np.ndarray)):
        shown = type(out).__name__
        raise ArgumentTypeError("not an array", where="out", expected="a NumPy array", found=shown)
    if out is not None and not out.flags.writeable:
        raise ArgumentError("out is read-only", where="out", expected="an array to write to")
    if unknown := [name for name in options if name not in OPTIONS]:
        raise ArgumentTypeError(
            "einsum has no such option",
            where=unknown[0],
            expected="out, optimize, dtype, order, casting, " + ", ".join(OPTIONS),
            found=unknown[0],
        )


def _arguments(operands: Sequence[Any]) -> tuple[Notation, Sequence[Any]]:
    """Return subscripts and operands, from either form of arguments."""
    with_string = bool(operands) and isinstance(operands[0], str)
    values = operands[1:] if with_string else operands[: len(operands) // 2 * 2 : 2]
    if not values:
        raise ArgumentError(
            "einsum needs at least one operand",
            where=f"subscripts {operands[0]!r}" if with_string else "operands",
            expected="operands"
            if with_string
            else "subscripts first, or a list after each operand",
            found="none" if with_string or not operands else "no list",
        )
    if with_string:
        return parse_string(operands[0]), values
    output = operands[-1] if len(operands) % 2 else None
    return parse_lists(operands[1::2], output), values


def _tensor(operand: Any, number: int) -> Any:
    where = f"operand {number}"
    if is_relation(operand):
        return read_stream(where, operand)
    operand = in_memory(where, operand)
    if is_sparse(operand):
        return to_coordinates(operand, where)
    try:
        return dense_array(where, operand)
    except ValueTypeError:
        raise
    except InputError as error:  # as NumPy's, which are ValueError or TypeError
        kind = ArgumentTypeError if isinstance(error.__cause__, TypeError) else ArgumentError
        raise kind(
            error.message,
            where=where,
            expected="an array, a sparse matrix, a table or its name",
            found=error.found,
            hint=error.hint,
        ) from error.__cause__


def _check_coordinates(subscripts: Subscripts, operands: Sequence[Any]) -> None:
    """Check that labelled arrays agree at shared positions; they are read by position, as in NumPy.

    Raises:
        ValueTypeError: they are not.
    """
    if not any(map(is_labelled, operands)):
        return
    meeting = []
    for number, (labels, operand) in enumerate(zip(subscripts.operands, operands, strict=True)):
        where, table = f"operand {number}", is_relation(operand)
        coordinates = None if table else coordinates_of(where, operand)
        each = coordinates if coordinates is not None else [None] * len(labels)
        meeting += [(x, where, y, table) for x, y in zip(labels, each, strict=False)]
    check_same_coordinates(meeting)


def _broadcast_sizes(subscripts: Subscripts, shapes: Iterable[Shape | None]) -> dict[str, int]:
    """Return the sizes of the labels of arrays; a size of 1 gives way to another size."""
    sizes: dict[str, int] = {}
    for number, (labels, shape) in enumerate(zip(subscripts.operands, shapes, strict=True)):
        own: dict[str, int] = {}
        for label, size in zip(labels, shape or (), strict=shape is not None):
            expected = own.setdefault(label, size)
            if size == expected != 1 and sizes.get(label, 1) != 1:
                expected = sizes[label]
            if size != expected:
                raise BoundError(
                    f"the label {label!r} has two sizes",
                    where=f"operand {number}",
                    expected=f"size {expected}",
                    found=f"size {size}",
                )
        sizes |= {label: size for label, size in own.items() if sizes.get(label, 1) == 1}
    return sizes


def _squeeze_subscripts(subscripts: Subscripts, shapes: Iterable[Shape | None]) -> Subscripts:
    """Return subscripts without the axes of size 1 of arrays, which are broadcast.

    `_prepare_operand` drops the axes themselves, and the result gets back those that no operand
    keeps.
    """
    operands = tuple(
        labels if shape is None else tuple(x for x, n in zip(labels, shape, strict=True) if n != 1)
        for labels, shape in zip(subscripts.operands, shapes, strict=True)
    )
    remaining = {label for labels in operands for label in labels}
    return Subscripts(operands, tuple(x for x in subscripts.output if x in remaining))


def _drop_labels(
    decomposition: Mapping[str, Iterable[str]], dropped: Iterable[str]
) -> dict[str, list[str]]:
    """Return a given decomposition without the labels that squeezing has dropped."""
    return {
        name: [label for label in labels if label not in set(dropped)]
        for name, labels in decomposition.items()
    }


def _is_viewed(subscripts: Subscripts, out: Any) -> bool:
    """True if NumPy would compute nothing and return a view of the one operand."""
    first, *others = subscripts.operands
    return not others and out is None and set(first) == set(subscripts.output)


def _prepare_operand(tensor: Any, compute: NumpyType | None) -> Any:
    """Return an operand for the compiler: in a type that ucle has, without axes of size 1.

    Narrow integers are computed in 64 bits and truncated at the end, which gives NumPy's wrapped
    results. The same holds for unsigned ones, which are read as the signed integers of the same
    bits.
    """
    if is_relation(tensor):
        return tensor
    values = tensor if compute is None else tensor.astype(compute)
    if values.dtype.kind == "u":
        values = values.astype(f"i{values.dtype.itemsize}")
    values = values.astype(element_type(values.dtype).numpy, copy=False)
    return without_axes(values, [axis for axis, size in enumerate(values.shape) if size == 1])


def _evaluate(
    subscripts: Subscripts,
    inputs: Sequence[Any],
    compute: NumpyType | None,
    options: Mapping[str, Any],
) -> Any:
    """Run the program; return its result in the type that NumPy computes in."""
    chosen = dict(options)
    named = {f"X{number}": value for number, value in enumerate(inputs)}
    database = chosen.pop("database", None)
    kept = kept_program(subscripts, inputs, chosen) if database is None else None
    with open_passing(database) as session:
        program = kept or einsum_program(
            subscripts.statement(assignment(session, subscripts, named)),
            inputs=named,
            database=session.connection,
            **chosen,
        )
        with program.execute(session.connection, inputs=named if kept else {}) as executed:
            result = executed["out"].to_numpy()
    return result if compute is None else result.astype(compute, copy=False)


def _write_to_out(result: Any, out: Any, casting: Any) -> Any:
    """Write the result to `out`, to which it may be broadcast."""
    check_cast(result.dtype, out.dtype, casting, "out")
    fits = all(n in (1, size) for n, size in zip(result.shape, out.shape, strict=False))
    if result.ndim != out.ndim or not fits:
        raise BoundError(
            "out has another shape than the result",
            where="out",
            expected=f"shape {result.shape}",
            found=f"shape {out.shape}",
        )
    np.copyto(out, result, casting=casting)
    return out


def _in_order(
    result: Any,
    tensors: Sequence[Any],
    subscripts: Subscripts,
    sizes: Mapping[str, int],
    order: str,
) -> Any:
    """Return the result in the memory layout that NumPy's iterator chooses for the operands."""
    labels = subscripts.labels
    iterated = len(tensors) < MAX_ITERATED and len(labels) <= MAX_ITERATED
    iterated = iterated and math.prod(max(n, 1) for n in sizes.values()) <= MAX_VOLUME
    if not (iterated and all(isinstance(tensor, np.ndarray) for tensor in tensors)):
        return np.asfortranarray(result) if order == "F" else result
    axes = [[term.index(x) if x in term else -1 for x in labels] for term in subscripts.operands]
    axes.append([n if n < result.ndim else -1 for n in range(len(labels))])
    allot: Any = np.nditer
    iterator = allot(
        [*tensors, None],
        ["reduce_ok", "refs_ok", "zerosize_ok"],
        [["readonly"]] * len(tensors) + [["readwrite", "allocate"]],
        [None] * len(tensors) + [result.dtype],
        order=order,
        op_axes=axes,
    )
    allotted = iterator.operands[-1]
    allotted[...] = result
    return allotted
