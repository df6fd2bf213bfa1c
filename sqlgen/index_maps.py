"""Tensors read by an index map, in SQL: arithmetic on key columns, and a kernel for arrays.

Keys of the source are known, those of the result are wanted. Each axis that is read at labels is an
equation between both, and so is an equality of labels. An equation with one unknown label is solved
for it; where all equations have several unknowns, one label runs over all of its coordinates
(``range``), the shortest first, so that a window over a long axis makes a row for each of its few
places and not for each pair. The quotient and the remainder of a function of labels are unknowns
like labels, with an equation of their own. Labels that no equation determines run over their
coordinates, too; all other conditions stand in WHERE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from sqlglot import exp

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name, unique_names
from ucle.ir.affine import Affine, Digit, labels_of
from ucle.ir.conditions import (
    All,
    Compare,
    Condition,
    Sign,
    Some,
    clauses,
    condition_labels,
    conjuncts,
)
from ucle.plan import relation_nodes as plan
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    cast,
    column,
    function,
    integer,
    integers,
    integers_below,
    join,
    key_columns,
    key_type,
    number,
    select_from,
    strides,
    text,
)

OUTSIDE = "an index is outside of its axis: "
"""Prefix of the error that an entry is not a coordinate; `ucle.database.engine_errors` reads it."""

KEY = ""
"""The name for the key in an equation; no label has it."""


@dataclass(frozen=True)
class _Equation:
    """A function of labels that equals a key of the source, or 0."""

    affine: Affine
    key: exp.Expr | None
    size: int = 1
    """The size of the key's axis."""


@dataclass
class _Solution:
    """The labels whose coordinates are known, as SQL, and the conditions that have to hold."""

    keys: dict[str, exp.Expr]
    sizes: dict[str, int]
    where: list[exp.Expr] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    """The labels that run over all of their coordinates."""


def reindex_tensor(
    node: plan.Reindex, source: exp.Expr, alias: str, kernels: KernelCalls
) -> exp.Select:
    """Return the SELECT that reads a tensor by an index map.

    Args:
        node: the relation.
        source: the relation in FROM for its input, under `alias`.
        alias: of the input.
        kernels: how kernels are called.
    """
    names = key_columns(node.type)
    taken = unique_names((f"{name}_range" for name in names), taken={fold_name(alias)})
    range_of = dict(zip(node.labels, taken, strict=True))
    column_of = dict(zip(node.labels, names, strict=True))
    arrays = {node.labels[axis] for axis in node.layout.dense}
    outer, inside = list[Condition](), list[Condition]()
    for condition in conjuncts(node.index.condition):
        free = arrays.isdisjoint(condition_labels(condition))
        (outer if free else inside).append(condition)
    solved = _solve_coordinates(node, alias, outer, range_of, column_of)

    value: exp.Expr = column(VALUE, alias)
    if node.kernel.name == "hits":
        value = _hits(node, value, kernels)
    elif node.kernel.name is not None:
        value = _call(node, value, solved.keys, All(tuple(inside)), kernels)
    elif node.index.hit is not None:
        value = exp.true()
    if node.index.value is not None:
        value = cast(affine_sql(node.index.value, solved.keys), node.type.dtype)
        zero = number(node.type.fill, node.type.dtype)
        solved.where.append(exp.NEQ(this=value.copy(), expression=zero))
    outputs = []
    for axis in node.layout.promoted:
        key = solved.keys[node.labels[axis]]
        if not isinstance(key, exp.Column) or key.table != alias:
            key = cast(key.copy(), key_type(node.type, axis))
        outputs.append(add_alias(key.copy(), names[axis]))
    query = select_from(source, *outputs, add_alias(value, VALUE))
    for label in solved.ranges:
        everything = integers_below(solved.sizes[label], range_of[label], column_of[label])
        query = join(query, everything, "CROSS")
    return query.where(*solved.where, copy=False) if solved.where else query


