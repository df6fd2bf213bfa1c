"""Mistakes in what stands around the compiler: its entry points, inputs, databases, views and results.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

AROUND: tuple[Mutation, ...] = (
    # ---- Partitions, and Spark ----
    Mutation(
        "copies-serve-as-parts",
        "ucle/plan/placement_rules.py",
        "            return self.spread is Spread.BY_AXES\n",
        "            return self.spread is not Spread.SINGLE\n",
        "a tensor of which each partition has a copy counts once for each of them",
        ("tests/partitions/test_partitions.py::test_random_programs[gathered_case-42]",),
    ),
    Mutation(
        "outer-joins-of-copies",
        "ucle/plan/placement_rules.py",
        "other.makes == REPLICATED and node.kind in (JoinKind.INNER, JoinKind.LEFT)",
        "other.makes == REPLICATED",
        "rows of a copy that find no partner are there once for each partition",
        (
            "tests/partitions/test_rules.py"
            "::test_an_outer_join_keeps_the_rows_of_the_side_that_is_copied_once",
        ),
    ),
    Mutation(
        "parts-have-their-own-keys",
        "ucle/partitions/run_fragment.py",
        "mixed = (mixed ^ key) * np.uint64(0x9E3779B97F4A7C15)  # derived from the golden ratio",
        "mixed = (mixed ^ key) * np.uint64(len(rows))",
        "rows of two tables with the same keys lie on different partitions",
        ("tests/partitions/test_partitions.py::test_random_programs[random_case-17]",),
    ),
    Mutation(
        "degrees-of-one-partition",
        "stats/measure.py",
        "sums = (sum(axis) for axis in zip(*(each.largest for each in parts), strict=True))",
        "sums = (max(axis) for axis in zip(*(each.largest for each in parts), strict=True))",
        "the rows of one coordinate are taken to lie on one partition",
        ("tests/partitions/test_partition_statistics.py::test_random_partitions",),
    ),
    Mutation(
        "packs-lose-rows",
        "ucle/spark/tasks.py",
        "for start in range(0, max(length, 1), each):",
        "for start in range(0, max(length - 1, 1), each):",
        "the last row of a table does not arrive where packs end before it",
        ("tests/spark/test_rows.py::test_packs_hold_all_rows[2]",),
    ),
    # ---- Lazy tensors ----
    Mutation(
        "aligned-from-the-first-axis",
        "ucle/lazy/elementwise.py",
        "places = [tuple(range(rank - len(tensor.axes), rank)) for tensor in tensors]",
        "places = [tuple(range(len(tensor.axes))) for tensor in tensors]",
        "axes without names are aligned from the first one on, and not from the last",
        ("tests/lazy/test_tensors.py::test_random_expressions",),
    ),
    Mutation(
        "greater-taken-for-less",
        "ucle/lazy/functions.py",
        "return pointwise(LESS.name, y, x)",
        "return pointwise(LESS.name, x, y)",
        "ucle.greater(x, y) is x < y",
        ("tests/lazy/test_tensors.py::test_functions_are_what_numpy_calls_so[greater]",),
    ),
    Mutation(
        "choice-turned-around",
        "ucle/lazy/meaning.py",
        "(WHEN, UNLESS)",
        "(UNLESS, WHEN)",
        "where(c, x, y) is y where the condition holds",
        ("tests/lazy/test_tensors.py::test_random_expressions",),
    ),
    Mutation(
        "new-axis-not-counted-from-the-end",
        "ucle/lazy/axes.py",
        "axes.insert(place % rank, Axis(name, 1))",
        "axes.insert(place, Axis(name, 1))",
        "expand_dims(-1) puts the new axis before the last one",
        ("tests/lazy/test_tensors.py::test_new_axes_are_where_numpy_puts_them[-2]",),
    ),
    Mutation(
        "positions-not-counted-from-the-end",
        "ucle/lazy/selection.py",
        "return position % axis.size if axis.size else position",
        "return position",
        "t[-1] picks nothing",
        ("tests/lazy/test_tensors.py::test_lists_of_positions_go_together[key8]",),
    ),
    Mutation(
        "variance-corrected-the-wrong-way",
        "ucle/lazy/reductions.py",
        "factor = count / (count - correction) if",
        "factor = (count - correction) / count if",
        "var(correction=1) is smaller than var()",
        ("tests/lazy/test_tensors.py::test_numpy_functions_give_lazy_tensors",),
    ),
    Mutation(
        "first-not-conjugated",
        "ucle/lazy/products.py",
        "conjugated = elementwise(CONJ.name, last[0])",
        "conjugated = last[0]",
        "vecdot of complex vectors is the product without conjugation",
        ("tests/lazy/test_tensors.py::test_inner_products_along_an_axis[0]",),
    ),
    Mutation(
        "one-table-one-input-whatever-is-read",
        "ucle/lazy/statements.py",
        "return (relation, len(leaf.axes), named, *map(repr, other_fields))",
        "return (relation, len(leaf.axes), named)",
        "two readings of a table, by other columns, become one input",
        ("tests/lazy/test_tensors.py::test_other_columns_of_a_table_are_another_input",),
    ),
    Mutation(
        "columns-in-the-order-of-their-dict",
        "ucle/lazy/inputs.py",
        "columns = tuple(by_label[x] for x in names if x in by_label)",
        "columns = tuple(by_label.values())",
        "columns that are named by label are taken in the order in which they are written",
        ("tests/inputs/test_columns.py::test_labels_of_a_lazy_tensor",),
    ),
    Mutation(
        "database-of-the-inputs-forgotten",
        "ucle/lazy/compute.py",
        "return databases[0] if databases else None",
        "return None",
        "a tensor of a table is looked for in a database that has no such table",
        ("tests/lazy/test_tensors.py::test_coordinates",),
    ),
    # ---- What values can be, and what that decides ----
    Mutation(
        "size-of-an-interval-around-0",
        "ucle/operators/interval_rules.py",
        "low = 0 if a.touches_zero else min(abs(a.low), abs(a.high))",
        "low = min(abs(a.low), abs(a.high))",
        "the absolute values of -2 to 3 are taken to be 2 at least",
        ("tests/ir/test_ranges.py::test_every_operator_stays_in_its_interval[ends5-float64]",),
    ),
    Mutation(
        "outgrown-factors-not-suspected",
        "ucle/ir/annihilation.py",
        "return left.overflows or right.overflows",
        "return False",
        "0 times a number that outgrew its type is NaN, on some plans",
        (
            "tests/ir/test_ranges.py"
            "::test_what_outgrows_its_type[T[i] = exp(1000 * a[i]) * b[i]-arrays0]",
        ),
    ),
    Mutation(
        "suspects-forgotten-where-they-are-lost",
        "ucle/ir/annihilation.py",
        "            checked |= read\n",
        "            pass\n",
        "a NaN that a comparison would lose is not looked for before it",
        (
            "tests/ir/test_ranges.py"
            "::test_what_outgrows_its_type[T[i] = exp(1000 * a[i]) * b[i] < 1-arrays1]",
        ),
    ),
    Mutation(
        "complex-products-halved",
        "ucle/operators/duckdb_formulas.py",
        'SQUARE = pair("x.re * x.re - x.im * x.im", "2 * x.re * x.im")',
        'SQUARE = pair("x.re * x.re - x.im * x.im", "x.re * x.im")',
        "the square of a complex number has half of its imaginary part",
        ("tests/ir/test_formulas.py::test_maps[complex64]",),
    ),
    Mutation(
        "root-of-the-other-half-plane",
        "ucle/operators/duckdb_formulas.py",
        "_with_sign(_ROOT, 'x.im'))} END\"",
        '_ROOT)} END"',
        "the root of -1 - 1j has a positive imaginary part",
        ("tests/ir/test_formulas.py::test_maps[complex64]",),
    ),
    Mutation(
        "unsigned-numbers-wrap-around",
        "ucle/foundation/exact_numbers.py",
        "        wrong |= converted < 0  # wraps around both ways\n",
        "        pass\n",
        "2^63 as uint64 becomes -2^63",
        ("tests/ir/test_element_types.py::test_numbers_that_a_type_cannot_hold[array0-None]",),
    ),
    # ---- Statistics ----
    Mutation(
        "infinities-not-noticed",
        "stats/arrays.py",
        "finite = bool(np.isfinite(values if is_finite(fill) else values[stored]).all())",
        "finite = True",
        "arrays with an infinity are taken to be finite, where NumPy looks at them",
        (
            "tests/stats/test_array_statistics.py"
            "::test_what_is_finite_and_what_is_an_entry[float32-inf-0.0-connect1]",
        ),
    ),
    Mutation(
        "fill-among-the-extremes",
        "stats/model.py",
        "entries = array if stored.all() else array[stored]",
        "entries = array",
        "the least entry of a sparse array is its fill",
        ("tests/project/test_doctests.py::test_examples[ucle.stats.model]",),
    ),
    # ---- Inputs ----
    Mutation(
        "first-of-several-columns",
        "ucle/inputs/column_roles.py",
        "if len(left) == 1 and left[0].name not in foreign:",
        "if left[0].name not in foreign:",
        "of several columns that are left the first is taken for the values",
        (
            "tests/inputs/test_columns.py"
            "::test_several_columns_are_left[ratings-ts INTEGER, rating-ucle.table('ratings', ['usr', 'item'], 'ts')]",
        ),
    ),
    Mutation(
        "index-of-pandas-taken-for-values",
        "ucle/inputs/column_roles.py",
        'return {**dict.fromkeys(index, "pandas\' index"), **foreign}',
        "return dict(foreign)",
        "the column of an index without a name holds the values",
        ("tests/inputs/test_columns.py::test_the_index_of_pandas_is_no_column",),
    ),
    Mutation(
        "coordinates-of-frostt-from-0",
        "ucle/inputs/frostt.py",
        'columns = {f"k{n}": pc.subtract(key, 1) for n, key in enumerate(keys)}',
        'columns = {f"k{n}": key for n, key in enumerate(keys)}',
        "coordinates in .tns files are one too large",
        ("tests/inputs/test_files.py::test_frostt_with_comments[open0- ]",),
    ),
    Mutation(
        "truth-values-are-counts",
        "ucle/foundation/arguments.py",
        'if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):',
        'if not hasattr(value, "__index__"):',
        "True is taken for a number of rows",
        ("tests/whole_programs/test_argument_checks.py::test_wrong_arguments[plans]",),
    ),
    Mutation(
        "validated-checks-names-alone",
        "ucle/foundation/arguments.py",
        "zip(positional, args, strict=False):",
        "zip(positional, (), strict=False):",
        "arguments that are passed by position are not looked at",
        (
            "tests/whole_programs/test_argument_checks.py::test_wrong_arguments[einsum_program (text)]",
        ),
    ),
    # ---- Databases ----
    Mutation(
        "ambiguous-names-mean-the-schema",
        "ucle/database/table_names.py",
        "return []  # DuckDB calls it ambiguous",
        "return as_schema",
        "a.t is read where there are a database and a schema of that name",
        ("tests/database/test_lookup.py::test_a_name_means_what_duckdb_takes_it_for[USE memory]",),
    ),
    Mutation(
        "temporary-tables-come-last",
        "ucle/database/table_names.py",
        "_SearchPath((*places, (fold_name(current), MAIN)),",
        "_SearchPath((*places[1:], (fold_name(current), MAIN), places[0]),",
        "a table of the database is read in the place of a temporary one",
        ("tests/database/test_lookup.py::test_programs_read_the_table_that_is_meant[True-True]",),
    ),
    Mutation(
        "opened-for-writing",
        "ucle/database/database_file.py",
        "attach(self.path, read_only=not writable)",
        "attach(self.path, read_only=False)",
        "a file that is only read locks other processes out",
        ("tests/database/test_database_files.py::test_processes_read_one_file",),
    ),
    Mutation(
        "more-entries-than-places",
        "ucle/database/statistics_store.py",
        "    if exact and entries > math.prod(sizes):\n        return None\n",
        "",
        "a note of more entries than the tensor has places is believed",
        ("tests/database/test_crafted_notes.py::test_notes_of_facts[22]",),
    ),
    Mutation(
        "axes-that-are-none",
        "ucle/database/statistics_store.py",
        "if not _are_axes(noted, rank) or noted != sorted(set(noted)):",
        "if not isinstance(noted, list) or noted != sorted(set(noted)):",
        "a note of a kept table names an axis that the tensor does not have",
        ("tests/database/test_crafted_notes.py::test_axes_that_no_layout_has[[0, 3]]",),
    ),
    Mutation(
        "looked-for-macros-once",
        "ucle/database/macro_check.py",
        "        if not _files.get(files):\n",
        "        if not len(_files):\n",
        "a macro that comes into a file later takes the place of a function",
        ("tests/database/test_macro_check.py::test_a_macro_that_comes_between_two_executions",),
    ),
    # ---- Results and views ----
    Mutation(
        "scalars-without-a-row",
        "ucle/plan/forms.py",
        '"nonfill" if nonfill and type_.rank else "all"',
        '"nonfill" if nonfill else "all"',
        "a table of a scalar that is 0 is empty",
        ("tests/run/test_writing.py::test_rows_follow_the_fill[native-y += A[i,j]]",),
    ),
    Mutation(
        "identities-written",
        "ucle/plan/forms.py",
        "return any(same_value(type_.fill, identity(type_.dtype)) for identity in identities)",
        "return False",
        "tables of distances hold the infinite ones",
        (
            "tests/run/test_writing.py"
            "::test_rows_follow_the_fill[native-y[i,k] min= A[i,j] + A[j,k]]",
        ),
    ),
    Mutation(
        "integers-fit-into-floats",
        "ucle/run/write_table.py",
        "return 0 < new_width < old_width and new_width // 10 == old_width // 10",
        "return 0 < new_width < old_width",
        "integers are appended to a column of floats, which cannot hold them all",
        ("tests/run/test_writing.py::test_columns_have_to_fit[native]",),
    ),
    Mutation(
        "upsert-in-two-pieces",
        "ucle/run/write_table.py",
        "    with transaction(session):\n        _run(session, delete, target)\n",
        "    with contextlib.nullcontext():\n        _run(session, delete, target)\n",
        "an upsert that fails has deleted the rows that it was to replace",
        ("tests/run/test_writing.py::test_a_failure_leaves_the_table_as_it_was[native]",),
    ),
    Mutation(
        "sizes-not-guarded",
        "ucle/run/view_sizes.py",
        "_guard(group, most, most if output in exact else 0)",
        "_guard(group, most, 0)",
        "a view shows a mean over as many coordinates as there were once",
        (
            "tests/run/test_view_sizes.py"
            "::test_views_are_right_or_raise[{'y': [], 'gram': [], 'mean': []}-integers]",
        ),
    ),
    Mutation(
        "sizes-divided-by",
        "sqlgen/computed_sizes.py",
        "kind = exp.Mul if power > 0 else exp.Div",
        "kind = exp.Div if power > 0 else exp.Mul",
        "a view multiplies by a size where it has to divide by it",
        ("tests/run/test_view_sizes.py::test_sizes_are_computed[float64-strings]",),
    ),
    Mutation(
        "cheaper-plans-called-more-expensive",
        "ucle/explain/text.py",
        '"costs more" if by > 0 else "costs less"',
        '"costs less" if by > 0 else "costs more"',
        "explain says that the second plan saves what it costs",
        ("tests/explain/test_explain.py::test_the_runner_up_is_the_second_plan",),
    ),
    Mutation(
        "one-row-less-for-all",
        "ucle/command/show_results.py",
        '"complete": len(first_rows) <= rows,',
        '"complete": len(first_rows) < rows,',
        "ucle run --json says that there are more rows where it shows them all",
        ("tests/command/test_cli_machine.py::test_run",),
    ),
    # ---- The entry point that NumPy has ----
    Mutation(
        "out-not-read",
        "ucle/lazy/einsum_casting.py",
        '        check_cast(out, compute, casting, "out")  # NumPy also reads what it adds to\n',
        "",
        "an array out of a greater type than the operands passes, where NumPy refuses it",
        (
            "tests/lazy/test_numpy_einsum.py"
            "::test_bad_calls_raise_what_numpy_raises[out is wider than the type]",
        ),
    ),
    # ---- Kernels, their Python side ----
    Mutation(
        "offset-of-a-slice-forgotten",
        "udf_kernels/arrow_arrays.py",
        "struct.offset, struct.length = array.offset, len(array)",
        "struct.offset, struct.length = 0, len(array)",
        "kernels of the Arrow route read a slice of an array from its buffers' beginning",
        ("tests/kernels/test_types.py::test_arrow_slices_of_structs_and_truth_values",),
    ),
    Mutation(
        "matrices-transposed",
        "tests/kernels/kernel_meanings.py",
        "return np.multiply.outer(a, b).ravel()",
        "return np.multiply.outer(b, a).ravel()",
        "what the kernel of outer products is held against has its operands swapped",
        ("tests/kernels/test_reference.py::test_scalar_kernel[extension-outer_prod]",),
    ),
    # ---- What is imported, and the database that the process keeps ----
    Mutation(
        "sparse-entries-merge",
        "ucle/inputs/sparse_arrays.py",
        "np.any([np.diff(keys) != 0 for keys in sorted_], axis=0)",
        "np.all([np.diff(keys) != 0 for keys in sorted_], axis=0)",
        "entries of a sparse array that share one coordinate are added up",
        (
            "tests/inputs/test_sparse_arrays.py"
            "::test_entries_at_one_place_are_added_up_as_in_scipy[int64]",
        ),
    ),
    Mutation(
        "everything-is-imported",
        "ucle/__init__.py",
        "from ucle import errors as errors",
        "from ucle import errors as errors, random as random",
        "import ucle brings the compiler",
        ("tests/project/test_imports.py::test_import_brings_nothing_large",),
    ),
    Mutation(
        "arrow-is-imported",
        "ucle/foundation/libraries.py",
        'pa = LateModule("pyarrow")',
        'pa = __import__("pyarrow")',
        "the public names bring Arrow",
        ("tests/project/test_imports.py::test_public_names_bring_neither_arrow_nor_scipy",),
    ),
    Mutation(
        "scratch-never-replaced",
        "ucle/database/open_sessions.py",
        "            _scratch.remove(whole)\n",
        "            pass\n",
        "after a fatal error of DuckDB no lazy tensor can be computed any more",
        ("tests/database/test_scratch.py::test_one_that_is_invalidated_is_replaced",),
    ),
    Mutation(
        "scratch-closed-by-children",
        "ucle/database/open_sessions.py",
        "ctypes.pythonapi.Py_IncRef(ctypes.py_object(_scratch.pop()))",
        "_scratch.pop()",
        "forked children are aborted where they would close the database of their parent",
        ("tests/database/test_scratch.py::test_children_have_their_own",),
    ),
    Mutation(
        "results-of-users-on-scratch",
        "ucle/program/compiled_program.py",
        "from ucle.database.macro_check import open_checked\n",
        "from ucle.database.macro_check import open_passing as open_checked\n",
        "tables that users make of results are seen by other computations",
        (
            "tests/database/test_scratch.py"
            "::test_results_that_users_hold_have_a_database_of_their_own",
        ),
    ),
    # ---- Installations ----
    Mutation(
        "fork-removes-the-copy",
        "udf_kernels/footer.py",
        "if os.getpid() == maker:",
        "if maker:",
        "a fork that ends takes the kernels of the process that it came from along",
        ("tests/install/test_stripped.py::test_one_copy_for_threads_and_forks",),
    ),
    Mutation(
        "arrays-without-kernels",
        "ucle/optimiser/limits.py",
        "if not (sized.resources.kernels or decomposition.relational):",
        "if not sized.resources.kernels and decomposition.relational:",
        "without kernels the optimiser takes only what needs kernels",
        ("tests/install/test_no_kernels.py::test_answers_and_one_notice",),
    ),
    Mutation(
        "told-what-is-held-out",
        "examples/demo/training.py",
        "WHEN place <= 2 * tenth THEN 'validation'",
        "WHEN place <= tenth THEN 'validation'",
        "the demo validates with no module",
        ("tests/demo/test_demo_training.py::test_the_task",),
    ),
    Mutation(
        "the-last-scores",
        "examples/demo/training.py",
        "if kept is None or epochs[-1].validation < epochs[best].validation:",
        "if True:",
        "the demo trains on where validation gets no better",
        ("tests/demo/test_demo_training.py::test_the_losses_are_numpys",),
    ),
    # ---- Loops ----
    Mutation(
        "carried-as-it-was-at-first",
        "ucle/plan/hoist_invariants.py",
        "same = step.tensor not in changing",
        "same = True",
        "what an input that changes goes into is computed once",
        ("tests/run/test_prepared.py::test_what_is_passed_stays[native]",),
    ),
    Mutation(
        "carried-with-its-own-fill",
        "ucle/run/carried.py",
        "return made.fill == given.fill and full and occupied and given.covered <= made.covered",
        "return True",
        "an output that is carried is read with the fill of the input",
        ("tests/run/test_prepared.py::test_zeros_become_others_and_others_zeros[native-i]",),
    ),
    Mutation(
        "state-kept-after-new-data",
        "ucle/run/prepared_program.py",
        "self._state.pop(name, None)",
        "pass",
        "an array that is passed for what is carried is not read",
        (
            "tests/run/test_prepared.py"
            "::test_carried_inputs_begin_again_with_what_is_passed[native]",
        ),
    ),
    Mutation(
        "ends-a-step-early",
        "ucle/run/iterate.py",
        "while len(rows) < steps and not converged:",
        "while len(rows) + 1 < steps and not converged:",
        "a loop makes one step less than it may",
        ("tests/run/test_iterate.py::test_a_number_of_steps[native]",),
    ),
    Mutation(
        "a-database-that-others-changed-is-used-again",
        "ucle/database/idle_databases.py",
        "        if self.shared:\n            self.database.close()\n            return\n",
        "",
        "a table that a result was written to is there for the next program",
        (
            "tests/database/test_idle_databases.py::test_what_users_may_have_changed_is_not_used_again",
        ),
    ),
    Mutation(
        "checked-when-it-is-too-late",
        "ucle/run/script.py",
        "at_once=later > 0",
        "at_once=False",
        "in a transaction, integers are made of NaN that another plan would not have made",
        (
            "tests/ir/test_ranges.py"
            "::test_what_is_made_of_nan_by_the_size_of_numbers[int64(y[i])-True]",
        ),
    ),
    Mutation(
        "neighbours-of-the-whole-axis",
        "ucle/gradients/differentiate.py",
        "return replace(adjoint, like=like, shortened=self._shortened)",
        "return replace(adjoint, like=like)",
        "an adjoint is computed beyond the end of its label",
        (
            "tests/gradients/test_gradients.py"
            "::test_gradients_are_those_of_pytorch[read: neighbours]",
        ),
    ),
    # ---- What the tests themselves go by ----
    Mutation(
        "oracle-folds-too-little",
        "ucle/testing/oracle_operators.py",
        '"unless": Meaning(lambda c, x: np.where(c != 0, np.zeros_like(x), x), "bifc"),',
        '"unless": Meaning(lambda c, x: np.where(c != 0, x, np.zeros_like(x)), "bifc"),',
        "the oracle takes the values where a condition holds for those where it does not",
        (
            "tests/lowering/test_push_down_masks.py::test_forms[E[i,j] = unless(A[i,j] == 0, x[i] + y[j])]",
        ),
    ),
)
