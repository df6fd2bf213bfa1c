"""Run the recipes of the gallery: on little data, or measured on more of it.

    python examples/gallery/run.py                      # each once, and the answers compared
    python examples/gallery/run.py --full               # measured
    python examples/gallery/run.py --full --write       # and written to docs/gallery
    python examples/gallery/run.py triangles            # one of them

It needs the extra `examples`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path[1:1] = [str(ROOT / "examples" / "training"), str(ROOT)]

import pages  # noqa: E402
from compare import Measured, measure, run_once  # noqa: E402
from recipe import NAMES, Recipe, load  # noqa: E402

import ucle  # noqa: E402
from benchmarks.measure import THREADS, machine  # noqa: E402


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
@click.option("--full", is_flag=True, help="Measure on full data.")
@click.option("--write", is_flag=True, help="Write the pages of docs/gallery.")
@click.option("--rounds", default=5, show_default=True, help="Of measuring.")
def main(names: tuple[str, ...], full: bool, write: bool, rounds: int) -> None:
    """Run recipes, compare their three answers, and print what each takes."""
    if write and (names or not full):
        raise click.UsageError("--write is for all recipes on full data: add --full, and no names")
    runs: dict[Recipe, Measured] = {}
    print("| recipe | ucle | plain SQL | peer | all |\n| --- | --- | --- | --- | --- |")
    for name in names or NAMES:
        start = time.perf_counter()
        recipe = load(name)
        with ucle.connect(threads=THREADS) as connection:
            recipe.make_data(connection, **(recipe.full if full else recipe.small))
            run = measure(recipe, connection, rounds) if full else run_once(recipe, connection)
            pages.draw(recipe, connection, write=write)
            if write:
                script = recipe.program(connection).to_sql()
                path = pages.GALLERY / f"{name}.md"
                path.write_text(pages.page(recipe, run, script), encoding="utf-8")
        runs[recipe] = run
        print(f"| {name} | {pages.cells(run)} | {time.perf_counter() - start:.1f} |", flush=True)
    if write:
        text = pages.index(runs, machine(rounds))
        (pages.GALLERY / "index.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
