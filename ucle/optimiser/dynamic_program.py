"""Compute the least cost of a DAG over given decompositions of its vertices, exactly.

A vertex that is used once passes its table up to its consumer, as in Algorithm 1 of
sparse_einsum.txt (section 8.1). The consumers of a vertex that is used more than once have to agree
on the layout in which it is made. So their tables get an axis for the layouts of each such vertex
that they read, and once all is known about it, the axis is minimised away. The shared vertices are
conditioned on, but only where they are open:

    table[v][p, s...] = join(v, p) + kernel(v, p) + aggregate(v, p)
        + sum over operands o of
            o used once:  min over layouts l of table[o][l, s...] + repartition(l, needed(o, p))
            o shared:     repartition(l, needed(o, p)), where l is a position along the axis of o

with p a decomposition of v. A layout of o is not considered further if it costs more than another
way to the needed layout, either alone or with a lower bound of its repartition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.optimiser.alternatives import Alternatives
from ucle.optimiser.domains import Domains
from ucle.optimiser.pricing import CostedProgram

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """A decomposition of every vertex; `exact` if no other one in the domains is cheaper."""

    chosen: dict[str, Decomposition]
    exact: bool


def cheapest(costed: CostedProgram, domains: Domains) -> Solution:
    """Return the cheapest decomposition of the program within the domains.

    Shared vertices whose tables would be too large are solved a few at a time, in the order of the
    program, with the others fixed, until that gains nothing. This starts from the paper's solution,
    and again from as few promoted labels as there may be, if that costs less than what was found:
    a chain of steps on long arrays changes its layout together, or not at all.
    """
    open_ = _open_layouts(costed.program, domains)
    if _largest(costed.program, domains, open_) <= costed.optimisations.exact_cells:
        return Solution(_solve(costed, domains), exact=True)
    length = len(open_)
    while length > 1 and not all(
        _largest(costed.program, domains, {name: open_[name] for name in window})
        <= costed.optimisations.exact_cells
        for window in _windows(open_, length)
    ):
        length = -(-length // 2)
    windows, known = list(_windows(open_, length)), _KnownTables()
    chosen, total = _descend(costed, domains, windows, by_trees(costed, domains).chosen, known)
    start = domains.fewest_promoted()
    if costed.total(start) < total:
        other, other_total = _descend(costed, domains, windows, start, known)
        chosen = other if other_total < total else chosen
    return Solution(chosen, exact=False)


def _descend(
    costed: CostedProgram,
    domains: Domains,
    windows: Sequence[Sequence[str]],
    chosen: dict[str, Decomposition],
    known: _KnownTables,
) -> tuple[dict[str, Decomposition], float]:
    """Solve one window of shared vertices after the other, until that gains nothing."""
    total = costed.total(chosen)
    while True:
        for window in windows:
            fixed_layouts = {
                vertex.name: vertex.makes(chosen[vertex.name])
                for vertex in costed.program.vertices
                if _is_shared(costed.program, vertex.name) and vertex.name not in window
            }
            chosen = _solve(costed, domains.making(costed.program, fixed_layouts), known)
        if not (new_total := costed.total(chosen)) < total:
            return chosen, new_total
        total = new_total


def by_trees(costed: CostedProgram, domains: Domains) -> Solution:
    """Cut the DAG into trees, each optimised before its consumers (the paper's way, section 8.2).

    A vertex used more than once is the root of a tree of its own. Its layout is the one that is
    cheapest for that tree, whatever its readers need.
    """
    exact = not _open_layouts(costed.program, domains)
    return Solution(_read_back(costed, _tables(costed, domains, settle=True), {}), exact)


def greedily(costed: CostedProgram, domains: Domains) -> Solution:
    """Choose the cheapest decomposition vertex by vertex (the paper's section 9, Table 9).

    Output layouts that cost more where they are made are not remembered.
    """
    layouts: dict[str, Layout] = {}
    chosen: dict[str, Decomposition] = {}
    for vertex in costed.program.vertices:

        def total(decomposition: Decomposition, vertex: Vertex = vertex) -> float:
            read = zip(vertex.inputs, vertex.reads(decomposition), strict=True)
            needed = [(operand.tensor, layout) for operand, layout in read]
            return costed.vertex_cost(vertex, decomposition).total + sum(
                costed.repartition_cost(name, costed.source_layout(name, layout, layouts), layout)
                for name, layout in needed
            )

        # A deferred vertex costs nothing here, and its reader all the more.
        choices = [p for p in domains.choices[vertex.name] if p.deferred is None]
        chosen[vertex.name] = min(choices, key=total)
        layouts[vertex.name] = vertex.makes(chosen[vertex.name])
    return Solution(chosen, exact=False)


# ---- Tables ----


@dataclass(frozen=True)
class _Factor:
    """Costs by the layouts of shared tensors: an axis for each, after `leading` other axes."""

    shared: tuple[str, ...]
    costs: Floats

    def spread(self, shared: Sequence[str], leading: int = 0) -> Floats:
        """Return the costs with axes for more shared tensors, along which they are constant."""
        order = [leading + self.shared.index(name) for name in shared if name in self.shared]
        costs = self.costs.transpose(*range(leading), *order)
        lengths = iter(costs.shape[leading:])
        shape = [next(lengths) if name in self.shared else 1 for name in shared]
        return costs.reshape(*costs.shape[:leading], *shape)


@dataclass(frozen=True)
class _Table:
    """Costs of a vertex and all below it: by decomposition, and the least cost by layout."""

    options: Alternatives
    shared: tuple[str, ...]
    each: Floats
    least: Floats

    @classmethod
    def of(cls, options: Alternatives, messages: Sequence[_Factor]) -> _Table:
        """Add up the costs of a vertex and of its operands."""
        shared = tuple(dict.fromkeys(name for m in messages for name in m.shared))
        each = options.costs.reshape(-1, *(1 for _ in shared))
        for message, of in zip(messages, options.needed_of, strict=True):
            each = each + message.spread(shared, leading=1)[of]
        positions = range(len(options.layouts))
        least = np.stack([each[options.layout_of == at].min(axis=0) for at in positions])
        return cls(options, shared, each, least)

    def at(self, fixed: Mapping[str, int]) -> tuple[Floats, Floats]:
        """Return `each` and `least` where the shared tensors are made in these layouts."""
        place: tuple[Any, ...] = (slice(None), *(fixed[name] for name in self.shared))
        return self.each[place], self.least[place]

    def keep_cheapest(self) -> _Table:
        """Return the rows that make the cheapest layout, when no shared vertex is open."""
        at = int(np.argmin(self.least))
        matching = self.options.layout_of == at
        return _Table(self.options.making(at), self.shared, self.each[matching], self.least[[at]])


_Tables = Mapping[str, _Table]
"""The tables of the vertices so far, by name."""


class _KnownTables:
    """The tables of vertices, each made once of the same decompositions and the same operands.

    Where shared vertices are solved a few at a time, one solution after the other has the same
    tables but for these and what reads them.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], tuple[_Table, tuple[object, ...]]] = {}

    def get_or_make(
        self, costed: CostedProgram, vertex: Vertex, options: Alternatives, tables: _Tables
    ) -> _Table:
        """Return the table of a vertex over those of its operands."""
        parts: list[object] = [options]
        for operand in vertex.inputs:
            if (table := tables.get(operand.tensor)) is not None:
                is_shared = _is_shared(costed.program, operand.tensor)
                parts.append(table.options if is_shared else table)
        key = (vertex.name, *map(id, parts))
        if (made := self._made.get(key)) is None:
            # The parts are kept, so that no other object gets the identity of one of them.
            made = self._made[key] = _table_of(costed, vertex, options, tables), tuple(parts)
        return made[0]


