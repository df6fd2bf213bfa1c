"""`ucle.Tensor`: lazy tensors with the interface that users of NumPy or PyTorch expect.

A tensor is an expression. Operators and methods build larger expressions and compute nothing;
`compute`, `to_numpy` and similar methods compile the whole expression to one program and run it.
The rules are in `ucle.lazy.elementwise` (alignment), `products`, `reductions` and `selection`; this
module connects them with Python and NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ucle.errors import ArgumentError, ArgumentTypeError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.foundation.threads import import_late
from ucle.inputs.arithmetic import Arithmetic, to_lazy_tensor
from ucle.inputs.inputs import element_type
from ucle.inputs.table_input import TableInput
from ucle.lazy import axes as moves
from ucle.lazy import coordinate_selection, products, rearranging, reductions, selection
from ucle.lazy import stored as masked
from ucle.lazy.axes import AxisLike
from ucle.lazy.computable import Computable
from ucle.lazy.compute import known_type, program_of
from ucle.lazy.constants import broadcast_to
from ucle.lazy.description import describe
from ucle.lazy.elementwise import elementwise
from ucle.lazy.inputs import as_scalar, lift_input
from ucle.lazy.nodes import Lazy
from ucle.lazy.reductions import Along
from ucle.lazy.series_methods import SeriesMethods
from ucle.operators import (
    ALL,
    ANY,
    COMBINES,
    COUNT,
    GREATEST,
    LEAST,
    LOGSUMEXP,
    MAX,
    MEAN,
    MIN,
    PROD,
    RELU,
    SUM,
)


class FirstEntries(NamedTuple):
    """The first entries along an axis, and their positions there."""

    values: Tensor
    positions: Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Tensor(Computable, SeriesMethods, Arithmetic["Tensor"]):
    """A lazy tensor; made by `ucle.tensor`, `ucle.array` and by operators on their results.

    Axes have names, or only positions. Tensors with named axes are aligned by name, whatever the
    order of the axes, and ``@`` sums over the axes that both have. Tensors without names follow
    NumPy's rules.

    >>> import ucle
    >>> A = ucle.array([[0.0, 1.0], [2.0, 0.0]], axes=("src", "dst"))
    >>> H = ucle.array([[1.0, -1.0], [3.0, 0.5]], axes=("dst", "feature"))
    >>> (A @ H).relu().to_numpy()
    array([[3. , 0.5],
           [2. , 0. ]])
    """

    # ---- What is known without computing ----

    @property
    def axes(self) -> tuple[str | None, ...]:
        """Names of the axes; None for axes without a name."""
        return tuple(axis.name for axis in self.lazy.axes)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Sizes of the axes; None for a size that only the data of a table determines."""
        return tuple(axis.size for axis in self.lazy.axes)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.lazy.axes)

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The element type; None if only the data of a table determines it."""
        element_type = known_type(self.lazy)
        return None if element_type is None else element_type.numpy

    @property
    def device(self) -> str:
        """The device of its data: the memory of the process, or a database on its disk."""
        return DEVICE

    def program_text(self) -> str:
        """The statements that compute the tensor, in ucle's language; it is called ``out``.

        >>> import ucle
        >>> x = ucle.array([1.0, 2.0], axes=("node",), name="x")
        >>> print((x / x.sum()).program_text())
        out[node] = x[node] / sum[node_1](x[node_1])
        """
        return str(program_of({"out": self.lazy}))

    def __repr__(self) -> str:
        return describe(self.lazy).text

    def _repr_html_(self) -> str:
        """The HTML for a notebook; nothing is computed."""
        return describe(self.lazy).html

    # ---- Axes ----

    def named(self, *names: str) -> Tensor:
        """Name the axes, in order.

        >>> import ucle
        >>> ucle.array([[1, 2]]).named("row", "column").axes
        ('row', 'column')
        """
        return Tensor(moves.with_names(self.lazy, names))

    def unnamed(self) -> Tensor:
        """Remove the names of the axes, so that they have only positions, as in NumPy."""
        return Tensor(moves.with_names(self.lazy, [None] * self.ndim))

    @validated(names=args.mapping(args.text, args.text, "a dict from name to name"))
    def rename(self, names: Mapping[str, str]) -> Tensor:
        """Rename some axes: ``t.rename({"dst": "node"})``."""
        return Tensor(moves.rename_axes(self.lazy, names))

    @property
    def T(self) -> Tensor:  # noqa: N802 - NumPy's name
        """The tensor with its axes in reverse order."""
        return Tensor(moves.permute_axes(self.lazy, range(self.ndim)[::-1]))

    @property
    def mT(self) -> Tensor:  # noqa: N802 - the array standard's name
        """The tensor with its last two axes exchanged."""
        places = list(range(self.ndim))
        first = moves.find_axis(self.lazy, -2, "mT")
        places[first:] = [first + 1, first]
        return Tensor(moves.permute_axes(self.lazy, places))

    @validated(axes=args.ordered_axes)
    def permute_dims(self, axes: Sequence[AxisLike]) -> Tensor:
        """Reorder the axes, given by position or by name."""
        places = moves.find_axes(self.lazy, tuple(axes), "permute_dims")
        if len(places) != self.ndim:
            raise ArgumentTypeError(
                "not every axis has a place",
                where="permute_dims",
                expected=f"all axes of {self.lazy}",
                found=repr(axes),
            )
        return Tensor(moves.permute_axes(self.lazy, places))

    def transpose(self, *axes: AxisLike) -> Tensor:
        """Apply `permute_dims`, or `T` without arguments; NumPy's name."""
        return self.permute_dims(axes) if axes else self.T

    @validated(axis=args.integer, name=args.text)
    def expand_dims(self, axis: int = 0, name: str | None = None) -> Tensor:
        """Insert an axis of size 1, with a name if the others have names."""
        return Tensor(moves.with_unit_axis(self.lazy, axis, name))

    @validated(axis=args.along)
    def squeeze(self, axis: AxisLike | Sequence[AxisLike] | None = None) -> Tensor:
        """Remove the given axes, which have size 1; by default remove all such axes."""
        return Tensor(moves.squeeze_axes(self.lazy, axis))

    @validated()
    def reshape(self, *shape: Any) -> Tensor:
        """Reshape the tensor, keeping the order of its entries; one size may be -1.

        >>> import ucle
        >>> ucle.array([[1, 2, 3], [4, 5, 6]]).reshape(3, -1).to_numpy()
        array([[1, 2],
               [3, 4],
               [5, 6]])
        """
        sizes = shape[0] if len(shape) == 1 else shape
        return Tensor(rearranging.reshape_tensor(self.lazy, sizes))

    @validated(axis1=args.axis, axis2=args.axis)
    def diagonal(self, offset: int = 0, axis1: AxisLike = 0, axis2: AxisLike = 1) -> Tensor:
        """The entries whose positions along two axes differ by `offset`, along a new last axis."""
        return Tensor(rearranging.diagonal(self.lazy, offset, axis1, axis2))

    @validated(shape=args.shape)
    def broadcast_to(self, shape: Sequence[int]) -> Tensor:
        """Broadcast the tensor to a shape, as in NumPy."""
        return Tensor(broadcast_to(self.lazy, shape))

    # ---- Entry by entry ----

    @validated(function=args.text, swapped=args.flag, backwards=args.flag)
    def combine(
        self, function: str, other: Any, *, swapped: bool = False, backwards: bool = False
    ) -> Tensor:
        """Combine this tensor with another, or a number, by a ⊗ of the language.

        Args:
            function: its name.
            other: a tensor, an array or a number.
            swapped: True if `other` is the first operand.
            backwards: True if the axes of the second operand come first.
        """
        lazy_other = operand(other)
        pair = (lazy_other, self.lazy) if swapped else (self.lazy, lazy_other)
        return Tensor(elementwise(function, *pair, backwards=backwards))

    @validated(function=args.text)
    def map(self, function: str) -> Tensor:
        """Apply a pointwise function of the language, such as ``gelu``, to every entry."""
        if function in COMBINES:
            raise ArgumentError(
                "this is a function of two values",
                where="map",
                expected="a function of one value",
                found=function,
                hint=f"t.combine({function!r}, other)",
            )
        return Tensor(elementwise(function, self.lazy))

    def astype(self, dtype: Any) -> Tensor:
        """Cast the tensor to another element type."""
        return self.map(element_type(dtype, "astype").value)

    def relu(self) -> Tensor:
        """Replace negative entries by 0."""
        return self.map(RELU.name)

    def clip(self, low: Any = None, high: Any = None) -> Tensor:
        """Limit every entry to the given bounds."""
        clipped = self if low is None else self.combine(GREATEST.name, low)
        return clipped if high is None else clipped.combine(LEAST.name, high)

    # ---- Aggregations ----

    def _reduce_axes(self, name: str, axis: Along, keepdims: bool) -> Tensor:
        return Tensor(reductions.reduce_tensor(name, self.lazy, axis, keepdims))

    @validated(axis=args.along, keepdims=args.flag)
    def sum(
        self, axis: Along = None, dtype: Any = None, out: None = None, keepdims: bool = False
    ) -> Tensor:
        """Sums along axes, by position or name; along all of them by default."""
        return self._cast_to(dtype, out)._reduce_axes(SUM.name, axis, keepdims)

    @validated(axis=args.along, keepdims=args.flag)
    def prod(
        self, axis: Along = None, dtype: Any = None, out: None = None, keepdims: bool = False
    ) -> Tensor:
        """Products along axes."""
        return self._cast_to(dtype, out)._reduce_axes(PROD.name, axis, keepdims)

    @validated(axis=args.along, keepdims=args.flag, stored=args.flag)
    def mean(
        self,
        axis: Along = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Any = None,
        stored: bool = False,
    ) -> Tensor:
        """Means along axes, over all entries, or those of a mask or of the input: `ucle.mean`."""
        source = self._cast_to(dtype, out)
        mask = mask_of(self, where, stored, "mean")
        if mask is None:
            return source._reduce_axes(MEAN.name, axis, keepdims)
        return Tensor(masked.mean_of(source.lazy, mask, stored, axis, keepdims))

    @validated(axis=args.along, keepdims=args.flag)
    def max(self, axis: Along = None, out: None = None, keepdims: bool = False) -> Tensor:
        """The greatest entries along axes."""
        return self._cast_to(None, out)._reduce_axes(MAX.name, axis, keepdims)

    @validated(axis=args.along, keepdims=args.flag)
    def min(self, axis: Along = None, out: None = None, keepdims: bool = False) -> Tensor:
        """The smallest entries along axes."""
        return self._cast_to(None, out)._reduce_axes(MIN.name, axis, keepdims)

    @validated(axis=args.along, keepdims=args.flag)
    def any(self, axis: Along = None, out: None = None, keepdims: bool = False) -> Tensor:
        """True where any entry along axes is not 0."""
        return self._cast_to(None, out)._reduce_axes(ANY.name, axis, keepdims)

    @validated(axis=args.along, keepdims=args.flag)
    def all(self, axis: Along = None, out: None = None, keepdims: bool = False) -> Tensor:
        """True where no entry along axes is 0."""
        return self._cast_to(None, out)._reduce_axes(ALL.name, axis, keepdims)

    @validated(axis=args.along, keepdims=args.flag)
    def count_nonzero(self, axis: Along = None, keepdims: bool = False) -> Tensor:
        """The number of entries along axes that are not 0."""
        return self._reduce_axes(COUNT.name, axis, keepdims)

    @validated(axis=args.along, keepdims=args.flag)
    def logsumexp(self, axis: Along = None, keepdims: bool = False) -> Tensor:
        """Logarithms of sums of exponentials, without overflow."""
        return self._reduce_axes(LOGSUMEXP.name, axis, keepdims)

    @validated(
        axis=args.along, ddof=args.real, keepdims=args.flag, correction=args.real, stored=args.flag
    )
    def var(
        self,
        axis: Along = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        correction: float | None = None,
        where: Any = None,
        stored: bool = False,
    ) -> Tensor:
        """Variances along axes; `correction` (NumPy's `ddof`) is subtracted from the count.

        Raises:
            BoundError: `correction` is given, and only the data of a table determines a size.
        """
        subtracted = ddof if correction is None else correction
        source, mask = self._cast_to(dtype, out).lazy, mask_of(self, where, stored, "var")
        if mask is None:
            return Tensor(reductions.variance(source, axis, subtracted, keepdims))
        return Tensor(masked.variance_of(source, mask, stored, axis, subtracted, keepdims))

    @validated(
        axis=args.along, ddof=args.real, keepdims=args.flag, correction=args.real, stored=args.flag
    )
    def std(
        self,
        axis: Along = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        correction: float | None = None,
        where: Any = None,
        stored: bool = False,
    ) -> Tensor:
        """Standard deviations along axes: the roots of `var`."""
        spread = self.var(
            axis, dtype, out, ddof, keepdims, correction=correction, where=where, stored=stored
        )
        return Tensor(reductions.root(spread.lazy))

    @validated(axis=args.axis, keepdims=args.flag)
    def argmax(
        self, axis: AxisLike | None = None, out: None = None, *, keepdims: bool = False
    ) -> Tensor:
        """Positions of the greatest entries along an axis; by default, among all entries.

        If the coordinates of the axis are names or dates, `to_pandas`, `to_arrow` and everything
        that writes rows return these, and `to_numpy` returns their positions in sorted order.
        """
        source = self._cast_to(None, out).lazy
        return Tensor(reductions.extreme_position(MAX.name, source, axis, keepdims))

    @validated(axis=args.axis, keepdims=args.flag)
    def argmin(
        self, axis: AxisLike | None = None, out: None = None, *, keepdims: bool = False
    ) -> Tensor:
        """Positions of the smallest entries along an axis; see `argmax`."""
        source = self._cast_to(None, out).lazy
        return Tensor(reductions.extreme_position(MIN.name, source, axis, keepdims))

    @validated(k=args.count(1), axis=args.axis)
    def top_k(self, k: int, axis: AxisLike = -1) -> FirstEntries:
        """The k greatest entries along an axis, and their positions; see `ucle.top_k`."""
        return FirstEntries(self._first("top_k", k, axis), self._first("arg_top_k", k, axis))

    @validated(k=args.count(1), axis=args.axis)
    def bottom_k(self, k: int, axis: AxisLike = -1) -> FirstEntries:
        """The k smallest entries along an axis, and their positions; see `ucle.bottom_k`."""
        return FirstEntries(self._first("bottom_k", k, axis), self._first("arg_bottom_k", k, axis))

    @validated(k=args.count(1), axis=args.axis)
    def among_top_k(self, k: int, axis: AxisLike = -1) -> Tensor:
        """A mask of the k greatest entries along an axis; see `ucle.among_top_k`."""
        return self._first("among_top_k", k, axis)

    @validated(k=args.count(1), axis=args.axis)
    def among_bottom_k(self, k: int, axis: AxisLike = -1) -> Tensor:
        """A mask of the k smallest entries along an axis; see `ucle.among_bottom_k`."""
        return self._first("among_bottom_k", k, axis)

    def _first(self, function: str, k: int, axis: AxisLike) -> Tensor:
        return Tensor(reductions.first_entries(function, self.lazy, axis, k))

    @validated(axis=args.axis)
    def softmax(self, axis: AxisLike = -1) -> Tensor:
        """Exponentials divided by their sum along an axis.

        >>> import ucle
        >>> ucle.array([[0.0, 0.0], [800.0, 0.0]]).softmax(-1).to_numpy()
        array([[0.5, 0.5],
               [1. , 0. ]])
        """
        return Tensor(reductions.softmax(self.lazy, axis))

    @validated(axis=args.optional(args.axis))
    def cumsum(self, axis: AxisLike | None = None, dtype: Any = None, out: None = None) -> Tensor:
        """Sums up to each position of an axis; by default of all entries in order."""
        return Tensor(reductions.running("cumsum", self._cast_to(dtype, out).lazy, axis))

    @validated(axis=args.optional(args.axis))
    def cumprod(self, axis: AxisLike | None = None, dtype: Any = None, out: None = None) -> Tensor:
        """Products up to each position of an axis; by default of all entries in order."""
        return Tensor(reductions.running("cumprod", self._cast_to(dtype, out).lazy, axis))

    @validated(axis=args.optional(args.axis))
    def cummax(self, axis: AxisLike | None = None) -> Tensor:
        """The greatest entries up to each position of an axis: `numpy.maximum.accumulate`."""
        return Tensor(reductions.running("cummax", self.lazy, axis))

    @validated(axis=args.optional(args.axis))
    def cummin(self, axis: AxisLike | None = None) -> Tensor:
        """The smallest entries up to each position of an axis: `numpy.minimum.accumulate`."""
        return Tensor(reductions.running("cummin", self.lazy, axis))

    def _cast_to(self, dtype: Any, out: None) -> Tensor:
        """Cast to the result type of an aggregation, and refuse `out`, which NumPy passes."""
        if out is not None:
            raise ArgumentTypeError(
                "lazy tensors are not written to arrays",
                where="out",
                expected="no out",
                found=type(out).__name__,
                hint="out[...] = t.to_numpy()",
            )
        return self if dtype is None else self.astype(dtype)

    # ---- Products ----

    def matmul(self, other: Any, *, swapped: bool = False) -> Tensor:
        """``self @ other``, by NumPy's rules; with named axes, a sum over the axes in common."""
        lazy_other = tensor_operand(other)
        pair = (lazy_other, self.lazy) if swapped else (self.lazy, lazy_other)
        return Tensor(products.matmul(*pair))

    @validated(axis=args.along)
    def dot(self, other: Any, axis: AxisLike | Sequence[AxisLike] | None = None) -> Tensor:
        """Multiply, and sum over the named axes in `axis`; without `axis`, ``self @ other``.

        >>> import ucle
        >>> x = ucle.array([[1, 2], [3, 4]], axes=("item", "feature"))
        >>> x.dot(x, axis="feature").to_numpy()
        array([ 5, 25])
        """
        if axis is None:
            return self.matmul(other)
        return Tensor(products.dot(self.lazy, tensor_operand(other), axis))

    # ---- Positions and coordinates ----

    def __getitem__(self, key: Any) -> Tensor:
        if isinstance(key, Tensor):
            masks = self.lazy.named and key.dtype == bool
            return Tensor(selection.keep_entries(self.lazy, key.lazy)) if masks else self.take(key)
        keys = key if isinstance(key, tuple) else (key,)
        tensors = [n for n, part in enumerate(keys) if isinstance(part, Tensor)]
        if len(tensors) == 1:
            (n,) = tensors
            if (place := selection.place_of_entries(self.lazy, keys, n)) is not None:
                return self[(*keys[:n], slice(None), *keys[n + 1 :])].take(keys[n], place)
        return Tensor(selection.index_tensor(self.lazy, key))

    @validated(axis=args.axis)
    def take(self, indices: Sequence[int] | Tensor, axis: AxisLike = 0) -> Tensor:
        """Select positions of an axis, in the given order.

        The positions may be a tensor of integers; its axes then replace the axis, and positions
        cannot count from the end.

        >>> import ucle
        >>> embedding, words = ucle.array([[1, 2], [3, 4], [5, 6]]), ucle.array([2, 0, 2])
        >>> embedding[words].to_numpy().tolist()
        [[5, 6], [1, 2], [5, 6]]
        """
        place = moves.find_axis(self.lazy, axis, "take")
        if isinstance(indices, Tensor):
            selection.check_entries(indices.dtype)
            return Tensor(selection.take_at_entries(self.lazy, place, indices.lazy))
        return Tensor(selection.take_positions(self.lazy, place, selection.integers(indices)))

    @validated(
        coordinates=args.mapping(args.axis, args.anything, "a dict from axis to coordinates")
    )
    def sel(self, coordinates: Mapping[AxisLike, Any] | None = None, /, **by_name: Any) -> Tensor:
        """Select coordinates: those of a table's key columns, or positions for other axes.

        Args:
            coordinates: by axis, a coordinate, a list of coordinates, or a slice of them. A single
                coordinate drops its axis. A slice of a table's coordinates has both of its ends, as
                in pandas and xarray; one of positions ends before its stop, as in NumPy.
            by_name: the same, for axes whose names can be keywords.

        >>> import ucle
        >>> x = ucle.array([[1, 2], [3, 4]], axes=("node", "feature"))
        >>> x.sel(node=1).to_numpy(), x.sel(feature=[1, 0]).to_numpy()
        (array([3, 4]), array([[2, 1],
               [4, 3]]))
        >>> years = {"year": [1999, 2001, 2002, 2005], "n": [1, 2, 3, 4]}
        >>> import pyarrow as pa
        >>> ids = ucle.table(pa.table(years), ["year"], "n", coordinates="dictionary")
        >>> ucle.tensor(ids).sel(year=slice(2000, 2002)).to_numpy()
        array([2, 3])
        """
        every: dict[AxisLike, Any] = dict(coordinates or {})
        every.update(by_name)
        return Tensor(coordinate_selection.select_coordinates(self.lazy, every))

    # ---- NumPy ----

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "accumulate" and ufunc.__name__ in ACCUMULATED and options.keys() <= {"axis"}:
            name, (tensor,) = ACCUMULATED[ufunc.__name__], inputs
            return Tensor(reductions.running(name, tensor_operand(tensor), options.get("axis", 0)))
        from_numpy = _numpy_function(ufunc.__name__)
        if method != "__call__" or options or from_numpy is None:
            return NotImplemented
        return from_numpy(*inputs)

    def __array_function__(
        self, function: Any, types: Iterable[type], arguments: Any, options: Any
    ) -> Any:
        ours = None
        if (module := function.__module__) in ("numpy.linalg", "numpy.fft"):
            ours = _numpy_function(f"{module.removeprefix('numpy.')}.{function.__name__}")
        ours = ours or _numpy_function(function.__name__)
        return NotImplemented if ours is None else ours(*arguments, **options)


