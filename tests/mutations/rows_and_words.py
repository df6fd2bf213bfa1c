"""Mistakes in rows of operators, in the table of rewrites, and in the models of cost and memory.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

ROWS_AND_WORDS: tuple[Mutation, ...] = (
    # ---- The table of rewrites ----
    Mutation(
        "replayed-in-the-wrong-order",
        "ucle/optimiser/join_order.py",
        "rewrites=(rewrite, *self.rewrites)",
        "rewrites=(*self.rewrites, rewrite)",
        "a program in other sizes is rewritten from the inside out",
        ("tests/optimiser/test_rewrite_passes.py::test_replays_run_in_the_order_of_the_table",),
    ),
    Mutation(
        "refused-replays-go-on",
        "ucle/optimiser/join_order.py",
        "                return contract(logical)\n            logical = replayed\n",
        "                continue\n            logical = replayed\n",
        "a program that may no longer be rewritten gets the rest of the rewrites",
        ("tests/optimiser/test_rewrite_passes.py::test_replays_run_in_the_order_of_the_table",),
    ),
    Mutation(
        "rewrites-without-a-record",
        "ucle/optimiser/rewrite_passes.py",
        "    return replace(decided, lowering=decided.lowering.after(rewrite)), association\n",
        "    return decided, association\n",
        "what was rewritten is neither shown nor replayed",
        ("tests/optimiser/test_rewrite_passes.py::test_a_pass_of_the_table",),
    ),
    # ---- The models of cost and memory ----
    Mutation(
        "tables-of-the-larger-side",
        "ucle/plan/memory_model.py",
        "count, each = min((rows, size), (other_rows, other_size))",
        "count, each = max((rows, size), (other_rows, other_size))",
        "a join is expected to hold the larger side",
        ("tests/plan/test_step_memory.py::test_parts[part2-60]",),
    ),
    Mutation(
        "blocks-that-are-full",
        "ucle/plan/memory_model.py",
        "values = BLOCK // size if LONG < size < BLOCK else 0",
        "values = 0",
        "blocks that a long value leaves half empty are missing from the prediction",
        ("tests/plan/test_step_memory.py::test_parts[part6-1048576]",),
    ),
    Mutation(
        "nothing-is-kept",
        "ucle/plan/memory_model.py",
        "        kept += made\n",
        "        kept = made\n",
        "tables of earlier statements are missing from the peak",
        ("tests/plan/test_step_memory.py::test_what_statements_leave_stays_until_the_end",),
    ),
    # ---- The pipeline, and its progress ----
    Mutation(
        "infinities-behind-zeros",
        "ucle/pipeline/stages.py",
        '        options.nonfinite == "exact",\n',
        "        False,\n",
        "0 annihilates infinity, though nobody said that it may",
        ("tests/optimiser/test_join_order.py::test_what_is_not_finite[inf]",),
    ),
    Mutation(
        "steps-that-are-done-before-they-begin",
        "ucle/foundation/progress.py",
        "(self.number - 1 + self.share)",
        "(self.number + self.share)",
        "an execution is a step further than it is",
        ("tests/project/test_doctests.py::test_examples[ucle.foundation.progress]",),
    ),
    # ---- Rows of operators ----
    Mutation(
        "the-slope-of-a-logarithm",
        "ucle/operators/powers.py",
        'COMPLEX_LOGARITHM},\n    derivative="g / x",\n',
        'COMPLEX_LOGARITHM},\n    derivative="g * x",\n',
        "the derivative of log is x",
        ("tests/gradients/test_gradients.py::test_gradients_are_those_of_pytorch[map: log]",),
    ),
    Mutation(
        "greatest-above-nothing",
        "ucle/operators/reductions.py",
        '    select=WHEN_LOWEST,\n    texts=of_reals("max(x)")',
        '    select=WHEN,\n    texts=of_reals("max(x)")',
        "the greatest of what is scattered nowhere is 0",
        (
            "tests/language/test_gather_and_scatter.py"
            "::test_the_oracle_agrees_with_numpy[H[idx[i]] max= v[i]]",
        ),
    ),
    Mutation(
        "one-more-term-of-nothing",
        "ucle/operators/reductions.py",
        "    undefined_somewhere=True,\n    select=WHEN_LOWEST,\n",
        "    undefined_somewhere=True,\n    select=WHEN,\n",
        "the logarithm of a scattered sum has a 1 for each term that goes elsewhere",
        (
            "tests/language/test_gather_and_scatter.py"
            "::test_the_oracle_agrees_with_numpy[H[idx[i]] logsumexp= v[i]]",
        ),
    ),
)
"""Each is caught by the test that it names."""