def _solve_coordinates(
    node: plan.Reindex,
    alias: str,
    conditions: Sequence[Condition],
    range_of: dict[str, str],
    column_of: dict[str, str],
) -> _Solution:
    """Return the coordinates of all labels that are keys, from those of the source.

    Digits that have to run over their values also get names for a range and for its column.
    """
    columns = key_columns(node.input.type)
    sizes = dict(zip(node.labels, node.type.shape, strict=True))
    solved = _Solution({}, sizes)
    hit = node.index.hit if node.kernel.name is None else None
    if hit is not None:
        solved.keys[hit] = column(VALUE, alias)
    equations: list[_Equation] = []
    digits = _Digits(sizes, alias, range_of, column_of, equations)
    for axis in node.input.layout.promoted:
        key = column(columns[axis], alias)
        label = node.index.indices[axis].label
        if label == node.axes[axis] and label not in solved.keys:
            solved.keys[label] = key  # passed through, and within its bounds
        else:
            size = node.input.type.shape[axis]
            equations.append(_Equation(digits.name_digits(node.index.indices[axis]), key, size))
    if hit is not None:
        _bring_inside(node, hit, solved, sizes)
    rest: list[Condition] = []
    for condition in conditions:
        equal = isinstance(condition, Compare) and condition.sign is Sign.EQUAL
        if isinstance(condition, Compare) and equal and condition.affine.linear:
            equations.append(_Equation(condition.affine, None))
        else:
            rest.append(condition)

    def run_over(label: str) -> None:
        solved.keys[label] = column(column_of[label], range_of[label])
        solved.ranges.append(label)

    while equations:
        equations = _solve(equations, solved)
        if equations:
            unknown = {x for each in equations for x in _unknown(each, solved)}
            run_over(min(sorted(unknown), key=sizes.__getitem__))
    for axis in node.layout.promoted:
        if (label := node.labels[axis]) not in solved.keys:
            run_over(label)
    solved.where += [condition_sql(condition, solved.keys) for condition in rest]
    return solved


@dataclass(frozen=True)
class _Digits:
    """Digits of labels treated as labels, with an equation for each pair of them.

    They also get sizes, and names for a range and for its column.
    """

    sizes: dict[str, int]
    alias: str
    range_of: dict[str, str]
    column_of: dict[str, str]
    equations: list[_Equation]

    def name_digits(self, affine: Affine) -> Affine:
        """Return a function with names in place of digits."""
        result = Affine((), affine.constant)
        for term, factor in affine.terms:
            name = term if isinstance(term, str) else self._name(term)
            result = result.plus(Affine(((name, factor),)))
        return result

    def _name(self, digit: Digit) -> str:
        names = [str(Digit(digit.of, digit.by, remainder=rest)) for rest in (False, True)]
        if names[0] not in self.sizes:
            self.sizes[names[0]] = digit.of.most(self._positions) // digit.by + 1
            self.sizes[names[1]] = digit.by
            used = {*self.range_of.values(), fold_name(self.alias)}
            taken = unique_names(("digit_range", "digit_range"), used)
            self.range_of.update(zip(names, taken, strict=True))
            self.column_of.update(dict.fromkeys(names, "digit"))
            parts = Affine(((names[0], -digit.by), (names[1], -1)))
            self.equations.append(_Equation(self.name_digits(digit.of).plus(parts), None))
        return names[digit.remainder]

    def _positions(self, label: str) -> int:
        return max(self.sizes[label], 1)


def _bring_inside(
    node: plan.Reindex, hit: str, solved: _Solution, sizes: Mapping[str, int]
) -> None:
    """Keep coordinates within their labels: entries outside raise an error, or hit nothing."""
    value = solved.keys[hit]
    inside = exp.and_(
        exp.GTE(this=value.copy(), expression=integer(0)),
        exp.LT(this=value.copy(), expression=integer(sizes[hit])),
    )
    if not node.index.read:
        solved.where.append(inside)
        return
    parts: list[exp.Expr] = [text(f"{OUTSIDE}{node.index.read} is at "), value.copy()]
    for label in node.axes:
        start = ", for " if len(parts) == 2 else ", "
        parts += [text(f"{start}{label} = "), solved.keys[label].copy()]
    parts.append(text(f"; it has coordinates below {sizes[hit]}"))
    refused = function("error", function("concat", *parts))
    solved.keys[hit] = exp.Case(ifs=[exp.If(this=inside, true=value)], default=refused)


def _hits(node: plan.Reindex, value: exp.Expr, kernels: KernelCalls) -> exp.Expr:
    """Return the call that compares the coordinates inside of an array with one position."""
    dtype = node.input.type.dtype
    position = kernels.scalar("sca_to_vec", value, dtype=dtype)
    size = integer(*node.type.dense_shape(node.layout))
    return kernels.scalar("hits", position, size, text(node.index.read), dtype=dtype)


