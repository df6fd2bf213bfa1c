"""The lock under which databases are opened and kernels loaded, safe to fork beside.

A forked process has one thread, and of what the others held at that moment nothing is ever given
back: not a lock of Python, nor one that DuckDB or the dynamic loader takes while a database is
opened. So whoever opens one holds `opening`, and a fork waits until nobody does.

Whoever holds it starts no thread and logs nothing: a fork takes this lock before it takes those of
`logging` and `concurrent.futures`.
"""

from __future__ import annotations

import os
import threading

opening = threading.RLock()
"""One thread may take it twice: a signal handler that forks may have interrupted its holder."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=opening.acquire, after_in_parent=opening.release, after_in_child=opening.release
    )
