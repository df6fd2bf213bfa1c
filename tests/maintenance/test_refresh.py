"""Maintained programs equal a full run after each refresh, whatever changed."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.maintenance.candidates import WAYS
from ucle.maintenance.maintained import maintain

PROGRAMS = {
    "aggregation": "T[i,k] += A[i,j] * H[j,k]; Z[i,k] = relu(T[i,k] - 1)",
    "product of two graphs": "C[i,k] += A[i,j] * B[j,k]",
    "masked": "S[i,j] = A[i,j] * sum[k](H[i,k] * H[j,k])",
    "attention": "E[i,j] = when(A[i,j] > 0, exp(A[i,j])); D[i] += E[i,j]; P[i,j] = E[i,j] / D[i]; "
    "O[i,k] += P[i,j] * H[j,k]",
    "paths": "N[i] min= F[j,i] + x[j]",
    "triangles": "t[] += A[i,j] * A[j,k] * A[i,k]; c[i] += A[i,j] * A[j,k] * A[i,k]",
    "union": "U[i,j] = max(A[i,j], B[i,j])",
    "outer": "R[i,j] = x[i] + y[j]",
    "one more": "R[i] = x[i] + 1",
    "means": "m[i] mean= A[i,j]",
    "counts": "n[i] count= A[i,j] > 2",
    "scan": "s[i,j] = cumsum[j](A[i,j])",
    "top": "s[i,r] = top_k[j,r](A[i,j])",
    "diagonal": "d[i] = A[i,i] * x[i]",
    "shifted": "s[i] = x[i] - x[~(i-1)]",
    "gathered": "g[i,k] = H[p[i],k]",
    "any": "r[i] any= A[i,j] > 3",
    "two levels": "u[i] += A[i,j] * x[j]; v[j] += B[j,i] * u[i]; w[] = sum[j](v[j])",
    "softmax": "s[i,j] = softmax[j](A[i,j])",
    "powers": "a[i,j] = A[i,j] ^ 2 / (1 + B[i,j] ^ 2)",
}
SHAPES = {"A": 2, "B": 2, "F": 2, "H": 2, "x": 1, "y": 1, "p": 1}


class Data:
    """Tables of integers that change at random, and the programs over them."""

    def __init__(self, text: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.connection = ucle.connect()
        self.size = 6
        self.names = [x for x in SHAPES if re.search(rf"\b{x}\[", text)]
        self.words = seed % 3 == 2 and not any(x in text for x in ("p[", "~", "cumsum", "top_k"))
        for name in self.names:
            kinds = ["VARCHAR" if self.words else "BIGINT"] * SHAPES[name]
            if name == "H":
                kinds[1] = "BIGINT"
            keys = ", ".join(f"k{n} {kind}" for n, kind in enumerate(kinds))
            value = "BIGINT" if (seed % 2 or name == "p") and name != "F" else "DOUBLE"
            self.connection.execute(f"CREATE TABLE {name} ({keys}, val {value})")
        for _ in range(12):
            for name in self.names:
                self.insert(name)
        inputs = {
            name: ucle.table(name, fill=ucle.inf) if name == "F" else name for name in self.names
        }
        if "p" in self.names:
            inputs["H"] = ucle.table("H", bounds=[9, 9])
        bounds = {"r": 2} if "top_k" in text else {}
        self.program = ucle.einsum_program(
            text, inputs=inputs, database=self.connection, bounds=bounds
        )

    def key(self, name: str, new: bool) -> list[Any]:
        top = self.size + (3 if new else 0)
        keys = [int(x) for x in self.rng.integers(0, top, SHAPES[name])]
        return [x if not self.words or (name == "H" and n) else f"n{x}" for n, x in enumerate(keys)]

    def insert(self, name: str, *, new: bool = False) -> None:
        keys = self.key(name, new)
        where = " AND ".join(f"k{n} = ?" for n in range(len(keys)))
        self.connection.execute(f"DELETE FROM {name} WHERE {where}", keys)
        value = int(self.rng.integers(0 if name == "p" else -2, 6))
        marks = ", ".join("?" for _ in (*keys, value))
        self.connection.execute(f"INSERT INTO {name} VALUES ({marks})", [*keys, value])

    def append(self, name: str) -> None:
        """Insert a row at coordinates that have none, beyond the present ones at times."""
        keys = self.key(name, new=name != "p" and "p" not in self.names)
        value = int(self.rng.integers(0 if name == "p" else -2, 6))
        where = " AND ".join(f"k{n} = ?" for n in range(len(keys)))
        if not self.connection.execute(f"FROM {name} WHERE {where}", keys).fetchall():
            marks = ", ".join("?" for _ in (*keys, value))
            self.connection.execute(f"INSERT INTO {name} VALUES ({marks})", [*keys, value])

    def change(self) -> None:
        for name in self.rng.choice(self.names, self.rng.integers(1, 3)):
            match self.rng.integers(0, 6):
                case 0:
                    pass
                case 1 | 2:
                    self.insert(name)
                case 3:
                    self.insert(name, new=name != "p" and "p" not in self.names)
                case 4:
                    self.connection.execute(
                        f"UPDATE {name} SET val = val + 1 WHERE k0 = k0 AND random() < 0.2"
                    )
                case 5:
                    self.connection.execute(
                        f"DELETE FROM {name} WHERE rowid IN (SELECT rowid FROM {name} LIMIT 1) "
                        f"AND (SELECT count(*) FROM {name}) > 3"
                    )


def rows(connection: duckdb.DuckDBPyConnection, relation: Any) -> dict[tuple[Any, ...], Any]:
    return {tuple(row[:-1]): row[-1] for row in relation.fetchall()}


def check(data: Data, outputs: dict[str, str], report: object) -> None:
    result = data.program.recompile().execute()
    for name, table in outputs.items():
        tensor = result[name]
        expected = rows(
            data.connection, tensor.shown(rows="nonfill" if tensor.type.rank else "all")
        )
        found = rows(data.connection, data.connection.table(table))
        assert found.keys() == expected.keys(), f"{name}\n{report}"
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, rtol=1e-12, err_msg=f"{key} {report}")


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", PROGRAMS)
def test_refresh_equals_a_full_run(name: str, seed: int) -> None:
    data = Data(PROGRAMS[name], seed)
    kept = maintain(data.program._build, "kept", data.connection)
    outputs = dict(kept.outputs)
    check(data, outputs, "at first")
    for _ in range(4):
        data.change()
        report = kept.refresh(way=("auto", "affected keys", "differences")[seed % 3])
        check(data, outputs, report)


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PROGRAMS)
def test_tables_that_only_grow(name: str, seed: int) -> None:
    data = Data(PROGRAMS[name], seed)
    kept = maintain(data.program._build, "kept", data.connection, append_only=data.names)
    for _ in range(4):
        for each in data.names:
            data.append(each)
        report = kept.refresh(way=("auto", "affected keys", "differences")[seed])
        check(data, dict(kept.outputs), report)


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", WAYS)
def test_quotients_of_tables_that_only_grow(way: str) -> None:
    """Whether each row has an entry decides what a quotient is elsewhere, and which rows it has."""
    with ucle.connect() as connection:
        tables(connection, A={(i, j): 1 + i + j for i in range(4) for j in range(3) if i != j})
        data = Data.__new__(Data)
        data.connection = connection
        data.program = ucle.einsum_program(
            "D[i] += A[i,j]; P[i,j] = A[i,j] / D[i]", A="A", database=connection
        )
        kept = maintain(data.program._build, "kept", connection, append_only=["A"])
        for row in ("(1, 1, 2)", "(5, 5, 2)", "(4, 4, 1)"):
            connection.execute(f"INSERT INTO A VALUES {row}")
            check(data, dict(kept.outputs), kept.refresh(way=way))


def tables(connection: duckdb.DuckDBPyConnection, **entries: dict[tuple[int, ...], float]) -> None:
    """Create tables of a few entries."""
    for name, own in entries.items():
        keys = [f"k{n} BIGINT" for n in range(len(next(iter(own))))]
        connection.execute(f"CREATE TABLE {name} ({', '.join(keys)}, val DOUBLE)")
        for key, value in own.items():
            connection.execute(f"INSERT INTO {name} VALUES ({', '.join(map(str, (*key, value)))})")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("text", "entries", "changes"),
    [
        (  # both factors of a term vanish at once
            PROGRAMS["product of two graphs"],
            {"A": {(0, 1): 2, (3, 3): 1, (1, 2): 4}, "B": {(1, 0): 5, (3, 2): 1, (2, 1): 1}},
            ["DELETE FROM A WHERE k0 = 0; DELETE FROM B WHERE k0 = 1"],
        ),
        (  # a new column has entries wherever x has
            "T[i,j] = B[i,j] + x[i]",
            {"B": {(0, 1): 2, (3, 3): 1}, "x": {(0,): 1, (3,): 2, (1,): 5}},
            ["INSERT INTO B VALUES (0, 7, 1)"],
        ),
        (  # a row of which nothing is left is 0 / 0
            PROGRAMS["attention"],
            {
                "A": {(i, j): 1 + i + j for i in range(4) for j in range(3)},
                "H": {(j, k): j - k for j in range(3) for k in range(2)},
            },
            ["DELETE FROM A WHERE k0 = 2", "INSERT INTO A VALUES (2, 1, 3)"],
        ),
    ],
)
def test_what_is_easily_forgotten(text: str, entries: Any, changes: list[str]) -> None:
    with ucle.connect() as connection:
        tables(connection, **entries)
        inputs = {name: name for name in entries}
        data = Data.__new__(Data)
        data.connection = connection
        data.program = ucle.einsum_program(text, inputs=inputs, database=connection)
        kept = maintain(data.program._build, "kept", connection)
        for change in changes:
            connection.execute(change)
            check(data, dict(kept.outputs), kept.refresh(way="affected keys"))


@pytest.mark.sample(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("T[col] all= U[col]; U[row] = A[row] - 1", {"A": {(0,): 1, (1,): 3, (4,): 2}}),
        ("T[i] = U[i] + 1; U[i] = A[i] * A[i]", {"A": {(0,): 1, (1,): 3, (4,): 2}}),
        (
            "w[] = sum[a](v[a]); v[b] += A[b,c] * u[c]; u[i] += A[i,j]",
            {"A": {(0, 1): 2, (3, 3): 1, (1, 2): 4, (2, 3): 5}},
        ),
    ],
)
def test_statements_before_those_they_read(text: str, entries: Any, way: str) -> None:
    with ucle.connect() as connection:
        tables(connection, **entries)
        data = Data.__new__(Data)
        data.connection = connection
        data.program = ucle.einsum_program(text, A="A", database=connection)
        kept = maintain(data.program._build, "kept", connection)
        connection.execute("UPDATE A SET val = 1 WHERE k0 = 1")
        check(data, dict(kept.outputs), kept.refresh(way=way))
        connection.execute("DELETE FROM A WHERE k0 = 0")
        check(data, dict(kept.outputs), kept.refresh(way=way))
