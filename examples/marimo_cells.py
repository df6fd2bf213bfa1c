"""Cells of marimo: a slider, a program over a table, and its result, which follow each other.

To look at it: `marimo edit examples/marimo_cells.py`; as a script it runs all cells once.
"""

import marimo

app = marimo.App()

with app.setup:
    import marimo as mo
    import numpy as np

    import ucle


@app.cell
def _():
    connection = ucle.connect()
    connection.execute("""
        CREATE TABLE follows AS
        SELECT i % 40 AS src, (i * i + i // 40) % 40 AS dst, count(*)::DOUBLE AS times
        FROM range(200) t(i) GROUP BY ALL
    """)
    return (connection,)


@app.cell
def _():
    most = mo.ui.slider(1, 10, value=3, label="how many")
    most  # noqa: B018  # what a cell ends with is shown
    return (most,)


@app.cell
def _(connection, most):
    best = ucle.einsum_program(
        """
        near[i,l] = A[i,l] + 0.5 * sum[j](A[i,j] * A[j,l])
        closest[i,r] = arg_top_k[l,r](near[i,l])
        """,
        A="follows",
        bounds={"i": 40, "l": 40, "r": most.value},
        outputs=["closest"],
        database=connection,
    ).execute()
    best  # noqa: B018
    return (best,)


@app.cell
def _(best, connection, most):
    links = np.zeros((40, 40))
    for src, dst, times in connection.execute("FROM follows").fetchall():
        links[src, dst] = times
    near = links + 0.5 * links @ links
    order = np.argsort(-near, axis=1, kind="stable")[:, : most.value]
    np.testing.assert_array_equal(best["closest"].to_numpy(), order)
    print(f"the {most.value} closest of each of {len(order)}")


if __name__ == "__main__":
    app.run()
