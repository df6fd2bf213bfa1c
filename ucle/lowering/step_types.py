"""The types of steps' results if all factors are joined in the order of the text.

They decide whether a product may be joined in another order at all, which does not depend on the
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertex_types import along_type, pair_type, reindexed_type, top_type, unary_type
from ucle.ir.vertices import Operand, Span
from ucle.lowering.logical import Contraction, Labels, LogicalProgram, LogicalStatement, Use
from ucle.lowering.pairwise import Pairwise, alone, binary_vertex
from ucle.operators import Reduce


@dataclass(frozen=True)
class StepTypes:
    """The types of steps' results, with factors joined as in the text.

    `steps` are the steps that may be used, by name, and `types` the types of all tensors.
    """

    steps: Mapping[str, Contraction]
    types: Mapping[str, TensorType]
    exact: bool

    def of_use(self, use: Use, span: Span | None) -> TensorType:
        """Return the type of a use with its maps applied.

        Raises:
            UcleError: as `ucle.ir.vertex_types.unary_type`.
        """
        return self._unary(use, use.labels, None, span)

    def of_step(self, step: Contraction, span: Span | None) -> TensorType:
        """Return the type of a step's result, without the constants of a chain.

        If a chain cannot be joined as in the text, no error is raised here: another order may work,
        and until then nothing is known of its type.

        Raises:
            UcleError: as `ucle.ir.vertex_types.unary_type`.
        """
        if step.combine is None:
            (use,) = step.factors
            return self._unary(use, step.labels, step.reduce, span)
        if step.is_chain:
            try:
                return self._of_chain(step, span).transpose_axes(step.labels)
            except UcleError:
                return TensorType(step.labels, step.dtype)
        types = {str(n): self.of_use(x.cast(step.dtype), span) for n, x in enumerate(step.factors)}
        left, right = (Operand(name, type_.axes) for name, type_ in types.items())
        vertex = binary_vertex(
            step.name,
            step.combine,
            (left, right),
            step.labels,
            step.reduce,
            types,
            span,
            self.exact,
        )
        return vertex.tensor.type

    def _unary(
        self, use: Use, labels: Labels, reduce: Reduce | None, span: Span | None
    ) -> TensorType:
        """Return the type of a use with its maps, and the constants of the step that it reads."""
        step = self.steps.get(use.tensor)
        maps = use.maps if step is None else (*step.maps, *use.maps)
        return unary_type(self.types[use.tensor], use.labels, maps, labels, reduce, span)

    def _of_chain(self, step: Contraction, span: Span | None) -> TensorType:
        assert step.written is not None
        factors = [self.of_use(factor.cast(step.dtype), span) for factor in step.factors]
        if step.reduce is not None:
            gone = alone([type_.axes for type_ in factors], step.over)
            factors = [
                _without(type_, own, step.reduce, span) if own else type_
                for type_, own in zip(factors, gone, strict=True)
            ]
        if len(factors) == 1:
            return factors[0]
        pairwise = Pairwise(step, [(type_.axes, type_) for type_ in factors], span, self.exact)
        return pairwise.vertices(step.written)[-1].tensor.type


def _without(type_: TensorType, over: Labels, reduce: Reduce, span: Span | None) -> TensorType:
    kept = tuple(label for label in type_.axes if label not in over)
    return unary_type(type_, type_.axes, (), kept, reduce, span)


def types_of(
    logical: LogicalProgram, statements: Sequence[LogicalStatement]
) -> dict[str, TensorType]:
    """Return the types of a program's tensors if it had these statements.

    Raises:
        UcleError: as `ucle.ir.vertex_types.unary_type`.
    """
    types = {name: logical.types[name] for name in logical.inputs}
    for statement in statements:
        if statement.index is not None:
            source = statement.result
            types[statement.target] = reindexed_type(
                types[source.tensor], source.labels, statement.index, statement.labels
            )
            continue
        step_types = StepTypes(statement.by_name, types, logical.exact)
        for step in statement.steps:
            types[step.name] = step_types.of_step(step, statement.span)
        type_ = step_types.of_use(statement.result, statement.span)
        if statement.along is not None:
            types[statement.target] = along_type(type_, statement.along, statement.labels)
            continue
        if statement.top is not None:
            axes, labels = statement.result.labels, statement.labels
            types[statement.target] = top_type(type_, statement.top, axes, labels)
            continue
        if statement.pair is not None:
            pair, second = statement.pair
            sources = type_, step_types.of_use(second, statement.span)
            types[statement.target] = pair_type(sources, pair, statement.labels)
            continue
        types[statement.target] = type_.transpose_axes(statement.labels)
    return types
