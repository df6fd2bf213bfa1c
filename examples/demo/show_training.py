"""Report the training of the demo (`ucle.demo.training`), from task to result."""

from __future__ import annotations

import time

import duckdb

from ucle.demo.graph_programs import count_rows
from ucle.demo.report import Echo, echo_rows, heading, indented
from ucle.demo.training import (
    MIN_MODULES,
    ROUNDS,
    SECONDS,
    Epoch,
    accuracy,
    derive_task,
    network,
    parts,
    propagate,
    share_of_the_largest,
    surest_mistakes,
    train,
    training_step,
)


def show_training(
    connection: duckdb.DuckDBPyConnection, echo: Echo, limit: float, *, all_sql: bool
) -> None:
    """Train a network to tell packages, and compare it with what does without it.

    Args:
        connection: with the tables of the demo.
        echo: prints a line, or several.
        limit: seconds after which no step begins, if that is less than those of the demo.
        all_sql: whether the script of a step is printed.
    """
    derive_task(connection)
    heading(echo, "Which package is a module of? A graph convolutional network learns it")
    packages, sizes = count_rows(connection, "packages"), parts(connection)
    echo(
        f"  {packages} packages of {MIN_MODULES} modules or more: {sizes['told']:,} modules are "
        f"told, {sizes['validation']:,} for validation, {sizes['held out']:,} held out\n"
    )
    echo(indented(network(connection)))
    echo(
        "  where A is the import graph without directions and with self-loops, D its degrees to "
        "the\n  power -1/2, H the bag of words (tf-idf), T the modules that are told, and V those "
        "for validation"
    )
    start = time.perf_counter()
    step = training_step(connection)
    compiled = time.perf_counter() - start
    vertices = len(step.compiled.program.vertices)
    echo(
        f"\nA step of training is one script of {vertices} vertices: loss, gradients, and Adam"
        + ("" if all_sql else " (--all-sql prints it)")
    )
    if all_sql:
        echo(indented(step.to_sql()))

    def watch(number: int, epoch: Epoch) -> None:
        if number % 5 == 0:
            losses = f"loss {epoch.loss:.4f}, of validation {epoch.validation:.4f}"
            echo(f"  epoch {number:2}: {losses}")

    training = train(connection, step, min(SECONDS, limit), watch)
    echo(
        f"  ended after {len(training.epochs)}, as {training.ended}; epoch {training.best} is kept"
    )
    first = training.epochs[0].seconds
    echo(
        f"\nTime: {training.step:.3f} s for a step, {first:.1f} s for the first one, which makes "
        f"what does not\n  change, and {compiled:.1f} s to compile it"
    )
    propagate(connection)
    echo(f"\nRight, of {sizes['held out']:,} modules held out")
    largest, share = share_of_the_largest(connection)
    spread = f"label propagation: the packages of neighbours, handed on {ROUNDS} times"
    rows = [
        (f"{accuracy(connection, 'network'):.1%}", "the network"),
        (f"{accuracy(connection, 'propagation'):.1%}", spread),
        (f"{share:.1%}", f"the package with most modules, {largest}, for all"),
    ]
    echo_rows(echo, ("share", "by"), rows)
    echo("\nWhere the network is surest, and wrong")
    echo_rows(echo, ("module", "taken for one of", "surely"), surest_mistakes(connection))
