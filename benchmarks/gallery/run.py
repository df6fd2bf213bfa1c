"""Run the jobs of the gallery against plain SQL and a library: on little data, or measured on more.

    python benchmarks/gallery/run.py                      # each once, and the answers compared
    python benchmarks/gallery/run.py --full               # measured
    python benchmarks/gallery/run.py --full --write       # and written
    python benchmarks/gallery/run.py triangles            # one of them

It needs the extra `examples`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import threadpoolctl

ROOT = Path(__file__).parents[2]
sys.path[1:1] = [str(ROOT / "examples" / "training"), str(ROOT)]

from compare import measure, run_once  # noqa: E402
from recipe import NAMES, load  # noqa: E402
from results import RESULTS, cells, draw, results_page, row_of, rows_of  # noqa: E402

import ucle  # noqa: E402
from benchmarks.measure import THREADS, machine  # noqa: E402


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
@click.option("--full", is_flag=True, help="Measure on full data.")
@click.option("--write", is_flag=True, help="Write their rows and pictures.")
@click.option("--rounds", default=5, show_default=True, help="Of measuring.")
@click.option(
    "--processor", is_flag=True, help="Measure processor time on one thread: for a busy machine."
)
def main(names: tuple[str, ...], full: bool, write: bool, rounds: int, processor: bool) -> None:
    """Run jobs, compare their three answers, and print what each takes."""
    if write and not full:
        raise click.UsageError("--write is for full data: add --full")
    rows = rows_of(RESULTS.read_text(encoding="utf-8"))
    threads, clock = (1, time.process_time) if processor else (THREADS, time.perf_counter)
    threadpoolctl.threadpool_limits(threads)
    print("| job | ucle | plain SQL | library | all |\n| --- | --- | --- | --- | --- |")
    for name in names or NAMES:
        start = time.perf_counter()
        recipe = load(name)
        with ucle.connect(threads=threads) as connection:
            recipe.make_data(connection, **(recipe.full if full else recipe.small))
            run = (
                measure(recipe, connection, rounds, clock) if full else run_once(recipe, connection)
            )
            draw(recipe, connection, write=write)
        rows[name] = row_of(recipe, run, processor=processor)
        print(f"| {name} | {cells(run)} | {time.perf_counter() - start:.1f} |", flush=True)
        if write:
            RESULTS.write_text(results_page(rows, machine(rounds)), encoding="utf-8")


if __name__ == "__main__":
    main()
