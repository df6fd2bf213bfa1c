"""Reductions along axes, softmax, normalisations, running sums and the greatest entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ucle.models.calls import Call, Operator
from ucle.models.operators.shapes import regroup
from ucle.models.values import Outputs, Value
from ucle.models.views import Atom, Axis, Position, Size, View, new_axis, size_of
from ucle.models.writer import language_type, number


def chosen_axes(call: Call, view: View) -> tuple[int, ...]:
    """The axes of a reduction: all of them by default."""
    axes = call.integers(1, "axes")
    if not axes:
        return () if call.get("noop_with_empty_axes", 0) else tuple(range(view.rank))
    return tuple(sorted(view.axis(axis) for axis in axes))


def without(view: View, axes: Sequence[int], *, keep: bool) -> tuple[Axis, ...]:
    """The axes that are left; `keep` leaves size 1 in the place of each."""
    return tuple(
        () if n in axes else axis for n, axis in enumerate(view.axes) if keep or n not in axes
    )


def reduction(name: str, inner: str = "x", outer: str = "x") -> Operator:
    """An operator that reduces `inner`, and then takes `outer` of it."""

    def operator(call: Call) -> Outputs:
        view = call.view(0)
        axes = chosen_axes(call, view)
        return reduce_axes(call, view, axes, name, inner, outer, keep=bool(call.get("keepdims", 1)))

    return operator


_OF_COPIES = {"sum": "{n} * ({x})", "prod": "({x}) ^ {n}", "logsumexp": "{x} + log({n})"}
"""Reductions of n equal entries that are not the entry."""


def reduce_axes(
    call: Call,
    view: View,
    axes: Sequence[int],
    name: str,
    inner: str = "x",
    outer: str = "x",
    *,
    keep: bool = True,
    wish: str | None = None,
) -> View:
    """Reduce some axes of a tensor.

    Raises:
        UnsupportedError: the rows are reduced.
    """
    every = [atom for axis in axes for atom in view.axes[axis]]
    if any(atom.size is None for atom in every):
        raise call.refuse("the rows are reduced", "rows that are computed independently")
    read = view.read
    atoms = [atom for atom in every if atom in read]
    copies = math.prod(atom.size or 1 for atom in every if atom not in read)

    def expression(reading: Callable[[View], str]) -> str:
        text = inner.replace("x", reading(view)) if inner != "x" else reading(view)
        if copies > 1 and name in _OF_COPIES:
            text = _OF_COPIES[name].format(x=text, n=copies)
        if atoms:
            labels = ",".join(call.writer.labels([*kept, *atoms])[atom] for atom in atoms)
            text = f"{name}[{labels}]({text})"
        elif name == "mean":
            text = f"({text})"
        return text if outer == "x" else outer.replace("x", text)

    result = without(view, axes, keep=keep)
    kept = [atom for axis in result for atom in axis]
    return call.writer.emit(wish or call.name, result, expression, view.dtype, summed=atoms)


def softmax(function: str) -> Operator:
    """`Softmax` and its like; before version 13, over all axes from one on."""

    def operator(call: Call) -> Outputs:
        view = call.view(0)
        axis = view.axis(int(call.get("axis", -1 if call.version >= 13 else 1)))
        axes = [axis] if call.version >= 13 else list(range(axis, view.rank))
        if not view.read.issuperset(atom for place in axes for atom in view.axes[place]):
            view = call.writer.stored(view)
        atoms = [atom for place in axes for atom in view.axes[place]]
        return along(call, view, atoms, function)

    return operator


def along(call: Call, view: View, atoms: Sequence[Atom], function: str) -> View:
    """A function along some labels that the result keeps."""
    writer = call.writer
    if not atoms:
        one = "0" if function == "log_softmax" else "1"
        return writer.emit(
            call.name, view.axes, lambda reading: f"0 * {reading(view)} + {one}", view.dtype
        )
    labels = writer.labels(view.atoms)
    shown = ",".join(labels[atom] for atom in atoms)

    def expression(reading: Callable[[View], str]) -> str:
        # Less the maximum: in float32, the logarithm of a sum of large powers has few digits.
        x = f"{reading(view)} - max[{shown}]({reading(view)})"
        if len(atoms) == 1:
            return f"{function}[{shown}]({x})"
        log = f"{x} - logsumexp[{shown}]({x})"
        return log if function == "log_softmax" else f"exp({log})"

    return writer.emit(call.name, view.axes, expression, view.dtype)


def hardmax(call: Call) -> Outputs:
    """1 at the first of the greatest entries, and 0 elsewhere."""
    view = call.view(0)
    axis = view.axis(int(call.get("axis", -1 if call.version >= 13 else 1)))
    whole = view
    if call.version < 13:
        whole = regroup(call, view, flattened(view, axis))
        axis = 1
    plain = call.writer.flatten(whole, [axis])
    best = position_of(call, plain, axis, "argmax", keep=True, wish=f"{call.name}_at")
    axes = plain.axes
    label = call.writer.labels(plain.atoms)
    if not plain.axes[axis]:
        return call.writer.emit(
            call.name, axes, lambda reading: f"0 * {reading(plain)} + 1", view.dtype
        )
    own = label[plain.axes[axis][0]]
    made = call.writer.emit(
        call.name,
        axes,
        lambda reading: f"{language_type(view.dtype)}({reading(best)} == {own})",
        view.dtype,
    )
    return regroup(call, made, view.shape) if call.version < 13 else made


def flattened(view: View, axis: int) -> tuple[Size, ...]:
    """The sizes of a matrix: the axes before one, and the rest."""
    first, second = Size(1), Size(1)
    for place, size in enumerate(view.shape):
        old = first if place < axis else second
        new = Size(old.number * size.number, old.rows or size.rows)
        first, second = (new, second) if place < axis else (first, new)
    return first, second


def position_of(
    call: Call, view: View, axis: int, function: str, *, keep: bool, wish: str | None = None
) -> View:
    """Positions of the greatest or the least entries along an axis of one atom."""
    atoms = view.axes[axis]
    axes = without(view, [axis], keep=keep)
    if not atoms:
        return call.writer.emit(wish or call.name, axes, lambda reading: "0", "int64")
    kept = [atom for each in axes for atom in each]

    def expression(reading: Callable[[View], str]) -> str:
        label = call.writer.labels([*kept, *atoms])[atoms[0]]
        return f"{function}[{label}]({reading(view)})"

    return call.writer.emit(wish or call.name, axes, expression, "int64", summed=atoms)


def arg(function: str) -> Operator:
    """`ArgMax` and `ArgMin`: of equal entries the first, or the last."""

    def operator(call: Call) -> Outputs:
        view = call.view(0)
        axis = view.axis(int(call.get("axis", 0)))
        keep = bool(call.get("keepdims", 1))
        plain = call.writer.flatten(view, [axis])
        last = bool(call.get("select_last_index", 0)) and bool(plain.axes[axis])
        if not last:
            return position_of(call, plain, axis, function, keep=keep)
        atom = plain.axes[axis][0]
        assert atom.size is not None
        flip = {atom: Position(atom.size - 1, ((atom, -1),))}
        turned = replace(plain, positions=plain.substitute(flip))
        found = position_of(call, turned, axis, function, keep=keep, wish=f"{call.name}_back")
        end = atom.size - 1
        return call.writer.pointwise(call.name, [found], lambda x: f"{end} - {x}", "int64")

    return operator


def running(function: str) -> Operator:
    """`CumSum` and `CumProd`, without the entry itself and from the end if so wished."""

    def operator(call: Call) -> Outputs:
        view = call.view(0)
        axis = view.axis(int(np.asarray(call.constant(1)).reshape(-1)[0]))
        plain = call.writer.flatten(view, [axis])
        atoms = plain.axes[axis]
        if not atoms:
            return plain
        atom = atoms[0]
        assert atom.size is not None
        flip = {atom: Position(atom.size - 1, ((atom, -1),))}
        backwards = bool(call.get("reverse", 0))
        source = replace(plain, positions=plain.substitute(flip)) if backwards else plain
        labels = call.writer.labels(plain.atoms)

        def expression(reading: Callable[[View], str]) -> str:
            return f"{function}[{labels[atom]}]({reading(source)})"

        made = call.writer.emit(
            f"{call.name}_running" if backwards else call.name, plain.axes, expression, view.dtype
        )
        if call.get("exclusive", 0):
            neutral = "0" if function == "cumsum" else "1"
            own = labels[atom]
            before = made.substitute({atom: Position(-1, ((atom, 1),))})
            earlier = call.writer.read(replace(made, positions=before), labels, (atom,))
            made = call.writer.emit(
                f"{call.name}_before",
                made.axes,
                lambda _: f"where({own} > 0, {earlier}, {neutral})",
                view.dtype,
            )
        if backwards:
            made = replace(made, positions=made.substitute(flip))
        return made

    return operator


def top_k(call: Call) -> Outputs:
    """The k greatest or least entries along an axis, and their positions."""
    view = call.view(0)
    k = int(np.asarray(call.constant(1, call.get("k"))).reshape(-1)[0])
    axis = view.axis(int(call.get("axis", -1)))
    plain = call.writer.flatten(view, [axis])
    ends = "top_k" if call.get("largest", 1) else "bottom_k"
    place = new_axis(Size(k))
    axes = tuple(place if n == axis else each for n, each in enumerate(plain.axes))
    if not plain.axes[axis]:
        return plain, call.writer.emit(call.names[-1], axes, lambda _: "0", "int64")
    atoms = [atom for each in axes for atom in each]
    summed = plain.axes[axis]

    def select(function: str, name: str, dtype: object) -> View:
        def expression(reading: Callable[[View], str]) -> str:
            labels = call.writer.labels([*atoms, *summed])
            shown = ",".join(labels[atom] for atom in (*summed, *place))
            return f"{function}[{shown}]({reading(plain)})"

        return call.writer.emit(name, axes, expression, dtype, summed=summed)

    values = select(ends, call.names[0] or f"{call.operator}_values", view.dtype)
    if len(call.names) == 1:
        return (values,)
    return values, select(f"arg_{ends}", call.names[1], "int64")


def normalised(
    call: Call, view: View, axes: Sequence[int], epsilon: float, wish: str, *, centre: bool = True
) -> tuple[View, View | None, View]:
    """Entries less their mean along some axes, by the root of their variance.

    Returns:
        These, the mean if it is subtracted, and the reciprocal of the root.
    """
    writer, mean = call.writer, None
    if centre:
        mean = reduce_axes(call, view, axes, "mean", wish=f"{wish}_mean")
        shift, (x, m) = writer.broadcast([view, mean], wish)
        view = writer.emit(f"{wish}_centred", shift, lambda r: f"{r(x)} - {r(m)}", view.dtype)
    root = reduce_axes(
        call,
        view,
        axes,
        "mean",
        "square(x)",
        f"1 / sqrt(x + {number(epsilon)})",
        wish=f"{wish}_scale",
    )
    result, (x2, s) = writer.broadcast([view, root], wish)
    return writer.emit(wish, result, lambda r: f"{r(x2)} * {r(s)}", view.dtype), mean, root


def layer_normalization(*, centre: bool = True) -> Operator:
    """`LayerNormalization` and `RMSNormalization`, over all axes from one on."""

    def operator(call: Call) -> Outputs:
        view = call.view(0)
        axes = range(view.axis(int(call.get("axis", -1))), view.rank)
        epsilon = float(call.get("epsilon", 1e-5))
        wish = f"{call.name}_normal"
        plain, mean, scale = normalised(call, view, axes, epsilon, wish, centre=centre)
        return scaled(call, plain, call.given(1), call.given(2)), mean, scale

    return operator


def scaled(call: Call, view: View, scale: Value | None, bias: Value | None) -> View:
    """Entries times a scale, plus a bias."""
    values = [value for value in (view, scale, bias) if value is not None]
    text = {3: "{} * {} + {}", 2: "{} * {}" if bias is None else "{} + {}", 1: "{}"}[len(values)]
    return call.writer.pointwise(call.name, values, text.format, view.dtype)


def batch_normalization(call: Call) -> Outputs:
    """Entries by the mean and the variance of their channel, which are weights.

    Raises:
        UnsupportedError: the model is trained.
    """
    if call.get("training_mode", 0) or (len(call.names) > 1 and call.version >= 14):
        raise call.refuse("a model is not trained here", "training_mode=0")
    epsilon = number(float(call.get("epsilon", 1e-5)))
    view = call.view(0)
    scale, bias, mean, variance = (channels(call, call.view(n), view.rank) for n in range(1, 5))
    return (
        call.writer.pointwise(
            call.name,
            [view, scale, bias, mean, variance],
            lambda x, s, b, m, v: f"({x} - {m}) / sqrt({v} + {epsilon}) * {s} + {b}",
            view.dtype,
        ),
    )


def channels(call: Call, vector: View, rank: int) -> View:
    """A vector over the axis 1 of tensors."""
    return vector.with_axes((*vector.axes, *((),) * (rank - 2)))


def instance_normalization(call: Call) -> Outputs:
    """Each channel of each row by its own mean and variance."""
    view = call.view(0)
    epsilon = float(call.get("epsilon", 1e-5))
    plain, _, _ = normalised(call, view, range(2, view.rank), epsilon, f"{call.name}_normal")
    scale, bias = (channels(call, call.view(n), view.rank) for n in (1, 2))
    return scaled(call, plain, scale, bias)


def group_normalization(call: Call) -> Outputs:
    """Groups of channels of each row by their own mean and variance."""
    view = call.view(0)
    groups = int(call.get("num_groups"))
    rows, every, *rest = view.shape
    split = regroup(call, view, (rows, Size(groups), Size(every.number // groups), *rest))
    epsilon = float(call.get("epsilon", 1e-5))
    plain, _, _ = normalised(call, split, range(2, split.rank), epsilon, f"{call.name}_normal")
    scale, bias = call.view(1), call.view(2)
    if size_of(scale.axes[0]).number == groups != every.number:  # until version 21
        scale, bias = (channels(call, x, split.rank) for x in (scale, bias))
        return regroup(call, scaled(call, plain, scale, bias), view.shape)
    whole = regroup(call, plain, view.shape)
    return scaled(call, whole, *(channels(call, x, view.rank) for x in (scale, bias)))


def lp_normalization(call: Call) -> Outputs:
    """Entries by the norm along an axis; 0 where it is 0."""
    view = call.view(0)
    axis = view.axis(int(call.get("axis", -1)))
    inner, outer = ("square(x)", "sqrt(x)") if int(call.get("p", 2)) == 2 else ("abs(x)", "x")
    norm = reduce_axes(call, view, [axis], "sum", inner, outer, wish=f"{call.name}_norm")
    return call.writer.pointwise(
        call.name, [view, norm], lambda x, n: f"{x} / one_if_zero({n})", view.dtype
    )


OPERATORS: dict[str, Operator] = {
    "ReduceSum": reduction("sum"),
    "ReduceMean": reduction("mean"),
    "ReduceMax": reduction("max"),
    "ReduceMin": reduction("min"),
    "ReduceProd": reduction("prod"),
    "ReduceL1": reduction("sum", "abs(x)"),
    "ReduceL2": reduction("sum", "square(x)", "sqrt(x)"),
    "ReduceLogSum": reduction("sum", outer="log(x)"),
    "ReduceLogSumExp": reduction("logsumexp"),
    "ReduceSumSquare": reduction("sum", "square(x)"),
    "Softmax": softmax("softmax"),
    "LogSoftmax": softmax("log_softmax"),
    "Hardmax": hardmax,
    "ArgMax": arg("argmax"),
    "ArgMin": arg("argmin"),
    "CumSum": running("cumsum"),
    "CumProd": running("cumprod"),
    "TopK": top_k,
    "LayerNormalization": layer_normalization(),
    "RMSNormalization": layer_normalization(centre=False),
    "BatchNormalization": batch_normalization,
    "InstanceNormalization": instance_normalization,
    "GroupNormalization": group_normalization,
    "LpNormalization": lp_normalization,
}
