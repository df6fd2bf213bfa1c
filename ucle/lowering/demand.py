"""Demand: what of a factor is looked at is all that is computed of it.

``A[i,j] * abs(x[i] - y[j])`` looks at ``abs(x[i] - y[j])`` where A is stored, and nowhere else: a
fill that absorbs is a mask for the other factors. The mask, A != 0, is passed down to the steps
that a factor is made of: through maps, also those that move the fill (nobody looks there); through
aggregations; into a chain, which gets it as one more factor, so that the search for an order finds
the join along A's entries; and to the joins of two operands, of which each that lacks labels of the
mask becomes ``when(mask, operand)``.

What is no longer computed must not have been seen. So a mask is passed on only where its fill
absorbs by the rules of `ucle.ir.ranges.absorbs`: what it meets is finite, or ⊗ annihilates all.
Elsewhere the rewritten steps hold something else than the written ones; where that may be NaN or
infinite (``log`` of what is 0 now), the ⊗ that demands becomes the one in which 0 annihilates
(`ucle.ir.annihilation`). Integers that may overflow where nobody looks are left as they are
written, so that no plan hides an error that another one raises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ucle.errors import UcleError
from ucle.foundation.dtypes import DType, is_finite
from ucle.ir.annihilation import SPARSE, annihilating
from ucle.ir.contraction_trees import Tree, fold
from ucle.ir.maps import Cast, Map, Partial
from ucle.ir.operators import ANY, COMBINES, WHEN
from ucle.ir.ranges import absorbs, anything, with_fill
from ucle.ir.tensor_types import TensorType
from ucle.lowering.logical import MOST_MAPS, Contraction, LogicalProgram, LogicalStatement, Use
from ucle.lowering.mapped_uses import with_constant
from ucle.lowering.step_types import StepTypes

NOT_EQUAL = COMBINES["not_equal"]

TAKE_MASKS = frozenset({"mult", "sparse_mult", "and"})
"""⊗ of chains in which 1 and 0, or yes and no, are one more factor."""

SPARSE_WHERE_ONE_IS = frozenset(
    {"mult", "sparse_mult", "and", "when", "div", "sparse_div", "min", "max"}
)
"""⊗ whose result may be sparse where one of the operands is; of others both have to be."""

MASKS_TRIED = 4
"""Factors of one product that are tried as the mask of another one."""


@dataclass(frozen=True)
class Demanded:
    """A program in which masks were passed down, and a line about each."""

    program: LogicalProgram
    pushed: tuple[str, ...]


@dataclass(frozen=True)
class Demand:
    """What `demand` was asked, and what was said of it.

    `sparse` and `fixed` are its arguments, `pushed` the lines, `written` the predicted cost of the
    program as written (infinite where that cannot be run), and `cost` that of this one.
    """

    sparse: frozenset[str]
    fixed: frozenset[str]
    pushed: tuple[str, ...]
    cost: float
    written: float


def demand(
    logical: LogicalProgram, sparse: Collection[str], fixed: Collection[str] = ()
) -> Demanded | None:
    """Pass masks down to what is only looked at behind them.

    Args:
        logical: the program.
        sparse: the inputs that store so little that they are worth a mask.
        fixed: tensors whose statements stay as they are.

    Returns:
        The program, equal in all that its outputs are; None where there is nothing to pass down.

    >>> from ucle.ir.layouts import Label
    >>> from ucle.ir.maps import Map
    >>> from ucle.ir.operators import MAPS, SUM
    >>> from ucle.ir.vertices import Span
    >>> i, j, f = (Label(name, 9) for name in "ijf")
    >>> number = DType.FLOAT64
    >>> A, U, V = (Use(x, own, number) for x, own in zip("AUV", [(i, j), (i, f), (j, f)]))
    >>> inner = Contraction("T.1", (U, V), COMBINES["mult"], SUM, (f,), number, (0, 1))
    >>> mapped = Use("T.1", (i, j), number, (Map(MAPS["sigmoid"], number),))
    >>> outer = Contraction("T.2", (A, mapped), COMBINES["mult"], None, (), number, (0, 1))
    >>> result = Use("T.2", (i, j), number)
    >>> statement = LogicalStatement("T", (i, j), (inner, outer), result, Span(1, 1), tuple("AUV"))
    >>> types = {use.tensor: TensorType(use.labels) for use in (A, U, V, mapped, result)}
    >>> print(demand(LogicalProgram(tuple("AUV"), (statement,), ("T",), types), {"A"}).program)
    T.m1 = sum[f](A[i,j] != 0 * U[i,f] * V[j,f])
    T.2 = A[i,j] * sigmoid(T.m1[i,j])
    T[i,j] = T.2[i,j]
    """
    if not sparse or not any(map(_has_inner_steps, logical.statements)):
        return None
    masks = _Masks(logical, frozenset(sparse), frozenset(fixed))
    for target in logical.by_name:
        if target not in masks.fixed:
            masks.visit(target)
    if not masks.pushed:
        return None
    statements = tuple(masks.statements.values())
    try:
        types = _types(logical, statements)
    except UcleError:  # a fill that the written program does not make
        return None
    program = replace(logical, statements=statements, types=types)
    return Demanded(program, tuple(masks.pushed))


def _has_inner_steps(statement: LogicalStatement) -> bool:
    """Whether a product could demand something here, or in a statement before."""
    return any(step.combine is not None and len(step.factors) > 1 for step in statement.steps)


def _types(
    logical: LogicalProgram, statements: Sequence[LogicalStatement]
) -> dict[str, TensorType]:
    """The types of a program's tensors, where factors are joined as it is written."""
    types = {name: logical.types[name] for name in logical.inputs}
    for statement in statements:
        step_types = StepTypes(statement.by_name, types, logical.exact)
        for step in statement.steps:
            types[step.name] = step_types.of_step(step, statement.span)
        type_ = step_types.of_use(statement.result, statement.span)
        types[statement.target] = replace(type_, axes=statement.labels)
    return types


