"""The EinSum DAG: labels, layouts, tensors, vertices, programs.

The whole intermediate representation stands here, as frozen structures with tuples inside. A tensor
carries its element type, its fill and what its entries can be; the level of a label (promoted or
dense) belongs to a *use* of the tensor and so stands in a `Layout`, never in the tensor. Ill-formed
values are refused when they are made. Nothing here knows text, SQL or DuckDB.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache

import numpy as np

from ucle.dtypes import DType, Scalar
from ucle.errors import LabelError, NameResolutionError
from ucle.operators import Combine, PointwiseMap, Reduce
from ucle.ranges import Values, anything


class Coordinates(Enum):
    """How the coordinates of a label are stored in a key column."""

    INT32 = "INTEGER"
    INT64 = "BIGINT"


class Level(Enum):
    """Where one label of one use of a tensor is handled."""

    PROMOTED = "promoted"
    """Upper case: a key column of the tensor relation."""
    DENSE = "dense"
    """Lower case: an index into the array that each tuple carries."""


class Encoding(Enum):
    """How the `val` column of a tensor relation is stored."""

    SCALAR = "scalar"
    LIST = "list"
    BLOB = "blob"


@dataclass(frozen=True)
class Label:
    """An index symbol with the size of its dimension.

    >>> print(Label("i", 10))
    i:10
    """

    name: str
    bound: int
    coordinates: Coordinates = Coordinates.INT32
    dictionary: str | None = None
    """Name of the dictionary whose positions the coordinates are, if they are not the data's."""

    def __str__(self) -> str:
        return f"{self.name}:{self.bound}"


