-- ucle program:
--   Y[i,k] += A[i,j] * A[k,j]
-- Route: native (the extension is loaded).
-- Run it on a connection from ucle.connect(), which loads the kernels; or in any client of DuckDB
-- after LOAD 'ucle.duckdb_extension', which `make extension` builds (docs/extension.md).

-- Y[I,k] += A[I,j] * A[k,j]
CREATE TEMPORARY TABLE "Y" AS
WITH "A_by_i_2" AS NOT MATERIALIZED (
  /* A: 98dc81d.ucle.A_by_i */
  SELECT
    CAST("i" AS INT) AS "i",
    pack(CAST("val" AS DOUBLE[])) AS "val"
  FROM "98dc81d"."ucle"."A_by_i"
), "A_whole_2" AS NOT MATERIALIZED (
  /* A: 98dc81d.ucle.A_whole */
  SELECT
    pack(CAST("val" AS DOUBLE[])) AS "val"
  FROM "98dc81d"."ucle"."A_whole"
)
SELECT
  "A_1"."i",
  mat_vec_mult("A_2"."val", "A_1"."val") AS "val"
FROM "A_by_i_2" AS "A_1"
CROSS JOIN "A_whole_2" AS "A_2";

-- result Y
SELECT
  "i",
  vec_to_list("val") AS "val"
FROM "Y";
