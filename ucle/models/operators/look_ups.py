"""Operators that look entries up at positions: `Gather`, `OneHot`, and margins by index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ucle.models.calls import Call, Operator
from ucle.models.operators.shapes import cut, pad_constant
from ucle.models.values import Outputs
from ucle.models.views import Atom, Position, Size, View, fresh_atoms, new_axis
from ucle.models.writer import is_number, language_type, number


def gather(call: Call) -> Outputs:
    """`Gather`: the slices at some positions along an axis; negative ones count from the end."""
    source, indices = call.operand(0), call.operand(1)
    axis = int(call.get("axis", 0))
    if isinstance(source, tuple):
        chosen = np.asarray(call.constant(1)).reshape(-1)
        return tuple(source[int(n)] for n in chosen)
    view = call.view(0)
    axis = view.axis(axis)
    size = view.shape[axis]
    if size.rows:
        raise call.refuse("rows are looked up", "an axis of known size")
    if isinstance(indices, np.ndarray):
        indices = np.where(indices < 0, indices + size.number, indices)
        if indices.ndim == 0 or indices.size == 1:
            plain = call.writer.flatten(view, [axis])
            chosen_at = Position(int(indices.reshape(-1)[0]))
            fixed = plain.substitute(dict.fromkeys(plain.axes[axis], chosen_at))
            axes = (*plain.axes[:axis], *((),) * indices.ndim, *plain.axes[axis + 1 :])
            return View(plain.tensor, fixed, axes, plain.dtype)
        steps = set(np.diff(indices.reshape(-1)).tolist())
        if indices.ndim == 1 and len(steps) == 1:
            return cut(call, view, axis, int(indices[0]), len(indices), steps.pop())
    where = call.writer.view(indices, f"{call.name}_at")
    if not isinstance(indices, np.ndarray):
        where = from_start(call, where, size.number)
    return look_up(call, view, axis, where)


def from_start(call: Call, where: View, size: int) -> View:
    """Positions that count from the start, where negative ones count from the end."""
    return call.writer.pointwise(
        f"{call.name}_at", [where], lambda x: f"where({x} < 0, {x} + {size}, {x})", "int64"
    )


def look_up(call: Call, view: View, axis: int, where: View) -> View:
    """Entries at computed positions along an axis, in whose place the axes of these stand."""
    writer = call.writer
    plain = writer.stored(writer.flatten(view, [axis]))
    index = fresh_atoms(writer.stored(where))
    axes = (*plain.axes[:axis], *index.axes, *plain.axes[axis + 1 :])
    atoms = plain.axes[axis]

    def expression(reading: Callable[[View], str]) -> str:
        if not atoms:
            return reading(plain)
        labels = writer.labels([atom for each in axes for atom in each])
        return _read_with(plain, labels, {atoms[0]: reading(index)})

    return writer.emit(call.name, axes, expression, view.dtype)


def _read_with(view: View, labels: dict[Atom, str], indices: dict[Atom, str]) -> str:
    """A read of a stored view, with texts in the place of some atoms."""
    known = {**labels, **indices}
    return f"{view.tensor}[{','.join(known[p.terms[0][0]] for p in view.positions)}]"


def gather_elements(call: Call) -> Outputs:
    """`GatherElements`: for each entry a position of its own along an axis."""
    view = call.view(0)
    axis = view.axis(int(call.get("axis", 0)))
    indices = call.operand(1)
    size = view.shape[axis].number
    where = call.view(1)
    if isinstance(indices, np.ndarray):
        where = call.writer.view(np.where(indices < 0, indices + size, indices), f"{call.name}_at")
    else:
        where = from_start(call, where, size)
    for place, (mine, theirs) in enumerate(zip(view.shape, where.shape, strict=True)):
        if place != axis and mine != theirs:
            if mine.rows or theirs.rows or theirs.number > mine.number:
                raise call.refuse("axes differ", "the same sizes of all other axes")
            view = cut(call, view, place, 0, theirs.number, 1)
    plain = call.writer.flatten(view, [axis])
    own = plain.axes[axis]
    open_view = replace(plain, axes=(*plain.axes[:axis], (), *plain.axes[axis + 1 :]))
    axes, (source, index) = call.writer.broadcast([open_view, where], call.name)
    kept = call.writer.stored(index)
    stored = call.writer.stored(
        replace(source, axes=(*source.axes[:axis], own, *source.axes[axis + 1 :]))
    )

    def expression(reading: Callable[[View], str]) -> str:
        if not own:
            return reading(stored)
        labels = call.writer.labels([atom for each in axes for atom in each])
        return _read_with(stored, labels, {own[0]: reading(kept)})

    return call.writer.emit(call.name, axes, expression, view.dtype)


def one_hot(call: Call) -> Outputs:
    """`OneHot`: one of two values, by whether an entry is the position along a new axis."""
    depth = int(np.asarray(call.constant(1)).reshape(-1)[0])
    off, on = (np.asarray(call.constant(2))[n] for n in (0, 1))
    view = call.view(0)
    axis = int(call.get("axis", -1)) % (view.rank + 1)
    target = new_axis(Size(depth))
    axes = (*view.axes[:axis], target, *view.axes[axis:])
    dtype = np.asarray(call.constant(2)).dtype

    def expression(reading: Callable[[View], str]) -> str:
        labels = call.writer.labels([atom for each in axes for atom in each])
        own = labels[target[0]] if target else "0"
        x = reading(view)
        if view.dtype.kind == "f":
            x = f"int64({x})"
        same = f"{x} == {own} or {x} + {depth} == {own}"
        kind = language_type(dtype)
        if not off:
            return f"{kind}({same}) * {number(on)}"
        return f"where({same}, {number(on)}, {number(off)})"

    return call.writer.emit(call.name, axes, expression, dtype)


def pad(call: Call) -> Outputs:
    """`Pad` with a constant, with the entry at the edge, mirrored, or around."""
    view = call.view(0)
    amounts = call.integers(1, "pads") or ()
    chosen = call.constant(3)
    places = [view.axis(int(n)) for n in chosen] if chosen is not None else list(range(view.rank))
    fill = call.given(2)
    if fill is None:
        fill = np.asarray(call.get("value", 0.0))
    if not is_number(fill):
        fill = call.constant(2)
    mode = call.get("mode", "constant")
    half = len(places)
    edges = {place: (amounts[n], amounts[half + n]) for n, place in enumerate(places)}
    if mode == "constant":
        return pad_constant(call, view, edges, np.asarray(fill), call.name)
    for place, (before, after) in edges.items():
        if before or after:
            view = _pad_by_index(call, view, place, before, after, mode)
    return view


def _pad_by_index(call: Call, view: View, place: int, before: int, after: int, mode: str) -> View:
    size = view.shape[place].number
    names = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    if mode not in names:
        raise call.refuse(f"the mode {mode!r} is not there", "constant, " + ", ".join(names))
    low, high = max(before, 0), max(after, 0)
    indices = np.pad(np.arange(size), (low, high), mode=names[mode])  # type: ignore[call-overload]
    indices = indices[low - before : len(indices) - (high - after)]
    where = call.writer.view(indices, f"{call.name}_at")
    return look_up(call, view, place, where)


OPERATORS: dict[str, Operator] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "OneHot": one_hot,
    "Pad": pad,
}