def _call(
    node: plan.Reindex,
    value: exp.Expr,
    keys: Mapping[str, exp.Expr],
    condition: Condition,
    kernels: KernelCalls,
) -> exp.Expr:
    """Return the call of the kernel ``reindex``; its program is described where C defines it."""
    before, dtype = node.input.layout, node.type.dtype
    labels = [node.labels[axis] for axis in node.layout.dense]
    if before.scalar:
        value = kernels.scalar("sca_to_vec", value, dtype=dtype)
    constants: list[exp.Expr] = []

    inside: list[Affine] = []
    """The functions of labels inside of arrays, in their order."""

    def factors(affine: Affine) -> list[int]:
        own = {x: n for x, n in affine.terms if not set(labels_of(x)).isdisjoint(labels)}
        known = Affine(tuple((x, n) for x, n in affine.terms if x not in own), affine.constant)
        constants.append(cast(affine_sql(known, keys), "BIGINT"))
        inside.append(Affine(tuple(own.items())))
        return [own.get(label, 0) for label in labels]

    shape = node.input.type.dense_shape(before)
    program = [len(labels), *node.type.dense_shape(node.layout), len(shape)]
    for axis, size, stride in zip(before.dense, shape, strides(shape), strict=False):
        program += [size, stride, *factors(node.index.indices[axis])]
    every = clauses(condition)
    assert every is not None, "a condition that is too long for a kernel"
    program.append(len(every))
    for clause in every:
        program.append(len(clause))
        for one in clause:
            program += [SIGNS.index(one.sign), *factors(one.affine)]
    program += _digits(inside, factors)
    outside = number(node.type.fill, dtype)
    listed = cast(exp.Array(expressions=constants), "BIGINT[]")
    call = kernels.scalar("reindex", value, listed, integers(program), outside, dtype=dtype)
    return kernels.scalar("element", call, integer(0), dtype=dtype) if not labels else call


