"""Scripts in other dialects: their text, special data on each engine, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sql_engines import NAMES, SqlEngine, answers, compiled, dense, run

import ucle
from ucle.errors import ArgumentError, UnsupportedError
from ucle.testing.oracle import assert_equal, evaluate

A = np.array([[1.0, 0.0, -2.0], [0.0, 0.5, 3.0]])
PRODUCT = "Z[i] += A[i,j] * x[j]"
BODIES = {
    "spark": (
        "SET spark.sql.ansi.enabled = true;\n\n-- Z[I] += A[I,J] * x[J]\nCACHE TABLE `Z` AS\n",
        "CAST(`v` AS DOUBLE) <> 0.0e0",
        "  SUM(`A`.`val` * `x`.`val`) AS `val`\n",
    ),
    "postgres": (
        '-- Z[I] += A[I,J] * x[J]\nCREATE TEMPORARY TABLE "Z" AS\n',
        'CAST("v" AS DOUBLE PRECISION) <> CAST(0.0e0 AS DOUBLE PRECISION)',
        '  SUM(CAST("A"."val" * "x"."val" AS DOUBLE PRECISION)) AS "val"\n',
    ),
}
SCRIPT = """-- ucle program:
--   Z[i] += A[i,j] * x[j]
-- Dialect: {dialect}. Tables are read by the names given here.

{create}WITH `A` AS (
  /* A: Table0 */
  SELECT
    CAST(`k0` AS INT) AS `i`,
    CAST(`k1` AS INT) AS `j`,
    CAST(`v` AS {double}) AS `val`
  FROM `Table0`
  WHERE
    {differs}
), `x` AS (
  /* x: Table1 */
  SELECT
    CAST(`k0` AS INT) AS `j`,
    CAST(`v` AS {double}) AS `val`
  FROM `Table1`
  WHERE
    {differs}
)
SELECT
  `A`.`i`,
{total}FROM `A` AS `A`
JOIN `x` AS `x`
  ON `A`.`j` = `x`.`j`
GROUP BY
  `A`.`i`;

-- result Z
SELECT
  `i`,
  `val`
FROM `Z`;
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("dialect", NAMES)
def test_text_of_a_script(dialect: str) -> None:
    program, _ = compiled(PRODUCT, {"A": A, "x": A[0]})
    create, differs, total = BODIES[dialect]
    quote = "`" if dialect == "spark" else '"'
    double = "DOUBLE PRECISION" if dialect == "postgres" else "DOUBLE"
    expected = SCRIPT.replace("`", quote).format(
        dialect=dialect, create=create, differs=differs, total=total, double=double
    )
    assert program.to_sql(dialect=dialect) == expected


def test_the_default_is_duckdb() -> None:
    program, _ = compiled(PRODUCT, {"A": A, "x": A[0]})
    assert program.to_sql() == program.to_sql(dialect="duckdb")
    assert "CREATE TEMPORARY TABLE" in program.to_sql()
    with pytest.raises(ArgumentError, match="one of 'duckdb', 'spark', 'postgres'"):
        program.to_sql(dialect="datafusion")


