"""A result on Spark that another program reads there: the rows are those of one machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fed_programs import FED, Fed, P

from ucle import einsum_program, table
from ucle.errors import ArgumentError, UnsupportedError


def edges(spark: Any, fed: Fed) -> Any:
    i, j = np.nonzero(fed.p)
    values: Any = fed.p[i, j]
    if fed.dtype == "complex128":
        values = pa.StructArray.from_arrays([values.real, values.imag], ["re", "im"])
    rows = pa.table({"i": i.astype(np.int32), "j": j.astype(np.int32), "val": values})
    return table(spark.createDataFrame(rows), bounds=P.shape)


@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_each_way(spark: Any, engine: str, tmp_path: Any) -> None:
    wrong = []
    for n, fed in enumerate(FED):
        program = einsum_program(fed.text, P=edges(spark, fed), database=spark, engine=engine)
        with program.execute() as result:
            result["N"].to_parquet(str(tmp_path / f"fed{n}"))
            result["N"].relation.createOrReplaceTempView("fed")
            ways = {"relation": result["N"].relation, "view": "fed"}
            ways["parquet"] = spark.read.parquet(str(tmp_path / f"fed{n}"))
            for way, value in ways.items():
                found = read(spark, value, fed, engine)
                if not np.array_equal(found, fed.expected):
                    wrong.append(f"{fed.text}, {way}: {found.tolist()}")
            every = sorted(map(tuple, result["N"].to_arrow(rows="all").to_pylist()), key=str)
            assert len(every) == fed.expected.size
            assert len(result["N"].to_arrow(rows="nonfill")) <= fed.expected.size
            with pytest.raises(UnsupportedError):
                result["N"].shown("stored")
            if fed.labels:
                with pytest.raises(ArgumentError, match="too many"):
                    result["N"].shown("all", max_rows=1)
    assert not wrong, "\n".join(wrong)


def read(spark: Any, value: Any, fed: Fed, engine: str) -> Any:
    bounds = dict.fromkeys(fed.labels.split(",") if fed.labels else (), 4)
    options: Any = {"bounds": bounds, "database": spark, "engine": engine}
    with einsum_program(fed.next, N=value, **options).execute() as result:
        return result["M"].to_numpy()


def test_page_rank(spark: Any) -> None:
    """Two of four nodes have no incoming edge: their rank is the fill, and counts."""
    text = "N[j] = 0.15/4 + 0.85*sum[i](P[i,j]*R[i])"
    ids = np.array([b"a", b"b", b"c", b"d"]).astype(str)
    i, j = np.nonzero(P)
    links = spark.createDataFrame(pa.table({"i": ids[i], "j": ids[j], "val": P[i, j]}))
    start = pa.table({"i": ids, "val": np.full(4, 0.25)})
    held, expected, made = spark.createDataFrame(start), np.full(4, 0.25), []
    for _ in range(2):
        expected = 0.15 / 4 + 0.85 * P.T @ expected
        program = einsum_program(text, P=links, R=held, database=spark, engine="spark")
        made.append(program.execute())
        rows = {row[0]: row[1] for row in made[-1]["N"].relation.collect()}
        where = [k for k in range(4) if ids[k] in rows]
        assert np.allclose([rows[ids[k]] for k in where], expected[where], rtol=1e-14)
        held = made[-1]["N"].relation.withColumnRenamed("j", "i")
        if len(rows) < 4:
            break  # an id that no edge leads to is none of the axis
    for result in made:
        result.close()
