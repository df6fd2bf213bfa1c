"""Evaluate a logical program with NumPy on dense arrays, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from ucle.ir.maps import Map, Partial
from ucle.lowering.logical import Contraction, Labels, LogicalProgram, Use

Named = tuple[Labels, np.ndarray]


def meaning(logical: LogicalProgram, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The outputs of a program, by name."""
    known = known_tensors(logical, arrays)
    return {name: known[name] for name in logical.outputs}


def known_tensors(logical: LogicalProgram, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The tensors of all statements, by name.

    Of arrays of fractions they are exact, as long as there are no functions but arithmetic.
    """
    known: dict[str, Named] = {x: ((), np.asarray(arrays[x])) for x in logical.inputs}
    for statement in logical.statements:
        for step in statement.steps:
            known[step.name] = _step(step, known)
        labels, array = _use(statement.result, known)
        known[statement.target] = (), aligned((labels, array), statement.labels)
    return {statement.target: known[statement.target][1] for statement in logical.statements}


def _use(use: Use, known: Mapping[str, Named]) -> Named:
    labels, array = known[use.tensor]
    labels = labels or use.labels  # a tensor is used axis by axis, a step under its own labels
    for function in use.maps:
        if isinstance(function, Map):
            array = function.function.numpy(array)
        elif isinstance(function, Partial):
            pair = [array, function.constant]
            array = function.combine.numpy(*(pair[::-1] if function.constant_first else pair))
        array = np.asarray(array)
        if array.dtype != object:
            array = array.astype(function.result.numpy)
    return labels, np.asarray(array)


def aligned(named: Named, every: Labels) -> np.ndarray:
    """An array with an axis for each of some labels; a label that it lacks has one of length 1."""
    labels, array = named
    names = list(dict.fromkeys(labels))
    array = np.einsum(array, [names.index(x) for x in labels], range(len(names)))
    array = np.expand_dims(array, tuple(range(len(names), len(every))))
    order = [*names, *(x for x in every if x not in names)]
    return array.transpose([order.index(x) for x in every])


def _step(step: Contraction, known: Mapping[str, Named]) -> Named:
    uses = [_use(factor.cast(step.dtype), known) for factor in step.factors]
    every = tuple(dict.fromkeys(x for labels, _ in uses for x in labels))
    parts = [aligned(use, every) for use in uses]
    if step.combine is not None:
        numbers = [np.asarray(x.value, step.dtype.numpy) for x in step.constants]
        parts = [reduce(step.combine.numpy, [*parts, *numbers])]
    (array,) = parts
    array = np.broadcast_to(array, [x.bound for x in every])
    if step.reduce is not None:
        axes = tuple(every.index(x) for x in step.over)
        array = step.reduce.numpy(array, axis=axes) if axes else array
    return tuple(x for x in every if x not in step.over), np.asarray(array)
