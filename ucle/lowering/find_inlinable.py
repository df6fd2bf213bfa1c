"""Find the statements that may be inlined in the one that uses them (`inline_statements`).

A statement is merged if that cannot be noticed: it is a chain with the same ⊗ and ⊕ as the chain in
which it is a factor, or that an aggregation reads, its tensor has no other reader, and both have
one element type. Fills must
absorb in ⊗, so that no order makes sparse tensors dense, and all inputs must be finite. Sums of
integers may overflow in one order and not in another: if a merged program overflows, it runs again
as written (`ucle.run.current_data`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from ucle.foundation.dtypes import is_finite
from ucle.ir.tensor_types import TensorType
from ucle.language.factors import may_chain
from ucle.lowering.inline_statements import KnownMerges, Merges, Place, add_diagonals, place_of
from ucle.lowering.logical import LogicalProgram, LogicalStatement, Use
from ucle.lowering.step_types import StepTypes


def find_merges(
    logical: LogicalProgram,
    types: Mapping[str, TensorType],
    fixed: Collection[str],
    known: KnownMerges | None = None,
) -> dict[str, str]:
    """Return the statements that may be merged, each with the one that takes it.

    Args:
        logical: the program.
        types: types of its tensors.
        fixed: tensors whose statements have to stay as written.
        known: remembers merged statements, for `merge`.
    """
    known = known or KnownMerges()
    uses = Counter(name for statement in logical.statements for name in statement.reads)
    stay = {*logical.results, *fixed}
    facts = _Facts(logical, types)
    now = dict(logical.by_name)
    merges: dict[str, str] = {}
    for statement in logical.statements:
        into = statement.target
        if into in fixed:
            continue
        for name in statement.reads:
            if name not in now or name in stay or uses[name] > 1:
                continue
            place = place_of(name, now[into])
            if place is not None and facts.may_merge(now[name], now[into], place):
                now[into] = known.merge_statements(now[name], now[into])
                facts.learn(now[into])
                merges[name] = into
    return merges


def may_merge_all(logical: LogicalProgram, merges: Merges, known: KnownMerges) -> bool:
    """True if statements may be merged that were merged in a program with other sizes and values.

    Args:
        logical: the program.
        merges: some of the result of `find_merges` for the other program.
        known: remembers merged statements, for `merge`.
    """
    facts, now = _Facts(logical, logical.types), dict(logical.by_name)
    for name, into in merges.items():
        place = place_of(name, now[into])
        if place is None or not facts.may_merge(now[name], now[into], place):
            return False
        now[into] = known.merge_statements(now[name], now[into])
        facts.learn(now[into])
    return True


class _Facts:
    """A cache of facts about tensors and steps that are used repeatedly."""

    def __init__(self, logical: LogicalProgram, types: Mapping[str, TensorType]) -> None:
        self._types = types
        self._exact = logical.exact
        self._steps = {name: step for s in logical.statements for name, step in s.by_name.items()}
        self._all_types = {**logical.types, **types}
        self._step_types = StepTypes(self._steps, self._all_types, logical.exact)
        self._uses: dict[tuple[object, ...], TensorType] = {}

    def learn(self, statement: LogicalStatement) -> None:
        """Add the steps of a statement that has taken in another one."""
        self._steps.update(statement.by_name)
        add_diagonals(self._all_types, statement)

    def may_merge(self, inner: LogicalStatement, into: LogicalStatement, place: Place) -> bool:
        """Return whether a statement is a chain that is a factor of one with the same algebra."""
        one, other = inner.chain, place.step
        if one is None or one.combine is None or other.combine not in (one.combine, None):
            return False
        if one.reduce is not None and other.reduce is not None and one.reduce is not other.reduce:
            return False
        if other.reduce is not None and other.reduce.name not in one.combine.distributes_over:
            return False
        values = [self._types[target].entries for target in (inner.target, into.target)]
        if self._exact and not all(x.finite for x in values):
            return False
        dtype = self._types[inner.target].dtype
        if dtype.kind == "f" and any(x.order_matters for x in values):
            return False  # the order of products decides which numbers overflow
        if other.dtype is not dtype:
            return False
        if not all(is_finite(constant.value) for constant in (*one.constants, *other.constants)):
            return False
        factors = (*one.factors, *other.factors)
        fills = [self._type_of(x).fill for x in factors if self._is_read(x, (inner, into))]
        if not all(one.combine.absorbs_left(x) and one.combine.absorbs_right(x) for x in fills):
            return False
        reduce = one.reduce or other.reduce
        together = replace(other, combine=one.combine, reduce=reduce, factors=factors)
        if one.constants:
            together = replace(together, constants=one.constants)
        return may_chain(together, [self._type_of(factor) for factor in factors], self._exact)

    def _is_read(self, use: Use, statements: Collection[LogicalStatement]) -> bool:
        """Return whether a factor is a tensor as in the text, or a diagonal of one."""
        if use.maps:
            return False
        steps = [x.by_name[use.tensor] for x in statements if use.tensor in x.by_name]
        return all(step.is_diagonal for step in steps)

    def _type_of(self, use: Use) -> TensorType:
        key = use.tensor, use.maps
        if key not in self._uses:
            self._uses[key] = self._step_types.of_use(use, None)
        return self._uses[key]
