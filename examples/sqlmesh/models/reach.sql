MODEL (name graph.reach, kind FULL, depends_on [graph.edges], columns (src INT, dst INT, weight DOUBLE));

SELECT i AS src, l AS dst, val AS weight FROM @tensor('steps', edges := graph.edges)
