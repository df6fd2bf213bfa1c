"""Loads the kernels into a DuckDB connection as an extension: the fast route."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
import threading
from pathlib import Path

import duckdb

from ucle.errors import ExtensionUnavailableError
from ucle.udf_kernels.native import compiled

_lock = threading.Lock()


@functools.cache
def extension_path() -> Path:
    """A name for the compiled library that DuckDB accepts as an extension's.

    It is a link: DuckDB then gets the very image that Python has loaded. A copy would be a second
    one, with globals of its own. The directory is private to the process and goes with it.
    """
    library = Path(compiled().__file__).resolve()
    directory = Path(tempfile.mkdtemp(prefix="ucle-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    link = directory / "ucle_kernels.duckdb_extension"
    link.symlink_to(library)
    return link


def load_extension(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes the kernels SQL functions of the database behind a connection.

    Loading again does nothing. All connections to the database see the kernels.

    Raises:
        ExtensionUnavailableError: DuckDB refuses; `register_arrow` still works there.
        KernelError: the compiled kernels are missing.
    """
    _check_allowed(connection)
    with _lock:  # two loads at once would both register the kernels
        path = str(extension_path()).replace("'", "''")
        try:
            connection.execute(f"LOAD '{path}'")
        except duckdb.Error as error:
            raise _unavailable(str(error)) from error


def _check_allowed(connection: duckdb.DuckDBPyConnection) -> None:
    """Ask before trying: a LOAD that is refused aborts the transaction that is open."""
    setting = "SELECT current_setting('allow_unsigned_extensions')"
    ((allowed,),) = connection.execute(setting).fetchall()
    if str(allowed).lower() not in ("true", "1"):
        raise _unavailable(f"unsigned extensions are not allowed: the setting is {allowed}")


def _unavailable(reason: str) -> ExtensionUnavailableError:
    hint = "use the Arrow route: ucle.udf_kernels.register_arrow(connection)"
    lowered = reason.lower()
    if "unsigned" in lowered or "signature" in lowered:
        hint = (
            "open the database with ucle.connect, or duckdb.connect(path, "
            "config={'allow_unsigned_extensions': 'true'}); or " + hint
        )
    elif "platform" in lowered:
        hint = "rebuild ucle on this machine; or " + hint
    return ExtensionUnavailableError(
        "DuckDB refuses to load the kernels as an extension", found=reason, hint=hint
    )
