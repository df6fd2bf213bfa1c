"""Wrong arguments in Python: every public function refuses them with an error of ucle.

A kind is a list of values that an argument of that kind cannot have; each call of the table stands
with its arguments and their kinds. `MEANT` lists what looks wrong and has a meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from leftovers import temporary_objects

import ucle
from ucle.errors import ExecutionError, UcleError

A, X = np.ones((2, 3)), np.ones(3)
PRODUCT = "y[i] += A[i,j] * x[j]"
LONG, NUL = "n" * 300, "a\0b"


class Odd:
    """An object that is nothing that ucle knows."""

    def __repr__(self) -> str:
        return "odd"


NO_TEXT = (None, 5, b"x", ["x"], Odd())
TEXT = (*NO_TEXT[1:], {"x": 1})
FLAG = ("false", "no", 2, 0.5, [], Odd())
COUNT = ("3", 2.5, -1, True, b"3", [3], Odd())
CHOICE = ("zz", "", 5, b"auto", ["auto"], {"a": 1}, NUL)
NAMES = (5, [5], [None], b"x", [b"x"], ["zz"], Odd())
SIZES = (5, "i", ["i"], {5: 3}, {"j": "3"}, {"zz": 3}, Odd())
DATABASE = (5, b"x", ["x"], Odd(), NUL, LONG, "missing.duckdb", ".")
PATH = (None, 5, b"x.csv", ["x.csv"], Odd(), NUL + ".csv", LONG + ".csv", "", "x.zz", "no/x.csv")
TABLE_NAME = (*NO_TEXT, "", "a.b.c.d", ".x")
AXIS = (5, "zz", 0.5, b"i", Odd(), {"i": 1})
DATA = (None, Odd(), "", "a.b.c.d", NUL, b"x", [[1], [2, 3]], ["a"], "missing", "missing.npz",
        LONG + ".npz", NUL + ".npz", LONG + ".csv", {"a": 1}, lambda: 1)  # fmt: skip
NUMBER = ("x", b"x", [0], Odd())
DTYPE = ("zz", 5, b"f", [], Odd(), str)


class Objects:
    """Objects with methods to call, on a connection that is inspected afterwards."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.program = ucle.einsum_program(PRODUCT, A=A, x=X, database=connection)
        self.table = ucle.einsum_program("y[i] += t[i,j]", t="t", database=connection)
        self.result = ucle.einsum_program("y[i,j] = A[i,j]", A=A).execute()
        self.relation = self.result["y"]
        self.tensor = ucle.array(A, axes=("i", "j"))
        self.plain = ucle.array(A)


@pytest.fixture(scope="module")
def objects() -> Iterator[Objects]:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 0 AS i, 0 AS j, 1.0 AS v")
        yield Objects(connection)


Call = Callable[..., Any]


def compiled(o: Objects, **options: Any) -> Any:
    given = {"inputs": {"A": A, "x": X}, "database": o.connection, **options}
    return ucle.einsum_program(PRODUCT, **given)


def registered(_: Objects, **options: Any) -> None:
    given = {"name": "checked_here", "kind": "map", "sql": "x", "numpy": lambda x: x, **options}
    ucle.register_operator(**given)
    ucle.unregister_operator("checked_here")


def reduced(_: Objects, **options: Any) -> None:
    given = {"name": "checked_here", "kind": "reduce", "sql": "sum(x)", "numpy": np.sum, **options}
    ucle.register_operator(**given)
    ucle.unregister_operator("checked_here")


