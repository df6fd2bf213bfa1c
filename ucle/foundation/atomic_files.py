"""Files and folders that appear when they are complete, or not at all.

Data is written under a random name in the folder of the target, created exclusively (O_EXCL), and
renamed at the end. So no other file is changed, no link is followed, and a reader of the target
finds either the old contents or the new.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_EXCHANGES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "linux": ("renameat2", (-100,), (2,)),
    "darwin": ("renamex_np", (), (2,)),
}
"""The C function, the argument before each path (AT_FDCWD), and the flag for an exchange."""


@contextlib.contextmanager
def fresh_file(target: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces the target when the block ends without an error.

    Raises:
        OSError: it cannot be made or renamed. Nothing is left of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with fresh_file(Path(folder) / "a.txt") as file:
    ...         count = file.write(b"whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    fresh = _beside(target)
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    handle = os.open(fresh, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def fresh_folder(target: Path) -> Iterator[Path]:
    """Create an empty folder that replaces the target when the block ends without an error.

    Where the system cannot exchange two folders in one step, there is no target for a moment; the
    old one is beside it then.

    Raises:
        OSError: it cannot be made or renamed. The target is as it was, and nothing else is left.
    """
    fresh, old = _beside(target), _beside(target)
    fresh.mkdir()
    try:
        yield fresh
        if target.exists():
            if _exchange(fresh, target):
                return
            target.rename(old)
        try:
            fresh.rename(target)
        except BaseException:
            if old.exists():
                old.rename(target)
            raise
    finally:
        for left in (fresh, old):
            shutil.rmtree(left, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders atomically; return False where that is impossible."""
    if sys.platform not in _EXCHANGES:
        return False
    name, head, tail = _EXCHANGES[sys.platform]
    function = getattr(ctypes.CDLL(None), name, None)  # not every C library has it
    if function is None:
        return False
    return bool(function(*head, os.fsencode(one), *head, os.fsencode(other), *tail) == 0)


def _beside(target: Path) -> Path:
    """Return an unused name in the target's folder."""
    return target.parent / f".ucle_{secrets.token_hex(12)}"
