"""The benchmarks: ``python -m benchmarks.run [NAMES]``.

Each prints a table and writes it to ``benchmarks/results/NAME.md``. Every answer is compared with
that of the other sides before its time counts.
"""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks import (
    aggregates,
    association,
    cluster,
    comparison,
    compile_time,
    compressed,
    extension,
    finch,
    first_answer,
    frontiers,
    galley,
    growth,
    indices,
    install,
    kernels,
    larger_than_memory,
    laws,
    levels,
    loops,
    maintenance,
    model_streaming,
    models,
    optimiser,
    pagerank,
    parquet,
    plan_cache,
    products,
    programs,
    regret,
    rewriting,
    robustness,
    runs_and_bits,
    slices,
    small_programs,
    spilling,
    spores,
    statistics,
    subgraphs,
    tensor_relational,
    tiled,
    top_k,
    training,
    windows,
)

RESULTS = Path(__file__).parent / "results"

TABLES = {
    table.name: table
    for table in (
        programs.TABLE,
        comparison.TABLE,
        kernels.TABLE,
        compressed.TABLE,
        levels.TABLE,
        aggregates.TABLE,
        growth.TABLE,
        indices.TABLE,
        pagerank.TABLE,
        parquet.TABLE,
        loops.TABLE,
        maintenance.TABLE,
        small_programs.PROGRAMS,
        small_programs.EXECUTIONS,
        spilling.TABLE,
        larger_than_memory.TABLE,
        model_streaming.TABLE,
        models.PIPELINES,
        models.ENCODERS,
        slices.TABLE,
        tiled.TABLE,
        top_k.TABLE,
        windows.TABLE,
        training.TABLE,
        cluster.TABLE,
        finch.TABLE,
        runs_and_bits.TABLE,
        tensor_relational.TABLE,
        optimiser.TABLE,
        association.TABLE,
        compile_time.TABLE,
        plan_cache.TABLE,
        first_answer.TABLE,
        extension.TABLE,
        install.TABLE,
        regret.TABLE,
        rewriting.TABLE,
        spores.TABLE,
        laws.TABLE,
        galley.JOINS,
        products.TABLE,
        frontiers.TABLE,
        statistics.TABLE,
        subgraphs.TABLE,
        robustness.GREEDY,
        robustness.PERTURBED,
        robustness.NOISE,
    )
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(TABLES)))
@click.option("--rounds", default=7, show_default=True, help="Runs of each side.")
def main(names: tuple[str, ...], rounds: int) -> None:
    """Measure and print tables, all or those named."""
    RESULTS.mkdir(exist_ok=True)
    for name in names or TABLES:
        lines = []
        for line in TABLES[name].lines(rounds):
            click.echo(line)
            lines.append(line)
        (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        click.echo()


if __name__ == "__main__":
    main()
