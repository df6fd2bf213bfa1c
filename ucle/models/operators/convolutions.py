"""Sliding windows: convolutions and pooling.

A window is a sum over reads at ``stride * i + dilation * w``; the margins are added first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ucle.foundation.dataclasses import dataclass
from ucle.models.calls import Call, Operator
from ucle.models.operators.reductions import reduce_axes
from ucle.models.operators.shapes import pad_constant, regroup
from ucle.models.values import Array, Outputs, Value
from ucle.models.views import Atom, Axis, Position, Size, View, fresh_atoms, new_axis


@dataclass(frozen=True)
class Window:
    """A window along one axis.

    Args:
        size: the number of its positions.
        stride: how far it moves.
        dilation: how far its positions are apart.
        before: the margin at the start.
        after: the margin at the end.
        count: how many places it has.
    """

    size: int
    stride: int
    dilation: int
    before: int
    after: int
    count: int


def windows_of(call: Call, view: View, kernel: Sequence[int]) -> list[Window]:
    """The windows of an operator over the axes from 2 on."""
    places = len(kernel)
    strides = call.get("strides") or [1] * places
    dilations = call.get("dilations") or [1] * places
    pads = call.get("pads") or [0] * (2 * places)
    automatic, ceil = call.get("auto_pad", "NOTSET"), bool(call.get("ceil_mode", 0))
    windows = []
    for n, size in enumerate(kernel):
        extent = view.shape[n + 2].number
        stride, dilation = int(strides[n]), int(dilations[n])
        reach = dilation * (size - 1) + 1
        before, after = int(pads[n]), int(pads[n + places])
        if automatic.startswith("SAME"):
            count = -(-extent // stride)
            total = max((count - 1) * stride + reach - extent, 0)
            before = total // 2 if automatic == "SAME_UPPER" else total - total // 2
            after = total - before
        elif automatic == "VALID":
            before = after = 0
        free = extent + before + after - reach
        count = free // stride + 1
        if ceil and free % stride and count * stride < extent + before:
            count += 1
        needed = (count - 1) * stride + reach
        after = max(after, needed - extent - before)
        windows.append(Window(int(size), stride, dilation, before, after, count))
    return windows


def slide(view: View, windows: Sequence[Window]) -> tuple[View, list[Axis], list[Axis]]:
    """Read a padded tensor through windows.

    Returns:
        The view, the axes of the windows' places, and those of the positions in a window.
    """
    places = [new_axis(Size(window.count)) for window in windows]
    inner = [new_axis(Size(window.size)) for window in windows]
    positions = {}
    for n, window in enumerate(windows):
        for atom in view.axes[n + 2]:
            terms = [(place, window.stride) for place in places[n]]
            terms += [(each, window.dilation) for each in inner[n]]
            positions[atom] = Position(0, tuple(terms))
    axes = (*view.axes[:2], *places, *inner)
    return View(view.tensor, view.substitute(positions), axes, view.dtype), places, inner


def with_margins(call: Call, view: View, windows: Sequence[Window], fill: float, wish: str) -> View:
    """A tensor with the margins of windows, and each of the axes from 2 on in one atom."""
    view = call.writer.flatten(view, range(1, view.rank))
    edges = {n + 2: (window.before, window.after) for n, window in enumerate(windows)}
    return pad_constant(call, view, edges, np.asarray(fill, view.dtype), wish)


def convolve(call: Call) -> Outputs:
    """`Conv`, with groups of channels.

    Raises:
        UnsupportedError: channels do not fit the weights.
    """
    x, weights = call.view(0), call.view(1)
    windows = windows_of(call, x, [size.number for size in weights.shape[2:]])
    padded = with_margins(call, x, windows, 0, f"{call.name}_padded")
    groups = int(call.get("group", 1))
    every, made = padded.shape[1].number, weights.shape[0].number
    if every != groups * weights.shape[1].number or made % groups:
        raise call.refuse("channels do not fit the weights", str(groups * weights.shape[1].number))
    if groups > 1:
        shape = padded.shape
        padded = regroup(call, padded, (shape[0], Size(groups), Size(every // groups), *shape[2:]))
    split = weights
    if groups > 1:
        sizes = (Size(groups), Size(made // groups), *weights.shape[1:])
        split = regroup(call, weights, sizes)
    return _summed(call, padded, fresh_atoms(split), windows, groups > 1)


def _summed(call: Call, x: View, weights: View, windows: Sequence[Window], grouped: bool) -> View:
    """The sum of products, plus the bias."""
    shift = 1 if grouped else 0
    flat = replace(x, axes=(x.axes[0], x.axes[1 + shift], *x.axes[2 + shift :]))
    read, places, inner = slide(flat, windows)
    names = list(weights.axes)
    group = names.pop(0) if grouped else ()
    out, channels, *positions = names
    renamed: dict[Atom, Position] = {}
    pairs = [*zip(positions, inner, strict=True), (channels, x.axes[1 + shift])]
    if grouped:
        pairs.append((group, x.axes[1]))
    for mine, theirs in pairs:
        for atom, other in zip(mine, theirs, strict=True):
            renamed[atom] = Position(0, ((other, 1),))
    factor = replace(weights, positions=weights.substitute(renamed))
    target = (*x.axes[1], *out) if grouped else out
    axes = (x.axes[0], target, *places)
    summed = [*x.axes[1 + shift], *(atom for axis in inner for atom in axis)]
    bias = call.given(2)
    product = call.writer.emit(
        call.name if bias is None else f"{call.name}_windows",
        axes,
        lambda reading: f"{reading(read)} * {reading(factor)}",
        x.dtype,
        accumulate="+=",
        summed=summed,
    )
    return product if bias is None else _with_bias(call, product, bias)


def _with_bias(call: Call, view: View, bias: Value) -> View:
    vector = call.writer.view(bias, f"{call.name}_bias")
    shaped = vector.with_axes((*vector.axes, *((),) * (view.rank - 2)))
    return call.writer.pointwise(call.name, [view, shaped], "{} + {}".format, view.dtype)


def transposed_convolution(call: Call) -> Outputs:
    """`ConvTranspose`: a window slides over the entries and the zeros that are put between them."""
    x, weights = call.view(0), call.view(1)
    kernel = [size.number for size in weights.shape[2:]]
    places = len(kernel)
    strides = call.get("strides") or [1] * places
    dilations = call.get("dilations") or [1] * places
    extra = call.get("output_padding") or [0] * places
    pads = list(call.get("pads") or [0] * (2 * places))
    wanted, automatic = call.get("output_shape"), call.get("auto_pad", "NOTSET")
    groups = int(call.get("group", 1))
    windows, spread = [], {}
    x = call.writer.stored(call.writer.flatten(x, range(1, x.rank)))
    for n, size in enumerate(kernel):
        extent, stride, dilation = x.shape[n + 2].number, int(strides[n]), int(dilations[n])
        reach = dilation * (size - 1) + 1
        full = (extent - 1) * stride + reach + int(extra[n])
        if wanted or automatic.startswith("SAME"):
            target = int(wanted[-places + n]) if wanted else extent * stride
            total = max(full - target, 0)
            early = total // 2 if automatic == "SAME_UPPER" else total - total // 2
            pads[n], pads[n + places] = early, total - early
            full = max(full, target)
        count = full - int(pads[n]) - int(pads[n + places])
        before = reach - 1 - int(pads[n])
        long = (extent - 1) * stride + 1
        windows.append(Window(size, 1, dilation, 0, 0, count))
        spread[n + 2] = (stride, before, count + reach - 1, long)
    wide = _spread(call, x, spread)
    made = weights.shape[1].number
    flips = {}
    split = fresh_atoms(call.writer.flatten(weights))
    for axis in split.axes[2:]:
        for atom in axis:
            assert atom.size is not None
            flips[atom] = Position(atom.size - 1, ((atom, -1),))
    split = replace(split, positions=split.substitute(flips))
    if groups > 1:
        every = weights.shape[0].number
        sizes = (Size(groups), Size(every // groups), Size(made), *split.shape[2:])
        split = regroup(call, split, sizes)
        split = split.with_axes((split.axes[0], split.axes[2], split.axes[1], *split.axes[3:]))
        shape = wide.shape
        wide = regroup(call, wide, (shape[0], Size(groups), Size(every // groups), *shape[2:]))
    else:
        split = split.with_axes((split.axes[1], split.axes[0], *split.axes[2:]))
    return _summed(call, wide, split, windows, groups > 1)


def _spread(call: Call, x: View, spread: dict[int, tuple[int, int, int, int]]) -> View:
    """A tensor with zeros between its entries, and around them."""
    writer = call.writer
    axes, positions, rules = list(x.axes), {}, []
    for place, (stride, before, size, long) in spread.items():
        target = new_axis(Size(size))
        axes[place] = target
        rules.append((x.axes[place], target, stride, before, long))
        for atom in x.axes[place] if target else ():
            positions[atom] = (target[0], stride, before)

    def expression(reading: Callable[[View], str]) -> str:
        labels = writer.labels([atom for axis in axes for atom in axis])
        texts, tests = [], []
        for position in x.positions:
            atom = position.terms[0][0] if position.terms else None
            if atom in positions:
                whole, stride, before = positions[atom]
                moved = Position(-before, ((whole, 1),)).text(labels)
                texts.append(f"~(({moved})//{stride})" if stride > 1 else f"~({moved})")
            else:
                texts.append(position.text(labels))
        for mine, target, stride, before, long in rules:
            own = Position(-before, tuple((t, 1) for t in target)).text(labels)
            if target:
                tests += [f"{own} >= 0", f"{own} < {long}"]
                if stride > 1 and mine:
                    tests.append(f"({own}) % {stride} == 0")
                elif stride > 1:
                    tests.append(f"{own} == 0")
        text = f"{x.tensor}[{','.join(texts)}]" if texts else x.tensor
        return f"when({' and '.join(tests)}, {text})" if tests else text

    return writer.emit(f"{call.name}_spread", axes, expression, x.dtype)


def pool(name: str) -> Operator:
    """`MaxPool`, `AveragePool` and `LpPool`."""

    def operator(call: Call) -> Outputs:
        if len(call.names) > 1 and call.names[1]:
            raise call.refuse("positions of the greatest entries are an output", "one output")
        x = call.view(0)
        windows = windows_of(call, x, [int(n) for n in call.get("kernel_shape")])
        fill = -np.inf if name == "max" else 0
        if x.dtype.kind in "iu" and name == "max":
            fill = np.iinfo(x.dtype).min
        padded = with_margins(call, x, windows, fill, f"{call.name}_padded")
        view, _, inner = slide(padded, windows)
        axes = range(view.rank - len(inner), view.rank)
        p = int(call.get("p", 2))
        if name == "max":
            return (reduce_axes(call, view, axes, "max", keep=False),)
        if name == "lp":
            inside = "square(x)" if p == 2 else f"abs(x) ^ {p}"
            outside = "sqrt(x)" if p == 2 else f"x ^ (1 / {p})"
            return (reduce_axes(call, view, axes, "sum", inside, outside, keep=False),)
        wish = f"{call.name}_sums"
        total = reduce_axes(call, view, axes, "sum", keep=False, wish=wish)
        counts = _counts(x, windows, include=bool(call.get("count_include_pad", 0)), call=call)
        return (call.writer.pointwise(call.name, [total, counts], "{} / {}".format, x.dtype),)

    return operator


def _counts(x: View, windows: Sequence[Window], *, include: bool, call: Call) -> Array:
    """How many entries an average is over, in each place."""
    counts: Array = np.ones((1, 1), x.dtype)
    pads = call.get("pads") or [0] * (2 * len(windows))
    for n, window in enumerate(windows):
        extent = x.shape[n + 2].number
        starts = np.arange(window.count)[:, None] * window.stride - window.before
        positions = starts + np.arange(window.size) * window.dilation
        low, high = 0, extent
        if include:
            stated = call.get("auto_pad", "NOTSET") == "NOTSET"
            low = -window.before
            high = extent + (int(pads[n + len(windows)]) if stated else window.after)
        inside = ((positions >= low) & (positions < high)).sum(1)
        counts = counts[..., None] * inside.astype(x.dtype)
    return counts


def pool_everything(name: str) -> Operator:
    """`GlobalAveragePool` and `GlobalMaxPool`."""

    def operator(call: Call) -> Outputs:
        x = call.view(0)
        return reduce_axes(call, x, range(2, x.rank), name)

    return operator


OPERATORS: dict[str, Operator] = {
    "Conv": convolve,
    "ConvTranspose": transposed_convolution,
    "MaxPool": pool("max"),
    "AveragePool": pool("average"),
    "LpPool": pool("lp"),
    "GlobalAveragePool": pool_everything("mean"),
    "GlobalMaxPool": pool_everything("max"),
}
