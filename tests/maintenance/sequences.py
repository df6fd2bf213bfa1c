"""Random sequences of changes: after each of them, a maintained program equals a full run.

A sequence has a program, tables of random numbers, and some refreshes. Between two of them rows are
inserted, updated and deleted in one or several tables, or nothing happens; coordinates are new, or
vanish. Changes are told in one of several forms, found by comparison, or appended. Numbers are such
that all results are exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

import ucle
from ucle.errors import UcleError, UnsupportedError, ValueTypeError
from ucle.maintenance.candidates import WAYS
from ucle.testing.generate import exact_case

Key = tuple[Any, ...]
Rows = dict[Key, Any]
Connect = Callable[[], duckdb.DuckDBPyConnection]

PROGRAMS = (
    "T[i,k] += A[i,j] * H[j,k]; Z[i,k] = relu(T[i,k] - 1)",
    "C[i,k] += A[i,j] * B[j,k]",
    "S[i,j] = A[i,j] * sum[k](H[i,k] * H[j,k])",
    "N[i] min= F[j,i] + x[j]; M[i] max= A[i,j]; E[i] max= A[i,j] * x[j]",
    "m[i] min= A[i,j]; n[] = max[i](m[i]); r[i] = m[i] - n[]",
    "a[i] any= A[i,j] > 2; b[j] all= A[i,j] < 3; c[i] any= A[i,j] * B[i,j]",
    "t[] += A[i,j] * A[j,k] * A[i,k]; c[i] += A[i,j] * A[j,k] * A[i,k]",
    "U[i,j] = max(A[i,j], B[i,j]); V[i] += U[i,j]",
    "R[i,j] = x[i] + y[j]; s[i] += R[i,j]",
    "n[i] count= A[i,j] > 2; w[] += n[i] * x[i]",
    "s[i,j] = cumsum[j](A[i,j])",
    "s[i,r] = top_k[j,r](A[i,j])",
    "d[i] = A[i,i] * x[i]",
    "s[i] = x[i] - x[~(i-1)]",
    "g[i,k] = H[p[i],k]",
    "u[i] += A[i,j] * x[j]; v[j] += B[j,i] * u[i]; w[] = sum[j](v[j])",
    "D[i] += A[i,j]; P[i,j] = where(D[i] > 4, A[i,j], 2 * A[i,j]); Q[j] max= P[i,j]",
)
RANKS = {"A": 2, "B": 2, "F": 2, "H": 2, "x": 1, "y": 1, "p": 1}
POSITIONS = re.compile(r"p\[|~|cumsum|top_k|\d\]|[ijk] ?[-+*<>=]")
"""Matches programs that compute with coordinates, which are then no words."""


@dataclass
class Table:
    """A table of a program, and its rows as they should be."""

    name: str
    rank: int
    size: int
    integers: bool
    words: bool = False
    rows: Rows = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        """The columns of its keys."""
        return [f"k{n}" for n in range(self.rank)]


class Sequence:
    """A program over tables that change, from a seed."""

    def __init__(self, seed: int, connection: duckdb.DuckDBPyConnection) -> None:
        self.rng = np.random.default_rng([seed, 20])
        self.connection = connection
        bounds, text = dict[str, int](), PROGRAMS[seed % len(PROGRAMS)]
        ranks, inputs = RANKS, dict[str, Any]()
        self.case = seed % 3 == 2
        if self.case:
            text, ranks, bounds = _random_program(seed)
        elif "top_k" in text:
            bounds = {"r": 2}
        if seed % 5 == 4 and not self.case:
            text = "; ".join(reversed(text.split("; ")))  # statements go in any order
        words = seed % 4 == 1 and not self.case and not POSITIONS.search(text)
        self.tables = {
            name: Table(
                name,
                rank,
                int(self.rng.integers(3, 8)),
                (bool(self.rng.integers(2)) and name != "F") or name == "p",
                words=words,
            )
            for name, rank in ranks.items()
            if self.case or re.search(rf"\b{name}\[", text)
        }
        for each in self.tables.values():
            self._create(each)
            inputs[each.name] = self._input(each)
        self.text = text
        self.program = ucle.einsum_program(
            text, inputs=inputs, database=connection, bounds=bounds, nonfinite="exact"
        )
        self.append_only = [x for x in self.tables if self.rng.random() < 0.25]
        self.kept = self.program.maintain("kept", connection, append_only=self.append_only)
        self.log: list[object] = [text, f"append_only={self.append_only}"]

    def _create(self, table: Table) -> None:
        kind = "VARCHAR" if table.words else "BIGINT"
        keys = "".join(f"{key} {kind}, " for key in table.keys)
        value = "BIGINT" if table.integers else "DOUBLE"
        self.connection.execute(f"CREATE TABLE {table.name} ({keys}val {value})")
        for _ in range(2 + 2 * table.size):
            table.rows[self._key(table)] = self._value(table)
        self._insert(table, table.rows)

    def _input(self, table: Table) -> Any:
        if table.name == "F":
            return ucle.table("F", fill=ucle.inf)
        if table.name == "H" and "p" in self.tables:
            return ucle.table("H", bounds=[9, 12])
        return table.name

    # ---- Changes ----

    def _key(self, table: Table) -> Key:
        key = tuple(int(x) for x in self.rng.integers(0, max(table.size, 1), table.rank))
        return tuple(f"n{x}" for x in key) if table.words else key

    def _value(self, table: Table) -> int | float:
        if table.name == "p":
            return int(self.rng.integers(0, 6))
        return int(self.rng.integers(-3, 6)) if table.integers else self.rng.integers(-6, 12) / 2

    def _changes(self, table: Table) -> tuple[Rows, Rows]:
        """The rows to be deleted from a table and inserted into it; an update is both."""
        rng, deleted, inserted = self.rng, Rows(), Rows()
        kinds = [0, 1, 5] if table.name in self.append_only else range(8)
        match int(rng.choice(kinds)):
            case 0:  # nothing
                return deleted, inserted
            case 1:  # new rows
                keys = {self._key(table) for _ in range(rng.integers(1, 4))}
                inserted = {x: self._value(table) for x in keys if x not in table.rows}
            case 2:  # other values
                keys = self._some(table)
                deleted = {x: table.rows[x] for x in keys}
                inserted = {x: self._value(table) for x in keys}
            case 3:
                deleted = {x: table.rows[x] for x in self._some(table)}
            case 4:  # coordinates vanish
                if table.rows and table.rank:
                    last = max(x[-1] for x in table.rows)
                    deleted = {x: y for x, y in table.rows.items() if x[-1] == last}
            case 5:  # coordinates are new
                if table.name != "p":
                    table.size += int(rng.integers(1, 3))
                key = self._key(table)
                if key not in table.rows:
                    inserted = {key: self._value(table)}
            case 6:  # what cancels
                keys = self._some(table)
                deleted = {x: table.rows[x] for x in keys}
                inserted = dict(deleted)
            case 7:  # all of these
                keys = self._some(table)
                deleted = {x: table.rows[x] for x in keys}
                inserted = {x: self._value(table) for x in keys[:1]}
                new = self._key(table)
                if new not in table.rows:
                    inserted[new] = self._value(table)
        if len(table.rows) + len(inserted) - len(deleted) < 2:
            return Rows(), Rows()
        return deleted, inserted

    def _some(self, table: Table) -> list[Key]:
        keys = list(table.rows)
        count = min(len(keys), int(self.rng.integers(1, 4)))
        return [keys[n] for n in self.rng.choice(len(keys), count, replace=False)]

    def _insert(self, table: Table, rows: Rows) -> None:
        marks = ", ".join("?" for _ in range(table.rank + 1))
        for key, value in rows.items():
            self.connection.execute(f"INSERT INTO {table.name} VALUES ({marks})", [*key, value])

    def _delete(self, table: Table, rows: Rows) -> None:
        where = " AND ".join(f"{key} = ?" for key in table.keys) or "true"
        for key in rows:
            self.connection.execute(f"DELETE FROM {table.name} WHERE {where}", list(key))

    def _told(self, table: Table, rows: Rows, number: int, *, values: bool) -> Any:
        """Rows in one of the forms in which they are told."""
        key = pa.string() if table.words else pa.int64()
        value = pa.int64() if table.integers else pa.float64()
        columns = {
            name: pa.array([row[n] for row in rows], key) for n, name in enumerate(table.keys)
        }
        if values or not table.rank:
            columns["val"] = pa.array(list(rows.values()), value)
        names = list(columns)
        self.rng.shuffle(names)  # columns go by their names
        arrow = pa.table({x: columns[x] for x in names})
        match int(self.rng.integers(4)):
            case 0:
                return arrow
            case 1:
                frame: pd.DataFrame = arrow.to_pandas()
                return frame
            case 2:
                return self.connection.from_arrow(arrow)
        name = f"told_{number}"
        self.connection.register("an arrow table", arrow)
        self.connection.execute(f'CREATE OR REPLACE TEMP TABLE {name} AS FROM "an arrow table"')
        self.connection.unregister("an arrow table")
        return name

    def change(self) -> dict[str, Any]:
        """Change some tables; return the arguments of the refresh that follows."""
        names = list(self.rng.permutation(list(self.tables)))[: self.rng.integers(1, 3)]
        applied = bool(self.rng.integers(2))
        told: dict[str, dict[str, Any]] = {"inserted": {}, "deleted": {}}
        for number, name in enumerate(names):
            table = self.tables[name]
            deleted, inserted = self._changes(table)
            telling = bool(self.rng.integers(2))
            self.log.append((name, deleted, inserted, f"told, applied={applied}" * telling))
            if telling:
                values = bool(self.rng.integers(2))
                if deleted or self.rng.integers(2):
                    told["deleted"][name] = self._told(table, deleted, number, values=values)
                told["inserted"][name] = self._told(table, inserted, number + 10, values=True)
            if not telling or applied:
                self._delete(table, deleted)
                self._insert(table, inserted)
            for key in deleted:
                del table.rows[key]
            table.rows |= inserted
        if told["inserted"]:
            told["applied"] = applied  # type: ignore[assignment]
            return told
        return {}

    # ---- Checks ----

    def refresh(self, arguments: dict[str, Any]) -> object:
        """Refresh in one of the ways, and compare with a full run."""
        way = WAYS[int(self.rng.integers(len(WAYS)))]
        self.log.append(way)
        report = self.kept.refresh(way=way, **arguments)
        self.log.append(str(report))
        for table in self.tables.values():
            assert _rows(self.connection.table(table.name), table.keys) == table.rows
        return report

    def check(self) -> None:
        """Compare the kept outputs with those of a full run."""
        with self.program.recompile().execute() as result:
            for name, table in self.kept.outputs.items():
                tensor = result[name]
                rows = "nonfill" if tensor.type.rank else "all"
                relation = tensor.shown(rows=rows)
                keys = relation.columns[:-1]
                expected = _rows(relation, keys)
                found = _rows(self.connection.table(table), keys)
                assert found.keys() == expected.keys(), name
                for key, value in expected.items():
                    if found[key] != value:  # 0 and -0 are the same number
                        np.testing.assert_equal(found[key], value, err_msg=f"{name} {key}")


def run_sequence(
    seed: int, connect: Callable[[], duckdb.DuckDBPyConnection], steps: int = 4
) -> int:
    """Run the sequence of a seed; return the number of refreshes that it had.

    Where the data of a step has no answer, neither a refresh nor a full run has one, and what is
    kept stays.
    """
    with connect() as connection:
        try:
            sequence = Sequence(seed, connection)
        except (UnsupportedError, ValueTypeError):  # a random program over other types
            return 0
        try:
            return sum(1 for _ in _steps(sequence, steps))
        except Exception as error:
            log = "\n  ".join(map(str, sequence.log))
            raise AssertionError(f"sequence {seed}\n  {log}") from error


def _steps(sequence: Sequence, steps: int) -> Iterator[None]:
    connection, outputs = sequence.connection, list(sequence.kept.outputs.values())
    sequence.check()
    for _ in range(steps):
        arguments = sequence.change()
        before = {x: connection.table(x).fetchall() for x in outputs}
        refused = _refusal(lambda: sequence.refresh(arguments))  # noqa: B023
        if refused is None:
            sequence.check()
            yield
            continue
        sequence.log.append(refused)
        assert before == {x: connection.table(x).fetchall() for x in outputs}
        if arguments and not arguments["applied"]:  # the change was not made
            return
        other = _refusal(lambda: sequence.program.recompile().execute().close())
        assert type(other) is type(refused), other
        return


def _refusal(run: Callable[[], object]) -> UcleError | None:
    """The error that a function raises, if any."""
    try:
        run()
    except UcleError as error:
        return error
    return None


def _rows(relation: Any, keys: list[str]) -> Rows:
    return {tuple(row[:-1]): row[-1] for row in relation.select(*keys, "val").fetchall()}


def _random_program(seed: int) -> tuple[str, dict[str, int], dict[str, int]]:
    """The text of a random program, with the ranks of its inputs, and bounds of labels."""
    for attempt in range(100):
        case = exact_case(seed * 100 + attempt, size=5)
        kinds = {x.dtype.kind for x in case.arrays.values()}
        if kinds <= {"i", "f"} and case.arrays and not case.indexed and "complex" not in case.text:
            return case.text, {x: y.ndim for x, y in case.arrays.items()}, {}
    raise AssertionError(f"no program for seed {seed}")
