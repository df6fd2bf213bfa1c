-- Who is two steps away, by the table macro of a program.
SELECT i AS src, l AS dst, val AS weight FROM {{ tensor("steps", edges=ref("edges")) }}
