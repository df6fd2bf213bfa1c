"""Registers the kernels as Arrow functions: the route for connections that allow no extension.

The same C functions run, on the buffers of the Arrow arrays and without a copy of the inputs.
Python has no user aggregates in DuckDB, so an aggregate becomes a function of a list: what is
``sum_vec_64(val)`` on the fast route is ``sum_vec(list(val))`` here, without the capacity suffix,
and ``sum_vec_mult_64(u, v)`` is ``sum_vec_mult(list({'a': u, 'b': v}))``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ucle.errors import KernelError
from ucle.foundation.libraries import pa
from ucle.udf_kernels.arrow_arrays import describe, parameter_arrays
from ucle.udf_kernels.element_types import ELEMENT_TYPES, ElementType
from ucle.udf_kernels.native import load_module
from ucle.udf_kernels.signatures import Kernel, kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

_MESSAGE_BYTES = 512


def register_arrow(
    connection: duckdb.DuckDBPyConnection,
    prefix: str = "",
    names: Collection[str] | None = None,
    memory_limit: int | None = None,
) -> tuple[str, ...]:
    """Registers kernels on a connection and returns the names they got.

    Args:
        connection: any DuckDB connection; nothing needs to be allowed on it.
        prefix: stands before every name, to keep clear of functions that exist.
        names: the kernels to register; all of them by default.
        memory_limit: bytes that one call may have; those of the connection by default.

    Raises:
        KernelError: a name is unknown.
        KernelsMissingError: the compiled kernels are missing.
        duckdb.Error: a function of that name exists on the connection.
    """
    load_module()  # says how to get the kernels where there are none
    known = kernels()
    selected = tuple(known if names is None else names)
    unknown = [name for name in selected if name not in known]
    if unknown:
        raise KernelError(f"no kernel named {unknown[0]}", expected=", ".join(known))
    if memory_limit is None:
        memory_limit = _memory_limit(connection)
    create: Any = connection.create_function  # its type hints differ from version to version
    registered: list[str] = []
    try:
        for name in selected:
            kernel = known[name]
            create(
                prefix + name,
                _function(name, memory_limit),
                None if kernel.variadic else list(kernel.arrow_parameters),
                kernel.returns,
                type="arrow",
                # A list without elements makes NULL, which DuckDB's default mode forbids.
                null_handling="special",
            )
            registered.append(prefix + name)
    except Exception:
        remove_arrow(connection, registered)
        raise
    return tuple(registered)


def remove_arrow(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> None:
    """Removes what `register_arrow` registered, by the names that it returned."""
    for name in names:
        connection.remove_function(name)


def _memory_limit(connection: duckdb.DuckDBPyConnection) -> int:
    """The limit of the database behind a connection in bytes; 0 for none that DuckDB can write.

    >>> import duckdb
    >>> _memory_limit(duckdb.connect(config={"memory_limit": "1.5 GiB"}))
    1610612736
    """
    setting = "SELECT system.main.current_setting('memory_limit')"
    ((text,),) = connection.execute(setting).fetchall()
    number, _, unit = str(text).partition(" ")
    powers = {"bytes": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4, "PiB": 5}
    return int(float(number) * 1024 ** powers[unit]) if unit in powers else 0


@functools.cache
def _function(name: str, memory_limit: int) -> Callable[..., Any]:
    """The function that DuckDB calls with a chunked array per argument, under a memory limit.

    The cache keeps it alive. After `remove_arrow`, DuckDB 1.4 still calls it in a transaction that
    began before, and would find it freed.
    """
    kernel = kernels()[name]

    def function(*columns: Any) -> Any:
        return _run(kernel, memory_limit, [_one_array(column) for column in columns])

    if kernel.variadic:
        return function
    # DuckDB counts the parameters by the signature, and takes a starred one for a single one.
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(f"argument_{i}", inspect.Parameter.POSITIONAL_ONLY)
            for i in range(len(kernel.arrow_parameters))
        ]
    )
    return function


def _one_array(column: Any) -> Any:
    """The single array of a chunked array. DuckDB sends one chunk at a time."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _run(kernel: Kernel, memory_limit: int, arrays: list[Any]) -> Any:
    module = load_module()
    ffi, lib = module.ffi, module.lib
    rows = len(arrays[0])
    arrays = parameter_arrays(kernel, arrays)
    alive: list[Any] = []
    structs = ffi.new("ucle_array[]", len(arrays))
    for struct, array in zip(structs, arrays, strict=True):
        describe(ffi, struct, array, alive)
    result = ffi.new("ucle_result *")
    message = ffi.new("char[]", _MESSAGE_BYTES)
    room = message, _MESSAGE_BYTES
    if lib.ucle_arrow_run(kernel.index, memory_limit, rows, structs, len(arrays), result, *room):
        raise KernelError(ffi.string(message).decode(errors="replace"))
    return _result(module, kernel, rows, result)


