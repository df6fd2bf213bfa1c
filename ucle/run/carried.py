"""Checks of carried tensors: outputs of a step that replace inputs in the next step.

`ucle.run.prepared_program` holds the tensors themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.database.session import Session
from ucle.database.temporary_tables import TemporaryTable
from ucle.errors import BoundError, InputError, LabelError, NameResolutionError, did_you_mean
from ucle.ir.tensor_types import TensorType
from ucle.pipeline.artifacts import Compiled
from ucle.run.results import TensorRelation
from ucle.sqlgen.script import differ_query, sql_text


def check_carry(compiled: Compiled, carry: Mapping[str, str]) -> None:
    """Check that each output fits the input that it replaces.

    Args:
        compiled: the program.
        carry: inputs, and the outputs that replace them.

    Raises:
        NameResolutionError: there is no such input, or no such output.
        LabelError: they have different ranks, or ids that are numbered differently.
        BoundError: they have different sizes.
        InputError: they have different element types.
    """
    inputs, outputs = compiled.front.source.types, compiled.program.outputs
    for name, output in carry.items():
        if name not in compiled.front.inputs:
            raise NameResolutionError(
                f"the program has no input {name}",
                where="carry",
                expected="one of " + (", ".join(compiled.front.inputs) or "no inputs"),
                found=name,
                hint=did_you_mean(name, compiled.front.inputs),
            )
        if output not in outputs:
            raise NameResolutionError(
                f"{output} is no output of the program",
                where=f"carry of {name}",
                expected="one of " + ", ".join(outputs),
                found=output,
                hint=did_you_mean(output, outputs) or "outputs=[...] names the outputs",
            )
        _check_types(name, inputs[name], output, compiled.program.types[output])


def check_state(
    session: Session,
    compiled: Compiled,
    state: Mapping[str, TensorRelation],
    dictionaries: Mapping[str, TemporaryTable],
) -> None:
    """Check that the state of an earlier run fits the inputs, after tables may have changed.

    Args:
        session: the session that holds it.
        compiled: the program.
        state: tensors by the inputs that they replace.
        dictionaries: those by which the program numbers ids now.

    Raises:
        InputError: a table has other ids or sizes than when these tensors were made.
    """
    types = compiled.front.source.types
    for name, tensor in state.items():
        if types[name].shape != tensor.shape:
            raise _stale(name, "the size of an axis has changed")
        for axis in tensor.type.axes:
            if axis.dictionary is None:
                continue
            made, now = tensor.dictionaries[axis.dictionary], dictionaries[axis.dictionary]
            if made is not now and session.fetch(sql_text(differ_query(made.name, now.name))):
                raise _stale(name, f"label {axis.name} has other ids")


def _stale(name: str, found: str) -> InputError:
    return InputError(
        "the carried state belongs to earlier rows of a table",
        where=f"prepared program, input {name}",
        expected="tables with the same ids and sizes",
        found=found,
        hint="pass the input again, or prepare the program again",
    )


def fits_in_place(given: TensorType, made: TensorType) -> bool:
    """True if everything known of an input also holds of the output that replaces it.

    Otherwise the output is stored with all of its tuples.
    """
    full = made.entries.full or not given.entries.full
    occupied = made.occupied or not given.occupied
    return made.fill == given.fill and full and occupied and given.covered <= made.covered


def _check_types(name: str, given: TensorType, output: str, made: TensorType) -> None:
    where = f"carry of {name}"
    if given.rank != made.rank:
        raise LabelError(
            f"{output} has another rank than {name}",
            where=where,
            expected=f"rank {given.rank}",
            found=f"rank {made.rank}",
        )
    if given.shape != made.shape:
        raise BoundError(
            f"{output} has another shape than {name}",
            where=where,
            expected=" x ".join(map(str, given.shape)),
            found=" x ".join(map(str, made.shape)),
            hint="bounds= states the size of a label",
        )
    numbered = [axis.dictionary for axis in given.axes], [axis.dictionary for axis in made.axes]
    if numbered[0] != numbered[1]:
        raise LabelError(
            f"the coordinates of {output} are not those of {name}",
            where=where,
            expected=_coordinates(given),
            found=_coordinates(made),
            hint="ucle.table(coordinates={label: name, ...}) gives labels one dictionary",
        )
    if given.dtype is not made.dtype:
        raise InputError(
            f"{output} has another element type than {name}",
            where=where,
            expected=given.dtype.value,
            found=made.dtype.value,
            hint=f"{given.dtype.value}(...) in the program, or dtype= of ucle.table, makes them "
            "the same",
        )


def _coordinates(type_: TensorType) -> str:
    kinds = ["numbers" if axis.dictionary is None else axis.dictionary for axis in type_.axes]
    return ", ".join(f"{axis.name}: {kind}" for axis, kind in zip(type_.axes, kinds, strict=True))
