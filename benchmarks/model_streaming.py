"""Models whose weights are four times DuckDB's memory limit, stored as tables and streamed.

The weights lie in a file beside the ONNX file, from which they are stored, and are scored from the
tables. Both happen in processes of their own with the limit. Memory is the largest resident size of
such a process, minus that of one which has imported ucle and opened the database. Scores are
compared with NumPy's.

    python -m benchmarks.model_streaming --limit 128MB --work dense
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import ucle
from benchmarks.measure import THREADS, Table
from benchmarks.peaks import MB, forget_peak, peak_since
from ucle.database.session import parse_size

LIMIT = "256MB"
WEIGHTS = 4
"""The size of the weights in bytes, as a multiple of the limit."""

LAYERS, ROWS = 8, 16
HEADS, TOKENS, SEQUENCES = 32, 16, 2
REACH = 1.4
"""The memory that is to be enough, as a multiple of the limit."""

Array = NDArray[np.float32]
Weights = Mapping[str, Array]


@dataclass(frozen=True)
class Work:
    """A model: its nodes, the shapes of its weights for a width, and its meaning in NumPy."""

    name: str
    matrices: float
    """Squares of the width in all weights."""
    multiple: int
    """A divisor of the width."""
    shapes: Callable[[int], dict[str, tuple[int, ...]]]
    nodes: Callable[[Any, int], list[Any]]
    rows: tuple[int, ...]
    meaning: Callable[[Array, Weights], Array]

    def width(self, limit: str) -> int:
        """The width at which weights are `WEIGHTS` times a limit."""
        width = (WEIGHTS * parse_size(limit) / 4 / self.matrices) ** 0.5
        return -(-int(width) // self.multiple) * self.multiple


def _dense_shapes(width: int) -> dict[str, tuple[int, ...]]:
    matrices = {f"W{n}": (width, width) for n in range(LAYERS)}
    return {**matrices, **{f"b{n}": (width,) for n in range(LAYERS)}}


def _dense_nodes(helper: Any, width: int) -> list[Any]:
    made = []
    for n in range(LAYERS):
        before = f"h{n - 1}" if n else "x"
        made.append(helper.make_node("Gemm", [before, f"W{n}", f"b{n}"], [f"p{n}"]))
        made.append(helper.make_node("Relu", [f"p{n}"], [f"h{n}" if n < LAYERS - 1 else "y"]))
    return made


def _dense_meaning(x: Array, weights: Weights) -> Array:
    for n in range(LAYERS):
        x = np.maximum(x @ weights[f"W{n}"] + weights[f"b{n}"], 0)
    return x


def _block_shapes(width: int) -> dict[str, tuple[int, ...]]:
    square = dict.fromkeys(("Wq", "Wk", "Wv", "Wo"), (width, width))
    vectors = dict.fromkeys(("bq", "bk", "bv", "bo", "g1", "c1", "g2", "c2", "b2"), (width,))
    wide = {"W1": (width, 4 * width), "b1": (4 * width,), "W2": (4 * width, width)}
    return {**square, **vectors, **wide}


def _block_nodes(helper: Any, width: int) -> list[Any]:
    node, constant = helper.make_node, helper.make_tensor

    def affine(x: str, weight: str, bias: str, to: str) -> list[Any]:
        return [node("MatMul", [x, weight], [f"{to}_p"]), node("Add", [f"{to}_p", bias], [to])]

    def heads(x: str, order: list[int]) -> list[Any]:
        split = node("Reshape", [x, "split"], [f"{x}_s"])
        return [split, node("Transpose", [f"{x}_s"], [f"{x}_h"], perm=order)]

    shapes = {"split": [-1, TOKENS, HEADS, width // HEADS], "whole": [-1, TOKENS, width]}
    constants = [
        node("Constant", [], [name], value=constant(name, 7, [len(shape)], shape))
        for name, shape in shapes.items()
    ]
    scale = constant("scale", 1, [], [(width // HEADS) ** -0.5])
    return [
        *constants,
        node("Constant", [], ["scale"], value=scale),
        node("LayerNormalization", ["x", "g1", "c1"], ["n1"]),
        *(x for each in "qkv" for x in affine("n1", f"W{each}", f"b{each}", each)),
        *heads("q", [0, 2, 1, 3]),
        *heads("k", [0, 2, 3, 1]),
        *heads("v", [0, 2, 1, 3]),
        node("MatMul", ["q_h", "k_h"], ["raw"]),
        node("Mul", ["raw", "scale"], ["scores"]),
        node("Softmax", ["scores"], ["attention"]),
        node("MatMul", ["attention", "v_h"], ["mixed"]),
        node("Transpose", ["mixed"], ["mixed_t"], perm=[0, 2, 1, 3]),
        node("Reshape", ["mixed_t", "whole"], ["joined"]),
        *affine("joined", "Wo", "bo", "o"),
        node("Add", ["x", "o"], ["r"]),
        node("LayerNormalization", ["r", "g2", "c2"], ["n2"]),
        *affine("n2", "W1", "b1", "f"),
        node("Relu", ["f"], ["a"]),
        *affine("a", "W2", "b2", "z"),
        node("Add", ["r", "z"], ["y"]),
    ]


def _normalised(x: Array, scale: Array, shift: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * scale + shift


def _block_meaning(x: Array, weights: Weights) -> Array:
    w, (count, tokens, width) = weights, x.shape
    n = _normalised(x, w["g1"], w["c1"])
    q, k, v = (
        (n @ w[f"W{each}"] + w[f"b{each}"]).reshape(count, tokens, HEADS, -1).swapaxes(1, 2)
        for each in "qkv"
    )
    scores = q @ k.swapaxes(2, 3) * np.float32((width // HEADS) ** -0.5)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = scores / scores.sum(axis=-1, keepdims=True) @ v
    r = x + mixed.swapaxes(1, 2).reshape(count, tokens, width) @ w["Wo"] + w["bo"]
    a = np.maximum(_normalised(r, w["g2"], w["c2"]) @ w["W1"] + w["b1"], 0)
    found: Array = r + a @ w["W2"] + w["b2"]
    return found


WORKS = {
    work.name: work
    for work in (
        Work("dense", LAYERS, 32, _dense_shapes, _dense_nodes, (ROWS,), _dense_meaning),
        Work("transformer block", 12, HEADS, _block_shapes, _block_nodes, (SEQUENCES, TOKENS),
             _block_meaning),
    )
}  # fmt: skip


def prepare(folder: Path, work: Work, limit: str) -> Weights:
    """Write the files of a model; return its weights, mapped from their file."""
    onnx = import_module("onnx")
    TensorProto, helper = onnx.TensorProto, onnx.helper
    width, offset, tensors = work.width(limit), 0, []
    shapes = work.shapes(width)
    rng = np.random.default_rng(width)
    with (folder / "weights.bin").open("wb") as file:
        for name, shape in shapes.items():
            values = rng.standard_normal(shape, dtype=np.float32)
            values *= np.float32(shape[0] ** -0.5 if len(shape) > 1 else 0.1)
            length = file.write(values.tobytes())
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
            tensor.data_location = TensorProto.EXTERNAL
            place = {"location": "weights.bin", "offset": offset, "length": length}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))
            offset += length
            tensors.append(tensor)
    axes = ["rows", *work.rows[1:], width]
    ends = [helper.make_tensor_value_info(x, TensorProto.FLOAT, axes) for x in "xy"]
    graph = helper.make_graph(work.nodes(helper, width), "g", ends[:1], ends[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save_model(model, str(folder / "model.onnx"))
    places = np.cumsum([0, *(4 * int(np.prod(shape)) for shape in shapes.values())])
    return {
        name: np.memmap(folder / "weights.bin", np.float32, "r", int(place), shape)
        for (name, shape), place in zip(shapes.items(), places, strict=False)
    }


def rows_of(work: Work, limit: str) -> Array:
    """The rows that are scored."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((*work.rows, work.width(limit)), dtype=np.float32)


