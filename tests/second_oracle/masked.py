"""Random programs in which something sparse is a mask for what is computed beside it.

Trees as those of `draw`, of which a few are random all through, and others are what people write:
products of vectors along edges, distances, predictions of factorisations, messages that are
normalised. What is looked at behind the mask may stand in a statement of its own, which others
read, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from draw import DEFINED, LABELS, NAMES, Draw, Drawn
from meaning import Expression, Statement, UndefinedError, free

MASKED_KINDS = ("exact", "smooth", "exact", "smooth", "wild")
MAPS = {
    "exact": ("abs", "relu", "square", "neg", "not", "floor", "bool", "sign"),
    "smooth": ("sigmoid", "tanh", "exp", "abs", "relu", "square", "sqrt", "log1p"),
    "wild": ("log", "exp", "reciprocal", "sigmoid", "isfinite", "isnan", "sqrt", "abs"),
}
REDUCTIONS = ("sum", "sum", "sum", "max", "min", "prod", "any", "mean")
COMPARED = ("<", "<", ">=", "==", "!=")


def draw_masked(seed: int) -> Drawn:
    """The program of a seed: the first draw that has an answer which storage cannot change."""
    for attempt in range(1000):
        rng = np.random.default_rng([seed, attempt, 17])
        try:
            drawn = _Masked(rng, MASKED_KINDS[seed % len(MASKED_KINDS)]).program()
        except UndefinedError:
            continue
        if drawn is not None:
            return drawn
    raise AssertionError(f"no program for seed {seed}")


class _Masked(Draw):
    def __init__(self, rng: np.random.Generator, kind: str) -> None:
        super().__init__(rng, kind)
        sizes = rng.choice([1, 2, 3, 4, 5, 7], len(LABELS), p=[0.06, 0.14, 0.3, 0.25, 0.2, 0.05])
        common = int(sizes[0])
        self._bounds = {
            label: common if rng.random() < 0.4 else int(n)
            for label, n in zip(LABELS, sizes, strict=True)
        }
        self._sparse = False

    def program(self) -> Drawn | None:
        rng = self._rng
        pool = list(LABELS)
        rng.shuffle(pool)
        row, column, *rest = pool
        statements: list[Statement] = []
        looked_at = self._inner(row, column, rest[0])
        names = list(DEFINED)
        unmasked: Expression | None = None
        if rng.random() < 0.4:
            labels = sorted(free(looked_at))
            rng.shuffle(labels)
            self._axes[name := names.pop(0)] = tuple(labels)
            statements.append((name, tuple(labels), "=", looked_at))
            looked_at = unmasked = ("access", name, self._relabelled(tuple(labels), pool[:3]))
            if rng.random() < 0.6:
                looked_at = self._mapped(looked_at)
        self._add(statements, names.pop(0), self._behind(self._mask(row, column), looked_at, pool))
        if unmasked is not None and rng.random() < 0.4:  # what nobody masks is read all over
            self._add(statements, names.pop(0), unmasked)
        if rng.random() < 0.25:
            name = statements[-1][0]
            read: Expression = ("access", name, self._axes[name])
            other = self._inner(row, column, rest[0])
            self._add(statements, names.pop(0), self._behind(read, other, pool))
        return self._checked(tuple(statements))

    def _add(self, statements: list[Statement], name: str, expression: Expression) -> None:
        labels = sorted(free(expression))
        kept = [x for x in labels if self._rng.random() < 0.6]
        self._rng.shuffle(kept)
        assignment = self._pick(("+=", "+=", "=", "max=", "min=", "any=", "mean=", "count="))
        if assignment not in ("=", "max=", "min=") and len(kept) == len(labels):
            assignment = "="
        statements.append((name, tuple(kept), assignment, expression))
        self._axes[name] = tuple(kept)

    # ---- What is a mask ----

    def _mask(self, row: str, column: str) -> Expression:
        rng = self._rng
        axes = [row, column]
        if rng.random() < 0.15:
            axes = [row]
        if rng.random() < 0.1:
            axes.append(self._pick([x for x in LABELS if x not in axes]))
        rng.shuffle(axes)
        read = self._new(tuple(axes), sparse=True)
        if rng.random() < 0.2:
            other = self._new(tuple(reversed(axes)), sparse=True)
            return ("binary", self._pick(("*", "*", "-", "+", "max")), read, other)
        if rng.random() < 0.15:
            return ("call", self._pick(("relu", "abs", "square", "neg")), (read,))
        return read

    def _behind(self, mask: Expression, looked_at: Expression, pool: list[str]) -> Expression:
        """The mask with what is only looked at where it is."""
        rng = self._rng
        choice = rng.random()
        if choice < 0.4:
            sides = [mask, looked_at]
            if rng.random() < 0.25:
                sides.append(self._mask(pool[0], pool[1]))
            if rng.random() < 0.2:
                sides.append(self._inner(pool[0], pool[1], pool[2]))
            rng.shuffle(sides)
            made: Expression = sides[0]
            if rng.random() < 0.15:
                made = ("binary", "*", ("number", self._pick((2, -1, 0.5))), made)
            for side in sides[1:]:
                made = ("binary", "*", made, side)
            return made
        single = any(array.dtype == np.float32 for array in self._arrays.values())
        if choice < 0.5 or (choice < 0.62 and single):  # `where` makes float64 of float32 and 0
            return ("call", "when", (mask, looked_at))
        if choice < 0.62:
            compared = ("binary", self._pick(("!=", ">", "!=")), mask, ("number", 0))
            return ("call", "where", (compared, looked_at, ("number", 0)))
        if choice < 0.67:
            return ("call", "unless", (("binary", "==", mask, ("number", 0)), looked_at))
        if choice < 0.8 and self._kind != "exact":
            size: Expression = ("call", "abs", (looked_at,))
            one: Expression = ("number", self._pick((1, 0.5)))
            kind = self._pick(("max", "+"))
            divisor = ("binary", kind, size, one) if self._kind == "smooth" else looked_at
            return ("binary", "/", mask, divisor)
        if choice < 0.9:
            compared = ("binary", self._pick(COMPARED), looked_at, self._vector(pool[0]))
            return ("binary", self._pick(("*", "and", "*")), mask, compared)
        outer = ("binary", self._pick(("-", "+", "min", "max", "or")), mask, looked_at)
        return ("binary", "*", mask, outer)

    # ---- What is looked at ----

    def _inner(self, row: str, column: str, within: str) -> Expression:
        rng = self._rng
        choice = rng.random()
        if choice < 0.2:
            return self._expression(int(rng.integers(1, 4)), [row, column, within])
        if choice < 0.5:
            made = self._along(row, column)
        elif choice < 0.85:
            pair = self._joined(self._matrix(row, within), self._matrix(column, within))
            if rng.random() < 0.3:
                pair = self._mapped(pair)
            made = ("fold", self._pick(REDUCTIONS), (within,), pair)
        else:
            made = self._joined(self._along(row, column), self._vector(row))
        return self._mapped(made) if rng.random() < 0.6 else made

    def _along(self, row: str, column: str) -> Expression:
        return self._joined(self._vector(row), self._vector(column))

    def _joined(self, one: Expression, other: Expression) -> Expression:
        operators = ("-", "-", "+", "*", "*", "min", "max", *COMPARED[:2], "or")
        if self._kind == "wild" and self._rng.random() < 0.2:
            operators = ("/",)
        return ("binary", self._pick(operators), one, other)

    def _mapped(self, inner: Expression) -> Expression:
        name = self._pick(MAPS[self._kind])
        if self._kind == "smooth" and name in ("sqrt", "log1p"):
            inner = ("call", "abs", (inner,))
        made: Expression = ("call", name, (inner,))
        if self._rng.random() < 0.3:
            number = ("number", self._pick((1, 2, 0.5, -1)))
            made = ("binary", self._pick(("+", "-", "*", "max")), made, number)
        return made

    def _vector(self, label: str) -> Expression:
        return self._new((label,)) if self._rng.random() < 0.8 else self._access([label])

    def _matrix(self, row: str, column: str) -> Expression:
        axes = [row, column]
        self._rng.shuffle(axes)
        return self._new(tuple(axes))

    def _new(self, axes: tuple[str, ...], *, sparse: bool = False) -> Expression:
        """An access to a new input, or, where there is no name left, to one that there is."""
        names = [x for x in NAMES if x not in self._axes]
        same = [x for x in self._arrays if set(self._axes[x]) == set(axes)]
        if same and (not names or self._rng.random() < 0.15):
            return ("access", name := self._pick(same), self._axes[name])
        if not names:
            raise UndefinedError("no name is left")
        self._axes[name := self._pick(names)] = axes
        self._sparse = sparse
        shape = tuple(self._bounds[x] for x in axes)
        self._arrays[name], self._fills[name] = self._data(shape)
        self._sparse = False
        return ("access", name, axes)

    def _data(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        array, fill = super()._data(shape)
        if self._sparse:
            kept = self._rng.random(shape) < self._pick((0.15, 0.3, 0.5))
            fill = fill if self._rng.random() < 0.3 else array.dtype.type(0).item()
            array = np.where(kept, array, array.dtype.type(fill)).astype(array.dtype)
        return array, fill
