MODEL (name graph.edges, kind FULL);

SELECT src, dst, 1.0 / count(*) OVER (PARTITION BY src) AS weight
FROM (SELECT DISTINCT (i % 300)::INTEGER AS src, (i * i % 299)::INTEGER AS dst FROM range(20000) t(i))
WHERE src <> dst
