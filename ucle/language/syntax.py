"""The syntax tree of a program: statements and expressions, with their places in the text.

`ucle.language.parse` builds it, `ucle.language.resolve` makes its meaning explicit and
`ucle.lowering.syntax_to_logical` lowers it. Operators are objects of `ucle.operators`, not
names. Names of tensors are not resolved and ranks are not checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from functools import cached_property
from typing import ClassVar, TypeVar

from ucle.foundation import tree_walk
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.affine import Affine
from ucle.ir.axis_functions import Along
from ucle.ir.conditions import Condition
from ucle.ir.vertices import Span
from ucle.language.functions import DerivedAlong, Direction, FirstFunction, Gives
from ucle.operators import AND, GREATEST, Combine, PointwiseMap, Reduce

T = TypeVar("T")

Site = tuple[str, int | str]
"""An axis of a tensor, or a label of the statement that defines a tensor."""


@dataclass(frozen=True)
class Number:
    """A literal."""

    value: Scalar
    span: Span
    constant: ClassVar[bool] = True

    @property
    def labels(self) -> tuple[str, ...]:
        """A literal has no labels."""
        return ()


@dataclass(frozen=True)
class Index:
    """The index of an axis: a function of labels; if `permissive` (``~``), it may leave the axis.

    If an axis is read at the entries of tensors, as in ``W[idx[i]]``, these are `entries`, with the
    text `text`, and there is no function.
    """

    affine: Affine
    permissive: bool = False
    entries: Expression | None = None
    text: str = field(default="", compare=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that the index depends on."""
        return self.affine.labels if self.entries is None else self.entries.labels

    @property
    def plain(self) -> str | None:
        """The label, if the index is only a label; otherwise None."""
        return None if self.permissive or self.entries is not None else self.affine.label

    def __str__(self) -> str:
        if self.entries is not None:
            return f"~({self.text})" if self.permissive else self.text
        return f"~({self.affine})" if self.permissive else str(self.affine).replace(" ", "")


class Outside(Enum):
    """The values of entries of a `Reindexed` that are not read from its source."""

    FILL = "the fill of the tensor that is read"
    ZERO = "0, whatever they hold"
    PRODUCT = "0 times what they hold"
    IDENTITY = "the identity of an aggregation, or 0"


@dataclass(frozen=True)
class Access:
    """A tensor with its labels: ``A[i,j]``, ``s`` or ``s[]``.

    If it is read at other indices than labels, as in ``A[i+1]``, `indices` holds them, axis by
    axis, and `labels` are their labels. `bare` is true if it was written without brackets.
    """

    tensor: str
    labels: tuple[str, ...]
    span: Span
    indices: tuple[Index, ...] | None = None
    outside: Outside = Outside.FILL
    """The value of reads outside its axes."""
    bare: bool = field(default=False, compare=False, repr=False)
    constant: ClassVar[bool] = False

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.labels if self.indices is None else self.indices)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """A name for each axis: the label at which it is read, or the first of several."""
        if self.indices is None:
            return self.labels
        return tuple((*index.affine.labels, "at")[0] for index in self.indices)

    @property
    def computed(self) -> tuple[Index, ...]:
        """The indices that are entries of tensors."""
        return tuple(index for index in self.indices or () if index.entries is not None)

    @property
    def shown(self) -> tuple[str, ...]:
        """The text of the indices between the brackets."""
        return self.labels if self.indices is None else tuple(map(str, self.indices))

    def __str__(self) -> str:
        return f"{self.tensor}[{','.join(self.shown)}]"


@dataclass(frozen=True)
class Coordinate:
    """A label as a value: the coordinate of each entry, an integer."""

    label: str
    span: Span
    constant: ClassVar[bool] = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The label."""
        return (self.label,)


@dataclass(frozen=True)
class LabelDivision:
    """The quotient ``//`` or the remainder ``%`` of a function of labels."""

    argument: Expression
    by: int
    remainder: bool
    span: Span
    constant: ClassVar[bool] = False

    @property
    def sign(self) -> str:
        """The operator."""
        return "%" if self.remainder else "//"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the function."""
        return self.argument.labels


@dataclass(frozen=True)
class Call:
    """A function of expressions, entry by entry: ``relu(...)``, ``where(...)``; ``-x`` is ``neg``.

    Functions of two arguments that are a ⊗ are parsed as `Binary`. A string names a function that
    is defined by others; a resolved expression contains none.
    """

    function: str | PointwiseMap | DType
    arguments: tuple[Expression, ...]
    span: Span

    def __post_init__(self) -> None:
        _know_facts(self)

    @property
    def name(self) -> str:
        """The name of the function in programs."""
        match self.function:
            case PointwiseMap(name):
                return name
            case DType(value=name):
                return name
        return self.function

    @cached_property
    def constant(self) -> bool:
        """True if there is no tensor in the arguments."""
        return all(argument.constant for argument in self.arguments)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Distinct labels of the arguments, in order of first use."""
        return tuple(dict.fromkeys(x for argument in self.arguments for x in argument.labels))


