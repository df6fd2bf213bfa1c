"""Every public method on every kind of ``database=``: the same answers, or a typed error.

A kind is a way to say where a program runs: nothing, a path, a connection, and what is peculiar
about it. An operation gives something that can be compared: what it gives on a connection.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.errors import DatabaseError, InputError, ReadOnlyError, UcleError, UnsupportedError

MATRIX = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 4.0, 0.0]])
EDGES = (
    "CREATE TABLE {} AS FROM (VALUES (0, 1, 2.0), (1, 0, 1.0), (1, 2, 3.0), (2, 1, 4.0)) t(i, j, v)"
)
LINEAR = "y[i] = sum[j](A[i,j] * x[j]) / 4"
TRAINED = "z[i] = A[i,j] * x[j]\nloss[] += (z[i] - 1) ^ 2"


def make(path: Path) -> Path:
    """A file with a table."""
    with duckdb.connect(path) as connection:
        connection.execute(EDGES.format("edges"))
    return path


# ---- Kinds ----


@dataclass
class Kind:
    """A kind of database."""

    database: Any
    a: Any
    """The value of `A` in it: the name of a table, or an array."""
    rows: Callable[[str], list[Any]]
    """Looks at its tables afterwards."""

    @property
    def in_memory(self) -> bool:
        """True if nobody can look into the database."""
        return self.rows is nowhere

    @property
    def matrix(self) -> Any:
        """The input `A`."""
        return ucle.table(self.a, bounds=[3, 3]) if isinstance(self.a, str) else self.a

    @cached_property
    def linear(self) -> ucle.EinsumProgram:
        return self.compiled(LINEAR, x=np.ones(3))

    @cached_property
    def relational(self) -> ucle.EinsumProgram:
        return self.compiled("d[i] += A[i,j]", decomposition="relational")

    @cached_property
    def trained(self) -> ucle.EinsumProgram:
        return self.compiled(TRAINED, x=np.ones(3))

    def compiled(self, text: str, **options: Any) -> ucle.EinsumProgram:
        return ucle.einsum_program(text, A=self.matrix, database=self.database, **options)


def nowhere(_: str) -> list[Any]:
    raise AssertionError("there is no database to look into")


def in_file(path: Path) -> Callable[[str], list[Any]]:
    def rows(query: str) -> list[Any]:
        with duckdb.connect(
            path, read_only=True, config={"allow_unsigned_extensions": "true"}
        ) as c:
            return c.execute(query).fetchall()

    return rows


@contextlib.contextmanager
def no_database(_: Path) -> Iterator[Kind]:
    yield Kind(None, MATRIX, nowhere)


@contextlib.contextmanager
def memory(_: Path) -> Iterator[Kind]:
    yield Kind(":memory:", MATRIX, nowhere)


@contextlib.contextmanager
def existing_file(folder: Path) -> Iterator[Kind]:
    path = make(folder / "a.duckdb")
    yield Kind(str(path), "edges", in_file(path))


@contextlib.contextmanager
def path_object(folder: Path) -> Iterator[Kind]:
    path = make(folder / "a path.duckdb")
    yield Kind(path, "edges", in_file(path))


@contextlib.contextmanager
def empty_file(folder: Path) -> Iterator[Kind]:
    path = folder / "empty.duckdb"
    duckdb.connect(path).close()
    yield Kind(str(path), MATRIX, in_file(path))


@contextlib.contextmanager
def connection(_: Path) -> Iterator[Kind]:
    with ucle.connect() as opened:
        opened.execute(EDGES.format("edges"))
        yield Kind(opened, "edges", lambda query: opened.execute(query).fetchall())


@contextlib.contextmanager
def connection_to_file(folder: Path) -> Iterator[Kind]:
    with ucle.connect(make(folder / "b.duckdb")) as opened:
        yield Kind(opened, "edges", lambda query: opened.execute(query).fetchall())


@contextlib.contextmanager
def plain_connection(_: Path) -> Iterator[Kind]:
    with duckdb.connect() as opened:
        opened.execute(EDGES.format("edges"))
        yield Kind(opened, "edges", lambda query: opened.execute(query).fetchall())


@contextlib.contextmanager
def in_transaction(_: Path) -> Iterator[Kind]:
    with ucle.connect() as opened:
        opened.execute(EDGES.format("edges"))
        opened.execute("BEGIN")
        yield Kind(opened, "edges", lambda query: opened.execute(query).fetchall())
        opened.execute("COMMIT")  # none of it has aborted the transaction


@contextlib.contextmanager
def attached_file(folder: Path) -> Iterator[Kind]:
    with ucle.connect() as opened:
        opened.execute(f"ATTACH '{make(folder / 'c.duckdb')}' AS other")
        yield Kind(opened, "other.edges", lambda query: opened.execute(query).fetchall())


@contextlib.contextmanager
def attached_for_reading(folder: Path) -> Iterator[Kind]:
    with ucle.connect() as opened:
        opened.execute(f"ATTACH '{make(folder / 'd.duckdb')}' AS other (READ_ONLY)")
        yield Kind(opened, "other.edges", lambda query: opened.execute(query).fetchall())


@contextlib.contextmanager
def open_elsewhere(folder: Path) -> Iterator[Kind]:
    """The path of a file that the process has open."""
    path = make(folder / "e.duckdb")
    with ucle.connect(path) as opened:
        yield Kind(str(path), "edges", lambda query: opened.execute(query).fetchall())


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[Kind]:
    path = make(folder / "f.duckdb")
    with ucle.connect(path, read_only=True) as opened:
        yield Kind(opened, "edges", lambda query: opened.execute(query).fetchall())


@contextlib.contextmanager
def read_only_file(folder: Path) -> Iterator[Kind]:
    path = make(folder / "g.duckdb")
    path.chmod(0o444)
    with pytest.MonkeyPatch.context() as patched:  # to the administrator everything is writable
        allowed = os.access
        patched.setattr(
            os, "access", lambda p, mode, **more: mode != os.W_OK and allowed(p, mode, **more)
        )
        yield Kind(str(path), "edges", in_file(path))


KINDS = (
    no_database,
    memory,
    existing_file,
    path_object,
    empty_file,
    connection,
    connection_to_file,
    plain_connection,
    in_transaction,
    attached_file,
    attached_for_reading,
    open_elsewhere,
    read_only,
    read_only_file,
)
NOWHERE = (no_database, memory)
FOR_READING = (read_only, read_only_file)


# ---- Operations ----


def dense(values: Any) -> Any:
    return np.asarray(values).round(9).tolist()


def execute(kind: Kind) -> Any:
    with kind.linear.execute() as result:
        return dense(result["y"].to_numpy())


def execute_there(kind: Kind) -> Any:
    with kind.linear.execute(kind.database) as result:
        return dense(result["y"].to_numpy())


def relation(kind: Kind) -> Any:
    with kind.linear.execute() as result:
        return sorted(result["y"].relation.fetchall())


def relation_of_no_array(kind: Kind) -> Any:
    with kind.linear.execute() as result:
        return [sorted(result["y"].to_arrow().to_pylist(), key=str), result["y"].shape]


def to_sql(kind: Kind) -> Any:
    return "SELECT" in kind.relational.to_sql()


def other_sql(kind: Kind) -> Any:
    return "SELECT" in kind.relational.to_sql(dialect="postgres")


def explain(kind: Kind) -> Any:
    return bool(kind.linear.explain())


def analyze(kind: Kind) -> Any:
    return bool(kind.linear.explain(analyze=True))


def prepare(kind: Kind) -> Any:
    with kind.linear.prepare(carry={"x": "y"}) as run:
        run()
        return dense(run()["y"].to_numpy())


def swap(kind: Kind) -> Any:
    with kind.linear.prepare(swap=["x"]) as run:
        run()
        return dense(run(x=np.arange(3.0))["y"].to_numpy())


def iterate(kind: Kind) -> Any:
    with kind.linear.iterate({"x": "y"}, max_steps=4) as result:
        return dense(result["y"].to_numpy())


def iterate_until(kind: Kind) -> Any:
    with kind.linear.iterate({"x": "y"}, until="max[i](y[i]) < 1", max_steps=50) as result:
        return [dense(result["y"].to_numpy()), result.steps]


def checkpoint(kind: Kind) -> Any:
    kept = {"x": "ck", "y": "ck_y"}
    with kind.linear.iterate({"x": "y"}, max_steps=5, checkpoint=kept, every=2) as result:
        values = dense(result["y"].to_numpy())
        if kind.in_memory:
            return [values, [tuple(x) for x in enumerate(values)]]
    return [values, sorted(kind.rows("SELECT * FROM ck_y"))]


def checkpoint_in_memory(kind: Kind) -> Any:
    """Iterate with checkpoints, by a program that reads nothing of the database."""
    program = ucle.einsum_program("y[i] = x[i] + 1.0", x=np.zeros(3), database=kind.database)
    with program.iterate({"x": "y"}, max_steps=4, checkpoint={"x": "ck_x"}, every=1) as result:
        values = dense(result["y"].to_numpy())
        if kind.in_memory:
            return [values, [(0, 4.0), (1, 4.0), (2, 4.0)]]
    return [values, sorted(kind.rows("SELECT * FROM ck_x"))]


def lazy_checkpoint(kind: Kind) -> Any:
    found = ucle.iterate(
        lambda a: {"a": a + 1},
        {"a": np.zeros(2)},
        max_steps=3,
        checkpoint={"a": "so_far"},
        database=kind.database,
    )
    values = dense(found.a if hasattr(found, "a") else 3)
    kept = [] if kind.in_memory else kind.rows("SELECT count(*) > 0 FROM so_far")
    return [found.steps, bool(kept or kind.in_memory), values is not None]


def gradient(kind: Kind) -> Any:
    with kind.trained.gradient("loss", ["x"]).execute() as result:
        return sorted(dense(tensor.to_numpy()) for name, tensor in result.items() if name != "loss")


def minimize(kind: Kind) -> Any:
    step = kind.trained.minimize("loss", ["x"], ucle.optim.sgd(0.01))
    kept = {"x": "best"}
    with step.iterate(max_steps=3, checkpoint=kept) as result:
        losses = dense(result.history["loss"])
    return [losses, kind.in_memory or len(kind.rows("SELECT * FROM best")) == 3]


def to_table(kind: Kind) -> Any:
    with kind.linear.execute() as result:
        for mode in ("error", "replace", "upsert"):
            result["y"].to_table("written", mode=mode)
        if kind.in_memory:
            return sorted(result["y"].relation.fetchall())
    return sorted(kind.rows("SELECT * FROM written"))


def create_views(kind: Kind) -> Any:
    kind.relational.create_views()
    return sorted(kind.rows("SELECT * FROM d"))


def macro_sql(kind: Kind) -> Any:
    return "MACRO" in kind.relational.macro_sql()


def store(kind: Kind) -> Any:
    if not isinstance(kind.a, str):
        raise UnsupportedError("there is nothing to store")
    with kind.compiled(LINEAR, x=np.ones(3), store=["A"]).execute() as result:
        return dense(result["y"].to_numpy())


def recompile(kind: Kind) -> Any:
    with kind.linear.recompile().execute() as result:
        return dense(result["y"].to_numpy())


def drift(kind: Kind) -> Any:
    return len(kind.linear.drift())


def plans(kind: Kind) -> Any:
    return len(kind.linear.plans(2)) > 0


def other_data(kind: Kind) -> Any:
    with kind.linear.execute(x=np.arange(3.0)) as result:
        return dense(result["y"].to_numpy())


def save(kind: Kind) -> Any:
    with kind.linear.execute() as result:
        folder = Path(os.environ["PYTEST_FOLDER"])
        path = str(folder / f"y{id(kind)}.parquet")
        result["y"].save(path)
        return sorted(duckdb.read_parquet(path).fetchall())


def lazy(kind: Kind) -> Any:
    return dense((ucle.asarray(kind.matrix) @ np.ones(3)).to_numpy(kind.database))


def lazy_table(kind: Kind) -> Any:
    product = ucle.asarray(kind.matrix) @ np.ones(3)
    product.to_table("lazily", database=kind.database)
    return kind.in_memory or len(kind.rows("SELECT * FROM lazily")) == 3


OPERATIONS = (
    execute, execute_there, relation, relation_of_no_array, to_sql, other_sql, explain, analyze,
    prepare, swap, iterate, iterate_until, checkpoint, checkpoint_in_memory, lazy_checkpoint,
    gradient, minimize, to_table, create_views, macro_sql, store, recompile, drift, plans,
    other_data, save, lazy, lazy_table,
)  # fmt: skip

WRITE = (checkpoint, checkpoint_in_memory, lazy_checkpoint, minimize, to_table, create_views, store)
WRITE += (lazy_table,)


def outcome(operation: Callable[[Kind], Any], kind: Kind) -> Any:
    """The result of an operation, or the typed error that it ends with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return operation(kind)
        except UcleError as error:
            return error


