"""Loops until a condition holds, against loops in NumPy, and what they leave."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from leftovers import temporary_objects
from scipy.sparse.csgraph import connected_components

import ucle
from ucle.errors import ArgumentError, NotConvergedWarning, OutputNameError, UcleError
from ucle.foundation.progress import Progress
from ucle.pipeline.stages import compile_statements

Connection = duckdb.DuckDBPyConnection

PAGERANK = """
lost[] = sum[j](dangling[j] * rank[j])
next[i] = 0.15 / NODES + 0.85 * (sum[j](P[i,j] * rank[j]) + lost[] / NODES)
delta[] = sum[i](abs(next[i] - rank[i]))
"""


def graph(seed: int, n: int = 40) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    return sp.csr_array((rng.random((n, n)) < 1.3 / n).astype(float))


def pagerank(G: sp.csr_array, steps: int) -> np.ndarray[Any, Any]:
    n = G.shape[0]
    out = np.asarray(G.sum(axis=1)).ravel()
    P = (G / np.maximum(out, 1)[:, None]).T
    rank = np.full(n, 1 / n)
    for _ in range(steps):
        rank = 0.15 / n + 0.85 * (P @ rank + rank[out == 0].sum() / n)
    return rank


def pagerank_program(G: sp.csr_array, database: Any) -> ucle.EinsumProgram:
    n = G.shape[0]
    out = np.asarray(G.sum(axis=1)).ravel()
    P = sp.csr_array((G / np.maximum(out, 1)[:, None]).T)
    text = PAGERANK.replace("NODES", str(n))
    inputs = {"P": P, "dangling": (out == 0) * 1.0, "rank": np.full(n, 1 / n)}
    return ucle.einsum_program(text, inputs=inputs, outputs=["next"], database=database)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(3))
def test_pagerank(seed: int, connection: Connection) -> None:
    G = graph(seed)
    before = temporary_objects(connection)
    program = pagerank_program(G, connection)
    with program.iterate({"rank": "next"}, until="delta[] < 1e-10", max_steps=300) as found:
        assert found.converged
        assert not found.interrupted
        np.testing.assert_allclose(found["next"].to_numpy(), pagerank(G, found.steps), atol=1e-14)
        deltas = found.history["delta"]
        assert len(deltas) == found.steps
        assert deltas[-1] < 1e-10 <= deltas[-2]
        assert tuple(found) == ("next",)
    assert temporary_objects(connection) == before


@pytest.mark.parametrize("seed", range(3))
def test_connected_components(seed: int, connection: Connection) -> None:
    """Labels only fall, so that minima along edges end at one number a component."""
    G = graph(seed)
    E = sp.csr_array(((G + G.T + sp.eye_array(40)) > 0).astype(np.int64))
    text = (
        "next[i] = min[j](when_highest(E[i,j] > 0, label[j]))\nmoved[] = any[i](next[i] < label[i])"
    )
    program = ucle.einsum_program(text, E=E, label=np.arange(40), database=connection)
    found = program.iterate({"label": "next"}, until="not moved[]")
    count, labels = connected_components(G, directed=False)
    mine = found["next"].to_numpy()
    assert len(set(mine)) == count
    assert len({*zip(mine, labels, strict=True)}) == count


def test_conditions_of_several_kinds(connection: Connection) -> None:
    inputs = {"x": np.array([8.0, 4.0])}
    program = ucle.einsum_program(
        "y[i] = x[i] / 2\ntop[] max= y[i]", inputs=inputs, database=connection
    )
    for until, steps, history in (
        ("top[] < 0.7", 4, {"top": [4, 2, 1, 0.5]}),
        ("max[i](y[i] + 1) <= 2", 3, {"top": [4, 2, 1], "max[i](y[i] + 1)": [5, 3, 2]}),
        ("any[i](y[i] < 0.3)", 4, {"top": [4, 2, 1, 0.5]}),
        ("top[] < sum[i](x[i]) and top[] < 2", 3, {"top": [4, 2, 1]}),
    ):
        found = program.iterate({"x": "y"}, until=until)
        assert found.steps == steps
        assert {x: list(y) for x, y in found.history.items()} == history


def test_a_condition_on_an_input(connection: Connection) -> None:
    program = ucle.einsum_program(
        "y[i] = x[i] / 2\nfewer[] = left[] - 1",
        x=np.array([8.0, 4.0]),
        left=9,
        outputs=["y"],
        database=connection,
    )
    carry = {"x": "y", "left": "fewer"}
    found = program.iterate(carry, until="left[] < 7")
    assert tuple(found) == ("y", "fewer")
    history = {x: list(y) for x, y in found.history.items()}
    assert history == {"fewer": [8, 7, 6, 5], "left": [9, 8, 7, 6]}
    assert program.iterate(carry, until="x[1] == 1").history["x[1]"].tolist() == [4, 2, 1]


def test_a_loop_is_compiled_once(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its condition, with what it carries, and for a state that varies."""
    text = "y[i] = x[i] / 2\nz[i] = 3 * y[i]"
    program = ucle.einsum_program(text, x=np.array([8.0, 4.0]), database=connection)
    compiled: list[tuple[str, ...]] = []

    def counted(statements: Any, *others: Any, **options: Any) -> Any:
        compiled.append(tuple(statement.target.tensor for statement in statements))
        return compile_statements(statements, *others, **options)

    monkeypatch.setattr("ucle.run.build.compile_statements", counted)
    found = program.iterate({"x": "y"}, until="max[i](y[i]) < 1")
    assert compiled == [("y", "z", "until_value", "until")]
    assert (found.steps, tuple(found)) == (4, ("z", "y"))
    assert program.iterate({"x": "y"}, max_steps=3)["y"].to_numpy().tolist() == [1, 0.5]
    assert len(compiled) == 2


