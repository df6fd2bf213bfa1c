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

ROWS = "tests/run/test_small_rows.py"
SPARSE = "tests/inputs/test_sparse_arrays.py"
PRICES = "tests/optimiser/test_memory_prices.py"
ONCE = "tests/lowering/test_joined_once.py"
LOGICAL = "tests/lowering/test_logical.py"
QUOTIENTS = "tests/lowering/test_quotients.py"

PROVEN_FORMS: tuple[Mutation, ...] = (
    Mutation(
        "lines-of-two-rows",
        "ucle/lowering/joined_once.py",
        "if axis not in type_.decided or left in other.labels",
        "if left in other.labels",
        "lines that refer to several rows are joined with themselves at one of them",
        (f"{ONCE}::test_entries_that_are_not",),
    ),
    Mutation(
        "entries-that-are-one-elsewhere",
        "ucle/lowering/joined_once.py",
        " or known.type_of(other).fill != 0",
        "",
        "what is not 0 between entries is left out of products",
        (f"{ONCE}::test_entries_that_are_not",),
    ),
    Mutation(
        "zeros-that-hide-infinities",
        "ucle/lowering/joined_once.py",
        " and all(map(known.is_finite, monomial.factors))",
        "",
        "0 times infinity is left out",
        (f"{ONCE}::test_entries_that_are_not",),
    ),
    Mutation(
        "numbers-that-are-their-squares",
        "ucle/lowering/joined_once.py",
        "type_.entries.low == 1 == type_.entries.high",
        "type_.entries.high >= 1",
        "weights of lines are not squared",
        (f"{ONCE}::test_entries_that_are_joined_once",),
    ),
    Mutation(
        "lines-with-two-rows-decide",
        "stats/model.py",
        "if 0 < degree <= 1)",
        "if 0 < degree <= 2)",
        "lines that refer to two rows count as lines that refer to one",
        (f"{ONCE}::test_lines_that_decide_no_more",),
    ),
    Mutation(
        "lines-decide-for-ever",
        "ucle/inputs/binding.py",
        "most_there if axis == key else most",
        "1.0 if axis == key else most",
        "rows that came later are joined as those before",
        (f"{ONCE}::test_lines_that_decide_no_more",),
    ),
    Mutation(
        "lines-are-not-looked-at-again",
        "ucle/pipeline/resize.py",
        "if before.lowering.rewrites else ()",
        "if not before.lowering.rewrites else ()",
        "every change of a table searches for a plan again",
        (f"{ONCE}::test_lines_that_decide_again_are_joined_once_without_a_new_search",),
    ),
    Mutation(
        "views-of-lines-as-they-were",
        "ucle/run/views.py",
        "for_later_rows(compiled, _decided_for_good(session, compiled, fixed), options)",
        "compiled",
        "views rely on keys that no constraint keeps unique",
        (f"{ONCE}::test_views_of_lines",),
    ),
    Mutation(
        "what-is-shared-counts-twice",
        "ucle/lowering/contraction_orders.py",
        "repeats = len(set(read.values())) < len(read)",
        "repeats = False",
        "a product whose two sides are equal is thought to compute both",
        ("tests/lowering/test_orders.py::test_what_two_factors_share_counts_once",),
    ),
    Mutation(
        "carried-factors-are-divided",
        "ucle/lowering/quotients.py",
        "and (varies or not self._scope.type_of(x).every.varies)",
        "",
        "each step of a loop divides what it carries on, though quotients were known before it",
        (f"{QUOTIENTS}::test_loops_divide_edges_before_the_first_step",),
    ),
    Mutation(
        "shared-quotients-are-divided-again",
        "ucle/lowering/quotients.py",
        "and quotient.tensor not in self._single:",
        "and not self._single:",
        "quotients that others read are computed, too, and then not read",
        (f"{QUOTIENTS}::test_factors_that_are_not_divided",),
    ),
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
    Mutation(
        "arrays-from-rows-of-a-table",
        "ucle/optimiser/pricing.py",
        "needed.dense == (0, 1) and needed.levels[1] is Level.DENSE",
        "False",
        "a sparse matrix that is read as an array goes through a table of its entries",
        (f"{SPARSE}::test_lists_become_an_array_where_it_is_read[0-float64]",),
    ),
    Mutation(
        "a-step-for-a-call",
        "ucle/plan/prices.py",
        "0.0 if in_place else profile.step",
        "profile.step",
        "an array that is recoded in place costs as much as a pipeline",
        (f"{PRICES}::test_arrays_that_are_recoded_in_place_take_no_step",),
    ),
    Mutation(
        "recoded-apart",
        "ucle/plan/nest_keyless.py",
        "case Recode(operand, layout) if not layout.promoted:",
        "case Recode(operand, layout) if layout.promoted:",
        "an array is recoded in a relation of its own",
        (f"{SPARSE}::test_lists_become_an_array_where_it_is_read[0-float64]",),
    ),
    Mutation(
        "large-constants",
        "ucle/run/script.py",
        "if _tuple_bytes(node) > MOST_PARAMETER_BYTES",
        "if False",
        "DuckDB makes a large array of a parameter while it plans",
        (f"{ROWS}::test_lists_that_become_large_arrays_stay_in_tables[native-600]",),
    ),
    Mutation(
        "measured-from-a-second-on",
        "ucle/optimiser/rewriting.py",
        "WORTH_MEASURING = 1e7\n",
        "WORTH_MEASURING = 1e9\n",
        "a squared loss of 20 ms is not computed in the form that takes 1",
        (f"{NUMBERS}::test_plans_of_ten_milliseconds_are_worth_a_measurement",),
    ),
    Mutation(
        "searched-by-the-written-cost",
        "ucle/optimiser/rewriting.py",
        "left = self._cost * min(fewer, 1)",
        "left = self._cost",
        "programs are looked at although one is known that costs next to nothing",
        (f"{NUMBERS}::test_plans_of_ten_milliseconds_are_worth_a_measurement",),
    ),
    Mutation(
        "measured-where-it-is-0",
        "ucle/optimiser/rewriting.py",
        "root.statement in normal.unsafe and polynomial.cancels_on_a_diagonal",
        "False",
        "distances between the rows of a matrix are computed twice",
        (f"{NUMBERS}::test_differences_that_are_0_on_a_diagonal_are_not_measured",),
    ),
    Mutation(
        "any-condition-on-a-factor-is-its-mask",
        "ucle/lowering/masks.py",
        "    return hidden == 0\n",
        "    return True\n",
        "a condition that hides entries of a factor is left out beside it",
        (
            f"{LOGICAL}::test_the_mask_of_a_factor_is_left_out"
            "[(A[i,j] != 1)-A[i,j]-A[i,j] * bool(A[i,j] != 1) * B[i,k] * C[k,j]]",
        ),
    ),
    Mutation(
        "searches-by-tensors-that-no-plan-makes",
        "ucle/optimiser/rewriting.py",
        "fewer = self._least / self._merged if 0 < self._merged",
        "fewer = self._least / self._written if 0 < self._merged",
        "a program by statements is searched less than the same one in one expression",
        ("tests/optimiser/test_spellings.py::test_spellings_that_differed[native-910060]",),
    ),
    Mutation(
        "sums-of-sums-apart",
        "ucle/language/factors.py",
        "while isinstance(root, Reduction) and root.operator is expression.operator:",
        "while root is expression:",
        "a sum of sums of a product is two sums, one after the other",
        (
            f"{LOGICAL}::test_statements_become_steps"
            "[T = sum[i](sum[k](sum[j](A[i,j] * B[j,k])))-steps8]",
        ),
    ),
)
