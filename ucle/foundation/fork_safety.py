"""The lock under which databases are opened and kernels loaded, safe to fork beside.

A forked process has one thread, and of what the others held at that moment nothing is ever given
back: not a lock of Python, nor one that DuckDB or the dynamic loader takes while a database is
opened. So whoever opens one holds `opening`, and a fork waits until nobody does. So does who
imports a module late, which another thread then waits for by a lock that Python keeps for each.

A fork takes this lock before it takes those of `logging` and `concurrent.futures`, which have to be
imported before this module for that. Who opens a database starts no thread and logs nothing
besides.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - see above
import functools
import importlib
import logging  # noqa: F401
import os
import sys
import threading
from types import ModuleType

opening = threading.RLock()
"""One thread may take it twice: a signal handler that forks may have interrupted its holder."""


def import_late(name: str) -> ModuleType:
    """A module, imported when it is first asked for, and not while another thread forks."""
    if (module := sys.modules.get(name)) is not None and not _is_begun(module):
        return module
    with opening:
        return importlib.import_module(name)


def _is_begun(module: ModuleType) -> bool:
    """Whether a module is being imported."""
    return bool(getattr(module.__spec__, "_initializing", False))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=opening.acquire, after_in_parent=opening.release, after_in_child=opening.release
    )


def _renew_property_locks() -> None:
    """Have no forked process wait for a property that a thread of its parent was computing.

    Up to Python 3.11 a cached property has a lock for all objects of its class.
    """
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "ucle":
            continue
        classes = [x for x in vars(module).values() if isinstance(x, type)]
        for each in (x for owner in classes for x in vars(owner).values()):
            if isinstance(each, functools.cached_property):
                each.lock = threading.RLock()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork") and sys.version_info < (3, 12):
    os.register_at_fork(after_in_child=_renew_property_locks)