NAN, INF = float("nan"), float("inf")
WILD = np.array([[1.0, NAN, -2.0, 0.0], [INF, 0.5, 3.0, -INF], [0.0, 0.0, 0.0, 0.0]])
BIG = np.array([[2**62, -(2**62), 5], [0, 0, 0], [3, 2**40, -7]])
PROGRAMS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "sums of NaN": ("Z[i] += A[i,j]\nW[j] += A[i,j]\ns = sum[i,j](A[i,j])", {"A": WILD}, {}),
    "extremes of NaN": ("Z[i] max= A[i,j]\nW[j] min= A[i,j]\nm max= A[i,j]", {"A": WILD}, {}),
    "minima of infinities": ("Z[i] min= A[i,j] + 1\nW[i] max= relu(A[i,j])", {"A": WILD}, {}),
    "comparisons": ("Z[i,j] = A[i,j] < 1\nW[i,j] = A[i,j] == A[i,j]", {"A": WILD}, {}),
    "maps": ("Z[i,j] = tanh(A[i,j])\nW[i,j] = sqrt(A[i,j])\nV[i,j] = exp(A[i,j])", {"A": WILD}, {}),
    "a quotient by zero": ("Z[i,j] = 1 / A[i,j]\nW[i,j] = A[i,j] / A[j,i]", {"A": A[:, :2]}, {}),
    "an empty table": ("Z[i] += A[i,j]\nW max= A[i,j]\nV[j] = exp(A[i,j])", {"A": 0 * A}, {}),
    "no positions": ("Z[i] += A[i,j]\ns += A[i,j]\nW[j,i] = A[i,j] + 1", {"A": A[:, :0]}, {}),
    "a fill": ("Z[i] += A[i,j]\nW[i,j] = A[i,j] * 2", {"A": np.where(A == 0, 7.0, A)}, {"A": 7.0}),
    "an infinite fill": (
        "Z[i] min= A[i,j] + B[j]",
        {"A": np.where(A == 0, INF, A), "B": A[1]},
        {"A": INF},
    ),
    "negative numbers": ("Z[i,j] = -A[i,j]\nW[i] += abs(A[i,j])", {"A": -A}, {}),
    "integers": (
        "Z[i] += A[i,j]\nW[i,j] = floor_divide(A[i,j], 4)\nV[i,j] = remainder(A[i,j], 4)",
        {"A": BIG},
        {},
    ),
    "integer extremes": ("Z[i] max= A[i,j]\nW[j] min= A[i,j]\nc[i] count= A[i,j]", {"A": BIG}, {}),
    "yes and no": ("Z[i] any= A[i,j]\nW[j] all= A[i,j]\nV[i] += A[i,j]", {"A": A != 0}, {}),
    "float32": ("Z[i] += A[i,j] * A[i,j]\nW[i,j] = sin(A[i,j])", {"A": A.astype("f4")}, {}),
    "scalars": ("s += A[i,j]\nt = s * 2 + 1\nu = t / s\nZ[i,j] = A[i,j] * u", {"A": A}, {}),
    "the first": ("Z[i,r] = top_k[j,r](A[i,j])\nW[i,r] = arg_bottom_k[j,r](A[i,j])", {"A": A}, {}),
    "the first of nothing": ("Z[i] = argmax[j](A[i,j])", {"A": 0 * A}, {}),
    "a running sum": ("Z[i,j] = cumsum[j](A[i,j])\nW[i,j] = cummax[i](A[i,j])", {"A": A}, {}),
    "windows": ("Z[i] = A[0,i+1] - A[1,i]\nW[j,i] = A[i,~(j-1)]", {"A": A}, {}),
    "digits": ("Z[i,j] = x[2*i+j]\nW[i] = A[i//3,i%3]", {"A": A, "x": A[1]}, {}),
    "a diagonal": ("Z[i,i] = x[i]\nT += B[i,i]", {"x": A[1], "B": A[:, :2]}, {}),
    "a gather": ("Z[i] = x[k[i]]", {"x": A[1], "k": np.array([2, 0, 1, 2])}, {}),
    "a scatter": ("Z[k[i]] += x[i]", {"x": A[1], "k": np.array([1, 0, 1])}, {}),
    "an outer join": (
        "Z[i,j] = A[i,j] + B[i,j]\nW = a + b",
        {"A": A, "B": A[::-1], "a": np.array(0.0), "b": np.array(2.0)},
        {},
    ),
}
BOUNDS: dict[str, dict[str, int]] = {
    "windows": {"i": 2, "j": 3},
    "digits": {"i": 2, "j": 1},
    "a scatter": {"i": 3},
    "the first": {"r": 2},
}


@pytest.mark.sample(None)
@pytest.mark.parametrize("name", PROGRAMS)
def test_special_programs(name: str, engine: SqlEngine) -> None:
    text, arrays, fills = PROGRAMS[name]
    outputs = tuple(line.split(" ")[0].split("[")[0] for line in text.splitlines())
    options = {"bounds": BOUNDS[name]} if name in BOUNDS else {}
    program, tables = compiled(text, arrays, fills, outputs=outputs, **options)
    expected = {}
    with program.execute() as result:  # DuckDB and the oracle agree elsewhere (`tests/language`)
        for output in outputs:
            expected[output] = result[output].to_numpy()
    found = answers(engine, program, tables)
    assert found is not None
    for output, array in found.items():
        assert_equal(array, expected[output], f"{output}\n{program.to_sql(dialect=engine.name)}")
    if name not in BOUNDS and "k[" not in text:
        with np.errstate(all="ignore"):
            meaning = evaluate(text, arrays, fills=fills)
        for output, array in found.items():
            assert_equal(array, meaning[output], output)


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    "text", ["Z[i] += A[i,j]", "Z[i,j] = A[i,j] * 4", "Z[i,j] = A[i,j] + A[i,j]"]
)
def test_integers_overflow_with_an_error(text: str, engine: SqlEngine) -> None:
    whole = np.full((2, 2), 2**62)
    program, tables = compiled(text, {"A": whole})
    with pytest.raises(Exception, match=r"(?i)overflow|out of range|cast"):
        answers(engine, program, tables)


def test_an_index_outside_is_an_error(engine: SqlEngine) -> None:
    program, tables = compiled("Z[i] = x[k[i]]", {"x": A[1], "k": np.array([0, 1, 9])})
    with pytest.raises(Exception, match="an index is outside of its axis"):
        answers(engine, program, tables)


