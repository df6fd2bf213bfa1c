"""SparseEinSum: the choice of a decomposition for every vertex.

The dynamic program is Algorithm 1 of sparse_einsum.txt (section 8.1) with two corrections: the
minimum is reset for every output layout, and a label that both inputs share has the same level in
both, even if it is aggregated away. The dynamic program is exact on DAGs, too, which the paper cuts
into trees (`ucle.optimiser.dynamic_program`). Vertices with many labels are searched by their
neighbours (`ucle.optimiser.domains`). Statistics come in as `ProgramStatistics`; SQL and DuckDB are
unknown here.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count

from ucle.ir.layouts import Decomposition
from ucle.ir.vertices import Vertex
from ucle.optimiser.domains import Domains, first_domains, levels_to_choose, neighbours
from ucle.optimiser.dynamic_program import Solution, by_trees, cheapest, greedily
from ucle.optimiser.pricing import CostedProgram, price
from ucle.plan.decomposition import DecomposedProgram, Search
from ucle.plan.kernel_choice import keyed_labels

METHODS = {"dag": cheapest, "trees": by_trees, "greedy": greedily}
"""Search methods: exact on DAGs, the paper's cut into trees, and its greedy baseline."""

SMALL_SHARE = 0.1
"""The share of a `view` up to which vertices that read compressed arrays are small."""

WORTHWHILE = 0.01
"""The share of the cost that a step between neighbours must gain to be followed by another."""

QUICK = 5e7
"""The nanoseconds of work in a step between neighbours up to which it need not pay for itself."""


def sparse_einsum(
    costed: CostedProgram,
    pinned: Mapping[str, Decomposition] | None = None,
    method: str = "dag",
) -> DecomposedProgram:
    """Pick the cheapest decomposition of every vertex.

    Args:
        costed: the program with its statistics and profile.
        pinned: given decompositions, by vertex name; the others are chosen around them.
        method: ``"dag"``, ``"trees"`` or ``"greedy"``.

    Returns:
        The decomposed program with its costs per vertex, and a description of the search.

    Raises:
        MemoryLimitError: no decomposition of some vertex stays below the limits.
    """
    pins = dict(pinned or {})
    if pins or method != "dag":
        solution = _search(costed, first_domains(costed, pins), method)
    else:
        solution = _known_optimum(costed) or _find_optimum(costed)
    search = None
    if len(pins) < len(costed.program.vertices):  # otherwise there was nothing to find
        search = Search(
            method, solution.exact, levels_to_choose(costed.program, pins), costed.priced
        )
    return replace(price(costed, solution.chosen), search=search)


def _known_optimum(costed: CostedProgram) -> Solution | None:
    """Return the optimum that was found for the same program with other names; None if none was."""
    if (known := costed.prices.solutions.get(costed.wiring)) is None:
        return None
    pairs = zip(costed.program.vertices, known, strict=True)
    chosen = {vertex.name: each.rename_labels(vertex.label_names) for vertex, each in pairs}
    return Solution(chosen, exact=True)


def _find_optimum(costed: CostedProgram) -> Solution:
    """Search all decompositions, and remember the optimum if that is what was found."""
    solution = _whole(costed) if costed.optimisations.skip_small else None
    if solution is None:
        solution = _search(costed, first_domains(costed, {}), "dag")
    if solution.exact:
        names = (vertex.name for vertex in costed.program.vertices)
        costed.prices.solutions[costed.wiring] = tuple(solution.chosen[name] for name in names)
    return solution


def cheapest_plans(
    costed: CostedProgram,
    k: int,
    pinned: Mapping[str, Decomposition] | None = None,
    accepted: Callable[[DecomposedProgram], bool] = lambda _: True,
) -> Iterator[DecomposedProgram]:
    """Yield the `k` cheapest decompositions of a program, cheapest first; fewer if there are fewer.

    The domains without a decomposition are split by the first vertex that differs from it, and each
    part has a cheapest decomposition of its own (Lawler's partition). This is exact if the search
    is. Of vertices with many labels, the decompositions next to the cheapest count. Decompositions
    that no memory would be enough for are left out, and so are those that are not `accepted`.
    """
    pins = dict(pinned or {})
    domains = first_domains(costed, pins)
    best = _search(costed, domains, "dag")
    if domains.wide:
        domains = domains.unite_choices(neighbours(costed, domains, best.chosen))
        best = cheapest(costed, domains)
    order = count()  # breaks ties, as solutions do not compare
    heap = [(costed.total(best.chosen), next(order), best, domains)]
    while k and heap and heap[0][0] < math.inf:
        _, _, best, domains = heapq.heappop(heap)
        plan = price(costed, best.chosen)
        if accepted(plan):
            k -= 1
            yield plan
        for part in _parts(domains, best.chosen):
            solution = cheapest(costed, part)
            heapq.heappush(heap, (costed.total(solution.chosen), next(order), solution, part))


