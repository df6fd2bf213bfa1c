"""Operators that move entries: shapes, slices, concatenation, margins.

Most of them compute nothing (`ucle.models.views`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.models.calls import Call, Operator
from ucle.models.values import Outputs
from ucle.models.views import Atom, Axis, Position, Size, View, new_axis
from ucle.models.writer import number


def sizes_of(call: Call, place: int) -> list[Size]:
    """An operand that is a shape; -1 and 0 stay as they are."""
    value = call.operand(place)
    if isinstance(value, tuple):
        return list(value)
    return [Size(int(x)) for x in np.asarray(call.constant(place)).reshape(-1)]


def whole(sizes: Sequence[Size]) -> Size:
    """The product of sizes."""
    return Size(math.prod(size.number for size in sizes), any(size.rows for size in sizes))


def reshape(call: Call) -> Outputs:
    """`Reshape`: 0 keeps the size of an axis, and -1 is what is left."""
    shape = call.given(1)
    wanted = [Size(int(x)) for x in call.get("shape", ())] if shape is None else sizes_of(call, 1)
    view = call.view(0)
    if not call.get("allowzero", 0):
        wanted = [
            view.shape[n] if size == Size(0) and n < view.rank else size
            for n, size in enumerate(wanted)
        ]
    return regroup(call, view, fill_open(call, view, wanted))


def fill_open(call: Call, view: View, sizes: Sequence[Size]) -> list[Size]:
    """Replace -1 by the size that is left.

    Raises:
        UnsupportedError: sizes do not divide each other.
    """
    total, rest = whole(view.shape), whole([size for size in sizes if size != Size(-1)])
    if not any(size == Size(-1) for size in sizes):
        if rest.number == total.number and rest.rows == total.rows:
            return list(sizes)
        fixed = [size for size in sizes if size.number > 0]
        one = total.rows and not rest.rows and len(fixed) == len(sizes) and sizes[0] == Size(1)
        if one and whole(sizes[1:]).number == total.number:
            # A model that was exported for one row states 1 for the number of rows.
            return [Size(1, True), *sizes[1:]]
        raise call.refuse("a shape does not fit", f"{total} entries")
    if rest.number == 0 or total.number % rest.number or (rest.rows and not total.rows):
        raise call.refuse("a shape does not fit", f"{total} entries")
    left = Size(total.number // rest.number, total.rows and not rest.rows)
    return [left if size == Size(-1) else size for size in sizes]


def regroup(call: Call, view: View, sizes: Sequence[Size]) -> View:
    """A view of other sizes, with as many entries in the same order.

    Atoms are split where sizes ask for it; where they do not divide each other, the tensor is
    stored under one label first.
    """
    made = _regroup(view, sizes)
    if made is None:
        atoms = view.atoms
        places = [n for n, atom in enumerate(atoms) if atom.size is None]
        first = places[0] if places else len(atoms)
        parts = (atoms[:first], atoms[first : first + 1], atoms[first + 1 :])
        line = View(view.tensor, view.positions, parts, view.dtype)
        made = _regroup(call.writer.flatten(line, (0, 2)), sizes)
    if made is None:
        raise call.refuse("rows are mixed with other entries", "rows that stay apart")
    return made


def _regroup(view: View, sizes: Sequence[Size]) -> View | None:
    left = list(view.atoms)
    parts: dict[Atom, list[tuple[Atom, int]]] = {}
    axes: list[Axis] = []
    stride = 1  # how much of the last atom is used
    for size in reversed(sizes):
        atoms: list[Atom] = []
        missing, rows = size.number, size.rows
        while missing > 1 or rows:
            if not left:
                return None
            atom = left[-1]
            if atom.size is None:
                if not rows or stride > 1:
                    return None
                atoms.insert(0, left.pop())
                rows = False
                continue
            rest = atom.size // stride
            part = math.gcd(rest, missing)
            if part == 1 or (part not in (rest, missing)):
                return None
            made = atom if part == atom.size else Atom(part)
            atoms.insert(0, made)
            if made is not atom:
                parts.setdefault(atom, []).insert(0, (made, stride))
            missing //= part
            stride *= part
            if stride == atom.size:
                left.pop()
                stride = 1
        if missing == 0:
            return None
        axes.insert(0, tuple(atoms))
    if left:
        return None
    positions = {atom: Position(0, tuple(terms)) for atom, terms in parts.items()}
    return View(view.tensor, view.substitute(positions), tuple(axes), view.dtype)


def flatten(call: Call) -> Outputs:
    """`Flatten`: a matrix of the axes before one and of the rest."""
    view = call.view(0)
    axis = int(call.get("axis", 1))
    axis = axis if axis >= 0 else axis + view.rank
    sizes = [whole(view.shape[:axis]), whole(view.shape[axis:])]
    return regroup(call, view, sizes)


def transpose(call: Call) -> Outputs:
    """`Transpose`."""
    view = call.view(0)
    order = call.get("perm") or range(view.rank)[::-1]
    return view.with_axes(view.axes[int(n)] for n in order)


def squeeze(call: Call) -> Outputs:
    """`Squeeze`: axes of size 1 are left out."""
    if isinstance(call.operand(0), tuple):
        return call.operand(0)
    view = call.view(0)
    chosen = call.integers(1, "axes")
    if chosen is None:
        gone = {n for n, axis in enumerate(view.axes) if not axis}
    else:
        gone = {view.axis(n) for n in chosen}
        if any(view.axes[n] for n in gone):
            raise call.refuse("an axis of another size than 1 is left out", "axes of size 1")
    return view.with_axes(axis for n, axis in enumerate(view.axes) if n not in gone)


def unsqueeze(call: Call) -> Outputs:
    """`Unsqueeze`: axes of size 1 are added."""
    if isinstance(call.operand(0), tuple):
        return call.operand(0)
    view = call.view(0)
    chosen = call.integers(1, "axes") or ()
    rank = view.rank + len(chosen)
    places = {n % rank for n in chosen}
    rest = iter(view.axes)
    return view.with_axes(() if n in places else next(rest) for n in range(rank))


def expand(call: Call) -> Outputs:
    """`Expand`: axes of size 1 are repeated, which nothing has to compute."""
    view = call.view(0)
    wanted = sizes_of(call, 1)
    rank = max(view.rank, len(wanted))
    axes = ((),) * (rank - view.rank) + view.axes
    wanted = [Size(1)] * (rank - len(wanted)) + wanted
    made = []
    for axis, size in zip(axes, wanted, strict=True):
        new = (call.writer.rows,) if size == Size(1, True) else new_axis(size)
        made.append(axis if axis or size == Size(1) else new)
    return view.with_axes(made)


def concat(call: Call) -> Outputs:
    """`Concat` of tensors, constants or shapes along an axis."""
    values = [value for value in call.inputs if value is not None]
    if any(isinstance(value, tuple) for value in values):
        parts: list[Size] = []
        for n, value in enumerate(values):
            parts += value if isinstance(value, tuple) else sizes_of(call, n)
        return tuple(parts)
    views = [call.view(n) for n in range(len(values))]
    axis = views[0].axis(int(call.get("axis", 1)))
    views = [view for view in views if view.shape[axis].number]
    return join(call, views, axis, call.name)


def join(call: Call, views: Sequence[View], axis: int, wish: str) -> View:
    """Put tensors together along an axis.

    Raises:
        UnsupportedError: it is the axis of the rows.
    """
    if len(views) == 1:
        return views[0]
    writer = call.writer
    sizes = [view.shape[axis] for view in views]
    if any(size.rows for size in sizes):
        raise call.refuse("rows are put together", "an axis of known size")
    plain = [writer.flatten(view, [axis]) for view in views]
    others, aligned = writer.broadcast(
        [view.with_axes((*view.axes[:axis], (), *view.axes[axis + 1 :])) for view in plain], wish
    )
    target = new_axis(Size(sum(size.number for size in sizes)))
    label_of, start = target[0], 0
    axes = (*others[:axis], target, *others[axis + 1 :])
    parts: list[tuple[View, int, int, Axis]] = []
    # The atom of the joined axis is in the positions, but no axis has it any more.
    for view, before, size in zip(aligned, plain, sizes, strict=True):
        parts.append((view, start, size.number, before.axes[axis]))
        start += size.number

    def expression(reading: Callable[[View], str]) -> str:
        labels = writer.labels([atom for each in axes for atom in each])
        own = labels[label_of]
        texts = []
        for view, first, size, atoms in parts:
            if atoms:
                moved = replace(
                    view, positions=view.substitute({atoms[0]: Position(-first, ((label_of, 1),))})
                )
                text = writer.read(moved, labels, (label_of,))
            else:
                text = reading(view)
            last = first + size - 1
            low = f"{own} >= {first}" if first else ""
            high = f"{own} <= {last}" if last < start - 1 else ""
            texts.append(f"when({' and '.join(filter(None, (low, high)))}, {text})")
        return " + ".join(texts)

    return writer.emit(wish, axes, expression, views[0].dtype)


def split(call: Call) -> Outputs:
    """`Split` into parts of given sizes, or of equal ones."""
    view = call.view(0)
    axis = view.axis(int(call.get("axis", 0)))
    total = view.shape[axis].number
    sizes = call.integers(1, "split")
    if sizes is None:
        count = int(call.get("num_outputs", len(call.names)))
        each = -(-total // count)
        sizes = tuple(min(each, total - n * each) for n in range(count))
    starts = np.cumsum([0, *sizes[:-1]])
    return tuple(
        cut(call, view, axis, int(first), size, 1)
        for first, size in zip(starts, sizes, strict=True)
    )


def cut(call: Call, view: View, axis: int, first: int, size: int, step: int) -> View:
    """The entries at first, first + step, and so on along an axis.

    Raises:
        UnsupportedError: it is the axis of the rows.
    """
    if view.shape[axis].rows:
        raise call.refuse("some of the rows are taken", "all rows")
    if view.read.isdisjoint(view.axes[axis]):  # equal entries
        whole_axis = new_axis(Size(size))
        return view.with_axes((*view.axes[:axis], whole_axis, *view.axes[axis + 1 :]))
    plain = call.writer.flatten(view, [axis])
    target = new_axis(Size(size))
    terms = tuple((atom, step) for atom in target)
    positions = plain.substitute({plain.axes[axis][0]: Position(first, terms)})
    axes = (*plain.axes[:axis], target, *plain.axes[axis + 1 :])
    return View(plain.tensor, positions, axes, plain.dtype)


MANY = 10**9
"""An end beyond which frameworks mean all entries of an axis."""


def slice_axes(call: Call) -> Outputs:
    """`Slice`: ranges along some axes."""
    starts, ends = call.integers(1, "starts") or (), call.integers(2, "ends") or ()
    axes = call.integers(3, "axes") or tuple(range(len(starts)))
    steps = call.integers(4, "steps") or (1,) * len(starts)
    value = call.operand(0)
    if isinstance(value, tuple):
        return value[slice(starts[0], ends[0], steps[0])]
    view = call.view(0)
    for start, end, place, step in zip(starts, ends, axes, steps, strict=True):
        axis = view.axis(place)
        size = view.shape[axis]
        if size.rows and start == 0 and step == 1 and end >= MANY:
            continue
        indices = range(size.number)[slice(start, end, step)]
        if size.rows:
            raise call.refuse("some of the rows are taken", "all rows")
        if indices == range(size.number):
            continue
        if not view.axes[axis] and len(indices) == 1:
            continue
        view = cut(call, view, axis, indices.start, len(indices), step)
    return view


def tile(call: Call) -> Outputs:
    """`Tile`: axes are repeated one after the other."""
    view = call.view(0)
    repeats = call.integers(1, "repeats") or ()
    axes: list[Axis] = []
    for axis, count in zip(view.axes, repeats, strict=True):
        if any(atom.size is None for atom in axis) and count != 1:
            raise call.refuse("rows are repeated", "an axis of known size")
        axes.append((*new_axis(Size(count)), *axis))
    return view.with_axes(axes)


def pad_constant(
    call: Call, view: View, edges: dict[int, tuple[int, int]], fill: np.ndarray, wish: str
) -> View:
    """A tensor with a margin along axes; negative margins cut."""
    for place, (before, after) in edges.items():
        if before < 0 or after < 0:
            size = view.shape[place].number
            first, last = max(-before, 0), size - max(-after, 0)
            view = cut(call, view, place, first, last - first, 1)
    edges = {n: (max(b, 0), max(a, 0)) for n, (b, a) in edges.items() if b > 0 or a > 0}
    if not edges:
        return view
    if any(view.shape[place].rows for place in edges):
        raise call.refuse("rows are padded", "an axis of known size")
    writer = call.writer
    plain = writer.flatten(view, list(edges))
    axes, positions, conditions = list(plain.axes), {}, []
    for place, (before, after) in edges.items():
        size = plain.shape[place].number
        target = new_axis(Size(size + before + after))
        axes[place] = target
        conditions.append((target[0], before, size, after))
        for atom in plain.axes[place]:
            positions[atom] = Position(-before, ((target[0], 1),))
    moved = replace(plain, positions=plain.substitute(positions))
    shifted = {atom for atom, *_ in conditions}

    def expression(reading: Callable[[View], str]) -> str:
        labels = writer.labels([atom for each in axes for atom in each])
        text = writer.read(moved, labels, shifted)
        tests = []
        for atom, before, size, after in conditions:
            if before:
                tests.append(f"{labels[atom]} >= {before}")
            if after:
                tests.append(f"{labels[atom]} < {before + size}")
        within = " and ".join(tests)
        if fill.size == 0 or not fill.reshape(-1)[0]:
            return f"when({within}, {text})"
        if np.isneginf(fill).all():
            return f"when_lowest({within}, {text})"
        return f"where({within}, {text}, {number(fill)})"

    return writer.emit(wish, axes, expression, view.dtype)


def shape(call: Call) -> Outputs:
    """`Shape`: known at once, but for the number of rows."""
    value = call.operand(0)
    if isinstance(value, tuple):
        return np.array([len(value)])
    if isinstance(value, np.ndarray):
        sizes = tuple(Size(int(n)) for n in value.shape)
    else:
        sizes = call.view(0).shape
    sizes = sizes[slice(call.get("start", 0), call.get("end"))]
    if any(size.rows for size in sizes):
        return sizes
    return np.array([size.number for size in sizes], np.int64)


def size(call: Call) -> Outputs:
    """`Size`: the number of entries."""
    view = call.view(0)
    total = whole(view.shape)
    return (total,) if total.rows else np.array(total.number)


def constant_of_shape(call: Call) -> Outputs:
    """`ConstantOfShape`: one number everywhere."""
    value = call.get("value")
    number_ = np.zeros(1, np.float32) if value is None else np.asarray(value)
    sizes = sizes_of(call, 0)
    if not any(each.rows for each in sizes):
        return np.full([each.number for each in sizes], number_.reshape(-1)[0])
    return repeated(call, number_.reshape(()), sizes)


def repeated(call: Call, value: Any, sizes: Sequence[Size]) -> View:
    """A number as a tensor of some sizes, one of which is that of the rows."""
    axes = tuple(
        (call.writer.rows, *new_axis(Size(each.number))) if each.rows else new_axis(each)
        for each in sizes
    )
    scalar = call.writer.view(np.asarray(value), call.name)
    return scalar.with_axes(axes)


def triangle(call: Call) -> Outputs:
    """`Trilu`: the upper or the lower triangle of matrices."""
    view = call.view(0)
    k = int(np.asarray(call.constant(1, 0)).reshape(-1)[0])
    plain = call.writer.flatten(view, [view.rank - 2, view.rank - 1])
    sign = "<=" if call.get("upper", 1) else ">="

    def expression(reading: Callable[[View], str]) -> str:
        labels = call.writer.labels(plain.atoms)
        row, column = (
            labels[axis[0]] if axis else "0" for axis in (plain.axes[-2], plain.axes[-1])
        )
        return f"when({row} + {k} {sign} {column}, {reading(plain)})"

    if not plain.axes[-1] and not plain.axes[-2]:
        keep = k <= 0 if call.get("upper", 1) else k >= 0
        factor = "" if keep else "0 * "
        return call.writer.emit(call.name, plain.axes, lambda r: f"{factor}{r(plain)}", view.dtype)
    return call.writer.emit(call.name, plain.axes, expression, view.dtype)


def depth_to_space(call: Call) -> Outputs:
    """`DepthToSpace`: blocks of channels become blocks of pixels."""
    view = call.view(0)
    block = int(call.get("blocksize"))
    n, c, h, w = view.shape
    small = Size(c.number // block**2)
    if call.get("mode", "DCR") == "DCR":
        parts = regroup(call, view, (n, Size(block), Size(block), small, h, w))
        order = (0, 3, 4, 1, 5, 2)
    else:
        parts = regroup(call, view, (n, small, Size(block), Size(block), h, w))
        order = (0, 1, 4, 2, 5, 3)
    turned = parts.with_axes(parts.axes[k] for k in order)
    return regroup(call, turned, (n, small, Size(h.number * block), Size(w.number * block)))


def space_to_depth(call: Call) -> Outputs:
    """`SpaceToDepth`: blocks of pixels become channels."""
    view = call.view(0)
    block = int(call.get("blocksize"))
    n, c, h, w = view.shape
    high, wide = Size(h.number // block), Size(w.number // block)
    parts = regroup(call, view, (n, c, high, Size(block), wide, Size(block)))
    order = (0, 3, 5, 1, 2, 4) if call.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    turned = parts.with_axes(parts.axes[k] for k in order)
    return regroup(call, turned, (n, Size(c.number * block**2), high, wide))


OPERATORS: dict[str, Operator] = {
    "Reshape": reshape,
    "Flatten": flatten,
    "Transpose": transpose,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Expand": expand,
    "Concat": concat,
    "Split": split,
    "Slice": slice_axes,
    "Tile": tile,
    "Shape": shape,
    "Size": size,
    "ConstantOfShape": constant_of_shape,
    "Trilu": triangle,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
}