def test_text_as_coordinates(engine: SqlEngine) -> None:
    edges = pa.table({"src": ["b", "a", "b", "c"], "dst": ["a", "c", "c", "a"]})
    with ucle.connect() as connection:
        connection.register("edges", edges)
        connection.execute('CREATE TABLE "Edges" AS SELECT * FROM edges')
        pages = {"i": "page", "j": "page"}
        given = ucle.table('"Edges"', ["src", "dst"], coordinates=pages)
        program = ucle.einsum_program(
            "out[i] += E[i,j]\ntwo[i,k] += E[i,j] * E[j,k]",
            E=given,
            database=connection,
            decomposition="relational",
            outputs=("out", "two"),
        )
        engine.load("Edges", edges)
        results, _ = run(engine, program.to_sql(dialect=engine.name))
    assert sorted(results["out"]) == [("a", 1), ("b", 2), ("c", 1)]
    assert sorted(results["two"]) == [("a", "a", 1), ("b", "a", 1), ("b", "c", 1), ("c", "c", 1)]


def test_an_array_from_memory_is_a_table_of_the_name_in_the_header(engine: SqlEngine) -> None:
    with ucle.connect() as connection:
        program = ucle.einsum_program(
            "Z[i] += A[i,j]", A=A, database=connection, decomposition="relational"
        )
        script = program.to_sql(dialect=engine.name)
        (line,) = [line for line in script.splitlines() if line.startswith("--   A")]
        name = line.removeprefix("--   ").split(":")[0]
        program.register(connection)
        engine.load(name, connection.execute(f'SELECT * FROM "{name}"').to_arrow_table())
        results, _ = run(engine, script)
    assert_equal(dense(program, "Z", results["Z"]), A.sum(axis=1))


def test_postgres_raises_where_a_float_overflows(engines: Any) -> None:
    program, tables = compiled("Z[i,j] = A[i,j] * 1e300", {"A": np.full((1, 1), 1e300)})
    with pytest.raises(Exception, match="overflow"):
        answers(engines("postgres"), program, tables)


# ---- What is refused ----


def refused(program: Any, *words: str, **options: Any) -> None:
    for dialect in NAMES:
        with pytest.raises(UnsupportedError) as caught:
            program.to_sql(dialect=dialect, **options)
        for word in (f"to_sql(dialect={dialect!r})", *words):
            assert word in str(caught.value), str(caught.value)


def test_kernels_are_refused() -> None:
    program, _ = compiled(PRODUCT, {"A": A, "x": A[0]}, decomposition={"Z": []})
    refused(program, "can call no kernels", 'decomposition="relational"')


def test_types_are_refused() -> None:
    program, _ = compiled("Z[i] = A[i] * 2", {"A": A[0] + 1j})
    refused(program, "complex128")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Z[i] = random_normal(7, i) + 0 * x[i]", "random_bits"),
        ("Z[i] = nextafter(x[i], 2)", "nextafter"),
    ],
)
def test_operators_are_refused_by_name(text: str, word: str) -> None:
    program, _ = compiled(text, {"x": A[0]})
    refused(program, word)


def test_a_product_of_many_is_an_aggregate_of_postgres() -> None:
    program, _ = compiled("Z[i] *= A[i,j]", {"A": A})
    assert "pg_temp.product" in program.to_sql(dialect="postgres")
    assert "CREATE AGGREGATE" in program.to_sql(dialect="postgres")


def test_operators_of_users_are_refused() -> None:
    ucle.register_operator("twice_of_dialects", "map", sql="2 * x", numpy=lambda x: 2 * x)
    program, _ = compiled("Z[i] = twice_of_dialects(x[i])", {"x": A[0]})
    refused(program, "twice_of_dialects", "written in the SQL of DuckDB")


def test_files_are_refused(tmp_path: Any) -> None:
    path = tmp_path / "x.parquet"
    with ucle.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS i, 2.0::DOUBLE AS val) TO '{path}'")
        program = ucle.einsum_program(
            "Z = sum[i](x[i])", x=str(path), database=connection, decomposition="relational"
        )
    with pytest.raises(UnsupportedError, match="an input is a file"):
        program.to_sql(dialect="postgres")
    assert f"`parquet`.`{path}`" in program.to_sql(dialect="spark")


def test_spark_reads_a_parquet_file(tmp_path: Any, engines: Any) -> None:
    path = tmp_path / "x.parquet"
    spark = engines("spark")
    with ucle.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS i, 2.5::DOUBLE AS val) TO '{path}'")
        program = ucle.einsum_program(
            "Z = sum[i](x[i])", x=str(path), database=connection, decomposition="relational"
        )
        results, _ = run(spark, program.to_sql(dialect="spark"))
    assert results["Z"] == [(2.5,)]


def test_forms_are_for_duckdb() -> None:
    program, _ = compiled(PRODUCT, {"A": A, "x": A[0]})
    for options in ({"keys": ["i"]}, {"rows": "all"}):
        with pytest.raises(ArgumentError, match="keys= and rows= are for DuckDB"):
            program.to_sql(dialect="spark", **options)
