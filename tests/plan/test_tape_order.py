"""The order of the lines of a tape: each after those that it reads, with few tensors at a time."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd

import ucle
from ucle.plan import relation_nodes as plans
from ucle.plan.relation_tree import nodes
from ucle.program import EinsumProgram


def tapes(program: EinsumProgram) -> list[plans.FusedStep]:
    relations = (step.relation for step in program.compiled.executed.steps)
    return [x for x in relations if isinstance(x, plans.FusedStep)]


def most_held(tape: plans.FusedStep) -> int:
    """The most tensors that lines have made and that later ones, or the results, still read."""
    first = len(tape.operands)
    last = {slot.number: len(tape.lines) for slot in tape.results.values()}
    for place, line in reversed(list(enumerate(tape.lines))):
        for node in nodes(line):
            if isinstance(node, plans.Slot):
                assert node.number < first + place, "a line reads what is made later"
                last.setdefault(node.number, place)
    return max(
        sum(first <= made <= first + place and last[made] >= place for made in last)
        for place in range(len(tape.lines))
    )


def test_tensors_of_windows_do_not_wait_for_each_other(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    values = np.random.default_rng(1).normal(size=(3, 600))
    x = ucle.array(values, axes=("k", "t"))
    deviation = ucle.rolling(x, 200, "t", where=x > -2, min_periods=20).std()
    program = deviation.program(connection, decomposition={"out": []})
    made = tapes(program)
    assert sum(len(tape.lines) for tape in made) > 60
    assert max(map(most_held, made)) <= 24
    frame = pd.DataFrame(values.T).where(values.T > -2)
    expected = frame.rolling(200, min_periods=20).std().to_numpy().T
    with program.execute() as result:
        np.testing.assert_allclose(result["out"].to_numpy(), expected)


def test_many_results_of_one_tape_are_those_of_numpy(connection: duckdb.DuckDBPyConnection) -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(4, 5))
    x = ucle.array(values, axes=("i", "j"))
    tensors, expected = [x], [values]
    for n in range(30):
        one, other = rng.integers(len(tensors), size=2)
        tensors.append(tensors[one] * 0.5 - ucle.tanh(tensors[other]))
        expected.append(expected[one] * 0.5 - np.tanh(expected[other]))
        if n % 7 == 0:
            tensors.append(ucle.lag(tensors[-1], 1, axis="j", fill_value=0.0))
            expected.append(np.pad(expected[-1], ((0, 0), (1, 0)))[:, :-1])
    chosen = rng.permutation(len(tensors))[:12]
    found = ucle.compute(*(tensors[n] for n in chosen), database=connection)
    for n, tensor in zip(chosen, found, strict=True):
        np.testing.assert_allclose(tensor.to_numpy(), expected[n], 1e-12, 1e-12)
