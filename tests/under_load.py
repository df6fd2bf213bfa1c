"""Runs tests beside busy processes: what fails there hangs on times that it should not hang on.

    python tests/under_load.py [--load 4] [--rounds 2] [--parts 20]

So many rounds of the whole selection, each by another seed; then as many parts, each a tenth of
the selection by a seed of its own and all tests marked `timing`, which have failed under load once.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

SPIN = "while True: pass"
TENTH = 10


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep so many processes busy for as long as a block runs."""
    started = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def run_tests(*arguments: str) -> tuple[bool, str]:
    """Run tests on two processes; returns whether none failed, and the summary."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    failed = re.findall(r"^(?:FAILED|ERROR) .*$", done.stdout, re.MULTILINE)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr[-500:]
    return done.returncode == 0, "\n".join([*failed, last])


def main() -> int:
    """Print a line for each run; returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--parts", type=int, default=20)
    options = parser.parse_args()
    runs = [(f"--seed={seed}",) for seed in range(options.rounds)]
    runs += [
        (f"--seed={seed}", f"--shard={seed % TENTH + 1}/{TENTH}", "--timing")
        for seed in range(100, 100 + options.parts)
    ]
    passed = []
    with busy(options.load):
        for arguments in runs:
            started = time.monotonic()
            well, summary = run_tests(*arguments)
            passed.append(well)
            print(
                f"{' '.join(arguments)}: {summary} ({time.monotonic() - started:.0f} s)", flush=True
            )
    print(f"{sum(passed)} of {len(passed)} runs without a failure")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
