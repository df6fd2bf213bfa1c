"""Which sums of products to compute: rewrites that make fewer tuples, by estimate.

Neither direction always pays: multiplying out keeps sparse terms sparse, taking out shares work. So
rewrites are tried one after the other from the program as written, and from its normal form, the
most promising few of each round (a beam). What a program costs is judged here by the tuples that
its joins emit, each product in its best order, with masks passed down; the few cheapest are handed
on to be priced with their decompositions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from ucle.errors import UcleError
from ucle.ir.vertices import Operand, Program
from ucle.lowering.applied_rewrites import RewriteCosts
from ucle.lowering.contract import contract
from ucle.lowering.contraction_orders import joined_tuples
from ucle.lowering.logical import LogicalProgram
from ucle.lowering.pairwise import KnownPairwise
from ucle.lowering.rewrites import OPEN, Rewrite, Rewriter, Rewritten
from ucle.lowering.write_polynomials import write_polynomials
from ucle.stats.estimate import MeasuredInputs, ProgramStatistics

BEAM = 4
"""Programs of one round that are rewritten further."""

MOST_STATES = 16
"""Programs that are looked at."""

LEAST_STATES = 6
"""Programs that are looked at where it is worth to look at all."""

WORTH_LOOKING = 3e6
"""The cost of a plan from which on other programs are looked at."""

STATE_COST = 1.6e7
"""The cost of a plan for each program that is looked at: the search takes about a fifth of the time
of the best plan that is known. Time itself would let the load of the machine choose the plan."""

PAIRS = 25
"""Pairs of factors, in all products, of a program of usual size."""

CANDIDATES = 3
"""Programs that are priced with their decompositions, beside the written one."""

ALIKE = 1.1
"""Times the tuples of a candidate from which on another program is one, too."""

NEAR = 2
"""Times the tuples of the best program that another candidate may make."""

MOST_STEPS = 40
"""Steps of a program, beyond which there are too many brackets to look at each; a statement without
steps counts as one."""

FEWER = 0.9
"""The share of the tuples of the best program that another one may make to be better: a round
without such a one ends the search, and what is not better than the written one is not priced."""

SMALL = 0.01
"""The share of the tuples of a program from which on a statement is worth a rewrite."""


@dataclass(frozen=True)
class RewrittenProgram:
    """Other sums of products than the written ones, by the rewrites that make them.

    `fixed` and `algebraic` are the arguments of `ucle.lowering.rewrites.Rewriter`.
    """

    rewrites: tuple[Rewrite, ...]
    costs: RewriteCosts
    fixed: frozenset[str] = frozenset()
    algebraic: bool = False
    lines: tuple[str, ...] = ()
    key: ClassVar[str] = "rewritten"

    def replay(self, logical: LogicalProgram) -> LogicalProgram | None:
        """A program that differs in sizes, rewritten in the same way; None if it cannot be."""
        rewriter = Rewriter(logical, self.fixed, algebraic=self.algebraic)
        rewritten = rewriter.again(self.rewrites)
        return None if rewritten is None else write_polynomials(rewriter, rewritten)


@dataclass(frozen=True)
class Candidate:
    """A rewritten program, the rewrites that made it, and the tuples that its joins emit."""

    program: LogicalProgram
    rewrites: tuple[Rewrite, ...]
    tuples: float


def candidates(
    logical: LogicalProgram,
    measured: MeasuredInputs,
    known: KnownPairwise,
    masked: Callable[[LogicalProgram], LogicalProgram],
    fixed: Collection[str],
    *,
    algebraic: bool,
    cost: float,
) -> list[Candidate]:
    """Rewritten programs whose joins emit fewer tuples than those of the written one.

    Args:
        logical: the program.
        measured: T and V of its inputs.
        known: pairs of factors that were worked out for other programs over the same inputs.
        masked: passes masks down.
        fixed: tensors whose statements stay as they are.
        algebraic: whether brackets are opened that may lose digits.
        cost: that of the best plan of the written program.
    """
    steps = sum(max(1, len(x.steps)) for x in logical.statements)
    if cost < WORTH_LOOKING or steps > MOST_STEPS:
        return []
    rewriter = Rewriter(logical, fixed, algebraic=algebraic)
    if next(rewriter.neighbours(rewriter.written), None) is None:
        return []
    tuples = _Tuples(measured, known, masked)
    written = math.inf
    with suppress(UcleError):  # the written program need not run
        vertices, statistics = tuples.contracted(logical)
        written = joined_tuples(vertices, statistics)
        if cost < math.inf:
            rewriter = rewriter.within(_with_tuples_to_spare(rewriter, vertices, statistics))
    search = _RewritingSearch(rewriter, tuples, cost, written)
    search.run()
    return search.best()


class _Tuples:
    """The tuples that the joins of a program emit, by estimate.

    Args:
        measured: as in `candidates`, like the others.
    """

    def __init__(
        self,
        measured: MeasuredInputs,
        known: KnownPairwise,
        masked: Callable[[LogicalProgram], LogicalProgram],
    ) -> None:
        self._measured = measured
        self._known = known
        self._masked = masked

    def of(self, logical: LogicalProgram) -> float:
        """Those of a whole program; infinite if it cannot be run."""
        try:
            return joined_tuples(*self.contracted(logical))
        except UcleError:
            return math.inf

    def contracted(self, logical: LogicalProgram) -> tuple[Program, ProgramStatistics]:
        """The vertices of a program, each product in the order of the fewest tuples.

        Raises:
            UcleError: the program cannot be run.
        """
        masked = self._masked(logical)
        program = contract(masked, measured=self._measured, known=self._known).program
        return program, self._measured.of(program)


def _with_tuples_to_spare(
    rewriter: Rewriter, program: Program, statistics: ProgramStatistics
) -> frozenset[str]:
    """The statements that emit more tuples than there are entries which they read and write.

    Statements whose brackets they may open count with them, with what these read and write. A step
    of PageRank has nothing to gain, however many products it could be multiplied out into.

    Args:
        rewriter: of the program as it is written.
        program: its vertices.
        statistics: of these.
    """
    emitted, own = dict[str, float](), 0.0
    for vertex in program.vertices:  # those of a statement end with the one of its name
        own += statistics.join_rows(vertex, vertex.all_promoted)
        if vertex.name in rewriter.logical.by_name:
            emitted[vertex.name], own = own, 0.0
    entries = {name: statistics.tensor(name).entries for name in program.types}
    emits, holds = dict[str, float](), dict[str, float]()
    for statement in rewriter.logical.statements:
        name, opened = statement.target, rewriter.opened(statement.target)
        others = [x for x in statement.reads if x not in opened]
        emits[name] = emitted.get(name, 0) + sum(emits[x] for x in opened)
        held = sum(entries.get(x, 0) for x in (name, *others))
        holds[name] = held + sum(holds[x] for x in opened)
    least = SMALL * sum(emitted.values())
    return frozenset(x for x in emits if emits[x] >= least and holds[x] < FEWER * emits[x])


def _weight(program: LogicalProgram) -> float:
    """How many programs of usual size it takes as long to look at as one: by pairs of factors."""
    chains = (len(step.factors) for x in program.statements for step in x.steps if step.is_chain)
    return max(1.0, sum(math.comb(factors, 2) for factors in chains) / PAIRS)


class _RewritingSearch:
    """The programs that were looked at, and the fewest tuples among them."""

    def __init__(self, rewriter: Rewriter, tuples: _Tuples, cost: float, written: float) -> None:
        self._rewriter = rewriter
        self._tuples = tuples
        self._cost = cost
        self._written = self._least = written
        self._spent = 1.0
        self._seen: set[object] = {rewriter.written.key}
        self._found: list[Candidate] = []

    def run(self) -> None:
        """Rewrite the most promising programs, round by round."""
        written = self._rewriter.written
        beam = [(self._written, written), *self._tried([self._rewriter.normal_form()])]
        before = math.inf
        while beam and self._least <= FEWER * before and not self._is_over():
            before = self._least
            tried = [x for _, now in beam for x in self._tried(self._rewriter.neighbours(now))]
            beam = sorted(tried, key=lambda pair: pair[0])[:BEAM]

    def _is_over(self) -> bool:
        """Whether to look further would take longer than it may save."""
        return self._spent > self._effort()

    def _effort(self) -> float:
        """How many programs of usual size may be looked at."""
        fewer = self._least / self._written if 0 < self._written < math.inf else 1
        return min(MOST_STATES, max(LEAST_STATES, self._cost * fewer / STATE_COST))

    def best(self) -> list[Candidate]:
        """The cheapest few of what was found, of those that are alike the simplest."""
        fewer = [x for x in self._found if x.tuples <= FEWER * self._written]
        picked: list[list[Candidate]] = []
        for each in sorted(fewer, key=lambda x: x.tuples):
            if picked and each.tuples <= ALIKE * picked[-1][0].tuples:
                picked[-1].append(each)
            elif each.tuples <= NEAR * self._least:
                picked.append([each])
        return [min(alike, key=lambda x: len(x.rewrites)) for alike in picked[:CANDIDATES]]

    def _tried(self, programs: Iterable[Rewritten]) -> list[tuple[float, Rewritten]]:
        """Those of some programs that are new and can be written, with their tuples."""
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
                tuples = self._tuples.of(program)
                self._least = min(self._least, tuples)
                self._found.append(Candidate(program, rewritten.rewrites, tuples))
                new.append((tuples, rewritten))
        return new


def laws(logical: LogicalProgram, chosen: Candidate) -> tuple[str, ...]:
    """What was rewritten by which law, and what statements compute now."""
    lines = []
    for statement in chosen.program.statements:
        written = logical.by_name[statement.target]
        own = [x for x in chosen.rewrites if x.root.statement == statement.target]
        lines += [x.text(written) for x in own if x.law != OPEN]
        if statement != written:
            target = Operand(statement.target, statement.labels)
            lines.append(f"{target} = {statement.expression(statement.result)}")
    return tuple(lines)
