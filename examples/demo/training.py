"""The demo's training: a network that tells which package a module belongs to.

`derive_task` says with plain SQL which modules are told and which are held out. `train` teaches a
graph convolutional network of two layers with the words and the imports of a module, by Adam, until
what it makes of the modules for validation gets no better. `propagate` is what it is compared with:
packages that spread along imports, without words and without learning.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np

from ucle.demo.graph_programs import count_rows, random_weights
from ucle.errors import InputError
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.parameters import parameter
from ucle.inputs.table_input import TableInput
from ucle.inputs.table_options import table
from ucle.optim import adam
from ucle.program import EinsumProgram, einsum_program

MIN_MODULES = 20
"""Modules with source of a package that takes part."""

HIDDEN = 32
RATE = 0.05
EPOCHS, PATIENCE = 60, 5
"""Steps at most, and how many there are after the best one."""

SECONDS = 20.0
"""After which no step begins, so that a demo on a busy machine ends, too."""

SPREAD, ROUNDS = 0.6, 20
"""The part of a module's packages that comes from its neighbours, and how often it is handed on."""

TASK = f"""
CREATE OR REPLACE TABLE packages AS
SELECT (row_number() OVER (ORDER BY count(*) DESC, package) - 1)::INTEGER AS id, package AS name
FROM (SELECT split_part(name, '.', 1) AS package FROM modules SEMI JOIN bag ON id = module)
GROUP BY package HAVING count(*) >= {MIN_MODULES};

CREATE OR REPLACE TABLE task AS
WITH drawn AS (
    SELECT modules.id AS module, packages.id AS package,
           row_number() OVER (PARTITION BY packages.id ORDER BY md5(modules.name)) AS place,
           ceil(count(*) OVER (PARTITION BY packages.id) / 10.0) AS tenth
    FROM modules SEMI JOIN bag ON modules.id = bag.module
    JOIN packages ON packages.name = split_part(modules.name, '.', 1)
)
SELECT module, package,
       CASE WHEN place <= tenth THEN 'told' WHEN place <= 2 * tenth THEN 'validation'
            ELSE 'held out' END AS part
FROM drawn ORDER BY module;

CREATE OR REPLACE TABLE told AS
SELECT module, package, true AS val FROM task WHERE part = 'told';

CREATE OR REPLACE TABLE validation AS
SELECT module, package, true AS val FROM task WHERE part = 'validation'
"""

NETWORK = """\
L[i,j] = D[i] * A[i,j] * D[j]                       # D^-1/2 (A + I) D^-1/2
h[i,k] = relu(L[i,j] * H[j,w] * W1[w,k] + b1[k])
g[i,k] = when(random_uniform(seed[], {hidden} * i + k) >= 0.5, h[i,k]) / 0.5    # dropout
s[i,c] = L[i,j] * g[j,k] * W2[k,c] + b2[c]
loss  += when(T[i,c], logsumexp[k](s[i,k]) - s[i,c]) / {told}

scores[i,c] = L[i,j] * h[j,k] * W2[k,c] + b2[c]     # without dropout
validation += when(V[i,c], logsumexp[k](scores[i,k]) - scores[i,c]) / {validation}
"""

PROPAGATION = """\
next[i,c] = {spread} * D[i] * A[i,j] * D[j] * now[j,c] + {rest:.12g} * T[i,c]
"""

PREDICTED = """
CREATE OR REPLACE TABLE {0} AS
SELECT i AS module, list_position(val, list_max(val)) - 1 AS package,
       1 / list_sum(list_transform(val, lambda x: exp(x - list_max(val)))) AS sure
FROM {0}_scores
"""


@dataclass(frozen=True)
class Epoch:
    """The losses before a step of training, and how long it took."""

    loss: float
    validation: float
    seconds: float


@dataclass(frozen=True)
class Training:
    """The course of a training; `best` is the number of the epoch whose scores were kept."""

    epochs: tuple[Epoch, ...]
    best: int
    ended: str
    """The reason why the training ended."""

    @property
    def step(self) -> float:
        """Seconds of a step, the first one left out: it makes what does not change."""
        return statistics.median([epoch.seconds for epoch in self.epochs[1:]] or [0.0])


