"""Models on tables of a million rows, beside orbital's SQL, scikit-learn and onnxruntime.

orbital writes a pipeline as scalar SQL, with an expression for each feature and class. Where it is
not installed, its column is empty; forests get too long for it, so that it has fewer trees and rows
there. Scores are written into a table, but scikit-learn's stay in memory, and so do its features.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio

ROWS, FEATURES = 1_000_000, 30
COLUMNS = [f"f{n}" for n in range(FEATURES)]
TREES = 100

LAYERS, WIDTH, HEADS, TOKENS, WORDS = 6, 384, 12, 64, 5_000
"""The sizes of the transformer."""

Array = NDArray[np.float64]
Run = Callable[[], Any]


def _fit(estimator: Any) -> Any:
    """A pipeline that knows two classes, trained on 5,000 rows."""
    pipes, scales = import_module("sklearn.pipeline"), import_module("sklearn.preprocessing")
    x = np.random.default_rng(0).normal(size=(5_000, FEATURES))
    y = (x[:, 0] + x[:, 1] * x[:, 2] + x[:, 3] > 0).astype(int)
    frame = import_module("pandas").DataFrame(x, columns=COLUMNS)
    pipeline = pipes.Pipeline([("scale", scales.StandardScaler()), ("model", estimator)])
    return pipeline.fit(frame, y)


def _features(connection: Any, rows: int) -> Any:
    """Put rows into a table, and return them as a frame."""
    x = np.random.default_rng(1).normal(size=(rows, FEATURES))
    frame = import_module("pandas").DataFrame(x, columns=COLUMNS)
    connection.register("frame", frame)
    connection.execute(
        "CREATE OR REPLACE TABLE customers AS SELECT (row_number() OVER () - 1)::INT AS id, * "
        "FROM frame"
    ).fetchall()
    connection.unregister("frame")
    return frame


def orbital_sql(pipeline: Any) -> str | None:
    """Write a pipeline as SQL by orbital; None where that is not installed."""
    try:
        orbital, types = import_module("orbital"), import_module("orbital.types")
    except ImportError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = orbital.parse_pipeline(
            pipeline, features={name: types.FloatColumnType() for name in COLUMNS}
        )
        return str(orbital.export_sql("customers", parsed, dialect="duckdb"))


def _ours(pipeline: Any, connection: Any) -> tuple[Run, Callable[[], Array]]:
    """What scores the table, and what reads the second class from the table of scores."""
    model = ucle.models.from_sklearn(pipeline)
    program = model.program("customers", database=connection, rows="id", outputs=["probabilities"])

    def score() -> None:
        with program.execute(connection) as result:
            result["probabilities"].to_table("scored", keys=["id"], rows="all", mode="replace")

    def read() -> Array:
        query = "SELECT val[2] AS p FROM scored ORDER BY id"
        return np.asarray(connection.execute(query).fetchnumpy()["p"])

    return score, read


def _pipeline_row(name: str, estimator: Any, rows: int, rounds: int, fast: bool) -> Sequence[str]:
    """Measure a pipeline; orbital's SQL is left out if it is not `fast`."""
    pipeline = _fit(estimator)
    # Each side has a database of its own, as a statement of one would be a possible change for the
    # other, which looks at its tables then.
    with ucle.connect(threads=THREADS) as connection, ucle.connect(threads=THREADS) as other:
        for each in (connection, other):
            each.execute("SET enable_progress_bar = false")
        frame = _features(connection, rows)
        score, read = _ours(pipeline, connection)
        expected = pipeline.predict_proba(frame)[:, 1]
        sides: dict[str, Run] = {
            "ucle": score,
            "scikit-learn": lambda: pipeline.predict_proba(frame),
        }
        sql = orbital_sql(pipeline) if fast else None
        if sql is not None:
            create = f"CREATE OR REPLACE TABLE orbital AS {sql}"
            _features(other, rows)
            sides["orbital"] = lambda: other.execute(create).fetchall()

        def check(side: str, _: Any) -> None:
            if side == "ucle":
                expect_close(name, read(), expected, 1e-9)

        times = race(sides, rounds, check)
    ours = times["ucle"]
    orbital = times.get("orbital")
    return (
        name,
        f"{rows:,}",
        f"{ours:.2f}",
        f"{times['scikit-learn']:.2f}",
        ratio(ours / times["scikit-learn"]),
        "" if orbital is None else f"{orbital:.2f}",
        "" if orbital is None else ratio(ours / orbital),
    )


