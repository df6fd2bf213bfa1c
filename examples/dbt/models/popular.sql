-- In how many baskets each product was: a script of ucle, which dbt runs without it.
-- depends_on: {{ ref("baskets") }}
{{ config(materialized="maintained") }}
{{ refresh_popular() }}
