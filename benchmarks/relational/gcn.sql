-- The purely relational translation: one SELECT with GROUP BY per binary EinSum over COO tables.
CREATE TEMP TABLE gcn AS
WITH
  t0 AS (SELECT d.i, a.j AS k, sum(d.v * a.v) AS v FROM d JOIN a ON d.j = a.i GROUP BY d.i, a.j),
  t1 AS MATERIALIZED (
    SELECT t0.i, d.j AS l, sum(t0.v * d.v) AS v FROM t0 JOIN d ON t0.k = d.i GROUP BY t0.i, d.j
  ),
  t2 AS (SELECT t1.i, h.j AS m, sum(t1.v * h.v) AS v FROM t1 JOIN h ON t1.l = h.i GROUP BY t1.i, h.j),
  t3 AS (SELECT t2.i, w1.j AS n, sum(t2.v * w1.v) AS v FROM t2 JOIN w1 ON t2.m = w1.i GROUP BY t2.i, w1.j),
  h1 AS (SELECT i, n, greatest(v, 0) AS v FROM t3),
  t4 AS (SELECT t1.i, h1.n, sum(t1.v * h1.v) AS v FROM t1 JOIN h1 ON t1.l = h1.i GROUP BY t1.i, h1.n),
  t5 AS (SELECT t4.i, w2.j AS c, sum(t4.v * w2.v) AS v FROM t4 JOIN w2 ON t4.n = w2.i GROUP BY t4.i, w2.j)
SELECT i, c, greatest(v, 0) AS v FROM t5;
