"""The logical program: the work of statements, before the order of products is chosen.

    program     = statement*                         and the types of all tensors, where known
    statement   = tensor[label, ...] = use           after its steps, each after those that it uses
    step        = ⊕[over] use                        unary: functions, a diagonal, an aggregation
                | ⊕[over] (use ⊗ use)                binary: joined as it stands
                | ⊕[over] (use ⊗ ... ⊗ number ⊗ ...) a chain: any order; the text's is kept
    use         = map(... map(tensor[label, ...]))   functions and casts that are yet to be applied
    tensor      = an input, the target of a statement before, or a step

Every step is a `Contraction` and has a name that no tensor can have. In a chain, ⊕ distributes over
⊗, so that each label may be aggregated as soon as no other factor has it; a chain with a single
factor is its product with numbers. Nothing is shared yet beyond single steps, and nothing has an
order but the factors of the text. `ucle.lowering.syntax_to_logical` makes such programs,
`ucle.lowering.inline_statements` moves steps between statements, and `ucle.lowering.contract` makes
vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.axis_functions import Along, TopK
from ucle.ir.contraction_trees import Path, Tree
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import Label
from ucle.ir.maps import Cast, Partial, Pointwise, bracket_text, number_text
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Operand, PairFunction, Span
from ucle.operators import Combine, Reduce

Labels = tuple[Label, ...]

MOST_MAPS = 50
"""The most pointwise functions of one vertex. They become one expression of SQL, which its writers
and readers process recursively."""


@dataclass(frozen=True)
class Use:
    """One use of a tensor, and the maps to be applied to its entries, first to last.

    The labels of a tensor stand axis by axis. A step's use has the step's own labels; their axes
    are assigned when there are vertices. `indicator` is True if the truth values here were 1 or 0
    of another type before the last cast.
    """

    tensor: str
    labels: Labels
    dtype: DType
    maps: tuple[Pointwise, ...] = ()
    indicator: bool = False

    @property
    def operand(self) -> Operand:
        """The tensor with its labels, without the maps."""
        return Operand(self.tensor, self.labels)

    @cached_property
    def distinct(self) -> Labels:
        """The labels, each once."""
        return tuple(dict.fromkeys(self.labels))

    @property
    def read_dtype(self) -> DType:
        """The element type of the tensor, before the maps."""
        if not self.maps:
            return self.dtype
        first = self.maps[0]
        return first.source if isinstance(first, Cast) else first.dtype

    def then(self, function: Pointwise) -> Use:
        """Return this use with one more map."""
        return Use(self.tensor, self.labels, function.result, (*self.maps, function))

    def with_maps(self, count: int) -> Use:
        """Return this use with only the first `count` of its maps."""
        if count == len(self.maps):
            return self
        dtype = self.maps[count - 1].result if count else self.read_dtype
        return Use(self.tensor, self.labels, dtype, self.maps[:count])

    def apply_maps(self, maps: Iterable[Pointwise]) -> Use:
        """Return this use with more maps."""
        use = self
        for function in maps:
            use = use.then(function)
        return use

    def cast(self, dtype: DType) -> Use:
        """Return this use in another element type.

        >>> yes = Use("A", (), DType.FLOAT64).indicating(DType.BOOL)
        >>> yes.cast(DType.FLOAT64).maps
        ()
        """
        if dtype is self.dtype:
            return self
        if self.indicator and isinstance(self.maps[-1], Cast):  # undo the cast of 1 and 0
            source = self.maps[-1].source
            return Use(self.tensor, self.labels, source, self.maps[:-1]).cast(dtype)
        return self.then(Cast(self.dtype, dtype))

    def indicating(self, dtype: DType) -> Use:
        """Return this use, whose values are 1 or 0, as truth values."""
        return self if dtype is self.dtype else replace(self.cast(dtype), indicator=True)

    def __str__(self) -> str:
        text = str(self.operand)
        for function in self.maps:
            text = function.apply_text(text)
        return text


@dataclass(frozen=True)
class Constant:
    """A number among the factors of a chain; `place` is the number of factors before it."""

    place: int
    value: Scalar


@dataclass(frozen=True)
class Contraction:
    """⊕ over some labels of the ⊗ of factors.

    `combine` is None if there is one factor and nothing to join it with. `dtype` is the type in
    which factors are joined. `written` is the tree in which the text joins the factors of a chain;
    a contraction without it is not a chain, and is one vertex. `outermost` is True if the ⊕
    encloses the whole product in the text.
    """

    name: str
    factors: tuple[Use, ...]
    combine: Combine | None
    reduce: Reduce | None
    over: Labels
    dtype: DType
    written: Tree | None = None
    constants: tuple[Constant, ...] = ()
    outermost: bool = False

    @property
    def is_chain(self) -> bool:
        """True if the factors may be joined in any order."""
        return self.written is not None

    @cached_property
    def labels(self) -> Labels:
        """The labels that are left, in the order of their first use."""
        every = dict.fromkeys(label for factor in self.factors for label in factor.labels)
        gone = set(self.over)
        return tuple(label for label in every if label not in gone)

    @cached_property
    def maps(self) -> tuple[Pointwise, ...]:
        """The constants, as maps of the product of the factors."""
        if not self.constants:
            return ()
        assert self.combine is not None
        first = self.constants[0].place == 0
        numbers = (self.dtype.scalar(constant.value) for constant in self.constants)
        return tuple(Partial(self.combine, number, first, self.dtype) for number in numbers)

    @property
    def is_diagonal(self) -> bool:
        """True if the step only reads a tensor under fewer labels than it has axes."""
        return self.combine is None and self.reduce is None and not self.factors[0].maps

    @property
    def is_plain_aggregate(self) -> bool:
        """True if the step aggregates a tensor as it is."""
        return self.combine is None and self.reduce is not None and not self.factors[0].maps

    def expression(self, of_use: Callable[[Use], str] = str) -> str:
        """Return the step as a person would write it; `of_use` gives the text of a factor."""
        parts = [of_use(factor) for factor in self.factors]
        for constant in reversed(self.constants):
            parts.insert(constant.place, number_text(constant.value))
        if self.combine is not None and self.combine.infix:
            parts = [bracket_text(part) for part in parts]
        text = parts[0]
        for part in parts[1:]:
            assert self.combine is not None
            text = self.combine.text(text, part)
        over = ",".join(label.name for label in self.over)
        return f"{self.reduce.name}[{over}]({text})" if self.reduce else text

    def __str__(self) -> str:
        return f"{self.name} = {self.expression()}"


@dataclass(frozen=True)
class LogicalStatement:
    """The steps of a statement, and the use that is its result.

    `text` has the tensors that the text reads, by name, and the labels that it aggregates, in their
    order in the text. `path` is a given contraction path for its product.
    """

    target: str
    labels: Labels
    steps: tuple[Contraction, ...]
    result: Use
    span: Span
    text: tuple[str | Label, ...] = ()
    path: Path | None = None
    index: IndexMap | None = None
    """The index map through which the tensor of `result` is read, if the statement is only that."""
    along: Along | None = None
    """The scan or function of matrices that is applied to `result`."""
    top: TopK | None = None
    """The top-k operation that is applied to `result`."""
    pair: tuple[PairFunction, Use] | None = None
    """The forest or the system of equations that is applied to `result` and to a second operand:
    to features and the packed forest, or to matrices and right-hand sides."""
    lifted: bool = False
    """True if it is a part of a statement of the text, so that its tensor has no name of the
    user's."""

    @cached_property
    def by_name(self) -> Mapping[str, Contraction]:
        """The steps by their names."""
        return {step.name: step for step in self.steps}

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that the text reads, once for each read."""
        return tuple(part for part in self.text if isinstance(part, str))

    @property
    def whole_uses(self) -> tuple[Use, ...]:
        """What the statement reads beside its steps: the result, and a second operand."""
        return (self.result,) if self.pair is None else (self.result, self.pair[1])

    @property
    def own_labels(self) -> Labels:
        """The labels that the text aggregates."""
        return tuple(part for part in self.text if isinstance(part, Label))

    @property
    def chain(self) -> Contraction | None:
        """The chain that is the whole statement; None if it is anything else."""
        if any(x is not None for x in (self.along, self.top, self.pair)):
            return None
        step = None if self.result.maps else self.by_name.get(self.result.tensor)
        return step if step is not None and step.is_chain else None

    def expression(self, use: Use) -> str:
        """Return the text of a use, with all steps written out."""
        step = self.by_name.get(use.tensor)
        text = str(use.operand) if step is None else step.expression(self.expression)
        for function in use.maps:
            text = function.apply_text(text)
        return text

    def __str__(self) -> str:
        target = Operand(self.target, self.labels)
        if self.index is not None:
            return f"{target} = {self.index.text(self.result.tensor)}"
        result = str(self.result)
        if self.along is not None:
            result = f"{self.along.name}[{','.join(self.along.labels)}]({result})"
        if self.top is not None:
            result = self.top.text(result, self.top.label)
        if self.pair is not None:
            pair, second = self.pair
            result = pair.text(result, str(second))
        return "\n".join([*map(str, self.steps), f"{target} = {result}"])


@dataclass(frozen=True)
class LogicalProgram:
    """Statements in an order in which they can be computed.

    `types` are the types of inputs, statements' tensors and steps, if all factors are joined in the
    order of the text. `exact` is True if NaN and infinities meet entries that are not stored as in
    NumPy. `condition_numbers` are tensors that say how much rewritten sums may have lost
    (`ucle.lowering.condition_numbers`).
    """

    inputs: tuple[str, ...]
    statements: tuple[LogicalStatement, ...]
    outputs: tuple[str, ...]
    types: Mapping[str, TensorType]
    exact: bool = True
    condition_numbers: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[str, ...]:
        """The tensors that an execution looks at: outputs and condition numbers."""
        return (*self.outputs, *self.condition_numbers)

    @cached_property
    def by_name(self) -> Mapping[str, LogicalStatement]:
        """The statements by their tensors."""
        return {statement.target: statement for statement in self.statements}

    @property
    def reindexed(self) -> frozenset[str]:
        """The tensors of statements with an index map, a scan, a matrix function and the like."""
        return frozenset(
            x.target
            for x in self.statements
            if any(part is not None for part in (x.index, x.along, x.top, x.pair))
        )

    def __post_init__(self) -> None:
        _check_steps(self.inputs, self.statements)

    def __str__(self) -> str:
        return "\n".join(map(str, self.statements))


def _check_steps(inputs: Sequence[str], statements: Sequence[LogicalStatement]) -> None:
    """Check that tensors exist before they are used, and that labels match those of the result."""
    known = set(inputs)
    for statement in statements:
        own: set[str] = set()
        for step in statement.steps:
            assert all(x.tensor in known or x.tensor in own for x in step.factors), str(step)
            assert step.is_chain or len(step.factors) == 1 + (step.combine is not None), str(step)
            own.add(step.name)
        result = statement.result
        whole = statement.whole_uses
        assert all(x.tensor in known or x.tensor in own for x in whole), str(statement)
        relabelled = statement.index, statement.top, statement.pair
        others = any(x is not None for x in relabelled)
        same = others or set(result.labels) == set(statement.labels)
        assert same, str(statement)
        known.add(statement.target)


def read_steps(steps: Sequence[Contraction], result: Use) -> tuple[Contraction, ...]:
    """Return the steps that a result depends on."""
    find_needed_statements, kept = {result.tensor}, list[Contraction]()
    for step in reversed(steps):
        if step.name in find_needed_statements:
            find_needed_statements.update(factor.tensor for factor in step.factors)
            kept.append(step)
    return tuple(reversed(kept))


def text_of(steps: Sequence[Contraction], result: Use) -> tuple[str | Label, ...]:
    """Return the `LogicalStatement.text` of a statement with these steps."""
    own = {step.name for step in steps}
    text: list[str | Label] = []
    for step in steps:
        text += [*step.over, *(use.tensor for use in step.factors)]
    return tuple(part for part in [*text, result.tensor] if part not in own)


def find_needed_statements(
    logical: LogicalProgram, statements: Sequence[LogicalStatement]
) -> list[LogicalStatement]:
    """Return those of new statements for a program that its results need.

    Statements that had no reader in the program stay, because a caller may ask for them.
    """
    unread = {x.target for x in logical.statements}.difference(logical.results)
    unread -= {name for x in logical.statements for name in x.reads}
    wanted, kept = {*logical.results, *unread}, list[LogicalStatement]()
    for statement in reversed(statements):
        if statement.target in wanted:
            wanted.update(statement.reads)
            kept.append(statement)
    return kept[::-1]
