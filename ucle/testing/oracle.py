"""The meaning of a program, in NumPy on dense arrays: the oracle of all other tests.

It shares nothing with the compiler except the syntax tree, so that the two cannot make the same
mistake. The rules:

- `=`: a label that is missing on the left is summed over the smallest subexpression that contains
  all of its occurrences.
- `+=`, `*=`, `max=` and the like: the whole right side is evaluated, and then aggregated over the
  labels that are missing on the left.
- ``sum[j](...)``: the labels in brackets belong to the aggregation alone.
- A label has the size of the axes at which it stands alone. If a tensor is read at an index such as
  ``A[i+1]``, the label stops before the first read that would be outside the tensor; after ``~``,
  such a read returns 0, or the given fill. A label outside brackets stands for its coordinate.
- In ``W[idx[i]]``, a tensor is read at the entries of another one. These are integers from 0 on; an
  entry outside the tensor is an error, or reads the fill after ``~``. A tensor that is written at
  entries is just large enough for the largest entry, unless its size is stated. At positions that
  no entry names, it has the aggregate of no values.
- ``cumsum[j](...)`` and the other scans are NumPy's, along the axis of that label; the axis stays.
- ``top_k[j,r](...)`` and similar functions have the r-th entry along j at position r, in the order
  of NumPy's stable sort: NaN is the greatest number, and of equal entries, the one at the smaller
  position comes first.
- ``solve[i,j](A[i,j], b[i,k])`` returns NumPy's solutions of the equations i for the unknowns j.
  Any other labels of A number the systems; the remaining labels of b number right-hand sides.
- ``forest[f,p](X[r,f], F[p,k])`` follows the trees that are packed in F for each row of X, and adds
  up the leaves in order (`ucle.testing.oracle_forests`).
- If a label stands on the left twice, the result has the identity of the aggregation where the two
  coordinates differ, or 0 if there is no identity. A label that stands only on the left repeats the
  whole right side.
- A zero has no sign: 1 / -0.0 is inf.
- With `annihilate`, 0 times a number that has exceeded the range of its type is 0, because entries
  that are not stored give 0 in whatever way the program runs.
- Element types are NumPy's, except that small integers become int64, half floats become float64,
  and functions treat booleans as 1 and 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from math import prod
from typing import Any

import numpy as np

from ucle.ir.affine import Affine
from ucle.ir.axis_functions import MatrixMap, Running
from ucle.language.forest_calls import output_label
from ucle.language.functions import DerivedAlong
from ucle.language.parse import parse_program
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Comparisons,
    Coordinate,
    Expression,
    First,
    Flat,
    ForestCall,
    Hit,
    Index,
    LabelDivision,
    Number,
    Reduction,
    ScanExpression,
    Statement,
    SystemCall,
    accesses,
    children,
    walk,
)
from ucle.testing.oracle_forests import sum_forest
from ucle.testing.oracle_labels import occurrences, with_own_labels
from ucle.testing.oracle_operators import (
    ALONG,
    FOLDS,
    FUNCTIONS,
    MATRICES,
    OPERATORS,
    SIGNS,
    STEPS,
    YES_OR_NO,
    Array,
    Meaning,
    UndefinedError,
    first_positions,
    solve_systems,
)

Named = tuple[tuple[str, ...], Array]
"""An array with a label for each of its axes."""


class Evaluation:
    """The value of one statement.

    `operand` maps every operand of a function or an operator. The generator of programs uses it to
    see whether numbers stay finite.
    """

    def __init__(
        self,
        statement: Statement,
        tensors: Mapping[str, Array],
        operand: Callable[[Array], Array] = lambda array: array,
        annihilate: bool = False,
        bounds: Mapping[str, int] | None = None,
        fills: Mapping[str, Any] | None = None,
    ) -> None:
        expression = with_own_labels(statement.expression, {}, count(1))
        self._statement = statement = replace(statement, expression=expression)
        self._tensors = tensors
        self._operand = operand
        self._annihilate = annihilate
        self._fills = fills or {}
        shapes = {name: array.shape for name, array in tensors.items()}
        self._sizes = label_sizes(statement, shapes, bounds or {})
        for part in walk(expression):
            if isinstance(part, Hit) and part.label not in self._sizes:
                _, entries = self._evaluate(part.entries, None)
                self._sizes[part.label] = int(np.max(entries, initial=-1)) + 1

    def value(self) -> Array:
        """The tensor on the left, its axes in the order of its labels."""
        target = self._statement.target.labels
        accumulate = self._statement.accumulate
        if accumulate is None:
            labels, array = self._sum_implied(self._statement.expression, frozenset(target))
        else:
            labels, array = self._evaluate(self._statement.expression, None)
            gone = tuple(x for x in labels if x not in target)
            labels, array = self._fold(accumulate.name, (labels, array), gone)
        assert set(labels) <= set(target)
        return self._spread(tuple(dict.fromkeys(target)), (labels, np.asarray(array)))

    def _spread(self, distinct: tuple[str, ...], named: Named) -> Array:
        """Broadcast a value to all labels on the left; a label that stands twice is a diagonal."""
        target, sizes = self._statement.target.labels, self._sizes
        shape = tuple(sizes[x] for x in distinct)
        array = np.broadcast_to(_align(named, distinct), shape)
        if len(distinct) == len(target):
            return np.array(array)
        every = np.full([sizes[x] for x in target], self._elsewhere(array.dtype), array.dtype)
        places = np.indices(shape)
        every[tuple(places[distinct.index(x)] for x in target)] = array
        return every

    def _elsewhere(self, dtype: Any) -> Any:
        """Return the entries outside a diagonal: the aggregate of no values."""
        reduce = self._statement.accumulate
        ends = (-np.inf, np.inf)
        if dtype.kind == "i":
            ends = np.iinfo(dtype).min, np.iinfo(dtype).max
        match reduce.name if reduce is not None else "":
            case "prod" | "all":
                return 1
            case "max" | "logsumexp" if dtype.kind in "if":
                return ends[0]
            case "min" if dtype.kind in "if":
                return ends[1]
        return 0

    def _sum_implied(self, expression: Expression, kept: frozenset[str]) -> Named:
        """Sum labels that are not kept, each over the smallest subexpression that contains it."""
        whole = isinstance(expression, Access | Hit | LabelDivision | ForestCall)
        inside = [] if whole else [occurrences(part) for part in children(expression)]
        along: tuple[str, ...] = ()
        if isinstance(expression, SystemCall):
            along = (expression.column,)
        if isinstance(expression, ScanExpression):
            along = expression.along.labels
        elif isinstance(expression, First) and expression.stays:
            along = (expression.label,)
        here = [
            x
            for x in occurrences(expression)
            if x not in kept
            and (not inside or x in along or sum(x in part for part in inside) != 1)
        ]
        below = kept.union(here)
        named = self._evaluate(expression, below)
        return self._fold("sum", named, tuple(here)) if here else named

    def _evaluate(self, expression: Expression, kept: frozenset[str] | None) -> Named:
        """The value of an expression; `kept` is None where nothing is summed by implication."""
        match expression:
            case Number(value):
                return (), value  # type: ignore[return-value]  # a weak Python number
            case Coordinate(label):
                return (label,), np.arange(self._sizes[label], dtype=np.int64)
            case Hit(entries, label, read):
                named = self._evaluate(entries, None)
                at = np.arange(self._sizes[label])
                outside = (named[1] < 0) | (named[1] >= len(at))
                if outside.any() and not expression.permissive:
                    raise IndexError(f"{read} is written outside")
                return (*named[0], label), np.asarray(named[1])[..., None] == at
            case LabelDivision(argument, by, remainder):
                labels, array = self._evaluate(argument, None)
                return labels, array % by if remainder else array // by
            case Access(tensor, labels, indices=None):
                if all(
                    self._sizes[x] == n
                    for x, n in zip(labels, self._tensors[tensor].shape, strict=True)
                ):
                    return _diagonal(self._tensors[tensor], labels)
                return self._read(expression)
            case Access():
                return self._read(expression)
            case ScanExpression(MatrixMap() as matrix, argument):
                return self._matrix_map(matrix, self._child(argument, kept))
            case ScanExpression(Running() as running, argument):
                labels, array = self._child(argument, kept)
                if array.dtype.kind not in _find_meaning(FOLDS, running.reduce.name).kinds:
                    raise UndefinedError(f"{running.name} of kind {array.dtype.kind}")
                step, axis = STEPS[running.name], labels.index(running.label)
                return labels, _widen(step(self._operand(array), axis=axis), [array])
            case ScanExpression(DerivedAlong(name, over), argument):
                labels, array = self._child(argument, kept)
                places = tuple(labels.index(label) for label in over)
                return labels, ALONG[name](self._operand(array), places)
            case First():
                return self._first(expression, kept)
            case Flat(over, label, argument):
                inner = None if kept is None else kept | {*over}
                labels, array = self._child(argument, inner)
                others = tuple(x for x in labels if x not in over)
                ordered = _align((labels, self._operand(array)), (*others, *over))
                count = prod(ordered.shape[len(others) :])
                return (*others, label), ordered.reshape(*ordered.shape[: len(others)], count)
            case ForestCall():
                return self._forest(expression)
            case SystemCall(row):
                inner = None if kept is None else kept | {row}
                square, right = (self._child(x, inner) for x in children(expression))
                return self._system(expression, square, right)
            case Reduction(operator, over, argument):
                inner = None if kept is None else kept | frozenset(over)
                return self._fold(operator.name, self._child(argument, inner), over)
            case Call(_, arguments):
                sides = [self._child(argument, kept) for argument in arguments]
                meaning = _find_meaning(FUNCTIONS, expression.name)
                return self._apply(meaning, sides, expression.name in YES_OR_NO)
            case Comparisons(operands, signs):
                return self._all_compared([self._child(x, kept) for x in operands], signs)
            case Binary(operator, left, right):
                sides = [self._child(side, kept) for side in (left, right)]
                name = operator.name
                if self._annihilate and all(isinstance(side, np.ndarray) for _, side in sides):
                    name = {"mult": "sparse_mult", "div": "sparse_div"}.get(name, name)
                return self._apply(_find_meaning(OPERATORS, name), sides, True)
        raise AssertionError(expression)

    def _all_compared(self, operands: list[Named], signs: tuple[str, ...]) -> Named:
        """Return where all comparisons of an operand with the next one are true."""
        result: Named = (), True  # type: ignore[assignment]  # as a number
        for one, other, sign in zip(operands, operands[1:], signs, strict=False):
            compared = self._apply(SIGNS[sign], [one, other], True)
            result = self._apply(_find_meaning(OPERATORS, "and"), [result, compared], True)
        return result

    def _matrix_map(self, matrix: MatrixMap, operand: Named) -> Named:
        """Apply a function of matrices along two axes."""
        labels, array = operand
        if array.dtype.kind == "c":
            raise UndefinedError(f"{matrix.name} of complex numbers")
        places = [labels.index(label) for label in matrix.labels]
        moved = np.moveaxis(self._operand(array), places, [-2, -1])
        made = MATRICES[matrix.name](moved if moved.dtype.kind == "f" else moved.astype(float))
        return labels, np.moveaxis(made, [-2, -1], places)

    def _first(self, first: First, kept: frozenset[str] | None) -> Named:
        """Evaluate the first entries along a label, or their positions."""
        inner = None if kept is None else kept | {first.label}
        labels, array = self._child(first.argument, inner)
        array = self._operand(np.moveaxis(array, labels.index(first.label), -1))
        others = tuple(x for x in labels if x != first.label)
        count = 1 if first.rank is None else self._sizes[first.rank]
        if array.dtype.kind == "c":
            raise UndefinedError("an order of complex numbers")
        if not 1 <= count <= array.shape[-1]:
            raise UndefinedError(f"the first {count} of {array.shape[-1]}")
        places = first_positions(first, array, count)
        if first.stays:
            members = np.zeros(array.shape, bool)
            np.put_along_axis(members, places, True, axis=-1)
            return (*others, first.label), members
        if first.function.name in ("top_k", "bottom_k"):
            places = np.take_along_axis(array, places, axis=-1)
        return (others, places[..., 0]) if first.rank is None else ((*others, first.rank), places)

    def _forest(self, call: ForestCall) -> Named:
        """Evaluate a forest, whose operands have all their labels."""
        labels, features = self._evaluate(call.features, None)
        own, packed = self._evaluate(call.packed, None)
        if "c" in (features.dtype.kind, packed.dtype.kind):
            raise UndefinedError("a forest of complex numbers")
        others = tuple(x for x in labels if x != call.feature)
        features = _align((labels, self._operand(features)), (*others, call.feature))
        packed = _align((own, self._operand(packed)), (call.node, output_label(call)))
        return (*others, output_label(call)), sum_forest(features, packed.astype(np.float64))

    def _system(self, call: SystemCall, matrix: Named, sides: Named) -> Named:
        """Solve systems of equations, each with all of its right-hand sides in one matrix."""
        if "c" in (matrix[1].dtype.kind, sides[1].dtype.kind):
            raise UndefinedError("systems of complex equations")
        others = tuple(x for x in matrix[0] if x not in (call.row, call.column))
        own = tuple(x for x in sides[0] if x not in (*others, call.row))
        square = _align((matrix[0], self._operand(matrix[1])), (*others, call.row, call.column))
        right = _align((sides[0], self._operand(sides[1])), (*others, call.row, *own))
        return (*others, call.column, *own), solve_systems(square, right)

    def _read(self, access: Access) -> Named:
        """Read a tensor at indices that are not its labels."""
        array, labels = self._tensors[access.tensor], tuple(dict.fromkeys(access.labels))
        shape = tuple(self._sizes[x] for x in labels)
        at = dict(zip(labels, np.indices(shape), strict=True))
        inside, read = np.ones(shape, bool), []
        indices = access.indices or tuple(Index(Affine(((x, 1),))) for x in access.labels)
        for index, size in zip(indices, array.shape, strict=True):
            if index.entries is not None:
                entries = _align(self._evaluate(index.entries, None), labels)
                if np.asarray(entries).dtype.kind != "i":
                    raise UndefinedError("an index that is no integer")
                own = np.broadcast_to(entries, shape)
            else:
                own = _at(index.affine, at) + np.zeros(shape, np.int64)
            within = (own >= 0) & (own < size)
            if not index.permissive and not within.all():
                raise IndexError(f"{access} is read outside")
            inside &= within
            read.append(own)
        value = np.full(shape, self._fills.get(access.tensor, 0), array.dtype)
        value[inside] = array[tuple(own[inside] for own in read)]
        return labels, value

    def _child(self, expression: Expression, kept: frozenset[str] | None) -> Named:
        if kept is None:
            return self._evaluate(expression, None)
        return self._sum_implied(expression, kept)

    def _apply(self, meaning: Meaning, sides: list[Named], yes_or_no: bool) -> Named:
        every = tuple(dict.fromkeys(x for labels, _ in sides for x in labels))
        arrays = [
            self._operand(_align(side, every)) if isinstance(side[1], np.ndarray) else side[1]
            for side in sides
        ]
        for array in arrays:
            kind = np.asarray(array).dtype.kind
            if kind not in meaning.kinds:
                raise UndefinedError(f"numbers of kind {kind}")
        if not yes_or_no:
            arrays = [_number(array) for array in arrays]
        result = np.asarray(meaning.function(*arrays))
        return every, _widen(result, arrays)

    def _fold(self, operator: str, named: Named, gone: tuple[str, ...]) -> Named:
        labels, array = named
        meaning = _find_meaning(FOLDS, operator)
        if array.dtype.kind not in meaning.kinds:
            raise UndefinedError(f"{operator} of kind {array.dtype.kind}")
        axes = tuple(labels.index(x) for x in gone)
        result = np.asarray(_fold_axes(operator, meaning.function, self._operand(array), axes))
        return tuple(x for x in labels if x not in gone), _widen(result, [array])


def _fold_axes(
    operator: str, function: Callable[..., Any], array: Array, axes: tuple[int, ...]
) -> Any:
    if operator == "count":
        return np.sum(array != 0, axis=axes)
    shape = tuple(size for axis, size in enumerate(array.shape) if axis not in axes)
    if 0 in shape:  # NumPy refuses the maximum of nothing even if the result has no entry
        return np.zeros(shape, function(np.ones(1, array.dtype)).dtype)
    if operator == "logsumexp":
        last = np.moveaxis(array, axes, range(len(axes)))
        flat = last.reshape(-1, *last.shape[len(axes) :])
        return function(flat.astype(np.float64) if array.dtype.kind in "bi" else flat, axis=0)
    return function(array, axis=axes)


def label_sizes(
    statement: Statement, shapes: Mapping[str, tuple[int, ...]], bounds: Mapping[str, int]
) -> dict[str, int]:
    """Return the size of each label of a statement."""
    plain: dict[str, set[int]] = {}
    reads: list[tuple[Affine, int]] = []
    for access in accesses(statement.expression):
        axes = access.indices or tuple(Index(Affine(((x, 1),))) for x in access.labels)
        for index, size in zip(axes, shapes[access.tensor], strict=True):
            if index.permissive or index.entries is not None:
                continue
            if index.affine.label is not None:
                plain.setdefault(index.affine.label, set()).add(size)
            else:
                reads.append((index.affine, size))
    alone = {x.labels[0] for x, _ in reads if len(x.growing) == len(x.labels) == 1}
    every = {*plain, *_all_labels(statement)}
    stated = {x: bounds[x.split()[0]] for x in every if x.split()[0] in bounds}
    sizes = {x: min(ends) for x, ends in plain.items()} | stated
    for label in alone.difference(stated):
        own = [(x, size) for x, size in reads if x.labels == (label,) == x.growing]
        n = min(sizes.get(label, 10**9), *(_furthest(x, size) for x, size in own))
        while n and not all(_is_inside(x, size, {label: n}) for x, size in own):
            n -= 1
        sizes[label] = n
    waiting = [x for affine, _ in reads for x in affine.growing if x not in sizes]
    for label in dict.fromkeys(waiting):
        own = [(x, size) for x, size in reads if label in x.growing]
        own = [(x, size) for x, size in own if set(x.labels) <= {*sizes, label}]
        n = max(_furthest(x, size) for x, size in own)
        while n and not all(_is_inside(x, size, {**sizes, label: n}) for x, size in own):
            n -= 1
        sizes[label] = n
    return sizes


def _all_labels(statement: Statement) -> set[str]:
    parts = tuple(walk(statement.expression))
    ranks = {part.rank for part in parts if isinstance(part, First) and part.rank is not None}
    return {*statement.target.labels, *(x for part in parts for x in part.labels), *ranks}


def _at(affine: Affine, at: Mapping[str, Any]) -> Any:
    """Return the value of an index at some coordinates of its labels."""
    value: Any = affine.constant
    for term, factor in affine.terms:
        if isinstance(term, str):
            own = at[term]
        else:
            inner = _at(term.of, at)
            own = inner % term.by if term.remainder else inner // term.by
        value = value + factor * own
    return value


def _is_inside(affine: Affine, size: int, sizes: Mapping[str, int]) -> bool:
    every = np.indices([max(sizes[x], 1) for x in affine.labels], sparse=True)
    at = np.asarray(_at(affine, dict(zip(affine.labels, every, strict=True))))
    return bool(at.min() >= 0 and at.max() < size)


def _furthest(affine: Affine, size: int) -> int:
    """Return more than the greatest size of a label in an index of an axis of this size."""
    by = prod(x.by for x, _ in affine.terms if not isinstance(x, str))
    return (size + abs(affine.constant) + 1) * by + by


def _find_meaning(table: Mapping[str, Meaning], name: str) -> Meaning:
    if name not in table:
        raise UndefinedError(name)
    return table[name]


def _number(array: Any) -> Any:
    """Return booleans as 1 and 0, and other arrays as they are."""
    is_bool = isinstance(array, np.ndarray) and array.dtype.kind == "b"
    return array.astype(np.int64) if is_bool else array


def _widen(result: Array, operands: list[Any]) -> Array:
    """Convert NumPy's small integers and half floats of booleans to types of the language."""
    if result.dtype.kind in "iu":
        return result.astype(np.int64)
    if result.dtype.itemsize < 4 and result.dtype.kind == "f":
        return result.astype(np.float64)
    return result