def _parts(domains: Domains, taken: Mapping[str, Decomposition]) -> Iterator[Domains]:
    """Yield the domains without one decomposition, in parts that do not overlap."""
    for name, choices in domains.choices.items():
        if len(choices) > 1:
            yield domains.only(name, (p for p in choices if p != taken[name]))
        domains = domains.only(name, (taken[name],))


def _whole(costed: CostedProgram) -> Solution | None:
    """Return the plan without promoted labels if no search could find a better one; else None.

    Any other decomposition has a vertex with key columns, which costs at least a `view`, or one
    with a compressed array, which saves nanoseconds where all is small. If no vertex without key
    columns costs that much, including the cost to bring each input into one tuple, the plan is the
    optimum. So programs of small tensors are not searched, however many there are. Compressed
    arrays that memory has already cost nothing to make, so that others count as small sooner.
    """
    vertices = costed.program.vertices
    chosen = {vertex.name: vertex.decomposition(()) for vertex in vertices}
    if any(keyed_labels(v) or not costed.fits(v, chosen[v.name]) for v in vertices):
        return None
    own = [costed.vertex_cost(vertex, chosen[vertex.name]).total for vertex in vertices]
    least = costed.profile.view
    if max(own, default=0.0) > 2 * least:  # whatever moving inputs costs; total() may round
        return None
    listed = (
        cost + moved
        for vertex, cost in zip(vertices, own, strict=True)
        if (moved := _cost_of_lists(costed, vertex, chosen[vertex.name])) is not None
    )
    if sum(listed) > SMALL_SHARE * least:
        return None
    moved = costed.total(chosen) - sum(own)
    return Solution(chosen, exact=True) if max(own, default=0.0) + moved <= least else None


def _cost_of_lists(
    costed: CostedProgram, vertex: Vertex, decomposition: Decomposition
) -> float | None:
    """The cost of the arrays that a vertex reads where there are compressed ones; else None."""
    needed = zip(vertex.inputs, vertex.reads(decomposition), strict=True)
    moves = [
        costed.repartition_cost(x.tensor, costed.source_layout(x.tensor, layout, {}), layout)
        for x, layout in needed
        if x.tensor in costed.stored and costed.stored[x.tensor].lists
    ]
    return sum(moves) if moves else None


def _search(costed: CostedProgram, domains: Domains, method: str) -> Solution:
    """Search the domains; if they are not complete, also search the neighbours of the result."""
    solution = METHODS[method](costed, domains)
    if method == "greedy" or not domains.wide:
        return solution
    best = _descend(costed, domains, solution, method)
    worth = costed.optimisations.more_starts * costed.priced
    if method == "dag" and costed.total(best.chosen) > worth:
        for start in _more_starts(costed, domains):
            other = _descend(costed, domains, start, method)
            best = min(best, other, key=lambda x: costed.total(x.chosen))
    return best


def _descend(costed: CostedProgram, domains: Domains, start: Solution, method: str) -> Solution:
    """Move from neighbour to neighbour as long as the cost falls, and falls by enough.

    The neighbours of many states with many axes take seconds to price. Another step is taken if
    some runs of the program would win back what the last one took.
    """
    current, total = start, costed.total(start.chosen)
    while True:
        done = costed.prices.work
        near = METHODS[method](costed, neighbours(costed, domains, current.chosen))
        before, better = total, costed.total(near.chosen)
        if better < total:
            current, total = near, better
        work = costed.prices.work - done
        pays = work <= QUICK or (before - total) * costed.optimisations.runs_to_pay >= work
        if not (pays and total < before * (1 - WORTHWHILE)):
            return replace(current, exact=False)


def _more_starts(costed: CostedProgram, domains: Domains) -> Iterator[Solution]:
    """Yield more starts: the paper's solution, all labels promoted, and none, within the domains.

    The neighbours of one plan lie in one valley; another valley may be deeper.
    """
    yield by_trees(costed, domains)
    for pick in (max, min):
        chosen = {
            name: pick(choices, key=lambda each: len(each.promoted))
            for name, choices in domains.choices.items()
        }
        yield Solution(chosen, exact=False)
