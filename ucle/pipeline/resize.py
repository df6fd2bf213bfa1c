"""A compiled program for other sizes: the current ones of its data, or possible later ones.

The decomposition and the join order stay where possible: where the program with other sizes
consists of the same vertices, and its arrays stay below the limits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ucle.database.session import Session
from ucle.errors import UcleError
from ucle.inputs.axis_sizes import SizedInputs, size_inputs
from ucle.inputs.binding import rebind_inputs
from ucle.inputs.dictionaries import Dictionaries
from ucle.inputs.states import BoundInput, PlacedInput
from ucle.ir.layouts import Decomposition
from ucle.ir.maps import Pointwise
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertex_types import retype_program
from ucle.ir.vertices import Program
from ucle.language.statements import asks_for_zeros
from ucle.language.syntax import Site
from ucle.lowering.syntax_to_logical import ResolvedProgram, syntax_to_logical
from ucle.optimiser.join_order import Decided
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled, Front
from ucle.pipeline.refit import has_vertices_of, keeps_joins_and_checks, may_decompose, refit
from ucle.pipeline.replan import plan_from_source
from ucle.pipeline.stages import compile_sized, plan_decided, source_of
from ucle.plan.sources import TableSource


def follow_data(
    session: Session, compiled: Compiled, options: Options
) -> tuple[Compiled, dict[str, float]]:
    """Return the program with the current sizes of its data, after all checks.

    Returns:
        The same object where no size has changed; and how many entries inputs hold that are read
        from databases and files.

    Raises:
        UcleError: as `ucle.pipeline.stages.compile_statements`, for the current inputs.
    """
    before = compiled.front
    resolved = before.source.statements
    types = before.source.types
    bound, entries = rebind_inputs(
        session,
        before.inputs,
        options.statistics,
        coverage=asks_for_zeros(resolved) or compiled.relies_on_tuples,
        decided={x for x in types if types[x].decided} if before.lowering.rewrites else (),
    )
    sized = size_inputs(session, resolved, bound, options.bounds or {})
    source = source_of(resolved, sized, options)
    if fits_data(compiled, sized, source):
        return compiled, entries
    front = Front(sized.bound, source, before.lowering)
    inputs = {name: PlacedInput.at(each) for name, each in sized.inputs.items()}
    chosen = compiled.decomposed.decompositions
    same = _plan_alike(compiled, front, inputs, sized.dictionaries, options, chosen)
    if before.lowering.rewrites and not isinstance(options.decomposition, str):
        # It was given for tensors that only rewriting makes, which may no longer be allowed.
        options = replace(options, decomposition="auto")
    return same or compile_sized(session, resolved, sized, options), entries


def fits_data(compiled: Compiled, sized: SizedInputs, source: ResolvedProgram) -> bool:
    """Return whether a program runs as it is on other data for the same inputs.

    Args:
        compiled: the program.
        sized: its inputs, bound to the data.
        source: its statements, with what is known about these inputs.
    """
    before = compiled.front
    alike = source.bounds == before.source.bounds and _as_before(compiled, source.types)
    alike = alike and _keys(sized.bound) == _keys(before.inputs)
    alike = alike and _with_single_rows(before.inputs) <= _with_single_rows(sized.bound)
    return alike and _rewritten_as_before(compiled, source)


def _keys(inputs: Mapping[str, BoundInput]) -> dict[str, tuple[str | None, ...]]:
    """The types in which keys are compared with others."""
    sources = ((name, bound.source) for name, bound in inputs.items())
    return {name: x.keys_as for name, x in sources if isinstance(x, TableSource) and any(x.keys_as)}


def _with_single_rows(inputs: Mapping[str, BoundInput]) -> set[str]:
    """The inputs of which no two rows have the same keys, where that matters."""
    sources = ((name, bound.source) for name, bound in inputs.items())
    return {name for name, x in sources if isinstance(x, TableSource) and x.single_rows}


def for_later_rows(compiled: Compiled, lasting: Collection[str], options: Options) -> Compiled:
    """Return the program for rows of which none decides another column, but for some inputs.

    Args:
        compiled: the program; it is returned itself where no rewrite relies on that.
        lasting: inputs whose later rows will be as those they have.
        options: those it was compiled with.

    Raises:
        UcleError: as `ucle.optimiser.optimise.optimise`.
    """
    source = compiled.front.source
    types = {
        name: type_ if name in lasting else replace(type_, decided=frozenset())
        for name, type_ in source.types.items()
    }
    source = replace(source, types=types)
    if _rewritten_as_before(compiled, source):
        return compiled
    if not isinstance(options.decomposition, str):  # it may be for what rewriting makes
        options = replace(options, decomposition="auto")
    front = replace(compiled.front, source=source)
    return plan_from_source(replace(compiled, front=front), options)


def with_sizes(
    compiled: Compiled,
    sizes: Mapping[Site, int],
    options: Options,
    chosen: Mapping[str, Decomposition] | None = None,
) -> Compiled | None:
    """Return the program over the same inputs with other sizes for some axes and labels.

    Args:
        compiled: the program.
        sizes: the sizes that are to change.
        options: those it was compiled with.
        chosen: the decomposition; by default the one that it has.

    Returns:
        The program; None where it would not consist of the same vertices, or would not fit.
    """
    old = compiled.front.source
    bounds = old.bounds.change_sizes(sizes)
    types = {
        name: replace(
            type_,
            axes=tuple(bounds.axis_label(name, n, x.name) for n, x in enumerate(type_.axes)),
        )
        for name, type_ in old.types.items()
    }
    front = replace(compiled.front, source=replace(old, bounds=bounds, types=types))
    inputs = {name: replace(b, shape=types[name].shape) for name, b in compiled.inputs.items()}
    chosen = chosen or compiled.decomposed.decompositions
    return _plan_alike(compiled, front, inputs, compiled.dictionaries, options, chosen)


def _plan_alike(
    compiled: Compiled,
    front: Front,
    inputs: Mapping[str, PlacedInput],
    dictionaries: Dictionaries,
    options: Options,
    chosen: Mapping[str, Decomposition],
) -> Compiled | None:
    """Plan a program over other sizes like an existing one; None where that is impossible."""
    decomposed = replace(compiled.decomposed, decompositions=chosen)
    old = Decided(compiled.program, compiled.statistics, decomposed, front.lowering)
    decided = refit(old, front.source, inputs, options)
    if decided is None:
        return None
    planned = plan_decided(inputs, decided, dictionaries, options, front.source)
    return Compiled.of(planned, front, compiled.association)


def _as_before(compiled: Compiled, types: Mapping[str, TensorType]) -> bool:
    """True if other input types change nothing: absorption, checks and limits stay the same."""
    program = compiled.program
    old = program.types
    if all(types[name] == old[name] for name in program.input_names):
        return True
    if any(types[name].axes != old[name].axes for name in program.input_names):
        return False
    if compiled.relies_on_tuples and any(
        _may_lack_more(types[name], old[name]) for name in program.input_names
    ):
        return False
    new = retype_program(program, types)
    if not may_decompose(new, compiled.decomposed.decompositions):
        return False
    return keeps_joins_and_checks(program, new)


def _may_lack_more(type_: TensorType, before: TensorType) -> bool:
    """True if a plan may rely on tuples (`ucle.plan.every_tuple`) that may be missing now."""
    return (before.entries.full and not type_.entries.full) or not (
        type_.covered >= before.covered and type_.occupied >= before.occupied
    )


def _rewritten_as_before(compiled: Compiled, source: ResolvedProgram) -> bool:
    """True if rewrites and masks are still allowed, as their changes are still invisible."""
    lowering = compiled.front.lowering
    if not lowering.rewrites or source.types == compiled.front.source.types:
        return True
    try:
        program = lowering.contract(syntax_to_logical(source)).program
    except UcleError:
        return False
    # A form that could not be negative is clamped at 0, which may be wrong now.
    same_maps = _maps(program) == _maps(compiled.program)
    return same_maps and has_vertices_of(program, compiled.program)


def _maps(program: Program) -> list[tuple[Pointwise, ...]]:
    return [vertex.maps for vertex in program.vertices]
