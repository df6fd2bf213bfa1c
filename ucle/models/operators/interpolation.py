"""`Resize`: entries of an axis read at other positions, or between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ucle.models.calls import Call, Operator
from ucle.models.operators.look_ups import look_up
from ucle.models.operators.products import contract
from ucle.models.values import Array, Outputs
from ucle.models.views import View

ROUNDING: Mapping[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def resize(call: Call) -> Outputs:
    """`Resize` to the nearest entry, or linear between two.

    Raises:
        UnsupportedError: cubic, cropped or smoothed resizing, or the rows are resized.
    """
    view, mode = call.view(0), call.get("mode", "nearest")
    given = call.constant(2), call.constant(3)
    scales, sizes = (None if x is None or not np.size(x) else np.ravel(x) for x in given)
    moved = call.get("coordinate_transformation_mode", "half_pixel")
    if mode not in ("nearest", "linear") or moved == "tf_crop_and_resize" or call.get("antialias"):
        raise call.refuse(f"{mode} resizing, {moved}", "nearest or linear, without smoothing")
    if call.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise call.refuse("sizes that keep a ratio", "sizes as they are")
    axes = call.get("axes") or range(view.rank)
    if scales is None and sizes is None:
        raise call.refuse("neither scales nor sizes are given")
    for place, axis in enumerate(axes):
        size = view.shape[axis]
        if size.rows:
            if scales is None or float(scales[place]) != 1:
                raise call.refuse("rows are resized", "all rows as they are")
            continue
        old = size.number
        if scales is not None:
            scale = float(scales[place])
            new = int(np.floor(old * scale))
        elif sizes is not None:
            new = int(sizes[place])
            scale = new / old
        if new == old and scale == 1:
            continue
        at = _positions(moved, old, new, scale)
        view = (
            _nearest(call, view, axis, at) if mode == "nearest" else _linear(call, view, axis, at)
        )
    return view


def _positions(mode: str, old: int, new: int, scale: float) -> Array:
    """Where the new entries lie among the old ones."""
    place = np.arange(new, dtype=np.float64)
    if mode == "asymmetric":
        return place / scale
    if mode == "align_corners":
        return place * (old - 1) / (scale * old - 1) if scale * old != 1 else np.zeros(new)
    if mode == "pytorch_half_pixel" and new == 1:
        return np.zeros(1)
    if mode == "half_pixel_symmetric":
        offset = old / 2 * (1 - new / (scale * old))
        return offset + (place + 0.5) / scale - 0.5
    return (place + 0.5) / scale - 0.5


def _nearest(call: Call, view: View, axis: int, at: Array) -> View:
    """The entries that are the nearest to positions."""
    rounding = ROUNDING[call.get("nearest_mode", "round_prefer_floor")]
    last = view.shape[axis].number - 1
    chosen = np.clip(rounding(at), 0, last).astype(np.int64)
    return look_up(call, view, axis, call.writer.view(chosen, f"{call.name}_at"))


def _linear(call: Call, view: View, axis: int, at: Array) -> View:
    """Weighted means of the two entries beside positions, as sums over the axis."""
    old = view.shape[axis].number
    low = np.floor(at)
    weights = np.zeros((len(at), old))
    for side, weight in ((low, 1 - (at - low)), (low + 1, at - low)):
        np.add.at(weights, (np.arange(len(at)), np.clip(side, 0, old - 1).astype(int)), weight)
    others = [n for n in range(view.rank) if n != axis]
    turned = view.with_axes(view.axes[n] for n in (*others, axis))
    matrix = call.writer.view(weights.T.astype(view.dtype), f"{call.name}_weights_{axis}")
    made = contract(call.writer, f"{call.name}_{axis}", turned, matrix, view.dtype)
    own = list(made.axes[:-1])
    own.insert(axis, made.axes[-1])
    return made.with_axes(own)


OPERATORS: Mapping[str, Operator] = {"Resize": resize}
