"""Choose the sums of products to compute: rewrites that make fewer tuples, by estimate.

Neither direction always pays: multiplying out keeps sparse terms sparse, and factoring out shares
work. So rewrites are tried one after the other, from the program as written and from its normal
form, with the most promising few of each round kept (a beam). A program's cost is judged here by
the tuples that its joins emit, each product in its best order, with masks pushed down. The few
cheapest programs are then priced with their decompositions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.ir.vertices import Operand, Program
from ucle.lowering.applied_rewrites import RewriteCosts
from ucle.lowering.contract import KnownContractions
from ucle.lowering.contraction_orders import joined_tuples
from ucle.lowering.find_inlinable import find_merges
from ucle.lowering.inline_statements import merge
from ucle.lowering.logical import LogicalProgram, LogicalStatement, Use
from ucle.lowering.rewrites import OPEN, Rewrite, Rewriter, Rewritten
from ucle.lowering.write_polynomials import write_polynomials
from ucle.stats.estimate import ProgramStatistics

BEAM = 4
"""The number of programs of one round that are rewritten further."""

MOST_STATES = 16
"""The most programs that are considered."""

LEAST_STATES = 6
"""The least budget, in programs, of a search among many programs."""

FEWEST_STATES = 2
"""The least budget of a search that runs at all: that of the normal form, in which sums of sums are
one sum, with one step beside it."""

WORTH_LOOKING = 1e6
"""The plan cost from which other programs are considered."""

WORTH_SEARCHING = 3e6
"""The plan cost from which many of them are."""

WORTH_MEASURING = 1e7
"""The plan cost from which forms that have to be measured are considered: a search of its own."""

STATE_COST = 1.6e7
"""The plan cost that pays for each program considered: the search takes about a fifth of the time
of the best known plan. A limit on time itself would let the load of the machine choose the plan."""

PAIRS = 25
"""The number of pairs of factors, over all products, in a program of usual size."""

CANDIDATES = 3
"""The number of programs that are priced with their decompositions, besides the written one."""

ALIKE = 1.1
"""Programs whose numbers of tuples differ by less than this factor count as alike."""

NEAR = 2
"""The most tuples of another candidate, as a multiple of those of the best program."""

MOST_STEPS = 40
"""The most steps of a program: beyond them there are too many brackets to try each. A statement
without steps counts as one."""

FEWER = 0.9
"""A program is better if it makes at most this share of the tuples of the best one. A round without
a better program ends the search, and a program that is not better than the written one is not
priced."""

SMALL = 0.01
"""The share of a program's tuples from which a statement is worth a rewrite."""


def extent_of_search(cost: float) -> int:
    """Return how far a program of some cost is searched: a larger number where more is looked at.

    >>> [extent_of_search(cost) for cost in (1e5, 2e6, 2.5e6, 5e6, 1e9)]
    [0, 1, 1, 2, 3]
    """
    return sum(cost >= least for least in (WORTH_LOOKING, WORTH_SEARCHING, WORTH_MEASURING))


@dataclass(frozen=True)
class RewrittenProgram:
    """Other sums of products than the written ones, by the rewrites that make them.

    `fixed`, `algebraic` and `measured` are the arguments of `ucle.lowering.rewrites.Rewriter`.
    """

    rewrites: tuple[Rewrite, ...]
    costs: RewriteCosts
    fixed: frozenset[str] = frozenset()
    algebraic: bool = False
    measured: bool = False
    lines: tuple[str, ...] = ()
    key: ClassVar[str] = "rewritten"

    def replay(self, logical: LogicalProgram) -> LogicalProgram | None:
        """A program that differs in sizes, rewritten in the same way; None if it cannot be."""
        rewriter = Rewriter(logical, self.fixed, algebraic=self.algebraic, measured=self.measured)
        rewritten = rewriter.again(self.rewrites)
        return None if rewritten is None else write_polynomials(rewriter, rewritten)


@dataclass(frozen=True)
class Candidate:
    """A rewritten program, the rewrites that made it, and the tuples that its joins emit."""

    program: LogicalProgram
    rewrites: tuple[Rewrite, ...]
    tuples: float

    def write(self, statement: LogicalStatement) -> str:
        """Return a statement as a person would write it, with the sums that stand apart."""

        def text(use: Use) -> str:
            apart = self.program.by_name.get(use.tensor)
            if apart is None or not apart.target.startswith(f"{statement.target}."):
                return statement.expression(use)
            inner = apart.expression(apart.result)
            for function in use.maps:
                inner = function.apply_text(inner)
            return inner

        return text(statement.result)


