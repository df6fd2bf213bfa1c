"""`ucle.iterate` on lazy tensors, against loops in NumPy."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse as sp
from leftovers import temporary_objects

import ucle
from ucle.errors import (
    ArgumentError,
    ArgumentTypeError,
    LabelError,
    NotConvergedWarning,
    ValueTypeError,
)
from ucle.run import script

Connection = duckdb.DuckDBPyConnection
Array = np.ndarray[Any, Any]


def chain(seed: int, n: int = 12) -> Array:
    """Shares of a random walk, by column."""
    weights = np.random.default_rng(seed).random((n, n)) + 0.1
    return weights / weights.sum(axis=0)


@pytest.mark.parametrize("seed", range(3))
def test_one_tensor(seed: int, connection: Connection) -> None:
    P, before = chain(seed), temporary_objects(connection)
    start = np.eye(12)[0]
    with ucle.iterate(
        lambda x: ucle.array(P) @ x,
        start,
        until=lambda new, old: abs(new - old).max() < 1e-9,
        watch=lambda new, old: {"first": new[0], "whole": old.sum()},
        database=connection,
    ) as found:
        x, first, moved = start, [], []
        for _ in range(found.steps):
            x, old = P @ x, x
            first.append(x[0])
            moved.append(abs(x - old).max())
        np.testing.assert_allclose(found.state.to_numpy(), x, atol=1e-14)
        assert set(found.history) == {"condition", "first", "whole"}
        np.testing.assert_allclose(found.history["first"], first)
        np.testing.assert_allclose(found.history["whole"], 1)
        np.testing.assert_allclose(found.history["condition"], moved, atol=1e-14)
        assert found.converged
        assert moved[-1] < 1e-9 <= moved[-2]
    assert temporary_objects(connection) == before


def test_a_tuple_whose_parts_change_places() -> None:
    """They are the same array at first, which the step reads, too."""
    z = np.array([1.0, 2.0])
    found = ucle.iterate(lambda a, b: (b, a + b + ucle.array(z)), (z, z), max_steps=4)
    a, b = z, z
    for _ in range(4):
        a, b = b, a + b + z
    assert [x.to_numpy().tolist() for x in found.state] == [a.tolist(), b.tolist()]


def test_a_tensor_of_the_state_is_another_where_the_step_reads_it() -> None:
    start = ucle.array([1.0, 0.0])
    found = ucle.iterate(lambda x: 0.5 * x + start, start, max_steps=3)
    assert found.state.to_numpy().tolist() == [1.875, 0]
    doubled = ucle.iterate(lambda x: x + 1, start * 2, max_steps=2)  # which is computed first
    assert doubled.state.to_numpy().tolist() == [4, 2]


@pytest.mark.parametrize("shape", [(), (1,), (3, 1), (1, 3), (1, 1)])
def test_axes_of_one_position(shape: tuple[int, ...]) -> None:
    start = np.ones(shape)
    found = ucle.iterate(lambda x, y: (x + y, y * 2), (start, start), max_steps=3)
    x, y = found.state
    assert x.to_numpy().shape == y.to_numpy().shape == shape
    np.testing.assert_array_equal(x.to_numpy(), start * 8)
    np.testing.assert_array_equal(y.to_numpy(), start * 8)


def test_axes_with_names_may_come_in_another_order() -> None:
    W = np.arange(6.0).reshape(2, 3)
    X = ucle.array(np.eye(3), axes=("b", "c"))
    state = ucle.array(W, axes=("a", "b"))
    # The product has c and a, in some order.
    found = ucle.iterate(lambda w: (X @ w).named("b", "a") + 1, state, max_steps=2)
    np.testing.assert_array_equal(found.state.to_numpy(), W + 2)


@pytest.mark.sample(1)
def test_tables_and_sparse_arrays(connection: Connection) -> None:
    """A frontier: what is reached from the first node, step by step."""
    rng = np.random.default_rng(5)
    G = sp.csr_array((rng.random((30, 30)) < 0.08) * 1.0)
    reached: Array = np.zeros(30, bool)
    reached[0] = True
    connection.execute("CREATE TEMP TABLE start AS SELECT 0 AS node, true AS val")
    seeds: list[Any] = [
        ucle.table("start", ["node"], "val", bounds=[30]),
        sp.coo_array((np.array([True]), (np.array([0]),)), shape=(30,)),
        reached,
    ]
    edges = ucle.array(G > 0)
    steps = 6
    for _ in range(steps):
        reached = reached | (((G > 0).T @ reached) > 0)
    for seed in seeds:
        found = ucle.iterate(
            lambda f: f | (edges & f[:, None]).any(axis=0),
            ucle.tensor(seed, ndim=1)
            if isinstance(seed, ucle.inputs.table_input.TableInput)
            else seed,
            max_steps=steps,
            database=connection,
        )
        np.testing.assert_array_equal(found.state.to_numpy(), reached)


@pytest.mark.parametrize("seed", range(2))
def test_k_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal(c, 0.3, (15, 2)) for c in ((0, 0), (3, 0), (0, 3))])
    start = points[[0, 15, 30]] + 0.2
    X = ucle.array(points, axes=("point", "x"))

    def step(centres: ucle.Tensor) -> ucle.Tensor:
        far = ((X - centres) ** 2).sum("x")
        near = (far == far.min("centre")).astype("float64")
        return (near * X).sum("point") / near.sum("point")

    state = ucle.array(start, axes=("centre", "x"))
    found = ucle.iterate(step, state, until=lambda new, old: abs(new - old).max() == 0)
    centres = start
    for _ in range(found.steps):
        near = ((points[:, None] - centres) ** 2).sum(2).argmin(1)
        centres = np.array([points[near == n].mean(0) for n in range(3)])
    assert found.converged
    np.testing.assert_allclose(found.state.to_numpy(), centres)


def test_conditions() -> None:
    def run(until: Any) -> Any:
        return ucle.iterate(lambda x: x / 2, np.array([8.0, 4.0]), until=until, max_steps=20)

    for until, steps in (
        (lambda new, old: new.max() < 0.7, 4),
        (lambda new, old: new.sum() <= 0.75, 4),
        (lambda new, old: (new < 3).all(), 2),
        (lambda new, old: (new.max() < 3) & (old.max() < 3), 3),
        (lambda new, old: new.max() == 1, 3),
        (lambda new, old: -new.max() > -1.5, 3),
        (lambda new, old: new.max() < 1, 4),
        (lambda new, old: new.max() < old.min() / 3, 21),
    ):
        if steps > 20:
            with pytest.warns(NotConvergedWarning):
                assert run(until).steps == 20
        else:
            assert run(until).steps == steps


def test_checkpoints(connection: Connection) -> None:
    ucle.iterate(
        lambda a, b: {"a": a + 1, "b": b + a},
        {"a": np.zeros(2), "b": np.zeros(2)},
        max_steps=3,
        checkpoint={"b": "so_far"},
        database=connection,
    )
    rows = connection.execute("FROM so_far ORDER BY ALL").fetchall()
    assert [row[-1] for row in rows] in ([3.0, 3.0], [[3.0, 3.0]], [(3.0, 3.0)])


def test_what_is_wrong() -> None:
    x = np.ones(3)

    def twice(x: Any) -> Any:
        return x * 2

    for step, state, until, error, match in (
        (lambda x: x.sum(), x, None, LabelError, "other axes"),
        (lambda x: x[:2], x, None, LabelError, "other axes"),
        (lambda x: (x, x), x, None, ArgumentTypeError, "put together"),
        (lambda a, b: a, (x, x), None, ArgumentTypeError, "put together"),
        (lambda a, b: {"a": a}, {"a": x, "b": x}, None, ArgumentTypeError, "put together"),
        (twice, x, lambda new, old: new < 1, LabelError, "one number"),
        (twice, x, lambda new, old: True, ArgumentTypeError, "no tensor"),
        (twice, x, lambda new, old: new.sum(), ValueTypeError, "true or false"),
    ):
        with pytest.raises(error, match=match):
            ucle.iterate(step, state, until, max_steps=2)
    with pytest.raises(ArgumentError, match="nothing ends the loop"):
        ucle.iterate(twice, x)
    with pytest.raises(ArgumentError, match="used twice"):
        ucle.iterate(twice, x, max_steps=2, watch=lambda new, old: {"state": new.sum()})
    with pytest.raises(ArgumentTypeError, match="have names"):
        ucle.iterate(twice, x, max_steps=2, watch=lambda new, old: new.sum())  # type: ignore[arg-type]


@pytest.mark.sample(1)
@pytest.mark.parametrize("rows", ["('a', 'b'), ('b', 'c'), ('b', 'd')", "(0, 1), (1, 2), (1, 3)"])
def test_a_state_that_is_computed_is_as_long_as_beside_the_step(rows: str) -> None:
    """Alone, the state would have only pages with links, and each would get a half."""
    with ucle.connect() as connection:
        connection.execute(f"CREATE TABLE links AS FROM (VALUES {rows}) t(x, y)")
        links = ucle.tensor("links", axes=("src", "dst"), database=connection)
        out = links.sum("dst")

        def step(rank: ucle.Tensor) -> ucle.Tensor:
            return 0.5 * links.dot(rank, axis="src").rename({"dst": "src"}) + 0.5 * rank

        start = (out >= 0) / (out >= 0).sum()
        unrolled = step(step(start)).to_numpy()
        found = ucle.iterate(step, start, max_steps=2, database=connection)
        np.testing.assert_allclose(found.state.to_numpy(), unrolled)
        assert unrolled.tolist() == [0.0625, 0.1875, 0.25, 0.25]
        mixed = ucle.iterate(
            lambda rank, total: (step(rank), total + rank.sum()),
            (start, 0.0),
            max_steps=2,
            database=connection,
        )
        np.testing.assert_allclose(mixed.state[0].to_numpy(), unrolled)


def test_a_loop_that_runs_again_writes_no_script(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []
    original = script.script_of

    def count(*args: Any, **options: Any) -> Any:
        written.append(args)
        return original(*args, **options)

    monkeypatch.setattr(script, "script_of", count)
    connection.execute(
        "CREATE OR REPLACE TABLE roads AS SELECT i, (i + 1) % 9 AS j FROM range(9) t(i)"
    )
    roads = ucle.tensor("roads", axes=("src", "dst"), database=connection)
    counts, states = [], []
    for _ in range(2):
        found = ucle.iterate(
            lambda x: 0.5 * roads.dot(x, axis="src").rename({"dst": "src"}) + x / 4,
            ucle.array(np.arange(9.0), axes=("src",)),
            max_steps=3,
        )
        states.append(found.state.to_numpy())
        counts.append(len(written))
    assert counts[0] == counts[1] > 0
    np.testing.assert_array_equal(*states)
