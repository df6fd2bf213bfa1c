"""Derive programs that bring tensors of a maintained program up to date, without running them.

A derivation knows what has changed so far: masks of tensors that may differ, by how much entries
differ, and where entries were added. For each kept tensor it yields programs over the tables that
are there: the statements of the text between the tensor and these tables, behind masks of the keys
that may differ (`ucle.maintenance.affected`), or what a sum of products grows by
(`ucle.maintenance.differences`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from ucle.foundation.dtypes import DType
from ucle.foundation.names import unique_names
from ucle.inputs.inputs import quoted_name
from ucle.inputs.table_input import Measure, TableInput
from ucle.language.parse import parse_program
from ucle.language.syntax import Statement
from ucle.maintenance.affected import (
    AffectedKeys,
    Mask,
    affected_in_product,
    affected_keys,
    depends_on_sizes,
    reads_of,
    statements_for,
)
from ucle.maintenance.bound_program import BoundProgram
from ucle.maintenance.chosen_tensors import readable
from ucle.maintenance.differences import Difference, Updated, update
from ucle.maintenance.document import Document, KeptTensor, WatchedInput, input_of
from ucle.maintenance.extremes import Before, extend
from ucle.maintenance.restricted import restrict

NOTHING: Mapping[str, int] = {}

FULL = 0.9
"""The share of the coordinates from which on a tensor counts as one that is not 0 anywhere."""

DIFFERENCES, AFFECTED = "differences", "affected keys"
"""How tensors are brought up to date without computing all of their entries."""


class Derivation:
    """Programs for the entries of kept tensors that may differ, by what has changed so far."""

    def __init__(self, document: Document, whole: BoundProgram) -> None:
        """Begin where nothing has changed.

        Args:
            document: the maintained program, as of the last refresh.
            whole: the program over the present data.
        """
        self.document, self.whole = document, whole
        self._statements, self._types = whole.statements, whole.types
        self._taken = {*self._statements, *(x.name for x in document.inputs)}
        self._given: dict[str, TableInput] = {}
        """The tensors that are there, as inputs of programs."""
        self._changed: dict[str, tuple[Mask, ...]] = {}
        self._differences: dict[str, Difference] = {}
        self._added: dict[str, Before] = {}
        self._origins: dict[str, frozenset[str]] = {}
        self._readable = readable(document.kept, self._statements, self._is_zero)
        self._readable -= whole.named_values

    def _statements_for(self, tensor: str) -> list[Statement]:
        """Return the statements that compute a tensor from inputs and kept tensors, in order."""
        return statements_for([tensor], self._statements, self._given)

    def _read_by(self, statements: Sequence[Statement]) -> dict[str, TableInput]:
        """Return the inputs of a program."""
        read = set().union(*map(reads_of, statements)) - {x.target.tensor for x in statements}
        return {name: self._given[name] for name in sorted(read)}

    def _sized_input(self, watched: WatchedInput) -> TableInput:
        """Return an input of the text, with the sizes that its axes have in the whole program.

        A program that reads it alone would have smaller ones where another input of the text has
        larger coordinates along the same label.
        """
        spec, axes = input_of(watched.spec), self._types[watched.name].axes
        bounds = list(spec.bounds or [None] * len(axes))
        for n in watched.axes:
            bounds[n] = axes[n].bound if axes[n].dictionary is None else None
        return replace(spec, bounds=tuple(bounds), measured=self.whole.facts[watched.name])

    def _with_coordinates(self, statements: Sequence[Statement]) -> Sequence[Statement]:
        """Return a program whose axes have all the words that they have in the whole program.

        These are those of all inputs with the same dictionary. Where an entry may depend on how
        many there are, or on their order, the program gets statements, which are not computed, that
        read an input along the same label as a tensor of the program.
        """
        if not self._sizes_count:
            return statements
        read = sorted(self._read_by(statements))
        if not any(depends_on_sizes(x, self._is_zero_where_absent) for x in statements):
            return statements
        known = [x for x in read if x in self._types]
        places = {
            axis.dictionary: (name, n)
            for name in known
            for n, axis in enumerate(self._types[name].axes)
            if axis.dictionary is not None
        }
        found = list(statements)
        for name in sorted({x.name for x in self.document.inputs} - {*known}):
            for n, axis in enumerate(self._types[name].axes):
                if axis.dictionary in places:
                    found.append(self._read_along(places[axis.dictionary], (name, n), len(found)))
        return found

    def _read_along(self, one: tuple[str, int], other: tuple[str, int], number: int) -> Statement:
        """Return a statement that reads two tensors along a label that they share."""
        reads = []
        for side, (name, place) in enumerate((one, other)):
            labels = [f"x{side}_{n}" for n in range(self._types[name].rank)]
            labels[place] = "shared"
            read = f"{name}[{','.join(labels)}]"
            reads.append(f"({read} == {read})")
        (target,) = unique_names([f"coordinates_{number}"], self._taken)
        (statement,) = parse_program(f"{target}[] any= {' == '.join(reads)}")
        return statement

    @cached_property
    def _sizes_count(self) -> bool:
        """True if some entries depend on the sizes of axes."""
        return any(depends_on_sizes(x, self._is_zero) for x in self._statements.values())

    def _is_zero_where_absent(self, tensor: str) -> bool:
        """True if a tensor of a derived program is finite, and 0 where it is not stored."""
        if tensor in self._types:
            return self._is_zero(tensor)
        return tensor in self._given and not self._given[tensor].fill

    @property
    def _inputs(self) -> dict[str, TableInput]:
        """The inputs of the text."""
        return {x.name: self._given[x.name] for x in self.document.inputs}

    def _weight_of(self, kept: KeptTensor) -> int | float | None:
        """Return a number of the type of a tensor's differences; None if they are not wanted."""
        if kept.fill != 0 or not kept.keys or kept.tensor in self.whole.named_values:
            return None
        return {"i": 1, "f": 1.0}.get(self._types[kept.tensor].dtype.kind)

    def _grows(self, parts: Sequence[Statement], grown: set[str]) -> bool:
        """True if sizes have changed on which one of some statements depends."""
        return any(
            not grown.isdisjoint({x.target.tensor, *reads_of(x)})
            and depends_on_sizes(x, self._is_zero)
            for x in parts
        )

    def _is_zero(self, tensor: str) -> bool:
        """True if a tensor was and is finite, and 0 where it is not stored."""
        type_ = self._types[tensor]
        if type_.fill != 0 or not type_.every.finite:
            return False
        return self._inputs_of(tensor) <= set(self.document.finite)

    def _leaves_out(self, tensor: str) -> bool:
        """True if a tensor is there, and not at most coordinates."""
        size = math.prod(self._types[tensor].shape)
        return tensor in self._given and self._rows_of(tensor) < FULL * size

    def _rows_of(self, tensor: str) -> float:
        """Return the number of rows of an input or a kept tensor, as far as it is known."""
        if tensor in self.whole.inputs:
            return self.whole.inputs[tensor].statistics.entries
        (kept,) = (x for x in self.document.kept if x.tensor == tensor)
        return float(kept.digest[0] or 0) if kept.digest else 0.0

    def _inputs_of(self, tensor: str) -> frozenset[str]:
        """Return the inputs of the text that a tensor is computed from."""
        if tensor not in self._origins:
            parts = statements_for([tensor], self._statements)
            read = frozenset[str]().union(*map(reads_of, parts)) | {tensor}
            self._origins[tensor] = read.intersection(x.name for x in self.document.inputs)
        return self._origins[tensor]

    def _candidates(
        self, before: KeptTensor, parts: Sequence[Statement], ways: Sequence[str]
    ) -> Iterator[tuple[str, Updated]]:
        """Yield programs for the entries of a tensor that may differ.

        Args:
            before: the tensor, as the last refresh left it.
            parts: the statements that compute it.
            ways: those that are wanted. There is none for a tensor that holds names: behind a mask,
                positions are numbers.
        """
        if before.tensor in self.whole.named_values:
            return
        if DIFFERENCES in ways and len(parts) == 1:
            found = self._by_differences(before, parts[0])
            if found is not None:
                yield DIFFERENCES, found
        for found in self._by_masks(before, parts):
            yield AFFECTED, found

    def _by_differences(self, before: KeptTensor, statement: Statement) -> Updated | None:
        """Return the program that brings a tensor up to date by what its terms differ by."""
        tensor = before.tensor
        type_ = self._types[tensor]
        dtype, names = type_.dtype, self._new_name
        old = self._give(f"{tensor}_before", self._spec_of(before))
        found = extend(statement, old, self._added, self._changed, names, dtype, type_.fill)
        exact = dtype.kind == "i"
        if found is not None or before.fill != 0 or not (exact or dtype is DType.FLOAT64):
            return found
        return update(
            statement,
            old,
            self._differences,
            self._changed,
            names,
            self._is_zero,
            exact=exact,
            fresh=self._added,
        )

    def _by_masks(self, kept: KeptTensor, parts: Sequence[Statement]) -> Iterator[Updated]:
        """Yield programs for the rows of affected keys, with masks of all kinds."""
        for program, affected in self._affected(kept, parts):
            new = self._new_name(f"{kept.tensor}_new")
            last = replace(parts[-1], target=replace(parts[-1].target, tensor=new))
            restricted = restrict(
                [*(x for x in program if x.target.tensor in self._statements), last],
                affected.masks,
                {**{x: y.fill for x, y in self._types.items()}, new: kept.fill},
                self._is_finite,
            )
            own = {x.target.tensor: x for x in restricted}
            made = [own.pop(x.target.tensor, x) for x in program]
            yield Updated((*made, *own.values()), new, affected.masks)
            if all(len(mask.axes) == len(kept.keys) for mask in affected.masks):
                break  # no mask can be narrower

    def _affected(
        self, kept: KeptTensor, parts: Sequence[Statement]
    ) -> Iterator[tuple[list[Statement], AffectedKeys]]:
        """Yield masks of a tensor, with the statements that compute it and them."""
        for narrow in (False, True):
            program, affected, is_narrowed = self._masks(kept, parts, narrow=narrow)
            if narrow and not is_narrowed:
                return  # they are those of before
            if not affected.everything and affected.masks:
                yield program, affected

    def _masks(
        self,
        kept: KeptTensor,
        parts: Sequence[Statement],
        axes: Mapping[str, int] = NOTHING,
        *,
        narrow: bool,
    ) -> tuple[list[Statement], AffectedKeys, bool]:
        """Return masks of a tensor, with the statements that compute it and them; and their kind.

        Args:
            kept: the tensor.
            parts: the statements.
            axes: the only axes of the masks of some of their tensors.
            narrow: True if it counts where factors of products are not 0. The kind is True if there
                are such factors.
        """
        changed, program, is_narrowed = dict(self._changed), list[Statement](), False
        affected: AffectedKeys | None = None
        for statement in parts:
            affected, tensor = None, statement.target.tensor
            if narrow:
                affected = affected_in_product(
                    statement,
                    changed,
                    self._new_name,
                    self._is_zero,
                    self._leaves_out,
                    statement.target.labels[axes[tensor]] if tensor in axes else None,
                    fresh=self._added,
                )
            is_narrowed |= affected is not None
            affected = affected or affected_keys(statement, changed, self._new_name)
            program += affected.statements
            if tensor != kept.tensor:
                program.append(statement)
            changed[tensor] = affected.masks
        assert affected is not None
        return program, affected, is_narrowed

    def _is_finite(self, tensor: str) -> bool:
        return self._types[tensor].every.finite

    def _offer(self, kept: KeptTensor) -> None:
        """Let other tensors be computed from the rows of a kept one, where that is right."""
        if kept.tensor in self._readable:
            self._given[kept.tensor] = self._spec_of(kept)

    def _spec_of(self, kept: KeptTensor) -> TableInput:
        """Return a kept tensor as an input of a program."""
        sizes = self._types[kept.tensor].shape
        bounds = tuple(None if n in kept.encoded else size for n, size in enumerate(sizes))
        return TableInput(
            quoted_name(kept.table),
            columns=kept.keys,
            value="val",
            fill=kept.fill,
            bounds=bounds,
            encoded_keys=kept.encoded,
            measured=self._facts_of(kept),
        )

    def _facts_of(self, kept: KeptTensor) -> Measure | None:
        """Return what measures a kept tensor; None to measure it."""
        return None

    def _new_name(self, stem: str) -> str:
        (name,) = unique_names([stem], self._taken)
        self._taken.add(name)
        return name

    def _give(self, stem: str, value: TableInput) -> str:
        """Make a table an input of programs, under a new name."""
        name = self._new_name(stem)
        self._given[name] = value
        return name
