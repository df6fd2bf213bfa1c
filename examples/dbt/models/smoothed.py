"""A layer over what the neighbours of each node hold: an EinSum program as a dbt model."""

import numpy as np

import ucle

NODES, WIDTH = 300, 4


def model(dbt, session):
    """A row for each node, with an array of `WIDTH` numbers."""
    dbt.config(materialized="table")
    program = ucle.einsum_program(
        "mean[i,m] += A[i,l] * H[l,m]; Z[i,n] = relu(mean[i,m] * W[m,n])",
        A=ucle.table(dbt.ref("edges"), bounds=[NODES, NODES]),
        H=dbt.ref("features"),
        W=np.cos(np.arange(8 * WIDTH)).reshape(8, WIDTH),
        database=session.cursor(),
        decomposition={"Z": ["i"]},  # the table has one row for each i
    )
    with program.execute() as result:
        smoothed = result["Z"].to_arrow(keys=["i"])
    return smoothed  # noqa: RET504  # dbt wants one return, and that at the end
