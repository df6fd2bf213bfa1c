-- Downstream of the program, plain SQL again.
SELECT i AS node, list_sum(val) AS total
FROM {{ ref("smoothed") }}
ORDER BY total DESC
LIMIT 10
