"""A maintained program over its present inputs: types, sizes and coordinates, without a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from ucle.database.data_versions import observing
from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.states import BoundInput
from ucle.ir.tensor_types import TensorType
from ucle.language.parse import parse_program
from ucle.language.syntax import Statement
from ucle.lowering.syntax_to_logical import ResolvedProgram, syntax_to_logical
from ucle.maintenance.appended import facts_before, with_new_rows
from ucle.maintenance.document import Document, input_of
from ucle.options import Options
from ucle.pipeline.stages import bind_statements, source_of
from ucle.run.build import resources_of
from ucle.stats.measure import MeasuredInput


@dataclass(frozen=True)
class BoundProgram:
    """The statements of a maintained program, and its inputs as they are now."""

    statements: Mapping[str, Statement]
    """By the tensors that they define, as they are written."""
    source: ResolvedProgram
    inputs: Mapping[str, BoundInput]
    facts: Mapping[str, MeasuredInput]
    """Facts about inputs to which rows were appended, found without a look at the others."""
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

    @cached_property
    def finite(self) -> tuple[str, ...]:
        """The inputs in which all numbers are finite."""
        return tuple(x for x in self.inputs if self.source.types[x].every.finite)

    @property
    def entries(self) -> float:
        """The number of entries of all inputs."""
        return sum(x.statistics.entries for x in self.inputs.values())


def bind_document(
    document: Document, session: Session, outputs: tuple[str, ...] | None
) -> BoundProgram:
    """Bind the inputs of a maintained program: measure what has changed, and repeat all checks.

    Args:
        document: the program.
        session: on its database.
        outputs: the tensors that are wanted; None for the outputs of the program.

    Raises:
        UcleError: as for a program.
    """
    statements = parse_program(document.text)
    watched = document.inputs
    options = options_for(document, session, outputs)
    facts: dict[str, MeasuredInput] = {}

    def revise(bound: dict[str, BoundInput]) -> dict[str, BoundInput]:
        found, own = with_new_rows(session, bound, watched)
        facts.update(own)
        return found

    inputs = {x.name: replace(input_of(x.spec), measured=facts_before(x)) for x in watched}
    with observing(session):
        resolved, sized = bind_statements(statements, inputs, session, options, revise=revise)
    grown = tuple(x for x in watched if facts_before(x) is not None and x.name not in facts)
    if grown:  # all of their rows are measured
        again = tuple(replace(x, facts="") if x in grown else x for x in watched)
        return bind_document(replace(document, inputs=again), session, outputs)
    written = {x.target.tensor: x for x in statements}
    source = source_of(resolved, sized, options)
    return BoundProgram(written, source, sized.bound, facts, options)


def options_for(document: Document, session: Session, outputs: tuple[str, ...] | None) -> Options:
    """Return the options with which a maintained program is compiled on a session."""
    kept = {**document.options}
    if outputs is None and kept["outputs"] is not None:
        outputs = tuple(kept["outputs"])
    kept["outputs"] = outputs
    return Options(DUCKDB.profile, resources_of(session), **kept)
