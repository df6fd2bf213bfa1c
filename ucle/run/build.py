"""From the caller's arguments to a compiled program and the target that it was compiled for.

`ucle.pipeline.stages` has the stages themselves. This module provides what they need from the
environment: a session on the database, its memory and threads, and the route by which kernels are
called.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from ucle.database.change_detection import Quiet
from ucle.database.data_versions import observing
from ucle.database.engine import DUCKDB
from ucle.database.macro_check import open_checked, open_passing
from ucle.database.session import Database, Session, parse_size
from ucle.errors import ArgumentError, ArgumentTypeError, UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.fingerprints import fingerprints
from ucle.inputs.operands import assignment, parse_subscripts
from ucle.inputs.states import BoundInput
from ucle.inputs.table_changes import Versions, table_versions
from ucle.inputs.table_input import TableInput
from ucle.language.parse import parse_program
from ucle.language.syntax import Statement
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.pipeline.stages import compile_statements
from ucle.plan.resources import Resources
from ucle.plan.sources import ArraySource, TableSource
from ucle.run.packed_inputs import read_packed
from ucle.run.store_inputs import keep_inputs
from ucle.sqlgen import PLAIN, Capabilities
from ucle.stats.model import find_infinity

NOTHING: Mapping[str, str] = MappingProxyType({})
"""The outputs that replace inputs, where none do."""


@dataclass(frozen=True)
class Request:
    """The sources of a program: its statements, and the inputs as they were passed."""

    statements: tuple[Statement, ...]
    inputs: Mapping[str, Any]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The caller's names for the axes of inputs, where the statements do not give them."""
    carry: Mapping[str, str] = field(default_factory=dict)
    """Inputs that an output replaces in the next step."""


@dataclass(frozen=True)
class CompileTarget:
    """The target of a compilation: database, route with its reason, versions of tables."""

    database: Database
    capabilities: Capabilities
    reason: str
    versions: Versions
    engine: tuple[Capabilities, str]
    """The database's capabilities and their reason, whether the program needs them or not."""

    def running(self, compiled: Compiled) -> CompileTarget:
        """Return the target adapted to a plan: one that calls no kernels is plain SQL."""
        if compiled.decomposed.relational and self.engine[0].kernels:
            return replace(self, capabilities=PLAIN, reason="every label is promoted")
        return replace(self, capabilities=self.engine[0], reason=self.engine[1])


@dataclass(frozen=True)
class Build:
    """A compiled program with everything it was built from."""

    request: Request
    options: Options
    compiled: Compiled
    target: CompileTarget
    marks: Mapping[str, int] = field(default_factory=dict)
    """Fingerprints at compile time of the inputs that can be changed in place."""


def build_text(
    text: str | tuple[Statement, ...],
    operands: Sequence[Any],
    inputs: Mapping[str, Any],
    database: Database,
    options: Options,
    memory_limit: str | int | None,
) -> Build:
    """Compile a program from its text.

    Args:
        text: statements, as text or parsed; or a NumPy einsum string, if there are operands.
        operands: inputs of a NumPy einsum string, in order.
        inputs: inputs by tensor name.
        database: where tables are.
        options: all but the resources, which the database has.
        memory_limit: bytes, or a size as text; None is the database's own.

    Raises:
        UcleError: text, inputs or database are wrong.
    """
    subscripts = None
    if isinstance(text, str) and operands:
        _check_operands(text, operands)
        subscripts, shaped = parse_subscripts(text, operands)
        named = {f"X{n}": operand for n, operand in enumerate(shaped)}
        inputs = {**inputs, **named}
    elif isinstance(text, str):
        text = parse_program(text)
    memory = None if memory_limit is None else _memory(memory_limit)
    with _session(database, options) as session:
        quiet = _begin(session, inputs, options)
        if subscripts is not None:
            text = parse_program(subscripts.statement(assignment(session, subscripts, named)))
        assert not isinstance(text, str)
        text, inputs, options = read_packed(text, inputs, options)
        options = replace(options, resources=resources_of(session, memory))
        return _build(Request(text, inputs), database, session, options, quiet, notice=True)


def resources_of(session: Session, memory: float | None = None) -> Resources:
    """Return what programs on a session may use; `memory` is in bytes, by default DuckDB's own."""
    limit, threads = session.resources
    return Resources(
        limit if memory is None else memory,
        threads,
        kernels=session.capabilities.kernels,
        copies=session.capabilities.registered,
        limits=DUCKDB.limits,
    )


