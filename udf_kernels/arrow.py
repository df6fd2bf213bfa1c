"""Registers the kernels as Arrow functions: the route for connections that allow no extension.

The same C functions run, on the buffers of the Arrow arrays and without a copy of the inputs.
Python has no user aggregates in DuckDB, so an aggregate becomes a function of lists: what is
``sum_vec_64(val)`` on the fast route is ``sum_vec(list(val))`` here, without the capacity suffix.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types as kind

from ucle.errors import KernelError
from ucle.udf_kernels.catalog import KERNELS, Kernel
from ucle.udf_kernels.native import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

_MESSAGE_BYTES = 256


def register_arrow(
    connection: duckdb.DuckDBPyConnection,
    prefix: str = "",
    names: Collection[str] | None = None,
) -> tuple[str, ...]:
    """Registers kernels on a connection and returns the names they got.

    Args:
        connection: any DuckDB connection; nothing needs to be allowed on it.
        prefix: stands before every name, to keep clear of functions that exist.
        names: the kernels to register; all of `KERNELS` by default.

    Raises:
        KernelError: a name is unknown, or the compiled kernels are missing.
        duckdb.Error: a function of that name exists on the connection.
    """
    wanted = tuple(KERNELS if names is None else names)
    unknown = [name for name in wanted if name not in KERNELS]
    if unknown:
        raise KernelError(f"no kernel named {unknown[0]}", expected=", ".join(KERNELS))
    create: Any = connection.create_function  # its type hints differ from version to version
    registered: list[str] = []
    try:
        for name in wanted:
            kernel = KERNELS[name]
            create(
                prefix + name,
                _function(name),
                list(kernel.arrow_parameters),
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


@functools.cache
def _indices() -> dict[str, int]:
    """Where each kernel stands in the C table."""
    module = compiled()
    return {
        module.ffi.string(module.lib.ucle_kernel_name(i)).decode(): i
        for i in range(module.lib.ucle_kernel_count())
    }


@functools.cache
def _function(name: str) -> Callable[..., Any]:
    """What DuckDB calls with one chunked array per argument.

    The cache keeps it alive. After `remove_arrow`, DuckDB 1.4 still calls it in a transaction that
    began before, and would find it freed.
    """
    kernel, index = KERNELS[name], _indices()[name]

    def function(*columns: Any) -> Any:
        return _run(kernel, index, [_one_array(column) for column in columns])

    # DuckDB counts the parameters by the signature, and takes a starred one for a single one.
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(f"argument_{i}", inspect.Parameter.POSITIONAL_ONLY)
            for i in range(len(kernel.parameters))
        ]
    )
    return function


def _one_array(column: Any) -> Any:
    """The single array of a chunked array. DuckDB sends one chunk at a time."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _run(kernel: Kernel, index: int, arrays: list[Any]) -> Any:
    module = compiled()
    ffi, lib = module.ffi, module.lib
    rows = len(arrays[0])
    alive: list[Any] = []
    structs = ffi.new("ucle_array[]", len(arrays))
    for struct, array in zip(structs, arrays, strict=True):
        _describe(ffi, struct, array, alive)
    result = ffi.new("ucle_result *")
    message = ffi.new("char[]", _MESSAGE_BYTES)
    if lib.ucle_arrow_run(index, rows, structs, len(arrays), result, message, _MESSAGE_BYTES):
        raise KernelError(ffi.string(message).decode(errors="replace"))
    return _result(module, kernel.returns, rows, result)


def _describe(ffi: Any, struct: Any, array: Any, alive: list[Any]) -> None:
    """Fills a ``ucle_array`` with the addresses of an array's buffers."""
    buffers = array.buffers()
    alive.append(buffers)
    addresses = [ffi.cast("void *", buffer.address if buffer else 0) for buffer in buffers]
    struct.offset = array.offset
    struct.validity = addresses[0]
    struct.wide = any(
        test(array.type)
        for test in (kind.is_large_binary, kind.is_large_string, kind.is_large_list)
    )
    if kind.is_list(array.type) or kind.is_large_list(array.type):
        child = ffi.new("ucle_array *")
        alive.append(child)
        struct.offsets = addresses[1]
        struct.child = child
        _describe(ffi, child, array.values, alive)
    elif len(addresses) == 3:
        struct.offsets, struct.data = addresses[1:]
    else:
        struct.data = addresses[1]


def _result(module: Any, returns: str, rows: int, result: Any) -> Any:
    """The buffers that C has filled, as an Arrow array that owns them."""

    def adopt(address: Any, size: int) -> Any:
        if address == module.ffi.NULL:
            return None
        owner = module.ffi.gc(address, module.lib.ucle_free)
        return pa.foreign_buffer(int(module.ffi.cast("uintptr_t", address)), size, base=owner)

    validity = adopt(result.validity, rows // 8 + 1)
    values = adopt(result.values, (rows + 1) * 8)
    data = adopt(result.data, result.doubles * 8) or pa.py_buffer(b"")
    match returns:
        case "BLOB":
            return pa.Array.from_buffers(pa.large_binary(), rows, [validity, values, data])
        case "DOUBLE[]":
            child = pa.Array.from_buffers(pa.float64(), result.doubles, [None, data])
            lists = pa.large_list(pa.float64())
            return pa.Array.from_buffers(lists, rows, [validity, values], children=[child])
        case "BOOLEAN":
            bytes_ = pa.Array.from_buffers(pa.uint8(), rows, [validity, values])
            return bytes_.cast(pa.bool_())
        case "BIGINT":
            return pa.Array.from_buffers(pa.int64(), rows, [validity, values])
        case _:
            return pa.Array.from_buffers(pa.float64(), rows, [validity, values])
