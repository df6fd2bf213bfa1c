"""Scores of customers by a pipeline of scikit-learn.

Who is about to leave? A fitted pipeline fills gaps, scales numbers, gives each plan a column, and
multiplies by coefficients. It reads the columns of the table by their names, and no row leaves the
database.
"""

from functools import cache

import numpy as np
import pyarrow as pa
from data import columns
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables import store

import ucle

PEER = "scikit-learn"
SMALL = {"customers": 2000}
FULL = {"customers": 1_000_000}
NUMBERS = ["months", "spent", "visits", "calls"]
PLANS = np.array(["basic", "family", "team", "business", "student"])
FITTED = 1000


def make_data(connection, customers):
    rng = np.random.default_rng(0)
    numbers = {name: rng.lognormal(2, 1, customers) for name in NUMBERS}
    plan = rng.integers(len(PLANS), size=customers)
    leaves = numbers["calls"] + 3 * plan > numbers["visits"] + rng.normal(8, 4, customers)
    gaps = rng.random(customers) < 0.1
    numbers["spent"] = pa.array(numbers["spent"], mask=gaps)
    names = {"customer": np.arange(customers), **numbers, "plan": PLANS[plan], "leaves": leaves}
    store(connection, "customers", names)


@cache
def pipeline(connection):
    """The pipeline, fitted on the first customers."""
    past = connection.sql(f"FROM customers ORDER BY customer LIMIT {FITTED}").df()
    parts = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
        (OneHotEncoder(handle_unknown="ignore"), ["plan"]),
    )
    return make_pipeline(parts, LogisticRegression()).fit(past, past.leaves.astype(int))


def program(connection):
    model = ucle.models.from_sklearn(pipeline(connection), outputs=["probabilities"])
    return model.program("customers", database=connection, rows="customer")


def by_ucle(connection):
    with program(connection).execute() as result:
        result["probabilities"].to_table("scores", rows="all", mode="replace")
    return connection.table("scores")


def by_sql(connection):
    fitted = pipeline(connection)
    parts, regression = fitted[0], fitted[1]
    imputer, scaler = parts.named_transformers_["pipeline"]
    (plans,) = parts.named_transformers_["onehotencoder"].categories_
    weights = regression.coef_[0]
    terms = [
        f"(coalesce({name}, {fill}) - {mean}) / {scale} * {weight}"
        for name, fill, mean, scale, weight in zip(
            NUMBERS, imputer.statistics_, scaler.mean_, scaler.scale_, weights, strict=False
        )
    ]
    cases = " ".join(
        f"WHEN '{plan}' THEN {weight}"
        for plan, weight in zip(plans, weights[len(NUMBERS) :], strict=True)
    )
    score = " + ".join([*terms, f"CASE plan {cases} ELSE 0 END", str(regression.intercept_[0])])
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE scored AS
        WITH sums AS (SELECT customer, 1 / (1 + exp(-({score}))) AS p FROM customers)
        SELECT customer, 0 AS class, 1 - p AS val FROM sums
        UNION ALL SELECT customer, 1, p FROM sums
    """)
    return connection.table("scored")


def arrays(connection):
    return pipeline(connection), connection.sql("FROM customers ORDER BY customer").df()


def by_peer(fitted, customers):
    return fitted.predict_proba(customers)


def picture(axes, connection):
    (scores,) = columns(connection, "SELECT val FROM scores WHERE i2 = 1")
    axes.hist(scores, bins=40)
    axes.set(xlabel="probability", ylabel="customers", title="Who is about to leave")
