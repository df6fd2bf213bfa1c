"""The numbers of inputs as dense arrays, for the file of a model."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ucle.database.macro_check import open_checked
from ucle.database.session import Database
from ucle.errors import ArgumentError, UnsupportedError, did_you_mean
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import find_free_name
from ucle.language.parse import parse_program
from ucle.language.statements import names_of_axes
from ucle.plan.sources import ArraySource
from ucle.run.build import Build, build
from ucle.run.current_data import Preparations
from ucle.run.results import Result

LARGEST = 1 << 30
"""Bytes of one weight beyond which a program is not exported."""


@dataclass(frozen=True)
class Weight:
    """An input as an array.

    Args:
        array: its entries.
        coordinates: of the axes that have names, dates or the like, by label.
    """

    array: np.ndarray[Any, Any]
    coordinates: Mapping[str, tuple[str, ...]]


def values_of_weights(made: Build, given: Any) -> dict[str, Any]:
    """The values that a caller gives for inputs, by the names of the inputs.

    Args:
        made: the program.
        given: by the names of inputs, or of outputs that replace them after a step of training; a
            result may have other tensors, too.

    Raises:
        ArgumentError: there is no such input.
    """
    inputs = made.compiled.all_inputs
    replaced = {output: name for name, output in made.request.carry.items()}
    found: dict[str, Any] = {}
    for name, value in given.items():
        own = name if name in inputs else replaced.get(name)
        if own is not None:
            found[own] = value
        elif not isinstance(given, Result):
            raise ArgumentError(
                "there is no such input",
                where="to_onnx, weights",
                expected=", ".join(inputs),
                found=str(name),
                hint=did_you_mean(str(name), inputs),
            )
    return found


def dense_weights(
    made: Build, database: Database, names: Collection[str], given: Mapping[str, Any]
) -> dict[str, Weight]:
    """The entries of inputs.

    Args:
        made: the program.
        database: where its tables are.
        names: the inputs.
        given: other values for some of them.

    Raises:
        UnsupportedError: one is too large when it is dense.
        ArgumentError: a given value has another shape.
    """
    sizes = made.compiled.front.source.bounds.sizes
    inputs = made.compiled.all_inputs
    shapes = {
        name: tuple(sizes[name, n] for n in range(len(inputs[name].labels))) for name in names
    }
    _check_sizes({name: (shapes[name], inputs[name].dtype.bytes) for name in names})
    found: dict[str, Weight] = {}
    read: list[str] = []
    for name in names:
        bound = inputs[name]
        if name in given:
            value = given[name]
            array = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
            if array.shape != shapes[name]:
                raise ArgumentError(
                    "a weight has another shape than in the program",
                    where=f"to_onnx, weight {name}",
                    expected=str(shapes[name]),
                    found=str(array.shape),
                )
            found[name] = Weight(array, {})
        elif isinstance(bound.source, ArraySource) and np.shape(bound.data) == shapes[name]:
            found[name] = Weight(np.asarray(bound.data), {})
        else:
            read.append(name)
    return found | (_read_inputs(made, database, read) if read else {})


def _check_sizes(weights: Mapping[str, tuple[tuple[int, ...], int]]) -> None:
    """Check that weights may be dense.

    Raises:
        UnsupportedError: one is too large.
    """
    for name, (shape, width) in weights.items():
        if (size := prod(shape) * width) > LARGEST:
            raise UnsupportedError(
                "a weight is too large when it is dense, as it is in ONNX",
                where=f"to_onnx, input {name}",
                expected=f"at most {LARGEST >> 20} MB",
                found=f"{' x '.join(map(str, shape))}, {size >> 20} MB",
                hint="leave it an input: weights= names those that are stored in the model",
            )


def _read_inputs(made: Build, database: Database, names: Collection[str]) -> dict[str, Weight]:
    """Inputs that are tables or sparse, by a program that copies them."""
    request, stated = made.request, made.options.bounds or {}
    taken = {*made.compiled.all_inputs, *(s.target.tensor for s in request.statements)}
    copies: dict[str, str] = {}
    text = []
    for name in names:
        copies[name] = find_free_name(f"{name}_copy", taken)
        taken.add(copies[name])
        axes = ",".join(names_of_axes(request.statements, name, stated))
        text.append(f"{copies[name]}[{axes}] = {name}[{axes}]")
    extended = replace(request, statements=(*request.statements, *parse_program("\n".join(text))))
    options = replace(made.options, outputs=tuple(copies.values()), decomposition="auto", path=None)
    copied = build(extended, database, options)
    session = open_checked(database)
    try:
        prepared = Preparations(copied.compiled, copied.options, {}).fresh(session)
        result = prepared.run(session, None)
    except BaseException:
        session.close()
        raise
    with contextlib.closing(result):
        return {name: _weight_of(result[copy]) for name, copy in copies.items()}


def _weight_of(tensor: Any) -> Weight:
    """A result, with the coordinates of its axes where they are no positions."""
    named = {x.name: x for x in tensor.type.axes if x.dictionary is not None}
    coordinates = {label: tuple(map(str, tensor.coordinates(label).to_pylist())) for label in named}
    return Weight(tensor.to_numpy(), coordinates)
