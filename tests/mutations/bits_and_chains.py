"""Mistakes in bitwise operators, chains of comparisons and constants of truth.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

TESTS = "tests/language/test_bits_and_chains.py"

BITS_AND_CHAINS: tuple[Mutation, ...] = (
    Mutation(
        "shifts-before-sums",
        "ucle/operators/whole_numbers.py",
        "np.left_shift,\n    absorbs_left=is_integer(0),\n    binding=7,",
        "np.left_shift,\n    absorbs_left=is_integer(0),\n    binding=9,",
        "the text of a shift of sums is read back as a sum of shifts",
        (f"{TESTS}::test_operators_bind_as_in_python",),
    ),
    Mutation(
        "chains-that-forget-their-middle",
        "ucle/language/resolve.py",
        "each = map(comparison, parts, parts[1:], signs)",
        "each = map(comparison, parts[:1] * len(signs), parts[1:], signs)",
        "a chain compares every operand with the first one",
        (f"{TESTS}::test_a_chain_is_numpys_conjunction",),
    ),
    Mutation(
        "bits-of-integers-are-logical",
        "ucle/lowering/bits_of_booleans.py",
        "booleans = is_boolean(made.left) and is_boolean(made.right)",
        "booleans = is_boolean(made.left) or is_boolean(made.right)",
        "bits of a boolean and an integer are a boolean",
        (f"{TESTS}::test_bits[{{x}} & {{y}}-bool-int64]",),
    ),
    Mutation(
        "xor-of-words",
        "ucle/language/parse.py",
        "BITS = {row.symbol: row for row in (BIT_XOR,",
        "BITS = {row.symbol: row for row in (XOR,",
        "xor(a, b) of integers is a boolean",
        (f"{TESTS}::test_bits[xor({{x}}, {{y}})-int64-int64]",),
    ),
    Mutation(
        "disjunctions-of-labels-hold-together",
        "ucle/language/label_arithmetic.py",
        "case operators.OR | operators.BIT_OR:\n            return Some((left, right))",
        "case operators.OR | operators.BIT_OR:\n            return All((left, right))",
        "of two conditions on labels joined by |, both have to hold",
        (f"{TESTS}::test_chains_of_comparisons[z[i,j] = when((i < j) | (i < 1), x[i,j])-float64]",),
    ),
)