def _digits(functions: list[Affine], factors: Callable[[Affine], list[int]]) -> list[int]:
    """The part of a kernel's program that lists the digits in its functions, with their factors.

    Digits are functions as well, after those of axes and of comparisons; a digit of another digit
    comes after it.

    Args:
        functions: those of axes and comparisons; digits are added.
        factors: gives the factors of labels in a function, which it adds.
    """
    plain, number_of = len(functions), dict[Digit, int]()
    program, terms = list[int](), list[int]()

    def number(digit: Digit) -> int:
        if digit not in number_of:
            used = [(number(x), n) for x, n in digit.of.terms if isinstance(x, Digit)]
            number_of[digit] = place = len(number_of)
            program.extend((digit.by, int(digit.remainder), *factors(digit.of)))
            for other, factor in used:
                terms.extend((plain + place, factor, other))
        return number_of[digit]

    for place, affine in enumerate(functions[:plain]):
        for term, factor in affine.terms:
            if isinstance(term, Digit):
                digit = number(term)
                terms.extend((place, factor, digit))
    if not number_of:
        return []
    return [len(number_of), *program, len(terms) // 3, *terms]


SIGNS = (Sign.AT_LEAST, Sign.EQUAL, Sign.UNEQUAL)
"""The signs of comparisons, in the order of the kernel's numbers for them."""


def _unknown(equation: _Equation, solved: _Solution) -> list[str]:
    return [label for label in equation.affine.labels if label not in solved.keys]


def _solve(equations: Sequence[_Equation], solved: _Solution) -> list[_Equation]:
    """Solve equations with one unknown until none is left; return the remaining equations."""
    waiting, progress = list(equations), True
    while progress:
        progress, left = False, []
        for equation in waiting:
            unknown = _unknown(equation, solved)
            if len(unknown) > 1:
                left.append(equation)
                continue
            progress = True
            if unknown:
                _solve_for(unknown[0], equation, solved)
            else:
                key = integer(0) if equation.key is None else equation.key
                known = affine_sql(equation.affine, solved.keys)
                solved.where.append(exp.EQ(this=key, expression=known))
        waiting = left
    return waiting


def _solve_for(label: str, equation: _Equation, solved: _Solution) -> None:
    """Compute the coordinate of a label from an equation in which all else is known."""
    factor = dict(equation.affine.terms)[label]
    sizes = solved.sizes
    sign, step = (1 if factor > 0 else -1), abs(factor)
    # step * label = sign * (key - others)
    others = Affine(
        tuple((x, -sign * n) for x, n in equation.affine.terms if x != label),
        -sign * equation.affine.constant,
    )
    keys, terms, every = dict(solved.keys), others, dict(sizes)
    if equation.key is not None:
        keys[KEY], every[KEY] = equation.key, equation.size
        terms = Affine(((KEY, sign), *others.terms), others.constant)
    found = affine_sql(terms, keys)
    if not isinstance(found, exp.Column):
        found = exp.Paren(this=found)
    # A condition that holds for all values of the others within their bounds is not checked.
    if step > 1:
        rest = exp.Mod(this=found.copy(), expression=integer(step))
        solved.where.append(exp.EQ(this=rest, expression=integer(0)))
    empty = min(every.values()) == 0
    if empty or terms.least(every.__getitem__) < 0:
        solved.where.append(exp.GTE(this=found.copy(), expression=integer(0)))
    if step > 1:
        found = exp.Paren(this=exp.IntDiv(this=found, expression=integer(step)))
    if empty or terms.most(every.__getitem__) >= step * sizes[label]:
        solved.where.append(exp.LT(this=found.copy(), expression=integer(sizes[label])))
    solved.keys[label] = found


def affine_sql(affine: Affine, keys: Mapping[str, exp.Expr]) -> exp.Expr:
    """A function of labels in SQL, in 64 bits wherever anything is computed."""
    if affine.label is not None:
        return keys[affine.label].copy()
    result: exp.Expr | None = None
    for part, factor in affine.terms:
        term = (
            _digit_sql(part, keys) if isinstance(part, Digit) else cast(keys[part].copy(), "BIGINT")
        )
        size: exp.Expr = term
        if abs(factor) != 1:
            size = exp.Mul(this=term, expression=integer(abs(factor)))
        if result is None:
            result = size if factor > 0 else exp.Neg(this=size)
        else:
            kind = exp.Add if factor > 0 else exp.Sub
            result = kind(this=result, expression=size)
    if result is None:
        return _integer(affine.constant)
    if affine.constant:
        kind = exp.Add if affine.constant > 0 else exp.Sub
        result = kind(this=result, expression=integer(abs(affine.constant)))
    return result


def _digit_sql(digit: Digit, keys: Mapping[str, exp.Expr]) -> exp.Expr:
    """A quotient or a remainder of a number that is not negative."""
    of = exp.Paren(this=affine_sql(digit.of, keys))
    kind = exp.Mod if digit.remainder else exp.IntDiv
    return exp.Paren(this=kind(this=of, expression=integer(digit.by)))


def _integer(value: int) -> exp.Expr:
    return exp.Neg(this=integer(-value)) if value < 0 else integer(value)


def condition_sql(condition: Condition, keys: Mapping[str, exp.Expr]) -> exp.Expr:
    """A condition on labels, with bare columns on one side where that is possible.

    DuckDB joins and skips rows by such comparisons.
    """
    match condition:
        case All(parts):
            each = [condition_sql(part, keys) for part in parts]
            return exp.Paren(this=exp.and_(*each, copy=False)) if each else exp.true()
        case Some(parts):
            each = [condition_sql(part, keys) for part in parts]
            return exp.Paren(this=exp.or_(*each, copy=False)) if each else exp.false()
    more = Affine(tuple((x, n) for x, n in condition.affine.terms if n > 0))
    less = Affine(tuple((x, -n) for x, n in condition.affine.terms if n < 0))
    constant = condition.affine.constant
    match condition.sign:
        case Sign.EQUAL:
            kind: type[exp.Binary] = exp.EQ
        case Sign.UNEQUAL:
            kind = exp.NEQ
        case Sign.AT_LEAST if constant < 0:
            kind, constant = exp.GT, constant + 1
        case Sign.AT_LEAST:
            kind = exp.GTE
    if constant < 0 or not more.terms:
        less = less.plus(Affine((), -constant))
    else:
        more = more.plus(Affine((), constant))
    return kind(this=affine_sql(more, keys), expression=affine_sql(less, keys))
