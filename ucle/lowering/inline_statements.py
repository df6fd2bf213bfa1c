"""Inline statements in the one statement that uses them.

``P[i,m] += N[i,j] * H[j,m]; Q[i,n] += P[i,m] * W[m,n]`` means the same as ``Q[i,n] += N[i,j] *
H[j,m] * W[m,n]``, where the three factors may be associated in any order: the factors of one chain
replace a factor of another. `ucle.lowering.find_inlinable` finds the statements that can be merged;
`ucle.optimiser.join_order` decides whether it pays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from ucle.foundation.dataclasses import dataclass
from ucle.ir.contraction_trees import Tree, fold
from ucle.ir.layouts import Label
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertex_types import unary_type
from ucle.lowering.logical import (
    Constant,
    Contraction,
    Labels,
    LogicalProgram,
    LogicalStatement,
    Use,
)
from ucle.lowering.masks import without_own_masks

Merges = Mapping[str, str]
"""Tensors of merged statements, each with the tensor of the statement that takes it; statements
that take others come after them."""


def merge(
    logical: LogicalProgram, merges: Merges, known: KnownMerges | None = None
) -> LogicalProgram:
    """Return the program with some statements merged into those that use them.

    Args:
        logical: the program.
        merges: the result of `find_merges`, or some of it.
        known: statements that have been merged before.

    >>> from ucle.operators import COMBINES, SUM
    >>> from ucle.ir.tensor_types import TensorType
    >>> from ucle.ir.vertices import Span
    >>> from ucle.foundation.dtypes import DType
    >>> i, j, m = (Label(name, 9) for name in "ijm")
    >>> def product(target, left, right):
    ...     uses = tuple(Use(name, labels, DType.FLOAT64) for name, labels in (left, right))
    ...     step = Contraction(
    ...         f"{target}.1", uses, COMBINES["mult"], SUM, left[1][1:], DType.FLOAT64, (0, 1)
    ...     )
    ...     result = Use(step.name, step.labels, DType.FLOAT64)
    ...     text = (*step.over, *(use.tensor for use in uses))
    ...     return LogicalStatement(target, step.labels, (step,), result, Span(1, 1), text)
    >>> inner = product("P", ("N", (i, j)), ("H", (j, m)))
    >>> statements = inner, product("Q", ("P", (i, m)), ("W", (m, j)))
    >>> types = {name: TensorType((i, j)) for name in "NHW"}
    >>> print(merge(LogicalProgram(("N", "H", "W"), statements, ("Q",), types), {"P": "Q"}))
    Q.1 = sum[m,j_1](N[i,j_1] * H[j_1,m] * W[m,j])
    Q[i,j] = Q.1[i,j]
    """
    if not merges:
        return logical
    known = known or KnownMerges()
    now = dict(logical.by_name)
    for name, into in merges.items():
        now[into] = known.merge_statements(now[name], now[into])
    statements = tuple(statement for name, statement in now.items() if name not in merges)
    types = dict(logical.types)
    for into in set(merges.values()) - merges.keys():
        add_diagonals(types, now[into])
    return replace(logical, statements=statements, types=types)


class KnownMerges:
    """A cache of merged statements: orders of one program share most of them."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[LogicalStatement, ...]] = {}
        """Keyed by the identities of both statements, which are kept alive with the result."""

    def merge_statements(self, inner: LogicalStatement, into: LogicalStatement) -> LogicalStatement:
        """Return a statement with the chain of another one in place of its tensor."""
        key = id(inner), id(into)
        if key not in self._known:
            place = place_of(inner.target, into)
            assert place is not None
            self._known[key] = inner, into, _merge_statements(inner, into, place)
        return self._known[key][-1]


@dataclass(frozen=True)
class Place:
    """The place where a chain uses a tensor: the step, the number of the factor, and its labels.

    `diagonal` is the step between them that picks a diagonal of the tensor, if there is one.
    """

    step: Contraction
    number: int
    labels: tuple[Label, ...]
    diagonal: str | None = None


def place_of(name: str, statement: LogicalStatement) -> Place | None:
    """Return the place of a tensor that is aggregated, or a factor in a chain, in a statement."""
    diagonal: str | None = None
    labels: tuple[Label, ...] = ()
    for step in statement.steps:
        for number, factor in enumerate(step.factors):
            if factor.tensor not in (name, diagonal):
                continue
            if step.is_diagonal and factor.tensor == name:
                diagonal, labels = step.name, factor.labels
            elif (step.is_chain or step.is_plain_aggregate) and not factor.maps:
                if factor.tensor == name:
                    return Place(step, number, factor.labels)
                return Place(step, number, labels, diagonal)
            else:
                return None
    return None


def aggregates_alone(name: str, statement: LogicalStatement) -> bool:
    """Return whether a statement aggregates a tensor that it multiplies with nothing."""
    place = place_of(name, statement)
    return place is not None and place.step.is_plain_aggregate