def _table_of(
    costed: CostedProgram, vertex: Vertex, options: Alternatives, tables: _Tables
) -> _Table:
    """Compute the table of a vertex; of shared operands, their layouts alone matter."""
    messages = [
        _message(costed, operand, needed, tables)
        for operand, needed in zip(vertex.inputs, options.needed, strict=True)
    ]
    return _Table.of(options, messages)


def _tables(
    costed: CostedProgram,
    domains: Domains,
    known: _KnownTables | None = None,
    *,
    settle: bool = False,
) -> dict[str, _Table]:
    """Compute the table of every vertex; `settle` fixes shared ones as soon as theirs is known."""
    tables: dict[str, _Table] = {}
    known = _KnownTables() if known is None else known
    for vertex in costed.program.vertices:
        options = costed.alternatives(vertex, domains.choices[vertex.name])
        table = known.get_or_make(costed, vertex, options, tables)
        fixed = settle and _is_shared(costed.program, vertex.name)
        tables[vertex.name] = table.keep_cheapest() if fixed else table
    return tables


def _message(
    costed: CostedProgram,
    operand: Operand,
    needed: Sequence[Layout],
    tables: _Tables,
) -> _Factor:
    """Return the cost of an operand in each layout that is needed."""
    name = operand.tensor
    if name in costed.stored:
        sources = [costed.source_layout(name, x, {}) for x in needed]
        pairs = zip(sources, needed, strict=True)
        return _Factor((), np.array([costed.repartition_cost(name, *pair) for pair in pairs]))
    table = tables[name]
    if _is_shared(costed.program, name):
        moves = np.array([
            [costed.repartition_cost(name, source, x) for source in table.options.layouts]
            for x in needed
        ])  # fmt: skip
        # A tensor that is made in only one layout needs no axis.
        return _Factor((name,), moves) if moves.shape[1] > 1 else _Factor((), moves[:, 0])
    floors = table.least.reshape(len(table.options.layouts), -1).min(axis=1)
    cheapest_first = np.argsort(floors, kind="stable")
    if not table.shared:
        return _Factor((), _move_alone(costed, name, needed, table, cheapest_first))
    rows = []
    for target in needed:
        row = np.full(table.least.shape[1:], math.inf)
        if target in table.options.layouts:
            row = table.least[table.options.layouts.index(target)]
        for at in cheapest_first:
            most = row.max(initial=-math.inf)
            if floors[at] >= most:
                break
            source = table.options.layouts[at]
            if floors[at] + costed.least_repartition_cost(name, source, target) >= most:
                continue
            move = costed.repartition_cost(name, source, target)
            row = np.minimum(row, table.least[at] + move)
        rows.append(row)
    return _Factor(table.shared, np.stack(rows))


