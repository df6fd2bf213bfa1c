"""Objects of other libraries, converted to numbers by the first method that applies.

Types that ucle knows come first: tables and arrays of Arrow, pandas and polars, and sparse arrays.
Of the others, an object with ``__array__`` and dimensions is an array, and one with
``__arrow_c_stream__`` but without these is a table. Any exception from such an object becomes an
`InputError` that names the object. Nothing here imports pandas or polars.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ucle.errors import InputError, UcleError, ValueTypeError
from ucle.foundation.libraries import pa
from ucle.inputs.pandas_columns import column_array

T = TypeVar("T")

EXPECTED = "a table name, the path of a file, an array, a sparse matrix or a table"

WAYS = {
    "collect": "collect() computes it",
    "compute": "compute() computes it",
    "to_memory": "to_memory() reads it",
    "detach": "detach() takes it out of a graph of gradients, to_dense() makes it dense, and "
    "float() converts it to a type that NumPy has",
    "to_dense": "to_dense() makes it dense",
    "todense": "todense() makes it dense",
    "toarray": "toarray() makes it dense",
    "to_numpy": "to_numpy() makes an array of it",
    "to_array": "to_array() makes an array of it",
    "to_arrow": "to_arrow() makes a table of it",
}
"""Methods by which objects return their numbers, with a hint for each."""


def is_instance(value: Any, module: str, *names: str) -> bool:
    """True if an object is an instance of a class of a library; False if it was never imported."""
    library = sys.modules.get(module)
    classes = tuple(x for name in names if isinstance(x := getattr(library, name, None), type))
    return bool(classes) and isinstance(value, classes)


def is_table(value: Any) -> bool:
    """True if an object in memory is a table: it has columns with names.

    >>> is_table(pa.table({"i": [0]})), is_table(pa.chunked_array([[0]])), is_table(np.eye(2))
    (True, False, False)
    """
    if isinstance(value, np.ndarray | list | tuple | bool | int | float | complex):
        return False
    if is_instance(value, "pyarrow", "Table", "RecordBatch", "RecordBatchReader"):
        return True
    if is_instance(value, "pyarrow", "Array", "ChunkedArray"):
        return False
    if is_instance(value, "polars", "Series") or is_instance(value, "pandas", "Series"):
        return False
    if is_instance(value, "polars", "DataFrame", "LazyFrame"):
        return True
    if is_instance(value, "pandas", "DataFrame"):
        return True
    if not hasattr(value, "__arrow_c_stream__"):
        return False
    # Results and lazy tensors of ucle are read as tables, with their own descriptions.
    named = hasattr(value, "columns") or hasattr(value, "to_table")
    return named or not (hasattr(value, "__array__") and has_dimensions(value))


def is_on_spark(value: Any) -> bool:
    """True if a value is a DataFrame of Spark, classic or Connect; PySpark is not imported."""
    return type(value).__module__.startswith("pyspark.") and hasattr(value, "mapInArrow")


def has_dimensions(value: Any) -> bool:
    """True if an object states its shape or number of dimensions."""
    return any(hasattr(value, name) for name in ("shape", "ndim", "dims"))


def shown_kind(value: Any) -> str:
    """The library and the class of an object, for messages."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    return kind.__qualname__ if library == "builtins" else f"{library} {kind.__qualname__}"


def ask_object(where: str, value: Any, ask: Callable[[], T]) -> T:
    """Call a function that reads an object, and convert any exception into an error that names it.

    Args:
        where: the input, for messages.
        value: the object.
        ask: reads the object.

    Raises:
        InputError: it raised an exception.
    """
    try:
        return ask()
    except (UcleError, MemoryError, RecursionError):
        raise
    except Exception as error:  # any class may raise an error of its own
        plain = isinstance(value, np.ndarray | list | tuple)
        reason = (str(error).strip() or "no reason").splitlines()[0]
        raise InputError(
            "this cannot be read as a tensor",
            where=where,
            expected=EXPECTED,
            found=reason if plain else f"{shown_kind(value)}: {type(error).__name__}: {reason}",
            hint=None if plain else way_out(value),
        ) from error


def way_out(value: Any) -> str | None:
    """A hint for converting an object that cannot be read directly."""
    if isinstance(value, dict):
        return "pandas.Series(...) of a dict from names to numbers has the names as coordinates"
    return next((text for name, text in WAYS.items() if hasattr(value, name)), None)


def in_memory(where: str, value: Any) -> Any:
    """Return an object, or its data read from a file if it is file-backed and not yet an array."""
    backed = hasattr(value, "to_memory") and hasattr(value, "shape")
    if backed and not hasattr(value, "__array__") and not hasattr(value, "tocoo"):
        return ask_object(where, value, value.to_memory)
    return value


def dense_array(where: str, value: Any) -> NDArray[Any]:
    """Read the numbers of an object that is not a table as an array.

    Raises:
        InputError: it has none, or raised an exception.
        ValueTypeError: some are missing or masked.
    """
    if isinstance(value, np.ndarray):
        check_unmasked(where, value)
        return np.asarray(value)
    if is_instance(value, "pyarrow", "Array", "ChunkedArray"):
        return ask_object(where, value, lambda: arrow_numbers(where, value))
    if is_instance(value, "polars", "Series"):
        return ask_object(where, value, lambda: arrow_numbers(where, value.to_arrow()))
    if is_instance(value, "pandas", "Series"):
        return ask_object(where, value, lambda: _series_numbers(where, value))
    made = ask_object(where, value, lambda: np.asarray(value))
    if made.dtype == object and not made.ndim and not isinstance(value, int):
        raise InputError(
            "this cannot be read as a tensor",
            where=where,
            expected=EXPECTED,
            found=shown_kind(value),
            hint=way_out(value),
        )
    return made


