"""A process that forks while another thread of it computes: the new one waits for nobody."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType

import pytest

from ucle.foundation.threads import import_late

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")


def ends(child: Callable[[], object], seconds: float = 20) -> bool:
    """True if a forked process that runs `child` comes to its end in time."""
    if (process := os.fork()) == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            child()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(process, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:This process")
def test_properties_that_a_thread_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to Python 3.11 they have a lock for all objects of a class."""
    begun, go = threading.Event(), threading.Event()

    class Slow:
        @functools.cached_property
        def value(self) -> int:
            if threading.current_thread() is threading.main_thread():
                return 1
            begun.set()
            return int(go.wait(30))

    module = ModuleType("ucle.slow")
    monkeypatch.setattr(module, "Slow", Slow, raising=False)
    monkeypatch.setitem(sys.modules, "ucle.slow", module)
    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    try:
        assert begun.wait(30)
        assert ends(lambda: Slow().value)
    finally:
        go.set()
        thread.join()


@pytest.mark.filterwarnings("ignore:This process")
def test_modules_that_a_thread_imports(
    tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither their locks nor half of what is in them comes to the new process."""
    begun = threading.Event()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "begun", begun, raising=False)
    text = "import sys, time\nsys.begun.set()\ntime.sleep(0.3)\nvalue = 7\n"
    (tmp_path / "slow_module.py").write_text(text)  # type: ignore[operator]
    thread = threading.Thread(target=lambda: import_late("slow_module"))
    thread.start()
    try:
        assert begun.wait(30)
        asked = time.monotonic()

        def child() -> None:
            assert import_late("slow_module").value == 7
            assert time.monotonic() - asked < 20

        assert ends(child)
    finally:
        thread.join()
        sys.modules.pop("slow_module", None)
