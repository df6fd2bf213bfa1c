-- What was bought; each run appends a day.
{{ config(materialized="incremental", incremental_strategy="append") }}
SELECT DISTINCT
    (1000 * {{ var("day") }} + i % 97)::INTEGER AS basket,
    (i * i * {{ var("day") }} % 23)::INTEGER AS product
FROM range(500) t(i)