def evaluate(
    text: str,
    inputs: Mapping[str, Array],
    operand: Callable[[Array], Array] = lambda array: array,
    *,
    annihilate: bool = False,
    bounds: Mapping[str, int] | None = None,
    fills: Mapping[str, Any] | None = None,
) -> dict[str, Array]:
    """Return the values of all tensors that a program defines; statements may be in any order.

    Args:
        text: the text of the program.
        inputs: a dense array for each input.
        operand: a function that maps every operand of a function or an operator.
        bounds: sizes of labels that are stated.
        fills: by input, what ``~`` reads outside the tensor, if that is not 0.
        annihilate: whether 0 times an infinity or NaN is 0. Set it for programs on finite numbers,
            in which infinities arise only because numbers exceed the range of their type.

    Raises:
        UndefinedError: an operation is not defined for operands of this kind.

    >>> evaluate("y[i] += A[i,j] * x[j]", {"A": np.eye(2), "x": np.ones(2)})["y"]
    array([1., 1.])
    """
    tensors = {name: np.asarray(array) for name, array in inputs.items()}
    waiting = list(parse_program(text))
    defined: dict[str, Array] = {}
    with np.errstate(all="ignore"):
        while waiting:
            ready = next(s for s in waiting if _names(s.expression) <= tensors.keys())
            waiting.remove(ready)
            name = ready.target.tensor
            evaluation = Evaluation(ready, tensors, operand, annihilate, bounds, fills)
            tensors[name] = defined[name] = evaluation.value()
    return defined


