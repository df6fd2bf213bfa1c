"""Scripts that are interrupted by a key, each in a process of its own, and statements that are."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

PRESS = '''
import os, signal, sys, threading, time

signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs the tests may ignore it

def waits():
    """Whether the main thread waits for a statement."""
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame is not None and frame.f_code.co_name != "_run_interruptibly":
        frame = frame.f_back
    return frame is not None

def press(least):
    looks = 0
    while looks < least:
        time.sleep(0.1)
        looks = looks + 1 if waits() else 0
    os.kill(os.getpid(), signal.SIGINT)

def press_while_it_runs(least=5):
    threading.Thread(target=press, args=[least], daemon=True).start()
'''
"""The head of a script: `press_while_it_runs` presses Ctrl-C when statements run for half a second.

Its argument is another time, in tenths of a second. Pressed at a fixed time, it may come where
libraries import others and go on without what they could not have, and would be lost.
"""


def run_interrupted(script: str) -> tuple[float, str]:
    """The seconds and the answer that a script prints which calls `press_while_it_runs`."""
    done = subprocess.run(
        [sys.executable, "-c", PRESS + script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seconds, _, answer = done.stdout.partition(" ")
    return float(seconds), answer.strip()


@contextmanager
def interrupting(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Interrupts what runs on a connection, again and again, while the block runs."""
    stop = threading.Event()

    def interrupt() -> None:
        while not stop.wait(0.2):
            connection.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