def candidates(
    logical: LogicalProgram,
    known: KnownContractions,
    masked: Callable[[LogicalProgram], LogicalProgram],
    fixed: Collection[str],
    *,
    algebraic: bool,
    measured: bool = False,
    cost: float,
) -> list[Candidate]:
    """Return rewritten programs whose joins emit fewer tuples than those of the written one.

    Args:
        logical: the program.
        known: programs over the same inputs that have been contracted.
        masked: pushes masks down.
        fixed: tensors whose statements stay as they are.
        algebraic: True if brackets may be opened even if that loses digits.
        measured: as for `ucle.lowering.rewrites.Rewriter`.
        cost: cost of the best plan of the written program.
    """
    steps = sum(max(1, len(x.steps)) for x in logical.statements)
    if cost < (WORTH_MEASURING if measured else WORTH_LOOKING) or steps > MOST_STEPS:
        return []
    rewriter = Rewriter(logical, fixed, algebraic=algebraic, measured=measured)
    if not rewriter.has_sums:
        return []
    tuples = _Tuples(known, masked)
    written = math.inf
    with suppress(UcleError):  # the written program need not run
        vertices, statistics = tuples.contract_program(logical)
        written = joined_tuples(vertices, statistics)
        if cost < math.inf:
            rewriter = rewriter.within(_with_tuples_to_spare(rewriter, vertices, statistics))
    if next(rewriter.neighbours(rewriter.written), None) is None:
        return []
    normal = rewriter.normal_form()
    if measured and (lossy := _always_lossy(normal)):
        rewriter = rewriter.within(logical.by_name.keys() - lossy)
        normal = rewriter.normal_form()
    if measured and not normal.unsafe:
        return []  # all forms are safe
    merged = tuples.of_merged(logical, fixed, written) if cost < math.inf else written
    search = _RewritingSearch(rewriter, tuples, cost, written, merged)
    search.run(normal)
    return search.best()


def _always_lossy(normal: Rewritten) -> frozenset[str]:
    """Return the statements that lose all digits of some entries, whatever their data is.

    Distances between the rows of one matrix do, on their diagonal: they would be computed twice.
    """
    return frozenset(
        root.statement
        for root, polynomial in normal.roots.items()
        if root.statement in normal.unsafe and polynomial.cancels_on_a_diagonal
    )


class _Tuples:
    """An estimate of the tuples that the joins of a program emit.

    Args:
        measured: as in `candidates`, like the others.
    """

    def __init__(
        self,
        known: KnownContractions,
        masked: Callable[[LogicalProgram], LogicalProgram],
    ) -> None:
        self._known = known
        self._masked = masked

    def of(self, logical: LogicalProgram) -> float:
        """Return the tuples of a whole program; infinite if it cannot be run."""
        try:
            return joined_tuples(*self.contract_program(logical))
        except UcleError:
            return math.inf

    def of_merged(self, logical: LogicalProgram, fixed: Collection[str], written: float) -> float:
        """Return the tuples of a program in which products are merged across statements.

        Args:
            logical: the program.
            fixed: tensors whose statements stay as they are.
            written: the tuples of the program as it is, which are returned if that has fewer.
        """
        merges = find_merges(logical, logical.types, fixed)
        return min(written, self.of(merge(logical, merges))) if merges else written

    def contract_program(self, logical: LogicalProgram) -> tuple[Program, ProgramStatistics]:
        """Return the vertices of a program, each product in the order with the fewest tuples.

        Raises:
            UcleError: the program cannot be run.
        """
        program = self._known.contract(self._masked(logical)).program
        return program, self._known.measured.of(program)


def _with_tuples_to_spare(
    rewriter: Rewriter, program: Program, statistics: ProgramStatistics
) -> frozenset[str]:
    """Return the statements that emit more tuples than the entries that they read and write.

    If a statement may open the brackets of others, the tuples and entries of those count with it. A
    step of PageRank has nothing to gain, however many products it could be multiplied out into.

    Args:
        rewriter: rewriter of the written program.
        program: vertices of that program.
        statistics: statistics of those vertices.
    """
    emitted, own = dict[str, float](), 0.0
    for vertex in program.vertices:  # a statement's vertices end with its name's
        own += statistics.join_rows(vertex, vertex.all_promoted)
        if vertex.name in rewriter.logical.by_name:
            emitted[vertex.name], own = own, 0.0
    entries = {name: statistics.tensor(name).entries for name in program.types}
    emits, reads = dict[str, float](), dict[str, frozenset[str]]()
    for statement in rewriter.logical.statements:
        name, opened = statement.target, rewriter.find_openable(statement.target)
        emits[name] = emitted.get(name, 0) + sum(emits[x] for x in opened)
        others = frozenset(statement.reads).difference(opened)
        reads[name] = others.union(*(reads[x] for x in opened))
    holds = {x: sum(entries.get(y, 0) for y in (x, *reads[x])) for x in emits}
    least = SMALL * sum(emitted.values())
    return frozenset(x for x in emits if emits[x] >= least and holds[x] < FEWER * emits[x])