class _Masks:
    """The statements as they are so far; one instance passes all masks of a program down."""

    def __init__(
        self, logical: LogicalProgram, sparse: frozenset[str], fixed: frozenset[str]
    ) -> None:
        self.statements = dict(logical.by_name)
        self.types = dict(logical.types)
        self.pushed: list[str] = []
        self.fixed = fixed
        self.outputs = frozenset(logical.outputs)
        self.exact = logical.exact
        self._sparse = sparse
        self._order = {name: place for place, name in enumerate(self.statements)}
        self._names = 0

    def fresh(self, target: str) -> str:
        """A name for a step of a statement."""
        self._names += 1
        return f"{target}.m{self._names}"

    def visit(self, target: str) -> None:
        """Let each product of a statement demand what it looks at, the inner ones first."""
        for step in self.statements[target].steps:
            if step.combine is None or len(step.factors) < 2:
                continue
            for number in range(len(step.factors)):
                now = self.statements[target].by_name.get(step.name)
                if now is not None and self._is_made(target, now.factors[number]):
                    self._push(target, now, number)

    def _is_made(self, target: str, use: Use) -> bool:
        """Whether a use is of a step, or of another statement that might take a mask."""
        return use.tensor in self.statements[target].by_name or use.tensor in self.statements

    def _push(self, target: str, step: Contraction, number: int) -> None:
        for place in self._masks(target, step, number)[:MASKS_TRIED]:
            attempt = _Attempt(self, target)
            try:
                found = attempt.of_factor(step, place, number)
            except UcleError:  # a fill that the written program does not make
                continue
            if found:
                mask = step.factors[place]
                into = _text(self.statements, target, step.factors[number])
                self.statements.update(attempt.statements)
                self.types.update(attempt.types)
                self.pushed.append(f"{mask} into {into}")
                return

    def _masks(self, target: str, step: Contraction, number: int) -> list[int]:
        """The factors whose entries are all that another one is looked at, the best first."""
        statement, own = self.statements[target], set(step.factors[number].labels)
        shared: dict[int, int] = {}
        for place, factor in enumerate(step.factors):
            common = own.intersection(factor.labels)
            if place == number or not common or len(factor.maps) >= MOST_MAPS - 2:
                continue
            if len(common) < 2 and len(factor.distinct) > 1:
                continue  # hardly a row of a matrix is empty
            if self.is_sparse(statement, factor) and self.absorbs(statement, step, place, number):
                shared[place] = len(common)
        return sorted(shared, key=lambda place: -shared[place])

    def is_sparse(self, statement: LogicalStatement, use: Use) -> bool:
        """Whether an input makes a tensor sparse, wherever its fill is left as what it is."""
        step = statement.by_name.get(use.tensor)
        if step is not None:
            found = [self.is_sparse(statement, factor) for factor in step.factors]
            if step.combine is None or step.combine.name in SPARSE_WHERE_ONE_IS:
                return any(found)
            return all(found)
        made = self.statements.get(use.tensor)
        return use.tensor in self._sparse if made is None else self.is_sparse(made, made.result)

    def absorbs(
        self, statement: LogicalStatement, step: Contraction, place: int, number: int
    ) -> bool:
        """Whether the fill of one factor makes one value of whatever another one is."""
        types = StepTypes(statement.by_name, self.types, self.exact)
        one, other = (
            types.of_use(step.factors[n].cast(step.dtype), statement.span) for n in (place, number)
        )
        return self.annihilates(step, one, other, first=place < number)

    def annihilates(
        self, step: Contraction, one: TensorType, other: TensorType, *, first: bool
    ) -> bool:
        """The same of factors with these types, of which the absorbing one may be the first."""
        operator = step.combine
        assert operator is not None
        left, right = (one, other) if first else (other, one)
        if not self.exact:
            operator = annihilating(operator, left, right)
        both = absorbs(operator, left.entries, right.entries, (left.fill, right.fill), step.dtype)
        return both[0 if first else 1]

    def readers(self, name: str) -> int:
        """How many uses of a statement's tensor there are."""
        return sum(
            use.tensor == name for statement in self.statements.values() for use in _uses(statement)
        )

    def is_before(self, tensor: str, target: str) -> bool:
        """Whether a tensor is there when a statement is computed."""
        place = self._order.get(tensor)
        return tensor in self.types and (place is None or place < self._order[target])


