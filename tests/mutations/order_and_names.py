"""Mistakes in what is stored, in windows and steps of an order, and in names of coordinates.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

ORDER_AND_NAMES: tuple[Mutation, ...] = (
    # ---- What is stored ----
    Mutation(
        "explicit-zeros-are-not-stored",
        "sqlgen/input_tables.py",
        "there = exp.Is(this=value, expression=exp.Null()).not_()",
        "there = exp.NEQ(this=value, expression=number(0, source.dtype))",
        "a row with an explicit 0 is not counted as stored",
        ("tests/lazy/test_stored.py::test_tables_of_arrays[native]",),
    ),
    Mutation(
        "explicit-zeros-of-sparse-arrays",
        "ucle/inputs/inputs.py",
        "return replace(spec, presence=False), np.ones(stored.shape, dtype=bool)",
        "return replace(spec, presence=False), stored != 0",
        "an explicit 0 of a sparse array is not counted as stored",
        ("tests/lazy/test_stored.py::test_what_moves_entries_keeps_them[native]",),
    ),
    Mutation(
        "fills-are-summed",
        "ucle/lazy/stored.py",
        "alone = stored and is_empty_elsewhere(tensor)",
        "alone = stored",
        "the mean of what is stored adds the fill of what is not",
        ("tests/lazy/test_stored.py::test_random_tables[native-0-DOUBLE-strings and a fill]",),
    ),
    Mutation(
        "statistics-of-values-for-presence",
        "ucle/database/statistics_cache.py",
        "        if fields[name] == default:  # so that",
        '        if fields[name] == default or name == "presence":  # so that',
        "what is stored has the statistics of the values, with their zeros left out",
        ("tests/lazy/test_stored.py::test_statistics_are_its_own[native]",),
    ),
    Mutation(
        "picked-of-one-table",
        "sqlgen/input_queries.py",
        "missing = exp.except_(dictionary_values(one, prefix), others, distinct=True)",
        "missing = exp.except_(\n"
        "        dictionary_values(one, prefix), dictionary_values(other, prefix), distinct=True\n"
        "    )",
        "a coordinate that is picked from a sum of two tables has to be in none of them",
        (
            "tests/lazy/test_stored.py"
            "::test_a_selection_of_two_tables_is_checked_against_both[native]",
        ),
    ),
    Mutation(
        "quantiles-with-what-is-masked",
        "ucle/lazy/quantiles.py",
        "entries = elementwise(WHEN_HIGHEST.name, mask, numbers)",
        "entries = elementwise(WHEN.name, mask, numbers)",
        "entries outside of the mask are zeros among those that are sorted",
        ("tests/lazy/test_stored.py::test_random_arrays_and_masks[1]",),
    ),
    Mutation(
        "first-entries-with-nan-behind-the-fill",
        "ucle/lowering/first_values.py",
        "return False  # there may be NaN",
        "pass  # there may be NaN",
        "what is not stored is left out though NaN comes behind it",
        (
            "tests/language/test_first_entries.py"
            "::test_an_infinite_fill_that_comes_last[bottom_k-True]",
        ),
    ),
    Mutation(
        "rows-with-zero-are-no-entries",
        "ucle/inputs/stored_coordinates.py",
        "there = replace(source, presence=True, nulls=Nulls.REFUSED, dtype=DType.BOOL)",
        "there = replace(source, nulls=Nulls.REFUSED, dtype=DType.BOOL)",
        "a mean of truth values is taken for one over positions without a row",
        ("tests/pipeline/test_notices.py::test_a_row_with_zero_is_an_entry[table-positions-bool]",),
    ),
    # ---- Names ----
    Mutation(
        "masks-order-the-axes",
        "ucle/lazy/selection.py",
        "return permute_axes(kept, places)",
        "return kept",
        "a mask along one axis puts that axis first",
        ("tests/lazy/test_row_masks.py::test_random_masks[0]",),
    ),
    # ---- Windows ----
    Mutation(
        "fills-before-the-first-position",
        "ucle/lazy/windows.py",
        "    if not part.empty:\n",
        "    if False:\n",
        "windows at the beginning of an axis hold fills from outside of it",
        ("tests/lazy/test_time_series.py::test_windows_of_arrays[1]",),
    ),
    Mutation(
        "blocks-of-sums-overlap",
        "ucle/lazy/windows.py",
        "if repeats and size < 2 * length:",
        "if size < 2 * length:",
        "entries are added twice in windows of no power of two positions",
        ("tests/lazy/test_time_series.py::test_gradients_of_windows",),
    ),
    Mutation(
        "windows-of-time-have-both-ends",
        "sqlgen/pairs_of_times.py",
        "    length = integer(times.microseconds - 1)\n",
        "    length = integer(times.microseconds)\n",
        "a window of 7 days holds a time that is 7 days older",
        ("tests/lazy/test_time_series.py::test_windows_of_days[native]",),
    ),
    Mutation(
        "last-is-first",
        "sqlgen/pairs_of_times.py",
        '{"first": exp.Min, "last": exp.Max}',
        '{"first": exp.Min, "last": exp.Min}',
        "the last entry of a step is its first",
        ("tests/lazy/test_time_series.py::test_steps_have_dates[native]",),
    ),
    Mutation(
        "moments-without-distance",
        "ucle/lazy/windows.py",
        "weight = elementwise(MULT.name, n.values, share)",
        "weight = elementwise(MULT.name, n.values, 0)",
        "variances of windows leave the distance between the means of their halves out",
        ("tests/lazy/test_time_series.py::test_windows_of_arrays[1]",),
    ),
    Mutation(
        "windows-of-all-entries",
        "ucle/lazy/series_aggregates.py",
        "        if not stored or self.stored:\n",
        "        if self.stored or self.mask is None:\n",
        "mean(stored=True) of a window counts what is not stored as 0",
        ("tests/lazy/test_time_series.py::test_methods_take_what_is_stored[native-positions]",),
    ),
)
