"""Files and folders that appear when they are whole, or not at all.

What is written goes by a random name in the folder of the target, made by nobody else (O_EXCL), and
is renamed at the end. So no other file is touched, no link is followed, and who reads the target
finds the old contents or the new.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def fresh_file(target: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the target's place when the block ends well.

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
    """An empty folder, which takes the target's place when the block ends well.

    Raises:
        OSError: it cannot be made or renamed. The target is as it was, and nothing else is left.
    """
    fresh, old = _beside(target), _beside(target)
    fresh.mkdir()
    try:
        yield fresh
        if target.exists():
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


def _beside(target: Path) -> Path:
    """A name in the target's folder that nothing has."""
    return target.parent / f".ucle_{secrets.token_hex(12)}"
