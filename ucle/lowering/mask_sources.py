"""Where masks come from: which factors of a product are sparse, and hide what others are.

A `MaskedProgram` is a program whose masks are being passed down: its statements as they are so far,
and what is asked of them on the way.
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
    """The statements as they are so far; one instance passes all masks of a program down.

    `sparse` are the inputs that are worth a mask, `fixed` tensors whose statements stay.
    """

    def __init__(
        self, logical: LogicalProgram, sparse: frozenset[str], fixed: frozenset[str]
    ) -> None:
        self.statements = dict(logical.by_name)
        self.types: dict[str, TensorType] = dict(logical.types)
        self.fixed = fixed
        self.outputs = frozenset(logical.outputs)
        self.exact = logical.exact
        self._sparse = sparse
        self._order = {name: place for place, name in enumerate(self.statements)}
        self._known_sparse: dict[str, bool] = {}
        """Tensors of statements, of which many may read the same one."""
        self._names = 0

    def fresh(self, target: str) -> str:
        """A name for a step of a statement."""
        self._names += 1
        return f"{target}.m{self._names}"

    def masks(self, target: str, step: Contraction, number: int) -> list[int]:
        """The factors whose entries are all that another one is looked at, the best first."""
        statement, own = self.statements[target], set(step.factors[number].labels)
        shared: dict[int, int] = {}
        for place, factor in enumerate(step.factors):
            common = own.intersection(factor.labels)
            if place == number or not common or len(factor.maps) >= MOST_MAPS - 2:
                continue
            if len(common) < 2 and len(factor.distinct) > 1:
                continue  # hardly a row of a matrix is empty
            if self.is_sparse(statement, factor) and self._hides(statement, step, place, number):
                shared[place] = len(common)
        return sorted(shared, key=lambda place: -shared[place])

    def is_sparse(self, statement: LogicalStatement, use: Use) -> bool:
        """Whether an input makes a tensor sparse, wherever its fill is left as what it is."""
        return self._sparse_within(statement, use.tensor, {})

    def _sparse_within(
        self, statement: LogicalStatement, tensor: str, steps: dict[str, bool]
    ) -> bool:
        """The same of a tensor or a step of a statement, of which some are known."""
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
        """Take statements in the place of those of their names, and the types of their steps."""
        self.statements.update(statements)
        self.types.update(types)
        # What comes before the first of them reads none of them.
        first = min(self._order[name] for name in statements)
        for name in [x for x in self._known_sparse if self._order[x] >= first]:
            del self._known_sparse[name]

    def _hides(
        self, statement: LogicalStatement, step: Contraction, place: int, number: int
    ) -> bool:
        """Whether the fill of one factor makes one value of whatever another one is."""
        types = StepTypes(statement.by_name, self.types, self.exact)
        one, other = (
            types.of_use(step.factors[n].cast(step.dtype), statement.span) for n in (place, number)
        )
        return annihilates(step, one, other, first=place < number, exact=self.exact)

    def is_read_behind(self, name: str, mask: Use) -> bool:
        """Whether whoever reads a statement's tensor looks at it behind a mask alone.

        Args:
            name: of the statement.
            mask: under the labels of the statement.
        """
        readers = [x for x in self.statements.values() if any(y.tensor == name for y in uses(x))]
        return all(self._hides_all(statement, name, mask) for statement in readers)

    def _hides_all(self, statement: LogicalStatement, name: str, mask: Use) -> bool:
        """The same of the uses in one statement: in each product a factor is the mask."""
        if statement.result.tensor == name:
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
        """How many uses of a statement's tensor there are."""
        return sum(
            use.tensor == name for statement in self.statements.values() for use in uses(statement)
        )

    def is_before(self, tensor: str, target: str) -> bool:
        """Whether a tensor is there when a statement is computed."""
        place = self._order.get(tensor)
        return tensor in self.types and (place is None or place < self._order[target])


def _holds_at_few(index: IndexMap) -> bool:
    """Whether a read is worth something where labels have one relation alone, as i == j."""
    return any(
        isinstance(each, Compare) and each.sign is Sign.EQUAL and len(each.affine.labels) > 1
        for each in conjuncts(index.condition)
    )


def uses(statement: LogicalStatement) -> Iterator[Use]:
    """All that a statement uses."""
    for step in statement.steps:
        yield from step.factors
    yield statement.result
