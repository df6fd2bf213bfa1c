"""The gradient of a compiled program: its statements with their backward pass, compiled."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.database.session import Database
from ucle.errors import NameResolutionError, UnsupportedError
from ucle.foundation.dtypes import DType
from ucle.foundation.names import unique_names
from ucle.gradients.differentiate import Gradients, differentiate
from ucle.inputs.sparse_arrays import SparseArray, is_sparse, to_coordinates
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import TableInput
from ucle.language.statements import input_labels
from ucle.options import Options
from ucle.plan.sources import TableSource
from ucle.run.build import Build, Request, build
from ucle.stats.measure import MeasuredInput


def stored_entries(name: str, value: Any, bound: BoundInput) -> TableInput | None:
    """Return an input that differs from 0 where another has entries; None where it is full.

    Args:
        name: the other one, for messages.
        value: as it was passed.
        bound: the same input, bound.

    Raises:
        UnsupportedError: its rows hold arrays.
    """
    source = bound.source
    if not isinstance(source, TableSource):
        return None
    spec = value if isinstance(value, TableInput) else TableInput(value)
    if is_sparse(spec.relation):
        entries = to_coordinates(spec.relation)
        ones = np.ones(entries.nnz, np.int64)
        return replace(spec, relation=SparseArray(entries.shape, entries.coords, ones), fill=None)
    if source.dense or source.tiles:
        raise UnsupportedError(
            "rows with arrays do not say which of their entries are stored",
            where=f"gradient, stored, input {name}",
            expected="a row for each entry, a sparse matrix, or a dense array",
            found="arrays of shape " + " x ".join(map(str, source.dense)),
        )
    columns = spec.columns if source.key_axes is not None else source.keys
    measured = spec.measured
    if isinstance(measured, MeasuredInput):
        measured = replace(measured, finite=True, extremes=(1, 1))
    return replace(spec, columns=columns, value=1, fill=None, dtype=None, measured=measured)


def build_gradient(
    forward: Build, database: Database, loss: str, wrt: Sequence[str], stored: Sequence[str]
) -> Build:
    """Compile a program with the gradient of one of its tensors.

    Args:
        forward: the program.
        database: where its tables are.
        loss: the tensor without axes.
        wrt: the tensors with respect to which it is taken.
        stored: inputs among these whose gradient is wanted at stored entries only.

    Raises:
        UcleError: see `ucle.program.EinsumProgram.gradient`.
    """
    request, inputs = forward.request, forward.compiled.all_inputs
    for name in stored:
        if name not in wrt or name not in inputs:
            raise NameResolutionError(
                "stored= names a tensor that is not an input with a gradient",
                where="gradient, stored",
                expected="inputs among " + ", ".join(wrt),
                found=name,
            )
    given = dict(request.inputs)
    taken = {*given, *(statement.target.tensor for statement in request.statements)}
    masks = {}
    for name in stored:
        mask = stored_entries(name, given[name], inputs[name])
        if mask is not None:
            (masks[name],) = unique_names([f"{name}_stored"], taken)
            given[masks[name]] = mask
    found = differentiate_program(forward, loss, wrt, masks)
    names = dict.fromkeys((loss, *(found.names[name] for name in wrt)))
    options = replace(of_both_passes(forward.options, request), outputs=tuple(names))
    labels = {**input_labels(request.statements), **request.labels}
    made = build(Request(found.statements, given, labels), database, options)
    for vertex in made.compiled.program.vertices:
        if vertex.tensor.type.dtype.kind == "c" and _is_of(vertex.name, found.backward):
            raise _not_real(vertex.name, vertex.tensor.type.dtype)
    return made


def differentiate_program(
    forward: Build, loss: str, wrt: Sequence[str], masks: Mapping[str, str]
) -> Gradients:
    """Return the statements of a program with its backward pass; gradients have input types.

    Raises:
        UcleError: as for `build_gradient`.
    """
    inputs = forward.compiled.all_inputs
    types = {name: inputs[name].dtype for name in wrt if name in inputs}
    for name, dtype in types.items():
        if dtype.kind != "f":
            raise _not_real(name, dtype)
    narrow = {name: dtype for name, dtype in types.items() if dtype is not DType.FLOAT64}
    stated = forward.options.bounds or {}
    return differentiate(forward.request.statements, loss, wrt, masks, narrow, stated)


def _is_of(vertex: str, tensors: Collection[str]) -> bool:
    """True if a vertex computes one of some tensors or a part of it, by its name."""
    stems = (vertex[:n] for n in range(len(vertex) + 1) if vertex[n : n + 1] in ("", "_"))
    return any(stem in tensors for stem in stems)


def of_both_passes(options: Options, request: Request) -> Options:
    """Adapt the options of a program to one with more statements."""
    if options.path is None or isinstance(options.path, Mapping):
        return options
    (statement,) = request.statements
    return replace(options, path={statement.target.tensor: options.path})


def _not_real(name: str, dtype: DType) -> UnsupportedError:
    return UnsupportedError(
        "gradients exist only for real numbers",
        where=f"gradient, tensor {name}",
        expected="float64 or float32",
        found=dtype.value,
        hint="state the type with ucle.table(..., dtype=...), or take real(...) or imag(...)",
    )