def check_unmasked(where: str, array: Any) -> None:
    """Check that no entry of an array is masked: masked entries are not numbers.

    Raises:
        ValueTypeError: an entry is masked.
    """
    if is_instance(array, "numpy.ma", "MaskedArray") and np.ma.is_masked(array):
        raise ValueTypeError(
            "entries of this array are masked",
            where=where,
            expected="a number in every place",
            found=f"{int(np.ma.getmaskarray(array).sum())} masked entries",
            hint="array.filled(0) replaces them by a number",
        )


def _series_numbers(where: str, series: Any) -> NDArray[Any]:
    """The values of a series by position; NaN is a number in NumPy's types, else missing."""
    if isinstance(series.dtype, np.dtype) and series.dtype != object:
        return np.asarray(series.to_numpy())
    return arrow_numbers(where, column_array(where, series))


def arrow_numbers(where: str, array: Any) -> NDArray[Any]:
    """Read the numbers of an Arrow array, including those in its lists.

    Raises:
        ValueTypeError: one is NULL, lists differ in length, or it does not hold numbers.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):  # more elements than fit in one array
            array = pa.concat_arrays(array.chunks)
    if array.null_count:
        place = next(n for n, x in enumerate(array.is_null().to_numpy(zero_copy_only=False)) if x)
        raise ValueTypeError(
            "an entry is NULL",
            where=where,
            expected="a number in every place",
            found=f"NULL at {place}, one of {array.null_count}",
            hint="fill_null(0) replaces them by a number",
        )
    type_ = array.type
    if isinstance(array, pa.FixedShapeTensorArray):
        return np.asarray(array.to_numpy_ndarray())
    if isinstance(array, pa.ExtensionArray):
        return arrow_numbers(where, array.storage)
    if pa.types.is_dictionary(type_):
        return arrow_numbers(where, array.dictionary_decode())
    if pa.types.is_decimal(type_):
        return np.array([float(x) for x in array.to_pylist()], np.float64)
    if _is_list(type_):
        return _of_lists(where, array)
    if pa.types.is_struct(type_) and [x.name for x in type_] == ["re", "im"]:
        re, im = (arrow_numbers(where, part) for part in array.flatten())
        return np.asarray(re + 1j * im)
    if not (
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)
    ):
        raise ValueTypeError(
            "these are not numbers",
            where=where,
            expected="an array of numbers, or of lists of numbers",
            found=f"Arrow {type_}",
            hint="if the values are numbers, use cast(pyarrow.float64())",
        )
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _is_list(type_: Any) -> bool:
    kinds = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, kind)(type_) for kind in kinds if hasattr(pa.types, kind))


def _of_lists(where: str, array: Any) -> NDArray[Any]:
    elements = arrow_numbers(where, array.flatten())
    lengths = {len(x) for x in array} if not pa.types.is_fixed_size_list(array.type) else {
        array.type.list_size
    }  # fmt: skip
    if len(lengths) > 1:
        raise ValueTypeError(
            "lists are of several lengths",
            where=where,
            expected="lists that make an array",
            found="lengths " + ", ".join(map(str, sorted(lengths)[:4])),
        )
    return elements.reshape(len(array), *(lengths or {0}), *elements.shape[1:])


def arrow_table(where: str, value: Any) -> pa.Table:
    """Convert an object for which `is_table` holds to an Arrow table, in types that DuckDB reads.

    Raises:
        InputError: it cannot be converted, such as a lazy frame of polars before it is collected.
    """
    if isinstance(value, pa.Table):
        return value
    try:
        return pa.table(value)
    except (UcleError, MemoryError, RecursionError):
        raise
    except Exception as error:
        reason = (str(error).strip() or "no reason").splitlines()[0]
        raise InputError(
            "this is not a table with rows of its own",
            where=where,
            expected="a table of Arrow, pandas or polars, or a stream of Arrow records",
            found=f"{shown_kind(value)}: {type(error).__name__}: {reason}",
            hint="frame.collect() computes a lazy frame"
            if hasattr(value, "collect")
            else way_out(value),
        ) from error


def read_stream(where: str, value: Any) -> Any:
    """Read a stream of rows whole; return anything else unchanged.

    Programs read their inputs more than once, but a stream yields its rows once. While one is open,
    DuckDB refuses queries on the connection that it comes from.
    """
    once = isinstance(value, Iterator) and is_table(value)
    return arrow_table(where, value) if once else value


def read_streams(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs by name, with each stream of rows read whole."""
    return {name: read_stream(f"input {name}", value) for name, value in inputs.items()}


def narrow_decimals(where: str, table: pa.Table) -> pa.Table:
    """Convert decimals of 256 bits in a table to 128 bits, which DuckDB supports.

    Raises:
        ValueTypeError: one of them has too many digits.
    """
    for n, field in enumerate(table.schema):
        if not pa.types.is_decimal256(field.type):
            continue
        narrow = pa.decimal128(38, min(field.type.scale, 38))
        try:
            column = table.column(n).cast(narrow)
        except pa.ArrowException as error:
            raise ValueTypeError(
                "a decimal has more digits than can be read",
                where=f"{where}, column {field.name}",
                expected="decimals of up to 38 digits, all of which may be after the point",
                found=f"{field.type}: {str(error).splitlines()[0]}",
                hint="cast(pyarrow.float64()) rounds them",
            ) from error
        table = table.set_column(n, field.with_type(narrow), column)
    return table