# ---- Substitution ----


def add_diagonals(types: dict[str, TensorType], statement: LogicalStatement) -> None:
    """Add the types of the diagonals that only relabelling has made."""
    for step in statement.steps:
        if step.is_diagonal and step.name not in types:
            (read,) = step.factors
            types[step.name] = unary_type(
                types[read.tensor], read.labels, (), step.labels, None, None
            )


def _merge_statements(
    inner: LogicalStatement, into: LogicalStatement, place: Place
) -> LogicalStatement:
    """Return a statement with the chain of another one in place of its tensor."""
    names = labels_there(inner, into, place.labels)
    renamed = list(renamed_steps(inner, names))
    (chain,) = (step for step in renamed if step.name == inner.result.tensor)
    merged = _substitute_factor(place.step, place.number, chain)
    steps: list[Contraction] = []
    for step in into.steps:
        if step.name == place.diagonal:
            continue
        steps.append(merged if step is place.step else step)
    at = _first_step(steps, merged, place.number)
    steps[at:at] = [step for step in renamed if step is not chain]
    # The mask of a factor may have been pushed down to the statement that now stands beside it.
    left = without_own_masks(merged)
    steps = [left if step is merged else step for step in steps]
    text: list[str | Label] = []
    for part in into.text:
        if part == inner.target:
            text += [names.get(x, x) if isinstance(x, Label) else x for x in inner.text]
        else:
            text.append(part)
    return replace(into, steps=tuple(steps), text=tuple(text))


def labels_there(
    inner: LogicalStatement, into: LogicalStatement, labels: Labels
) -> dict[Label, Label]:
    """Return the names of a statement's labels in another, which uses its tensor under `labels`.

    Labels that the statement aggregates get names that are unused there.
    """
    names = dict(zip(inner.labels, labels, strict=True))
    taken = {label.name for label in (*into.labels, *into.own_labels)}
    for label in inner.own_labels:
        name = label.name
        if name in taken:
            name = next(x for n in count(1) if (x := f"{label.name}_{n}") not in taken)
        taken.add(name)
        names[label] = label if name == label.name else replace(label, name=name)
    return names


def renamed_steps(
    statement: LogicalStatement, names: Mapping[Label, Label]
) -> Iterator[Contraction]:
    """Yield the steps of a statement under other labels, with a step for each new diagonal."""
    for step in statement.steps:
        factors = []
        for number, factor in enumerate(step.factors):
            labels = tuple(names[label] for label in factor.labels)
            use = Use(factor.tensor, labels, factor.dtype, factor.maps, factor.indicator)
            if step.combine is not None and len(use.distinct) < len(use.labels):
                if use.tensor not in statement.by_name:
                    read = Use(use.tensor, use.labels, use.read_dtype)
                    name = f"{step.name}.{number + 1}"
                    yield Contraction(name, (read,), None, None, (), read.dtype)
                    use = replace(use, tensor=name)
                use = replace(use, labels=use.distinct)
            factors.append(use)
        over = tuple(names[label] for label in step.over)
        yield replace(step, factors=tuple(factors), over=over)


def _substitute_factor(step: Contraction, number: int, inner: Contraction) -> Contraction:
    """Return a chain with the factors of another one in place of one of its own."""
    more = len(inner.factors) - 1
    before = [x for x in step.constants if x.place <= number]
    after = [Constant(x.place + more, x.value) for x in step.constants if x.place > number]
    within = [Constant(x.place + number, x.value) for x in inner.constants]
    return replace(
        step,
        combine=step.combine or inner.combine,
        factors=(*step.factors[:number], *inner.factors, *step.factors[number + 1 :]),
        reduce=step.reduce or inner.reduce,
        over=(*step.over, *inner.over),
        written=_graft_tree(step.written if step.is_chain else 0, number, inner.written, more),
        constants=(*before, *within, *after),
    )


def _graft_tree(tree: Tree | None, number: int, inner: Tree | None, more: int) -> Tree:
    """Return a tree with another in place of a leaf; later leaves are renumbered by `more`."""
    assert tree is not None
    assert inner is not None

    def within(own: int) -> Tree:
        return own + number

    def leaf(own: int) -> Tree:
        return put if own == number else own + more if own > number else own

    def node(_: tuple[Tree, Tree], left: Tree, right: Tree) -> Tree:
        return left, right

    put = fold(inner, within, node)
    return fold(tree, leaf, node)


def _first_step(steps: list[Contraction], chain: Contraction, number: int) -> int:
    """Return the position for the steps of a factor: after those of the factors before it."""
    places = {step.name: at for at, step in enumerate(steps)}
    before = [places[x.tensor] for x in chain.factors[:number] if x.tensor in places]
    if before:
        return max(before) + 1
    needed, first = {chain.name}, places[chain.name]
    for at in range(first, -1, -1):
        if steps[at].name in needed:
            needed |= {factor.tensor for factor in steps[at].factors}
            first = at
    return first
