-- The purely relational translation: one SELECT with GROUP BY per binary EinSum over COO tables.
CREATE TEMP TABLE attention AS
WITH
  t0 AS (SELECT x.i, wq.j AS k, sum(x.v * wq.v) AS v FROM x JOIN wq ON x.j = wq.i GROUP BY x.i, wq.j),
  t1 AS (SELECT x.i AS j, wk.j AS k, sum(x.v * wk.v) AS v FROM x JOIN wk ON x.j = wk.i GROUP BY x.i, wk.j),
  t2 AS (SELECT t0.i, a.j, t0.k, t0.v * a.v AS v FROM t0 JOIN a ON t0.i = a.i),
  t3 AS (
    SELECT t2.i, t2.j, sum(t2.v * t1.v) AS v
    FROM t2 JOIN t1 ON t2.j = t1.j AND t2.k = t1.k GROUP BY t2.i, t2.j
  )
SELECT i, j, 0.03125 * v AS v FROM t3;