@dataclass(frozen=True)
class Layout:
    """One decomposition of a tensor: a level for each axis, and how `val` is encoded.

    `clustering` lists the axes by which the rows are ordered (empty: in no known order). Dense axes
    keep the order of the tensor's axes, row-major.
    """

    levels: tuple[Level, ...]
    encoding: Encoding = Encoding.BLOB
    clustering: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        scalar = Level.DENSE not in self.levels
        if scalar != (self.encoding is Encoding.SCALAR):
            object.__setattr__(self, "encoding", Encoding.SCALAR if scalar else Encoding.BLOB)
        # Layouts are the keys of every table of the search; hashing enums takes long.
        object.__setattr__(self, "_hash", hash((self.levels, self.encoding, self.clustering)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    @staticmethod
    def of(promoted: Iterable[bool], encoding: Encoding = Encoding.BLOB) -> Layout:
        """The layout that promotes the axes marked True; the same object for the same axes."""
        return _layout(tuple(promoted), encoding)

    @staticmethod
    @lru_cache(maxsize=1 << 17)
    def promoting(names: tuple[str, ...], promoted: frozenset[str]) -> Layout:
        """The layout of axes of these names that promotes some of them."""
        return Layout.of(name in promoted for name in names)

    @cached_property
    def promoted(self) -> tuple[int, ...]:
        """Positions of the promoted axes."""
        return tuple(a for a, level in enumerate(self.levels) if level is Level.PROMOTED)

    @cached_property
    def dense(self) -> tuple[int, ...]:
        """Positions of the dense axes, outermost first."""
        return tuple(a for a, level in enumerate(self.levels) if level is Level.DENSE)

    @property
    def scalar(self) -> bool:
        """Whether every tuple carries one number."""
        return not self.dense

    def union(self, other: Layout) -> Layout:
        """The layout that promotes what either of the two promotes."""
        return _union(self, other)


@lru_cache(maxsize=1 << 16)
def _union(one: Layout, other: Layout) -> Layout:
    both = {*one.promoted, *other.promoted}
    return Layout.of(axis in both for axis in range(len(one.levels)))


@lru_cache(maxsize=1 << 16)
def _layout(promoted: tuple[bool, ...], encoding: Encoding) -> Layout:
    return Layout(tuple(Level.PROMOTED if p else Level.DENSE for p in promoted), encoding)


@dataclass(frozen=True)
class TensorType:
    """What a tensor is, whatever its layout: axes with bounds, element type, fill, values.

    `fill` is what an entry that is not stored is worth, `entries` what the others can be: any
    finite number of the type, unless something else is said.
    """

    axes: tuple[Label, ...]
    dtype: DType = DType.FLOAT64
    fill: Scalar = 0.0
    values: Values | None = None

    @cached_property
    def entries(self) -> Values:
        """What the entries can be that are not worth the fill."""
        return anything(self.dtype) if self.values is None else self.values

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Bounds of the axes."""
        return tuple(axis.bound for axis in self.axes)

    def dense_shape(self, layout: Layout) -> tuple[int, ...]:
        """Shape of the array that each tuple of `layout` carries."""
        return tuple(self.shape[a] for a in layout.dense)

    def dense_size(self, layout: Layout) -> int:
        """Number of elements in the array of one tuple; 1 for a scalar."""
        if (size := self._dense_sizes.get(layout)) is None:
            size = self._dense_sizes[layout] = math.prod(self.dense_shape(layout))
        return size

    @cached_property
    def _dense_sizes(self) -> dict[Layout, int]:
        """The search asks for few sizes, and for each of them very often."""
        return {}

    def tuple_bytes(self, layout: Layout) -> int:
        """Bytes of the payload of one tuple."""
        return self.dense_size(layout) * self.dtype.bytes


@dataclass(frozen=True)
class Tensor:
    """A named tensor of a program."""

    name: str
    type: TensorType


@dataclass(frozen=True)
class Span:
    """A place in the source text; lines and columns count from 1."""

    line: int
    column: int
    text: str = ""

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


@dataclass(frozen=True)
class Map:
    """A pointwise function of one value.

    `dtype` is the type that it works in; what gives yes or no gives 1 or 0 of that type.

    >>> from ucle.operators import MAPS
    >>> print(Map(MAPS["relu"]))
    relu(x)
    """

    function: PointwiseMap
    dtype: DType = DType.FLOAT64

    @property
    def result(self) -> DType:
        """Type of the function's values."""
        return self.dtype

    def __call__(self, value: Scalar) -> Scalar:
        """The function's value at one point, by NumPy's rules."""
        return self.function.scalar(value, self.dtype)

    def __str__(self) -> str:
        return self.apply_text("x")

    def apply_text(self, argument: str) -> str:
        """How a person would write this function of `argument`."""
        return f"{self.function.name}({argument})"


@dataclass(frozen=True)
class Partial:
    """⊗ of one value and a constant; `dtype` is as in `Map`.

    >>> from ucle.operators import COMBINES
    >>> print(Partial(COMBINES["mult"], 0.5), Partial(COMBINES["div"], 1.0, constant_first=True))
    x * 0.5 1 / x
    """

    combine: Combine
    constant: Scalar
    constant_first: bool = False
    dtype: DType = DType.FLOAT64

    @property
    def result(self) -> DType:
        """Type of the function's values."""
        return self.dtype

    def __call__(self, value: Scalar) -> Scalar:
        """The function's value at one point, by NumPy's rules."""
        pair = (self.constant, value) if self.constant_first else (value, self.constant)
        return self.combine.scalar(*pair, self.dtype)

    def __str__(self) -> str:
        return self.apply_text("x")

    def apply_text(self, argument: str) -> str:
        """How a person would write this function of `argument`."""
        constant = number_text(self.constant)
        if self.combine.infix and _is_compound(argument):
            argument = f"({argument})"
        left, right = (constant, argument) if self.constant_first else (argument, constant)
        return self.combine.text(left, right)


@dataclass(frozen=True)
class Cast:
    """The change of every entry to another element type.

    >>> print(Cast(DType.FLOAT64, DType.INT64))
    int64(x)
    """

    source: DType
    result: DType

    def __call__(self, value: Scalar) -> Scalar:
        """The value in the new type, by NumPy's rules."""
        with np.errstate(all="ignore"):
            return self.result.scalar(value)

    def __str__(self) -> str:
        return self.apply_text("x")

    def apply_text(self, argument: str) -> str:
        """How a person would write this cast of `argument`."""
        return f"{self.result.value}({argument})"


Pointwise = Map | Partial | Cast


def _is_compound(text: str) -> bool:
    """Whether a text is an operation that brackets do not yet hold together."""
    depth = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == " " and not depth:
            return True
    return False


def number_text(value: Scalar) -> str:
    """A number as a person would write it."""
    if isinstance(value, complex):
        return f"({value:.6g})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Operand:
    """One use of a tensor: its name and the labels that index its axes."""

    tensor: str
    labels: tuple[Label, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the labels, axis by axis."""
        return tuple(label.name for label in self.labels)

    def text(self, promoted: Set[str] | None = None) -> str:
        """The access as written, or with promoted labels in upper and demoted in lower case."""
        return f"{self.tensor}[{','.join(cased(name, promoted) for name in self.names)}]"

    def __str__(self) -> str:
        return self.text()


def cased(name: str, promoted: Set[str] | None) -> str:
    """A label's name in the paper's notation; as it is where no decomposition is given."""
    if promoted is None:
        return name
    return name.upper() if name in promoted else name.lower()


@dataclass(frozen=True)
class Vertex:
    """One EinSum: ``tensor[labels] = ⊕ maps(left ⊗ right)`` (sparse_einsum.txt, Equation 3).

    A binary vertex has two inputs and `combine` (⊗) and no maps. A unary vertex has one input, no
    `combine`, and applies `maps` to every entry, first to last, before it reduces. `reduce` (⊕) is
    None where every label of the inputs stands on the left.
    """

    tensor: Tensor
    inputs: tuple[Operand, ...]
    labels: tuple[Label, ...]
    combine: Combine | None = None
    maps: tuple[Pointwise, ...] = ()
    reduce: Reduce | None = None
    span: Span | None = None

    def __post_init__(self) -> None:
        if len(self.inputs) not in (1, 2) or (len(self.inputs) == 2) != (self.combine is not None):
            raise LabelError(f"vertex {self.name} is neither unary nor binary")
        if self.combine is not None and self.maps:
            raise LabelError(f"vertex {self.name}: maps on a binary vertex")
        available = {label for operand in self.inputs for label in operand.labels}
        if not set(self.labels) <= available or len(set(self.labels)) != len(self.labels):
            raise LabelError(f"vertex {self.name}: output labels are not distinct input labels")
        if bool(self.reduced) != (self.reduce is not None):
            raise LabelError(f"vertex {self.name}: ⊕ and the labels it reduces do not agree")

    @property
    def name(self) -> str:
        """Name of the tensor that the vertex defines."""
        return self.tensor.name

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the output's labels, axis by axis."""
        return tuple(label.name for label in self.labels)

    @cached_property
    def all_labels(self) -> tuple[Label, ...]:
        """Every distinct label, in order of first use."""
        return tuple(dict.fromkeys(label for op in self.inputs for label in op.labels))

    @cached_property
    def reduced(self) -> tuple[Label, ...]:
        """The labels that ⊕ aggregates away."""
        return tuple(label for label in self.all_labels if label not in self.labels)

    def aggregates(self, promoted: Collection[str]) -> bool:
        """Whether ⊕ goes over tuples under a decomposition, and not only within arrays."""
        return any(label.name in promoted for label in self.reduced)

    def text(self, promoted: Set[str] | None = None) -> str:
        """The vertex as a person would write it; in upper-case-lower-case form if decomposed."""
        operands = [operand.text(promoted) for operand in self.inputs]
        if self.combine is not None:
            expression = self.combine.text(*operands)
        else:
            expression = operands[0]
            for function in self.maps:
                expression = function.apply_text(expression)
        target = Operand(self.name, self.labels).text(promoted)
        operator = "=" if self.reduce is None else self.reduce.assignment
        return f"{target} {operator} {expression}"

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class Program:
    """An EinSum DAG: inputs, vertices in topological order, and the names of its outputs."""

    inputs: tuple[Tensor, ...]
    vertices: tuple[Vertex, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        known = {tensor.name: tensor.type for tensor in self.inputs}
        for vertex in self.vertices:
            for operand in vertex.inputs:
                if operand.tensor not in known:
                    raise NameResolutionError(
                        f"{vertex} uses {operand.tensor} before it is defined"
                    )
                if len(operand.labels) != known[operand.tensor].rank:
                    raise LabelError(f"{vertex}: {operand} does not fit the rank of the tensor")
            _check_types(vertex, known)
            if vertex.name in known:
                raise NameResolutionError(f"{vertex.name} is defined twice")
            known[vertex.name] = vertex.tensor.type
        if missing := set(self.outputs) - known.keys():
            raise NameResolutionError(f"unknown outputs: {', '.join(sorted(missing))}")

    @cached_property
    def types(self) -> dict[str, TensorType]:
        """Type of every tensor by name."""
        named = (*self.inputs, *(v.tensor for v in self.vertices))
        return {tensor.name: tensor.type for tensor in named}

    @cached_property
    def by_name(self) -> dict[str, Vertex]:
        """The vertices by the names of their tensors."""
        return {vertex.name: vertex for vertex in self.vertices}

    @cached_property
    def uses(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """For every tensor the (vertex number, operand number) pairs that read it."""
        found: dict[str, list[tuple[int, int]]] = {name: [] for name in self.types}
        for number, vertex in enumerate(self.vertices):
            for position, operand in enumerate(vertex.inputs):
                found[operand.tensor].append((number, position))
        return {name: tuple(places) for name, places in found.items()}

    @cached_property
    def input_names(self) -> frozenset[str]:
        """Names of the input tensors."""
        return frozenset(tensor.name for tensor in self.inputs)

    def __str__(self) -> str:
        return "\n".join(str(vertex) for vertex in self.vertices)


def _check_types(vertex: Vertex, types: Mapping[str, TensorType]) -> None:
    """Operands have one element type; only casts change it."""
    dtypes = {types[operand.tensor].dtype for operand in vertex.inputs}
    for step in vertex.maps:
        expected = step.source if isinstance(step, Cast) else step.dtype
        assert dtypes == {expected}, f"{vertex}: {step} works on {expected.value}"
        dtypes = {step.result}
    assert dtypes == {vertex.tensor.type.dtype}, f"{vertex}: element types do not agree"