DEVICE = "cpu"
"""The array API standard's name of the only device."""

ACCUMULATED = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
"""The scans that `accumulate` of NumPy's functions stands for."""

NUMPY_FUNCTIONS: dict[str, Any] = {}
"""Functions for lazy tensors, by NumPy's names; filled by `ucle.lazy.numpy_functions`."""


def _numpy_function(name: str) -> Any:
    import_late("ucle.lazy.numpy_functions")  # it may not have been imported yet
    return NUMPY_FUNCTIONS.get(name)


def operand(value: Any) -> Lazy | Scalar:
    """Convert to a lazy tensor, or to a Python number, which adopts the type of other operands."""
    number = as_scalar(value)
    return tensor_operand(value) if number is None else number


def tensor_operand(value: Any) -> Lazy:
    """Convert a tensor-like object to a lazy tensor."""
    if isinstance(value, Tensor):
        return value.lazy
    if isinstance(value, str):
        raise ArgumentTypeError(
            "a name alone does not say that it is a table",
            where="operand",
            expected="a tensor, an array or a number",
            found=repr(value),
            hint=f"ucle.tensor({value!r}, axes=(...)) reads the table of that name",
        )
    return lift_input(value)


def as_tensor(value: Any) -> Tensor:
    """Convert a tensor-like object to a `Tensor`."""
    return Tensor(tensor_operand(value))


def mask_of(tensor: Tensor, where: Any, stored: bool, function: str) -> Lazy | None:
    """The mask of the entries that are aggregated (`ucle.mean`); None for all."""
    chosen = None if where is None else tensor_operand(where)
    return masked.chosen_entries(tensor.lazy, chosen, stored, function)


def pointwise(function: str, *values: Any, backwards: bool = False) -> Tensor:
    """Apply a function entry by entry; if no value is a tensor, convert the first to one.

    >>> pointwise("sqrt", 4.0).item()
    2.0
    """
    operands = [operand(value) for value in values]
    if not any(isinstance(value, Lazy) for value in operands):
        operands[0] = lift_input(values[0])
    return Tensor(elementwise(function, *operands, backwards=backwards))


@to_lazy_tensor.register
def _(value: Tensor) -> Tensor:
    return value


@to_lazy_tensor.register
def _(value: TableInput) -> Tensor:
    return Tensor(lift_input(value))
