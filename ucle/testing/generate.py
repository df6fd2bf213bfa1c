"""Random EinSum programs with data, each from a seed.

`random_case(seed)` returns a program text, the dense value of every input, and the objects to pass:
NumPy arrays, scipy matrices, Arrow, pandas and polars tables, and tables of a database, with scalar
values or arrays. Programs with an infinite intermediate number, or whose result is not stable, are
drawn again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa
from ucle.inputs.table_input import TableInput
from ucle.language.bounds import statement_labels
from ucle.language.parse import parse_program
from ucle.language.syntax import accesses
from ucle.operators import (
    AND,
    BIT_AND,
    BIT_OR,
    EXPM1,
    GREATEST,
    ISINF,
    LEAST,
    LOG2,
    LOG10,
    OR,
    TANH,
    TRUNC,
    UNLESS,
    WHEN,
    XOR,
    trigonometry,
)
from ucle.program import einsum_program
from ucle.testing.oracle import evaluate
from ucle.testing.oracle_operators import FOLDS, FUNCTIONS, UndefinedError
from ucle.testing.random_inputs import make_input, random_array

Array = NDArray[Any]

CASTS = ("bool", "int64", "float32", "float64", "complex64", "complex128")
ONE_BY_ONE = frozenset(
    {
        *(row.name for row in trigonometry.MAPS if row is not TANH),
        *(row.name for row in (EXPM1, ISINF, LOG2, LOG10, TRUNC)),
        "bit_count",
        "signbit",
        "normal_quantile",
        "erf",
    }
)
"""Functions that tests cover one by one: random programs would rarely meet each of so many."""
CALLS = tuple(
    name
    for name in FUNCTIONS
    if name not in (*CASTS, "where", "clip", *ONE_BY_ONE)
    and not name.startswith(("logical", "random"))
)
ACCUMULATES = ("=", "+=", "max=", "min=", "*=", "any=", "all=", "count=", "mean=", "logsumexp=")
LOGICAL = tuple(row.symbol for row in (AND, OR, XOR))
BITS = tuple(row.symbol for row in (BIT_AND, BIT_OR))
INFIX = ("+", "-", "/", "*", "^", "<", ">=", "==", "!=", *LOGICAL, *BITS)
CHOICES = tuple(row.name for row in (LEAST, GREATEST, WHEN, UNLESS))
DTYPES = ("float64", "float32", "int64", "bool", "complex128", "complex64")
LABELS = ("i", "j", "k", "I", "row", "val")


@dataclass(frozen=True)
class Case:
    """A program with its data; call `create_tables` before you compile it."""

    text: str
    arrays: dict[str, Array]
    inputs: dict[str, Any]
    bounds: dict[str, int]
    outputs: tuple[str, ...] | None = None
    tables: dict[str, pa.Table] = field(default_factory=dict)
    annihilates: bool = field(default=False, kw_only=True)
    """True if numbers leave the range of their type, and 0 annihilates them."""
    indexed: bool = field(default=False, kw_only=True)
    """True if the program computes with labels: array shapes do not determine all sizes then."""

    def expected(self) -> dict[str, Array]:
        """Return the oracle's value of every tensor that the program defines."""
        return self.evaluate(self.arrays)

    def evaluate(
        self, arrays: dict[str, Array], operand: Callable[[Array], Array] = lambda array: array
    ) -> dict[str, Array]:
        """Return the oracle's values for other arrays; `operand` maps operands of functions."""
        wrapped = {x: y for x, y in self.inputs.items() if isinstance(y, TableInput)}
        fills = {name: value.fill or 0 for name, value in wrapped.items()}
        bounds = self.stated
        return evaluate(
            self.text, arrays, operand, annihilate=self.annihilates, bounds=bounds, fills=fills
        )

    @property
    def stated(self) -> dict[str, int]:
        """The bounds of the labels that occur in the program."""
        statements = parse_program(self.text)
        labels = {label for each in statements for label in statement_labels(each)}
        return {label: size for label, size in self.bounds.items() if label in labels}

    def compile(self, connection: duckdb.DuckDBPyConnection, **options: Any) -> Any:
        """Return the compiled program."""
        return einsum_program(
            self.text,
            inputs=self.inputs,
            bounds=self.stated,
            outputs=self.outputs,
            database=connection,
            **options,
        )

    def create_tables(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create the tables that the inputs name."""
        for name, data in self.tables.items():
            connection.register("data_of_case", data)
            connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM data_of_case')
            connection.unregister("data_of_case")

    def drop_tables(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Drop the tables that the inputs name."""
        for name in self.tables:
            connection.execute(f'DROP TABLE "{name}"')

    def __str__(self) -> str:
        kinds = {
            name: f"{type(value).__name__} {self.arrays[name].dtype}{self.arrays[name].shape}"
            for name, value in self.inputs.items()
        }
        return f"{self.text}\nbounds {self.bounds}, inputs {kinds}"


def random_case(seed: int, size: int = 6) -> Case:
    """Return a random program with data: the first draw with finite numbers and a stable result.

    Args:
        seed: the same number always returns the same case.
        size: the largest number of tensor accesses and function calls in the program.

    >>> case = random_case(7)
    >>> sorted(case.expected()) == sorted(random_case(7).expected())
    True
    """
    for attempt in range(10_000):
        rng = np.random.default_rng([seed, attempt])
        case = ProgramDraw(rng).case()
        if len(re.findall(r"\w+[\[(]", case.text)) <= size and is_stable(case, rng):
            return case
    raise AssertionError(f"no stable program for seed {seed}")


INEXACT = re.compile(
    r"[/^]|exp|log|sqrt|reciprocal|sigmoid|sin|cos|tan|elu\(|silu|softplus|mean|float32|complex64"
)
"""Matches operations that round, in the text of a program."""


def exact_case(seed: int, size: int = 6) -> Case:
    """Return a program in which no operation rounds, in whatever order it is computed.

    >>> bool(INEXACT.search(exact_case(3).text))
    False
    """
    for attempt in range(100_000):
        rng = np.random.default_rng([seed, attempt, 1])
        case = ProgramDraw(rng).case()
        if INEXACT.search(case.text) or len(re.findall(r"\w+[\[(]", case.text)) > size:
            continue
        if any(array.dtype.name in ("float32", "complex64") for array in case.arrays.values()):
            continue
        if is_stable(case, rng):
            return case
    raise AssertionError(f"no exact program for seed {seed}")


def special_case(seed: int) -> Case:
    """Return a program of sums, products and the like, with NaN and infinities in its inputs."""
    unstable = r"[/^]|exp|log|sqrt|reciprocal|sigmoid|sin|cos|tan|elu|softplus|complex|int64|mean"
    for attempt in range(1000):
        case = random_case(seed + 1000 * attempt, size=8)
        rng = np.random.default_rng(seed)
        arrays = {name: array.copy() for name, array in case.arrays.items()}
        filled = [array for array in arrays.values() if array.size and array.dtype.kind == "f"]
        complex_ = any(array.dtype.kind == "c" for array in arrays.values())
        if not filled or complex_ or re.search(unstable, case.text):
            continue
        for _ in range(2):
            array = filled[rng.integers(len(filled))]
            array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -np.inf])
        passed = {name: make_input(rng, name, array) for name, array in arrays.items()}
        inputs = {name: value for name, (value, _) in passed.items()}
        tables = {name: table for name, (_, table) in passed.items() if table is not None}
        return Case(case.text, arrays, inputs, case.bounds, case.outputs, tables)
    raise AssertionError(f"no program for seed {seed}")


