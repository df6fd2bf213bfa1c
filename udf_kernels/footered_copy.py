"""A copy of the kernels with a footer, for an installation whose library was stripped.

``strip`` rewrites a library and puts its section headers last, so that a footer is lost: neither
GNU's nor LLVM's leaves anything behind them. The copy lies in a directory of its own that only this
user can enter, and is removed when the process that made it ends.

In: the path of a library. Out: the path of the copy. Loads nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from ucle.udf_kernels.footer import append_footer


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
