"""The pipeline: from the text of a program to its plan. Read this file first.

    text -> parse -> resolve -> bind inputs (GetStats) -> logical program -> SparseEinSum -> plan
         -> passes

`compile_statements` runs the stages in order; each is a pure function from one frozen structure to
the next, but for the binding of inputs, which reads tables. In which order the factors of products
are joined is chosen together with the decomposition: `ucle.optimiser.association` contracts the
logical program in several orders and lets SparseEinSum price each. Passes (`ucle.plan.passes`) make
of the plan what runs; `ucle.sqlgen` turns that into SQL and `ucle.run.execute` runs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ucle.database.session import Session
from ucle.errors import NameResolutionError, UcleError, did_you_mean
from ucle.foundation.names import fresh_prefix
from ucle.inputs.binding import BoundInput, bind_inputs, rebind_inputs
from ucle.inputs.dictionaries import Dictionaries, bind_dictionaries
from ucle.inputs.small_arrays import small_arrays
from ucle.inputs.stored_layouts import check_stored, find_kept, to_keep
from ucle.ir.annihilation import annihilated, checked_tensors, uncertain_vertices
from ucle.ir.fills import same_joins
from ucle.ir.layouts import Decomposition
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertex_types import retyped
from ucle.ir.vertices import Program
from ucle.language.bounds import Site, check_labels, infer_bounds, size_classes
from ucle.language.resolve import resolve
from ucle.language.statements import (
    check_output_labels,
    check_ranks,
    input_labels,
    order_statements,
    wanted,
)
from ucle.language.syntax import Statement
from ucle.lowering.syntax_to_logical import Source, syntax_to_logical
from ucle.optimiser.association import Association, Decide, Decided, Lowering, associate
from ucle.optimiser.choose_decomposition import (
    check_memory,
    decompose,
    pinned,
    price_program,
    refusal,
)
from ucle.optimiser.pricing import CostedProgram, Prices, price
from ucle.optimiser.sparse_einsum import cheapest_plans
from ucle.options import ContractionPath, Optimisations, Options
from ucle.plan.check import check_decomposed, check_plan
from ucle.plan.circumstances import Circumstances
from ucle.plan.decomposition import DecomposedProgram
from ucle.plan.forms import made_by, says_nothing
from ucle.plan.passes import PASSES, Pass, rewritten
from ucle.plan.plan_program import plan_program
from ucle.plan.sources import TableSource
from ucle.plan.steps import Plan
from ucle.sqlgen.scalar_operators import number_expression
from ucle.stats.estimate import Measured, ProgramStatistics


@dataclass(frozen=True)
class Front:
    """What a program was lowered from, and how: enough to lower it again when sizes change."""

    inputs: Mapping[str, BoundInput]
    """All of them, also those that no output needs: their sizes are those of labels, too."""
    source: Source
    lowering: Lowering = field(default_factory=Lowering)


@dataclass(frozen=True)
class Compiled:
    """Everything that the stages made of a program."""

    inputs: Mapping[str, BoundInput]
    program: Program
    statistics: ProgramStatistics
    decomposed: DecomposedProgram
    plan: Plan
    dictionaries: Dictionaries
    association: Association | None = None
    """The order of products, where another than the written one was chosen."""
    front: Front | None = None
    """None of programs that ucle itself makes."""
    statement_price: float = 0.0
    optimisations: Optimisations = field(default_factory=Optimisations)

    @cached_property
    def physical(self) -> Plan:
        """The plan that runs: `plan`, in which vertices are steps, after all passes.

        Small arrays from memory are in it as they are when it is asked for the first time.
        """
        return self.after(PASSES)

    def after(self, passes: Iterable[Pass]) -> Plan:
        """The plan after those of some passes that are not switched off."""
        switches = self.optimisations
        circumstances = Circumstances(
            self.statement_price,
            small_arrays(self.inputs),
            number_expression,
            switches.references or 0,
            switches.fuse,
        )
        on = [rewrite for rewrite in passes if rewrite not in switches.off]
        return rewritten(self.plan, on, circumstances)

    @cached_property
    def nonfill(self) -> frozenset[str]:
        """Tensors of which an entry that holds the fill says nothing (`ucle.plan.forms`)."""
        made = {} if self.front is None else made_by(self.front.source.statements)
        types = self.program.types
        return frozenset(x for x, by in made.items() if x in types and says_nothing(types[x], by))


def compile_statements(
    statements: tuple[Statement, ...],
    inputs: Mapping[str, Any],
    session: Session,
    options: Options,
) -> Compiled:
    """Compile parsed statements over inputs that `session` can see."""
    statements = order_statements(statements)
    check_ranks(statements)
    check_output_labels(statements)
    labels = input_labels(statements)
    check_labels(options.bounds or {}, statements)
    wanted(statements, options.outputs)
    _paths(statements, options.path)
    check_stored(options.store, labels)
    statements = tuple(resolve(statement) for statement in statements)
    bound = bind_inputs(session, labels, inputs, fresh_prefix(), options.statistics)
    return _compile_sized(session, _sized(session, statements, bound, options), options)


def follow_data(
    session: Session, compiled: Compiled, options: Options
) -> tuple[Compiled, dict[str, float]]:
    """The program with the sizes that its data has now, after all checks.

    The decomposition and the order of products stay where they can: where the program with other
    sizes consists of the same vertices, and its arrays stay below the limits.

    Returns:
        The same object where no size has changed; and how many entries inputs hold that are read
        from databases and files.

    Raises:
        UcleError: as `compile_statements`, of what the inputs hold now.
    """
    before = compiled.front
    assert before is not None
    bound, entries = rebind_inputs(session, before.inputs)
    sized = _sized(session, before.source.statements, bound, options)
    sized = replace(sized, front=replace(sized.front, lowering=before.lowering))
    source = sized.front.source
    if source.bounds == before.source.bounds and _as_before(compiled.program, source.types):
        return compiled, entries
    same = _planned_alike(compiled, sized, options)
    return same or _compile_sized(session, sized, options), entries


def with_sizes(
    compiled: Compiled,
    sizes: Mapping[Site, int],
    options: Options,
    chosen: Mapping[str, Decomposition] | None = None,
) -> Compiled | None:
    """The program over the same inputs, if some axes and labels had other sizes.

    Args:
        compiled: the program.
        sizes: the sizes that are to change.
        options: those it was compiled with.
        chosen: the decomposition; by default the one that it has.

    Returns:
        The program; None where it would not consist of the same vertices, or would not fit.
    """
    front = compiled.front
    assert front is not None
    old = front.source
    bounds = replace(old.bounds, sizes={**old.bounds.sizes, **sizes})
    types = {
        name: replace(
            type_,
            axes=tuple(bounds.axis_label(name, n, x.name) for n, x in enumerate(type_.axes)),
        )
        for name, type_ in old.types.items()
    }
    source = replace(old, bounds=bounds, types=types)
    inputs = {name: replace(b, shape=types[name].shape) for name, b in compiled.inputs.items()}
    sized = _Sized(replace(front, source=source), inputs, compiled.dictionaries)
    return _planned_alike(compiled, sized, options, chosen)


def _planned_alike(
    compiled: Compiled,
    sized: _Sized,
    options: Options,
    chosen: Mapping[str, Decomposition] | None = None,
) -> Compiled | None:
    """A program over other sizes as one that there is; None where that cannot be."""
    lowering = sized.front.lowering
    try:
        program = lowering.contract(syntax_to_logical(sized.front.source)).program
        if not _same_vertices(program, compiled.program):
            return None
        inputs = _used(sized.inputs, program)
        statistics = program_statistics(program, inputs, options)
        costed = price_program(program, inputs, statistics, options)
        chosen = chosen or compiled.decomposed.decompositions
        if not all(costed.fits(vertex, chosen[vertex.name]) for vertex in program.vertices):
            return None
        search = compiled.decomposed.search
        decomposed = replace(price(costed, chosen), search=search)
        check_memory(costed, decomposed)
    except UcleError:
        return None
    decided = Decided(program, statistics, decomposed, lowering)
    planned = plan_decided(inputs, decided, sized.dictionaries, options)
    return replace(planned, association=compiled.association, front=sized.front)


def _as_before(program: Program, types: Mapping[str, TensorType]) -> bool:
    """Whether inputs of other types leave a program as it is: what absorbs, and what is checked."""
    old = program.types
    if all(types[name] == old[name] for name in program.input_names):
        return True
    if any(types[name].axes != old[name].axes for name in program.input_names):
        return False
    new = retyped(program, types)
    return same_joins(program, new) and checked_tensors(program) == checked_tensors(new)


def all_inputs(compiled: Compiled) -> Mapping[str, BoundInput]:
    """The inputs of a program, also those that give it nothing but sizes."""
    before = {} if compiled.front is None else compiled.front.inputs
    return {**before, **compiled.inputs}


@dataclass(frozen=True)
class _Sized:
    """The inputs of a program in their shapes."""

    front: Front
    inputs: Mapping[str, BoundInput]
    dictionaries: Dictionaries


def _sized(
    session: Session,
    statements: tuple[Statement, ...],
    inputs: Mapping[str, BoundInput],
    options: Options,
) -> _Sized:
    """Give all labels of resolved statements the sizes that inputs and options say."""
    classes = size_classes(statements)
    dictionaries, bound = bind_dictionaries(session, inputs, classes, fresh_prefix())
    bounds = infer_bounds(
        statements,
        {name: b.bounds for name, b in bound.items()},
        options.bounds or {},
        classes,
        dictionaries.axes,
    )
    types = {
        name: TensorType(
            tuple(bounds.axis_label(name, axis, x) for axis, x in enumerate(b.labels)),
            dtype=b.dtype,
            fill=b.fill,
            values=b.values,
        )
        for name, b in bound.items()
    }
    bound = {
        name: replace(b, shape=types[name].shape, statistics=b.statistics.within(types[name].shape))
        for name, b in bound.items()
    }
    types = {name: known_full(type_, bound[name]) for name, type_ in types.items()}
    source = Source(
        statements,
        types,
        bounds,
        options.outputs,
        _paths(statements, options.path),
        options.nonfinite == "exact",
    )
    return _Sized(Front(inputs, source), bound, dictionaries)


def _compile_sized(session: Session, sized: _Sized, options: Options) -> Compiled:
    """The stages from the order of products to the plan."""
    source = sized.front.source
    bound = find_kept(session, to_keep(session, sized.inputs, options.store))
    decided, association = associate(
        syntax_to_logical(source),
        Measured({name: b.statistics for name, b in bound.items()}, options.order_estimator),
        _decide(source, bound, options),
        options.association,
        _fixed(source, options),
    )
    used = _used(bound, decided.program)
    compiled = plan_decided(used, decided, sized.dictionaries, options)
    front = replace(sized.front, lowering=decided.lowering)
    return _with_pins(replace(compiled, association=association, front=front), source, options)


def _same_vertices(one: Program, other: Program) -> bool:
    """Whether two programs differ in nothing but sizes, and in what follows from them."""

    def work(program: Program) -> list[object]:
        return [
            (v.name, v.names, v.combine, v.reduce, [(x.tensor, x.names) for x in v.inputs])
            for v in program.vertices
        ]

    return work(one) == work(other)


def plan_decomposition(compiled: Compiled, options: Options) -> Compiled:
    """The last stages once more, for another decomposition of a DAG in the order that it has."""
    program, statistics = compiled.program, compiled.statistics
    decomposed = decompose(program, compiled.inputs, statistics, options)
    decided = Decided(program, statistics, decomposed)
    planned = plan_decided(compiled.inputs, decided, compiled.dictionaries, options)
    return replace(planned, association=compiled.association, front=compiled.front)


def plan_decided(
    bound: Mapping[str, BoundInput], decided: Decided, dictionaries: Dictionaries, options: Options
) -> Compiled:
    """The last stage: plan a DAG whose decomposition is known."""
    decomposed = decided.decomposed
    check_decomposed(decomposed)
    plan = plan_program(
        decomposed,
        {name: b.sources for name, b in bound.items()},
        dictionaries.tables,
    )
    check_plan(plan)
    return Compiled(
        bound,
        decided.program,
        decided.statistics,
        decomposed,
        plan,
        dictionaries,
        statement_price=options.profile.statement,
        optimisations=options.optimisations,
    )


def read_from(compiled: Compiled, inputs: Mapping[str, BoundInput], options: Options) -> Compiled:
    """The same decomposition, for inputs that are the same and lie elsewhere, too."""
    old = compiled.decomposed
    costed = price_program(compiled.program, inputs, compiled.statistics, options)
    decomposed = replace(price(costed, old.decompositions), search=old.search)
    decided = Decided(compiled.program, compiled.statistics, decomposed)
    planned = plan_decided(inputs, decided, compiled.dictionaries, options)
    return replace(planned, association=compiled.association, front=compiled.front)


def plan_annihilated(compiled: Compiled, options: Options) -> Compiled:
    """The same decomposition, for data on which numbers outgrow their type."""
    program = annihilated(compiled.program, uncertain_vertices(compiled.program))
    decomposed = replace(compiled.decomposed, program=program)
    decided = Decided(program, compiled.statistics, decomposed)
    planned = plan_decided(compiled.inputs, decided, compiled.dictionaries, options)
    return replace(planned, association=compiled.association, front=compiled.front)


def cheapest_decompositions(
    compiled: Compiled, k: int, options: Options
) -> list[DecomposedProgram]:
    """The `k` cheapest decompositions of a compiled program; what was pinned stays."""
    given = options.decomposition
    pins = {} if isinstance(given, str) else pinned(compiled.program, given)
    costed = costed_program(compiled, options)
    return list(cheapest_plans(costed, k, pins, lambda plan: refusal(costed, plan) is None))


def costed_program(compiled: Compiled, options: Options) -> CostedProgram:
    """A compiled program with prices for all its decompositions."""
    return price_program(compiled.program, compiled.inputs, compiled.statistics, options)


def known_full(type_: TensorType, bound: BoundInput) -> TensorType:
    """The type of an input, which is full where no entry is worth the fill."""
    size, source = math.prod(type_.shape), bound.source
    counted = not (isinstance(source, TableSource) and source.sum_duplicates)
    full = counted and 0 < size <= bound.statistics.entries
    return replace(type_, values=replace(type_.entries, full=full))


def _used(bound: Mapping[str, BoundInput], program: Program) -> dict[str, BoundInput]:
    return {name: b for name, b in bound.items() if name in program.input_names}


def _decide(source: Source, bound: Mapping[str, BoundInput], options: Options) -> Decide:
    """What chooses the decomposition of a program, and remembers prices for the next one.

    What is pinned of tensors that the text does not name is left for later: only in one order they
    are there.
    """
    pins = options.decomposition
    if not isinstance(pins, str):
        named = {s.target.tensor for s in source.statements}
        options = replace(options, decomposition={x: pins[x] for x in pins if x in named})
    prices = Prices()

    def decide(program: Program) -> Decided:
        inputs = _used(bound, program)
        statistics = program_statistics(program, inputs, options)
        return Decided(program, statistics, decompose(program, inputs, statistics, options, prices))

    return decide


def program_statistics(
    program: Program, inputs: Mapping[str, BoundInput], options: Options
) -> ProgramStatistics:
    """What the estimator of a program's costs knows of its tensors."""
    measured = {name: b.statistics for name, b in inputs.items()}
    return Measured(measured, options.cost_estimator).of(program)


