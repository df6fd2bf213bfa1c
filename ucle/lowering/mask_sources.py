"""Sources of masks: the factors of a product that are sparse and hide entries of others.

A `MaskedProgram` is a program during mask push-down: its statements in their current form, and
queries about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ucle.ir.conditions import Compare, Sign, conjuncts
from ucle.ir.index_maps import IndexMap
from ucle.ir.tensor_types import TensorType
from ucle.lowering.logical import MOST_MAPS, Contraction, LogicalProgram, LogicalStatement, Use
from ucle.lowering.masks import annihilates
from ucle.lowering.step_types import StepTypes


class MaskedProgram:
    """The current statements; one instance pushes down all masks of a program.

    `sparse` are the inputs that are worth a mask, `fixed` the tensors whose statements stay.
    """

    def __init__(
        self, logical: LogicalProgram, sparse: frozenset[str], fixed: frozenset[str]
    ) -> None:
        self.statements = dict(logical.by_name)
        self.types: dict[str, TensorType] = dict(logical.types)
        self.fixed = fixed
        self.results = frozenset(logical.results)
        self.exact = logical.exact
        self._sparse = sparse
        self._order = {name: place for place, name in enumerate(self.statements)}
        self._known_sparse: dict[str, bool] = {}
        """A cache for tensors of statements, because many may read the same one."""
        self._names = 0

    def fresh(self, target: str) -> str:
        """Return a new name for a step of a statement."""
        self._names += 1
        return f"{target}.m{self._names}"

    def masks(self, target: str, step: Contraction, number: int) -> list[int]:
        """Return the factors at whose entries alone another one is needed, the best first."""
        statement, own = self.statements[target], set(step.factors[number].labels)
        shared: dict[int, int] = {}
        for place, factor in enumerate(step.factors):
            common = own.intersection(factor.labels)
            if place == number or not common or len(factor.maps) >= MOST_MAPS - 2:
                continue
            if len(common) < 2 and len(factor.distinct) > 1:
                continue  # rows of a matrix are hardly ever empty
            if self.is_sparse(statement, factor) and self._hides(statement, step, place, number):
                shared[place] = len(common)
        return sorted(shared, key=lambda place: -shared[place])

    def is_sparse(self, statement: LogicalStatement, use: Use) -> bool:
        """Return whether a sparse input makes a tensor sparse, if fills are left unchanged."""
        return self._sparse_within(statement, use.tensor, {})

    def _sparse_within(
        self, statement: LogicalStatement, tensor: str, steps: dict[str, bool]
    ) -> bool:
        """Return whether a tensor or a step of a statement is sparse; `steps` caches steps."""
        step = statement.by_name.get(tensor)
        if step is None:
            return self._sparse_made(tensor)
        if tensor not in steps:
            sparse = [self._sparse_within(statement, x.tensor, steps) for x in step.factors]
            one_will_do = step.combine is None or step.combine.sparse_by_one
            steps[tensor] = any(sparse) if one_will_do else all(sparse)
        return steps[tensor]

    def _sparse_made(self, tensor: str) -> bool:
        made = self.statements.get(tensor)
        if made is None:
            return tensor in self._sparse
        if tensor not in self._known_sparse:
            few = made.index is not None and _holds_at_few(made.index)
            within = few or self._sparse_within(made, made.result.tensor, {})
            self._known_sparse[tensor] = within
        return self._known_sparse[tensor]

    def adopt(
        self, statements: Mapping[str, LogicalStatement], types: Mapping[str, TensorType]
    ) -> None:
        """Replace statements by new ones of the same names, and add the types of their steps."""
        self.statements.update(statements)
        self.types.update(types)
        # Statements before the first of them read none of them.
        first = min(self._order[name] for name in statements)
        for name in [x for x in self._known_sparse if self._order[x] >= first]:
            del self._known_sparse[name]

    def _hides(
        self, statement: LogicalStatement, step: Contraction, place: int, number: int
    ) -> bool:
        """Return whether the fill of one factor gives one value with whatever another one holds."""
        types = StepTypes(statement.by_name, self.types, self.exact)
        one, other = (
            types.of_use(step.factors[n].cast(step.dtype), statement.span) for n in (place, number)
        )
        return annihilates(step, one, other, first=place < number, exact=self.exact)

    def is_read_behind(self, name: str, mask: Use) -> bool:
        """Return whether every reader of a statement's tensor needs it only behind a mask.

        Args:
            name: name of the statement.
            mask: mask under the labels of the statement.
        """
        readers = [x for x in self.statements.values() if any(y.tensor == name for y in uses(x))]
        return all(self._hides_all(statement, name, mask) for statement in readers)

    def _hides_all(self, statement: LogicalStatement, name: str, mask: Use) -> bool:
        """Return whether a statement's products that use a tensor all have the mask as a factor."""
        if any(use.tensor == name for use in statement.whole_uses):
            return False
        own = self.statements[name].labels
        for step in statement.steps:
            for number, use in enumerate(step.factors):
                if use.tensor != name:
                    continue
                names = dict(zip(own, use.labels, strict=True))
                labels = tuple(names[label] for label in mask.labels)
                if not any(
                    step.factors[place].tensor == mask.tensor
                    and step.factors[place].labels == labels
                    for place in self.masks(statement.target, step, number)
                ):
                    return False
        return True

    def readers(self, name: str) -> int:
        """Return the number of uses of a statement's tensor."""
        return sum(
            use.tensor == name for statement in self.statements.values() for use in uses(statement)
        )

    def is_before(self, tensor: str, target: str) -> bool:
        """Return whether a tensor exists when a statement is computed."""
        place = self._order.get(tensor)
        return tensor in self.types and (place is None or place < self._order[target])


def _holds_at_few(index: IndexMap) -> bool:
    """Return whether a read is not fill only where labels are related, as in i == j."""
    return any(
        isinstance(each, Compare) and each.sign is Sign.EQUAL and len(each.affine.labels) > 1
        for each in conjuncts(index.condition)
    )


def uses(statement: LogicalStatement) -> Iterator[Use]:
    """Yield all uses of a statement."""
    for step in statement.steps:
        yield from step.factors
    yield from statement.whole_uses
