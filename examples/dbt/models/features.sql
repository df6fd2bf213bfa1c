-- Eight numbers for every node, as an array.
SELECT i::INTEGER AS node, list(sin(i * j) ORDER BY j)::DOUBLE[8] AS val
FROM range(300) t(i), range(8) s(j)
GROUP BY i
