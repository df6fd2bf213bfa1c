"""Tensors of a model, as views of tensors of a program.

An axis of a model is a tuple of *atoms*, from the slowest to the fastest: labels of the program. So
`Reshape`, `Transpose`, `Squeeze` and `Slice` compute nothing: they regroup, reorder or shift atoms,
and the next statement reads the tensor at these positions. An axis of size 1 has no atoms. One atom
may stand for the rows of a batch, whose number is not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ucle.errors import UnsupportedError
from ucle.foundation.dataclasses import dataclass


class Atom:
    """A label of a statement; two atoms of the same size are different ones.

    Args:
        size: the number of its coordinates; None for the rows of a batch.
    """

    def __init__(self, size: int | None) -> None:
        self.size = size

    def __repr__(self) -> str:
        return "rows" if self.size is None else f"atom of {self.size}"


Axis = tuple[Atom, ...]


@dataclass(frozen=True)
class Position:
    """A position along an axis of a tensor: a constant and multiples of atoms."""

    constant: int = 0
    terms: tuple[tuple[Atom, int], ...] = ()

    def text(self, labels: Mapping[Atom, str]) -> str:
        """The position in the language.

        >>> i = Atom(4)
        >>> Position(2, ((i, 3),)).text({i: "i"}), Position(3, ((i, -1),)).text({i: "i"})
        ('3*i+2', '3-i')
        """
        text = str(self.constant) if self.constant > 0 and self._begins_negative() else ""
        for atom, factor in self.terms:
            sign = "-" if factor < 0 else "+" if text else ""
            text += f"{sign}{'' if abs(factor) == 1 else f'{abs(factor)}*'}{labels[atom]}"
        if self.constant and not (self.constant > 0 and self._begins_negative()):
            text += f"{'-' if self.constant < 0 else '+' if text else ''}{abs(self.constant)}"
        return text or "0"

    def _begins_negative(self) -> bool:
        return bool(self.terms) and self.terms[0][1] < 0

    def substitute(self, positions: Mapping[Atom, Position]) -> Position:
        """Replace atoms by positions in terms of others."""
        constant, factors = self.constant, dict[Atom, int]()
        for atom, factor in self.terms:
            inner = positions.get(atom) or at(atom)
            constant += factor * inner.constant
            for other, times in inner.terms:
                factors[other] = factors.get(other, 0) + factor * times
        return Position(constant, tuple((a, f) for a, f in factors.items() if f))


def at(atom: Atom) -> Position:
    """The position that an atom stands for."""
    return Position(0, ((atom, 1),))


@dataclass(frozen=True)
class View:
    """A tensor of a model.

    Args:
        tensor: the name of a tensor of the program.
        positions: where its axes are read.
        axes: the axes of the model's tensor; atoms that no position has repeat what is read.
        dtype: the element type in the model.
    """

    tensor: str
    positions: tuple[Position, ...]
    axes: tuple[Axis, ...]
    dtype: np.dtype

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """All atoms of the axes, in their order."""
        return tuple(atom for axis in self.axes for atom in axis)

    @property
    def read(self) -> set[Atom]:
        """The atoms on which the positions depend; the others repeat what is read."""
        return {atom for position in self.positions for atom, _ in position.terms}

    @property
    def shape(self) -> tuple[Size, ...]:
        """The sizes of the axes."""
        return tuple(size_of(axis) for axis in self.axes)

    def axis(self, number: int) -> int:
        """The number of an axis counted from either end.

        Raises:
            UnsupportedError: there is no such axis.
        """
        if not -self.rank <= number < self.rank:
            raise UnsupportedError(
                "an axis does not exist", expected=f"{self.rank} axes", found=str(number)
            )
        return number % self.rank

    def substitute(self, positions: Mapping[Atom, Position]) -> tuple[Position, ...]:
        """The positions with atoms replaced."""
        return tuple(position.substitute(positions) for position in self.positions)

    def with_axes(self, axes: Iterable[Axis]) -> View:
        """The same positions under other axes."""
        return replace(self, axes=tuple(axes))


@dataclass(frozen=True)
class Size:
    """A size: a number, times the number of rows or not.

    >>> print(Size(3, True), Size(4))
    3 * rows 4
    """

    number: int
    rows: bool = False

    def __str__(self) -> str:
        if not self.rows:
            return str(self.number)
        return "rows" if self.number == 1 else f"{self.number} * rows"


def size_of(axis: Axis) -> Size:
    """The size of an axis."""
    return Size(
        math.prod(atom.size for atom in axis if atom.size is not None),
        any(atom.size is None for atom in axis),
    )


def new_axis(size: Size) -> Axis:
    """An axis with atoms of its own: none for size 1, the rows first."""
    rows = (Atom(None),) if size.rows else ()
    return rows + (() if size.number == 1 else (Atom(size.number),))


def common_refinement(one: Axis, other: Axis) -> tuple[Axis, dict[Atom, Position]] | None:
    """Split the atoms of two axes of the same size, so that both become the same.

    Returns:
        The atoms, and what each atom of the given axes is in terms of them; None if the sizes of
        neither divide those of the other.

    >>> a, b, c = Atom(6), Atom(2), Atom(3)
    >>> atoms, positions = common_refinement((a,), (b, c))
    >>> [atom.size for atom in atoms], positions[a].text({x: n for x, n in zip(atoms, "ij")})
    ([2, 3], '3*i+j')
    """
    atoms: list[Atom] = []
    parts: dict[Atom, list[tuple[Atom, int]]] = {atom: [] for atom in (*one, *other)}
    left, right = list(one), list(other)
    rest_left = rest_right = 1
    while True:
        if rest_left == 1 and rest_right == 1:
            if not left and not right:
                break
            if not left or not right:
                return None
        first = left[-1] if left else None
        second = right[-1] if right else None
        if first is None or second is None:
            return None
        if (first.size is None) != (second.size is None):
            return None
        if first.size is None or second.size is None:
            shared = first
            parts[first].insert(0, (shared, 1))
            if second is not first:
                parts[second].insert(0, (shared, 1))
            atoms.insert(0, shared)
            left.pop()
            right.pop()
            continue
        of_left, of_right = first.size // rest_left, second.size // rest_right
        size = min(of_left, of_right)
        if max(of_left, of_right) % size:
            return None
        whole = size in (first.size, second.size)
        shared = (first if size == first.size else second) if whole else Atom(size)
        parts[first].insert(0, (shared, rest_left))
        if second is not first:
            parts[second].insert(0, (shared, rest_right))
        atoms.insert(0, shared)
        rest_left *= size
        rest_right *= size
        if rest_left == first.size:
            left.pop()
            rest_left = 1
        if rest_right == second.size:
            right.pop()
            rest_right = 1
    return tuple(atoms), {atom: Position(0, tuple(terms)) for atom, terms in parts.items() if terms}


def broadcast_axes(views: Sequence[View]) -> tuple[tuple[Axis, ...], tuple[View, ...]] | None:
    """Give views the same atoms along the axes that they share, counted from the last.

    Returns:
        The axes of the result, and the views in terms of them; None if atoms do not fit each other.
    """
    rank = max(view.rank for view in views)
    views = tuple(
        view.with_axes(((),) * (rank - view.rank) + view.axes) for view in map(fresh_atoms, views)
    )
    for place in range(rank):
        for n in range(1, len(views)):
            for m in range(n):
                one, other = views[m].axes[place], views[n].axes[place]
                if not one or not other or one == other:
                    continue
                refined = common_refinement(one, other)
                if refined is None:
                    return None
                atoms, positions = refined
                views = tuple(rewrite_atoms(view, positions) for view in views)
                views = tuple(
                    view.with_axes((*view.axes[:place], atoms, *view.axes[place + 1 :]))
                    if k in (m, n)
                    else view
                    for k, view in enumerate(views)
                )
    axes = tuple(
        next((view.axes[place] for view in views if view.axes[place]), ()) for place in range(rank)
    )
    return axes, views


def rewrite_atoms(view: View, positions: Mapping[Atom, Position]) -> View:
    """Replace atoms in the positions and in the axes of a view."""
    axes = tuple(
        tuple(
            part
            for atom in axis
            for part in ([p for p, _ in positions[atom].terms] if atom in positions else [atom])
        )
        for axis in view.axes
    )
    return replace(view, positions=view.substitute(positions), axes=axes)


def fresh_atoms(view: View) -> View:
    """The same view under atoms of its own, as for the second factor of a product with itself.

    The atom of the rows stays.
    """
    positions = {atom: at(Atom(atom.size)) for atom in view.atoms if atom.size is not None}
    return rewrite_atoms(view, positions)
