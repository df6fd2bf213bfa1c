"""Programs with an answer that NumPy or scipy gives, checked in every way there is to run them.

The random programs of `ucle.testing` are compared with an oracle that reads the language as the
compiler does: were both to misread what a user means, nobody would notice. Here the answer comes
from a formula that somebody else wrote down, and the oracle has to agree with it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import scipy.sparse

import ucle
from ucle.inputs.table_input import TableInput
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case
from ucle.testing.oracle import assert_equal, evaluate


@dataclass(frozen=True)
class Known(Case):
    """A case whose answer is given."""

    answer: Mapping[str, Any] = field(default_factory=dict)

    def expected(self) -> dict[str, Any]:
        """The given answer."""
        return dict(self.answer)


def known(text: str, answer: Mapping[str, Any], **inputs: Any) -> Known:
    """A program over inputs from memory, and its outputs by name."""
    arrays = {name: _dense(value) for name, value in inputs.items()}
    answers = {name: np.asarray(value) for name, value in answer.items()}
    return Known(text, arrays, inputs, {}, tuple(answers), {}, answers)


def _dense(value: Any) -> Any:
    if isinstance(value, TableInput):
        value = value.relation
    return value.toarray() if scipy.sparse.issparse(value) else np.asarray(value)


def check_known(case: Known, routes: Routes, sample: int = 12) -> None:
    """The oracle agrees with the answer, and so does every way to run the program."""
    meant = evaluate(case.text, case.arrays)
    for name, value in case.answer.items():
        assert_equal(meant[name], value, f"the oracle, tensor {name}\n{case}")
    check_everywhere(case, routes, seed=0, sample=sample)


def run(
    text: str, connection: duckdb.DuckDBPyConnection, decomposition: Any = "auto", **inputs: Any
) -> dict[str, Any]:
    """The outputs of a program as arrays, by name."""
    program = ucle.einsum_program(
        text, database=connection, decomposition=decomposition, inputs=inputs
    )
    with program.execute(connection) as result:
        return {name: result[name].to_numpy() for name in result}
