"""Models in databases: every layout, other processes, tables that others change, overwriting."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ucle
from ucle.errors import DatabaseError, ModelError, NameResolutionError, UnsupportedError
from ucle.models import Model, drop_stored, from_onnx, list_stored, stored, weight_layouts

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def graph(
    nodes: list[Any], weights: dict[str, Any], x: list[int], y: list[int], kind: int = FLOAT
) -> onnx.ModelProto:
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, ["n", *x])],
        [helper.make_tensor_value_info("y", FLOAT, ["n", *y])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model


def drawn(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def dense(transposed: bool = False) -> onnx.ModelProto:
    shapes = [(19, 33), (7, 19)] if transposed else [(33, 19), (19, 7)]
    one, two = (drawn(*shape) for shape in shapes)
    nodes = [
        helper.make_node("Gemm", ["x", "W", "b"], ["h"], transB=int(transposed)),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "V"], ["y"], transB=int(transposed)),
    ]
    return graph(nodes, {"W": one, "b": drawn(19), "V": two}, [33], [7])


def convolution() -> onnx.ModelProto:
    node = helper.make_node("Conv", ["x", "W", "b"], ["y"], pads=[1, 1, 1, 1])
    return graph([node], {"W": drawn(9, 6, 3, 3), "b": drawn(9)}, [6, 5, 5], [9, 5, 5])


def embedding() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Gather", ["E", "x"], ["e"], axis=0),
        helper.make_node("ReduceMean", ["e"], ["y"], axes=[1], keepdims=0),
    ]
    return graph(nodes, {"E": drawn(50, 12)}, [4], [12], INT64)


def stacked() -> onnx.ModelProto:
    """A weight with an axis of few positions in front of those of a matrix."""
    node = helper.make_node("Einsum", ["x", "W"], ["y"], equation="nj,kji->nki")
    return graph([node], {"W": drawn(3, 33, 20)}, [33], [3, 20])


MODELS = {
    "dense": dense,
    "transposed": lambda: dense(transposed=True),
    "convolution": convolution,
    "embedding": embedding,
    "stacked": stacked,
}


def features(model: onnx.ModelProto, rows: int = 5) -> Any:
    kind = model.graph.input[0].type.tensor_type
    shape = [rows, *(d.dim_value for d in kind.shape.dim[1:])]
    rng = np.random.default_rng(1)
    if kind.elem_type == INT64:
        return rng.integers(0, 50, shape)
    return rng.standard_normal(shape).astype(np.float32)


def scores(model: Model, x: Any, connection: Any) -> Any:
    with model.program(x, database=connection).execute(connection) as result:
        return result["y"].to_numpy()


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are large from 400 bytes on, and tiles hold 16 numbers."""
    monkeypatch.setattr(weight_layouts, "LARGE", 400)
    monkeypatch.setattr(weight_layouts, "TUPLE", 64)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_the_file(
    name: str, fresh: duckdb.DuckDBPyConnection, small_tiles: None
) -> None:
    proto = MODELS[name]()
    x = features(proto)
    (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
    from_onnx(proto).store(fresh, "m")
    again = stored("m", fresh)
    np.testing.assert_allclose(scores(again, x, fresh), expected, rtol=1e-4, atol=1e-5)


def test_layouts_follow_the_statements(fresh: duckdb.DuckDBPyConnection, small_tiles: None) -> None:
    for name in ("dense", "transposed", "embedding", "convolution"):
        from_onnx(MODELS[name]()).store(fresh, name)
    query = 'SELECT at0, at1 FROM ucle."{} 1: W" LIMIT 2'
    assert fresh.execute(query.format("dense")).fetchall() == [(0, 0), (1, 0)]
    assert fresh.execute(query.format("transposed")).fetchall() == [(0, 0), (0, 1)]
    rows = 'SELECT count(*), min(len(val)), max(len(val)) FROM ucle."{}"'
    assert fresh.execute(rows.format("dense 1: W")).fetchall() == [(45, 16, 16)]
    assert fresh.execute(rows.format("dense 1: b")).fetchall() == [(1, 19, 19)]
    assert fresh.execute(rows.format("embedding 1: E")).fetchall() == [(50, 12, 12)]
    assert fresh.execute(rows.format("convolution 1: W")).fetchall() == [(54, 9, 9)]


PROCESS = """
import sys
import numpy as np
import ucle

path, rows = sys.argv[1:]
model = ucle.models.stored("net", path)
with model.program(np.load(rows), database=path).execute() as result:
    np.save(rows, result["y"].to_numpy())
assert not {"onnx", "sklearn", "skl2onnx"} & set(sys.modules)
"""


def test_another_process_needs_no_file(tmp_path: Path) -> None:
    proto = dense()
    x = features(proto)
    path, rows = str(tmp_path / "models.db"), str(tmp_path / "x.npy")
    from_onnx(proto).store(path, "net")
    np.save(rows, x)
    subprocess.run([sys.executable, "-c", PROCESS, path, rows], check=True)
    (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_allclose(np.load(rows), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {} SET val = list_transform(val, lambda v: v + 1) WHERE at0 = 1 AND at1 = 2",
        "INSERT INTO {} SELECT at0 + 9, at1, val FROM {} LIMIT 1",
        "DELETE FROM {} WHERE at0 = 2",
        "CREATE OR REPLACE TABLE {} AS SELECT at1 AS at0, at0 AS at1, val FROM {}",
        "ALTER TABLE {} RENAME COLUMN at1 TO other",
        "DROP TABLE {}",
    ],
)
def test_tables_that_others_change(
    change: str, fresh: duckdb.DuckDBPyConnection, small_tiles: None
) -> None:
    proto = dense()
    x = features(proto)
    from_onnx(proto).store(fresh, "net")
    before = stored("net", fresh)
    compiled = before.program(x, database=fresh)
    fresh.execute(change.replace("{}", 'ucle."net 1: W"')).fetchall()
    with pytest.raises(ModelError) as error:
        stored("net", fresh).program(x, database=fresh)
    assert "model net, version 1, weight W" in str(error.value.where)
    with pytest.raises(ucle.UcleError):
        compiled.execute(fresh)


def test_what_is_trusted_is_not_read(fresh: duckdb.DuckDBPyConnection, small_tiles: None) -> None:
    proto = dense()
    x = features(proto)
    from_onnx(proto).store(fresh, "net")
    fresh.execute('UPDATE ucle."net 1: b" SET val = list_transform(val, lambda v: 0 * v)')
    with pytest.raises(ModelError):
        stored("net", fresh).program(x, database=fresh)
    weights = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    expected = np.maximum(x @ weights["W"], 0) @ weights["V"]
    found = scores(stored("net", fresh, check=False), x, fresh)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_overwriting_is_explicit(fresh: duckdb.DuckDBPyConnection) -> None:
    model = from_onnx(dense())
    model.store(fresh, "net")
    with pytest.raises(DatabaseError, match="replace=True"):
        model.store(fresh, "net")
    model.store(fresh, "net", version="2")
    model.store(fresh, "other")
    assert list_stored(fresh) == {"net": ("1", "2"), "other": ("1",)}
    model.store(fresh, "net", version="1", replace=True)
    assert list_stored(fresh)["net"] == ("2", "1")
    drop_stored("net", fresh, version="2")
    assert list_stored(fresh) == {"other": ("1",), "net": ("1",)}
    drop_stored("net", fresh)
    drop_stored("other", fresh)
    left = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'ucle'"
    assert fresh.execute(left).fetchall() == [("models",)]
    with pytest.raises(NameResolutionError, match="store"):
        stored("net", fresh)


def test_names_of_models_and_versions(fresh: duckdb.DuckDBPyConnection) -> None:
    model = from_onnx(dense())
    model.store(fresh, 'it\'s "net"', version="2 beta")
    again = stored('it\'s "net"', fresh, version="2 beta")
    x = features(dense())
    np.testing.assert_allclose(scores(again, x, fresh), scores(model, x, fresh), rtol=1e-5)
    with pytest.raises(NameResolutionError, match="2 beta"):
        stored('it\'s "net"', fresh, version="1")
    with pytest.raises(UnsupportedError, match="tables"):
        again.store(fresh, "copy")


def test_a_failure_leaves_nothing(fresh: duckdb.DuckDBPyConnection) -> None:
    model = from_onnx(dense())
    fresh.execute("CREATE SCHEMA ucle").fetchall()
    fresh.execute('CREATE TABLE ucle."net 1: V" (a INT)').fetchall()
    with pytest.raises(ucle.UcleError):
        model.store(fresh, "net")
    left = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'ucle'"
    assert fresh.execute(left).fetchall() == [("net 1: V",)]


def test_a_transaction_of_the_user(fresh: duckdb.DuckDBPyConnection) -> None:
    model = from_onnx(dense())
    fresh.execute("BEGIN").fetchall()
    model.store(fresh, "net")
    x = features(dense())
    np.testing.assert_allclose(
        scores(stored("net", fresh), x, fresh), scores(model, x, fresh), rtol=1e-5
    )
    fresh.execute("ROLLBACK").fetchall()
    assert list_stored(fresh) == {}


def with_external_data(proto: onnx.ModelProto, folder: Path) -> Path:
    """Write a model whose weights lie in a file beside it, at odd places."""
    path, offset = folder / "m.onnx", 4
    with (folder / "weights.bin").open("wb") as file:
        file.write(b"some")
        for tensor in proto.graph.initializer:
            data = tensor.raw_data
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            place = {"location": "weights.bin", "offset": offset, "length": len(data)}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))
            offset += file.write(data)
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.mark.parametrize("name", MODELS)
def test_weights_that_are_mapped(
    name: str,
    fresh: duckdb.DuckDBPyConnection,
    small_tiles: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ucle.models.onnx_files.MAPPED", 100)
    proto = MODELS[name]()
    x = features(proto)
    (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
    model = from_onnx(with_external_data(proto, tmp_path))
    large = [w for w in model.weights.values() if w.nbytes >= 100]
    assert large
    assert all(isinstance(w.base, np.memmap) for w in large)
    np.testing.assert_allclose(scores(model, x, fresh), expected, rtol=1e-4, atol=1e-5)
    model.store(fresh, "m")
    np.testing.assert_allclose(scores(stored("m", fresh), x, fresh), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.turns(3)
@pytest.mark.sample(1)
def test_weights_in_chunks(
    fresh: duckdb.DuckDBPyConnection, small_tiles: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for chunk in (1, 300, 5000):
        monkeypatch.setattr("ucle.models.weight_rows.CHUNK", chunk)
        for name, make in MODELS.items():
            proto = make()
            x = features(proto)
            (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
            from_onnx(proto).store(fresh, f"{name} {chunk}")
            found = scores(stored(f"{name} {chunk}", fresh), x, fresh)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_external_data_that_is_too_short(tmp_path: Path) -> None:
    path = with_external_data(dense(), tmp_path)
    data = (tmp_path / "weights.bin").read_bytes()
    (tmp_path / "weights.bin").write_bytes(data[:-4])
    with pytest.raises(ModelError, match="does not fit"):
        from_onnx(path)