@dataclass(frozen=True)
class Binary:
    """⊗ of two expressions."""

    operator: Combine
    left: Expression
    right: Expression
    span: Span

    def __post_init__(self) -> None:
        _know_facts(self)

    @cached_property
    def constant(self) -> bool:
        """True if there is no tensor on either side."""
        return self.left.constant and self.right.constant

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Distinct labels of both sides, in order of first use."""
        return tuple(dict.fromkeys((*self.left.labels, *self.right.labels)))


@dataclass(frozen=True)
class Comparisons:
    """A chain of comparisons, ``0 < x <= 3``: true where all hold of neighbours.

    `signs` are those between the operands. A resolved expression contains none.
    """

    operands: tuple[Expression, ...]
    signs: tuple[str, ...]
    span: Span

    def __post_init__(self) -> None:
        _know_facts(self)

    @cached_property
    def constant(self) -> bool:
        """True if there is no tensor in the operands."""
        return all(operand.constant for operand in self.operands)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Distinct labels of the operands, in order of first use."""
        return tuple(dict.fromkeys(x for operand in self.operands for x in operand.labels))


@dataclass(frozen=True)
class Reduction:
    """⊕ of an expression over labels: ``sum[j](...)``. The labels are local to it."""

    operator: Reduce
    over: tuple[str, ...]
    argument: Expression
    span: Span

    def __post_init__(self) -> None:
        _know_facts(self)

    @cached_property
    def constant(self) -> bool:
        """True if there is no tensor in the argument."""
        return self.argument.constant

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The remaining labels of the argument."""
        return tuple(x for x in self.argument.labels if x not in self.over)


@dataclass(frozen=True)
class ScanExpression:
    """A function of fibres whose labels remain: ``cumsum[j](...)``, ``inv[i,j](...)``."""

    along: Along | DerivedAlong
    argument: Expression
    span: Span
    constant: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _know_facts(self)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels of the argument."""
        return self.argument.labels


@dataclass(frozen=True)
class First:
    """The first entries along a label: ``top_k[j,r](...)`` replaces the label by a rank.

    If the function marks the first entries, the label remains, and the rank is local.
    """

    function: FirstFunction
    label: str
    rank: str | None
    """None for a single entry, which needs no label."""
    argument: Expression
    span: Span
    constant: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _know_facts(self)

    @property
    def stays(self) -> bool:
        """True if the label is one of the result."""
        return self.function.gives is Gives.MEMBERS

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The argument's labels, with the rank instead of the label unless that stays."""
        if self.stays:
            return self.argument.labels
        others = tuple(x for x in self.argument.labels if x != self.label)
        return others if self.rank is None else (*others, self.rank)


@dataclass(frozen=True)
class Flat:
    """The entries along several labels in row-major order along one: ``top_k[i,j,r](...)``."""

    over: tuple[str, ...]
    label: str
    argument: Expression
    span: Span
    constant: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _know_facts(self)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The other labels of the argument, and the label of all entries."""
        return (*(x for x in self.argument.labels if x not in self.over), self.label)


@dataclass(frozen=True)
class ForestCall:
    """``forest[f,p](X[r,f], F[p,k])``; the labels f and p are local to the operands."""

    feature: str
    node: str
    features: Expression
    packed: Expression
    span: Span
    constant: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _know_facts(self)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The other labels of the features, and that of the outputs."""
        others = (x for x in self.features.labels if x != self.feature)
        return tuple(dict.fromkeys((*others, *(x for x in self.packed.labels if x != self.node))))