def test_a_file_is_free_after_the_loop(tmp_path: Path) -> None:
    """Also while somebody holds the result, which goes back to it when it is written."""
    path = tmp_path / "a.duckdb"
    with duckdb.connect(path) as con:
        con.execute("CREATE TABLE s AS FROM (VALUES ('a', 8.0), ('b', 4.0)) t(i, v)")
    program = ucle.einsum_program("y[i] = x[i] / 2", x="s", database=path)
    found = program.iterate({"x": "y"}, max_steps=2)
    with duckdb.connect(path) as con:
        con.execute("CREATE TABLE other AS SELECT 1")
    assert found["y"].to_numpy().tolist() == [2, 1]
    found["y"].to_table("y")
    with duckdb.connect(path) as con:
        assert con.execute("FROM y ORDER BY ALL").fetchall() == [("a", 2.0), ("b", 1.0)]


def test_a_number_of_steps(connection: Connection) -> None:
    program = ucle.einsum_program("y[i] = x[i] / 2", x=np.array([8.0, 4.0]), database=connection)
    found = program.iterate({"x": "y"}, max_steps=5)
    assert (found.steps, found.converged, dict(found.history)) == (5, False, {})
    np.testing.assert_array_equal(found["y"].to_numpy(), [0.25, 0.125])
    with pytest.warns(NotConvergedWarning, match="after 3 steps"):
        found = program.iterate({"x": "y"}, until="y[0] < 0", max_steps=3)
    np.testing.assert_array_equal(found["y"].to_numpy(), [1, 0.5])
    with pytest.raises(ArgumentError, match="nothing ends"):
        program.iterate({"x": "y"})


