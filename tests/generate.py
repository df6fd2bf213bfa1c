"""Random EinSum programs with data, each from a seed.

`random_case(seed)` gives a program text, the dense value of every input, and the objects to pass:
NumPy arrays, scipy matrices, Arrow, pandas and polars tables, and tables of a database, with scalar
values or arrays. Values are small multiples of 1/4, so that sums and products are exact; programs
that send a number to infinity inside, or whose result is not stable, are drawn again.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray
from oracle import evaluate

import ucle
from ucle.parse import parse_program
from ucle.syntax import accesses

Array = NDArray[np.float64]

FUNCTIONS = (
    "relu", "leaky_relu", "sigmoid", "tanh", "exp", "log", "log1p",
    "sqrt", "abs", "neg", "square", "reciprocal", "sign",
)  # fmt: skip
LABELS = ("i", "j", "k", "I", "row", "val")
KINDS = (
    "numpy", "numpy", "scipy", "arrow", "pandas", "polars",
    "table", "table", "unsummed", "arrays", "arrays", "lists", "flat",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A program with its data; `tables` are to be created before it is compiled."""

    text: str
    arrays: dict[str, Array]
    inputs: dict[str, Any]
    bounds: dict[str, int]
    outputs: tuple[str, ...] | None = None
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def expected(self) -> dict[str, Array]:
        """What the oracle says of every tensor that the program defines."""
        return evaluate(self.text, self.arrays)

    def compile(self, connection: duckdb.DuckDBPyConnection, **options: Any) -> Any:
        """The compiled program."""
        return ucle.einsum_program(
            self.text,
            inputs=self.inputs,
            bounds=self.bounds,
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
        """Drop them again."""
        for name in self.tables:
            connection.execute(f'DROP TABLE "{name}"')

    def __str__(self) -> str:
        kinds = {name: type(value).__name__ for name, value in self.inputs.items()}
        return f"{self.text}\nbounds {self.bounds}, inputs {kinds}"


def random_case(seed: int, size: int = 6) -> Case:
    """The case of a seed: the first draw that is finite inside and stable.

    Args:
        seed: any number.
        size: how many accesses to tensors and functions the program may have.
    """
    for attempt in range(10_000):
        rng = np.random.default_rng([seed, attempt])
        case = _Draw(rng).case()
        if len(re.findall(r"\w+[\[(]", case.text)) <= size and _is_stable(case, rng):
            return case
    raise AssertionError(f"no stable program for seed {seed}")


def random_array(rng: np.random.Generator, shape: tuple[int, ...], density: float) -> Array:
    """Multiples of 1/4 between -2 and 2 at random places."""
    values = rng.integers(1, 9, size=shape) * rng.choice([-0.25, 0.25], size=shape)
    return np.asarray(np.where(rng.random(shape) < density, values, 0.0))


def _is_stable(case: Case, rng: np.random.Generator) -> bool:
    """Whether the result says something: no infinity inside, and no jump close by.

    1 / 0 is inf or -inf by the sign of the zero, which no sparse format keeps.
    """
    finite = True

    def check(array: Array) -> Array:
        nonlocal finite
        finite = finite and bool((np.abs(array) < 1e6).all())
        return array

    def negate_zeros(array: Array) -> Array:
        return np.where(array == 0, -0.0, array)

    exact = evaluate(case.text, case.arrays, check)
    if not finite:
        return False
    moved = {n: a * (1 + 1e-11 * rng.normal(size=a.shape)) for n, a in case.arrays.items()}
    for nearby in (
        evaluate(case.text, moved),
        evaluate(case.text, case.arrays, negate_zeros),
    ):
        for name, array in exact.items():
            if not np.allclose(nearby[name], array, rtol=1e-8, atol=1e-8, equal_nan=True):
                return False
    return all(np.abs(a[np.isfinite(a)]).max(initial=0.0) < 1e9 for a in exact.values())


class _Draw:
    """One draw of a program."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        sizes = [self._pick((0, 1, 2, 3, 4, 5), (1, 4, 8, 8, 5, 3)) for _ in range(2)]
        self._bounds: dict[str, int] = {name: self._pick(sizes) for name in LABELS}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._arrays: dict[str, Array] = {}

    def case(self) -> Case:
        rng = self._rng
        statements, defined = [], []
        for number in range(self._pick((1, 2, 3), (5, 3, 2))):
            expression, labels = self._expression(self._pick((1, 2, 3), (3, 4, 2)))
            kept = [x for x in labels if rng.random() < 0.7][:4]
            rng.shuffle(kept)
            name = f"T{number}"
            operator = "+=" if rng.random() < 0.4 else "="
            target = f"{name}[{','.join(kept)}]" if kept or rng.random() < 0.5 else name
            statements.append(f"{target} {operator} {expression}")
            defined.append(name)
            self._shapes[name] = tuple(self._bounds[x] for x in kept)
        outputs = tuple(defined) if rng.random() < 0.2 else None
        if rng.random() < 0.2:
            rng.shuffle(statements)
        return self._with_inputs("\n".join(statements), outputs)

    def _with_inputs(self, text: str, outputs: tuple[str, ...] | None) -> Case:
        inputs: dict[str, Any] = {}
        tables: dict[str, pa.Table] = {}
        # Some tensors were drawn for a part of the program that did not come to stay.
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
        kind = self._pick(("access", "call", "scalar", "binary", "product"), (1, 3, 3, 5, 4))
        if kind == "access":
            return self._access()
        one, labels = self._expression(depth - 1)
        if kind == "call":
            return f"{self._pick(FUNCTIONS)}({one})", labels
        if kind == "scalar":
            return self._scalar(one), labels
        other, more = self._expression(depth - 1)
        every = list(dict.fromkeys((*labels, *more)))
        if len(every) > 5:
            return one, labels
        if kind == "binary":
            operator = self._pick(("+", "-", "/", "*", "^"), (4, 4, 2, 4, 1))
            return f"({one} {operator} {other})", every
        third, last = self._access()
        return f"{one} * {other} * {third}", list(dict.fromkeys((*every, *last)))

    def _scalar(self, expression: str) -> str:
        constant = self._pick(("0.5", "2", "3", "-1.5", "0", "1"))
        templates = (
            "({c} * {x})", "({x} * {c})", "({x} + {c})", "({c} - {x})", "({x} - {c})",
            "({x} / {c})", "({c} / {x})", "(({x}) ^ 2)", "(({x}) ^ 0.5)", "(({c}) ^ ({x}))",
        )  # fmt: skip
        return self._pick(templates).format(c=constant, x=expression)

    def _access(self) -> tuple[str, list[str]]:
        known = [n for n in self._shapes if self._fits(n)]
        if known and self._rng.random() < 0.45:
            name = self._pick(known)
        else:
            name = f"{self._pick(('A', 'b', 'edges'))}{len(self._arrays)}"
            rank = self._pick((0, 1, 2, 3, 4), (1, 5, 8, 3, 1))
            self._shapes[name] = tuple(self._bounds[self._pick(LABELS)] for _ in range(rank))
            density = self._pick((0.0, 0.2, 0.5, 0.8, 1.0), (1, 4, 4, 2, 3))
            self._arrays[name] = random_array(self._rng, self._shapes[name], density)
        labels = [
            self._pick([x for x in LABELS if self._bounds[x] == size])
            for size in self._shapes[name]
        ]
        text = f"{name}[{','.join(labels)}]" if labels else name
        return text, list(dict.fromkeys(labels))

    def _fits(self, name: str) -> bool:
        return set(self._shapes[name]) <= set(self._bounds.values())


def coo_columns(array: Array, rng: np.random.Generator, fill: float) -> dict[str, Any]:
    """Key columns and values of a dense array, in random order, some of the fill written out."""
    if not array.ndim:
        return {"value": array.reshape(1)}
    places = np.nonzero((array != fill) | (rng.random(array.shape) < 0.1))
    order = rng.permutation(len(places[0]))
    keys = {f"k{n}": place[order].astype(np.int32) for n, place in enumerate(places)}
    return {**keys, "value": array[places][order]}


def make_input(rng: np.random.Generator, name: str, array: Array) -> tuple[Any, pa.Table | None]:
    """The object to pass for an array, and the table that it names, if it names one."""
    kind = str(rng.choice(KINDS))
    fill = float(rng.choice([0.0, 0.0, 0.0, 0.25, -1.0]))
    shape = tuple(int(n) for n in array.shape)
    if kind == "scipy" and array.ndim and fill == 0.0:
        return scipy.sparse.coo_array(array), None
    if kind in ("arrays", "lists", "flat") and array.ndim:
        return _array_table(rng, name, array, kind, fill)
    if kind in ("arrow", "pandas", "polars", "table", "unsummed"):
        return _coo_table(rng, name, array, kind, fill, shape)
    return ucle.table(array, fill=fill), None


def _coo_table(
    rng: np.random.Generator,
    name: str,
    array: Array,
    kind: str,
    fill: float,
    shape: tuple[int, ...],
) -> tuple[Any, pa.Table | None]:
    columns = coo_columns(array, rng, fill)
    duplicates = "error"
    if kind == "unsummed" and fill == 0.0:
        # Every entry in two halves, which multiples of 1/4 take exactly.
        columns = {n: np.concatenate([c, c]) for n, c in columns.items()}
        columns["value"] = columns["value"] / 2
        duplicates = "sum"
    data = pa.table(columns)
    relation: Any = {"pandas": data.to_pandas, "polars": lambda: pl.from_arrow(data)}.get(
        kind, lambda: data
    )()
    options: dict[str, Any] = {"bounds": shape, "fill": fill, "duplicates": duplicates}
    if kind in ("table", "unsummed"):
        return ucle.table(name, **options), data
    assert isinstance(relation, pa.Table | pd.DataFrame | pl.DataFrame)
    return ucle.table(relation, **options), None


def _array_table(
    rng: np.random.Generator, name: str, array: Array, kind: str, fill: float
) -> tuple[Any, pa.Table | None]:
    """Leading axes as keys, trailing ones in an array column."""
    keys = int(rng.integers(0, array.ndim))
    lead, dense = array.shape[:keys], tuple(int(n) for n in array.shape[keys:])
    size = math.prod(dense)
    blocks = array.reshape(*lead, size)
    stored = (blocks != fill).any(axis=-1) | (rng.random(lead) < 0.2)
    places = np.nonzero(stored) if keys else ()
    rows = blocks[stored] if keys else blocks.reshape(1, size)
    column: Any
    if kind == "arrays" and len(dense) == 1 and size:
        column = pa.array(list(rows), type=pa.list_(pa.float64(), size))
    elif kind == "flat":
        column = pa.array(list(rows), type=pa.list_(pa.float64()))
    else:
        type_ = pa.float64()
        for _ in dense:
            type_ = pa.list_(type_)
        column = pa.array([row.reshape(dense).tolist() for row in rows], type=type_)
    names = {f"k{n}": place.astype(np.int64) for n, place in enumerate(places)}
    data = pa.table({**names, "payload": column})
    bounds = tuple(int(n) for n in array.shape)
    options: dict[str, Any] = {"bounds": bounds, "fill": fill}
    unknown = not len(rows) or not size
    if kind == "flat" or (unknown and kind == "lists") or (kind == "arrays" and unknown):
        options["shape"] = dense
    if rng.random() < 0.5:
        return ucle.table(name, **options), data
    return ucle.table(data, **options), None
