"""Columns such as ``FLOAT[3]``: results over their axes are written with the same kind of type."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ucle
from ucle import errors
from ucle.inputs.fixed_axes import find_fixed_axes

NUMBERS = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "BIGINT": pa.int64()}
ROWS = 4


def store_arrays(
    connection: Any, rng: np.random.Generator, name: str, element: str, shape: Sequence[int]
) -> Any:
    """Store a table ``(id, v)`` whose arrays have a type with lengths; return its tensor."""
    values = rng.integers(-3, 4, (ROWS, *shape))
    type_ = element + "".join(f"[{size}]" for size in reversed(shape))
    connection.register("rows", pa.table({"id": range(ROWS), "v": values.tolist()}))
    connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT id, v::{type_} AS v FROM rows")
    connection.unregister("rows")
    return values


def column_type(connection: Any, relation: str) -> str:
    """The type of the column ``val``."""
    return str(
        dict(x[:2] for x in connection.execute(f"DESCRIBE FROM {relation}").fetchall())["val"]
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(12))
def test_random_outputs(seed: int, fresh: Any) -> None:
    """The arrays of an output have a type with a length if each of their axes comes from one."""
    rng = np.random.default_rng(seed)
    element = str(rng.choice(list(NUMBERS)))
    p, q, r = (int(x) for x in rng.integers(1, 5, 3))
    h = store_arrays(fresh, rng, "h", element, (p, q))
    w = store_arrays(fresh, rng, "w", element, (r,))
    a = rng.integers(-2, 3, (p, 3)).astype(NUMBERS[element].to_pandas_dtype())
    inputs: dict[str, Any] = {
        "H": ucle.table("h", ["id"], "v"),
        "W": ucle.table("w", ["id"], "v"),
        "A": a,
    }
    for text, expected, keys, length in (
        ("Z[i,p,q] = 2 * H[i,p,q]", 2 * h, ["i"], p * q),
        ("Z[q,i,p] = 2 * H[i,p,q]", 2 * h.transpose(2, 0, 1), ["i"], p * q),
        ("Z[i,q] += H[i,p,q]", h.sum(1), ["i"], q),
        ("Z[i,q,r] += H[i,p,q] * W[i,r]", np.einsum("ipq,ir->iqr", h, w), ["i"], q * r),
        ("Z[i,q,r] += H[i,p,q] * W[i,r]", np.einsum("ipq,ir->iqr", h, w), ["i", "q"], r),
        ("Z[i,q,c] += H[i,p,q] * A[p,c]", np.einsum("ipq,pc->iqc", h, a), ["i", "c"], q),
        ("Z[i,q,c] += H[i,p,q] * A[p,c]", np.einsum("ipq,pc->iqc", h, a), ["i"], None),
        ("Z[i,p,q] = H[i,p,q]", h, ["p", "q"], None),
        ("T[i,k] = 2 * W[i,k]; Z[i,m] = T[i,m]", 2 * w, ["i"], r),
        ("Z[i,d] = A[i,d]", a, ["i"], None),
    ):
        given = {name: data for name, data in inputs.items() if f"{name}[" in text}
        program = ucle.einsum_program(text, inputs=given, database=fresh, outputs=["Z"])
        with program.execute(fresh) as result:
            tensor = result["Z"]
            tensor.to_table("written", keys=keys, rows="all", mode="replace")
            sizes = "" if length is None else str(length)
            assert column_type(fresh, "written") == f"{element}[{sizes}]", (text, keys)
            order = ", ".join(keys)
            found = fresh.execute(
                f"SELECT val::{element}[] FROM written ORDER BY {order}"
            ).fetchall()
            front = [n for n, axis in enumerate(tensor.type.axes) if axis.name in keys]
            moved = np.moveaxis(expected, front, range(len(front)))
            np.testing.assert_array_equal([x for (x,) in found], moved.reshape(len(found), -1))
            arrow = tensor.to_arrow(keys=keys, rows="all").schema.field("val").type
            number = NUMBERS[element]
            assert arrow == (pa.large_list(number) if length is None else pa.list_(number, length))
            np.testing.assert_array_equal(tensor.to_numpy(), expected)


def test_every_way_of_writing(fresh: Any, tmp_path: Path) -> None:
    values = store_arrays(fresh, np.random.default_rng(1), "h", "FLOAT", (3,))
    program = ucle.einsum_program("Z[i,d] = H[i,d]", H=ucle.table("h", ["id"], "v"), database=fresh)
    with program.execute(fresh) as result:
        tensor = result["Z"]
        fresh.register("shown", tensor.shown(keys=["i"]))
        assert column_type(fresh, "shown") == "FLOAT[3]"
        tensor.save(tmp_path / "z.parquet", keys=["i"])
        assert pq.read_schema(tmp_path / "z.parquet").field("val").type == pa.list_(
            pa.field("element", pa.float32()), 3
        )
        tensor.save(tmp_path / "z.arrow", keys=["i"])
        tensor.save(tmp_path / "parts", keys=["i"], partition_by=["i"])
        found = fresh.execute(f"SELECT val FROM '{tmp_path}/parts/*/*.parquet' ORDER BY i")
        kept = values[(values != 0).any(1)]
        np.testing.assert_array_equal([list(x) for (x,) in found.fetchall()], kept)
        frame = tensor.to_pandas(columns="d")
        np.testing.assert_array_equal(frame.to_numpy(), values)
        tensor.to_table("numbers")
        assert column_type(fresh, "numbers") == "FLOAT"
    assert "AS REAL[3])" in program.to_sql(keys=["i"])
    again = ucle.einsum_program("Y[i,d] = 2 * Z[i,d]", Z=str(tmp_path / "z.arrow"), database=fresh)
    with again.execute(fresh) as result:
        result["Y"].to_table("again", keys=["i"])
        assert column_type(fresh, "again") == "FLOAT[3]"
        np.testing.assert_array_equal(result["Y"].to_numpy(), 2 * values)


def test_views() -> None:
    with ucle.connect() as connection:
        values = store_arrays(connection, np.random.default_rng(2), "h", "FLOAT", (3,))
        program = ucle.einsum_program(
            "Z[i,d] = 2 * H[i,d]", H=ucle.table("h", ["id"], "v"), database=connection
        )
        program.create_views(keys=["i"], rows="all")
        assert column_type(connection, "Z") == "FLOAT[3]"
        connection.execute("INSERT INTO h VALUES (4, [1, 2, 3])")
        found = connection.execute("SELECT val FROM Z ORDER BY i").fetchall()
        np.testing.assert_array_equal([x for (x,) in found], [*(2 * values), [2, 4, 6]])


def test_lazy_tensors_and_prepared_programs(fresh: Any) -> None:
    values = store_arrays(fresh, np.random.default_rng(3), "h", "FLOAT", (3,))
    table = ucle.table("h", ["id"], "v")
    lazy = ucle.tensor(table, axes=("id", "d")) * 2
    lazy.to_table("z", fresh, keys=["id"])
    assert column_type(fresh, "z") == "FLOAT[3]"
    prepared = ucle.einsum_program("Z[i,d] = H[i,d]", H=table, database=fresh).prepare(fresh)
    prepared()["Z"].to_table("z", keys=["i"], mode="replace")
    assert column_type(fresh, "z") == "FLOAT[3]"
    np.testing.assert_array_equal(
        sorted(map(list, (x for (x,) in fresh.execute("SELECT val FROM z").fetchall()))),
        sorted(values[(values != 0).any(1)].tolist()),
    )


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_tables_that_exist(mode: str, fresh: Any) -> None:
    """A column of arrays takes lists of its length, a column of lists takes arrays."""
    store_arrays(fresh, np.random.default_rng(4), "h", "FLOAT", (3,))
    inputs = {"H": ucle.table("h", ["id"], "v"), "L": np.ones((2, 3), np.float32)}
    for name, labels in (("H", "i,d"), ("L", "i,d")):
        program = ucle.einsum_program(
            f"Z[{labels}] = {name}[{labels}]", inputs={name: inputs[name]}, database=fresh
        )
        with program.execute(fresh) as result:
            for kind in ("FLOAT[3]", "FLOAT[]"):
                fresh.execute(f"CREATE OR REPLACE TABLE old (i INTEGER, val {kind})")
                result["Z"].to_table("old", keys=["i"], mode=mode)
                found = fresh.execute("SELECT val::FLOAT[] FROM old ORDER BY i").fetchall()
                expected = result["Z"].to_arrow(keys=["i"]).sort_by("i").column("val").to_pylist()
                assert [x for (x,) in found] == expected
            for kind in ("FLOAT[4]", "BIGINT[3]", "FLOAT[3][1]", "FLOAT"):
                fresh.execute(f"CREATE OR REPLACE TABLE old (i INTEGER, val {kind})")
                with pytest.raises(errors.ColumnsError):
                    result["Z"].to_table("old", keys=["i"], mode=mode)
                assert fresh.execute("SELECT count(*) FROM old").fetchall() == [(0,)]


def test_types_without_lengths(fresh: Any) -> None:
    """Lists stay lists, and so do arrays that are longer than a type can state."""
    fresh.execute("CREATE TABLE lists AS SELECT i AS id, [i, 1]::FLOAT[] AS v FROM range(3) t(i)")
    fresh.execute(
        "CREATE TABLE nested AS SELECT i AS id, [[i, 1]]::FLOAT[2][] v FROM range(3) t(i)"
    )
    fresh.execute("CREATE TABLE wide AS SELECT range(400)::FLOAT[400] AS v")
    for text, table, keys in (
        ("Z[i,d] = X[i,d]", ucle.table("lists", ["id"], "v"), ["i"]),
        ("Z[i,c,d] = X[i,c,d]", ucle.table("nested", ["id"], "v"), ["i"]),
        ("Z[d,e] = X[d] * X[e]", ucle.table("wide", [], "v"), []),
    ):
        with ucle.einsum_program(text, X=table, database=fresh).execute(fresh) as result:
            result["Z"].to_table("z", keys=keys, mode="replace")
            assert column_type(fresh, "z") == "FLOAT[]"


def test_programs_without_arrays() -> None:
    program = ucle.einsum_program("Z[i,j] = A[i,j]", A=np.eye(2), database=duckdb.connect())
    compiled = program.compiled
    front = compiled.front
    assert find_fixed_axes(front.source.statements, front.inputs, {"Z": 2}) == {"Z": frozenset()}
