"""The statements of a model, as the operators write them one after the other."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ucle.errors import UnsupportedError
from ucle.models.values import Array, Value
from ucle.models.views import (
    Atom,
    Axis,
    Size,
    View,
    at,
    broadcast_axes,
    new_axis,
    size_of,
)

ROWS = "rows"
"""The label of the rows, until the caller gives it a name."""
LETTERS = "ijklmnpqrstuvwxyz"
TYPES = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), "int64"),
    **{name: name for name in ("bool", "float32", "float64", "complex64", "complex128")},
    "float16": "float32",
    "uint64": "int64",
}
"""Element types of models, and those of the language in which they are computed."""

Expression = Callable[[Callable[[View], str]], str]
"""The text of an expression, given a function that writes how a view is read."""


class Writer:
    """Collects statements, and the constants that they read."""

    def __init__(self) -> None:
        self.rows = Atom(None)
        self.anchor: View | None = None
        self.statements: list[str] = []
        self.weights: dict[str, Any] = {}
        self.sizes: dict[str, int] = {}
        self.extents: dict[str, tuple[int | None, ...]] = {}
        self.names_known: dict[tuple[str, tuple[str, ...]], str] = {}
        self.wishes: dict[int, str] = {}
        self._names: set[str] = {ROWS}
        self._known: dict[int, tuple[Array, str]] = {}

    # ---- names ----

    def name(self, wish: str) -> str:
        """A name that nothing has, close to the one that the model uses."""
        plain = re.sub(r"\W+", "_", wish, flags=re.ASCII).strip("_") or "t"
        plain = plain if plain[0].isalpha() else f"t_{plain}"
        name, count = plain, 1
        while name.casefold() in self._names or _is_label(name):
            count += 1
            name = f"{plain}_{count}"
        self._names.add(name.casefold())
        return name

    def rename(self, old: str, new: str) -> None:
        """Give the tensor of a statement another name, wherever it occurs."""
        word = re.compile(rf"\b{re.escape(old)}\b")
        self.statements = [word.sub(new, statement) for statement in self.statements]

    def labels(self, atoms: Iterable[Atom]) -> dict[Atom, str]:
        """Labels for the atoms of a statement: a letter, and the size."""
        labels: dict[Atom, str] = {}
        used: dict[int, int] = {}
        for atom in atoms:
            if atom in labels:
                continue
            if atom.size is None:
                labels[atom] = ROWS
                continue
            count = used[atom.size] = used.get(atom.size, -1) + 1
            letter = LETTERS[count % len(LETTERS)] * (1 + count // len(LETTERS))
            labels[atom] = f"{letter}{atom.size}"
            self.sizes[labels[atom]] = atom.size
        return labels

    # ---- constants ----

    def view(self, value: Value, wish: str = "c") -> View:
        """A value as a view; a constant becomes an input of the program.

        Raises:
            UnsupportedError: it is a shape with the number of rows, or its type is not there.
        """
        if isinstance(value, View):
            return value
        if not isinstance(value, np.ndarray):
            text = not isinstance(value, tuple)
            raise UnsupportedError(
                "strings are computed" if text else "the number of rows is used as a number",
                expected="strings for encoders" if text else "shapes for Reshape and the like",
                found="strings" if text else " x ".join(map(str, value)),  # type: ignore[arg-type]
            )
        language_type(value.dtype)
        known = self._known.get(id(value))
        if known is None:
            name = self.name(self.wishes.get(id(value), wish))
            squeezed = np.squeeze(value).astype(language_type(value.dtype), copy=False)
            self.weights[name] = np.asarray(squeezed, order="C")
            self.extents[name] = squeezed.shape
            known = self._known[id(value)] = (value, name)
        axes = tuple(new_axis(Size(size)) for size in value.shape)
        return View(known[1], tuple(at(atom) for axis in axes for atom in axis), axes, value.dtype)

    # ---- statements ----

    def emit(
        self,
        wish: str,
        axes: Sequence[Axis],
        expression: Expression,
        dtype: Any,
        *,
        accumulate: str = "=",
        summed: Sequence[Atom] = (),
        whole: bool = False,
    ) -> View:
        """Write a statement, and return its tensor.

        Axes on which the right-hand side does not depend are left out of the statement, and repeat
        what it computes.

        Args:
            wish: the name that the model has for it.
            axes: of the result.
            expression: the right-hand side.
            dtype: of the model's tensor.
            accumulate: the assignment of the language, such as ``max=``.
            summed: atoms of the right-hand side that are no axes.
            whole: True to keep all axes, in their order.

        Raises:
            UnsupportedError: the rows would be two axes.
        """
        atoms = [atom for axis in axes for atom in axis]
        if len(set(atoms)) < len(atoms):
            raise UnsupportedError(
                "a tensor would have an axis for each pair of rows",
                expected="rows that are computed independently of each other",
            )
        labels = self.labels([*atoms, *summed])
        name = self.name(wish)
        text = expression(lambda view: self.read(view, labels))
        words = set(re.findall(r"\w+", text))
        atoms = [atom for atom in atoms if whole or labels[atom] in words]
        if not whole:  # what is computed has the rows first, whatever the axes of the model are
            atoms.sort(key=lambda atom: atom is not self.rows)
        if accumulate == "+=":
            missing = [atom.size for atom in summed if labels[atom] not in words]
            text = f"{math.prod(n for n in missing if n)} * ({text})" if missing else text
        target = f"{name}[{','.join(labels[atom] for atom in atoms)}]" if atoms else name
        self.statements.append(f"{target} {accumulate} {text}")
        self.extents[name] = tuple(atom.size for atom in atoms)
        return View(name, tuple(map(at, atoms)), tuple(axes), np.dtype(dtype))

    def read(self, view: View, labels: Mapping[Atom, str], outside: Container[Atom] = ()) -> str:
        """How a statement reads a view; positions with atoms `outside` may leave its tensor.

        A label alone has the size of the axis that it reads, unless it says that it may leave it:
        so does the first part of an axis.
        """
        texts = []
        for position, extent in zip(view.positions, self.extents[view.tensor], strict=True):
            text = position.text(labels)
            if any(atom in outside for atom, _ in position.terms):
                text = f"~({text})"
            elif text.isidentifier() and position.terms[0][0].size != extent:
                text = f"~{text}"
            texts.append(text)
        return f"{view.tensor}[{','.join(texts)}]"  # inside brackets, a bare name is a label

    def broadcast(self, values: Sequence[Value], wish: str) -> tuple[tuple[Axis, ...], list[View]]:
        """Views of values under common axes; `ucle.models.views.broadcast_axes`."""
        views = [self.view(value, wish) for value in values]
        common = broadcast_axes(views)
        if common is None:
            common = broadcast_axes([self.flatten(view) for view in views])
        if common is None:
            raise UnsupportedError(
                "shapes do not fit each other",
                expected="sizes that are equal or 1",
                found=" and ".join(str([str(size) for size in view.shape]) for view in views),
            )
        return common[0], list(common[1])

    def pointwise(
        self, wish: str, values: Sequence[Value], write: Callable[..., str], dtype: Any
    ) -> View:
        """A function of the entries of values; `write` gets the text of each operand."""
        axes, operands = self.broadcast([v for v in values if not is_number(v)], wish)
        rank = max(
            (v.ndim for v in values if isinstance(v, np.ndarray) and is_number(v)), default=0
        )
        axes = ((),) * (rank - len(axes)) + axes  # a number may have more axes than the others

        def expression(reading: Callable[[View], str]) -> str:
            rest = iter(operands)
            return write(*(number(v) if is_number(v) else reading(next(rest)) for v in values))

        return self.emit(wish, axes, expression, dtype)

    def flatten(self, view: View, axes: Sequence[int] | None = None) -> View:
        """Give axes one atom each that is read, by a statement if they have several, or repeat.

        Raises:
            UnsupportedError: the rows are among several atoms of an axis.
        """
        chosen = range(view.rank) if axes is None else axes
        if not view.read.issuperset(atom for axis in chosen for atom in view.axes[axis]):
            view = self.stored(view)
        if all(len(view.axes[axis]) <= 1 for axis in chosen):
            return view
        plain = self.stored(view)
        positions: dict[Atom, str] = {}
        made: list[Axis] = []
        for place, axis in enumerate(plain.axes):
            if place not in chosen or len(axis) <= 1:
                made.append(axis)
                continue
            if any(atom.size is None for atom in axis):
                raise UnsupportedError(
                    "an axis mixes rows with other entries",
                    expected="rows that are computed independently of each other",
                    found=str(size_of(axis)),
                )
            made.append(new_axis(size_of(axis)))
        labels = self.labels(atom for axis in made for atom in axis)
        for axis, whole in zip(plain.axes, made, strict=True):
            if axis == whole:
                positions.update({atom: labels[atom] for atom in axis})
                continue
            label, rest = labels[whole[0]], math.prod(atom.size or 1 for atom in axis)
            for n, atom in enumerate(axis):
                assert atom.size is not None
                rest //= atom.size
                quotient = label if rest == 1 else f"{label}//{rest}"
                positions[atom] = quotient if n == 0 else f"{quotient}%{atom.size}"
        inside = ",".join(positions[p.terms[0][0]] for p in plain.positions)
        return self.emit(view.tensor, made, lambda _: f"{plain.tensor}[{inside}]", view.dtype)

    def is_stored(self, view: View) -> bool:
        """True if the positions of a view are its atoms, each once and over its whole axis."""
        plain = [p for p in view.positions if p.constant == 0 and len(p.terms) == 1]
        atoms = [p.terms[0][0] for p in plain if p.terms[0][1] == 1]
        whole = tuple(atom.size for atom in atoms) == self.extents[view.tensor]
        return whole and len(atoms) == len(set(atoms)) and set(atoms) == set(view.atoms)

    def stored(self, view: View) -> View:
        """A view whose positions are its atoms, by a statement if they are not."""
        if self.is_stored(view):
            return view
        return self.copied(view, view.tensor)

    def copied(self, view: View, wish: str) -> View:
        """A view under its own axes, in their order.

        Where it is the same in all rows, the rows are those of an input, of which nothing else is
        used.
        """
        anchor = self.anchor
        if self.rows not in view.atoms or self.rows in view.read or anchor is None:
            return self.emit(wish, view.axes, lambda reading: reading(view), view.dtype, whole=True)
        kind = language_type(view.dtype)
        return self.emit(
            wish,
            view.axes,
            lambda reading: f"{reading(view)} + 0 * {kind}(isnan({reading(anchor)}))",
            view.dtype,
            whole=True,
        )


def is_number(value: Value) -> bool:
    """True for a constant that is one finite number, which is written into the statement."""
    if not isinstance(value, np.ndarray) or value.size != 1 or value.dtype.kind not in "biuf":
        return False
    return bool(np.isfinite(value).all())


def number(value: Any) -> str:
    """A number in the language.

    >>> number(np.float32(0.1)), number(-2.0), number(np.bool_(True))
    ('0.10000000149011612', '(-2.0)', 'True')
    """
    plain = np.asarray(value).reshape(()).item()
    if isinstance(plain, bool):
        return str(plain)
    text = repr(plain)
    return f"({text})" if text.startswith("-") else text


def language_type(dtype: Any) -> str:
    """The element type of the language for one of a model.

    Raises:
        UnsupportedError: there is none, as for strings.
    """
    name = np.dtype(dtype).name
    if name not in TYPES:
        raise UnsupportedError(
            "an element type is not there", expected=", ".join(TYPES), found=name
        )
    return TYPES[name]


def _is_label(name: str) -> bool:
    """True for a name such as ``i64``, which a label may have."""
    return re.fullmatch(rf"([{LETTERS}])\1*\d+", name) is not None
