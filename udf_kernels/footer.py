"""The footer by which DuckDB knows a shared library as an extension of its own.

It is what stands last in the file: 8 fields of 32 bytes, then 256 bytes for a signature, which is
empty here. What rewrites a library (``strip``, ``patchelf``, ``auditwheel repair``) may drop it, so
that it is written after them. For an installation whose library was stripped, a copy gets a footer:
``strip`` puts section headers last, and neither GNU's nor LLVM's leaves anything behind them. The
copy lies in a directory of its own that only this user can enter, and is removed when the process
that made it ends.

In: the path of a library. Out: the same with a footer. Imports nothing of ucle, so that setup.py
and other builds can load this file by its path.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import shutil
import stat
import sys
import tempfile
from pathlib import Path


def footered_copy(library: Path) -> Path:
    """Copies a library into a new directory, and gives the copy a footer.

    Raises:
        OSError: there is no directory for it, or no space. Nothing is left behind then.
    """
    copy = Path(tempfile.mkdtemp(prefix="ucle-")) / library.name
    try:
        _write(copy, library)
    except OSError:
        remove_copy(copy)
        raise
    atexit.register(_remove_own, copy, os.getpid())
    return copy


def restore_copy(copy: Path, library: Path) -> None:
    """Puts a copy back that is gone: a process that was forked outlives the one that made it.

    It gets the name that it had, by which the loader knows the image that is in memory.

    Raises:
        OSError: it cannot be written, or somebody else has made the directory.
    """
    if copy.is_file():
        return
    with contextlib.suppress(FileExistsError):
        copy.parent.mkdir(mode=0o700)
        atexit.register(_remove_own, copy, os.getpid())
    found = copy.parent.lstat()
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not ours or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{copy.parent} is not a directory of this user alone")
    _write(copy, library)


def remove_copy(copy: Path) -> None:
    """Removes a copy and its directory."""
    shutil.rmtree(copy.parent, ignore_errors=True)


def _remove_own(copy: Path, maker: int) -> None:
    """At the end of a process: its forks, which end with the same calls, leave the copy alone."""
    if os.getpid() == maker:
        remove_copy(copy)


def _write(copy: Path, library: Path) -> None:
    """Writes the copy under another name first: nobody sees a part of it."""
    part = copy.with_name(f"{copy.name}.{os.getpid()}")
    shutil.copyfile(library, part)
    append_footer(part)
    part.chmod(0o500)
    part.replace(copy)


SIZE = 512
"""Bytes of a footer."""

_FIELD, _SIGNATURE = 32, 256
_ABI = "C_STRUCT"  # the stable interface in C: one library serves DuckDB 1.4 as well as 2.0
_API_VERSION = "v1.2.0"  # the oldest that has all that the kernels call
_MAGIC = "4"


def platform_name() -> str:
    """The name that DuckDB gives to this machine (``PRAGMA platform``).

    >>> platform_name().count("_") in (1, 2)  # linux_amd64, osx_arm64, linux_arm64_musl
    True
    """
    machine = platform.machine().lower()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    if sys.platform == "darwin":
        return f"osx_{machine}"
    if sys.platform == "win32":
        return f"windows_{machine}"
    return f"linux_{machine}" + ("" if platform.libc_ver()[0] == "glibc" else "_musl")


def footer(platform: str, extension_version: str = "1") -> bytes:
    """A footer for a library that was built for a platform.

    Args:
        platform: as DuckDB names it; it loads no library of another.
        extension_version: what ``duckdb_extensions()`` shows.

    Raises:
        ValueError: a field does not fit into its 32 bytes.

    >>> footer("linux_amd64")[32 * 6 :][:11]
    b'linux_amd64'
    """
    fields = [b"", b"", b"", _ABI.encode(), extension_version.encode()]
    fields += [_API_VERSION.encode(), platform.encode(), _MAGIC.encode()]
    for field in fields:
        if len(field) > _FIELD:
            raise ValueError(f"a field of DuckDB's footer has {_FIELD} bytes, not {field!r}")
    return b"".join(field.ljust(_FIELD, b"\0") for field in fields) + bytes(_SIGNATURE)


def has_footer(path: Path | str) -> bool:
    """True if a file ends with a footer, for any platform.

    Raises:
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - SIZE, 0))
        tail = file.read()
    fields = [tail[at : at + _FIELD].rstrip(b"\0") for at in range(0, 8 * _FIELD, _FIELD)]
    return len(tail) == SIZE and fields[3] == _ABI.encode() and fields[7] == _MAGIC.encode()


def append_footer(
    path: Path | str, platform: str | None = None, extension_version: str = "1"
) -> None:
    """Makes an extension of a library; a footer that it has is replaced.

    Args:
        path: of the library.
        platform: as for `footer`; that of this machine by default.
        extension_version: as for `footer`.

    Raises:
        OSError: the file cannot be read or written.
        ValueError: as for `footer`.
    """
    ending = footer(platform or platform_name(), extension_version)
    replaced = has_footer(path)
    with Path(path).open("r+b") as file:
        file.seek(-SIZE if replaced else 0, 2)
        file.write(ending)


if __name__ == "__main__":  # without a path: which platform this is
    if sys.argv[1:]:
        append_footer(*sys.argv[1:])
    else:
        print(platform_name())
