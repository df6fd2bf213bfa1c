"""Repartitions that exchange keys in blocks give what decomposing to single entries gives."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import combinations, product

import duckdb
import numpy as np
import pytest

import ucle
from ucle.ir.layouts import Layout
from ucle.optimiser.pricing import CostedProgram
from ucle.optimiser.repartition_cost import find_blocks
from ucle.plan.decomposition import Blocks
from ucle.plan.resources import Resources

SHAPES = {"i": 7, "j": 3, "k": 4, "l": 2}


def _subsets(labels: str) -> list[str]:
    return ["".join(x) for n in range(len(labels) + 1) for x in combinations(labels, n)]


def _exchanges(labels: str) -> dict[str, list[str]]:
    """The targets of each source, where either has a key that the other has not."""
    found: dict[str, list[str]] = defaultdict(list)
    for source, target in product(_subsets(labels), repeat=2):
        if set(source) - set(target) and set(target) - set(source):
            found[source].append(target)
    return found


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return ucle.connect(threads=2)


def _stored(
    connection: duckdb.DuckDBPyConnection, array: object, labels: str, keys: str, fill: float
) -> tuple[object, str]:
    """A table that holds an array by some of its labels, and the order of its axes: keys first."""
    order = keys + "".join(label for label in labels if label not in keys)
    program = ucle.einsum_program(
        f"S[{','.join(order)}] = X[{','.join(labels)}]",
        X=ucle.table(array, fill=fill),
        decomposition={"S": keys},
        database=connection,
    )
    with program.execute(connection) as result:
        result["S"].to_table("source", keys=list(keys), replace=True)
    bounds = tuple(SHAPES[label] for label in order)
    shape = bounds[len(keys) :]
    stored = ucle.table("source", list(keys), "val", shape=shape or None, bounds=bounds, fill=fill)
    return stored, order


LIMITS, FILLS = (100, 300, 1 << 17), (0.0, np.inf)
CASES = [
    *product(("ij", "ijk"), FILLS, LIMITS),
    # A case of four labels has as many exchanges as all of the others together.
    *(("ijkl", fill, limit) for fill, limit in zip((0.0, np.inf, 0.0), LIMITS, strict=True)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("labels", "fill", "limit"), CASES)
def test_every_exchange(
    connection: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    labels: str,
    fill: float,
    limit: int,
) -> None:
    """On both routes, with blocks of few and of many positions, the last one short or not."""

    def exchange(
        self: CostedProgram, name: str, source: Layout | None, target: Layout
    ) -> Blocks | None:
        return find_blocks(self, name, source, target) if source else None

    monkeypatch.setattr(CostedProgram, "repartition_blocks", exchange)
    monkeypatch.setattr(
        ucle.program.compile_text, "Resources", partial(Resources, inline_state=limit)
    )
    arrow = duckdb.connect()
    rng = np.random.default_rng(len(labels) + limit)
    shape = [SHAPES[label] for label in labels]
    array = rng.normal(size=shape)
    array[rng.random(shape) < 0.4] = fill
    array[0] = fill  # a tuple that is not stored
    exchanged = 0
    for source, targets in _exchanges(labels).items():
        stored, order = _stored(connection, array, labels, source, fill)
        arrow.register("given", connection.sql("FROM source").to_arrow_table())
        arrow.execute("CREATE OR REPLACE TABLE source AS FROM given").fetchall()
        # Other factors, as equal statements would be one.
        tensors = {f"Z{factor}": (factor, x) for factor, x in enumerate(targets, start=1)}
        program = ucle.einsum_program(
            "\n".join(
                f"{name}[{','.join(labels)}] = {factor} * X[{','.join(order)}]"
                for name, (factor, _) in tensors.items()
            ),
            X=stored,
            decomposition={name: target for name, (_, target) in tensors.items()},
            database=connection,
        )
        exchanged += program.to_sql().count("exchange keys in blocks")
        for place in (connection, arrow):
            with program.execute(place) as result:
                for name, (factor, target) in tensors.items():
                    found = result[name].to_numpy()
                    np.testing.assert_array_equal(found, factor * array, f"{source} -> {target}")
    assert exchanged > (2 if limit == 1 << 17 and len(labels) > 2 else 0)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex128", "complex64"])
def test_every_type(connection: duckdb.DuckDBPyConnection, dtype: str) -> None:
    array = (np.arange(3000 * 40) % 5).reshape(3000, 40).astype(dtype)
    labels = {"i": 3000, "j": 40}
    copy = ucle.einsum_program("S[i,j] = X[i,j]", X=array, decomposition={"S": "i"})
    with copy.execute(connection) as result:
        result["S"].to_table("typed", keys=["i"], replace=True)
    stored = ucle.table(
        "typed", ["i"], "val", shape=(40,), bounds=tuple(labels.values()), dtype=dtype
    )
    program = ucle.einsum_program(
        "Z[i,j] = X[i,j]", X=stored, decomposition={"Z": "j"}, database=connection
    )
    assert "exchange keys in blocks" in program.to_sql()
    with program.execute(connection) as result:
        np.testing.assert_array_equal(result["Z"].to_numpy(), array)


def test_the_cheaper_way_is_taken(connection: duckdb.DuckDBPyConnection) -> None:
    """A matrix of few entries is taken apart entry by entry, a dense one in blocks."""
    for share, exchanged in ((1.0, True), (0.001, False)):
        array = np.zeros((500, 400))
        array[np.random.default_rng(0).random(array.shape) < share] = 1
        copy = ucle.einsum_program("S[i,j] = X[i,j]", X=array, decomposition={"S": "i"})
        with copy.execute(connection) as result:
            result["S"].to_table("some", keys=["i"], replace=True)
        program = ucle.einsum_program(
            "Z[i,j] = X[i,j]",
            X=ucle.table("some", ["i"], "val", shape=(400,), bounds=(500, 400)),
            decomposition={"Z": "j"},
            database=connection,
        )
        assert ("exchange keys in blocks" in program.to_sql()) == exchanged
        with program.execute(connection) as result:
            np.testing.assert_array_equal(result["Z"].to_numpy(), array)


@pytest.mark.sample(2)
@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 3), (2, 3, 0), (0, 0, 0), (1, 1, 1)])
def test_axes_without_positions(
    connection: duckdb.DuckDBPyConnection, shape: tuple[int, int, int]
) -> None:
    array = np.ones(shape)
    text = "Y[i,j,k] = X[i,j,k]; Z[i,j,k] = Y[i,j,k]"
    exchanges = _exchanges("ijk").items()
    for source, target in [(s, target) for s, targets in exchanges for target in targets]:
        program = ucle.einsum_program(
            text,
            X=array,
            decomposition={"Y": source, "Z": target},
            outputs=["Y", "Z"],
            database=connection,
        )
        with program.execute(connection) as result:
            np.testing.assert_array_equal(result["Z"].to_numpy(), array)