HUGE = {4: 1e30, 8: 1e200}
"""By the bytes of a real type, a number whose square leaves its range."""


def outgrowing_case(seed: int) -> Case:
    """Return a program of sums, products and the like whose numbers exceed their type's range.

    A number exceeds it in every order of the products, or in none.
    """
    unstable = (
        r"[/^]|log|sqrt|reciprocal|complex|int64|bool|float32|mean|silu|gelu|prod|[*]=|round"
        r"|sin|cos|tan|\b0 [*]|[*] 0|sigmoid|softplus|0.5|1.5"
    )
    for attempt in range(1000):
        case = random_case(seed + 1000 * attempt, size=8)
        rng = np.random.default_rng(seed)
        arrays = {name: np.asarray(np.abs(array)) for name, array in case.arrays.items()}
        filled = [array for array in arrays.values() if array.size and array.dtype.kind == "f"]
        types = {array.dtype.kind for array in arrays.values()}
        if not filled or types != {"f"} or "*" not in case.text or re.search(unstable, case.text):
            continue
        for array in filled:
            array[...] = np.ceil(array)
            stored = np.flatnonzero(array)
            chosen = stored[rng.random(stored.size) < 0.5]
            array.flat[chosen] = HUGE[array.itemsize]
        passed = {name: make_input(rng, name, array) for name, array in arrays.items()}
        inputs = {name: value for name, (value, _) in passed.items()}
        tables = {name: table for name, (_, table) in passed.items() if table is not None}
        return Case(case.text, arrays, inputs, case.bounds, case.outputs, tables, annihilates=True)
    raise AssertionError(f"no program for seed {seed}")


