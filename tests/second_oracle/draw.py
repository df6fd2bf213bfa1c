"""Random programs with their inputs, each from a seed; `meaning` says what they are worth.

Three kinds, which differ in what may be asked of the answers:

- exact: whole numbers and quarters under operations that floats do exactly; answers are equal.
- smooth: functions of moderate slope on numbers of every size between; answers are close.
- wild: NaN, infinities, division by zero, logarithms of nothing; answers are NumPy's, but where
  they hang on the sign of a zero, which no sparse format keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from meaning import Expression, Statement, UndefinedError, evaluate, free, parts
from numpy.typing import NDArray

KINDS = ("exact", "smooth", "wild")
LABELS = ("i", "j", "k", "L", "Node", "order")
NAMES = ("A", "b", "C", "select", "Größe", "x_1", "a")
DEFINED = ("T", "t2", "Z", "out", "Values")

EXACT_BINARY = ("+", "-", "*", "*", "*", "min", "max", "<", ">=", "==", "!=", "and", "or", "xor")
EXACT_CALLS = ("relu", "abs", "square", "sign", "neg", "not", "floor", "round", "where", "when")
EXACT_CALLS += ("unless", "clip", "float64", "int64", "bool")
SMOOTH_CALLS = ("sigmoid", "tanh", "log1p", "sqrt", "exp", "relu", "abs", "where", "when", "neg")
WILD_CALLS = (
    "log",
    "reciprocal",
    "exp",
    "isnan",
    "isfinite",
    "abs",
    "relu",
    "when",
    "where",
    "neg",
)
FOLDS = ("sum", "sum", "max", "min", "any", "all", "count", "mean", "prod")
ASSIGNMENTS = ("=", "=", "=", "+=", "max=", "min=", "any=", "all=", "count=", "mean=", "*=")


@dataclass(frozen=True)
class Drawn:
    """A program with the dense values and the fills of its inputs, and what it is worth."""

    kind: str
    statements: tuple[Statement, ...]
    arrays: dict[str, NDArray[Any]]
    fills: dict[str, Any]
    bounds: dict[str, int]
    expected: dict[str, NDArray[Any]]

    def __str__(self) -> str:
        about = {
            name: f"{a.dtype}{a.shape}, fill {self.fills[name]}" for name, a in self.arrays.items()
        }
        return f"{self.kind}: {written(self.statements)}\n{about}"


def draw(seed: int) -> Drawn:
    """The program of a seed: the first draw that has an answer which storage cannot change."""
    for attempt in range(1000):
        rng = np.random.default_rng([seed, attempt])
        try:
            drawn = Draw(rng, KINDS[seed % len(KINDS)]).program()
        except UndefinedError:
            continue
        if drawn is not None:
            return drawn
    raise AssertionError(f"no program for seed {seed}")


class Draw:
    def __init__(self, rng: np.random.Generator, kind: str) -> None:
        self._rng = rng
        self._kind = kind
        sizes = [
            int(n) for n in rng.choice([0, 1, 2, 3, 4, 7], 3, p=[0.04, 0.1, 0.2, 0.3, 0.26, 0.1])
        ]
        self._bounds = {label: int(rng.choice(sizes)) for label in LABELS}
        self._axes: dict[str, tuple[str, ...]] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        self._fills: dict[str, Any] = {}
        self._dtypes = {
            "exact": ("float64", "float64", "int64", "bool", "float32"),
            "smooth": ("float64", "float64", "int64", "bool", "complex128"),
            "wild": ("float64",),
        }[kind]

    def program(self) -> Drawn | None:
        statements: list[Statement] = []
        for number in range(int(self._rng.choice([1, 2, 3, 4], p=[0.45, 0.3, 0.15, 0.1]))):
            expression = self._expression(int(self._rng.integers(1, 4)), self._pool())
            labels = sorted(free(expression))
            kept = [x for x in labels if self._rng.random() < 0.55]
            self._rng.shuffle(kept)
            assignment = self._pick(ASSIGNMENTS)
            if assignment not in ("=", "max=", "min=") and len(kept) == len(labels):
                assignment = "="  # an aggregation over nothing is no question of interest
            target = DEFINED[number]
            statements.append((target, tuple(kept), assignment, expression))
            self._axes[target] = tuple(kept)
        return self._checked(tuple(statements))

    def _checked(self, statements: tuple[Statement, ...]) -> Drawn | None:
        """The program, if its answer hangs neither on rounding nor on the sign of a zero."""
        expected = evaluate(statements, self._arrays, without_signs)
        if self._kind == "wild":
            if _differs(expected, evaluate(statements, self._arrays), 1e-12):
                return None
            if _differs(expected, evaluate(statements, self._arrays, _with_signs), 1e-12):
                return None
        else:
            limits = _Limits(2**40 if self._kind == "exact" else 1e8, self._kind == "exact")
            evaluate(statements, self._arrays, limits)
            # The fills meet each other where nothing is stored.
            lone = {
                name: np.full((1,) * a.ndim, self._fills[name], a.dtype)
                for name, a in self._arrays.items()
            }
            evaluate(statements, lone, limits)
            if not limits.held:
                return None
            if self._kind == "smooth":
                for scale in (1e-11, -3e-12):
                    near = evaluate(statements, self._arrays, _Moved(scale, self._rng))
                    if _differs(expected, near, 1e-8):
                        return None
        used = {x for s in statements for x in _tensors(s[3])}
        arrays = {name: a for name, a in self._arrays.items() if name in used}
        return Drawn(self._kind, statements, arrays, self._fills, self._bounds, expected)

    def _pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self._rng.integers(len(choices)))]

    def _pool(self) -> list[str]:
        pool = list(LABELS)
        self._rng.shuffle(pool)
        return pool[: int(self._rng.integers(1, 5))]

    def _expression(self, depth: int, pool: list[str]) -> Expression:
        rng = self._rng
        if depth == 0 or rng.random() < 0.1:
            return self._access(pool)
        choice = rng.random()
        if choice < 0.6:
            return self._binary(depth, pool)
        if choice < 0.8:
            return self._call(depth, pool)
        inner = self._expression(depth - 1, pool)
        over = sorted(free(inner))
        if not over:
            return inner
        some = [x for x in over if rng.random() < 0.5] or over[:1]
        return ("fold", self._pick(FOLDS), tuple(some), inner)

    def _binary(self, depth: int, pool: list[str]) -> Expression:
        left = self._expression(depth - 1, pool)
        operators = {
            "exact": EXACT_BINARY,
            "smooth": ("+", "-", "*", "*", "*", "min", "max", "<", "/"),
            "wild": ("+", "-", "*", "*", "/", "min", "max", "<", ">=", "=="),
        }[self._kind]
        operator = self._pick(operators)
        if self._rng.random() < 0.2:
            number = self._pick((2, 1, 3, 0.5, -1, 0))
            if operator in ("+", "-", "*", "min", "max", "<", ">=", "=="):
                sides = [left, ("number", number)]
                self._rng.shuffle(sides)
                return ("binary", operator, *sides)
            if self._rng.random() < 0.5:
                return ("binary", "^", left, ("number", 2))
        right = self._expression(int(self._rng.integers(0, depth)), pool)
        if operator == "/" and self._kind == "smooth":
            right = ("binary", "+", ("number", 1), ("call", "abs", (right,)))
        return ("binary", operator, left, right)

    def _call(self, depth: int, pool: list[str]) -> Expression:
        names = {"exact": EXACT_CALLS, "smooth": SMOOTH_CALLS, "wild": WILD_CALLS}[self._kind]
        name = self._pick(names)
        inner = self._expression(depth - 1, pool)
        if name == "clip":
            return ("call", name, (inner, ("number", -1), ("number", 2)))
        if name in ("where", "when", "unless"):
            condition = ("binary", self._pick(("<", "==", "!=")), self._access(pool), ("number", 1))
            others = (self._access(pool),) if name == "where" else ()
            return ("call", name, (condition, inner, *others))
        if self._kind == "smooth" and name in ("log1p", "sqrt"):
            inner = ("call", "abs", (inner,))
        return ("call", name, (inner,))

    def _access(self, pool: list[str]) -> Expression:
        rng = self._rng
        fitting = [x for x, axes in self._axes.items() if set(axes) <= set(pool)]
        if fitting and rng.random() < 0.5:
            name = self._pick(fitting)
            return ("access", name, self._relabelled(self._axes[name], pool))
        free_names = [x for x in NAMES if x not in self._axes]
        if not free_names:
            return ("access", name := self._pick(list(self._arrays)), self._axes[name])
        name = self._pick(free_names)
        axes = [x for x in pool if rng.random() < 0.6][:4]
        if axes and rng.random() < 0.1:
            axes.append(self._pick(axes))
        rng.shuffle(axes)
        self._axes[name] = tuple(axes)
        shape = tuple(self._bounds[x] for x in axes)
        self._arrays[name], self._fills[name] = self._data(shape)
        return ("access", name, tuple(axes))

    def _relabelled(self, axes: tuple[str, ...], pool: list[str]) -> tuple[str, ...]:
        """Keep the axes, or draw labels of equal sizes: transposed, or joined with itself."""
        if self._rng.random() < 0.6:
            return axes
        same = {x: [y for y in pool if self._bounds[y] == self._bounds[x]] or [x] for x in axes}
        return tuple(self._pick(same[x]) for x in axes)

    def _data(self, shape: tuple[int, ...]) -> tuple[NDArray[Any], Any]:
        rng = self._rng
        dtype = np.dtype(self._pick(self._dtypes))
        density = self._pick((0.0, 0.15, 0.5, 0.5, 1.0))
        fill = 0
        if rng.random() < 0.15 and dtype.kind != "c":
            fill = {"exact": 2, "smooth": 1, "wild": self._pick((1, np.inf, -np.inf))}[self._kind]
        if dtype.kind == "b":
            values: Any = rng.random(shape) < 0.6
            fill = bool(fill)
        elif self._kind == "exact":
            values = rng.integers(-4, 5, shape) / (1 if dtype.kind == "i" else 4)
        elif self._kind == "smooth":
            values = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 2, shape)
            values = np.round(values) if dtype.kind == "i" else values
            if dtype.kind == "c":
                values = values + 1j * rng.normal(size=shape)
        else:
            values = rng.choice([0.5, 1.0, -1.0, 2.0, -3.0, np.nan, np.inf, -np.inf, 4.0], shape)
            if rng.random() < 0.5:
                values = np.where(np.isfinite(values), values, 1.0)
        stored = rng.random(shape) < density
        return np.where(stored, values, fill).astype(dtype), dtype.type(fill).item()


def without_signs(array: Any) -> Any:
    """-0.0 is 0: adding 0 does it, to real and imaginary parts alike."""
    return array + array.dtype.type(0) if _inexact(array) else array


def _with_signs(array: Any) -> Any:
    if not _inexact(array) or array.dtype.kind == "c":
        return array
    return np.where(array == 0, -np.zeros((), array.dtype), array)


def _inexact(array: Any) -> bool:
    return isinstance(array, np.ndarray | np.generic) and array.dtype.kind in "fc"


class _Limits:
    """Notes whether everything stays finite and small, and on a grid that floats hold."""

    def __init__(self, largest: float, grid: bool) -> None:
        self._largest = largest
        self._grid = grid
        self.held = True

    def __call__(self, array: Any) -> Any:
        if isinstance(array, np.ndarray | np.generic) and array.dtype.kind in "ifc":
            largest = 2**18 if array.dtype == np.float32 else self._largest
            self.held = self.held and bool(np.all(np.abs(array) < largest))
            if self._grid and array.dtype.kind == "f":
                fine = array * (64 if array.dtype == np.float32 else 2**12)
                self.held = self.held and bool(np.all(fine == np.rint(fine)))
        return array


class _Moved:
    """Moves every number a little."""

    def __init__(self, scale: float, rng: np.random.Generator) -> None:
        self._scale = scale
        self._rng = rng

    def __call__(self, array: Any) -> Any:
        if not _inexact(array):
            return array
        moved = array * (1 + self._scale * self._rng.random(np.shape(array)))
        return moved.astype(array.dtype)


def _differs(one: dict[str, Any], other: dict[str, Any], tolerance: float) -> bool:
    return not all(
        np.allclose(other[name], array, rtol=tolerance, atol=tolerance, equal_nan=True)
        for name, array in one.items()
    )


def _tensors(expression: Expression) -> set[str]:
    if expression[0] == "access":
        return {expression[1]}
    return set().union(*map(_tensors, parts(expression)))


# Text -------------------------------------------------------------------------------------------

_LEVELS = {"or": 1, "xor": 1, "and": 2, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4}
_LEVELS |= {"+": 5, "-": 5, "*": 6, "/": 6, "^": 8}


def written(statements: Sequence[Statement], rng: np.random.Generator | None = None) -> str:
    """The program as a person might write it; with `rng` in another of the ways that there are."""
    lines = [
        f"{target}[{','.join(labels)}] {assignment} {_text(expression, rng)}"
        for target, labels, assignment, expression in statements
    ]
    if rng is None:
        return "; ".join(lines)
    rng.shuffle(lines)  # statements may stand in any order
    ends = ["\n", ";", " ; ", "   # a comment\n", "\r\n\n"]
    return "".join(line + ends[int(rng.integers(len(ends)))] for line in lines)


def _text(expression: Expression, rng: np.random.Generator | None) -> str:
    return _write(expression, rng)[0]


def _write(expression: Expression, rng: np.random.Generator | None) -> tuple[str, int]:
    """The text, and how strongly its outermost operation binds."""
    kind = expression[0]
    gap = "" if rng is None or rng.random() < 0.8 else "\n "  # only inside of brackets
    if kind == "number":
        return (f"({expression[1]})", 9) if expression[1] < 0 else (str(expression[1]), 9)
    if kind == "access":
        scalar = not expression[2] and rng is not None and rng.random() < 0.5
        return expression[1] if scalar else f"{expression[1]}[{','.join(expression[2])}]", 9
    if kind == "fold":
        return f"{expression[1]}[{','.join(expression[2])}]({gap}{_text(expression[3], rng)})", 9
    if kind == "call":
        texts = [_write(x, rng) for x in expression[2]]
        if expression[1] == "neg":
            return f"-{_bracketed(texts[0], 7, gap)}", 7
        if expression[1] == "not":
            return f"(not {_bracketed(texts[0], 4, gap)})", 9
        return f"{expression[1]}({gap}{(',' + (gap or ' ')).join(t for t, _ in texts)})", 9
    _, operator, left, right = expression
    if operator in ("min", "max"):
        return f"{operator}({_text(left, rng)}, {gap}{_text(right, rng)})", 9
    level = _LEVELS[operator]
    loose = level + (operator in ("<", "<=", ">", ">=", "==", "!=", "^"))  # these do not chain
    texts = (
        _bracketed(_write(left, rng), loose, gap),
        _bracketed(_write(right, rng), level + 1, gap),
    )
    symbol = "**" if operator == "^" and rng is not None and rng.random() < 0.5 else operator
    return f"{texts[0]} {symbol} {texts[1]}", level


def _bracketed(written_: tuple[str, int], level: int, gap: str) -> str:
    text, binds = written_
    return text if binds >= level else f"({gap}{text})"
