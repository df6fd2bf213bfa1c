"""Spellings of random programs: whether their plans cost the same.

    python -m benchmarks.spellings --programs 2000

A program is a sum of products in four spellings, of the same mathematics: one sum for each product,
nested sums, a statement for each inner sum, and lazy tensors (`random_programs.spellings` in the
tests). Each line is a program whose dearest spelling costs more than 1.2 times as much as its
cheapest one, and a millisecond more; costs are in milliseconds. Parts of the range of seeds may be
run in processes of their own, by `--first`.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

import ucle
from ucle.lazy.compute import compile_tensors

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from random_programs.spellings import spelled_program

ALIKE = 1.2
"""The most that the dearest spelling costs, as a multiple of the cheapest one."""

SMALL = 1e6
"""Nanoseconds of difference that no search looks for: it would take longer."""

MISSES = 0.05
"""The share of programs that may have spellings with other costs."""


def costs(seed: int, connection: Any) -> dict[str, float]:
    """Return the cost of the plan of each spelling, in nanoseconds."""
    program = spelled_program(seed)
    compiled = {
        name: ucle.einsum_program(
            text, database=connection, inputs=program.inputs, outputs=["y"]
        ).compiled
        for name, text in program.texts.items()
    }
    lazily = compile_tensors({"y": program.lazily(connection).lazy}, database=connection)
    ucle.clear_caches()
    compiled["lazily"] = lazily.compiled
    return {name: each.decomposed.total_cost for name, each in compiled.items()}


def differ(found: Mapping[str, float]) -> bool:
    """Return whether the plans of some spellings cost more than others."""
    least, most = min(found.values()), max(found.values())
    return most > ALIKE * least and most - least > SMALL


@click.command()
@click.option("--programs", default=2000, show_default=True, help="How many random programs.")
@click.option("--first", default=0, show_default=True, help="The seed of the first one.")
def main(programs: int, first: int) -> None:
    """Compile random programs in all spellings, and print those whose costs differ."""
    dearest: Counter[str] = Counter()
    started = time.process_time()
    with ucle.connect(threads=2) as connection:
        for seed in range(first, first + programs):
            found = costs(seed, connection)
            if not differ(found):
                continue
            dearest[max(found, key=lambda name: found[name])] += 1
            shown = ", ".join(f"{name} {cost / 1e6:.3g}" for name, cost in found.items())
            ratio = max(found.values()) / max(min(found.values()), 1.0)
            print(f"{seed:5} {ratio:8.2f} times: {shown}", flush=True)
    misses = dearest.total()
    each = (time.process_time() - started) / max(programs, 1)
    share = misses / max(programs, 1)
    print(f"{misses} of {programs} programs ({share:.1%}) cost different amounts")
    print(f"the dearest spelling: {dict(dearest)}; {each:.2f} s of processor time for each program")
    sys.exit(misses > MISSES * programs)


if __name__ == "__main__":
    main()