def is_stable(case: Case, rng: np.random.Generator) -> bool:
    """True if the result is meaningful: all numbers are finite, and no discontinuity is nearby.

    1 / 0 is inf or -inf, depending on the sign of the zero, which no sparse format keeps. Integers
    stay far from overflow.
    """
    finite = True

    def check(array: Array) -> Array:
        nonlocal finite
        finite = finite and bool((np.abs(array) < 1e6).all())
        return array

    def negate_zeros(array: Array) -> Array:
        if array.dtype.kind == "c":
            turned = array.copy()
            turned.real[turned.real == 0] = -0.0
            turned.imag[turned.imag == 0] = -0.0
            return turned
        return np.where(array == 0, -0.0, array).astype(array.dtype, copy=False)

    def perturb_array(array: Array) -> Array:
        if array.dtype.kind in "bi":
            return array
        small = 1e-11 if array.real.dtype.itemsize == 8 else 1e-6
        return (array * (1 + small * rng.normal(size=array.shape))).astype(array.dtype)

    try:
        exact = case.evaluate(case.arrays, check)
        if case.indexed:
            case.evaluate({name: _fill(case, name) for name in case.arrays})
        else:
            evaluate(case.text, {name: _fill(case, name) for name in case.arrays})
        nearby = [
            case.evaluate({n: perturb_array(a) for n, a in case.arrays.items()}),
            case.evaluate(case.arrays, perturb_array),
            case.evaluate(case.arrays, negate_zeros),
        ]
    except (UndefinedError, TypeError, ValueError, OverflowError, IndexError):
        return False  # NumPy has no such operation
    if not finite:
        return False
    for other in nearby:
        for name, array in exact.items():
            wide = array.dtype.kind in "bi" or array.real.dtype.itemsize == 8
            tolerance = 1e-8 if wide else 1e-4
            if not np.allclose(
                other[name], array, rtol=tolerance, atol=tolerance / 10, equal_nan=True
            ):
                return False
    return all(np.abs(a[np.isfinite(a)]).max(initial=0.0) < 1e9 for a in exact.values())


def _fill(case: Case, name: str) -> Array:
    """The fill of an input, as a tensor of the same rank."""
    array = case.arrays[name]
    shape = array.shape if case.indexed else (1,) * array.ndim
    return np.full(shape, getattr(case.inputs[name], "fill", 0), array.dtype)