def _check_operands(text: str, operands: Sequence[Any]) -> None:
    """Check that operands belong to subscripts: statements take inputs by their names."""
    if not {"=", "["}.isdisjoint(text):
        raise ArgumentTypeError(
            "inputs of statements must have names",
            where="einsum_program",
            expected="each input by its name, and the database of the tables as database=",
            found=f"{type(operands[0]).__name__} behind the text",
            hint='einsum_program(text, A="edges", H=features, database=connection)',
        )
    if any(isinstance(operand, Mapping) for operand in operands):
        raise ArgumentTypeError(
            "inputs by their names stand where the operands of einsum do",
            where="einsum_program",
            expected="inputs=..., or each by its name",
            found="a dict behind the text",
            hint="einsum_program(text, inputs={...})",
        )


def build(
    request: Request, database: Database, options: Options, session: Session | None = None
) -> Build:
    """Compile a request: on a session of its own, or on one that is open on the database."""
    if session is not None:
        return _build(request, database, session, options)
    with _session(database, options) as own:
        quiet = _begin(own, request.inputs, options)
        return _build(request, database, own, options, quiet)


def with_outputs(made: Build, database: Database, names: Collection[str]) -> Build:
    """Return the program with these tensors as outputs, too, where its statements define them."""
    return extend_program(made, database, outputs=names)


def vary_inputs(
    made: Build,
    database: Database,
    names: Collection[str],
    *,
    carried: Mapping[str, str] = NOTHING,
    runs: int = 1,
) -> Build:
    """Return the program with the named inputs made replaceable.

    It relies only on the sizes and types of these inputs; results keep their sizes. If they are all
    replaceable already, the program itself is returned. Decompositions that were given stay, unless
    they are for vertices that exist only for the present data.

    Args:
        made: the program.
        database: where its tables are.
        names: the inputs.
        carried: as in `extend_program`.
        runs: as in `extend_program`.
    """
    return extend_program(made, database, varying=names, carried=carried, runs=runs)


def extend_program(
    made: Build,
    database: Database,
    *,
    statements: Sequence[Statement] = (),
    outputs: Collection[str] = (),
    varying: Collection[str] = (),
    carried: Mapping[str, str] = NOTHING,
    runs: int = 1,
) -> Build:
    """Return a program with more statements, more outputs and more replaceable inputs.

    Args:
        made: the program; it is returned itself where nothing changes.
        database: where its tables are.
        statements: statements to be added.
        outputs: tensors to be returned, too, if statements define them.
        varying: the inputs to be made replaceable, as in `vary_inputs`.
        carried: those of them that an output replaces after the first run, with these outputs.
        runs: the number of runs on the same data of its other inputs.
    """
    request, options = made.request, made.options
    request = replace(request, statements=(*request.statements, *statements))
    defined = {statement.target.tensor for statement in request.statements}
    before = made.compiled.program.outputs
    more = [name for name in dict.fromkeys(outputs) if name in defined and name not in before]
    if more or statements:
        options = replace(options, outputs=(*before, *more))
    inputs = made.compiled.all_inputs
    fixed = [x for x in varying if x in inputs and not inputs[x].described.spec.varies]
    infinities = {x: y for x in carried if x not in options.carried and (y := _infinity(inputs, x))}
    request = replace(request, inputs=_varying(request.inputs, fixed))
    if fixed:
        # The first size of an axis may be the number of entries that an index reaches.
        sizes = made.compiled.front.source.bounds.sizes.items()
        reached = {label: size for (_, label), size in sizes if label in fixed}
        options = replace(options, bounds={**reached, **(options.bounds or {})})
    planned_again = runs > options.runs and _has_parts_of_both_kinds(made, varying)
    stored = {x for x in carried if x in inputs and isinstance(inputs[x].source, TableSource)}
    planned_again = planned_again or not stored <= options.carried
    options = replace(
        options, runs=max(runs, options.runs), carried=options.carried | frozenset(carried)
    )
    if not (more or statements or fixed or planned_again or infinities):
        return made
    if infinities:
        limited = replace(request, inputs=_limited(request.inputs, infinities))
        extended = _build_extended(limited, database, options, fixed)
        if all(_stays_infinite(extended, x, carried[x]) for x in infinities):
            return extended
    return _build_extended(request, database, options, fixed)


