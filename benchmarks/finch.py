"""Applicable case studies of Finch (section 7) against SciPy, GraphBLAS and torch.

References are in `benchmarks.references.finch`, generators in `benchmarks.structures`, loops of
searches in `benchmarks.searches`. Finch's figures are multiples of other compilers on one core of
another machine, so the paper's results are not comparable in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import scipy.sparse as sp

import ucle
from benchmarks import structures
from benchmarks.experiment import Experiment, Task, header, lines
from benchmarks.measure import Table
from benchmarks.references import finch
from benchmarks.references.work import human
from benchmarks.searches import bellman_ford, breadth_first
from benchmarks.workloads import GRAPHS, load, power_law

SIDES = ("SciPy", "NumPy", "GraphBLAS", "torch")

SPMV = "y[i] += A[i,j] * x[j]"
SPGEMM = "Z[i,k] += A[i,j] * A[j,k]"
TRIANGLES = "t += A[i,j] * A[j,k] * A[i,k]"
EROSION = """
    V1[i,j] = A[~(i-1),j] and A[i,j] and A[~(i+1),j]
    E1[i,j] = V1[i,~(j-1)] and V1[i,j] and V1[i,~(j+1)]
    V2[i,j] = E1[~(i-1),j] and E1[i,j] and E1[~(i+1),j]
    E2[i,j] = V2[i,~(j-1)] and V2[i,j] and V2[i,~(j+1)]