def _estimators() -> tuple[Any, Callable[..., Any]]:
    linear, trees = import_module("sklearn.linear_model"), import_module("sklearn.ensemble")

    def forest(count: int, depth: int | None = None) -> Any:
        return trees.RandomForestClassifier(count, max_depth=depth, random_state=0)

    return linear.LogisticRegression(), forest


def _pipeline_rows(rounds: int) -> Iterator[Sequence[str]]:
    logistic, forest = _estimators()
    few = min(rounds, 3)
    yield _pipeline_row("logistic regression", logistic, ROWS, few, True)
    yield _pipeline_row(f"forest, {TREES} trees", forest(TREES), ROWS, min(few, 1), False)
    yield _pipeline_row("forest, 10 trees of depth 6", forest(10, 6), ROWS // 10, few, True)


PIPELINES = Table(
    "models",
    "Pipelines of scikit-learn on a table",
    f"A scaler and an estimator over {FEATURES} columns. ucle and orbital write the\n"
    "probabilities of both classes to a table; scikit-learn predicts from a data frame in\n"
    "memory, with one job. orbital's SQL runs in a DuckDB of its own. Its column is empty\n"
    "where it would take too long.",
    ("model", "rows", "ucle", "scikit-learn", "ucle / scikit-learn", "orbital", "ucle / orbital"),
    _pipeline_rows,
)


@dataclass(frozen=True)
class Encoder:
    """Sizes of a transformer."""

    layers: int
    width: int
    heads: int
    tokens: int


def encoder_model(sizes: Encoder) -> Any:
    """An encoder over tokens: embeddings, layers of attention and two products, and the mean."""
    onnx = import_module("onnx")
    helper, TensorProto = onnx.helper, onnx.TensorProto
    rng, width, heads = np.random.default_rng(0), sizes.width, sizes.heads
    nodes: list[Any] = []
    constants: list[Any] = []

    def weight(name: str, *shape: int) -> str:
        scale = shape[0] ** -0.5 if len(shape) > 1 else 0.1
        values = (rng.normal(size=shape) * scale).astype(np.float32)
        constants.append(onnx.numpy_helper.from_array(values, name))
        return name

    def node(operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def affine(x: str, name: str, before: int, after: int) -> str:
        product = node("MatMul", [x, weight(f"{name}_w", before, after)], f"{name}_p")
        return node("Add", [product, weight(f"{name}_b", after)], name)

    def normalise(x: str, name: str) -> str:
        scales = [weight(f"{name}_g", width), weight(f"{name}_c", width)]
        return node("LayerNormalization", [x, *scales], name)

    shapes = {
        "split": [-1, sizes.tokens, heads, width // heads],
        "whole": [-1, sizes.tokens, width],
    }
    for name, shape in shapes.items():
        constants.append(onnx.numpy_helper.from_array(np.array(shape, np.int64), name))
    scale = np.float32((width // heads) ** -0.5)
    constants.append(onnx.numpy_helper.from_array(scale, "scale"))
    x = node("Gather", [weight("words", WORDS, width), "tokens"], "embedded", axis=0)
    x = node("Add", [x, weight("places", sizes.tokens, width)], "placed")
    for n in range(sizes.layers):
        before = normalise(x, f"n{n}")
        parts = {}
        for each, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            flat = affine(before, f"{each}{n}", width, width)
            split = node("Reshape", [flat, "split"], f"{each}{n}_s")
            parts[each] = node("Transpose", [split], f"{each}{n}_t", perm=order)
        raw = node("MatMul", [parts["q"], parts["k"]], f"raw{n}")
        scaled = node("Mul", [raw, "scale"], f"scaled{n}")
        attention = node("Softmax", [scaled], f"attention{n}")
        mixed = node("MatMul", [attention, parts["v"]], f"mixed{n}")
        turned = node("Transpose", [mixed], f"turned{n}", perm=[0, 2, 1, 3])
        joined = node("Reshape", [turned, "whole"], f"joined{n}")
        x = node("Add", [x, affine(joined, f"o{n}", width, width)], f"r{n}")
        hidden = affine(normalise(x, f"m{n}"), f"f{n}", width, 4 * width)
        made = affine(node("Relu", [hidden], f"a{n}"), f"z{n}", 4 * width, width)
        x = node("Add", [x, made], f"y{n}")
    node("ReduceMean", [x], "sentence", axes=[1], keepdims=0)
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["n", sizes.tokens])],
        [helper.make_tensor_value_info("sentence", TensorProto.FLOAT, ["n", width])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model


def _encoder_row(sizes: Encoder, rows: int, rounds: int, scalar: bool) -> Sequence[str]:
    """Measure a transformer; beside onnxruntime, or the same program as `scalar` SQL."""
    proto = encoder_model(sizes)
    tokens = np.random.default_rng(1).integers(0, WORDS, (rows, sizes.tokens))
    with ucle.connect(threads=THREADS) as connection, tempfile.TemporaryDirectory() as folder:
        connection.execute("SET enable_progress_bar = false")
        arrow = import_module("pyarrow")
        lists = arrow.FixedSizeListArray.from_arrays(arrow.array(tokens.reshape(-1)), sizes.tokens)
        connection.register("drawn", arrow.table({"id": np.arange(rows), "tokens": lists}))
        connection.execute("CREATE TABLE texts AS FROM drawn").fetchall()
        model = ucle.models.from_onnx(proto)
        program = model.program("texts", database=connection, rows="id")

        def score() -> Any:
            return program.execute(connection)

        sides: dict[str, Run] = {"ucle": score}
        if scalar:
            plain = program.with_decomposition("relational")
            sides["other"] = lambda: plain.execute(connection)
        else:
            runtime = import_module("onnxruntime")
            path = Path(folder) / "encoder.onnx"
            path.write_bytes(proto.SerializeToString())
            options = runtime.SessionOptions()
            options.intra_op_num_threads = THREADS
            session = runtime.InferenceSession(str(path), options)
            sides["other"] = lambda: session.run(None, {"tokens": tokens})[0]
        found: dict[str, Any] = {}

        def check(side: str, result: Any) -> None:
            found[side] = (
                result if isinstance(result, np.ndarray) else result["sentence"].to_numpy()
            )

        times = race(sides, rounds, check)
        expect_close("encoder", found["ucle"], found["other"], 1e-4)
    return (
        f"{sizes.layers} x {sizes.width}, {sizes.heads} heads",
        f"{rows:,} x {sizes.tokens}",
        "scalar SQL" if scalar else "onnxruntime",
        f"{times['ucle']:.2f}",
        f"{times['other']:.2f}",
        ratio(times["ucle"] / times["other"]),
    )


def _encoder_rows(rounds: int) -> Iterator[Sequence[str]]:
    few = min(rounds, 3)
    yield _encoder_row(Encoder(LAYERS, WIDTH, HEADS, TOKENS), 1_000, 1, False)
    yield _encoder_row(Encoder(2, 96, 4, 16), 100, few, True)


ENCODERS = Table(
    "encoders",
    "Transformers over tokens in a table",
    f"Embeddings of {WORDS:,} words, then layers of attention and of two matrix products,\n"
    "then the mean over the tokens of a text. The table has an array of tokens for each\n"
    "text; onnxruntime gets the tokens as an array in memory. `scalar SQL` is the same\n"
    "program with every label promoted.",
    ("layers x width", "texts x tokens", "compared with", "ucle", "other", "ucle / other"),
    _encoder_rows,
)