@dataclass
class _Attempt:
    """One factor of one product, rewritten behind a mask; what that takes is kept until it is done.

    `statements` are those that change, `types` those of new steps.
    """

    masks: _Masks
    target: str
    statements: dict[str, LogicalStatement] = field(default_factory=dict)
    types: dict[str, TensorType] = field(default_factory=dict)

    def of_factor(self, step: Contraction, place: int, number: int) -> bool:
        """Rewrite a factor of a product behind another one; whether there was anything to do."""
        statement = self.masks.statements[self.target]
        made: list[Contraction] = []
        factors = list(step.factors)
        mask = self._mask(statement, step, place)
        shared = Counter(use.tensor for use in _uses(statement))
        branch = _Branch(self, statement, mask, made, shared)
        rewritten = branch.restricted(factors[number], alone=True)
        if rewritten is None:
            return False
        factors[number] = rewritten
        product = self._annihilating(
            statement, made, replace(step, factors=tuple(factors)), place, number
        )
        if product is None:
            return False
        steps = [
            x for old in statement.steps for x in ((*made, product) if old is step else (old,))
        ]
        self._change(statement, steps, statement.result, branch.reads)
        return True

    def of_statement(self, name: str, mask: Use) -> bool:
        """Rewrite a whole statement behind a mask; whether there was anything to do."""
        statement = self.masks.statements[name]
        made: list[Contraction] = []
        shared = Counter(use.tensor for use in _uses(statement))
        branch = _Branch(self, statement, mask, made, shared)
        result = branch.restricted(statement.result, alone=True)
        if result is None:
            return False
        self._change(statement, [*statement.steps, *made], result, branch.reads)
        types = StepTypes(self.statements[name].by_name, self.known(), self.masks.exact)
        type_ = types.of_use(result, statement.span)
        self.types[name] = replace(type_, axes=statement.labels)
        return True

    def known(self) -> dict[str, TensorType]:
        """The types of all tensors."""
        return {**self.masks.types, **self.types}

    def _mask(self, statement: LogicalStatement, step: Contraction, place: int) -> Use:
        """Where a factor holds something else than its fill, as yes or no."""
        factor = _yes_or_no(step.factors[place].cast(step.dtype))
        types = StepTypes(statement.by_name, self.masks.types, self.masks.exact)
        fill = types.of_use(factor, statement.span).fill
        if factor.dtype is DType.BOOL and not fill:
            return factor
        return with_constant(NOT_EQUAL, factor, fill, False, statement.span)

    def _annihilating(
        self,
        statement: LogicalStatement,
        made: Sequence[Contraction],
        step: Contraction,
        place: int,
        number: int,
    ) -> Contraction | None:
        """A product that does not see what stands outside of a mask; None where there is none."""
        steps = {x.name: x for x in (*statement.steps, *made)}
        types = StepTypes(steps, self.known(), self.masks.exact)
        own = [types.of_use(use.cast(step.dtype), statement.span) for use in step.factors]
        assert step.combine is not None
        if self.masks.annihilates(step, own[place], own[number], first=place < number):
            return step
        operator = SPARSE.get(step.combine.name)
        if operator is None:
            return None
        if operator.name == "sparse_mult":
            # 0 * inf is to be NaN where the text has it.
            others = (_is_finite(type_) for n, type_ in enumerate(own) if n != number)
            numbers = (is_finite(constant.value) for constant in step.constants)
            if self.masks.exact and not (all(others) and all(numbers)):
                return None
        return replace(step, combine=operator)

    def _change(
        self,
        statement: LogicalStatement,
        steps: Sequence[Contraction],
        result: Use,
        reads: Sequence[str],
    ) -> None:
        """Keep a statement with other steps, without those that nothing reads any more."""
        needed, kept = {result.tensor}, list[Contraction]()
        for step in reversed(steps):
            if step.name in needed:
                kept.append(step)
                needed |= {factor.tensor for factor in step.factors}
        self.statements[statement.target] = replace(
            statement,
            steps=tuple(reversed(kept)),
            result=result,
            text=(*statement.text, *reads),
        )