@dataclass(frozen=True)
class SystemCall:
    """``solve[i,j](A[i,j], b[i,k])``; the label i is local to the operands."""

    row: str
    column: str
    matrix: Expression
    sides: Expression
    span: Span
    constant: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _know_facts(self)

    @property
    def others(self) -> tuple[str, ...]:
        """The labels of the matrix beside its two: there is a system for each position of these."""
        return tuple(x for x in self.matrix.labels if x not in (self.row, self.column))

    @property
    def own(self) -> tuple[str, ...]:
        """The labels that only the right-hand sides have."""
        return tuple(x for x in self.sides.labels if x not in (self.row, *self.matrix.labels))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The other labels of the matrix, that of the unknowns, and those of several sides."""
        return (*self.others, self.column, *self.own)


@dataclass(frozen=True)
class Pairs:
    """First entries with their positions (`ucle.ir.axis_functions`): a whole right side.

    Only `ucle.language.lift_scans` makes such expressions.
    """

    order: Direction
    label: str
    rank: str
    part: str
    source: Access
    span: Span
    constant: ClassVar[bool] = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The other labels of the source, the rank, and the label of value and position."""
        return (*(x for x in self.source.labels if x != self.label), self.rank, self.part)


@dataclass(frozen=True)
class Retyped:
    """An expression cast to the element type of a tensor; made only by `lift_scans`."""

    argument: Expression
    like: str
    span: Span
    constant: ClassVar[bool] = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the expression."""
        return self.argument.labels


@dataclass(frozen=True)
class Bounded:
    """The larger or the smaller of an expression and a number; made only by `guard_operands`.

    Truth values stay such: a number beside them would make integers of them.
    """

    argument: Expression
    pick: Combine
    bound: float
    span: Span
    constant: ClassVar[bool] = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the expression."""
        return self.argument.labels

    @property
    def is_nonzero(self) -> bool:
        """True if no number that is picked is 0."""
        return self.pick is GREATEST and self.bound > 0


@dataclass(frozen=True)
class Size:
    """The number of entries along labels, which is known when their bounds are."""

    over: tuple[str, ...]
    span: Span
    constant: ClassVar[bool] = True

    @property
    def labels(self) -> tuple[str, ...]:
        """A number has no labels."""
        return ()