@pytest.mark.parametrize("kind", ["ranks", "labels"])
def test_statements_do_not_grow(kind: str, caplog: Any) -> None:
    """But for the names of temporary tables, steps send what the second one has sent.

    Those that run several at once send what the first of these has sent.
    """
    sent: list[list[str]] = [[]]

    def told(_: Progress) -> None:
        texts = [x.getMessage() for x in caplog.records if x.getMessage().startswith("step ")]
        sent.append([re.sub(r"ucle_[0-9a-f]{8}_", "", x.rpartition(" (")[0]) for x in texts])
        caplog.clear()

    with ucle.connect() as con, caplog.at_level(logging.DEBUG, logger="ucle.execute"):
        if kind == "ranks":
            program = pagerank_program(graph(1), con)
            with pytest.warns(NotConvergedWarning):
                program.iterate({"rank": "next"}, "delta[] < 0", max_steps=12, progress=told)
        else:
            path = ucle.table(pa.table({"a": np.arange(12), "b": np.arange(1, 13)}), symmetric=True)
            text = "y[i] = min(x[i], min[j](when_highest(E[i,j] > 0, x[j]))); n[] = sum[i](y[i])"
            program = ucle.einsum_program(text, E=path, x=np.arange(13), database=con)
            assert program.iterate({"x": "y"}, "n[] == 0", progress=told).steps == 12
    steps = sent[2:]
    assert len(steps) == 11
    assert len({tuple(step) for step in steps if step}) <= 2


def test_ended_from_the_keyboard(connection: Connection) -> None:
    program = ucle.einsum_program("y[i] = x[i] / 2", x=np.array([8.0, 4.0]), database=connection)

    def told(progress: Progress) -> None:
        if progress.number == 3:
            raise KeyboardInterrupt

    found = program.iterate({"x": "y"}, max_steps=50, progress=told)
    assert found.interrupted
    assert found.steps == 3
    np.testing.assert_array_equal(found["y"].to_numpy(), [1, 0.5])


def test_errors_leave_nothing(connection: Connection) -> None:
    before = temporary_objects(connection)
    program = ucle.einsum_program("y[i] = x[i] / 2", x=np.array([8.0, 4.0]), database=connection)

    def told(progress: Progress) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        program.iterate({"x": "y"}, max_steps=50, progress=told)
    for until in ("y[i] < 1", "z[] < 1", "y[0] <"):
        with pytest.raises(UcleError):
            program.iterate({"x": "y"}, until=until)
    assert temporary_objects(connection) == before


def test_checkpoints(fresh: Connection) -> None:
    program = ucle.einsum_program(
        "y[i] = x[i] / 2\nt[] max= y[i]", x=np.array([8.0, 4.0]), database=fresh
    )
    seen = []

    def told(progress: Progress) -> None:
        tables = [
            name
            for (name,) in fresh.execute(
                "SELECT table_name FROM duckdb_tables() WHERE NOT temporary"
            ).fetchall()
        ]
        seen.append(fresh.execute("SELECT max(val) FROM x_now").fetchall() if tables else None)

    program.iterate(
        {"x": "y"}, max_steps=5, checkpoint={"x": "x_now", "t": "t_now"}, every=2, progress=told
    )
    assert seen == [None, None, [(2.0,)], [(2.0,)], [(0.5,)]]
    assert fresh.execute("SELECT max(val) FROM x_now").fetchall() == [(0.25,)]
    again = ucle.einsum_program("y[i] = x[i] / 2", x="x_now", database=fresh)
    np.testing.assert_array_equal(again.execute()["y"].to_numpy(), [0.125, 0.0625])
    with pytest.raises(ArgumentError, match="not carried"):
        program.iterate({"x": "y"}, max_steps=5, checkpoint={"q": "x_now"})


def test_the_last_state_is_found_by_both_names(connection: Connection) -> None:
    program = ucle.einsum_program("next[i] = x[i] / 2", x=np.ones(3), database=connection)
    found = program.iterate({"x": "next"}, max_steps=3)
    assert list(found) == ["next"]
    np.testing.assert_array_equal(found["x"].to_numpy(), found["next"].to_numpy())
    with pytest.raises(OutputNameError):
        found["y"]
