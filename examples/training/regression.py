"""Logistic and softmax regression on a table of patients, down to the optimum.

The table has a row for each patient. A view turns its measures into rows of (patient, measure,
value), so that coefficients are called after measures and stages of the disease, and are written
back as tables that say so. The loss is the mean of the negative logarithms of probabilities, with a
penalty on the squares of the coefficients (L2), but not on the intercepts.

To run it: `python examples/training/regression.py`.
"""

from __future__ import annotations

import click
import duckdb
import numpy as np
from tables import store

import ucle
from ucle.run.iterate import Iteration

PENALTY = 0.05

LOGISTIC = f"""
score[i] = sum[k](X[i,k] * w[k]) + b[]
loss = mean[i](softplus(score[i]) - ill[i] * score[i]) + {PENALTY} * sum[k](square(w[k]))
"""

SOFTMAX = f"""
score[i,c] = sum[k](X[i,k] * W[c,k]) + b[c]
right[i] = sum[c](stage[i,c] * score[i,c])
loss = mean[i](logsumexp[c](score[i,c]) - right[i]) + {PENALTY} * sum[c,k](square(W[c,k]))
"""

# Each feature has the mean 0 and the deviation 1; the numbers stay what they are in the table.
FEATURES = """
CREATE OR REPLACE VIEW features AS
SELECT patient, feature, (value - avg(value) OVER f) / stddev_pop(value) OVER f AS value
FROM (UNPIVOT (SELECT patient, age, pressure, sugar FROM patients)
      ON age, pressure, sugar INTO NAME feature VALUE value)
WINDOW f AS (PARTITION BY feature)
"""


def make_patients(connection: duckdb.DuckDBPyConnection, count: int, seed: int) -> None:
    """A table of patients: three measures, whether they are ill, and the stage of the disease."""
    rng = np.random.default_rng(seed)
    age, pressure, sugar = rng.normal([50, 130, 100], [15, 20, 25], (count, 3)).T
    risk = (age - 50) / 15 - (pressure - 130) / 40 + rng.logistic(size=count)
    stages = np.array(["none", "mild", "severe"])[np.digitize(risk, [-0.5, 1.0])]
    columns = {
        "patient": [f"patient {n:04}" for n in range(count)],
        "age": age,
        "pressure": pressure,
        "sugar": sugar,
        "ill": risk > 0.2,
        "stage": stages,
    }
    store(connection, "patients", columns)
    connection.execute(FEATURES)


def logistic(connection: duckdb.DuckDBPyConnection) -> ucle.EinsumProgram:
    """One step of training for whether a patient is ill."""
    program = ucle.einsum_program(
        LOGISTIC,
        X="features",
        ill=ucle.table("patients", ["patient"], "ill"),
        w=ucle.parameter(np.zeros(3)),
        b=ucle.parameter(0.0),
        database=connection,
    )
    return program.minimize("loss", ["w", "b"], ucle.optim.sgd(1.0, momentum=0.5))


def softmax(connection: duckdb.DuckDBPyConnection) -> ucle.EinsumProgram:
    """One step of training for the stage of the disease."""
    program = ucle.einsum_program(
        SOFTMAX,
        X="features",
        stage=ucle.table("patients", ["patient", "stage"], value=1),
        W=ucle.parameter(np.zeros((3, 3))),
        b=ucle.parameter(np.zeros(3)),
        database=connection,
    )
    return program.minimize("loss", ["W", "b"], ucle.optim.sgd(1.5, momentum=0.5))


def train(step: ucle.EinsumProgram) -> Iteration:
    """Descend until no derivative by a coefficient is greater than 1e-8."""
    slope = "max[k](abs(d_w[k]))" if "w" in step.carry else "max[c,k](abs(d_W[c,k]))"
    return step.iterate(until=f"{slope} < 1e-8")


@click.command()
@click.option("--count", default=500, show_default=True, help="Patients.")
@click.option("--seed", default=0, show_default=True)
def main(count: int, seed: int) -> None:
    """Train both models and show their coefficients."""
    with ucle.connect() as connection:
        make_patients(connection, count, seed)
        with train(logistic(connection)) as found:
            print(f"logistic: {found.steps} steps, loss {found.history['loss'][-1]:.6f}")
            found["w_next"].to_table("risk")
            print(connection.sql("FROM risk"))
        with train(softmax(connection)) as found:
            print(f"softmax: {found.steps} steps, loss {found.history['loss'][-1]:.6f}")
            found["W_next"].to_table("risk_of_stages")
            print(connection.sql("PIVOT risk_of_stages ON k USING first(val)"))


if __name__ == "__main__":
    main()