CALLS: dict[str, tuple[Call, dict[str, tuple[Any, ...]]]] = {
    "einsum_program": (
        compiled,
        {
            "database": DATABASE,
            "inputs": (5, "x", [1], {5: X}, Odd()),
            "outputs": NAMES,
            "bounds": SIZES,
            "decomposition": (*CHOICE, {"y": 5}, {"y": [5]}, {5: ["i"]}, None),
            "memory_limit": (0, -1, "0", "lots", "", b"2GB", True, 2.5j, ["2GB"], Odd()),
            "profile": CHOICE,
            "path": (5, "zz", [5], [(0, 5)], [(0, "1")], {"zz": []}, {5: []}, {"y": 5}, Odd()),
            "nonfinite": (*CHOICE, None),
            "search": (*CHOICE, None),
            "store": (None, *NAMES, 2, 0.5),
            "statistics": (*CHOICE, None),
            "association": (*CHOICE, None),
            "zz": (X,),
            "A": DATA,
        },
    ),
    "einsum_program (text)": (
        lambda o, text: ucle.einsum_program(text, A=A, x=X),
        {"text": (*NO_TEXT, "", NUL, "y[i] = " + "9" * 5000, "y[i] = 1" + " + A[i,j]" * 5000,
                  "y" * 300 + "[i] += A[i,j] * x[k", "y[i] += A[i,j] * 1e999 * x[j", ("y",))},
    ),
    "einsum": (
        lambda o, **k: ucle.einsum("ij,j->i", A, X, **k),
        {
            "out": NUMBER,
            "optimize": ("zz", 5.5, b"x", [5], Odd(), {"a": 1}),
            "dtype": DTYPE,
            "order": (5, "zz", b"C", []),
            "casting": (None, 5, "zz", b"safe", []),
            "database": DATABASE,
            "bounds": SIZES,
            "decomposition": CHOICE,
            "memory_limit": (0, "lots", b"2GB"),
            "nonfinite": CHOICE,
            "zz": (1,),
        },
    ),
    "einsum (operands)": (
        lambda o, operands: ucle.einsum(*operands),
        {"operands": ((), (5,), (None,), (b"i->i", X), ("i->i",), ("i->i", Odd()), ("i->i", None),
                      ("i->i", "missing"), (X, 5), (X, [None]), (X, ["i"]), ("i->i", X, X))},
    ),
    "connect": (
        lambda o, database=":memory:", **k: ucle.connect(database, **k).close(),
        {
            "database": (None, 5, b"x", ["x"], Odd(), NUL, LONG, "no/such/folder/x", "."),
            "read_only": FLAG,
            "allow_unsigned_extensions": ("false", False, 0, None, "no"),
            "zz": (1,),
            "threads": ("many", -1, None, [], Odd()),
        },
    ),
    "table": (
        lambda o, relation="t", **k: ucle.einsum_program(
            "y[i] += t[i,j]", t=ucle.table(relation, **k), database=o.connection
        ),
        {
            "relation": DATA,
            "columns": (5, b"x", [5], [None], {"i": 5}, {5: "i"}, Odd(), ["zz"], ["i", "i"],
                        [b"i"]),
            "value": (b"v", ["v"], "zz", {"v": 1}, Odd()),
            "shape": (5, "3", [-1], [2.5], ["3"], Odd(), {"a": 1}),
            "bounds": (5, "3", [-1, 1], [2.5, 1], ["3", 3], Odd(), {"a": 1}, [1]),
            "fill": ("x", b"x", [0], Odd()),
            "duplicates": (*CHOICE, None),
            "dtype": DTYPE,
            "coordinates": (5, "zz", b"auto", ["auto"], {5: "d"}, {"i": 5}, {"zz": "d"}, None),
        },
    ),
    "tensor": (
        lambda o, data="t", **k: ucle.tensor(
            data, **{"axes": ("i", "j"), "database": o.connection, **k}
        ).to_numpy(),
        {
            "data": DATA,
            "axes": (5, b"ij", [5], [None], ["1"], ["i", "i"], ["i", "and"], Odd(), {"i": 1}),
            "ndim": COUNT,
            "name": TEXT,
            "database": DATABASE,
        },
    ),
    "array": (
        lambda o, data=A, **k: ucle.array(data, **k),
        {"data": (None, "x", Odd(), b"x", ["a"], [[1], [2, 3]]), "axes": (5, [5], ["1"], ["i"]),
         "dtype": DTYPE, "name": TEXT},
    ),
    "compute": (
        lambda o, tensor=None, **k: ucle.compute(o.tensor if tensor is None else tensor, **k),
        {
            "tensor": ("x", b"x", Odd(), {"a": 1}, ["a"]),
            "database": DATABASE,
            "bounds": SIZES,
            "outputs": NAMES,
            "zz": (1, X),
        },
    ),
    "register_operator": (
        registered,
        {
            "name": (*NO_TEXT, "", "1", "sum", "and", NUL),
            "kind": (*NO_TEXT, "zz"),
            "sql": (*NO_TEXT, "", "z", "SELECT", {5: "x"}, {"f": 5}, {"z": "x"}),
            "numpy": (None, 5, "x", lambda: 1, lambda x: 1),
            "commutative": FLAG,
            "associative": FLAG,
            "annihilators": (None, 5, "x", ["x"], Odd()),
            "distributes_over": (None, 5, [5], ["zz"], Odd()),
            "result": (*NO_TEXT, "zz"),
            "replace": FLAG,
        },
    ),
    "register_operator (reduce)": (
        reduced,
        {"identity": NUMBER, "repeat": (5, "x", Odd()), "repeat_by": (5, "zz", ["x"]),
         "merge": (5, "zz", ["x"]), "numpy": (None, 5, "x")},
    ),
    "unregister_operator": (
        lambda o, name: ucle.unregister_operator(name),
        {"name": (*NO_TEXT, "zz")},
    ),
    "execute": (
        lambda o, **k: o.program.execute(**k),
        {"database": DATABASE, "progress": (5, "x", [], Odd())},
    ),
    "explain": (
        lambda o, **k: o.program.explain(**k),
        {"format": (*CHOICE, None), "analyze": FLAG},
    ),
    "plans": (lambda o, k: o.program.plans(k), {"k": (*COUNT, 0, None)}),
    "with_decomposition": (
        lambda o, decomposition: o.program.with_decomposition(decomposition),
        {"decomposition": (*CHOICE, {"y": 5}, {5: []}, {"y": ["zz"]}, None)},
    ),
    "recompile": (lambda o, database: o.program.recompile(database), {"database": DATABASE}),
    "drift": (lambda o, database: o.program.drift(database), {"database": DATABASE}),
    "register": (
        lambda o, connection: o.program.register(connection),
        {"connection": (None, 5, "x", b"x", Odd())},
    ),
    "create_views": (
        lambda o, **k: o.table.create_views(**k),
        {
            "database": DATABASE,
            "schema": (5, b"x", ["x"], "zz", "a.b.c.d", Odd(), NUL),
            "replace": FLAG,
            "capacity": SIZES,
            "keys": (5, "i", b"i", [5], ["zz"], {5: ["i"]}, {"zz": ["i"]}, {"y": 5}, Odd()),
            "rows": (*CHOICE,),
            "max_rows": (*COUNT, None),
        },
    ),
    "Result": (lambda o, name: o.result[name], {"name": (None, 5, "zz", b"y", [], NUL)}),
    "to_arrow": (
        lambda o, **k: o.relation.to_arrow(**k),
        {"keys": (5, "i", b"i", [5], ["zz"], Odd()), "rows": CHOICE, "max_rows": (*COUNT, None)},
    ),
    "to_pandas": (lambda o, **k: o.relation.to_pandas(**k), {"keys": (5, "i"), "rows": CHOICE}),
    "entries": (
        lambda o, **k: o.relation.entries(**k),
        {"rows": CHOICE, "max_rows": (*COUNT, None)},
    ),
    "coordinates": (
        lambda o, label: o.relation.coordinates(label),
        {"label": (None, 5, b"i", ["i"], "zz", Odd(), NUL)},
    ),
    "save": (
        lambda o, path="x.parquet", **k: o.relation.save(path, **k),
        {
            "path": PATH,
            "keys": (5, "i", [5], ["zz"]),
            "rows": CHOICE,
            "max_rows": (*COUNT, None),
            "partition_by": (5, [5], ["zz"], [], b"i", Odd()),
        },
    ),
    "to_table": (
        lambda o, name="made", **k: o.relation.to_table(name, **k),
        {
            "name": TABLE_NAME,
            "keys": (5, "i", [5], ["zz"]),
            "rows": CHOICE,
            "mode": (*CHOICE, None),
            "on": (5, ["i"], b"i", Odd()),
            "max_rows": (*COUNT, None),
            "replace": FLAG,
        },
    ),
    "Tensor.sum": (
        lambda o, **k: o.tensor.sum(**k),
        {"axis": (*AXIS, [5], ["i", "i"]), "dtype": DTYPE, "out": (A, 5), "keepdims": FLAG},
    ),
    "Tensor.var": (
        lambda o, **k: o.tensor.var(**k),
        {"axis": AXIS, "ddof": NUMBER, "correction": NUMBER, "keepdims": FLAG},
    ),
    "Tensor.argmax": (lambda o, **k: o.tensor.argmax(**k), {"axis": AXIS, "keepdims": FLAG}),
    "Tensor.softmax": (lambda o, axis: o.tensor.softmax(axis), {"axis": AXIS}),
    "Tensor.named": (
        lambda o, names: o.tensor.named(*names),
        {"names": ((), ("i",), (5, "j"), ("i", "i"), (b"i", "j"))},
    ),
    "Tensor.rename": (
        lambda o, names: o.tensor.rename(names),
        {"names": (None, 5, "x", ["i"], {"zz": "i"}, {"i": 5}, {"i": "j"}, {5: "x"})},
    ),
    "Tensor.permute_dims": (
        lambda o, axes: o.tensor.permute_dims(axes),
        {"axes": (None, 5, "i", ["i"], ["i", "i"], [0, 5], Odd())},
    ),
    "Tensor.expand_dims": (
        lambda o, **k: o.plain.expand_dims(**k),
        {"axis": (None, "i", 0.5, 9, Odd()), "name": (5, "x", b"x")},
    ),
    "Tensor.squeeze": (lambda o, axis: o.tensor.squeeze(axis), {"axis": AXIS}),
    "Tensor.broadcast_to": (
        lambda o, shape: o.plain.broadcast_to(shape),
        {"shape": (None, 5, "x", [-1], [2.5, 3], ["2", 3], [3, 2], Odd())},
    ),
    "Tensor.combine": (
        lambda o, function="add", other=1: o.tensor.combine(function, other).to_numpy(),
        {"function": (*NO_TEXT, "zz", "exp"), "other": (None, "x", b"x", Odd(), [[1], [2, 3]])},
    ),
    "Tensor.map": (
        lambda o, function: o.tensor.map(function).to_numpy(),
        {"function": (*NO_TEXT, "zz", "add")},
    ),
    "Tensor.astype": (lambda o, dtype: o.tensor.astype(dtype), {"dtype": DTYPE}),
    "Tensor.clip": (lambda o, **k: o.tensor.clip(**k), {"low": ("x", b"x", Odd()), "high": ("x",)}),
    "Tensor.matmul": (
        lambda o, other: o.plain.matmul(other),
        {"other": (None, "x", b"x", Odd(), 5)},
    ),
    "Tensor.dot": (
        lambda o, **k: o.tensor.dot(o.tensor, **k),
        {"axis": (5, "zz", 0.5, b"i", Odd(), [5])},
    ),
    "Tensor.take": (
        lambda o, indices=(0,), axis=0: o.tensor.take(indices, axis),
        {"indices": (None, 5, "x", [5], ["x"], [0.5], Odd()), "axis": AXIS},
    ),
    "Tensor.sel": (
        lambda o, coordinates: o.tensor.sel(coordinates).to_numpy(),
        {"coordinates": (5, "x", ["i"], {"zz": 0}, {"i": "x"}, {"i": 9}, {"i": Odd()}, {5: 0},
                         {"i": None}, {"i": [0, "x"]})},
    ),
    "Tensor[...]": (
        lambda o, key: o.tensor[key],
        {"key": ("x", 0.5, b"x", 9, (0, 0, 0), Odd(), {"a": 1}, [0.5], [True, False], True,
                 slice("a", "b"), slice(0, 1, 0), slice(0.5, 1))},
    ),
    "Tensor.program": (
        lambda o, **k: o.tensor.program(**k),
        {"database": DATABASE, "bounds": SIZES, "decomposition": CHOICE},
    ),
    "Tensor.to_table": (
        lambda o, name="made", **k: o.tensor.to_table(name, **{"database": o.connection, **k}),
        {"name": TABLE_NAME, "keys": (5, "i", [5], ["zz"], [[]], Odd()), "rows": CHOICE},
    ),
    "Tensor.save": (lambda o, path: o.tensor.save(path), {"path": PATH}),
    "tensordot": (
        lambda o, axes: ucle.tensordot(o.plain, o.plain, axes),
        {"axes": (None, "x", 5, 0.5, [5], [[0], [5]], [[0], ["x"]], -1, Odd())},
    ),
    "vecdot": (lambda o, axis: ucle.vecdot(o.plain, o.plain, axis), {"axis": AXIS}),
    "add": (lambda o, x: ucle.add(x, 1), {"x": (None, "x", b"x", Odd(), ["a"])}),
    "where": (lambda o, x: ucle.where(o.tensor, x, 0), {"x": (None, "x", b"x", Odd())}),
    "outer": (lambda o, x: ucle.outer(x, o.plain), {"x": (None, "x", 5, Odd())}),
}  # fmt: skip