@cache
def answers() -> dict[str, Any]:
    """The answers to all operations, in a database opened with `ucle.connect`."""
    with connection(Path()) as kind:
        found = {operation.__name__: outcome(operation, kind) for operation in OPERATIONS}
    errors = {name: x for name, x in found.items() if isinstance(x, UcleError)}
    assert not errors
    return found


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("part", range(7))
def test_each_method_on_each_kind(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_FOLDER", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    wrong = []
    for make_kind in KINDS[part::7]:
        with make_kind(tmp_path) as kind:
            for operation in OPERATIONS:
                try:
                    found = outcome(operation, kind)
                except Exception as error:  # what is wrong is listed with its place
                    found = f"not typed: {error!r}"
                answer = answers()[operation.__name__]
                good = found == answer
                if isinstance(found, UcleError):
                    good = refuses(make_kind, operation, found)
                if not good:
                    place = f"{make_kind.__name__}, {operation.__name__}"
                    wrong.append(f"{place}: {found!r} for {answer!r}")
    assert not wrong, "\n".join(wrong)


def refuses(make_kind: Any, operation: Any, error: UcleError) -> bool:
    """True if the operation is refused with good reason."""
    if operation is store and make_kind in (*FOR_READING, in_transaction, attached_for_reading):
        return isinstance(error, InputError)
    if make_kind in FOR_READING:
        return operation in WRITE and isinstance(error, ReadOnlyError)
    if make_kind in (*NOWHERE, empty_file):
        return operation in (create_views, macro_sql, store) and isinstance(error, UnsupportedError)
    return False


def test_a_path_where_nothing_is(tmp_path: Path) -> None:
    path = tmp_path / "new.duckdb"
    for operation in (execute, iterate, to_table, lazy):
        found = outcome(operation, Kind(str(path), MATRIX, nowhere))
        assert isinstance(found, DatabaseError), (operation.__name__, found)
        assert "ucle.connect" in found.hint
        assert not path.exists()