def derive_task(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables of the task: ``packages``, ``task``, ``told`` and ``validation``.

    Raises:
        InputError: there are not two packages that are large enough.
    """
    for statement in TASK.split(";"):
        connection.execute(statement).fetchall()
    packages = count_rows(connection, "packages")
    if packages < 2:
        raise InputError(
            "too few packages to tell them apart",
            where="demo --train",
            expected=f"two packages with {MIN_MODULES} modules with source or more",
            found=f"{packages}",
            hint="a greater --limit reads more modules",
        )


def parts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """The number of modules in each part: told, for validation, and held out."""
    rows = connection.execute("SELECT part, count(*) FROM task GROUP BY part").fetchall()
    return {"told": 0, "validation": 0, "held out": 0, **dict(rows)}


def network(connection: duckdb.DuckDBPyConnection) -> str:
    """The text of the network."""
    return NETWORK.format(
        hidden=HIDDEN,
        told=count_rows(connection, "told"),
        validation=count_rows(connection, "validation"),
    )


def training_step(connection: duckdb.DuckDBPyConnection) -> EinsumProgram:
    """The program of a step; beside the loss it hands out `validation` and `scores`."""
    words = max(count_rows(connection, "vocabulary"), 1)
    packages = count_rows(connection, "packages")
    weights = {
        "W1": random_weights(words, HIDDEN, 1),
        "b1": np.zeros(HIDDEN),
        "W2": random_weights(HIDDEN, packages, 2),
        "b2": np.zeros(packages),
    }
    modules = count_rows(connection, "modules")
    inputs = {
        **graph_inputs(modules, packages),
        "H": table("bag", bounds=[modules, words]),
        "V": table("validation", bounds=[modules, packages]),
        "seed": parameter(0),
        **{name: parameter(weight) for name, weight in weights.items()},
    }
    forward = einsum_program(network(connection), inputs=inputs, database=connection)
    shown = ["validation", "scores"]
    return forward.minimize("loss", list(weights), adam(RATE), outputs=shown)


def graph_inputs(modules: int, packages: int) -> dict[str, Any]:
    """The import graph, and the modules whose packages are told."""
    tables: dict[str, TableInput] = {
        "D": table("scaling", bounds=[modules]),
        "A": table("adjacency", bounds=[modules, modules]),
        "T": table("told", bounds=[modules, packages]),
    }
    return tables


def train(
    connection: duckdb.DuckDBPyConnection,
    step: EinsumProgram,
    seconds: float = SECONDS,
    watch: Callable[[int, Epoch], object] = lambda number, epoch: None,
) -> Training:
    """Train, and store the scores with the least validation loss and what they say.

    The tables are called ``network_scores`` and ``network``.

    Args:
        connection: with the tables of the demo and of the task.
        step: the program of a step.
        seconds: after which no step begins.
        watch: receives each epoch and its number.
    """
    epochs: list[Epoch] = []
    best, kept, ended = 0, None, f"{EPOCHS} epochs are all"
    with step.prepare(connection) as run:
        first = time.perf_counter()
        for number in range(EPOCHS):
            start = time.perf_counter()
            if number and start - first > seconds:
                ended = f"{seconds:g} s are over"
                break
            result = run(seed=number)
            loss, validation = result["loss"].item(), result["validation"].item()
            epochs.append(Epoch(loss, validation, time.perf_counter() - start))
            watch(number, epochs[-1])
            if kept is None or epochs[-1].validation < epochs[best].validation:
                best, kept = number, result["scores"]
            elif number - best >= PATIENCE:
                ended = f"validation got no better in {PATIENCE} epochs"
                break
        assert kept is not None
        kept.to_table("network_scores", keys=["i"], mode="replace")
    connection.execute(PREDICTED.format("network")).fetchall()
    return Training(tuple(epochs), best, ended)


def propagate(connection: duckdb.DuckDBPyConnection) -> None:
    """Let packages spread along imports; tables are ``propagation_scores`` and ``propagation``."""
    modules, packages = count_rows(connection, "modules"), count_rows(connection, "packages")
    program = einsum_program(
        PROPAGATION.format(spread=SPREAD, rest=1 - SPREAD),
        inputs={
            **graph_inputs(modules, packages),
            "now": parameter(np.zeros((modules, packages))),
        },
        database=connection,
    )
    with program.iterate({"now": "next"}, max_steps=ROUNDS) as found:
        found["next"].to_table("propagation_scores", keys=["i"], mode="replace")
    connection.execute(PREDICTED.format("propagation")).fetchall()


def accuracy(connection: duckdb.DuckDBPyConnection, predicted: str) -> float:
    """The share of modules held out whose package is what a table says it is."""
    ((share,),) = connection.execute(
        f"""
        SELECT avg(coalesce(predicted.package = task.package, false)::INTEGER)
        FROM task LEFT JOIN {predicted} AS predicted USING (module) WHERE part = 'held out'
        """
    ).fetchall()
    return float(share)


def share_of_the_largest(connection: duckdb.DuckDBPyConnection) -> tuple[str, float]:
    """The package with the most modules, and its share of those held out."""
    ((name, share),) = connection.execute(
        """
        SELECT (SELECT name FROM packages WHERE id = 0), avg((package = 0)::INTEGER)
        FROM task WHERE part = 'held out'
        """
    ).fetchall()
    return str(name), float(share)


def surest_mistakes(
    connection: duckdb.DuckDBPyConnection, count: int = 8
) -> list[tuple[str, str, str]]:
    """Modules held out that are taken for another package's, and how surely."""
    return connection.execute(
        """
        SELECT modules.name, packages.name, printf('%.0f %%', 100 * sure)
        FROM task JOIN network USING (module)
        JOIN modules ON modules.id = module JOIN packages ON packages.id = network.package
        WHERE part = 'held out' AND network.package <> task.package
        ORDER BY sure DESC, modules.name LIMIT ?
        """,
        [count],
    ).fetchall()
