"""Loads the kernels into a DuckDB connection as an extension: the fast route."""

from __future__ import annotations

import weakref

import duckdb

from ucle.errors import ExtensionForbiddenError, ExtensionUnavailableError
from ucle.foundation.threads import opening
from ucle.udf_kernels import native

_AN_AGGREGATE = "sum_vec_8"
"""A function that nobody else makes: Python has no aggregates, and macros are not internal."""

_loaded: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
"""Connections through which the kernels were loaded: DuckDB never unloads them."""


def load_extension(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes the kernels SQL functions of the database behind a connection.

    Loading again does nothing. All connections to the database see the kernels.

    Raises:
        ExtensionForbiddenError: the database may load no extensions of this kind; `register_arrow`
            works there.
        ExtensionStrippedError: the library has no footer, and there is no place for a copy.
        ExtensionUnavailableError: DuckDB refuses; `register_arrow` still works there.
        KernelsMissingError: the compiled kernels are missing.
    """
    native.load_module()  # DuckDB gets the image that Python has loaded
    if connection in _loaded:
        limit_memory(connection)
        return
    # Asked before it is tried: a LOAD that is refused aborts the transaction that is open.
    if not _is_set(connection, "allow_unsigned_extensions"):
        if is_loaded(connection):
            limit_memory(connection)
            return
        native.library()  # where that is the reason, no setting will help
        raise _unavailable("unsigned extensions are not allowed", ExtensionForbiddenError)
    path = str(native.library()).replace("'", "''")
    with opening:  # two loads at once would both register the kernels
        try:
            connection.execute(f"LOAD '{path}'")
        except duckdb.Error as error:
            raise _unavailable(str(error)) from error
    _loaded.add(connection)
    limit_memory(connection)


def limit_memory(connection: duckdb.DuckDBPyConnection, size: int | None = None) -> None:
    """Bounds what kernels hold beyond DuckDB's account: by default by its ``memory_limit``.

    This covers the states of ``_wide`` aggregates, the totals of long sums, the tensors of paths,
    and the memory that calls borrow while they run; the results of one batch of rows have the same
    bound. It holds for the database, from now on: the kernels learn where a session begins, and
    bound other databases by limits of their own.
    """
    limit = "system.main.current_setting('memory_limit')" if size is None else f"'{size} B'"
    connection.execute(f"SELECT system.main.kernel_memory_limit({limit})").fetchall()


def is_loaded(connection: duckdb.DuckDBPyConnection) -> bool:
    """True if the database behind a connection has the kernels as functions.

    They stay so when the database allows no unsigned extensions any more.
    """
    if _is_set(connection, "enable_external_access"):  # else DuckDB cannot list its extensions
        named = (
            "SELECT count(*) FROM system.main.duckdb_extensions() "
            "WHERE loaded AND extension_name LIKE 'ucle%'"
        )
        if connection.execute(named).fetchall() == [(0,)]:
            return False  # it takes a tenth of the time to know that
    functions = (
        "SELECT count(*) FROM system.main.duckdb_functions() WHERE function_name = $1 AND internal"
    )
    ((loaded,),) = connection.execute(functions, [_AN_AGGREGATE]).fetchall()
    return bool(loaded)


def _is_set(connection: duckdb.DuckDBPyConnection, setting: str) -> bool:
    query = "SELECT system.main.current_setting($1)"
    ((value,),) = connection.execute(query, [setting]).fetchall()
    return str(value).lower() in ("true", "1")


def _unavailable(
    reason: str, kind: type[ExtensionUnavailableError] = ExtensionUnavailableError
) -> ExtensionUnavailableError:
    hint = "use the Arrow route: ucle.udf_kernels.register_arrow(connection)"
    lowered = reason.lower()
    if "unsigned" in lowered or "signature" in lowered:
        hint = (
            "open the database with ucle.connect, or duckdb.connect(path, "
            "config={'allow_unsigned_extensions': 'true'}); or " + hint
        )
    elif "platform" in lowered:
        hint = "rebuild ucle on this machine; or " + hint
    return kind("DuckDB refuses to load the kernels as an extension", found=reason, hint=hint)
