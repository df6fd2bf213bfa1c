"""The description of a maintained program: all that another process needs to bring it up to date.

It is stored as JSON in the database, beside the tables that it names: the text of the program, its
options, where its inputs are, and which of its tensors are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from ucle.errors import NameResolutionError, UnsupportedError, did_you_mean
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.inputs.table_input import TableInput
from ucle.ir.tensor_types import TensorType
from ucle.language.parse import parse_program
from ucle.language.syntax import Statement
from ucle.options import Options
from ucle.plan.sources import Nulls

VERSION = 1
"""The version of the format. A document of another one is refused."""

Parts = tuple[str, ...]
"""The parts of the name of a table."""

OPTIONS = (
    "bounds",
    "outputs",
    "nonfinite",
    "search",
    "association",
    "rewrite",
    "rewrite_tolerance",
    "decomposition",
)
"""The options of a program that are kept with it."""

_DEFAULTS = {each.name: each.default for each in fields(TableInput)}


@dataclass(frozen=True)
class KeptTensor:
    """A tensor that is kept as a table, with a row for each entry that differs from its fill."""

    tensor: str
    table: Parts
    keys: tuple[str, ...]
    """The columns of its axes; values are in ``val``."""
    fill: Scalar
    encoded: tuple[int, ...]
    """The axes with other coordinates than positions."""
    digest: tuple[int | None, ...]
    """The number of its rows, and a digest of them: how the last refresh left it."""
    kinds: tuple[str, ...] = ()
    """What tells the types of its columns: if it is another, the table is made anew."""
    scratch: float = 0.0
    """The predicted cost of computing it from scratch, for inputs of `priced` entries."""
    priced: float = 0.0


@dataclass(frozen=True)
class WatchedInput:
    """An input that may change, and how a change is found."""

    name: str
    spec: Mapping[str, Any]
    keys: tuple[str, ...]
    """The columns of its keys."""
    axes: tuple[int, ...]
    """The axes of these keys."""
    state: Parts | None
    """The table that holds its keys and values as of the last refresh."""
    digest: tuple[int | None, ...] = ()
    """The number of its rows, and a digest of them, as of the last refresh."""
    appended: tuple[int, int] | None = None
    """The number of rows, and the last rowid, of a table to which rows are only appended."""
    pending: tuple[int | None, ...] = ()
    """The number of those rows behind the last one, and a digest of them: their transaction had not
    ended, so that they had no rowid."""
    trusts: bool = False
    """True if changes were told since the input was last compared with its state."""
    facts: str = ""
    """Statistics of its rows, to which those of new rows are added; empty to measure all."""
    measured: float = 0.0
    """The number of entries of the table when all of its rows were measured."""
    own: Parts | None = None
    """Its table, if that belongs to the program and never changes."""


@dataclass(frozen=True)
class Document:
    """A maintained program."""

    name: str
    text: str
    options: Mapping[str, Any]
    inputs: tuple[WatchedInput, ...]
    kept: tuple[KeptTensor, ...]
    sizes: Mapping[str, tuple[int, ...]]
    """The sizes of all tensors, as of the last refresh."""
    finite: tuple[str, ...]
    """The inputs in which all numbers were finite."""
    refreshes: int = 0
    loop: Mapping[str, Any] | None = None
    """The arguments of a loop (`ucle.maintenance.kept_loops`); None for a program without one."""
    stated: Mapping[str, Mapping[str, int]] | None = None
    """By the tensor that a statement defines, the sizes of labels that it states beside its text,
    as those of lazy tensors do; None if an earlier version kept the program, without them."""

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of the program."""
        stated = self.stated or {}
        return tuple(
            replace(x, sizes=stated.get(x.target.tensor, {})) for x in parse_program(self.text)
        )

    @property
    def tensors(self) -> tuple[str, ...]:
        """The kept tensors."""
        return tuple(x.tensor for x in self.kept)

    def to_json(self) -> str:
        """Return the document as text."""
        return json.dumps({"version": VERSION, **asdict(self)}, default=_of_value)

    @classmethod
    def from_json(cls, text: str) -> Document:
        """Read a document.

        Raises:
            UnsupportedError: it is of another version of the format.
        """
        try:
            read = json.loads(text)
        except ValueError:
            read = {}
        if not isinstance(read, dict) or read.pop("version", None) != VERSION:
            raise UnsupportedError(
                "this is no description of a maintained program, or one of another version",
                where="maintained program",
                expected=f"version {VERSION} of its description",
                found=text[:80],
                hint="call drop(), and maintain the program again",
            )
        inputs = tuple(WatchedInput(**_with_tuples(x)) for x in read.pop("inputs"))
        kept = tuple(KeptTensor(**_with_tuples(_with_fill(x))) for x in read.pop("kept"))
        sizes = {name: tuple(own) for name, own in read.pop("sizes").items()}
        return cls(**_with_tuples(read), inputs=inputs, kept=kept, sizes=sizes)