def run(folder: Path, work: Work, limit: str, side: str) -> dict[str, float]:
    """Run one side in this process; return MB beyond those at its beginning, and seconds."""
    database, answer = str(folder / "models.duckdb"), folder / "y.npy"
    with ucle.connect(database, threads=THREADS, memory_limit=limit) as connection:
        connection.execute("SET enable_progress_bar = false")
        if side == "store":
            import_module("onnx")  # which reads the file
        before = forget_peak()
        start = time.perf_counter()
        if side == "store":
            model = ucle.models.from_onnx(str(folder / "model.onnx"))
            model.store(connection, "model")
        else:
            model = ucle.models.stored("model", connection)
            program = model.program(
                rows_of(work, limit), database=connection, options={"nonfinite": "sparse"}
            )
            compiled = time.perf_counter() - start
            with program.execute(connection) as result:
                np.save(answer, result["y"].to_numpy())
            return {
                "peak": peak_since(before),
                "compile": compiled,
                "seconds": time.perf_counter() - start - compiled,
            }
    return {"peak": peak_since(before), "seconds": time.perf_counter() - start}


def _run_apart(folder: Path, work: Work, limit: str, side: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.model_streaming", "--work", work.name]
    command += ["--limit", limit, "--run", side, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{work.name}, {side}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def measure(work: Work, limit: str) -> Sequence[str]:
    """Measure a model; return a line of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        weights = prepare(folder, work, limit)
        expected = work.meaning(rows_of(work, limit), weights)
        stored = _run_apart(folder, work, limit, "store")
        scored = _run_apart(folder, work, limit, "score")
        found = np.load(folder / "y.npy")
        size = sum(each.nbytes for each in weights.values())
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    if not error < 1e-4:
        raise SystemExit(f"{work.name}: the scores differ from NumPy's by {error}")
    bytes_ = parse_size(limit) / MB
    return (
        work.name,
        str(work.width(limit)),
        f"{size / 1e9:.2f} GB",
        limit,
        *(f"{x['peak']:.0f} MB ({x['peak'] / bytes_:.2f})" for x in (stored, scored)),
        *(f"{x:.1f}" for x in (stored["seconds"], scored["compile"], scored["seconds"])),
        f"{error:.0e}",
    )


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for work in WORKS.values():
        yield measure(work, LIMIT)


TABLE = Table(
    "model_streaming",
    "Models four times as large as the memory limit",
    f"Float32 weights in tables: {ROWS} rows of a dense network with {LAYERS} layers, and\n"
    f"{SEQUENCES} sequences of {TOKENS} tokens through a transformer block. Each run is a\n"
    "process of its own. Peaks do not include the memory that a process needs to import\n"
    f"ucle (and onnx, for storing) and to open the database. Goal: at most {REACH} times the\n"
    "limit. Compilation compares digests of all weights.",
    (
        "model",
        "width",
        "weights",
        "limit",
        "peak, storing (of the limit)",
        "peak, scoring (of the limit)",
        "storing, s",
        "compiling, s",
        "scoring, s",
        "largest difference from NumPy",
    ),
    _rows,
)


@click.command()
@click.option("--limit", default=LIMIT, show_default=True, help="DuckDB's memory limit.")
@click.option("--work", "name", type=click.Choice(list(WORKS)), help="One of the models.")
@click.option("--run", "side", type=click.Choice(("store", "score")), help="One run in FOLDER.")
@click.argument("folder", required=False)
def main(limit: str, name: str | None, side: str | None, folder: str | None) -> None:
    """Measure the models with another limit, and weights of four times that."""
    if side is not None and name is not None and folder is not None:
        print(json.dumps(run(Path(folder), WORKS[name], limit, side)))
        return
    click.echo(f"| {' | '.join(TABLE.header)} |")
    for work in WORKS.values() if name is None else [WORKS[name]]:
        click.echo(f"| {' | '.join(measure(work, limit))} |")


if __name__ == "__main__":
    main()
