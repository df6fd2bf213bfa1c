"""A maintained program over its present inputs: types, sizes and coordinates, without a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

from ucle.database.data_versions import observe
from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.inputs.binding import find_table
from ucle.inputs.inputs import DescribedTable, describe
from ucle.inputs.states import BoundInput
from ucle.ir.tensor_types import TensorType
from ucle.language.statements import order_statements
from ucle.language.syntax import Statement
from ucle.lowering.syntax_to_logical import ResolvedProgram, syntax_to_logical
from ucle.lowering.tensors_of_positions import tensors_of_positions
from ucle.maintenance.changes import ChangedInput
from ucle.maintenance.document import Document, input_of
from ucle.maintenance.facts import measure_with
from ucle.options import Options
from ucle.pipeline.spelled_out import spell_out
from ucle.pipeline.stages import bind_statements, source_of
from ucle.plan.sources import TableName, TableSource
from ucle.run.build import Build, resources_of
from ucle.stats.measure import MeasuredInput


@dataclass(frozen=True)
class BoundProgram:
    """The statements of a maintained program, and its inputs as they are now."""

    statements: Mapping[str, Statement]
    """By the tensors that they define, as they are written."""
    source: ResolvedProgram
    inputs: Mapping[str, BoundInput]
    facts: Mapping[str, MeasuredInput]
    """What was measured of its inputs."""
    options: Options

    @cached_property
    def types(self) -> Mapping[str, TensorType]:
        """The types of the inputs, and of the tensors of all statements."""
        return syntax_to_logical(self.source).types

    @cached_property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The sizes of the inputs, and of the tensors of all statements."""
        resolved = {x.target.tensor for x in self.source.statements}
        return {name: self.types[name].shape for name in (*self.source.types, *resolved)}

    def kinds_of(self, tensor: str) -> tuple[str, ...]:
        """Return what tells the types of the columns of a tensor's entries."""
        type_ = self.types[tensor]
        return (type_.dtype.value, *(self._key_kind(x.dictionary) for x in type_.axes))

    def _key_kind(self, dictionary: str | None) -> str:
        """The types of the columns of inputs that a dictionary numbers."""
        found = {
            source.key_types[place]
            for name, bound in self.inputs.items()
            if isinstance(source := bound.source, TableSource) and dictionary is not None
            for place, axis in enumerate(self.types[name].axes[: len(source.key_types)])
            if axis.dictionary == dictionary
        }
        return ", ".join(sorted(found))

    @cached_property
    def named_values(self) -> frozenset[str]:
        """The tensors whose values are coordinates with a dictionary, as those of `argmax` are.

        Their rows hold these coordinates, which may be words.
        """
        found = tensors_of_positions(self.source)
        return frozenset(x for x, dictionary in found.items() if dictionary is not None)

    @cached_property
    def finite(self) -> tuple[str, ...]:
        """The inputs in which all numbers are finite."""
        return tuple(x for x in self.inputs if self.source.types[x].every.finite)

    @property
    def entries(self) -> float:
        """The number of entries of all inputs."""
        return sum(x.statistics.entries for x in self.inputs.values())


def find_tables(
    document: Document, session: Session, others: Iterable[TableName] = ()
) -> dict[str, tuple[TableSource, Scalar]]:
    """Return the columns of the inputs of a maintained program as they are now, and their fills.

    Args:
        document: the program.
        session: on its database, observing.
        others: tables that are read later, and looked up together with them.

    Raises:
        InputError: a table or a column is gone.
    """
    options = options_for(document, session, document.tensors)
    labels = spell_out(document.statements, options).labels
    given = {x.name: describe(x.name, input_of(x.spec), x.name) for x in document.inputs}
    named = [x.origin for x in given.values() if isinstance(x, DescribedTable)]
    observe(session, (), [*named, *(TableName(x.table) for x in document.kept), *others])
    return {
        x.name: find_table(session, x.name, input_of(x.spec), labels[x.name])
        for x in document.inputs
    }


def bind_document(
    document: Document, session: Session, changes: Mapping[str, ChangedInput]
) -> BoundProgram:
    """Bind the inputs of a maintained program: measure what has changed, and repeat all checks.

    The tensors that it keeps are its outputs.

    Args:
        document: the program.
        session: on its database.
        changes: the inputs that have changed since the last refresh.

    Raises:
        UcleError: as for a program.
    """
    statements = document.statements
    options = options_for(document, session, document.tensors)
    facts: dict[str, MeasuredInput] = {}
    inputs = {
        x.name: replace(input_of(x.spec), measured=measure_with(x, changes.get(x.name), facts))
        for x in document.inputs
    }
    resolved, sized = bind_statements(statements, inputs, session, options)
    source = source_of(resolved, sized, options)
    return BoundProgram(statements_of(statements), source, sized.bound, facts, options)


def bound_program(made: Build, facts: Mapping[str, MeasuredInput]) -> BoundProgram:
    """Return what binding a program gives that was compiled for the present data."""
    compiled, statements = made.compiled, statements_of(made.request.statements)
    source, inputs = compiled.front.source, compiled.all_inputs
    return BoundProgram(statements, source, inputs, facts, made.options)


def statements_of(statements: Iterable[Statement]) -> dict[str, Statement]:
    """Return statements by the tensors that they define, each behind those that it reads.

    Whoever follows a change through a program relies on this order; a text may have another one.
    """
    return {x.target.tensor: x for x in order_statements(tuple(statements))}


def options_for(document: Document, session: Session, outputs: tuple[str, ...] | None) -> Options:
    """Return the options with which a maintained program is compiled on a session."""
    kept = {**document.options}
    if outputs is None and kept["outputs"] is not None:
        outputs = tuple(kept["outputs"])
    kept["outputs"] = outputs
    found = session.look_once("resources", (None,), lambda _: {None: resources_of(session)})
    return Options(DUCKDB.profile, found[None], **kept)
