"""Arrow arrays as C reads them: brought to the types whose buffers it knows, then described.

In which Arrow types DuckDB hands over its columns depends on its version and on settings of the
session (``arrow_output_version``, ``produce_arrow_string_view``, ``arrow_lossless_conversion``):
BLOBs may be views, lists too, booleans an extension type. None of that reaches C.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np

from ucle.errors import KernelError
from ucle.foundation.libraries import pa
from ucle.udf_kernels.element_types import ELEMENT_TYPES
from ucle.udf_kernels.signatures import ROW_FIELDS, Kernel


def parameter_arrays(kernel: Kernel, arrays: Sequence[Any]) -> list[Any]:
    """One array for each parameter of a kernel, in a type that C knows.

    What was gathered as a list of structs comes as a list for each of their fields.
    """
    rows = sum(kernel.gathered)
    arrays = list(arrays)
    if rows > 1:
        at = kernel.gathered.index(True)
        arrays[at : at + 1] = _fields(as_list(arrays[at]), rows)
    parameters = kernel.parameters
    if kernel.variadic:
        parameters += ("BLOB",) * (len(arrays) - len(parameters))
    marks = kernel.gathered or (False,) * len(parameters)
    return [
        as_parameter(array, sql + "[]" if gathered else sql)
        for array, sql, gathered in zip(arrays, parameters, marks, strict=True)
    ]


def _fields(lists: Any, count: int) -> list[Any]:
    """A list of structs as lists of their fields, which share its offsets."""
    structs = lists.values
    if structs.null_count:
        fields = structs.flatten()  # a struct that is NULL has fields that are
    else:
        fields = [structs.field(name) for name in ROW_FIELDS[:count]]
    return [_with_values(lists, field) for field in fields]


def as_list(array: Any) -> Any:
    """A list array of whatever kind as one with offsets."""
    array = _unwrap_array(array)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return array
    # A view: offsets and sizes, in whatever order. NULLs have no size that counts.
    sizes = np.where(array.is_valid(), array.sizes, 0)
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return pa.LargeListArray.from_arrays(offsets, array.flatten(), mask=array.is_null())


def as_parameter(array: Any, sql: str) -> Any:
    """An array of an SQL type in one of the Arrow types that C reads; a copy only where needed."""
    if sql.endswith("[]"):
        lists = as_list(array)
        if sql == "BOOLEAN[]":
            _check_lists_of_booleans(_unwrap_array(lists.values).type)
        values = as_parameter(lists.values, sql[:-2])
        return lists if values is lists.values else _with_values(lists, values)
    array, accepted = _unwrap_array(array), _accepted_types(sql)
    if array.type in accepted:
        return array
    if pa.types.is_int8(array.type) and sql == "BOOLEAN":
        # Bytes that no list refers to may hold anything, which a cast would look at.
        return array.view(pa.uint8())
    return array.cast(accepted[0])


def _check_lists_of_booleans(type_: pa.DataType) -> None:
    """Refuse what DuckDB 1.4 hands over where it is to lose nothing: bytes that nobody has set.

    Raises:
        KernelError: it does so here.
    """
    if pa.types.is_int8(type_) and int(duckdb.__version__.split(".")[0]) < 2:
        raise KernelError(
            "DuckDB 1.4 loses the booleans of lists while arrow_lossless_conversion is set: RESET "
            "arrow_lossless_conversion, or a newer DuckDB"
        )


@functools.cache
def _accepted_types(sql: str) -> tuple[pa.DataType, ...]:
    """The Arrow types of an SQL type that C reads."""
    match sql:
        case "BLOB":
            return pa.large_binary(), pa.binary()
        case "VARCHAR":
            return pa.large_string(), pa.string()
        case "BOOLEAN":
            return (pa.uint8(),)  # a byte per entry, where Arrow has a bit
    element = next(x for x in ELEMENT_TYPES.values() if x.sql == sql)
    if element.dtype.kind != "c":
        return (pa.from_numpy_dtype(element.dtype),)
    part = pa.from_numpy_dtype(np.empty(0, element.dtype).real.dtype)
    return (pa.struct({"re": part, "im": part}),)


def _unwrap_array(array: Any) -> Any:
    """An array without what is wrapped around its values."""
    while True:
        if isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        else:
            return array


def _with_values(lists: Any, values: Any) -> Any:
    """A list array with other values at the same places."""
    large = pa.types.is_large_list(lists.type)
    type_ = (pa.large_list if large else pa.list_)(values.type)
    places = lists.buffers()[:2]
    return pa.Array.from_buffers(type_, len(lists), places, offset=lists.offset, children=[values])


def describe(ffi: Any, struct: Any, array: Any, alive: list[Any]) -> None:
    """Fill a ``ucle_array`` with an array's buffers, in `alive` whatever has to outlive the call.

    C looks at every offset before it follows it, and knows where buffers end.
    """
    alive.append(array)
    struct.offset, struct.length = array.offset, len(array)
    struct.wide = any(
        test(array.type)
        for test in (pa.types.is_large_binary, pa.types.is_large_string, pa.types.is_large_list)
    )
    validity, *buffers = array.buffers()
    _point(ffi, struct.validity, validity)
    children: list[Any] = []
    if pa.types.is_struct(array.type):
        children = [array.field(i) for i in range(array.type.num_fields)]
    elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        _point(ffi, struct.offsets, buffers[0])
        children = [array.values]
    elif len(buffers) == 2:
        _point(ffi, struct.offsets, buffers[0])
        _point(ffi, struct.data, buffers[1])
    else:
        _point(ffi, struct.data, buffers[0])
    if children:
        structs = ffi.new("ucle_array[]", len(children))
        alive.append(structs)  # the struct's pointer does not own them
        struct.children, struct.child_count = structs, len(children)
        for child_struct, child in zip(structs, children, strict=True):
            describe(ffi, child_struct, child, alive)


def _point(ffi: Any, place: Any, buffer: Any) -> None:
    if buffer is not None:
        place.start, place.bytes = ffi.cast("void *", buffer.address), buffer.size