"""
HISTOGRAMS = {
    "a scatter": "H[bright[i,j]] += M[i,j]",
    "comparisons": "H[b] += (bright[i,j] == b) * M[i,j]",
}
SIMILARITY = "N[i] += A[i,k]^2; D[i,j] = N[i] + N[j] - 2 * sum[k](A[i,k] * A[j,k])"

SPMV_REPORTS = {
    "banded": "2.0 to 2.5 times faster than TACO in a format of bands",
    "triangular": "3.04 times faster than TACO",
    "blocks": "1.2 to 2.75 times faster than TACO in a format of dense blocks",
    "reversal": "1.30 times faster than TACO with one entry a row",
    "symmetric": "reads one triangle for both; 1.27 times faster than TACO on average",
    "pattern": "1.17 times faster than TACO on ca-AstroPh where no values are stored",
    "others": "1.27 times faster than TACO on average",
}
SPGEMM_REPORTS = "1.30 times faster than TACO on average, and a little slower than MKL"
UNIFORM_REPORTS = "Gustavson's order and sparse results win as matrices with 4 entries a row grow"
TRIANGLE_REPORTS = "nothing: not in this paper"
BFS_REPORTS = "1.22 times slower than GraphBLAS on average"
SHORTEST_REPORTS = "2.47 times faster than GraphBLAS on average"
EROSION_REPORTS = "two iterations over runs are 19.5 times faster than OpenCV on sketches"
HISTOGRAM_REPORTS = "20.3 to 20.8 times faster than OpenCV behind a mask of runs"
SIMILARITY_REPORTS = "nothing: not in this paper"


def _experiments() -> Iterator[Experiment]:
    yield from _vectors()
    yield from _products()
    yield from _searches()
    yield from _images()


def _vectors() -> Iterator[Experiment]:
    made: dict[str, tuple[Callable[[], Any], str]] = {
        "banded 10,000, 5 beside the diagonal": (partial(structures.banded, 10_000, 5), "banded"),
        "banded 10,000, 30 beside": (partial(structures.banded, 10_000, 30), "banded"),
        "banded 10,000, 100 beside": (partial(structures.banded, 10_000, 100), "banded"),
        "upper triangular 1,024": (partial(structures.triangular, 1024), "triangular"),
        "reverse permutation 1,000,000": (partial(structures.reversal, 1_000_000), "reversal"),
        "blocks of 64 x 64, 2,048": (partial(structures.blocks, 2048, 64, 0.1), "blocks"),
        "rows of runs 2,000": (partial(structures.runs, 2000, 4, 100), "others"),
        "power law, 100,000 nodes": (partial(power_law, 100_000, 500_000, np.float64), "others"),
        "bcsstk13": (partial(structures.real, "bcsstk13"), "others"),
        "cryg2500": (partial(structures.real, "cryg2500"), "others"),
        "jagmesh7, a pattern": (partial(structures.real, "jagmesh7"), "pattern"),
        "amazon_photo, a pattern": (partial(_graph, "amazon_photo"), "pattern"),
    }
    for name, (make, report) in made.items():
        prepare = partial(_vector, make)
        yield Experiment("7.1", f"SpMV {name}", prepare, SPMV_REPORTS[report])
    yield Experiment(
        "7.1",
        "SpMV symmetric 100,000, a table of one triangle",
        _symmetric,
        SPMV_REPORTS["symmetric"],
    )


def _vector(make: Callable[[], Any]) -> Task:
    a = make()
    x = np.random.default_rng(8).random(a.shape[1])
    return Task(finch.spmv(a, x), SPMV, {"A": a, "x": x}, "y")


def _symmetric() -> Task:
    a = structures.symmetric(100_000, 500_000)
    x = np.random.default_rng(8).random(a.shape[1])

    def half(connection: duckdb.DuckDBPyConnection) -> Any:
        entries = sp.coo_array(sp.triu(a))
        columns = dict(zip("ij", entries.coords, strict=True)) | {"val": entries.data}
        connection.register("source", pa.table(columns))
        connection.execute("CREATE TABLE half AS FROM source").fetchall()
        connection.unregister("source")
        return ucle.table("half", symmetric=True, bounds=a.shape)

    return Task(finch.spmv(a, x), SPMV, {"A": half, "x": x}, "y")


def _products() -> Iterator[Experiment]:
    graphs: dict[str, Callable[[], Any]] = {
        "human": human,
        "bcsstk13": partial(structures.real, "bcsstk13"),
        "cryg2500": partial(structures.real, "cryg2500"),
    }
    for name, make in graphs.items():
        yield Experiment("7.2", f"SpGEMM {name}", partial(_product, make), SPGEMM_REPORTS)
    for size in (1_000, 10_000, 100_000):
        make = partial(structures.uniform, size, 4)
        name = f"SpGEMM uniform {size:,}, 4 entries a row"
        yield Experiment("7.2", name, partial(_product, make), UNIFORM_REPORTS)
    for name in ("human", "amazon_photo"):
        make = human if name == "human" else partial(_graph, name)
        prepare = partial(_triangles, make)
        yield Experiment("", f"triangles {name}", prepare, TRIANGLE_REPORTS)


def _product(make: Callable[[], Any]) -> Task:
    a = make()
    return Task(finch.spgemm(a), SPGEMM, {"A": a}, "Z")


def _triangles(make: Callable[[], Any]) -> Task:
    a = make()
    return Task(finch.triangles(a), TRIANGLES, {"A": a}, "t")


def _searches() -> Iterator[Experiment]:
    graphs: dict[str, Callable[[], Any]] = {
        "human": human,
        "amazon_photo": partial(_graph, "amazon_photo"),
        "power law, 100,000 nodes": partial(_undirected, 100_000, 500_000),
        "grid 64 x 64": partial(structures.grid, 64),
    }
    for name, make in graphs.items():
        yield Experiment("7.3", f"BFS {name}", partial(_levels, make), BFS_REPORTS)
    for name, make in graphs.items():
        prepare = partial(_lengths, make)
        yield Experiment("7.3", f"Bellman-Ford {name}", prepare, SHORTEST_REPORTS)


def _levels(make: Callable[[], Any]) -> Task:
    a = make()
    start = int(np.argmax(np.diff(a.indptr)))
    return Task(finch.breadth_first(a, start), run=breadth_first(a, start), fill=-1)


def _lengths(make: Callable[[], Any]) -> Task:
    a = make()
    lengths = np.random.default_rng(9).integers(1, 100, a.nnz).astype(np.float64)
    a = sp.csr_array((lengths, a.indices, a.indptr), shape=a.shape)
    start = int(np.argmax(np.diff(a.indptr)))
    return Task(finch.bellman_ford(a, start), run=bellman_ford(a, start), fill=np.inf)


def _images() -> Iterator[Experiment]:
    for side, size in ((256, 8), (1024, 32)):
        name = f"two erosions of blobs {side} x {side}"
        yield Experiment("7.4", name, partial(_erosion, side, size), EROSION_REPORTS)
    for side, size in ((256, 8), (1024, 32)):
        for form, text in HISTOGRAMS.items():
            name = f"masked histogram of blobs {side} x {side}, by {form}"
            yield Experiment("7.4", name, partial(_histogram, side, size, text), HISTOGRAM_REPORTS)
    for count in (500, 2000):
        name = f"distances of {count:,} images of 28 x 28"
        yield Experiment("", name, partial(_similarity, count), SIMILARITY_REPORTS)


def _erosion(side: int, size: float) -> Task:
    image = structures.blobs(side, size)
    return Task(finch.erosion(image, 2), EROSION, {"A": image}, "E2")


def _histogram(side: int, size: float, text: str) -> Task:
    mask = structures.blobs(side, size)
    bright = np.random.default_rng(10).integers(0, 256, (side, side)) // 16
    options = {"bounds": {"b" if "[b]" in text else "bright": 16}}
    peers = finch.histogram(bright, mask, 16)
    return Task(peers, text, {"bright": bright, "M": mask}, "H", options=options)


def _similarity(count: int) -> Task:
    images = structures.digits(count, 28)
    return Task(finch.similarity(images), SIMILARITY, {"A": images}, "D")


def _graph(name: str) -> Any:
    if not (GRAPHS / name).is_dir():
        raise FileNotFoundError(name)
    return load(name)[0]


def _undirected(nodes: int, edges: int) -> Any:
    a = power_law(nodes, edges // 2, np.float64)
    both = sp.csr_array(a + a.T)
    return sp.csr_array((np.ones(both.nnz), both.indices, both.indptr), shape=both.shape)


TABLE = Table(
    "finch",
    "Finch's case studies",
    "Seconds from `execute` until the result is in DuckDB. Sparse inputs are kept by\n"
    "`store=`, dense inputs come from memory. The time of compilation has its own column;\n"
    "conversions of the data for the other libraries are not counted. ucle's searches (7.3)\n"
    "are Python loops over views of a program that was compiled once, and end with an array\n"
    "of answers; SciPy's searches are one call. Section numbers are those of Finch's paper.\n"
    "Its figures were measured on one core of another machine, most of them on other data.\n"
    "A cell is empty if the library has no such operation.",
    header(SIDES),
    lines(_experiments, SIDES),
)
