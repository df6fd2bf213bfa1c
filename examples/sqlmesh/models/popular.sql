-- In how many baskets each product was: the baskets of all days, of which those of a day are computed.
MODEL (
  name shop.popular,
  kind CUSTOM (materialization 'maintained', materialization_properties (script = 'popular.sql')),
  depends_on [raw.baskets],
  columns (product INT, baskets BIGINT)
);

SELECT p AS product, val AS baskets FROM main.popular
