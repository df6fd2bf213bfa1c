"""Steps of an optimiser one after the other, against the same in NumPy."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ucle

Connection = duckdb.DuckDBPyConnection
Array = np.ndarray[Any, Any]

TEXT = """
p[i] = sigmoid(sum[j](x[i,j] * keep[i,j] * w[j]) + b[])
loss[] = mean[i](softplus(p[i]) - y[i] * p[i])
"""
RNG = np.random.default_rng(3)
X = RNG.normal(size=(30, 4)) * (RNG.random((30, 4)) < 0.5)
Y = (RNG.random(30) < 0.4) * 1.0
RATE, BETAS, EPS, DECAY = 0.05, (0.9, 0.999), 1e-8, 0.01


def keep(step: int) -> Any:
    return ucle.random.bernoulli(0.8, seed=step)


def by_numpy(steps: int) -> tuple[list[float], Array, float]:
    """Losses, and both parameters after some steps of Adam, by hand."""
    w, b = np.zeros(4), 0.0
    means, squares, losses = np.zeros(5), np.zeros(5), []
    for step in range(steps):
        x = X * keep(step).array(X.shape)
        p = 1 / (1 + np.exp(-(x @ w + b)))
        losses.append(float(np.mean(np.log1p(np.exp(p)) - Y * p)))
        d = (1 / (1 + np.exp(-p)) - Y) / 30 * p * (1 - p)
        g = np.append(x.T @ d + DECAY * w, d.sum())
        means = BETAS[0] * means + (1 - BETAS[0]) * g
        squares = BETAS[1] * squares + (1 - BETAS[1]) * g * g
        share = means / (1 - BETAS[0] ** (step + 1))
        size = np.sqrt(squares / (1 - BETAS[1] ** (step + 1)))
        move = RATE * share / (size + EPS)
        w, b = w - move[:4], b - float(move[4])
    return losses, w, b


def training(connection: Connection, x: Any = X) -> ucle.EinsumProgram:
    inputs = {"x": x, "y": Y, "w": np.zeros(4), "b": np.array(0.0)}
    kept = ucle.parameter(np.ones(X.shape, bool))
    program = ucle.einsum_program(TEXT, inputs={**inputs, "keep": kept}, database=connection)
    adam = ucle.optim.adam(RATE, BETAS, eps=EPS, weight_decay={"w": DECAY})
    return program.minimize("loss", ["w", "b"], adam)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["array", "table"])
def test_adam_with_dropout(kind: str, connection: Connection) -> None:
    losses, w, b = by_numpy(12)
    if kind == "table":
        connection.execute("CREATE OR REPLACE TEMP TABLE points (i INTEGER, j INTEGER, v DOUBLE)")
        rows = [(int(i), int(j), float(X[i, j])) for i, j in np.argwhere(X)]
        connection.executemany("INSERT INTO points VALUES (?, ?, ?)", rows)
    x = X if kind == "array" else ucle.table("points", bounds=X.shape)
    with training(connection, x).prepare() as run:
        found = []
        for step in range(12):
            result = run(keep=keep(step))
            found.append(float(result["loss"].to_numpy()))
        np.testing.assert_allclose(found, losses, rtol=1e-12)
        np.testing.assert_allclose(result["w_next"].to_numpy(), w, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(result["b_next"].to_numpy(), b, rtol=1e-9)
        assert int(run.state["step"].to_numpy()) == 12


def test_steps_after_the_first_compile_nothing(connection: Connection, caplog: Any) -> None:
    with training(connection).prepare() as run:
        run(keep=keep(0))
        run(keep=keep(1))
        with caplog.at_level("DEBUG", logger="ucle"):
            run(keep=keep(2))
        loggers = {record.name for record in caplog.records}
        assert loggers == {"ucle.execute"}


def test_training_by_iterate(connection: Connection) -> None:
    step = training(connection)
    losses = step.iterate(max_steps=12).history["loss"]
    assert (np.diff(losses) < 0).all()
    found = step.iterate(until=f"loss[] < {losses[8]!r}".replace("np.float64", ""), max_steps=20)
    assert found.converged
    assert found.steps == 10
    np.testing.assert_array_equal(found.history["loss"], losses[:10])


def test_parameters_in_tables_are_planned_as_arrays(native: Connection) -> None:
    """They lie in the layout of their table in the first step alone."""
    rng = np.random.default_rng(0)
    x, y, W = rng.normal(size=(200, 300)), rng.normal(size=(200, 256)), rng.normal(size=(300, 256))
    rows = pa.table({"j": np.arange(300, dtype=np.int32), "val": list(W)})
    native.register("rows of weights", rows)
    native.execute('CREATE TEMP TABLE weights AS FROM "rows of weights"').fetchall()
    stored = ucle.table("weights", ["j"], "val", shape=(256,), bounds=W.shape)
    text = "h[i,k] = tanh(x[i,j] * W[j,k]); loss = sum[i,k](square(h[i,k] - y[i,k]))"
    layouts = []
    for given in (W, stored):
        program = ucle.einsum_program(text, inputs={"x": x, "y": y, "W": given}, database=native)
        with program.minimize("loss", "W", ucle.optim.sgd(1e-3)).prepare() as run:
            run()
            layouts.append(run.state["W"].layout)
    assert layouts[0] == layouts[1]
    native.execute("DROP TABLE weights").fetchall()
    native.unregister("rows of weights")