def _result(module: Any, kernel: Kernel, rows: int, result: Any) -> Any:
    """The buffers that C has filled, as an Arrow array that owns them."""

    def adopt(address: Any, size: int) -> Any:
        if address == module.ffi.NULL:
            return None
        owner = module.ffi.gc(address, module.lib.ucle_free)
        return pa.foreign_buffer(int(module.ffi.cast("uintptr_t", address)), size, base=owner)

    element = ELEMENT_TYPES[kernel.tag]
    validity = adopt(result.validity, rows // 8 + 1)
    values = adopt(result.values, (rows + 1) * 16)
    data = adopt(result.data, result.data_bytes) or pa.py_buffer(b"")
    if kernel.returns == "BLOB[]":
        return _lists_of_tensors(rows, validity, values, data, adopt, result)
    if kernel.returns == "BLOB":
        return pa.Array.from_buffers(pa.large_binary(), rows, [validity, values, data])
    if kernel.returns.endswith("[]"):
        if kernel.returns != element.sql_list:
            element = ELEMENT_TYPES["i64"]
        size = element.dtype.itemsize
        child = _elements(element, result.data_bytes // size, None, data)
        lists = pa.large_list(child.type)
        return pa.Array.from_buffers(lists, rows, [validity, values], children=[child])
    if kernel.returns == element.sql:
        return _elements(element, rows, validity, values)
    plain = ELEMENT_TYPES["bool" if kernel.returns == "BOOLEAN" else "i64"]
    return _elements(plain, rows, validity, values)


def _lists_of_tensors(
    rows: int, validity: Any, values: Any, data: Any, adopt: Callable[..., Any], result: Any
) -> Any:
    ends = adopt(result.ends, 8 * result.items)
    offsets = np.zeros(result.items + 1, np.int64)
    if ends is not None:
        offsets[1:] = np.frombuffer(ends, np.int64, result.items)
    buffers = [None, pa.py_buffer(offsets), data]
    tensors = pa.Array.from_buffers(pa.large_binary(), result.items, buffers)
    lists = pa.large_list(tensors.type)
    return pa.Array.from_buffers(lists, rows, [validity, values], children=[tensors])


def _elements(element: ElementType, count: int, validity: Any, data: Any) -> Any:
    """Elements as C keeps them, as an Arrow array."""
    if element.dtype.kind == "b":
        return pa.Array.from_buffers(pa.uint8(), count, [validity, data]).cast(pa.bool_())
    if element.dtype.kind != "c":
        arrow_type = pa.from_numpy_dtype(element.dtype)
        return pa.Array.from_buffers(arrow_type, count, [validity, data])
    numbers = np.frombuffer(data, element.dtype, count)
    parts = {"re": pa.array(numbers.real), "im": pa.array(numbers.imag)}
    struct = pa.struct([(name, part.type) for name, part in parts.items()])
    return pa.Array.from_buffers(struct, count, [validity], children=list(parts.values()))
