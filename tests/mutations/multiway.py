"""Mistakes in products that are computed label by label, in the form of `catalogue`."""

from __future__ import annotations

from .mutation import Mutation

JOINS = "tests/optimiser/test_multiway_joins.py"

MULTIWAY: tuple[Mutation, ...] = (
    Mutation(
        "multiway-joins-of-infinities",
        "ucle/optimiser/multiway_joins.py",
        "return vertex.combine in (MULT, AND) and all(absorbing(vertex, program))",
        "return vertex.combine in (MULT, AND)",
        "what is not finite is multiplied label by label",
        (f"{JOINS}::test_what_is_not_finite_is_joined_in_pairs[inf]",),
    ),
    Mutation(
        "multiway-joins-without-vectors",
        "ucle/optimiser/loop_nests.py",
        "scales[other] if source is None else (),",
        "(),",
        "vectors of all labels but the first are left out",
        (f"{JOINS}::test_random_products_give_what_numpy_gives[float64]",),
    ),
    Mutation(
        "multiway-joins-by-the-other-axis",
        "ucle/optimiser/multiway_joins.py",
        "levels[axis] = Level.DENSE",
        "levels[1 - axis] = Level.DENSE",
        "matrices are read by columns",
        (f"{JOINS}::test_random_products_give_what_numpy_gives[float64]",),
    ),
    Mutation(
        "multiway-joins-take-all-that-they-multiply-out",
        "ucle/plan/decomposition.py",
        "return needed_tensors(reads, self.program.results)",
        "gone = {x for plan in self.multiway.values() for x in plan.inside}\n"
        "        return needed_tensors(reads, self.program.results) - gone",
        "a tensor that others read is not made",
        (f"{JOINS}::test_shared_intermediates_are_made_for_their_other_readers",),
    ),
    Mutation(
        "multiway-joins-against-the-caller",
        "ucle/optimiser/choose_decomposition.py",
        'free = options.decomposition == "auto" and options.association == "free"',
        'free = options.decomposition == "auto"',
        "the written order is not kept",
        (f"{JOINS}::test_callers_decide[as-written]",),
    ),
    Mutation(
        "multiway-joins-without-memory",
        "ucle/plan/step_memory.py",
        "yield RowVectors(1, held, estimates.threads)",
        "yield RowVectors(1, 0.0 * held, estimates.threads)",
        "the memory of label-by-label products is not counted",
        (f"{JOINS}::test_memory_of_the_kernel_counts",),
    ),
    Mutation(
        "multiway-joins-beyond-the-memory",
        "ucle/optimiser/multiway_joins.py",
        "if plan.held > self._costed.resources.memory:",
        "if plan.held > 1e300:",
        "label-by-label products take more memory than there is",
        (f"{JOINS}::test_memory_of_the_kernel_counts",),
    ),
    Mutation(
        "multiway-joins-for-readers-of-any-layout",
        "ucle/optimiser/multiway_joins.py",
        "as_it_is = self._moves_of_readers(vertex.name, plan.handed, plan.layout)",
        "as_it_is = dict[str, float]()",
        "what the readers of a label-by-label product need is not counted",
        (f"{JOINS}::test_readers_take_a_result_as_it_is_or_in_their_layout",),
    ),
)