def _move_alone(
    costed: CostedProgram,
    name: str,
    needed: Sequence[Layout],
    table: _Table,
    cheapest_first: NDArray[np.intp],
) -> Floats:
    """Return what `_message` does below no open shared vertex, by numbers, which are faster."""
    layouts, least = table.options.layouts, table.least.tolist()
    order = [(least[at], layouts[at]) for at in cheapest_first.tolist()]
    rows = []
    for target in needed:
        row = least[layouts.index(target)] if target in layouts else math.inf
        for floor, source in order:
            if floor >= row:
                break
            if floor + costed.least_repartition_cost(name, source, target) < row:
                row = min(row, floor + costed.repartition_cost(name, source, target))
        rows.append(row)
    return np.array(rows)


# ---- Shared vertices ----


def _is_shared(program: Program, name: str) -> bool:
    return len(program.uses[name]) > 1


def _open_layouts(program: Program, domains: Domains) -> dict[str, int]:
    """Return the shared vertices with several possible layouts, in order, with their number."""
    counts = {
        vertex.name: len({vertex.makes(p) for p in domains.choices[vertex.name]})
        for vertex in program.vertices
        if _is_shared(program, vertex.name)
    }
    return {name: count for name, count in counts.items() if count > 1}


def _windows(names: Iterable[str], length: int) -> Iterator[Sequence[str]]:
    """Yield windows of `length` names, each overlapping the one before by half."""
    names = tuple(names)
    for start in range(0, len(names), max(length // 2, 1)):
        yield names[start : start + length]


def _solve(
    costed: CostedProgram, domains: Domains, known: _KnownTables | None = None
) -> dict[str, Decomposition]:
    """Return the exact optimum; `known` are tables of other domains of the program."""
    tables = _tables(costed, domains, known)
    factors = []
    for vertex in costed.program.vertices:
        table = tables[vertex.name]
        if _is_shared(costed.program, vertex.name) and len(table.options.layouts) > 1:
            factors.append(_Factor((vertex.name, *table.shared), table.least))
        elif len(costed.program.uses[vertex.name]) != 1:
            factors.append(_Factor(table.shared, table.least.min(axis=0)))
    return _read_back(costed, tables, _eliminate(factors))


def _eliminate(factors: Sequence[_Factor]) -> dict[str, int]:
    """Return the positions along all shared axes that minimise the sum of the factors."""
    lengths = {
        name: length
        for factor in factors
        for name, length in zip(factor.shared, factor.costs.shape, strict=True)
    }
    left = list(factors)
    joined: list[_Factor] = []
    for name, scope in _elimination([frozenset(f.shared) for f in factors], lengths):
        every = (name, *(x for x in lengths if x in scope and x != name))
        bucket = [factor for factor in left if name in factor.shared]
        total = _Factor(every, sum((f.spread(every) for f in bucket), np.zeros(())))
        left = [factor for factor in left if name not in factor.shared]
        left.append(_Factor(every[1:], total.costs.min(axis=0)))
        joined.append(total)
    chosen: dict[str, int] = {}
    for total in reversed(joined):
        name, *others = total.shared
        place: tuple[Any, ...] = (slice(None), *(chosen[x] for x in others))
        chosen[name] = int(np.argmin(total.costs[place]))
    return chosen


def _elimination(
    scopes: Iterable[frozenset[str]], lengths: Mapping[str, int]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the axes in elimination order, each with all axes of its table.

    The axis with the smallest table comes next (bucket elimination).
    """
    buckets: dict[str, set[frozenset[str]]] = {name: set() for name in lengths}
    for scope in scopes:
        for name in scope:
            buckets[name].add(scope)

    def size(name: str) -> float:
        return _cells(frozenset[str]().union(*buckets[name]), lengths)

    sizes = {name: size(name) for name in buckets}
    while sizes:
        name = min(sizes, key=lambda x: sizes[x])
        del sizes[name]
        scope = frozenset[str]().union(*buckets[name])
        yield name, scope
        for other in scope - {name}:
            buckets[other] = {s for s in buckets[other] if name not in s} | {scope - {name}}
            sizes[other] = size(other)


def _cells(names: Iterable[str], lengths: Mapping[str, int]) -> float:
    return math.prod(float(lengths[name]) for name in names)


def _largest(program: Program, domains: Domains, lengths: Mapping[str, int]) -> float:
    """Return the size of the largest table, given the number of layouts of each shared vertex.

    Shared vertices that are not in `lengths` have one layout.
    """
    open_: dict[str, frozenset[str]] = {}
    scopes: list[frozenset[str]] = []
    largest = 0.0
    for vertex in program.vertices:
        reads = [
            frozenset({o.tensor} if o.tensor in lengths else open_.get(o.tensor, ()))
            for o in vertex.inputs
        ]
        scope = frozenset[str]().union(*reads)
        largest = max(largest, _cells(scope, lengths) * len(domains.choices[vertex.name]))
        uses = len(program.uses[vertex.name])
        open_[vertex.name] = scope if uses == 1 else frozenset()
        if uses != 1:
            scopes.append(scope | ({vertex.name} & lengths.keys()))
    eliminated = (_cells(scope, lengths) for _, scope in _elimination(scopes, lengths))
    return max(largest, *eliminated) if lengths else largest


def _read_back(
    costed: CostedProgram, tables: Mapping[str, _Table], fixed: Mapping[str, int]
) -> dict[str, Decomposition]:
    """Follow the least costs from the consumers down.

    `fixed` are the numbers of the layouts in which shared vertices are made; the others have one.
    """
    layout_numbers = dict(fixed)
    chosen: dict[str, Decomposition] = {}
    for vertex in reversed(costed.program.vertices):
        options = tables[vertex.name].options
        each, least = tables[vertex.name].at(fixed)
        at = layout_numbers.get(vertex.name, int(np.argmin(least)))
        able = np.flatnonzero(options.layout_of == at)
        best = int(able[np.argmin(each[able])])
        chosen[vertex.name] = options.decompositions[best]
        for operand, needed, of in zip(
            vertex.inputs, options.needed, options.needed_of, strict=True
        ):
            if len(costed.program.uses[operand.tensor]) == 1 and operand.tensor in tables:
                layouts = tables[operand.tensor].options.layouts
                _, totals = tables[operand.tensor].at(fixed)
                target = needed[of[best]]
                moved = [
                    float(total) + costed.repartition_cost(operand.tensor, layout, target)
                    for layout, total in zip(layouts, totals, strict=True)
                ]
                layout_numbers[operand.tensor] = int(np.argmin(moved))
    return chosen
