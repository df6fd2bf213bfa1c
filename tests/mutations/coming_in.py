"""Mistakes in reading what comes in, and in the memory that it takes.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

COMING_IN: tuple[Mutation, ...] = (
    # ---- Text files ----
    Mutation(
        "types-of-the-first-rows",
        "ucle/inputs/csv_types.py",
        "zip(guessed, fits, strict=True) if each}",
        "zip(guessed, fits, strict=True)}",
        "a file of integers that ends with 0.25 is one of integers",
        (
            "tests/inputs/test_whole_file_types.py"
            "::test_integers_that_end_with_a_fraction_are_floats",
        ),
    ),
    Mutation(
        "coordinates-that-are-fractions",
        "ucle/inputs/csv_types.py",
        'if types.get(key.name) == "DOUBLE":',
        "if False:",
        "1.5 is a coordinate of a file",
        ("tests/inputs/test_whole_file_types.py::test_keys_have_the_type_of_all_rows",),
    ),
    Mutation(
        "digits-that-get-lost",
        "ucle/inputs/csv_types.py",
        'if type_ == "DOUBLE" and counts.get("rounded") and not self.floats:',
        "if False:",
        "2^53 + 1 beside 0.5 is read as 2^53",
        ("tests/inputs/test_whole_file_types.py::test_a_stated_type_decides_how_a_column_is_read",),
    ),
    Mutation(
        "changed-files-remembered",
        "ucle/inputs/csv_types.py",
        "key = (origin.path, state, stated,",
        "key = (origin.path, stated,",
        "a file that was written again is read by the types that it had",
        ("tests/inputs/test_whole_file_types.py::test_a_file_that_changes_is_looked_at_again",),
    ),
    Mutation(
        "headers-by-any-word",
        "ucle/inputs/csv_dialect.py",
        "if cells <= CUSTOMARY and len(cells) == len(first):",
        "if cells & CUSTOMARY:",
        "a row of data with the word node in it is taken for names",
        ("tests/inputs/test_text_forms.py::test_headers_that_are_not_clear",),
    ),
    # ---- Parquet and others ----
    Mutation(
        "rounded-where-files-meet",
        "ucle/inputs/parquet_schemas.py",
        "    if rows:\n        row, value = rows[0]\n",
        "    if rows and False:\n        row, value = rows[0]\n",
        "2^53 + 1 of one file is 2^53 as another one has floats",
        (
            "tests/inputs/test_parquet_patterns.py"
            "::test_a_number_that_no_type_of_all_has_is_refused[float64, int64]",
        ),
    ),
    Mutation(
        "exponents-of-fortran",
        "ucle/inputs/matrix_market.py",
        'body = FORTRAN.sub(b"e", body)',
        "pass",
        "1.5D+02 is 1.5",
        ("tests/inputs/test_tensor_files.py::test_exponents_of_fortran",),
    ),
    Mutation(
        "halves-of-one-sign",
        "ucle/inputs/matrix_market.py",
        "matrix[columns, rows] = numbers, -numbers",
        "matrix[columns, rows] = numbers, numbers",
        "a skew-symmetric matrix is symmetric",
        ("tests/inputs/test_tensor_files.py::test_dense_matrices_that_scipy_dies_of",),
    ),
    Mutation(
        "fills-of-others-forgotten",
        "ucle/inputs/sparse_arrays.py",
        'np.asarray(getattr(value, "fill_value", 0)).item()',
        'np.asarray(getattr(value, "no_fill_value", 0)).item()',
        "what a sparse array does not store is 0 whatever it says",
        ("tests/inputs/test_object_protocol.py::test_fills_of_sparse_arrays_are_kept",),
    ),
    # ---- Keys of two types ----
    Mutation(
        "text-meets-numbers",
        "ucle/inputs/column_types.py",
        "    if len(kinds) > 1:\n        return None\n",
        '    if len(kinds) > 1:\n        return "VARCHAR"\n',
        "keys of text and of numbers are joined as text",
        ("tests/inputs/test_key_types.py::test_no_text_is_read_as_a_number",),
    ),
    Mutation(
        "unsigned-keys-as-wide",
        "ucle/inputs/column_types.py",
        "*(width + 1 for width in below)",
        "*(width for width in below)",
        "a coordinate of 32 bits without a sign does not fit into 32 bits with one",
        ("tests/inputs/test_key_types.py::test_wide_integers_meet_narrow_ones[native]",),
    ),
    # ---- Memory ----
    Mutation(
        "whole-tensors-among-keyed-relations",
        "sqlgen/from_clause.py",
        'if not self.query.args.get("joins"):',
        "if self.query:",
        "DuckDB may cross a whole tensor with a side of a join, and keeps a copy for each row",
        ("tests/sqlgen/test_from_clause.py::test_keys_of_several_axes",),
    ),
    Mutation(
        "copies-in-another-order-forgotten",
        "ucle/plan/step_memory.py",
        "handed_on = layout.is_in_order and ",
        "handed_on = ",
        "the copy of an array in another order is missing from the memory that is predicted",
        ("tests/plan/test_step_memory.py::test_arrays_in_another_order_are_copied",),
    ),
    Mutation(
        "keys-of-arrays-forgotten",
        "ucle/plan/step_memory.py",
        "if _is_copied(step.relation) else keys)",
        "if _is_copied(step.relation) else 0.0)",
        "the columns of keys beside an array are missing from the memory that is predicted",
        ("tests/plan/test_step_memory.py::test_keys_of_arrays_count",),
    ),
    Mutation(
        "compressed-operands-counted-as-dense",
        "ucle/plan/step_memory.py",
        "case Densify(Slot(number=source)):",
        "case Densify(Slot(number=source)) if relation.layout.compressed is None:",
        "a compressed operand of a fused step counts as a dense one",
        ("tests/plan/test_step_memory.py::test_a_step_of_several_tensors_has_the_sizes_of_each",),
    ),
    Mutation(
        "what-may-fit-may-take-all",
        "ucle/pipeline/memory_check.py",
        "if not self.free.kills:\n            every = ",
        "if True:\n            every = ",
        "DuckDB and the kernels may each take all that is free, and the system ends the process",
        ("tests/pipeline/test_memory_check.py::test_a_plan_that_may_fit_runs_within_limits[True]",),
    ),
    Mutation(
        "freed-addresses-kept",
        "ucle/foundation/address_limit.py",
        "    if limits_addresses():\n",
        "    if not limits_addresses():\n",
        "DuckDB keeps addresses of a plan that needed too much, and the next one has none",
        (
            "tests/foundation/test_free_memory.py"
            "::test_addresses_that_duckdb_has_freed_are_free_for_others",
        ),
    ),
    Mutation(
        "rows-of-a-positional-join-forgotten",
        "ucle/plan/step_memory.py",
        "elif len(operands) > 1:",
        "elif False:",
        "what a positional join copies is missing from the memory that is predicted",
        ("tests/plan/test_step_memory.py::test_what_is_put_in_one_row_is_copied",),
    ),
    Mutation(
        "parameters-are-rows",
        "ucle/plan/parameters.py",
        " if x not in parameters]) > 1",
        "]) > 1",
        "a small array that is a parameter counts as a row, beside which others are copied",
        ("tests/plan/test_step_memory.py::test_a_parameter_is_no_row_beside_others",),
    ),
    # ---- Sparse arrays in memory ----
    Mutation(
        "lists-with-what-is-not-stored",
        "ucle/inputs/sparse_entries.py",
        """        stored = np.asarray(differs_from(values, type_.fill))
        if not stored.all():""",
        """        stored = np.asarray(differs_from(values, type_.fill))
        if False:""",
        "explicit zeros of a sparse matrix are entries of its compressed arrays",
        ("tests/inputs/test_sparse_arrays.py::test_compressed_arrays_hold_the_matrix",),
    ),
    Mutation(
        "lists-of-one-triangle",
        "ucle/inputs/sparse_entries.py",
        "not (any(source.encoded) or source.symmetric or source.tiles or source.times)",
        "not (any(source.encoded) or source.tiles or source.times)",
        "the compressed arrays of a symmetric matrix hold one triangle",
        ("tests/inputs/test_sparse_arrays.py::test_tables_that_say_more_are_read_as_tables",),
    ),
    Mutation(
        "rows-at-one-position",
        "ucle/inputs/sparse_entries.py",
        "return bool((places[1:] != places[:-1]).all())",
        "return True",
        "two rows of a frame at one position are two entries",
        ("tests/inputs/test_sparse_arrays.py::test_rows_at_one_position",),
    ),
    Mutation(
        "degrees-of-explicit-zeros",
        "stats/coordinates.py",
        "keys, values = [key[stored] for key in keys], values[stored]",
        "values = values[stored]",
        "explicit zeros count as entries of their rows and columns",
        ("tests/stats/test_counted_coordinates.py::test_they_are_those_that_queries_find",),
    ),
    # ---- Hints ----
    Mutation(
        "names-without-quotation-marks",
        "ucle/foundation/names.py",
        "if _PLAIN.fullmatch(name) and fold_name(name) not in RESERVED:",
        "if _PLAIN.fullmatch(name):",
        "a hint names a view that is no SQL, as its column is a word of SQL",
        ("tests/explain/test_hints_of_tables.py::test_names_are_quoted_where_sql_needs_it",),
    ),
    Mutation(
        "selected-moments-without-a-zone",
        "ucle/inputs/selected_coordinates.py",
        'if kind == "timestamps with a time zone":',
        "if False:",
        "a hint shows a call of sel that fails again",
        ("tests/explain/test_hints_of_tables.py::test_coordinates_of_another_type",),
    ),
    Mutation(
        "ids-that-are-positions",
        "ucle/optimiser/made_dense.py",
        "used < SELDOM * label.bound",
        "used < 0",
        "programs of large ids that need too much memory do not hear of dictionaries",
        ("tests/explain/test_hints_of_tables.py::test_large_ids_need_a_dictionary",),
    ),
    # ---- Lists of different lengths ----
    Mutation(
        "lists-that-are-null",
        "sqlgen/item_rows.py",
        'items = exp.func("coalesce", items, exp.Array(expressions=[exp.null()]))',
        "pass",
        "a list that is NULL counts as one without items, without a word",
        ("tests/inputs/test_ragged_lists.py::test_nulls",),
    ),
    Mutation(
        "coordinates-of-items",
        "sqlgen/input_tables.py",
        "elif source.ragged and key != source.keys[-1]:",
        "elif False:",
        "a list without items has no coordinate",
        ("tests/inputs/test_ragged_lists.py::test_lazy_tensors_have_names",),
    ),
)