TOLERANCE = {4: 1e-4, 8: 1e-9}
"""Relative to the largest number involved, by the bytes of a real number."""


def assert_equal(found: Array, expected: Array, context: str = "") -> None:
    """Check that types are equal, and values, too, up to rounding; NaN equals NaN."""
    assert found.dtype == expected.dtype, f"{found.dtype} is not {expected.dtype}\n{context}"
    if expected.dtype.kind in "bi":
        np.testing.assert_array_equal(found, expected, err_msg=context)
        return
    finite = expected[np.isfinite(expected)]
    scale = float(np.abs(finite).max()) if finite.size else 1.0
    tolerance = TOLERANCE[expected.real.dtype.itemsize]
    np.testing.assert_allclose(
        found, expected, rtol=tolerance, atol=tolerance / 10 * max(scale, 1e-3), err_msg=context
    )


def _names(expression: Expression) -> set[str]:
    return {access.tensor for access in accesses(expression)}


def _diagonal(array: Array, labels: tuple[str, ...]) -> Named:
    """The array with one axis for each distinct label, taken along the diagonal."""
    distinct = tuple(dict.fromkeys(labels))
    numbers: list[Any] = [distinct.index(x) for x in labels]
    # Of a scalar NumPy makes a number, which is no array.
    return distinct, np.asarray(np.einsum(array, numbers, list(range(len(distinct)))))


def _align(named: Named, every: tuple[str, ...]) -> Array:
    """The array with its axes in the order of `every`; absent ones are broadcast."""
    labels, array = named
    ordered = array.transpose([labels.index(x) for x in every if x in labels])
    return ordered.reshape([
        ordered.shape[[y for y in every if y in labels].index(x)] if x in labels else 1
        for x in every
    ])  # fmt: skip