class ProgramDraw:
    """One draw of a program."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        sizes = [self._pick((0, 1, 2, 3, 4, 5), (1, 4, 8, 8, 5, 3)) for _ in range(2)]
        self._bounds: dict[str, int] = {name: self._pick(sizes) for name in LABELS}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._arrays: dict[str, Array] = {}
        # Most programs have one type; in the others types are mixed.
        own = self._pick(DTYPES, (8, 3, 3, 2, 2, 1))
        self._dtypes = (own,) if rng.random() < 0.7 else DTYPES

    def case(self) -> Case:
        """Return the program of this draw with its data."""
        rng = self._rng
        statements, defined = [], []
        for number in range(self._pick((1, 2, 3), (5, 3, 2))):
            expression, labels = self._expression(self._pick((1, 2, 3), (3, 4, 2)))
            axes = self._axes(labels)
            name = f"T{number}"
            operator = self._pick(ACCUMULATES, (12, 8, 1, 1, 1, 1, 1, 1, 1, 1))
            if 0 in self._bounds.values() and operator in ("max=", "min=", "logsumexp="):
                operator = "="  # the others have no value over an empty range
            target = f"{name}[{','.join(axes)}]" if axes or rng.random() < 0.5 else name
            statements.append(f"{target} {operator} {expression}")
            defined.append(name)
            self._shapes[name] = tuple(self._bounds[x] for x in axes)
        outputs = tuple(defined) if rng.random() < 0.2 else None
        if rng.random() < 0.2:
            rng.shuffle(statements)
        return self._with_inputs("\n".join(statements), outputs)

    def _axes(self, labels: list[str]) -> list[str]:
        """Draw the labels on the left of a statement whose right side has these."""
        axes = [x for x in labels if self._rng.random() < 0.7][:5]
        self._rng.shuffle(axes)
        return axes

    def _with_inputs(self, text: str, outputs: tuple[str, ...] | None) -> Case:
        inputs: dict[str, Any] = {}
        tables: dict[str, pa.Table] = {}
        # Some tensors were drawn for a part of the program that was dropped.
        used = {a.tensor for s in parse_program(text) for a in accesses(s.expression)}
        arrays = {name: array for name, array in self._arrays.items() if name in used}
        for name, array in arrays.items():
            inputs[name], table = make_input(self._rng, name, array)
            if table is not None:
                tables[name] = table
        return Case(text, arrays, inputs, self._bounds, outputs, tables)

    def _pick(self, choices: Any, weights: Any = None) -> Any:
        p = None if weights is None else np.array(weights) / sum(weights)
        return choices[self._rng.choice(len(choices), p=p)]

    def _expression(self, depth: int) -> tuple[str, list[str]]:
        """Text and distinct labels of a random expression, at most six of them."""
        if depth == 0:
            return self._access()
        kinds = ("access", "call", "scalar", "reduction", "binary", "product", "three")
        kind = self._pick(kinds, (2, 11, 5, 3, 10, 8, 2))
        if kind == "access":
            return self._access()
        first, labels = self._expression(depth - 1)
        if kind == "call":
            return f"{self._function()}({first})", labels
        if kind == "scalar":
            return self._scalar(first), labels
        if kind == "reduction" and labels and 0 not in self._bounds.values():
            return self._reduction(first, labels)
        second, more = self._expression(depth - 1)
        every = list(dict.fromkeys((*labels, *more)))
        if len(every) > 5:
            return first, labels
        if kind == "binary":
            return self._binary(first, second), every
        third, last = self._access()
        joined = list(dict.fromkeys((*every, *last)))
        if kind == "three" and len(joined) <= 5:
            return f"where({first}, {second}, {third})", joined
        return f"{first} * {second} * {third}", joined

    def _function(self) -> str:
        return str(self._pick(CASTS if self._rng.random() < 0.1 else CALLS))

    def _binary(self, left: str, right: str) -> str:
        if self._rng.random() < 0.15:
            return f"{self._pick(CHOICES)}({left}, {right})"
        operator = self._pick(INFIX, (8, 8, 4, 8, 2, 2, 2, 2, 1, 2, 1, 1, 2, 2))
        return f"({left} {operator} {right})"

    def _reduction(self, argument: str, labels: list[str]) -> tuple[str, list[str]]:
        over = [x for x in labels if self._rng.random() < 0.5] or labels[:1]
        text = f"{self._pick(tuple(FOLDS))}[{','.join(over)}]({argument})"
        return text, [x for x in labels if x not in over]

    def _scalar(self, expression: str) -> str:
        constant = self._pick(("0.5", "2", "3", "-1.5", "0", "1", "2j"), (4, 4, 4, 4, 4, 4, 1))
        templates = (
            "({c} * {x})", "({x} * {c})", "({x} + {c})", "({c} - {x})", "({x} - {c})",
            "({x} / {c})", "({c} / {x})", "(({x}) ^ 2)", "(({x}) ^ 0.5)", "(({c}) ^ ({x}))",
            "({x} > {c})", "max({x}, {c})", "clip({x}, 0, {c})", "({x} == {c})", "(({x}) ^ 3)",
            "({x} << {c})", "({x} >> {c})", "(0 < {x} <= {c})", "xor({x}, {c})",
        )  # fmt: skip
        return str(self._pick(templates)).format(c=constant, x=expression)

    def _access(self) -> tuple[str, list[str]]:
        fitting = [n for n in self._shapes if self._fits(n)]
        if fitting and self._rng.random() < 0.45:
            name = self._pick(fitting)
        else:
            name = f"{self._pick(('A', 'b', 'edges'))}{len(self._arrays)}"
            rank = self._pick((0, 1, 2, 3, 4, 5), (2, 10, 16, 6, 2, 1))
            self._shapes[name] = tuple(self._bounds[self._pick(LABELS)] for _ in range(rank))
            density = self._pick((0.0, 0.2, 0.5, 0.8, 1.0), (1, 4, 4, 2, 3))
            dtype = self._pick(self._dtypes)
            self._arrays[name] = self._data(self._shapes[name], density, dtype)
        labels = [
            self._pick([x for x in LABELS if self._bounds[x] == size])
            for size in self._shapes[name]
        ]
        text = f"{name}[{','.join(labels)}]" if labels else name
        return text, list(dict.fromkeys(labels))

    def _data(self, shape: tuple[int, ...], density: float, dtype: str) -> Array:
        """A random array, sometimes symmetric where that is possible."""
        array = random_array(self._rng, shape, density, dtype)
        if len(shape) > 1 and shape[0] == shape[1] and self._rng.random() < 0.25:
            upper = np.triu(np.ones(shape[:2], bool)).reshape(*shape[:2], *[1] * (len(shape) - 2))
            array = np.where(upper, array, array.swapaxes(0, 1))
        return array

    def _fits(self, name: str) -> bool:
        return set(self._shapes[name]) <= set(self._bounds.values())
