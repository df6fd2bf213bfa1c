"""Lower resolved statements to a logical program: expressions become steps or maps of steps.

`ucle.language.resolve` has made all aggregations explicit. A product of several factors, or any
other ⊗ that chains under an ⊕ over which it distributes, becomes one contraction. Whether it may
depends on the types of its factors, which are derived on the way (`ucle.lowering.step_types`). This
is done once for a program, for all orders of its products.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from ucle.errors import LabelError, UnsupportedError, ValueTypeError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar, promote, same_value
from ucle.foundation.names import find_free_name
from ucle.foundation.tree_walk import Calls, run
from ucle.ir.affine import Affine
from ucle.ir.axis_functions import Along, MatrixMap, Running, TopK, matrix_dtype, pair_dtype
from ucle.ir.conditions import Sign, compares
from ucle.ir.contraction_trees import Path
from ucle.ir.forests import Forest, forest_dtype
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import Label
from ucle.ir.linear_systems import NAME as SOLVE
from ucle.ir.linear_systems import LinearSystem
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertex_types import along_type, pair_type, reindexed_type, top_type
from ucle.ir.vertices import PairFunction, Span
from ucle.language.bounds import Bounds
from ucle.language.factors import (
    ProductChain,
    chain,
    constant_value,
    may_chain,
    scalar_case,
    types_used,
    with_sizes,
)
from ucle.language.forest_calls import output_label
from ucle.language.functions import DerivedAlong, Direction
from ucle.language.promotion import combine_signature, expression_type, reduce_type
from ucle.language.statements import choose_outputs
from ucle.language.syntax import (
    Access,
    Binary,
    Bounded,
    Call,
    Expression,
    Flat,
    ForestCall,
    Hit,
    Outside,
    Pairs,
    Reduction,
    Reindexed,
    Retyped,
    ScanExpression,
    Statement,
    SystemCall,
    children,
    walk,
)
from ucle.lowering.bits_of_booleans import bits_as_logic
from ucle.lowering.first_values import fill_follows, find_values_alone
from ucle.lowering.logical import (
    MOST_MAPS,
    Constant,
    Contraction,
    Labels,
    LogicalProgram,
    LogicalStatement,
    Use,
)
from ucle.lowering.mapped_uses import number_of, with_constant, with_function
from ucle.lowering.simplify_products import finite_products, ones_as_casts
from ucle.lowering.step_types import StepTypes
from ucle.operators import (
    ADD,
    ANY,
    MAX,
    MIN,
    NEG,
    ONE_IF_ZERO,
    PICK,
    SUM,
    UNLESS,
    WHEN_HIGHEST,
    WHEN_LOWEST,
    Combine,
    PointwiseMap,
    Reduce,
    Typing,
)

EXTREMES = ((WHEN_LOWEST, MAX), (WHEN_HIGHEST, MIN))
"""The operators that pick an entry of a tensor whose fill is infinite, and keep that fill."""


NUMBER_THEM = "add a column that numbers the coordinates, and use it as the key"
DATES = (
    "text becomes dates in a view with CAST(day AS DATE), or strptime(day, '%d.%m.%Y'); number "
    "other coordinates in a new column"
)
AS_ARRAYS = (
    "apply NumPy's function to to_numpy() of the matrix, and get the names of its rows from "
    "coordinates(label) of a result; or number the coordinates in a column, and use it as the key"
)
"""Hints for computations with coordinates that are no numbers."""


@dataclass(frozen=True)
class ResolvedProgram:
    """The input of lowering: resolved statements, and the facts about their tensors.

    `statements` are in the order that `order_statements` gives, `types` are those of the inputs.
    `outputs` are the requested tensors; None means all tensors with no reader. `paths` are given
    contraction paths, by the tensor of a statement.
    """

    statements: tuple[Statement, ...]
    types: Mapping[str, TensorType]
    bounds: Bounds
    outputs: tuple[str, ...] | None = None
    paths: Mapping[str, Path] = field(default_factory=dict)
    exact: bool = True
    """True if NaN and infinities meet entries that are not stored as in NumPy."""
    ordered: frozenset[str] = frozenset()
    """The dictionaries of times, along which positions have an order."""


def syntax_to_logical(source: ResolvedProgram) -> LogicalProgram:
    """Lower resolved statements.

    Raises:
        NameResolutionError: an output is unknown.
        UnsupportedError: a statement has no tensors.
        ValueTypeError: NumPy does not have an operation for the types at hand.
        BoundError: an aggregation over no entries has no value.

    >>> from ucle.language.bounds import AxisBound, infer_bounds, size_classes
    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.resolve import resolve
    >>> statements = tuple(map(resolve, parse_program("T[i] += relu(A[i,j]) * B[j,k] * c[k] * 2")))
    >>> axes = {"A": 2, "B": 2, "c": 1}
    >>> bounds = {name: (AxisBound(9, True, name),) * rank for name, rank in axes.items()}
    >>> bounds = infer_bounds(statements, bounds, {}, size_classes(statements))
    >>> types = {name: TensorType((Label("x", 9),) * rank) for name, rank in axes.items()}
    >>> print(syntax_to_logical(ResolvedProgram(statements, types, bounds)))
    T.1 = sum[j,k](relu(A[i,j]) * B[j,k] * c[k] * 2)
    T[i] = T.1[i]
    """
    outputs = choose_outputs(source.statements, source.outputs)
    values = find_values_alone(source.statements, outputs)
    lowering = _Lowering(dict(source.types), source.bounds, source.exact, source.ordered, values)
    statements = []
    for statement in source.statements:
        lowered = lowering.statement(statement)
        path = source.paths.get(lowered.target)
        statements.append(lowered if path is None else replace(lowered, path=path))
    return LogicalProgram(
        tuple(source.types), tuple(statements), outputs, lowering.types, source.exact
    )


@dataclass
class _Lowering:
    """Lowers statements in order, and keeps the types of their tensors and steps."""

    types: dict[str, TensorType]
    bounds: Bounds
    exact: bool
    ordered: frozenset[str]
    values: frozenset[str]
    """The tensors of first entries of which only values are read."""

    def __post_init__(self) -> None:
        self._steps: dict[str, Contraction] = {}
        self._step_types = StepTypes(self._steps, self.types, self.exact)
        self._target = ""
        self._span = Span(1, 1)
        self._unreduced: set[int] = set()
        """Parts of the statement that contain no aggregation (`ucle.language.factors`)."""
        self._lowered: dict[int, Use] = {}
        """The uses that parts of the statement have become, by the identity of the part."""

    def statement(self, statement: Statement) -> LogicalStatement:
        """Lower a statement to its steps."""
        self._target, self._span = statement.target.tensor, statement.span
        self._steps.clear()
        self._lowered.clear()
        self._unreduced.clear()
        if isinstance(statement.expression, Reindexed):
            reindexed = statement.expression
            if not self._needs_product(reindexed):
                return self._lower_reindex(statement, reindexed)
            assert reindexed.written is not None
            statement = replace(statement, expression=reindexed.written)
        if isinstance(statement.expression, ScanExpression):
            return self._lower_scan(statement, statement.expression)
        if isinstance(statement.expression, Pairs):
            return self._first_entries(statement, statement.expression)
        if isinstance(statement.expression, Flat):
            return self._lower_flat(statement, statement.expression)
        if isinstance(statement.expression, ForestCall):
            return self._lower_forest(statement, statement.expression)
        if isinstance(statement.expression, SystemCall):
            return self._lower_system(statement, statement.expression)
        expression = with_sizes(statement.expression, lambda name: self._label(name).bound)
        if (value := constant_value(expression)) is not None:
            raise UnsupportedError(
                "an expression of constants alone is not a tensor",
                where=str(self._span),
                expected="at least one tensor in the expression",
                found=repr(value)[:80],
            )
        expression = bits_as_logic(expression, self.types)
        expression = finite_products(ones_as_casts(expression, self.types), self.types)
        result = run(self._lower(expression))
        type_ = self._step_types.of_use(result, self._span)
        labels = tuple(self._label(name) for name in statement.target.labels)
        self.types[self._target] = type_.transpose_axes(labels)
        return LogicalStatement(
            self._target,
            labels,
            tuple(self._steps.values()),
            result,
            self._span,
            tuple(self._text(expression)),
        )

    def _needs_product(self, reindexed: Reindexed) -> bool:
        """Return whether 0 times an entry may be NaN, so that a condition must be a factor."""
        if reindexed.outside is not Outside.PRODUCT or not self.exact:
            return False
        return not self.types[reindexed.source.tensor].every.finite

    def _lower_reindex(self, statement: Statement, reindexed: Reindexed) -> LogicalStatement:
        """Lower a statement that is an index map."""
        source = self._access(reindexed.source)
        self._check_numbered(reindexed)
        type_ = self.types[source.tensor]
        hit = reindexed.hit
        if hit is not None:
            _check_positions(hit, type_.dtype)
        dtype = type_.dtype if reindexed.value is None else DType.INT64
        outside: Scalar = dtype.scalar(0)
        if reindexed.outside is Outside.FILL:
            outside = type_.fill
        elif reindexed.outside is Outside.IDENTITY and reindexed.aggregation is not None:
            identity = reindexed.aggregation.identity
            outside = outside if identity is None else identity(dtype)
        index = IndexMap(
            tuple(each.affine for each in reindexed.indices),
            reindexed.condition,
            reindexed.value,
            False if hit is not None else outside,
            dense=hit is not None
            or (reindexed.value is None and not same_value(outside, type_.fill)),
            hit=None if hit is None else hit.label,
            read="" if hit is None or hit.permissive else hit.read,
        )
        index = index.make_nonnegative(lambda name: max(self._label(name).bound, 1))
        labels = tuple(self._label(name) for name in statement.target.labels)
        self.types[self._target] = reindexed_type(type_, source.labels, index, labels)
        text = (source.tensor,)
        parts = (self._target, labels, (), source, self._span, text)
        return LogicalStatement(*parts, index=index, lifted=statement.lifted)

    def _lower_flat(self, statement: Statement, flat: Flat) -> LogicalStatement:
        """Lower a statement that numbers entries in row-major order, whatever their coordinates."""
        assert isinstance(flat.argument, Access), "lifted"
        use = self._access(flat.argument)
        source = self._plain(use) if use.maps else use
        type_ = self.types[source.tensor]
        number, indices, stride = Affine(((flat.label, 1),)), list[Affine](), 1
        for name in reversed(flat.argument.labels):
            index = Affine(((name, 1),))
            if name in flat.over:
                size = max(self._label(name).bound, 1)
                index = number.digit(stride, False)
                index = index if name == flat.over[0] else index.digit(size, True)
                stride *= size
            indices.insert(0, index)
        labels = tuple(self._label(name) for name in statement.target.labels)
        map_ = IndexMap(tuple(indices), outside=type_.fill)
        map_ = map_.make_nonnegative(lambda name: max(self._label(name).bound, 1))
        self.types[self._target] = reindexed_type(type_, source.labels, map_, labels)
        text = (source.tensor,)
        return LogicalStatement(self._target, labels, (), source, self._span, text, index=map_)

    def _lower_scan(self, statement: Statement, expression: ScanExpression) -> LogicalStatement:
        """Lower a statement that scans or transforms along labels that stay."""
        source, along = expression.argument, expression.along
        assert isinstance(source, Access), "lifted"
        assert not isinstance(along, DerivedAlong)
        use = self._access(source)
        use = use.cast(self._along_dtype(along, use.dtype, expression.span))
        if not self._is_of_names(along):
            what, hint = "have no order to run along", f"dates and times have an order: {DATES}"
            if isinstance(along, MatrixMap):
                what, hint = f"have no order, on which {along.name} depends", AS_ARRAYS
            for label in along.labels:
                if not self._is_ordered(label):
                    every = f"the coordinates of the label {label!r} {what}"
                    self._check_no_dictionary(label, every, expression.span, hint)
        if use.maps:
            use = self._plain(use)
        labels = tuple(self._label(name) for name in statement.target.labels)
        type_ = self._step_types.of_use(use, self._span)
        if isinstance(along, Running):
            along = replace(along, dense=not along.is_stable(type_.fill, type_.dtype))
        self.types[self._target] = along_type(type_, along, labels)
        text, steps = (source.tensor,), tuple(self._steps.values())
        return LogicalStatement(self._target, labels, steps, use, self._span, text, along=along)

    def _is_of_names(self, along: Along) -> bool:
        """Return whether the order of coordinates is irrelevant, as for an inverse's rows."""
        if not isinstance(along, MatrixMap) or along.name != "inv":
            return False
        rows, columns = (self._label(label).dictionary for label in along.labels)
        return rows == columns

    def _along_dtype(self, along: Along, dtype: DType, span: Span) -> DType:
        """Return the element type of a computation along labels."""
        if isinstance(along, Running):
            return reduce_type(along.reduce, dtype, str(self._span))
        return matrix_dtype(along.name, dtype, str(span))

    def _first_entries(self, statement: Statement, pairs: Pairs) -> LogicalStatement:
        """Lower a statement of top-k entries with their positions."""
        use = self._access(pairs.source)
        dtype = pair_dtype(use.dtype)
        if dtype is None:
            raise ValueTypeError(
                "complex numbers have no order",
                where=str(pairs.span),
                expected="a tensor of real numbers, integers or truth values",
                found=f"{pairs.source} of {use.dtype.value}",
                hint="abs, real and imag make real numbers of them",
            )
        largest = pairs.order is Direction.GREATEST
        use = use.cast(dtype)
        if pairs.order is Direction.LEAST_OR_NAN and dtype.kind == "f":
            use, largest = with_function(NEG, use, pairs.span, self._span), True
        if use.maps:
            use = self._plain(use)
        labels = tuple(self._label(name) for name in statement.target.labels)
        type_ = self._step_types.of_use(use, self._span)
        stored_first = self._target in self.values and fill_follows(type_, largest=largest)
        top = TopK(pairs.label, pairs.rank, pairs.part, largest, stored_first)
        self.types[self._target] = top_type(type_, top, use.labels, labels)
        text, steps = (pairs.source.tensor,), tuple(self._steps.values())
        return LogicalStatement(self._target, labels, steps, use, self._span, text, top=top)

    def _lower_forest(self, statement: Statement, call: ForestCall) -> LogicalStatement:
        """Lower a statement that applies a forest to features."""
        # Features may have the names of the columns of a wide table, which are in their order.
        what = f"the coordinates of the label {call.node!r} are no numbers of nodes"
        self._check_no_dictionary(call.node, what, call.span)
        operands = [
            use.cast(forest_dtype(use.dtype, str(call.span))) for use in self._operands(call)
        ]
        forest = Forest(call.feature, call.node, output_label(call))
        return self._lower_pair(statement, forest, operands)

    def _lower_system(self, statement: Statement, call: SystemCall) -> LogicalStatement:
        """Lower a statement that solves systems of equations, in whatever order these are."""
        operands = self._operands(call)
        dtype = promote(*(use.dtype for use in operands))
        dtype = matrix_dtype(SOLVE, dtype, str(call.span))
        system = LinearSystem(call.row, call.column, call.own)
        return self._lower_pair(statement, system, [use.cast(dtype) for use in operands])

    def _operands(self, call: ForestCall | SystemCall) -> list[Use]:
        sources = [x for x in children(call) if isinstance(x, Access)]
        assert len(sources) == 2, "lifted"
        return [self._access(source) for source in sources]

    def _lower_pair(
        self, statement: Statement, pair: PairFunction, operands: Sequence[Use]
    ) -> LogicalStatement:
        first, second = (self._plain(use) if use.maps else use for use in operands)
        labels = tuple(self._label(name) for name in statement.target.labels)
        one, other = (self._step_types.of_use(x, self._span) for x in (first, second))
        self.types[self._target] = pair_type((one, other), pair, labels)
        steps, text = tuple(self._steps.values()), tuple(self._text(statement.expression))
        parts = self._target, labels, steps, first, self._span, text
        return LogicalStatement(*parts, pair=(pair, second))

    def _check_numbered(self, reindexed: Reindexed) -> None:
        """Check that no label without numeric coordinates is computed with."""
        own = list(zip(reindexed.source.labels, reindexed.indices, strict=True))
        written = f"{reindexed.source.tensor}[{','.join(map(str, reindexed.indices))}]"
        shown = {x: f"the axis at {index} in {written}" for x, index in own if index.plain != x}
        computed: list[Affine] = []
        moved, unlike = set[str](), set[str]()
        for n, (x, index) in enumerate(own):
            if index.entries is None and not index.labels and not self._is_ordered(x):
                self._check_place(reindexed, n, shown[x])
            by_number = not index.permissive and self._counts_times(x, index.affine)
            if index.affine.label != x and not (by_number or self._moves_along(x, index.affine)):
                moved |= {x, *index.affine.labels}
                computed += [Affine(((x, 1),)), index.affine]
        computed += [] if reindexed.value is None else [reindexed.value]
        hit = reindexed.hit
        if hit is not None and not hit.own:
            self._check_no_dictionary(
                hit.label,
                f"{hit.read} selects along an axis whose coordinates are no positions",
                reindexed.span,
                "entries of a tensor in brackets are positions, counted from 0: add a column that "
                "numbers the coordinates, and use it as the key; along dates and times, "
                "x[~(t-1)] reads x at the time before",
                shown=f"the axis at {reindexed.source}",
            )
        for compare in compares(reindexed.condition):
            signs = sorted(n for _, n in compare.affine.terms)
            same = {self._label(x).dictionary for x in compare.affine.labels}
            equal = compare.sign is not Sign.AT_LEAST and compare.affine.constant == 0
            two = compare.affine.linear and signs == [-1, 1] and len(same) == 1
            if not (two and (equal or same <= self.ordered)):
                computed.append(compare.affine)
            unlike |= set(compare.affine.labels) if signs == [-1, 1] and len(same) > 1 else set()
        for name in (x for each in computed for x in each.labels):
            of = shown.get(name, f"the label {name!r}")
            what = f"the coordinates of {of} are no numbers to compute with"
            hint = NUMBER_THEM
            if name in unlike:
                hint = (
                    f"a label has the coordinates of {name} if it is an axis that shares them, as "
                    "in a factor sum[b](N[x,b]) != 0, and if no bound is stated for it"
                )
            elif name in moved and not self._is_ordered(name):
                hint = f"dates and times have an order, so earlier entries can be read: {DATES}"
            self._check_no_dictionary(name, what, reindexed.span, hint, shown=shown.get(name))

    def _check_place(self, reindexed: Reindexed, axis: int, shown: str) -> None:
        """Check that an axis that is read at a number, and is `shown` like this, has positions."""
        source, plain = reindexed.source, [str(each) for each in reindexed.indices]
        plain[axis] = over = find_free_name("c", reindexed.labels)
        selected = f"sum[{over}]({source.tensor}[{','.join(plain)}] * chosen[{over}])"
        self._check_no_dictionary(
            source.labels[axis],
            f"{shown} has coordinates of its own and no position {reindexed.indices[axis]}",
            reindexed.span,
            "a factor that is 1 at one of the names selects it, and a sum leaves out the axis: "
            f"{selected}, with the input chosen=pd.Series({{name: 1.0}})",
            shown=shown,
        )

    def _is_ordered(self, name: str) -> bool:
        """True if the coordinates of a label are times."""
        return self._label(name).dictionary in self.ordered

    def _counts_times(self, axis: str, affine: Affine) -> bool:
        """True for a function of positions, which counts the times of an axis from the first on."""
        has_dictionary = (self._label(x).dictionary is not None for x in affine.labels)
        return self._is_ordered(axis) and not any(has_dictionary)

    def _moves_along(self, axis: str, affine: Affine) -> bool:
        """True for the position of a time plus or minus numbers, in an axis of the same times."""
        dictionaries = {x: self._label(x).dictionary for x in affine.labels}
        times = [x for x, n in affine.terms if isinstance(x, str) and dictionaries[x] is not None]
        if not affine.linear or len(times) != 1 or dict(affine.terms)[times[0]] != 1:
            return False
        return self._is_ordered(axis) and dictionaries[times[0]] == self._label(axis).dictionary

    def _check_no_dictionary(
        self,
        name: str,
        what: str,
        span: Span,
        hint: str = NUMBER_THEM,
        *,
        shown: str | None = None,
    ) -> None:
        """Check that the coordinates of a label are positions; otherwise `what` is the error.

        The label is `shown` in place of its name if it is none of the program.
        """
        if self._label(name).dictionary is not None:
            raise LabelError(
                what,
                where=str(span),
                expected="a label whose coordinates are positions",
                found=f"{shown or name}, whose coordinates are looked up in a dictionary",
                hint=hint,
            )

    def _text(self, expression: Expression) -> Iterator[str | Label]:
        for part in walk(expression):
            if isinstance(part, Access):
                yield part.tensor
            elif isinstance(part, Reduction):
                yield from map(self._label, part.over)

    def _label(self, name: str) -> Label:
        return self.bounds.label(self._target, name)

    # ---- Steps ----

    def _step(
        self,
        factors: Iterable[Use],
        combine: Combine | None,
        reduce: Reduce | None,
        over: Labels,
        dtype: DType,
        found: ProductChain | None = None,
    ) -> Use:
        """Add a step; `found` is its chain if it is one."""
        name = f"{self._target}.{len(self._steps) + 1}"
        step = Contraction(name, tuple(factors), combine, reduce, over, dtype)
        if found is not None:
            numbers = (Constant(*pair) for pair in zip(found.places, found.constants, strict=True))
            step = replace(
                step,
                written=found.written,
                constants=tuple(numbers),
                outermost=found.outermost,
            )
        self.types[name] = self._step_types.of_step(step, self._span)
        self._steps[name] = step
        return Use(name, step.labels, dtype)

    def _plain(self, use: Use) -> Use:
        """Return a use without maps, which a new step applies."""
        return self._step([use], None, None, (), use.dtype)

    def _maps(self, use: Use) -> int:
        """Return the number of maps that one vertex would apply, with constants if they are few.

        Too many constants get a vertex of their own.
        """
        step = self._steps.get(use.tensor)
        constants = len(step.constants) if step is not None else 0
        return len(use.maps) + (constants if constants < MOST_MAPS else 0)

    # ---- Expressions ----

    def _lower(self, expression: Expression) -> Calls[Use]:
        """Lower a part of the statement, at most once for each part."""
        use = self._lowered.get(id(expression))
        if use is None:
            use = yield self._lower_new(expression)
            if self._maps(use) >= MOST_MAPS:
                use = self._plain(use)
            self._lowered[id(expression)] = use
        return use

    def _lower_new(self, expression: Expression) -> Calls[Use]:
        use: Use
        match expression:
            case Access():
                use = self._access(expression)
                if len(use.distinct) < len(use.labels):  # a step picks the diagonal
                    use = self._plain(use)
            case Call(DType() as dtype, (argument,)):
                uncast = yield self._lower(argument)
                use = uncast.cast(dtype)
            case Retyped(argument, like):
                uncast = yield self._lower(argument)
                use = uncast.cast(self.types[like].dtype)
            case Bounded(argument, pick, bound):
                inner = yield self._lower(argument)
                if inner.dtype is not DType.BOOL:
                    use = with_constant(pick, inner, bound, False, self._span)
                elif expression.is_nonzero:
                    use = with_function(ONE_IF_ZERO, inner, expression.span, self._span)
                else:
                    use = inner
            case Call(PointwiseMap() as function, (argument,)):
                inner = yield self._lower(argument)
                use = with_function(function, inner, expression.span, self._span)
            case Reduction():
                use = yield self._lower_reduction(expression)
            case Binary() if (found := chain(expression, self._unreduced)) and (
                yield self._may_chain(found)
            ):
                use = yield self._lower_chain(found)
            case Binary() if constant := scalar_case(expression):
                other = yield self._lower(constant.other)
                use = with_constant(
                    expression.operator, other, constant.value, constant.first, self._span
                )
            case Binary():
                use = yield self._lower_binary(expression, None, ())
            case _:
                raise AssertionError(f"{expression} is not resolved")
        return use

    def _access(self, access: Access) -> Use:
        labels = tuple(self._label(name) for name in access.labels)
        return Use(access.tensor, labels, self.types[access.tensor].dtype)

    def _lower_reduction(self, expression: Reduction) -> Calls[Use]:
        operator, argument = expression.operator, expression.argument
        over = tuple(self._label(name) for name in expression.over)
        use: Use
        if operator.picks:
            use = yield self._lower_pick(expression, over)
            return use
        if (found := chain(expression, self._unreduced)) and (yield self._may_chain(found)):
            use = yield self._lower_chain(found)
            return use
        if isinstance(argument, Binary) and scalar_case(argument) is None:
            use = yield self._lower_binary(argument, operator, over)
            return use
        if isinstance(argument, Access):  # one step picks the diagonal and aggregates
            use = self._access(argument)
        else:
            use = yield self._lower(argument)
        return self._reduce(use, operator, over)

    def _lower_pick(self, expression: Reduction, over: Labels) -> Calls[Use]:
        """Lower the selection of one entry, by operators that keep entries not stored as is."""
        selection = expression.argument
        assert isinstance(selection, Binary)
        source: Use = yield self._lower(selection.right)
        left, dtype = self._step_types.of_use(source, self._span).fill, source.dtype
        picked: Use
        for select, reduce in EXTREMES if all(label.bound for label in over) else ():
            assert reduce.identity is not None
            if dtype.kind in select.kinds and same_value(reduce.identity(dtype), left):
                chosen = replace(selection, operator=select)
                picked = yield self._lower_binary(chosen, reduce, over)
                return picked
        add = ANY if dtype is DType.BOOL else SUM
        picked = yield self._lower_binary(selection, add, over)
        # The source of a pick may itself be picked by another index, which leaves 0 elsewhere.
        whole: Use = yield self._lower_picked_source(selection)
        fill = self._step_types.of_use(whole, self._span).fill
        if expression.operator is PICK or same_value(fill, dtype.scalar(0)):
            return picked
        hits: Use = yield self._lower(selection.left)
        hit = self._reduce(hits, ANY, over)
        elsewhere = with_constant(UNLESS, hit, fill, False, self._span).cast(dtype)
        return self._step([picked, elsewhere], ADD, None, (), dtype)

    def _lower_picked_source(self, selection: Binary) -> Calls[Use]:
        """Lower the tensor that indices read at the entries of other tensors."""
        source = selection.right
        while isinstance(source, Reduction) and source.operator.picks:
            assert isinstance(source.argument, Binary)
            source = source.argument.right
        use: Use = yield self._lower(source)
        return use

    def _reduce(self, use: Use, operator: Reduce, over: Labels) -> Use:
        use = use.cast(reduce_type(operator, use.dtype, str(self._span)))
        if not over and len(use.distinct) == len(use.labels):
            return use
        return self._step([use], None, operator if over else None, over, use.dtype)

    def _lower_binary(self, expression: Binary, reduce: Reduce | None, over: Labels) -> Calls[Use]:
        """Lower ⊗ of two expressions, aggregated in the same step if there are kernels for that."""
        left: Use = yield self._lower(expression.left)
        right: Use = yield self._lower(expression.right)
        operator, where = expression.operator, str(expression.span)
        signature = combine_signature(operator, left.dtype, right.dtype, where)
        if operator.typing is Typing.SELECTION:
            left = left.cast(DType.BOOL)
        pair = [side.cast(signature.compute) for side in (left, right)]
        fused = (
            reduce is not None
            and not operator.indicates
            and reduce.compiled
            and reduce_type(reduce, signature.result, where) is signature.result
        )
        if fused:
            return self._step(pair, operator, reduce if over else None, over, signature.compute)
        use = self._step(pair, operator, None, (), signature.compute)
        if operator.indicates:
            use = use.indicating(signature.result)
        return use if reduce is None else self._reduce(use, reduce, over)

    # ---- Chains ----

    def _may_chain(self, found: ProductChain) -> Calls[bool]:
        """Return whether a chain may be contracted in parts, given the types of its factors."""
        if not may_chain(found, types_used(found, self.types), self.exact):
            return False
        # A maximum of real numbers plus a complex one is not a maximum of complex numbers.
        if found.reduce is not None and self._type(found).kind not in found.reduce.kinds:
            return False
        if found.reduce is None or all(isinstance(x, Access) for x in found.factors):
            return True
        factors = yield self._lower_all(found.factors)
        types = [self._step_types.of_use(factor, self._span) for factor in factors]
        return may_chain(found, types, self.exact)

    def _lower_all(self, expressions: Iterable[Expression]) -> Calls[list[Use]]:
        uses = []
        for expression in expressions:
            uses.append((yield self._lower(expression)))
        return uses

    def _type(self, found: ProductChain) -> DType:
        """Return the type in which the factors of a chain are joined."""
        dtype = expression_type(found.expression, self.types)
        assert isinstance(dtype, DType)
        return dtype

    def _lower_chain(self, found: ProductChain) -> Calls[Use]:
        factors = yield self._lower_all(found.factors)
        # The order of casts does not matter, as for a summed product of truth values.
        dtype = self._type(found)
        for constant in found.constants:
            number_of(constant, dtype, self._span)
        over = tuple(self._label(name) for name in found.over)
        return self._step(factors, found.combine, found.reduce, over, dtype, found)


def _check_positions(hit: Hit, dtype: DType) -> None:
    """Check that the indices at which a tensor is read or written are integers."""
    if dtype is not DType.INT64:
        raise ValueTypeError(
            "an index is no integer",
            where=str(hit.span),
            expected=f"a tensor of integers in {hit.read}",
            found=dtype.value,
            hint="int64(...) around it removes fractions; to select by a condition, write "
            "when(c[i], x[i])",
        )
