"""Mistakes in forests of decision trees.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

TESTS = "tests/language/test_forests.py"

FORESTS: tuple[Mutation, ...] = (
    Mutation(
        "outputs-summed-before-the-forest",
        "ucle/language/resolve.py",
        "parts.append((yield _sum_missing(child, frozenset(child.labels))))",
        "parts.append((yield _sum_missing(child, kept)))",
        "where outputs are summed, the fields of nodes are",
        (f"{TESTS}::test_every_decomposition[E[r] = forest[f,p](X[r,f], F[p,k])]",),
    ),
    Mutation(
        "rows-of-fill-left-out",
        "ucle/plan/plan_program.py",
        "left if has_every_tuple(left, self._relations) else Densify(left)",
        "left",
        "a row that is not stored comes to no leaf",
        (f"{TESTS}::test_rows_that_are_not_stored[native-promoted0]",),
    ),
    Mutation(
        "views-without-deleted-rows",
        "ucle/plan/every_tuple.py",
        "return with_inputs(relation, [_completed(features), packed])",
        "return with_inputs(relation, [features, packed])",
        "a view has no result for a row that is deleted",
        (f"{TESTS}::test_views_follow_their_tables[promoted0]",),
    ),
    Mutation(
        "outputs-in-front",
        "ucle/language/lift_scans.py",
        "return same and labels[-1] == output_label(call)",
        "return same",
        "a target may have the label of the outputs before others",
        (f"{TESTS}::test_every_decomposition[E[k,r] = forest[f,p](X[r,f], P[p,k])]",),
    ),
    Mutation(
        "features-as-keys",
        "ucle/plan/kernel_choice.py",
        "return frozenset(promoted) - {*vertex.pair.labels}",
        "return frozenset(promoted)",
        "a forest may be asked to have its nodes in several tuples",
        (f"{TESTS}::test_what_has_to_be_inside_arrays[promoted0]",),
    ),
)
