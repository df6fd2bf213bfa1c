"""Ibis tables in and out: expressions before, an EinSum program between, expressions after.

To run it: `python examples/ibis_tables.py`.
"""

from __future__ import annotations

import ibis
import numpy as np

import ucle

rng = np.random.default_rng(0)
NODES, FEATURES = 200, 16

# One connection for both; from ucle, so that it has the kernels.
connection = ibis.duckdb.from_connection(ucle.connect())

# Tables as Ibis has them: an edge list, and an array of features for each node.
features = rng.normal(size=(NODES, FEATURES))
pairs = np.unique(rng.integers(0, NODES, size=(2000, 2)), axis=0)
edges = connection.create_table(
    "edges",
    ibis.memtable(
        {
            "src": pairs[:, 0],
            "dst": pairs[:, 1],
            "weight": rng.random(len(pairs)),
        }
    ),
)
connection.create_table(
    "features", ibis.memtable({"node": np.arange(NODES), "val": features.tolist()})
)

# In: a table by its name; an expression as a view, which the program reads where it lies.
strong = edges.filter(edges.weight > 0.5)
connection.create_view("strong", strong)
program = ucle.einsum_program(
    "mean[i,f] += A[i,j] * H[j,f]; score[i] += mean[i,f] * mean[i,f]",
    A=ucle.table("strong", bounds=[NODES, NODES]),
    H=ucle.table("features", shape=[FEATURES]),
    database=connection.con,
    outputs=["score"],
    decomposition={"score": ["i"]},
)
with program.execute() as result:
    result["score"].to_table("score")

# Out: the table is Ibis' again.
score = connection.table("score")
best = (
    score.join(edges, score.i == edges.src)
    .group_by("i")
    .agg(score=lambda t: t.val.max(), edges=lambda t: t.count())
    .order_by(ibis.desc("score"))
    .limit(5)
)
print(best.execute().round(3).to_string(index=False))

# An expression that is not in the database goes as a stream of Arrow batches.
total = ucle.einsum_program("t += A[i,j]", A=strong, database=connection.con)
with total.execute() as result:
    assert np.isclose(result["t"].to_numpy(), strong.weight.sum().execute())

# The same with NumPy.
matrix = np.zeros((NODES, NODES))
table = edges.execute()
matrix[table["src"], table["dst"]] = np.where(table["weight"] > 0.5, table["weight"], 0)
expected = ((matrix @ features) ** 2).sum(axis=1)
found = np.zeros(NODES)
rows = score.execute()
found[rows["i"]] = rows["val"]
np.testing.assert_allclose(found, expected)
assert best.execute()["i"].tolist() == np.argsort(-expected)[:5].tolist()
