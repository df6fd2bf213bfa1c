"""Loops that are kept: warm where an argument allows it, and equal to a cold start."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.errors import ArgumentError, UnsupportedError

PAGERANK = """
    links[i] = sum[j](L[i,j])
    given[j] = sum[i](L[i,j] * (rank[i] / max(links[i], 1)))
    next[j] = 0.15 / 30 + 0.85 * given[j]
    moved[] = sum[i](abs(next[i] - rank[i]))
"""
COMPONENTS = """
    around[i] min= when_highest(F[i,j], label[j])
    next[i] = min(label[i], around[i])
    moved[] = sum[i](next[i] < label[i])
"""
PATHS = "C[j] min= D[i] + R[i,j]; E[j] = min(D[j], C[j]); shorter += (E[j] < D[j])"
REACHED = "W[j] = V[j] or any[i](A[i,j] and V[i]); more[] = sum[j](W[j] != V[j])"
VOTES = """
    votes[i] += F[i,j] * label[j]
    next[i] = where(votes[i] > 3, 1, where(votes[i] < -3, -1, label[i]))
    moved[] = sum[i](next[i] != label[i])
"""
NODES = 30


class Loop:
    """A loop over a random graph, kept in a database, and the same from its start."""

    def __init__(self, kind: str, seed: int, connect: Any = ucle.connect) -> None:
        self.rng = np.random.default_rng([seed, 7])
        self.connection: duckdb.DuckDBPyConnection = connect()
        run, inputs = self.connection.execute, dict[str, Any]()
        bounds = [NODES, NODES]
        run("CREATE TABLE links (i BIGINT, j BIGINT, val DOUBLE)")
        start = f"SELECT i, 1.0 / {NODES} AS val FROM range({NODES}) r(i)"
        if kind == "pagerank":
            text, carry, until = PAGERANK, {"rank": "next"}, "moved[] < 1e-10"
            inputs = {"L": ucle.table("links", value=1, bounds=bounds), "rank": "start"}
        elif kind == "paths":
            text, carry, until = PATHS, {"D": "E"}, "shorter[] < 1"
            inputs = {
                "R": ucle.table("links", fill=ucle.inf),
                "D": ucle.table("start", fill=ucle.inf, bounds=None),
            }
            start = "SELECT 0 AS i, 0.0 AS val"
        elif kind == "reached":
            text, carry, until = REACHED, {"V": "W"}, "more[] == 0"
            inputs = {
                "A": ucle.table("links", value=1, dtype="bool", bounds=bounds),
                "V": ucle.table("start", value=1, dtype="bool", bounds=[NODES]),
            }
            start = "SELECT 0 AS i"
        else:
            text, carry, until = COMPONENTS, {"label": "next"}, "moved[] == 0"
            edges = ucle.table("links", value=1, dtype="bool", symmetric=True)
            start = f"SELECT i, i AS val FROM range({NODES}) r(i)"
            if kind == "votes":
                text, edges = VOTES, ucle.table("links", value=1, bounds=bounds)
                start = f"SELECT i, (i % 3) - 1 AS val FROM range({NODES}) r(i)"
            inputs = {"F": edges, "label": "start"}
        run(f"CREATE TABLE start AS {start}")
        self.edges: set[tuple[int, int]] = set()
        self.insert(25)
        (self.after,) = carry.values()
        self.carry, self.until = carry, until
        self.program = ucle.einsum_program(
            text, inputs=inputs, database=self.connection, outputs=[self.after]
        )
        self.kept = self.program.maintain("kept", carry=carry, until=until)

    def insert(self, count: int, nodes: int = NODES) -> None:
        for _ in range(count):
            i, j = (int(x) for x in self.rng.integers(0, nodes, 2))
            if i != j and not {(i, j), (j, i)} & self.edges:
                self.edges.add((i, j))
                weight = float(self.rng.integers(1, 9))
                self.connection.execute("INSERT INTO links VALUES (?, ?, ?)", [i, j, weight])

    def delete(self, count: int) -> None:
        for each in sorted(self.edges)[:count]:
            self.edges.remove(each)
            self.connection.execute("DELETE FROM links WHERE i = ? AND j = ?", list(each))

    def refresh(self) -> tuple[str, int]:
        """Bring it up to date, compare it with a cold start; return the way and the steps."""
        (report,) = self.kept.refresh().tensors
        found = dict(self.connection.sql("SELECT * FROM kept").fetchall())
        cold = self.program.recompile().iterate(self.carry, self.until)
        with cold as result:
            expected = dict(result[self.after].shown(rows="nonfill").fetchall())
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, atol=1e-9, rtol=0)
        steps = int(report.reason.split("; ")[-1].split()[0]) if "steps" in report.reason else 0
        assert report.way != "warm start" or steps <= cold.steps, report
        return report.way, steps


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("connect", [ucle.connect, duckdb.connect])
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
def test_pagerank_is_always_warm(seed: int, connect: Any) -> None:
    loop = Loop("pagerank", seed, connect)
    assert loop.refresh() == ("unchanged", 0)
    for change in (loop.insert, loop.delete, loop.insert):
        change(2)
        assert loop.refresh()[0] == "warm start"


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["components", "paths", "reached"])
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
def test_insertions_alone(kind: str, seed: int) -> None:
    loop = Loop(kind, seed)
    for _ in range(3):
        loop.insert(3)
        assert loop.refresh()[0] == "warm start"
    loop.delete(2)
    assert loop.refresh()[0] == "from scratch"
    loop.insert(2)
    assert loop.refresh()[0] == "warm start"
    loop.delete(1)
    loop.insert(3)
    assert loop.refresh()[0] == "from scratch"


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["components", "paths"])
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
def test_new_nodes(kind: str) -> None:
    """Nodes that are new, with a start of their own where they need one."""
    loop = Loop(kind, 4)
    loop.insert(6, NODES + 4)
    if kind == "components":
        loop.connection.execute(
            f"INSERT INTO start SELECT i, i FROM range({NODES}, {NODES + 4}) r(i)"
        )
    assert loop.refresh()[0] == "warm start"
    loop.connection.execute("UPDATE start SET val = val + 1")
    assert loop.refresh()[0] == "from scratch"
    loop.insert(3)
    loop.connection.execute("INSERT INTO start VALUES (1000, 0)")
    loop.refresh()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
def test_other_loops_begin_again(seed: int) -> None:
    """Label propagation depends on where it begins."""
    loop = Loop("votes", seed)
    loop.insert(3)
    assert loop.refresh()[0] == "from scratch"


def _way(text: str, until: str, insert: str = "INSERT INTO links VALUES (3, 1, 0.1)") -> str:
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE links AS SELECT i, (i + 1) % 5 AS j, 0.5 AS val FROM range(5) r(i)"
        )
        connection.execute("CREATE TABLE start AS SELECT i, 0.1 * i AS val FROM range(5) r(i)")
        program = ucle.einsum_program(
            text, P="links", x="start", database=connection, outputs=["y"]
        )
        kept = program.maintain("kept", carry={"x": "y"}, until=until, max_steps=300)
        connection.execute(insert)
        (report,) = kept.refresh().tensors
        with program.recompile().iterate({"x": "y"}, until, max_steps=300) as found:
            expected = dict(found["y"].shown(rows="nonfill").fetchall())
        got = dict(connection.sql("FROM kept").fetchall())
        for key in expected.keys() | got.keys():
            assert abs(got.get(key, 0) - expected.get(key, 0)) < 1e-8
        return report.way


MOVED = "moved[] = sum[i](abs(y[i] - x[i]))"


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning", "ignore::ucle.NotConvergedWarning")
@pytest.mark.parametrize(
    ("text", "until", "warm"),
    [
        (f"y[i] = 0.1 + 0.9 * sum[j](P[j,i] * x[j]); {MOVED}", "moved[] < 1e-12", True),
        (f"y[i] = 0.1 - relu(0.9 * sum[j](P[j,i] * x[j])); {MOVED}", "moved[] < 1e-12", True),
        (f"y[i] = sum[j](P[j,i] * x[j]) / 2; {MOVED}", "moved[] <= 1e-12", True),
        # a factor that is no contraction, a condition about something else, and no condition
        (f"y[i] = min(1.9 * sum[j](P[j,i] * x[j]), 1); {MOVED}", "moved[] < 1e-12", False),
        (f"y[i] = 0.5 * sum[j](P[j,i] * x[j] * x[j]); {MOVED}", "moved[] < 1e-12", False),
        ("y[i] = 0.5 * sum[j](P[j,i] * x[j]); n[] = sum[i](y[i])", "n[] < 0.1", False),
    ],
)
def test_contractions_are_checked(text: str, until: str, warm: bool) -> None:
    assert (_way(text, until) == "warm start") == warm
    backwards = "; ".join(reversed(text.split("; ")))
    assert (_way(backwards, until) == "warm start") == warm


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning", "ignore::ucle.NotConvergedWarning")
@pytest.mark.parametrize(
    "text",
    [
        # falls with links, rises with links, returns
        "n[i] = min[j](x[j] - P[i,j]); y[i] = max(x[i], n[i])",
        "n[i] = max[j](x[j] - P[i,j]); y[i] = max(x[i], n[i])",
        "n[i] = max[j](P[i,j] * x[j]); y[i] = 0.5 * n[i]",
    ],
)
def test_what_moves_both_ways_begins_again(text: str) -> None:
    backwards = "; ".join(reversed(text.split("; ")))
    for each in (text, backwards):
        assert _way(f"{each}; m[] = sum[i](y[i] != x[i])", "m[] == 0") == "from scratch"


def test_arguments() -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE start AS SELECT 0 AS i, 1.0 AS val")
        program = ucle.einsum_program("y[i] = 0.5 * x[i]", x="start", database=connection)
        with pytest.raises(ArgumentError, match="ends the loop"):
            program.maintain("kept", carry={"x": "y"})
        with pytest.raises(ArgumentError, match="no loop"):
            program.maintain("kept", until="sum[i](y[i]) < 1")
        kept = program.maintain("kept", carry={"x": "y"}, max_steps=3)
        assert connection.sql("FROM kept").fetchall() == [(0, 0.125)]
        connection.execute("UPDATE start SET val = 2")
        (report,) = kept.refresh().tensors
        assert (report.way, report.rows) == ("from scratch", 1)
        assert connection.sql("FROM kept").fetchall() == [(0, 0.25)]
        with pytest.raises(UnsupportedError, match="loop"):
            kept.to_sql(inserted={"x": "new"})
