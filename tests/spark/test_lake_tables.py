"""Tables in folders that are named by keys: their rows are not shuffled."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster import ELSEWHERE
from events import shuffled
from on_spark import entries

from ucle import einsum_program, table
from ucle.errors import InputError

NODES, THINGS = 24, 4_000
TEXT = "Z[i,k] += A[i,j] * H[j,k]"
RNG = np.random.default_rng(17)
MATRIX = np.where(RNG.random((NODES, THINGS)) < 0.8, RNG.normal(size=(NODES, THINGS)), 0.0)
FEATURES = RNG.normal(size=(THINGS, 2))


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of Parquet files, in folders that are named by `i`."""
    folder = tmp_path_factory.mktemp("lake with blanks") / "edges"
    rows = entries(spark, MATRIX, "i", "j")
    rows.repartition(2, "i").write.partitionBy("i").parquet(str(folder))
    return folder


def product(spark: Any, relation: Any, **options: Any) -> Any:
    return einsum_program(
        TEXT,
        A=table(relation, columns=["i", "j"], value="val", bounds=[NODES, THINGS]),
        H=FEATURES,
        database=spark,
        engine="spark",
        **options,
    )


def comes(program: Any) -> Any:
    (found,) = [x for f in program.plan.fragments for x in f.incoming if x.tensor == "A"]
    return found


@pytest.mark.parametrize("decomposition", ["relational", {"Z": {"i", "j"}}])
def test_files_stay_where_they_are(decomposition: Any, spark: Any, lake: Path) -> None:
    program = product(spark, str(lake), decomposition=decomposition)
    assert comes(program).files is not None
    assert comes(program).columns == ("i",)
    assert "its files stay there" in program.explain()
    with program.execute() as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), MATRIX @ FEATURES, rtol=1e-9)


@pytest.mark.skipif(ELSEWHERE, reason="it notes no events here")
def test_their_rows_are_not_shuffled(spark: Any, lake: Path, event_log: Path) -> None:
    moved = {}
    for read in ("true", "false"):
        spark.conf.set("spark.ucle.readFiles", read)
        try:
            program = product(spark, str(lake), decomposition={"Z": {"i"}})
            before = shuffled(event_log)
            with program.execute() as result:
                np.testing.assert_allclose(result["Z"].to_numpy(), MATRIX @ FEATURES, rtol=1e-9)
            moved[read] = shuffled(event_log) - before
        finally:
            spark.conf.unset("spark.ucle.readFiles")
        assert (comes(program).files is not None) == (read == "true")
        if read == "true":
            assert moved[read] <= 1.5 * program.plan.bytes
    stored = 8 * np.count_nonzero(MATRIX)
    assert moved["false"] - moved["true"] > 0.5 * stored


def test_tables_of_the_catalogue(spark: Any, lake: Path) -> None:
    """A table that is partitioned, and a view of it, which may leave rows out."""
    spark.read.parquet(str(lake)).write.mode("overwrite").partitionBy("i").saveAsTable("parted")
    spark.table("parted").where("j < 7").createOrReplaceTempView("part_of_it")
    whole = product(spark, "parted", decomposition="relational")
    part = product(spark, "part_of_it", decomposition="relational")
    assert comes(whole).files is not None
    assert comes(part).files is None
    for program, width in ((whole, THINGS), (part, 7)):
        with program.execute() as result:
            expected = MATRIX[:, :width] @ FEATURES[:width]
            np.testing.assert_allclose(result["Z"].to_numpy(), expected, rtol=1e-9)
    spark.sql("DROP TABLE parted")


def test_loops_over_such_a_table(spark: Any, lake: Path) -> None:
    """What a loop makes of them stays on the partitions of its steps, as of any other table."""
    text = "y[i] += A[i,j] * x[j]; t[j] += A[i,j] * y[i]; n[j] = t[j] / sqrt(sum[j](square(t[j])))"
    program = einsum_program(
        text,
        A=table(str(lake), columns=["i", "j"], value="val", bounds=[NODES, THINGS]),
        x=np.ones(THINGS),
        outputs=["n"],
        database=spark,
        engine="spark",
    )
    expected = np.ones(THINGS)
    with program.prepare(carry={"x": "n"}) as run:
        for _ in range(4):
            result = run()
            expected = MATRIX.T @ (MATRIX @ expected)
            expected /= np.linalg.norm(expected)
            np.testing.assert_allclose(result["n"].to_numpy(), expected, rtol=1e-8, atol=1e-12)


def test_a_file_that_has_gone(spark: Any, lake: Path, tmp_path: Path) -> None:
    shutil.copytree(lake, tmp_path / "edges")
    program = product(spark, str(tmp_path / "edges"), decomposition="relational")
    assert comes(program).files is not None
    shutil.rmtree(tmp_path / "edges" / "i=3")
    with pytest.raises(InputError, match="cannot be read where its partition is"):
        program.execute()
