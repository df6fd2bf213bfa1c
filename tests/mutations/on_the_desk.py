"""Mistakes in what people do with tables of times and names.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

ALONG = "tests/language/test_along.py"
NOTICES = "tests/pipeline/test_notices.py"
TIMES = "tests/language/test_times.py"

ARRAYS = "tests/run/test_array_columns.py"

STATED = "tests/lazy/test_stated_sizes.py"

SHIFTED = "tests/language/test_shifted_times.py"

SIZES = "tests/language/test_size_of_axes.py"

GUARDS = "tests/language/test_guard_operands.py"

SHARED = "tests/lazy/test_shared_nodes.py"

FACTS = "tests/database/test_statistics_cache.py"

ON_THE_DESK: tuple[Mutation, ...] = (
    Mutation(
        "stated-times-stay-positions",
        "ucle/language/shared_times.py",
        "free = [site for root, site in labels.items() if root not in keys]",
        "free = [site for root, site in labels.items() if root not in sized]",
        "times whose number is stated are refused as positions",
        (f"{STATED}::test_programs",),
    ),
    Mutation(
        "fills-move-in",
        "ucle/lazy/positions_in_order.py",
        "if not value and is_empty_elsewhere(tensor):",
        "if not value:",
        "what moves in from outside is the fill and not 0",
        (f"{STATED}::test_fills_move_with_stated_sizes",),
    ),
    Mutation(
        "words-name-dictionaries",
        "ucle/inputs/table_options.py",
        'if name in ("auto", "dictionary")]',
        'if name == "automatic"]',
        "two labels share a dictionary that is called dictionary",
        ("tests/inputs/test_coordinates.py::test_bad_coordinates",),
    ),
    Mutation(
        "arrays-with-any-axis-fixed",
        "ucle/plan/forms.py",
        "and set(layout.dense) <= set(fixed)",
        "and set(layout.dense) & set(fixed)",
        "arrays over an axis that is free get the type of those with a length",
        (f"{ARRAYS}::test_random_outputs",),
    ),
    Mutation(
        "inner-lengths-suffice",
        "ucle/inputs/column_types.py",
        "return tuple(map(int, sizes)) if all(sizes) else ()",
        "return tuple(int(size or 1) for size in sizes)",
        "a list of arrays has one of them",
        (f"{ARRAYS}::test_types_without_lengths",),
    ),
    Mutation(
        "arrays-of-any-length-fit",
        "ucle/run/write_table.py",
        "array_sizes(old) in ((), (length,))",
        "len(array_sizes(old)) < 2",
        "rows are appended to a column of arrays with another length",
        (f"{ARRAYS}::test_tables_that_exist",),
    ),
    Mutation(
        "renamed-arrays-lose-their-length",
        "ucle/inputs/fixed_axes.py",
        "found = {classes.find(site) for site in fixed}",
        "found = fixed",
        "the length of an array is forgotten behind a statement",
        (f"{ARRAYS}::test_random_outputs",),
    ),
    Mutation(
        "names-in-order",
        "ucle/inputs/dictionaries.py",
        "return all(key_kind(type_) in KINDS_OF_TIME for type_ in types)",
        "return all(map(key_kind, types))",
        "a program runs along names in the order of the alphabet",
        (f"{TIMES}::test_what_has_no_meaning",),
    ),
    Mutation(
        "twice-a-time",
        "ucle/lowering/syntax_to_logical.py",
        "len(times) != 1 or dict(affine.terms)[times[0]] != 1:",
        "len(times) != 1:",
        "twice the position of a time is read like another",
        (f"{TIMES}::test_what_has_no_meaning",),
    ),
    Mutation(
        "times-of-two-dictionaries",
        "ucle/language/shared_times.py",
        "            classes.join(read[0].axis, label)\n",
        "",
        "what is read at the time before has numbers in the place of times",
        (f"{TIMES}::test_what_runs_along_times",),
    ),
    Mutation(
        "labels-with-sizes-have-the-times",
        "ucle/language/shared_times.py",
        "return (1, open_ones[0]) if len(open_ones) == 1 else",
        "return (1, free[0]) if len(open_ones) == 1 else",
        "the offsets of a window have the times of what it is read from",
        (f"{SHIFTED}::test_against_numpy",),
    ),
    Mutation(
        "ends-of-whole-steps",
        "ucle/lazy/periods.py",
        "ends = self._gather(elementwise(nothing.name, mask, order), nothing.name",
        "ends = self._gather(order, nothing.name",
        "the first entry that is stored is missing where another series has an earlier one",
        ("tests/lazy/test_time_series.py::test_methods_take_what_is_stored",),
    ),
    Mutation(
        "permissive-reads-count-times",
        "ucle/lowering/syntax_to_logical.py",
        "by_number = not index.permissive and",
        "by_number = index.permissive and",
        "what is read at the number of a time is refused",
        (f"{SHIFTED}::test_counted_dates",),
    ),
    Mutation(
        "limits-come-late",
        "ucle/language/bounds.py",
        "if limits:  # other reads",
        "if not limits:  # other reads",
        "a label that a read limits is as long as another axis that it moves along",
        (f"{SIZES}::test_sizes_follow",),
    ),
    Mutation(
        "lengths-without-squares",
        "ucle/language/functions.py",
        '"normalize": "x * finite(1 / sqrt(sum(square(abs(x)))))",',
        '"normalize": "x * finite(1 / sqrt(sum(abs(x))))",',
        "the length of a vector is not that of its squares",
        (f"{ALONG}::test_programs",),
    ),
    Mutation(
        "stated-sizes-noticed",
        "ucle/pipeline/notices.py",
        "if label not in part.over or bound.bounds[axis].exact:",
        "if label not in part.over:",
        "a mean over a size that was stated is noticed, too",
        (f"{NOTICES}::test_nothing_to_notice",),
    ),
    Mutation(
        "full-tables-noticed",
        "ucle/pipeline/notices.py",
        "known.entries < math.prod(bound.shape)",
        "known.entries <= math.prod(bound.shape)",
        "a table that stores all entries is noticed, too",
        (f"{NOTICES}::test_nothing_to_notice",),
    ),
    # ---- Views for any client ----
    Mutation(
        "views-with-kernels-all-the-same",
        "ucle/program/compiled_program.py",
        'build, preparations = self._decomposed_as("relational")',
        'build, preparations = self._decomposed_as("auto")',
        "create_views(kernels=False) makes views that call kernels",
        ("tests/run/test_views.py::test_a_view_says_that_it_needs_kernels",),
    ),
    Mutation(
        "views-without-a-comment",
        "ucle/run/views.py",
        "            if calls_kernels:\n",
        "            if not calls_kernels:\n",
        "views that call kernels do not say so, and others do",
        ("tests/run/test_views.py::test_a_view_says_that_it_needs_kernels",),
    ),
    # ---- Operands that conditions guard ----
    Mutation(
        "guards-the-other-way",
        "ucle/language/guard_operands.py",
        "((left, right, not holds), (right, left, holds))",
        "((left, right, holds), (right, left, not holds))",
        "what is less than a bound counts as greater",
        (f"{GUARDS}::test_answers_are_those_of_the_text[when(d[i] >= 2, log(d[i]))]",),
    ),
    Mutation(
        "guards-of-either",
        "ucle/language/guard_operands.py",
        "if operator in (CONJUNCTIONS if holds else DISJUNCTIONS):",
        "if operator in (*CONJUNCTIONS, *DISJUNCTIONS):",
        "one of two conditions counts as both",
        (f"{GUARDS}::test_other_operands_are_left_alone[when(d[i] > 0 or x[i] > 0, 1 / d[i])]",),
    ),
    Mutation(
        "integers-that-a-guard-made-floats",
        "ucle/language/guard_operands.py",
        "if _is_partial(part) and not (guard.is_fractional and _keeps_integers(part)):",
        "if _is_partial(part):",
        "a whole quotient behind a fractional bound is a float",
        (f"{GUARDS}::test_integers_stay_integers[when(n[i] > 0.5, floor_divide(7, n[i]))]",),
    ),
    Mutation(
        "zero-beside-the-guard",
        "ucle/operators/comparisons.py",
        "return replace(a, low=min(low, 1), high=max(a.high, 1), nonzero=True)",
        "return replace(a, high=max(a.high, 1))",
        "a guarded divisor may be 0, so that its quotients are dense",
        (f"{GUARDS}::test_numbers_some_of_which_are_zero",),
    ),
    Mutation(
        "gradients-by-what-computes-the-same",
        "ucle/lazy/share_nodes.py",
        "new if node in own else known.setdefault(_key(new), new)",
        "known.setdefault(_key(new), new)",
        "a gradient is by all tensors that compute the same as one of them",
        (f"{SHARED}::test_gradients_are_by_one_object_and_not_by_what_computes_the_same",),
    ),
    Mutation(
        "sums-along-any-axis-are-the-same",
        "ucle/lazy/share_nodes.py",
        "for each in fields(node))",
        'for each in fields(node) if each.name not in ("output", "axes"))',
        "the sum along one axis stands for that along another",
        (f"{SHARED}::test_labels_in_other_places_are_not_the_same",),
    ),
    Mutation(
        "tensors-wait-on-tapes",
        "ucle/plan/fuse_dense_steps.py",
        "key=lambda x: (growth(x), -places[x])",
        "key=places.__getitem__",
        "the lines of a tape stay in the order in which they were written",
        ("tests/plan/test_tape_order.py::test_tensors_of_windows_do_not_wait_for_each_other",),
    ),
    Mutation(
        "first-states-are-measured-twice",
        "ucle/lazy/loops.py",
        "settle(result[name].to_arrow())",
        "result[name].to_arrow()",
        "the first state of a loop is measured again for its condition",
        (f"{FACTS}::test_loops_measure_their_first_state_once",),
    ),
    Mutation(
        "one-dictionary-for-all-settled-tables",
        "ucle/database/dictionary_sizes.py",
        "memory.get(source.origin) or source_version(session, source)",
        "str(source.origin) if memory else source_version(session, source)",
        "a table in memory gets the size of the dictionary of another one",
        (f"{FACTS}::test_settled_tables_in_memory_are_measured_once",),
    ),
    Mutation(
        "pairs-of-times-for-nothing",
        "ucle/optimiser/repartition_cost.py",
        "        way += _cost_of_pairs(sized, name)\n",
        "        way += 0.0\n",
        "windows of a long series are made as pairs, in a compressed array",
        ("tests/lazy/test_windows_of_time.py::test_long_series_have_windows_of_sql[native-30]",),
    ),
    Mutation(
        "tables-that-were-written",
        "ucle/database/change_detection.py",
        "lambda table: fold_name(table.parts[-1]) != folded",
        "lambda table: folded != table",
        "what was seen of a table stays known when a result is written into it",
        (
            "tests/database/test_change_detection.py"
            "::test_a_table_that_is_written_is_looked_at[memory]",
        ),
    ),
    Mutation(
        "times-that-recur",
        "sqlgen/input_tables.py",
        "return source.times.unique and is_the_column(source.times, key)",
        "return is_the_column(source.times, key)",
        "times are numbered once for each row that has them",
        ("tests/lazy/test_windows_of_time.py::test_rows_that_share_a_time[native-count]",),
    ),
    Mutation(
        "products-in-any-array",
        "ucle/plan/kernel_choice.py",
        "batched=words == [SUM.stem, MULT.stem] and _has_product(pattern),",
        "batched=words == [SUM.stem, MULT.stem],",
        "sums of products inside of arrays are priced as matrix products",
        ("tests/plan/test_kernel_choice.py::test_products_of_matrices_inside_of_arrays",),
    ),
    Mutation(
        "fills-in-steps",
        "sqlgen/time_windows.py",
        "there = exp.If(this=differs(value, node.input.type), true=value)",
        "there = exp.If(this=exp.false(), true=value)",
        "steps whose times are counted have no entries",
        (
            "tests/lazy/test_windows_of_time.py"
            "::test_times_are_counted_beside_their_entries[native-some-DOUBLE]",
        ),
    ),
)
"""Each is caught by the tests that it names."""
