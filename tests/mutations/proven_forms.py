"""Mistakes in forms of sums that may lose digits, and in what tells whether they have.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

COUNTS = "tests/ir/test_rounding_bounds.py"
NUMBERS = "tests/lowering/test_condition_numbers.py"
FORMS = "tests/lowering/test_rewriting.py"
ORDERS = "tests/optimiser/test_join_order.py"

COPIES = "tests/lowering/test_copies.py"
LEVELS = "tests/optimiser/test_tiled_and_compressed.py"

PROVEN_FORMS: tuple[Mutation, ...] = (
    Mutation(
        "copies-under-their-own-labels",
        "ucle/lowering/copies.py",
        "labels = tuple(names[label] for label in copy.result.labels)",
        "labels = use.labels",
        "what reads a transposed tensor reads it untransposed",
        (f"{COPIES}::test_copies_are_read_through",),
    ),
    Mutation(
        "steps-under-the-labels-of-before",
        "ucle/lowering/copies.py",
        "replace(use, labels=step.labels)",
        "use",
        "labels of a step that reads a transposed tensor are mixed up",
        (f"{COPIES}::test_copies_are_read_through",),
    ),
    Mutation(
        "sums-of-the-other-axis",
        "ucle/ir/vertices.py",
        "found = {gone[0]}",
        "found = {1 - gone[0]}",
        "matrices are listed along the axis that is not summed",
        (f"{LEVELS}::test_entries_are_listed_as_they_are_summed",),
    ),
    Mutation(
        "product-of-the-longer-factor",
        "ucle/ir/rounding_bounds.py",
        "count = sum(operands) + 1",
        "count = max(operands) + 1",
        "the error of a product is that of its worse factor",
        (f"{COUNTS}::test_counts",),
    ),
    Mutation(
        "sums-without-roundings",
        "ucle/ir/rounding_bounds.py",
        "return count + max(self._count_terms(vertex) - 1, 0)",
        "return count",
        "sums do not round",
        (f"{COUNTS}::test_counts",),
    ),
    Mutation(
        "degrees-of-summed-axes",
        "ucle/ir/rounding_bounds.py",
        "kept = [x in vertex.labels for x in operand.labels]",
        "kept = [x not in vertex.labels for x in operand.labels]",
        "the terms of a sum are bounded by the degrees of the axis that is summed",
        (f"{COUNTS}::test_sums_of_few_entries",),
    ),
    Mutation(
        "sums-of-few-entries-only",
        "ucle/ir/rounding_bounds.py",
        "        return vertex.combine is MULT\n    return all",
        "        return True\n    return all",
        "a sum of a sparse and a dense tensor has the terms of the sparse one",
        (f"{COUNTS}::test_sums_of_few_entries",),
    ),
    Mutation(
        "absolute-terms-with-signs",
        "ucle/lowering/condition_numbers.py",
        "return use.then(Map(ABS, use.dtype)) if may_be_negative else use",
        "return use",
        "the terms of a condition number cancel as those of the sum do",
        (f"{NUMBERS}::test_errors_are_within_their_bounds",),
    ),
    Mutation(
        "dominated-by-half",
        "ucle/lowering/condition_numbers.py",
        "SHARE = Fraction(5, 6)",
        "SHARE = Fraction(1, 6)",
        "a term that is hardly larger than the others stands for all",
        (f"{NUMBERS}::test_the_safe_form_where_digits_are_lost",),
    ),
    Mutation(
        "digits-lost-in-silence",
        "ucle/run/execute.py",
        "if statement.limit is not None and self._session.fetch(self._own(statement.limit)):",
        "if False and self._session.fetch(self._own(statement.limit)):",
        "a condition number is computed and never looked at",
        (f"{NUMBERS}::test_the_safe_form_where_digits_are_lost",),
    ),
    Mutation(
        "views-that-lose-digits",
        "ucle/run/current_data.py",
        "            return self.safe().for_views()",
        "            return self.compiled",
        "a view computes sums in a form of which nobody looks at the condition number",
        (f"{NUMBERS}::test_views_and_scripts_for_others_have_the_safe_form",),
    ),
    Mutation(
        "every-form-is-safe",
        "ucle/lowering/rewrites.py",
        "return rewritten if safe else rewritten.mark_unsafe(root)",
        "return rewritten",
        "brackets that cancel are multiplied out and not measured",
        (f"{NUMBERS}::test_the_cheaper_form_by_default",),
    ),
    Mutation(
        "sums-in-differences-stay",
        "ucle/lowering/rewrites.py",
        "return step.combine in SIGNS and any(map(self._has_sum, step.factors))",
        "return False",
        "a sum inside of a difference is computed as it is written",
        (f"{FORMS}::test_forms",),
    ),
    Mutation(
        "sums-in-factors-stay",
        "ucle/lowering/rewrites.py",
        "outer += [use for use in polynomial.uses if self.polynomials.of(use) is None]",
        "pass",
        "a sum inside of a function of a factor is computed as it is written",
        (f"{FORMS}::test_forms",),
    ),
    Mutation(
        "measured-tensors-that-nobody-reads",
        "ucle/lowering/write_polynomials.py",
        "measuring = tuple(y for x in needed for y in numbers.get(x.target, ()))",
        "measuring = tuple(y for x in numbers.values() for y in x)",
        "a statement that has no reader left is computed to be measured",
        (f"{NUMBERS}::test_statements_without_readers_are_not_measured",),
    ),
    Mutation(
        "products-change-alone",
        "ucle/optimiser/join_order.py",
        "equal = [x for x in self._equal[product.key] if x.key[0] not in apart]",
        "equal = [product]",
        "of two equal products one alone changes its order, so that both are computed",
        (f"{ORDERS}::test_equal_products_change_together",),
    ),
    Mutation(
        "costs-of-the-last-statement",
        "ucle/optimiser/join_order.py",
        "            own.append(vertex.name)\n",
        "            own = [vertex.name]\n",
        "the cost of a statement is that of its last vertex, and costly products are not searched",
        (f"{ORDERS}::test_products_that_rewriting_makes_are_ordered",),
    ),
)
