"""``ucle models``: statements of a file, and scores of the rows of a database."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("onnx")

import onnx
from onnx import TensorProto, helper, numpy_helper

from ucle.command.cli import main


@pytest.fixture
def model(tmp_path: Path) -> str:
    weights = numpy_helper.from_array(np.array([[1, 0], [2, 1]], "f4"), "w")
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["scores"]),
            helper.make_node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
        ],
        "g",
        [helper.make_tensor_value_info("x", floats, ["n", 2])],
        [
            helper.make_tensor_value_info("scores", floats, ["n", 2]),
            helper.make_tensor_value_info("best", TensorProto.INT64, ["n"]),
        ],
        [weights],
    )
    path = tmp_path / "model.onnx"
    onnx.save_model(helper.make_model(graph), str(path))
    return str(path)


def test_what_a_model_computes(model: str) -> None:
    done = CliRunner().invoke(main, ["models", "show", model])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "# x: rows x 2, float32",
        "scores[rows,i2] += x[rows,j2] * w[j2,i2]",
        "best[rows] = argmax[i2](scores[rows,i2])",
    ]


def test_scores_of_rows(model: str, tmp_path: Path) -> None:
    path = str(tmp_path / "data.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people (id BIGINT, age FLOAT, spent FLOAT)")
        connection.execute("INSERT INTO people VALUES (7, 1, 2), (9, 0, 3), (12, 0, 0)")
    command = ["models", "score", model, path, "--rows", "people", "--key", "id"]
    done = CliRunner().invoke(main, [*command, "--columns", "age, spent", "--into", "risk"])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == ["scores in risk_scores", "best in risk_best"]
    with duckdb.connect(path) as connection:
        best = connection.sql("SELECT * FROM risk_best ORDER BY id").fetchall()
        scores = connection.sql("SELECT id, val FROM risk_scores ORDER BY id, i2").fetchall()
    assert best == [(7, 0), (9, 0), (12, 0)]
    assert scores == [(7, 5), (7, 2), (9, 6), (9, 3), (12, 0), (12, 0)]
    again = CliRunner().invoke(main, [*command, "--columns", "age, spent", "--into", "risk"])
    assert again.exit_code == 1
    assert "exists" in again.output


def test_mistakes_on_the_command_line(model: str, tmp_path: Path) -> None:
    path = str(tmp_path / "data.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS id, 2.0 AS age")
    command = ["models", "score", model, path, "--rows", "people", "--key", "id"]
    few = CliRunner().invoke(main, [*command, "--columns", "age"])
    assert few.exit_code == 1
    assert "2 columns" in few.output
    size = CliRunner().invoke(main, ["models", "show", model, "--size", "n=many"])
    assert size.exit_code == 2
    assert "not a size" in size.output


def test_a_stored_model(model: str, tmp_path: Path) -> None:
    path = str(tmp_path / "models.duckdb")
    store = ["models", "store", model, "--database", path, "--name", "risk"]
    done = CliRunner().invoke(main, store)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [f"risk, version 1, in {path}"]
    again = CliRunner().invoke(main, store)
    assert again.exit_code == 1
    assert "replace=True" in again.output
    for more in (["--replace"], ["--version", "2"]):
        assert CliRunner().invoke(main, [*store, *more]).exit_code == 0
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people AS SELECT 7 AS id, 1::FLOAT AS age, 2::FLOAT AS m")
    Path(model).unlink()
    command = ["models", "score", "risk", path, "--rows", "people", "--key", "id"]
    command += ["--columns", "age,m"]
    done = CliRunner().invoke(main, [*command, "--stored", "--version", "1"])
    assert done.exit_code == 0, done.output
    with duckdb.connect(path) as connection:
        assert connection.sql("SELECT * FROM scores_best").fetchall() == [(7, 0)]
    missing = CliRunner().invoke(main, [*command, "--stored", "--version", "3"])
    assert missing.exit_code == 1
    assert "'3'" in missing.output
    for wrong in ([], ["--version", "1"], ["--stored", "--size", "n=2"]):
        assert CliRunner().invoke(main, [*command, *wrong]).exit_code == 2


def test_export(tmp_path: Path) -> None:
    """A program of tables becomes a model; what has no rows is stored in it."""
    database, program, path = (tmp_path / name for name in ("d.duckdb", "p.ein", "p.onnx"))
    with duckdb.connect(str(database)) as connection:
        connection.execute(
            "CREATE TABLE x AS SELECT i, j, 1.0 AS val FROM range(5) a(i), range(3) b(j)"
        )
        connection.execute("CREATE TABLE w AS SELECT j, 0.5::DOUBLE AS val FROM range(3) b(j)")
    program.write_text("p[i] = sigmoid(x[i,j] * w[j])", encoding="utf-8")
    options = ["-d", str(database), "--rows", "i", "-o", str(path), "--float32"]
    done = CliRunner().invoke(main, ["models", "export", str(program), *options])
    assert done.output == f"# x: i x 3\np in {path}\n"
    shown = CliRunner().invoke(main, ["models", "show", str(path)])
    assert "rows x 3, float32" in shown.output
