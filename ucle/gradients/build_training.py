"""One training step as a program: a loss, its gradients, and an optimiser's update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.database.session import Database
from ucle.errors import NameResolutionError, did_you_mean
from ucle.foundation.dtypes import DType
from ucle.foundation.names import fold_name
from ucle.gradients.build_gradient import differentiate_program, of_both_passes
from ucle.inputs.labelled_arrays import coordinates_of
from ucle.inputs.operands import is_relation
from ucle.inputs.parameters import parameter
from ucle.inputs.sparse_arrays import is_sparse
from ucle.inputs.table_input import TableInput
from ucle.language.statements import input_labels, names_of_axes
from ucle.language.syntax import accesses
from ucle.optim.descent import Optimiser
from ucle.optim.update_statements import Trained, update_statements
from ucle.options import RUNS
from ucle.run.build import Build, Request, build


def build_training(
    forward: Build,
    database: Database,
    loss: str,
    wrt: Sequence[str],
    optimiser: Optimiser,
    shown: Sequence[str] = (),
) -> Build:
    """Compile a program with one step of an optimiser.

    Args:
        forward: the program.
        database: where its tables are.
        loss: the tensor without axes that is to be small.
        wrt: the inputs that change.
        optimiser: how they do.
        shown: other tensors of the program that are handed out.

    Raises:
        UcleError: see `ucle.program.EinsumProgram.minimize`.
    """
    request, inputs = forward.request, forward.compiled.all_inputs
    wrt = tuple(dict.fromkeys(wrt))
    for name in wrt:
        if name not in request.inputs:
            raise NameResolutionError(
                f"{name} is no input, so it cannot be replaced",
                where="minimize",
                expected="one of " + ", ".join(request.inputs),
                found=name,
                hint=did_you_mean(name, request.inputs),
            )
    defined = [statement.target.tensor for statement in request.statements]
    for name in shown:
        if name not in defined:
            raise NameResolutionError(
                f"no statement computes {name}",
                where="minimize, outputs",
                expected="one of " + ", ".join(defined),
                found=name,
                hint=did_you_mean(name, defined),
            )
    found = differentiate_program(forward, loss, wrt, {})
    used = [x for s in found.statements for x in (s.target, *accesses(s.expression))]
    taken = {fold_name(name) for name in (*request.inputs, *(x.tensor for x in used))}
    labels = {**input_labels(request.statements), **request.labels}
    stated = forward.options.bounds or {}
    shapes = {name: tuple(axis.size for axis in inputs[name].bounds) for name in wrt}
    axes = {name: names_of_axes(request.statements, name, stated) for name in wrt}
    trained = [Trained(name, found.names[name], axes[name], inputs[name].dtype) for name in wrt]
    update = update_statements(optimiser, trained, taken)
    given = dict(request.inputs)
    given |= {name: _varying(given[name]) for name in wrt}
    for state, name in update.states.items():
        given[state] = parameter(np.zeros(shapes[name], inputs[name].dtype.numpy))
    if update.step is not None:
        given[update.step] = parameter(np.zeros((), DType.INT64.numpy))
    before = forward.options.outputs or ()
    outputs = dict.fromkeys((loss, *shown, *before, *update.carry.values()))
    options = of_both_passes(forward.options, request)
    options = replace(options, outputs=tuple(outputs), runs=RUNS, carried=frozenset(update.carry))
    statements = (*found.statements, *update.statements)
    return build(Request(statements, given, labels, update.carry), database, options)


def _varying(value: Any) -> Any:
    """Mark an input so that only its shape is relied on, if it is an array."""
    spec = value if isinstance(value, TableInput) else TableInput(value)
    dense = not is_relation(spec.relation) and not is_sparse(spec.relation)
    dense = dense and coordinates_of("input", spec.relation) is None
    return replace(spec, varies=True) if dense else value
