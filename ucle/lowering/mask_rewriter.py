"""Push a mask through the steps of a statement, operator by operator.

It passes maps unchanged, also those that change the fill, because the hidden entries are not
needed. It passes aggregations in the labels that are left. A chain gets it as one more factor, so
that the search for an order finds the join along its entries. Of the two operands of another ⊗,
each that lacks labels of the mask becomes ``when(mask, operand)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, is_finite
from ucle.ir.contraction_trees import Tree, fold
from ucle.ir.tensor_types import TensorType
from ucle.lowering.logical import Contraction, LogicalStatement, Use
from ucle.lowering.mask_sources import MaskedProgram, uses
from ucle.lowering.masks import annihilates, may_overflow, never_raises
from ucle.lowering.step_types import StepTypes
from ucle.operators import ANY, WHEN


@dataclass
class MaskRewriting:
    """The state of a statement's rewriting, and its results.

    `types` takes the types of new steps. `of_statement` rewrites an earlier statement behind a
    mask, and returns whether anything changed. `made` collects the new steps, each after those that
    it uses, and `reads` has the tensors that are read for masks. `raises` is True if a new step may
    raise an error that the written ones do not.
    """

    program: MaskedProgram
    statement: LogicalStatement
    types: dict[str, TensorType]
    of_statement: Callable[[str, Use], bool]
    made: list[Contraction] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    raises: bool = False

    def __post_init__(self) -> None:
        self.shared = Counter(use.tensor for use in uses(self.statement))

    def now(self) -> StepTypes:
        """Return the types of all steps, new ones included."""
        steps: Mapping[str, Contraction] = {x.name: x for x in (*self.statement.steps, *self.made)}
        return StepTypes(steps, {**self.program.types, **self.types}, self.program.exact)

    def written_types(self, *, exact: bool | None = None) -> StepTypes:
        """Return the types of the written steps."""
        exact = self.program.exact if exact is None else exact
        return StepTypes(self.statement.by_name, self.program.types, exact)

    def add(self, step: Contraction) -> Contraction:
        """Add a new step under a name of its own."""
        step = replace(step, name=self.program.fresh(self.statement.target))
        type_ = self.now().of_step(step, self.statement.span)
        self.types[step.name] = type_
        self.made.append(step)
        known = step.combine is None or step.combine.rule is not None
        known = known and (step.reduce is None or step.reduce.rule is not None)
        # Selected values have been computed before, however large they are.
        computed = step.combine is not WHEN or step.reduce is not None
        self.raises = self.raises or not known or (computed and may_overflow(type_))
        return step

    def check_use(self, use: Use) -> Use:
        """Return a use of a new step, and record if its maps may raise."""
        span = self.statement.span
        self.raises = self.raises or not never_raises(use, self.now(), span)
        return use


@dataclass
class Behind:
    """The rewriting of a statement's steps behind one mask."""

    mask: Use
    rewriting: MaskRewriting

    def restrict_use(self, use: Use, *, alone: bool) -> Use | None:
        """Return a use computed behind the mask alone; None if that changes nothing.

        `alone` means that the tensor of the use has no other reader.
        """
        rewriting = self.rewriting
        alone = alone and rewriting.shared[use.tensor] == 1
        step = rewriting.statement.by_name.get(use.tensor)
        if step is None:
            restricts = alone and self._restricts_statement(use)
            return rewriting.check_use(use) if restricts else None
        if not self._stays_exact(step, use):
            return None
        mask = self._project_mask(step)
        if mask is None:
            return None
        new = Behind(mask, rewriting).step(step, alone=alone)
        if new is None:
            return None
        return rewriting.check_use(replace(use, tensor=new.name, labels=new.labels))

    def step(self, step: Contraction, *, alone: bool) -> Contraction | None:
        """Return a step rewritten behind the mask, whose labels are among its own."""
        chooses = step.combine is WHEN and step.factors[0].tensor == self.mask.tensor
        if chooses and step.factors[0].labels == self.mask.labels:
            return None  # the step is behind the mask already
        found = [self.restrict_use(factor, alone=alone) for factor in step.factors]
        factors = [new or old for new, old in zip(found, step.factors, strict=True)]
        made: Contraction | None = replace(step, factors=tuple(factors)) if any(found) else None
        if step.combine is not None and len(factors) > 1:
            if step.is_chain and step.combine.takes_masks:
                made = made if self._is_covered(step.factors) else self._with_mask(step, factors)
            elif (wrapped := self._wrap_operands(step, factors)) is not None:
                made = replace(step, factors=tuple(wrapped))
        return None if made is None else self.rewriting.add(made)

    # ---- Chains ----

    def _is_covered(self, factors: Sequence[Use]) -> bool:
        """Return whether a sparse factor has all labels of the mask: one more would gain little."""
        labels, statement = set(self.mask.labels), self.rewriting.statement
        types = self.rewriting.written_types(exact=True)
        return any(
            labels.issubset(factor.labels)
            and self.rewriting.program.is_sparse(statement, factor)
            and types.of_use(factor, statement.span).fill == 0
            for factor in factors
        )

    def _with_mask(self, step: Contraction, factors: Sequence[Use]) -> Contraction:
        """Return a chain with the mask as its first factor, which is joined first."""
        assert step.written is not None

        def leaf(number: int) -> Tree:
            return (0, 1) if number == 0 else number + 1

        def node(_: tuple[Tree, Tree], left: Tree, right: Tree) -> Tree:
            return left, right

        return replace(
            step,
            factors=(self._read_mask(step.dtype), *factors),
            written=fold(step.written, leaf, node),
            constants=tuple(
                replace(x, place=x.place + 1 if x.place else 0) for x in step.constants
            ),
        )

    # ---- Joins ----

    def _wrap_operands(self, step: Contraction, factors: Sequence[Use]) -> list[Use] | None:
        """Return operands that all have the mask's labels; None if that saves no join."""
        labels = set(self.mask.labels)
        lacking = [not labels.issubset(factor.labels) for factor in factors]
        if not any(lacking) or self._is_sparse(step, lacking):
            return None
        every = [
            labels.union(factor.labels) if lack else set(factor.labels)
            for factor, lack in zip(factors, lacking, strict=True)
        ]
        if not step.is_chain and every[0] != every[1]:
            return None  # dense anyway in the labels that only one of them has
        return [self._when(x) if lack else x for x, lack in zip(factors, lacking, strict=True)]

    def _is_sparse(self, step: Contraction, lacking: Sequence[bool]) -> bool:
        """Return whether an operand that lacks labels absorbs the others by its own fill.

        A vector that was computed from a sparse matrix hardly ever has few entries.
        """
        program, statement = self.rewriting.program, self.rewriting.statement
        types = self.rewriting.written_types()
        own = [types.of_use(factor.cast(step.dtype), statement.span) for factor in step.factors]
        return any(
            lacking[place]
            and (len(factor.distinct) > 1 or not self._is_computed(factor))
            and program.is_sparse(statement, factor)
            and all(
                annihilates(step, own[place], own[n], first=place < n, exact=program.exact)
                for n in range(len(own))
                if n != place
            )
            for place, factor in enumerate(step.factors)
        )

    def _is_computed(self, use: Use) -> bool:
        within = self.rewriting.statement.by_name, self.rewriting.program.statements
        return any(use.tensor in made for made in within)

    def _when(self, use: Use) -> Use:
        """Return a use behind the mask, with all labels of the mask."""
        factors = (self._read_mask(use.dtype), use)
        step = Contraction("", factors, WHEN, None, (), use.dtype)
        return _use(self.rewriting.add(step))

    # ---- Masks ----

    def _read_mask(self, dtype: DType) -> Use:
        if self.mask.tensor not in self.rewriting.statement.by_name:
            self.rewriting.reads.append(self.mask.tensor)
        return self.mask.cast(dtype)

    def _project_mask(self, step: Contraction) -> Use | None:
        """Return the mask in a step's labels alone; None if too few of its labels are left."""
        labels = self.mask.labels
        over = tuple(label for label in labels if label not in step.labels)
        if not over:
            return self.mask
        if len(labels) - len(over) < 2:
            return None
        factor = self._read_mask(DType.BOOL)
        some = Contraction("", (factor,), None, ANY, over, DType.BOOL)
        return _use(self.rewriting.add(some))

    def _restricts_statement(self, use: Use) -> bool:
        """Rewrite the statement of a used tensor behind the mask; return whether that was done."""
        program, name, mask = self.rewriting.program, use.tensor, self.mask
        inner = program.statements.get(name)
        if inner is None or inner.path is not None:
            return False
        if name in program.results or name in program.fixed:
            return False
        if len(use.distinct) < len(use.labels) or not set(mask.labels).issubset(use.labels):
            return False
        if mask.tensor in self.rewriting.statement.by_name:
            return False
        if not program.is_before(mask.tensor, name):
            return False
        names = dict(zip(use.labels, inner.labels, strict=True))
        there = replace(mask, labels=tuple(names[label] for label in mask.labels))
        alone = program.readers(name) == 1
        if not alone and not program.is_read_behind(name, there):
            return False
        if not self.rewriting.of_statement(name, there):
            return False
        # The other readers read the new tensor unchanged, so 0 has to hide it as well.
        type_ = self.rewriting.types[name]
        finite = type_.entries.finite and is_finite(type_.fill)
        self.rewriting.raises = self.rewriting.raises or not (alone or finite)
        return True

    def _stays_exact(self, step: Contraction, use: Use) -> bool:
        """Return whether no integer can overflow in a step and its maps, at any entry.

        So no plan hides an error that another one raises.
        """
        types, span = self.rewriting.written_types(exact=True), self.rewriting.statement.span
        if may_overflow(self.rewriting.program.types[step.name]):
            return False
        used = [use, *step.factors]
        mapped = (x.with_maps(n + 1) for x in used for n in range(len(x.maps)))
        return not any(may_overflow(types.of_use(x, span)) for x in mapped)


def _use(step: Contraction) -> Use:
    return Use(step.name, step.labels, step.dtype)