MEANT = {
    "einsum(optimize='zz')": "as in NumPy, no algorithm is asked for where two operands are joined",
    "table(columns=['i', 'i'])": "one column is the coordinate of two axes: a diagonal",
}


def outcome(call: Call, objects: Objects, argument: str, value: Any) -> str | None:
    """Describe what is wrong with the end of a call; None if it ends in an error of ucle."""
    try:
        call(objects, **{argument: value})
    except UcleError as error:
        told = error.expected or error.hint or isinstance(error, ExecutionError)
        return None if told else f"says nothing: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "is accepted"


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments(
    name: str, objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, arguments = CALLS[name]
    before = temporary_objects(objects.connection)
    wrong = {}
    for argument, values in arguments.items():
        for value in values:
            shown = f"{name}({argument}={value!r})"
            if found := outcome(call, objects, argument, value):
                wrong[shown[:100]] = found
    assert {shown for shown, found in wrong.items() if found == "is accepted"} <= MEANT.keys()
    assert not {shown: found for shown, found in wrong.items() if shown not in MEANT}
    assert temporary_objects(objects.connection) == before
    assert not list(tmp_path.iterdir())


def test_the_table_is_as_long_as_it_was() -> None:
    assert (
        sum(len(values) for _, arguments in CALLS.values() for values in arguments.values()) > 900
    )
