"""Mistakes in wide tables: columns as an axis, and missing values."""

from __future__ import annotations

from .mutation import Mutation

_TESTS = "tests/inputs/test_wide_tables.py::"

WIDE_TABLES: tuple[Mutation, ...] = (
    Mutation(
        "wide-names-unplaced",
        "ucle/inputs/dictionaries.py",
        "                placed |= {x[0] for x in encoded if _is_of_names(inputs, x)}\n",
        "                placed |= set()\n",
        "columns stay in their order where another table gives their names other numbers",
        (f"{_TESTS}test_two_wide_tables_share_the_names[native]",),
    ),
    Mutation(
        "wide-positions-beside-sorted-names",
        "ucle/inputs/dictionaries.py",
        "    return member[0] in placed and list(bound.source.wide) != sorted(bound.source.wide)\n",
        "    return False\n",
        "an array by position meets columns that a dictionary has sorted",
        (f"{_TESTS}test_positions_meet_the_order_of_the_columns",),
    ),
    Mutation(
        "wide-fill-not-appended",
        "sqlgen/input_tables.py",
        '    with_fill = function("list_append", lists, fill)\n',
        '    with_fill = function("list_append", lists, exp.null())\n',
        "names that only other tables have are NULL",
        (f"{_TESTS}test_two_wide_tables_share_the_names[native]",),
    ),
    Mutation(
        "wide-mask-of-the-fill",
        "sqlgen/input_tables.py",
        "        return exp.not_(is_null(name))\n    value =",
        "        return is_null(name)\n    value =",
        "the mask is True where values are missing",
        (f"{_TESTS}test_large_tables_are_measured_by_their_columns[native]",),
    ),
    Mutation(
        "long-missing-kept",
        "sqlgen/input_tables.py",
        "    if not source.wide:\n        query = query.where(exp.not_(is_null(source.value)))\n",
        "",
        "rows whose value is NULL stay in a table with missing values",
        (f"{_TESTS}test_missing_values_of_long_tables[native]",),
    ),
    Mutation(
        "wide-nulls-of-large-tables",
        "stats/wide_tables.py",
        "    _refuse_nulls(fetch, tensor, source, nulls, prefix)\n    ends = None\n",
        "    ends = None\n",
        "NULLs of large wide tables are not refused",
        (f"{_TESTS}test_large_tables_are_measured_by_their_columns[native]",),
    ),
    Mutation(
        "wide-integers-rounded",
        "ucle/inputs/wide_tables.py",
        '        rounds = stated is None and dtype.kind == "f" and column.type in INTEGER_TYPES\n',
        "        rounds = False\n",
        "integers beside floats are rounded silently",
        (f"{_TESTS}test_integers_beside_floats_are_exact[2]",),
    ),
    Mutation(
        "wide-float32-of-integers",
        "ucle/inputs/wide_tables.py",
        "        return DType.FLOAT32 if exact.issuperset(types) else DType.FLOAT64\n",
        "        return DType.FLOAT32\n",
        "int32 beside float32 becomes float32",
        (f"{_TESTS}test_types_are_promoted[types5-float64]",),
    ),
    Mutation(
        "wide-same-names",
        "ucle/inputs/wide_tables.py",
        "if folded.index(name) < n]\n    if twice:\n        first",
        "if folded.index(name) < n]\n    if False:\n        first",
        "two columns of one name become two coordinates",
        (f"{_TESTS}test_names_that_are_not_different_are_refused[data0]",),
    ),
    Mutation(
        "wide-infinite-columns",
        "stats/wide_tables.py",
        '        finite = source.dtype.kind != "f" or all(map(math.isfinite, (*lows, *highs)))\n',
        "        finite = True\n",
        "NaN in a large wide table goes unnoticed",
        (f"{_TESTS}test_nan_is_a_number_of_files[4000]",),
    ),
)
