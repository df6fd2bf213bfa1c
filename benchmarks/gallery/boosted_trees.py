"""Predictions of gradient boosting.

What is each flat worth? A hundred trees were fitted elsewhere. Each row goes down all of them, and
the leaves where it ends are added up.
"""

from functools import cache

import numpy as np
from data import columns
from sklearn.ensemble import HistGradientBoostingRegressor
from tables import store

import ucle

PEER = "scikit-learn"
SMALL = {"flats": 1000, "features": 4, "trees": 10}
FULL = {"flats": 200_000, "features": 10, "trees": 100}
FITTED = 5000
DEPTH = 5


def make_data(connection, flats, features, trees):
    rng = np.random.default_rng(0)
    x = {f"f{n}": rng.normal(size=flats) for n in range(features)}
    price = 100 + 9 * x["f0"] * x["f1"] + 5 * np.abs(x["f2"]) + rng.normal(size=flats)
    store(connection, "flats", {"flat": np.arange(flats), **x, "price": price})
    store(connection, "wanted", {"trees": np.array([trees])})


@cache
def fitted(connection):
    """The trees, fitted on the first flats, and the names of the features."""
    past = connection.sql(f"FROM flats ORDER BY flat LIMIT {FITTED}").df()
    names = [name for name in past.columns if name.startswith("f") and name != "flat"]
    ((trees,),) = connection.execute("FROM wanted").fetchall()
    model = HistGradientBoostingRegressor(max_iter=trees, max_depth=DEPTH, early_stopping=False)
    return model.fit(past[names], past.price), names


def program(connection):
    trees, _ = fitted(connection)
    return ucle.models.from_sklearn(trees).program("flats", database=connection, rows="flat")


def by_ucle(connection):
    with program(connection).execute() as result:
        result["variable"].to_table("worth", rows="all", mode="replace")
    return connection.table("worth")


def case_of(nodes, names, place=0):
    """SQL for a tree, as nested cases."""
    node = nodes[place]
    if node["is_leaf"]:
        return str(float(node["value"]))
    low, high = (case_of(nodes, names, node[side]) for side in ("left", "right"))
    test = f"{names[node['feature_idx']]} <= {float(node['num_threshold'])!r}"
    return f"CASE WHEN {test} THEN {low} ELSE {high} END"


def by_sql(connection):
    trees, names = fitted(connection)
    sums = [case_of(tree.nodes, names) for (tree,) in trees._predictors]
    base = float(trees._baseline_prediction[0, 0])
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE predicted AS
        SELECT flat, {base} + {" + ".join(sums)} AS val FROM flats
    """)
    return connection.table("predicted")


def arrays(connection):
    trees, names = fitted(connection)
    return trees, connection.sql(f"SELECT {', '.join(names)} FROM flats ORDER BY flat").df()


def by_peer(trees, flats):
    return trees.predict(flats)


def picture(axes, connection):
    price, worth = columns(
        connection, "SELECT price, val FROM flats JOIN worth USING (flat) WHERE flat < 300"
    )
    axes.scatter(price, worth, s=6)
    axes.set(xlabel="price", ylabel="prediction", title="What flats are worth")