def known_inputs(document: Document, names: Iterable[str], where: str) -> dict[str, WatchedInput]:
    """Return the inputs of a program by their names, after a check of names that were given.

    Raises:
        NameResolutionError: there is no such input.
    """
    known = {x.name: x for x in document.inputs if x.own is None}
    for name in names:
        if name not in known:
            raise NameResolutionError(
                "the program has no input of this name",
                where=where,
                expected="one of " + ", ".join(known),
                found=repr(name),
                hint=did_you_mean(name, list(known)),
            )
    return known


def encoded_axes(type_: TensorType) -> tuple[int, ...]:
    """Return the axes of a tensor with other coordinates than positions."""
    return tuple(n for n, axis in enumerate(type_.axes) if axis.dictionary is not None)


def _with_tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(x) if isinstance(x, list) else x for name, x in values.items()}


def _with_fill(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return values with a complex fill in place of its parts."""
    fill = values.get("fill")
    return {**values, "fill": complex(*fill["parts"])} if isinstance(fill, dict) else values


def _of_value(value: Any) -> Any:
    if isinstance(value, DType | Nulls):
        return value.value
    if isinstance(value, complex):  # NumPy's are, too
        return {"parts": [value.real, value.imag]}
    if isinstance(value, frozenset):
        return sorted(value)
    return value.item()  # a number of NumPy


def spec_of(name: str, value: TableInput) -> dict[str, Any]:
    """Return the description of an input in a table or a file.

    Raises:
        UnsupportedError: its description holds objects of this process.
    """
    spec = {x: getattr(value, x) for x in _DEFAULTS}
    spec = {x: y for x, y in spec.items() if y != _DEFAULTS[x]}
    spec |= {"relation": value.relation}
    try:
        json.dumps(spec, default=_of_value)
    except (AttributeError, TypeError) as error:
        raise UnsupportedError(
            "this input cannot be described to another process",
            where=f"maintain, input {name}",
            expected="a table, a view or a file, by its name",
            found=str(value.relation)[:80],
        ) from error
    return spec


def input_of(spec: Mapping[str, Any]) -> TableInput:
    """Return an input by its description."""
    read = _with_tuples(_with_fill(spec))
    for option in ("columns", "dictionaries"):
        if read.get(option):
            read[option] = tuple(tuple(x) if isinstance(x, list) else x for x in read[option])
    if "dtype" in read and read["dtype"] is not None:
        read["dtype"] = DType(read["dtype"])
    if "nulls" in read:
        read["nulls"] = Nulls(read["nulls"])
    if "unsorted" in read:
        read["unsorted"] = frozenset(read["unsorted"])
    return TableInput(**read)


def options_of(options: Options) -> dict[str, Any]:
    """Return the options that are kept with a program.

    Raises:
        UnsupportedError: they pin labels of tensors.
    """
    if not isinstance(options.decomposition, str):
        raise UnsupportedError(
            "a maintained program chooses its decompositions itself",
            where="maintain",
            expected="decomposition='auto' or 'relational'",
            found=repr(options.decomposition)[:80],
        )
    return {name: getattr(options, name) for name in OPTIONS}