def allow_any_numbers(made: Build, database: Database) -> Build:
    """Return the program for states that may hold NaN, too, and any infinity."""
    given = made.request.inputs
    limited = {x for x, y in given.items() if isinstance(y, TableInput) and y.infinity is not None}
    inputs = _limited(given, dict.fromkeys(limited))
    return build(replace(made.request, inputs=inputs), database, made.options)


def _build_extended(
    request: Request, database: Database, options: Options, fixed: Collection[str]
) -> Build:
    """Compile a request; a decomposition may be for the data of inputs that are no longer fixed."""
    try:
        return build(request, database, options)
    except UcleError:
        if not fixed or isinstance(options.decomposition, str):
            raise
        return build(request, database, replace(options, decomposition="auto"))


def _infinity(inputs: Mapping[str, BoundInput], name: str) -> float | None:
    """The one infinity in an array; 0 or None if it has none, or has NaN or both."""
    if name not in inputs or not isinstance(inputs[name].source, ArraySource):
        return None
    return find_infinity(inputs[name].data)


def _limited(inputs: Mapping[str, Any], infinities: Mapping[str, float | None]) -> dict[str, Any]:
    """Return the inputs, with the infinity that each of the named ones may hold."""
    return {**inputs, **{x: replace(inputs[x], infinity=y) for x, y in infinities.items()}}


def _stays_infinite(made: Build, name: str, output: str) -> bool:
    """True if an output has no infinity but that of the input that it replaces, and no NaN.

    The program is compiled for inputs of which this holds: by induction it holds of all states. As
    elsewhere, numbers that outgrow their type are not counted.
    """
    given, type_ = made.compiled.all_inputs[name], made.compiled.program.types[output]
    infinity = given.described.spec.infinity
    if infinity == given.fill and type_.fill != given.fill:
        return False  # entries that equal the fill of the input are entries of the output
    return type_.every.finite or type_.every.infinity == infinity


def _has_parts_of_both_kinds(made: Build, varying: Collection[str]) -> bool:
    """True if a program with a chosen decomposition has both replaceable and fixed inputs."""
    inputs = made.compiled.inputs
    vary = {x for x in inputs if x in varying or inputs[x].described.spec.varies}
    return made.options.decomposition == "auto" and 0 < len(vary) < len(inputs)


def _varying(inputs: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the inputs as they are passed, with the named ones marked as replaceable."""
    given = dict(inputs)
    for name in names:
        value = given[name]
        spec = value if isinstance(value, TableInput) else TableInput(value)
        given[name] = replace(spec, varies=True)
    return given


def _session(database: Database, options: Options) -> Session:
    """Open a session to compile on, which stores nothing unless `store` is set."""
    return open_checked(database) if options.store else open_passing(database)


def _begin(session: Session, inputs: Mapping[str, Any], options: Options) -> Quiet:
    """Begin a compilation on a session that was just opened.

    Its first execution need not look at the tables again, unless layouts of them are stored now.
    """
    relations = (x.relation if isinstance(x, TableInput) else x for x in inputs.values())
    if options.store or not any(isinstance(x, str | os.PathLike) for x in relations):
        return Quiet(session)
    return Quiet.begin(session)


def _build(
    request: Request,
    database: Database,
    session: Session,
    options: Options,
    quiet: Quiet | None = None,
    *,
    notice: bool = False,
) -> Build:
    marks = fingerprints(request.inputs)
    with observing(session, None if quiet is None else quiet.seen):
        compiled = compile_statements(
            request.statements,
            request.inputs,
            session,
            options,
            request.labels,
            notice=notice,
        )
        versions = table_versions(session, compiled.all_inputs)
    if quiet is not None:
        quiet.end()
    if options.store:
        compiled = keep_inputs(session, compiled, options)
        versions = table_versions(session, compiled.all_inputs)
    engine = session.capabilities, session.reason
    target = CompileTarget(database, *engine, versions, engine).running(compiled)
    return Build(request, options, compiled, target, marks)


def _memory(limit: str | int) -> float:
    """The bytes of the caller's limit."""
    size = parse_size(str(limit))
    if not size:
        raise ArgumentError(
            "the memory limit is 0",
            where="memory limit",
            expected="more than 0 bytes",
            found=repr(limit),
            hint="None, the default, stands for DuckDB's own limit",
        )
    return size