@dataclass(frozen=True)
class Hit:
    """True where an entry of an integer expression equals the coordinate of a label, else false.

    This is how a tensor is read or written at the entries of another: at the label, where it
    matches. `read` is the access as it was written. `permissive` is true if entries may be outside
    the bound of the label. If the label is `made` for this purpose, the entries determine its size,
    unless another bound does.
    """

    entries: Expression
    label: str
    read: str
    span: Span
    permissive: bool = False
    made: bool = False
    own: bool = False
    """True if the entries are positions along the label, whatever its coordinates are."""
    constant: ClassVar[bool] = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the expression, and the label."""
        return tuple(dict.fromkeys((*self.entries.labels, self.label)))


def all_hit(hits: Iterable[Hit], span: Span) -> Expression:
    """A condition that is true where all of some hits are true."""
    condition, *others = hits
    joined: Expression = condition
    for hit in others:
        joined = Binary(AND, joined, hit, span)
    return joined


@dataclass(frozen=True)
class Reindexed:
    """A tensor at other indices, or under a condition (`ucle.ir.index_maps`): a whole right side.

    Only `ucle.language.lift_indices` makes such expressions. The labels of `source` are those of
    its axes; labels that are not in an index are local to this expression. `labels` are those of
    the result.
    """

    source: Access
    indices: tuple[Index, ...]
    labels: tuple[str, ...]
    condition: Condition
    span: Span
    value: Affine | None = None
    outside: Outside = Outside.FILL
    aggregation: Reduce | None = None
    """The aggregation whose identity is the value outside."""
    written: Expression | None = None
    """The equivalent product, for numbers for which 0 times one may be NaN."""
    same: tuple[tuple[str, str], ...] = ()
    """Pairs of labels of the same size."""
    hit: Hit | None = None
    """The hit that the entries of the source are compared by, if there is one."""
    constant: ClassVar[bool] = False


def _know_facts(
    expression: Call
    | Binary
    | Comparisons
    | Reduction
    | ScanExpression
    | First
    | Flat
    | ForestCall
    | SystemCall,
) -> None:
    """Compute the cached properties now: later this would recurse once per level."""
    expression.labels, expression.constant  # noqa: B018


Expression = (
    Number
    | Access
    | Coordinate
    | LabelDivision
    | Call
    | Binary
    | Comparisons
    | Reduction
    | ScanExpression
    | First
    | Flat
    | ForestCall
    | SystemCall
    | Size
    | Hit
    | Reindexed
    | Pairs
    | Retyped
    | Bounded
)


@dataclass(frozen=True)
class Statement:
    """``target[labels] = expression``, or ``+=`` with `accumulate`, the aggregation.

    `renamed` maps labels that were renamed to be unique to their names in the text, and
    `aggregation`, once the statement is resolved, is the ⊕ of its whole right side as written.
    """

    target: Access
    accumulate: Reduce | None
    expression: Expression
    span: Span
    renamed: Mapping[str, str] = field(default_factory=dict)
    aggregation: Reduce | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Sizes of labels that are stated for this statement only."""
    like: Mapping[str, Site] = field(default_factory=dict)
    """Sites that have the sizes of labels, for labels whose sizes may follow from nothing else."""
    shortened: frozenset[str] = frozenset()
    """Labels that may end before the end of axes that are read at them; `like` has their sizes."""
    lifted: bool = False
    """True if it is a part of a statement of the text, so that its tensor's name is internal."""


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct subexpressions, left to right."""
    match expression:
        case Access(indices=tuple(indices)):
            return tuple(index.entries for index in indices if index.entries is not None)
        case Number() | Access() | Size() | Coordinate():
            return ()
        case Hit(entries):
            return (entries,)
        case Reindexed(source, written=written):
            return (source,) if written is None else (source, written)
        case Call(_, arguments):
            return arguments
        case Comparisons(operands):
            return operands
        case Binary(_, left, right):
            return (left, right)
        case Reduction(_, _, argument) | ScanExpression(_, argument) | LabelDivision(argument):
            return (argument,)
        case First(argument=argument) | Flat(argument=argument):
            return (argument,)
        case Retyped(argument) | Bounded(argument):
            return (argument,)
        case ForestCall(features=features, packed=packed):
            return (features, packed)
        case SystemCall(matrix=matrix, sides=sides):
            return (matrix, sides)
        case Pairs(source=source):
            return (source,)


def with_children(expression: Expression, parts: Iterable[Expression]) -> Expression:
    """Replace the direct subexpressions, given left to right."""
    match expression:
        case Access(indices=tuple(indices)) if expression.computed:
            entries = iter(parts)
            return with_indices(
                expression,
                (
                    index if index.entries is None else replace(index, entries=next(entries))
                    for index in indices
                ),
            )
        case Hit():
            (part,) = parts
            return replace(expression, entries=part)
        case Call(function, _, span):
            return Call(function, tuple(parts), span)
        case Comparisons(_, signs, span):
            return Comparisons(tuple(parts), signs, span)
        case Binary(operator, _, _, span):
            left, right = parts
            return Binary(operator, left, right, span)
        case Reduction(operator, over, _, span):
            (argument,) = parts
            return Reduction(operator, over, argument, span)
        case ScanExpression(running, _, span):
            (argument,) = parts
            return ScanExpression(running, argument, span)
        case First() | Flat() | Retyped() | Bounded():
            (argument,) = parts
            return replace(expression, argument=argument)
        case LabelDivision(_, by, remainder, span):
            (argument,) = parts
            return LabelDivision(argument, by, remainder, span)
        case ForestCall():
            features, packed = parts
            return replace(expression, features=features, packed=packed)
        case SystemCall():
            matrix, sides = parts
            return replace(expression, matrix=matrix, sides=sides)
        case Pairs():
            (source,) = parts
            assert isinstance(source, Access)
            return replace(expression, source=source)
        case Reindexed():
            raise AssertionError("what was lifted is not rewritten")
        case _:
            return expression


def with_indices(access: Access, indices: Iterable[Index]) -> Access:
    """Replace the indices of an access."""
    indices = tuple(indices)
    labels = dict.fromkeys(label for index in indices for label in index.labels)
    return replace(access, labels=tuple(labels), indices=indices)


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all its subexpressions, in preorder, left to right."""
    return tree_walk.walk(expression, children)


def fold(expression: Expression, make: Callable[[Expression, list[T]], T]) -> T:
    """Compute a value for an expression bottom-up, without recursion.

    Args:
        expression: the expression.
        make: computes the value of a part from the values of its direct subexpressions.
    """
    return tree_walk.fold(expression, children, make)


def accesses(expression: Expression) -> tuple[Access, ...]:
    """Every tensor access in an expression, left to right."""
    return tuple(part for part in walk(expression) if isinstance(part, Access))