def _with_pins(compiled: Compiled, source: Source, options: Options) -> Compiled:
    """A program in its order, planned once more if tensors are pinned that only the order makes."""
    pins = options.decomposition
    named = {s.target.tensor for s in source.statements}
    if isinstance(pins, str) or named.issuperset(pins):
        return compiled
    return plan_decomposition(compiled, options)


def _fixed(source: Source, options: Options) -> frozenset[str] | None:
    """The tensors of which something is said: their statements stay. None stands for all."""
    if options.decomposition == "as-written":
        return None
    pinned = () if isinstance(options.decomposition, str) else options.decomposition
    return frozenset((*pinned, *source.paths))


def _paths(
    statements: tuple[Statement, ...], path: ContractionPath | None
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """The contraction paths that are given, by the name of the statement's tensor."""
    names = [statement.target.tensor for statement in statements]
    if path is None:
        return {}
    if not isinstance(path, Mapping):
        if len(names) != 1:
            raise NameResolutionError(
                "a contraction path does not say which statement it is for",
                where="path",
                expected="a dict from tensor to path, as the program has several statements",
                found=str(path),
                hint=f"path={{{names[-1]!r}: ...}}",
            )
        path = {names[0]: path}
    for name in path:
        if name not in names:
            raise NameResolutionError(
                f"the contraction path names an unknown tensor {name}",
                where=f"path, {name}",
                expected="one of " + ", ".join(names),
                found=name,
                hint=did_you_mean(name, names),
            )
    return {name: tuple(tuple(step) for step in steps) for name, steps in path.items()}