def _weight(program: LogicalProgram) -> float:
    """Return the effort to consider a program, in programs of usual size, by pairs of factors."""
    chains = (len(step.factors) for x in program.statements for step in x.steps if step.is_chain)
    return max(1.0, sum(math.comb(factors, 2) for factors in chains) / PAIRS)


class _RewritingSearch:
    """The state of the search: the programs considered, and the fewest tuples among them.

    Args:
        rewriter: rewriter of the written program.
        tuples: what estimates the tuples of programs.
        cost: the cost of the written program in its best join order.
        written: the tuples of that program, statement by statement.
        merged: its tuples where statements are merged, as a join order may do.
    """

    def __init__(
        self, rewriter: Rewriter, tuples: _Tuples, cost: float, written: float, merged: float
    ) -> None:
        self._rewriter = rewriter
        self._tuples = tuples
        self._cost = cost
        self._written = self._least = written
        self._merged = merged
        self._spent = 1.0
        self._seen: set[object] = {rewriter.written.key}
        self._found: list[Candidate] = []

    def run(self, normal: Rewritten) -> None:
        """Rewrite the most promising programs, round by round, beside the normal form."""
        written = self._rewriter.written
        beam = [(self._written, written), *self._try_programs([normal])]
        before = math.inf
        while beam and self._least <= FEWER * before and not self._is_over():
            before = self._least
            tried = [
                x for _, now in beam for x in self._try_programs(self._rewriter.neighbours(now))
            ]
            beam = sorted(tried, key=lambda pair: pair[0])[:BEAM]

    def _is_over(self) -> bool:
        """Return whether searching further would take longer than it may save."""
        return self._spent > self._effort()

    def _effort(self) -> float:
        """Return the number of programs of usual size that may be considered."""
        fewer = self._least / self._merged if 0 < self._merged < math.inf else 1
        left = self._cost * min(fewer, 1)  # where programs with few tuples are known
        least = LEAST_STATES if left >= WORTH_SEARCHING else FEWEST_STATES
        return min(MOST_STATES, max(least, left / STATE_COST))

    def best(self) -> list[Candidate]:
        """Return the few cheapest programs; of programs that are alike, the simplest."""
        fewer = [x for x in self._found if x.tuples <= FEWER * self._written]
        picked: list[list[Candidate]] = []
        for each in sorted(fewer, key=lambda x: x.tuples):
            if picked and each.tuples <= ALIKE * picked[-1][0].tuples:
                picked[-1].append(each)
            elif each.tuples <= NEAR * self._least:
                picked.append([each])
        return [min(alike, key=lambda x: len(x.rewrites)) for alike in picked[:CANDIDATES]]

    def _try_programs(self, programs: Iterable[Rewritten]) -> list[tuple[float, Rewritten]]:
        """Return the new programs that can be written, with their tuples."""
        new = []
        for rewritten in programs:
            if self._is_over():
                break
            if rewritten.key in self._seen:
                continue
            self._seen.add(rewritten.key)
            program = write_polynomials(self._rewriter, rewritten)
            weight = 1.0 if program is None else _weight(program)
            too_long = weight > max(1, self._effort() - self._spent)
            self._spent += 1 if too_long else weight
            if program is not None and not too_long:
                # Forms are ranked by what computes them, and priced with what measures them.
                tuples = self._tuples.of(replace(program, condition_numbers=()))
                self._least = min(self._least, tuples)
                if program.condition_numbers or not self._rewriter.measured:
                    self._found.append(Candidate(program, rewritten.rewrites, tuples))
                new.append((tuples, rewritten))
        return new


def laws(logical: LogicalProgram, chosen: Candidate) -> tuple[str, ...]:
    """Return the applied laws with what they rewrote, and the new form of changed statements."""
    lines = []
    for statement in chosen.program.statements:
        written = logical.by_name.get(statement.target)
        if written is None:
            continue  # it measures another one, or is a part of it
        own = [x for x in chosen.rewrites if x.root.statement == statement.target]
        lines += [x.text(written) for x in own if x.law != OPEN]
        if statement != written:
            target = Operand(statement.target, statement.labels)
            lines.append(f"{target} = {chosen.write(statement)}")
    return tuple(lines)
