"""Mistakes in tables of runs, in truth values packed into words, and in early ends.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

RUNS, BITS = "tests/inputs/test_runs.py", "tests/inputs/test_packed_bits.py"

RUNS_AND_BITS: tuple[Mutation, ...] = (
    Mutation(
        "runs-end-with-their-end",
        "sqlgen/run_rows.py",
        "exp.LT(this=column(NEXT), expression=column(_end(source)))",
        "exp.LTE(this=column(NEXT), expression=column(_end(source)))",
        "runs that touch are taken to overlap",
        (f"{RUNS}::test_truth_values",),
    ),
    Mutation(
        "runs-that-overlap",
        "stats/runs.py",
        "for row in fetch(sql.overlapping_run_query(source, prefix)):",
        "for row in ():",
        "an entry that two runs claim has one value by one plan and two by another",
        (f"{RUNS}::test_wrong_runs",),
    ),
    Mutation(
        "runs-along-another-axis",
        "ucle/plan/plan_program.py",
        "if runs and change.layout.compressed == read.type.rank - 1:",
        "if runs:",
        "runs are compressed along an axis along which there are none",
        (f"{RUNS}::test_every_plan[y[j] += A[i,j]-False-float64]",),
    ),
    Mutation(
        "entries-of-a-table-of-runs",
        "stats/measure.py",
        "        entries=runs.entries,\n",
        "        entries=found.entries,\n",
        "a table of runs is taken to have as many entries as rows",
        (f"{RUNS}::test_entries_are_counted_by_runs",),
    ),
    Mutation(
        "bits-behind-the-last",
        "ucle/language/packed_bits.py",
        "if length % WORD and _fills_behind(expression, label):",
        "if False:",
        "bits that are no positions count",
        (f"{BITS}::test_words_answer_like_truth_values[sums-65]",),
    ),
    Mutation(
        "shifts-within-words",
        "ucle/language/packed_bits.py",
        'return f"({kept} | {_raised(read(whole + 1), WORD - rest)})"',
        "return kept",
        "a shift loses the bits that come from the next word",
        (f"{BITS}::test_words_answer_like_truth_values[far-200]",),
    ),
    Mutation(
        "true-where-nothing-is",
        "ucle/language/packed_bits.py",
        "if _fill(expression):  # what is outside of it would be true",
        "if False:",
        "not A is false outside of an image whose last word is not full",
        (f"{BITS}::test_words_answer_like_truth_values[complement-65]",),
    ),
    Mutation(
        "extremes-of-numbers-are-logical",
        "ucle/lowering/bits_of_booleans.py",
        "made.operator in DECIDED and is_boolean(made.argument)",
        "made.operator in DECIDED",
        "the greatest of numbers is whether there is one",
        ("tests/plan/test_early_ends.py::test_results_are_those_of_numpy[auto-few]",),
    ),
    Mutation(
        "columns-as-rows",
        "ucle/plan/kernel_choice.py",
        'name = "csr_reduce_cols" if is_transposed(vertex, decomposition) else name',
        "pass",
        "the sums of columns that are listed are those of the rows",
        (f"{RUNS}::test_runs_are_compressed_as_they_are",),
    ),
    Mutation(
        "tuples-of-the-fill-for-all",
        "ucle/plan/load_every_tuple.py",
        "if read[name] == completed[name] > 0",
        "if completed[name]",
        "a step that reads the stored tuples of an array gets those of its fill, too",
        ("tests/plan/test_load_every_tuple.py::test_arrays_that_are_read_as_they_are_too",),
    ),
    Mutation(
        "steps-that-are-never-whole",
        "ucle/plan/join_every_tuple.py",
        "return needed is not None and whole.issuperset(needed)",
        "return needed is not None",
        "inner joins lose the tuples that the steps that they read do not have",
        ("tests/plan/test_join_every_tuple.py::test_every_plan",),
    ),
    Mutation(
        "runs-that-no-dictionary-numbers",
        "ucle/plan/keep_coordinates.py",
        "keyed = source.layout if scan.gathers else scan.layout",
        "keyed = scan.layout",
        "a dictionary is left out that numbers the rows of runs",
        (f"{RUNS}::test_other_keys_may_have_names",),
    ),
)