@dataclass
class _Branch:
    """What a mask makes of the steps of one statement.

    `made` collects the steps, each after those that it uses, `shared` counts the uses of all
    tensors in the statement, and `reads` has the tensors that are read for masks.
    """

    attempt: _Attempt
    statement: LogicalStatement
    mask: Use
    made: list[Contraction]
    shared: Counter[str]
    reads: list[str] = field(default_factory=list)

    def restricted(self, use: Use, *, alone: bool) -> Use | None:
        """A use of what is computed behind the mask alone; None where that changes nothing.

        `alone` says that nobody else reads what is used.
        """
        alone = alone and self.shared[use.tensor] == 1
        step = self.statement.by_name.get(use.tensor)
        if step is None:
            return use if alone and self._restricts_statement(use) else None
        if not self._stays_exact(step, use):
            return None
        mask = self._projected(step)
        if mask is None:
            return None
        within = _Branch(self.attempt, self.statement, mask, self.made, self.shared, self.reads)
        new = within.step(step, alone=alone)
        return None if new is None else replace(use, tensor=new.name, labels=new.labels)

    def step(self, step: Contraction, *, alone: bool) -> Contraction | None:
        """A step behind the mask, whose labels are among its own."""
        found = [self.restricted(factor, alone=alone) for factor in step.factors]
        factors = [new or old for new, old in zip(found, step.factors, strict=True)]
        changed = any(found)
        if step.combine is None or len(factors) < 2:
            return self._add(replace(step, factors=tuple(factors))) if changed else None
        if step.is_chain and step.combine.name in TAKE_MASKS:
            if self._is_covered(step.factors):
                return self._add(replace(step, factors=tuple(factors))) if changed else None
            return self._add(self._with_mask(step, factors))
        wrapped = self._wrapped(step, factors)
        if wrapped is not None:
            return self._add(replace(step, factors=tuple(wrapped)))
        return self._add(replace(step, factors=tuple(factors))) if changed else None

    # ---- Chains ----

    def _is_covered(self, factors: Sequence[Use]) -> bool:
        """Whether a sparse factor has all labels of the mask: one more would gain little."""
        labels = set(self.mask.labels)
        return any(
            labels.issubset(factor.labels)
            and self.attempt.masks.is_sparse(self.statement, factor)
            and self._absorbing(factor)
            for factor in factors
        )

    def _absorbing(self, factor: Use) -> bool:
        types = StepTypes(self.statement.by_name, self.attempt.masks.types, True)
        return types.of_use(factor, self.statement.span).fill == 0

    def _with_mask(self, step: Contraction, factors: Sequence[Use]) -> Contraction:
        """A chain with the mask as its first factor, which is joined first."""
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

    def _wrapped(self, step: Contraction, factors: Sequence[Use]) -> list[Use] | None:
        """Operands that all have the labels of the mask; None where no join is spared by that."""
        labels = set(self.mask.labels)
        lacking = [not labels.issubset(factor.labels) for factor in factors]
        if not any(lacking):
            return None
        masks, span = self.attempt.masks, self.statement.span
        types = StepTypes(self.statement.by_name, masks.types, masks.exact)
        own = [types.of_use(factor.cast(step.dtype), span) for factor in step.factors]
        if step.is_chain and not all(is_finite(type_.fill) for type_ in own):
            return None
        for place, factor in enumerate(step.factors):
            if not lacking[place] and masks.is_sparse(self.statement, factor):
                others = [n for n in range(len(own)) if n != place]
                if all(
                    masks.annihilates(step, own[place], own[n], first=place < n) for n in others
                ):
                    return None  # its fill absorbs what the others hold
        every = [labels.union(x.labels) if lack else set(x.labels)
                 for x, lack in zip(factors, lacking, strict=True)]  # fmt: skip
        if not step.is_chain and every[0] != every[1]:
            return None  # dense in the labels that one of them has, all the same
        return [self._when(x) if lack else x for x, lack in zip(factors, lacking, strict=True)]

    def _when(self, use: Use) -> Use:
        """A use behind the mask, with all labels of it."""
        factors = (self._read_mask(use.dtype), use)
        step = Contraction("", factors, WHEN, None, (), use.dtype)
        return self._use(self._add(step))

    # ---- Masks ----

    def _read_mask(self, dtype: DType) -> Use:
        if self.mask.tensor not in self.statement.by_name:
            self.reads.append(self.mask.tensor)
        return self.mask.cast(dtype)

    def _projected(self, step: Contraction) -> Use | None:
        """The mask in labels of a step alone; None where too few are left to be worth it."""
        labels = self.mask.labels
        over = tuple(label for label in labels if label not in step.labels)
        if not over:
            return self.mask
        if len(labels) - len(over) < 2:
            return None
        factor = self._read_mask(DType.BOOL)
        return self._use(self._add(Contraction("", (factor,), None, ANY, over, DType.BOOL)))

    def _restricts_statement(self, use: Use) -> bool:
        """Whether the statement whose tensor is used was rewritten behind the mask."""
        masks, name, mask = self.attempt.masks, use.tensor, self.mask
        inner = masks.statements.get(name)
        if inner is None or name in masks.outputs or name in masks.fixed or inner.path is not None:
            return False
        if len(use.distinct) < len(use.labels) or not set(mask.labels).issubset(use.labels):
            return False
        if mask.tensor in self.statement.by_name or not masks.is_before(mask.tensor, name):
            return False
        if masks.readers(name) != 1 or name in self.attempt.statements:
            return False
        names = dict(zip(use.labels, inner.labels, strict=True))
        there = replace(mask, labels=tuple(names[label] for label in mask.labels))
        return self.attempt.of_statement(name, there)

    # ---- Steps ----

    def _add(self, step: Contraction) -> Contraction:
        """Add a new step under a name of its own."""
        step = replace(step, name=self.attempt.masks.fresh(self.statement.target))
        steps = {x.name: x for x in (*self.statement.steps, *self.made)}
        types = StepTypes(steps, self.attempt.known(), self.attempt.masks.exact)
        self.attempt.types[step.name] = types.of_step(step, self.statement.span)
        self.made.append(step)
        return step

    def _use(self, step: Contraction) -> Use:
        return Use(step.name, step.labels, step.dtype)

    def _stays_exact(self, step: Contraction, use: Use) -> bool:
        """Whether no integer overflows in a step and in what is made of it, wherever one looks."""
        types = StepTypes(self.statement.by_name, self.attempt.masks.types, True)
        uses = [use, *step.factors]
        mapped = (replace(x, maps=x.maps[: n + 1]) for x in uses for n in range(len(x.maps)))
        made = [types.of_use(x, self.statement.span) for x in mapped]
        made.append(self.attempt.masks.types[step.name])
        return not any(map(_may_overflow, made))


