"""The report of the measurements: ``python -m benchmarks.paper.report``.

Reads ``benchmarks/REPORT.json`` and writes ``REPORT.md`` and its plots beside it. Nothing is
measured here, and every figure comes from the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.paper.run import MEASUREMENTS
from benchmarks.paper.targets import COMPILING, Measurements, seconds_of, targets
from benchmarks.peers import MODULES

TITLES = {
    "gcn": "Graph convolution, forward (Table 6)",
    "attention": "Sparse attention (Table 5)",
    "dense": "Dense attention (Table 5)",
    "circuit": "Quantum circuits (Table 4)",
    "subgraph": "Subgraph counting (Galley, section 7.3)",
    "triangles": "Triangle counting",
    "matrix chain": "Matrix chain, 2000 x 2000, densities 0.1, 0.1 and as named (Galley, 7.2)",
    "SDDMM": "SDDMM, the same matrices (Galley, 7.2)",
    "ALS loss": "Loss of ALS (SPORES, section 4.2)",
    "PNMF sum": "sum(WH) of PNMF (SPORES, section 4.2)",
}
INTRODUCTION = """\
Seconds, medians of rounds in which engines take turns, each in a process of its own and with two
threads. Every result was compared with NumPy's, scipy's or qiskit's before its time counts. Inputs
are loaded beforehand: as tables of entries for the relational engines, which run one SELECT for
each binary EinSum (`benchmarks/paper/relational.py`, which shares nothing with ucle), and for ucle
in the layout that its plan reads; of circuits, from memory. Results are tables, or arrays in memory
for SciPy and PyTorch. TLE: more time than the limit; OOM: out of memory."""
CIRCUITS = """\
A circuit starts from the basis state of zeros, one with a plus from a random state without zeros.
Relational SQL keeps the amplitudes that some gate has made, zeros among them."""
COMPONENTS = """\
Sparse inputs as tables of entries, dense ones handed over from memory in execution. Loading makes
the tables. Kernels are compiled when ucle is installed; the paper's are, for each program."""
PLANS = """\
Seconds of the three cheapest plans by the cost model, in its order; predictions are multiples of
the first one's."""
MEMORY = """\
Inputs lie in a database file, results in its temporary files; DuckDB's `memory_limit` is the limit.
SciPy has as much address space beside what its process holds with the sparse inputs loaded. Peak is
the largest resident size, base what it was when the program had been compiled. One thread."""
TRAINING = """\
Milliseconds of a step: forward, backward and Adam (rate 0.1, dropout of a half, 256 hidden, as in
section 9.2) on 140 nodes of each graph, once losses were found to be PyTorch's. The parameters stay
in DuckDB; the mask of each step comes from memory, and the loss is read after each. PyTorch has
its matrices as CSR. Compiling happens once. The paper has seconds of an iteration on the graphs of
its Table 2, on 1 to 8 machines: 1.2 to 474."""
SCALE = """\
One layer on generated power-law graphs with 256 outputs for each vertex. Counts (vertices, edges,
features) are those of ogbn-arxiv, also divided by 16 and 4, and of ogbn-products divided by 16
and 8."""


def report(measured: Measurements) -> Iterator[str]:
    """Yield the lines of the report."""
    yield from (
        "# The paper's experiments on this engine",
        "",
        INTRODUCTION,
        "",
        measured["machine"],
    )
    yield from _targets(measured)
    names = dict.fromkeys(key.partition(":")[0] for key in measured["tasks"])
    for name in names:
        keys = [key for key in measured["tasks"] if key.partition(":")[0] == name]
        yield from ("", f"## {TITLES.get(name, name)}", "")
        if name == "circuit":
            yield from (CIRCUITS, "")
        yield from _engines(measured["tasks"], keys)
    yield from ("", "![](REPORT-relational.svg)")
    if plans := measured.get("plans"):
        yield from ("", "## Best, second and third best plans (Tables 2 and 4)", "", PLANS, "")
        yield from _plans(plans)
    if parts := measured.get("components"):
        yield from ("", "## Time of each component (Table 10)", "", COMPONENTS, "")
        yield from _components(parts)
    if training := measured.get("training"):
        yield from ("", "## Training (Table 2)", "", TRAINING, "", training["machine"], "")
        yield from _training(training["graphs"])
    if beyond := measured.get("beyond_memory"):
        yield from ("", "## Tensors larger than memory", "", MEMORY, "", *_beyond(beyond))
    if scale := measured.get("scale"):
        yield from ("", "## Scale", "", SCALE, "", *_engines(scale, list(scale)), "")
        yield "![](REPORT-scale.svg)"
    yield from _why(measured)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def _targets(measured: Measurements) -> Iterator[str]:
    yield from ("", "## Targets", "")
    words = {True: "yes", False: "**missed**", None: "not measured"}
    rows = [(t.what, t.reach, t.seen, words[t.met]) for t in targets(measured)]
    yield from table(("target", "reach", "seen", "reached"), rows)
    for task, text in measured.get("profiles", {}).items():
        yield from ("", f"Where the time of {task} goes, which misses a target:", "")
        yield from ("```text", text.rstrip(), "```")


