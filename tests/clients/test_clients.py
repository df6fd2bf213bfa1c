"""The extension in clients that know nothing of ucle."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from clients.conftest import CommandLine, Node
from documents import ROOT, code_blocks

from ucle.command.cli import main

FILES = sorted((ROOT / "extension" / "test" / "sql").glob("*.test"))
NODES, EDGES, FEATURES, HIDDEN = 300, 3_000, 16, 8


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_sql_tests(file: Path, command_line: CommandLine, tmp_path: Path) -> None:
    assert command_line.run(file, tmp_path) > 2
    assert (command_line.errors(file, tmp_path) > 0) == ("error" in file.read_text())


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_sql_tests_on_arm(file: Path, emulated: CommandLine, tmp_path: Path) -> None:
    assert emulated.run(file, tmp_path) > 2


def test_the_page_runs(command_line: CommandLine, tmp_path: Path) -> None:
    blocks = [b.text for b in code_blocks(ROOT / "docs" / "extension.md") if b.language == "sql"]
    assert "0.98994946" in command_line.output("\n".join(blocks), tmp_path)


@pytest.fixture
def graph(tmp_path: Path) -> dict[str, Any]:
    """Parquet files of a graph convolution, and the same as arrays."""
    rng = np.random.default_rng(0)
    cells = rng.choice(NODES * NODES, EDGES, replace=False)
    source, target, weight = cells // NODES, cells % NODES, rng.random(EDGES)
    features, layer = rng.normal(size=(NODES, FEATURES)), rng.normal(size=(FEATURES, HIDDEN))
    edges = pa.table({"src": source, "dst": target, "weight": weight})
    pq.write_table(edges, tmp_path / "edges.parquet")
    lists = pa.array(features.tolist(), pa.list_(pa.float64()))
    table = pa.table({"node": np.arange(NODES), "val": lists})
    pq.write_table(table, tmp_path / "features.parquet")
    rows, columns = np.indices(layer.shape).reshape(2, -1)
    entries = pa.table({"m": rows, "k": columns, "weight": layer.ravel()})
    pq.write_table(entries, tmp_path / "layer.parquet")
    adjacency = np.zeros((NODES, NODES))
    adjacency[source, target] = weight
    return {"adjacency": adjacency, "features": features, "layer": layer}


def as_matrix(rows: Any) -> Any:
    """A result whose rows the plan may have made one of, as a matrix."""
    found = np.zeros((NODES, HIDDEN))
    for *keys, values in rows:
        numbers = np.array(json.loads(values) if isinstance(values, str) else values)
        found[tuple(map(int, keys))] = numbers.reshape(found.shape[len(keys) :])
    return found


def test_a_compiled_program_runs_in_every_client(
    graph: dict[str, Any],
    command_line: CommandLine,
    node: Node,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    program = "T[i,m] += A[i,l] * H[l,m]\nZ[i,n] = relu(T[i,m] * W[m,n])\n"
    Path("gcn.ucle").write_text(program, encoding="utf-8")
    inputs = ["A=edges.parquet", "H=features.parquet", "W=layer.parquet"]
    options = [option for x in inputs for option in ("--input", x)]
    printed = CliRunner().invoke(main, ["sql", "gcn.ucle", *options])
    assert printed.exit_code == 0, printed.output
    assert "LOAD 'ucle.duckdb_extension'" in printed.output
    assert "stack_csr(" in printed.output
    script = Path("gcn.sql")
    script.write_text(printed.output, encoding="utf-8")

    lines = command_line.output(script.read_text(encoding="utf-8"), tmp_path)
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{command_line.library}'")
        python = as_matrix(connection.execute(script.read_text(encoding="utf-8")).fetchall())
    shell = as_matrix(csv.reader(io.StringIO(lines)))
    javascript = as_matrix(node.rows(script, tmp_path))

    expected = np.maximum(graph["adjacency"] @ graph["features"] @ graph["layer"], 0)
    np.testing.assert_allclose(python, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(shell, python, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(javascript, python, rtol=1e-14, atol=1e-14)