def _uses(statement: LogicalStatement) -> Iterator[Use]:
    """All that a statement uses."""
    for step in statement.steps:
        yield from step.factors
    yield statement.result


def _yes_or_no(use: Use) -> Use:
    """A use as yes or no, where it is that in another type."""
    match use.maps[-1:]:
        case (Cast(source=DType.BOOL),):
            return replace(use, dtype=DType.BOOL, maps=use.maps[:-1])
        case (Map(function=operator) | Partial(combine=operator),) if operator.indicates:
            return use.indicating(DType.BOOL)
    return use


def _is_finite(type_: TensorType) -> bool:
    return type_.entries.finite and is_finite(type_.fill)


def _may_overflow(type_: TensorType) -> bool:
    """Whether integers may reach an end of their type, and so lie beyond it."""
    if type_.dtype.kind != "i":
        return False
    values, every = with_fill(type_.entries, type_.fill, type_.dtype), anything(type_.dtype)
    return values.low <= every.low or values.high >= every.high


def _text(statements: dict[str, LogicalStatement], target: str, use: Use) -> str:
    """What a use stands for, with the step or statement that is used written out."""
    steps = statements[target].by_name
    step = steps.get(use.tensor)
    if step is None:
        return str(use)
    return f"{use} (with {step})".replace(f"{target}.", "")