def _engines(tasks: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    """Return one row for each engine that took part in any of the tasks."""
    rows = []
    for engine in MODULES:
        found = [tasks[key].get(engine) for key in keys]
        if all(x is None or x["status"] == "skipped" for x in found):
            continue
        rows.append((engine, *map(_cell, found)))
    return table(("engine", *(key.partition(":")[2] for key in keys)), rows)


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None or found["status"] == "skipped":
        return ""
    return _seconds(seconds_of(found)) if found["status"] == "ok" else str(found["status"])


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _plans(plans: Mapping[str, Any]) -> list[str]:
    rows = []
    for key, found in plans.items():
        seconds = [_seconds(plan["seconds"]) for plan in found]
        costs = [f"{plan['cost'] / found[0]['cost']:.3f}" for plan in found]
        rows.append((key, *[*seconds, "", ""][:3], *[*costs, "", ""][1:3]))
    return table(("task", "best", "2nd", "3rd", "2nd, predicted", "3rd, predicted"), rows)


def _components(parts: Mapping[str, Any]) -> list[str]:
    names = list(next(iter(parts.values())))
    rows = [
        (
            key,
            *(_seconds(found[name]) for name in names),
            _seconds(sum(found[n] for n in COMPILING)),
        )
        for key, found in parts.items()
    ]
    return table(("task", *names, f"all of {', '.join(COMPILING)}"), rows)


def _training(graphs: Mapping[str, Any]) -> list[str]:
    rows = []
    for graph, found in graphs.items():
        times = (f"{1000 * found[side]:.1f}" for side in ("torch", "ucle"))
        share = f"{found['ucle'] / found['torch']:.2f}"
        rows.append((graph, _seconds(found["compiled"]), *times, share, str(found["statements"])))
    return table(("graph", "compile (s)", "PyTorch", "ucle", "ucle / PyTorch", "statements"), rows)


def _beyond(found: Mapping[str, Any]) -> list[str]:
    rows = []
    for case, engines in found["cases"].items():
        for engine, run in engines.items():
            peak, base = (f"{run[x] / 2**20:.0f} MiB" if x in run else "" for x in ("peak", "base"))
            each, most = found["sizes"][case], found["limits"][case]
            size, limit = (f"{x / 2**20:.0f} MiB" for x in (each, most))
            done = _seconds(run.get("seconds")) or run["status"]
            rows.append((case, engine, size, limit, done, base, peak))
    return table(("case", "engine", "each dense tensor", "limit", "seconds", "base", "peak"), rows)


def _why(measured: Measurements) -> Iterator[str]:
    """Yield the reasons for all missing times."""
    rows = []
    for section in ("tasks", "scale"):
        for key, engines in measured.get(section, {}).items():
            for engine, found in engines.items():
                if found["status"] != "ok" and found["note"]:
                    rows.append((engine, found["status"], found["note"], key))
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for engine, status, note, key in rows:
        grouped.setdefault((engine, status, note.replace("|", "/")), []).append(key)
    if grouped:
        yield from ("", "## What has no time, and why", "")
        lines = [(*why, f"{len(keys)} tasks" if len(keys) > 4 else ", ".join(keys))
                 for why, keys in grouped.items()]  # fmt: skip
        yield from table(("engine", "status", "reason", "tasks"), lines)


@click.command()
@click.option(
    "--measurements",
    type=click.Path(path_type=Path, exists=True),
    default=MEASUREMENTS,
    help="The JSON file of a run; the report goes beside it.",
)
def main(measurements: Path) -> None:
    """Write the report of measurements."""
    from benchmarks.paper import plots  # noqa: PLC0415 - the text needs no matplotlib

    measured = json.loads(measurements.read_text(encoding="utf-8"))
    target = measurements.with_suffix(".md")
    plots.relational(measured, target.with_name(f"{target.stem}-relational.svg"))
    if measured.get("scale"):
        plots.scale(measured, target.with_name(f"{target.stem}-scale.svg"))
    text = "\n".join(report(measured)).replace("REPORT-", f"{target.stem}-")
    target.write_text(text + "\n", encoding="utf-8")
    click.echo(f"wrote {target.name}")


if __name__ == "__main__":
    main()
