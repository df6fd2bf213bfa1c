{#- Made by `ucle sql steps.ein --database example.duckdb --input A=edges --decomposition relational --macro`;
    run.py compares it. -#}
{% macro create_steps() %}
CREATE OR REPLACE MACRO "steps"("edges_table" := '"example"."main"."edges"') AS TABLE WITH "A" AS NOT MATERIALIZED (SELECT CAST("src" AS INT) AS "i", CAST("dst" AS INT) AS "j", CAST("weight" AS DOUBLE) AS "val" FROM query_table("edges_table") AS "edges" WHERE CAST("weight" AS DOUBLE) <> 0.0e0), "steps" AS NOT MATERIALIZED (SELECT "A_1"."i", "A_2"."j" AS "l", SUM("A_1"."val" * "A_2"."val") AS "val" FROM "A" AS "A_1" JOIN "A" AS "A_2" ON "A_1"."j" = "A_2"."i" GROUP BY "A_1"."i", "A_2"."j") SELECT "T"."i", "T"."l", "T"."val" FROM (SELECT * FROM "steps" AS "T" WHERE "T"."val" <> 0.0e0) AS "T";
{% endmacro %}
