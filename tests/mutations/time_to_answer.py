"""Mistakes in what is kept for the next answer: keys, caches, and versions of tables.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

KEYS = "tests/foundation/test_exact_key.py"
CACHES = "tests/foundation/test_caches.py"
PLANS = "tests/pipeline/test_plan_cache.py"
LIKE = "tests/pipeline/test_like_shapes.py"
ORDERS = "tests/optimiser/test_join_order.py"
RECORDS = "tests/foundation/test_dataclasses.py"
NUMBERS = "tests/foundation/test_arrow_numbers.py"
GRAMMAR = "tests/language/test_grammar.py"
IMPORTS = "tests/project/test_imports.py"
ROWS = "tests/run/test_small_rows.py"
TILES = "tests/run/test_reading_tiles.py"
SEARCH = "tests/optimiser/test_search.py"
PRICES = "tests/optimiser/test_known_prices.py"
POSITIONS = "tests/stats/test_positions.py"
COUNTS = "tests/stats/test_position_counts.py"
SPELLED = "tests/pipeline/test_spelled_out.py"
MEMORY = "tests/optimiser/test_memory_prices.py"

TIME_TO_ANSWER: tuple[Mutation, ...] = (
    # ---- Keys ----
    Mutation(
        "tables-dropped-between-a-statement-and-its-rows",
        "ucle/database/temporary_tables.py",
        "if is_running(connection):",
        "if False:",
        "rows of a statement are those of another one that drops a table",
        (
            "tests/database/test_whole_statements.py"
            "::test_a_table_is_dropped_after_the_rows_were_fetched",
        ),
    ),
    Mutation(
        "tables-without-rows-read-alone",
        "ucle/run/execute.py",
        "if UNKNOWN in values or not query.query.accepts(values):",
        "if UNKNOWN in values:",
        "a SELECT of a table without a row has a row",
        (f"{ROWS}::test_arrays_of_zeros_have_no_row",),
    ),
    Mutation(
        "zeros-without-signs",
        "ucle/foundation/exact_key.py",
        "parts += (kind, repr(each))",
        "parts += (kind, each)",
        "-0.0 and 0.0 have one key",
        (f"{KEYS}::test_what_python_or_a_list_of_parts_could_confuse",),
    ),
    Mutation(
        "truth-is-one",
        "ucle/foundation/exact_key.py",
        "parts += (kind, each)",
        "parts += (int, each)",
        "True and 1 have one key",
        (f"{KEYS}::test_what_python_or_a_list_of_parts_could_confuse",),
    ),
    Mutation(
        "lists-without-an-end",
        "ucle/foundation/exact_key.py",
        "parts += (kind, len(each))",
        "parts += (kind,)",
        "((1,), 2) and ((1, 2),) have one key",
        (f"{KEYS}::test_what_python_or_a_list_of_parts_could_confuse",),
    ),
    Mutation(
        "whatever-is-shared",
        "ucle/foundation/exact_key.py",
        "parts += (Same, first)",
        "parts += (Same,)",
        "a part that occurred before is any part that did",
        (f"{KEYS}::test_parts_that_are_shared",),
    ),
    # ---- Caches ----
    Mutation(
        "used-like-new",
        "ucle/foundation/caches.py",
        "        self._kept[key] = entry\n",
        "        self._kept = {key: entry, **self._kept}\n",
        "what was used last is dropped first",
        (f"{CACHES}::test_the_least_recently_used_goes_first",),
    ),
    Mutation(
        "nothing-is-dropped",
        "ucle/foundation/caches.py",
        "if spare >= 0:",
        "if spare >= -self._most_bytes:",
        "a cache grows to twice its bytes",
        (f"{CACHES}::test_the_least_recently_used_goes_first",),
    ),
    Mutation(
        "long-keys-are-short",
        "ucle/foundation/caches.py",
        "max(length_hint(key, 0), SHORT)",
        "SHORT",
        "large values are counted as late as small ones",
        (f"{CACHES}::test_values_are_counted_together_the_fewer_the_longer_their_keys_are",),
    ),
    # ---- Known prices ----
    Mutation(
        "alike-whatever-is-absorbed",
        "ucle/optimiser/known_prices.py",
        "*read, absorbed, *labels",
        "*read, *labels",
        "a vertex that makes a side dense has the price of one that does not",
        (f"{PRICES}::test_known_prices_are_those_computed_anew[0-False]",),
    ),
    Mutation(
        "alike-wherever-labels-are",
        "ucle/optimiser/known_prices.py",
        "read, places, *work",
        "read, *work",
        "a product with a transposed factor counts as the same product",
        (f"{SEARCH}::test_structural_numbers_tell_apart_where_labels_are",),
    ),
    Mutation(
        "optimum-by-names-of-another-program",
        "ucle/ir/layouts.py",
        "frozenset((role, names[name]) for",
        "frozenset((role, name) for",
        "a known optimum compresses labels by their names in the program that it was found for",
        (f"{SEARCH}::test_compressed_labels_are_renamed_with_the_others",),
    ),
    Mutation(
        "shared-layouts-not-read-back",
        "ucle/optimiser/dynamic_program.py",
        "layout_numbers = dict(fixed)",
        "layout_numbers = dict[str, int]()",
        "shared vertices are made in the layout that is cheapest without their readers",
        (f"{SEARCH}::test_layouts_that_pay_with_some_layout_of_a_shared_vertex[305]",),
    ),
    Mutation(
        "alike-in-each-run",
        "ucle/optimiser/known_prices.py",
        "type_.dtype, fixed, *seen",
        "type_.dtype, *seen",
        "what is computed in each run has the price of what is computed once",
        (f"{PRICES}::test_known_prices_are_those_computed_anew[3-False]",),
    ),
    Mutation(
        "alike-whatever-their-degrees",
        "stats/chain_bound.py",
        "return *super().signature(statistics), *_degrees(statistics).constraints.items()",
        "return super().signature(statistics)",
        "a join on a hub has the price of one on nodes of even degrees",
        (f"{PRICES}::test_degrees_are_told_apart[degrees]",),
    ),
    Mutation(
        "alike-wherever-their-entries-are",
        "stats/textbook.py",
        "return statistics.counts, statistics.derived is None, rows",
        "return statistics.counts, statistics.derived is None",
        "tensors have the prices of others with as many entries in other places",
        (f"{PRICES}::test_places_of_entries_are_told_apart[occupancy]",),
    ),
    Mutation(
        "small-whatever-is-copied",
        "ucle/optimiser/limits.py",
        "COPIED = 64\n",
        "COPIED = 0.1\n",
        "copies of operands for every row exceed the memory limit",
        ("tests/optimiser/test_small_vertices.py::test_all_that_small_vertices_may_do_fits[True]",),
    ),
    # ---- Plans ----
    Mutation(
        "plans-for-any-options",
        "ucle/pipeline/plan_cache.py",
        "ExactKey.find((source, facts, options))",
        "ExactKey.find((source, facts))",
        "a plan is used under options that it was not made for",
        (f"{PLANS}::test_options_are_in_the_key",),
    ),
    Mutation(
        "plans-for-any-statistics",
        "ucle/pipeline/plan_cache.py",
        "        placed.statistics,\n",
        "",
        "a plan for few entries is used for many",
        (f"{PLANS}::test_other_statistics",),
    ),
    Mutation(
        "other-numbers-in-the-statement",
        "ucle/pipeline/artifacts.py",
        "                small_arrays(self.inputs),\n",
        "                tuple(small_arrays(self.inputs)),\n",
        "a small array is computed with as it was in an earlier program",
        (f"{PLANS}::test_small_arrays_are_written_into_statements_as_they_are",),
    ),
    Mutation(
        "texts-of-operators-that-are-gone",
        "ucle/program/registry.py",
        "    template.cache_clear()\n    forget_parsed()\n",
        "    template.cache_clear()\n",
        "a program is parsed with an operator that was replaced since",
        (f"{PLANS}::test_an_operator_that_is_registered_again",),
    ),
    # ---- Plans for data of like shape ----
    Mutation(
        "plans-for-any-sizes",
        "ucle/pipeline/plan_cache.py",
        "if shape.is_like(model.shape, factor)), None)",
        "), None)",
        "a plan for few entries is fitted to many",
        (f"{LIKE}::test_sizes_beyond_a_factor_of_two",),
    ),
    Mutation(
        "drift-from-the-last-data",
        "ucle/pipeline/plan_cache.py",
        "        fitted_choices.put(key, fitted)\n",
        "        fitted_choices.put(key, fitted)\n"
        "        models.put(shape.facts, (Model(shape, fitted),))\n",
        "a plan is fitted step by step to data of any size",
        (f"{LIKE}::test_drift_is_measured_from_the_data_of_the_choice",),
    ),
    Mutation(
        "fitted-again-each-time",
        "ucle/pipeline/plan_cache.py",
        "        fitted_choices.put(key, fitted)\n",
        "",
        "a fitted plan is not kept for its own data",
        (f"{LIKE}::test_a_fitted_plan_is_kept_for_its_own_data",),
    ),
    Mutation(
        "every-size-is-kept",
        "ucle/pipeline/plan_cache.py",
        "*kept[: MOST_MODELS - 1]",
        "*kept",
        "choices for more and more sizes of a program are kept",
        (f"{LIKE}::test_it_is_cleared_and_bounded",),
    ),
    Mutation(
        "like-shapes-stay-on",
        "ucle/pipeline/plan_cache.py",
        "    if factor is None:\n        return None\n",
        "    factor = factor or 2.0\n",
        "plans of other programs are taken over although that is switched off",
        (f"{LIKE}::test_it_can_be_switched_off",),
    ),
    Mutation(
        "any-joins-and-checks",
        "ucle/pipeline/plan_cache.py",
        "if fitted is None or not keeps_joins_and_checks(before.program, fitted.program):",
        "if fitted is None:",
        "a plan is fitted to a program that has to make tensors dense",
        (f"{LIKE}::test_facts_that_follow_from_values",),
    ),
    Mutation(
        "shapes-without-options",
        "ucle/pipeline/shapes.py",
        "        options,\n    )\n",
        "    )\n",
        "a plan is fitted that was chosen under other options",
        (f"{LIKE}::test_options_that_differ",),
    ),
    Mutation(
        "shapes-without-signs",
        "ucle/pipeline/shapes.py",
        "return (end > 0) - (end < 0), math.isinf(end)",
        "return 0, math.isinf(end)",
        "a plan for positive numbers is fitted to negative ones",
        (f"{LIKE}::test_facts_that_differ",),
    ),
    Mutation(
        "shapes-without-values",
        "ucle/pipeline/shapes.py",
        "known = ends[:1] if ends[0] == ends[1] else tuple(map(_end_facts, ends))",
        "known = tuple(map(_end_facts, ends))",
        "a plan for ones is fitted to other numbers",
        (f"{LIKE}::test_facts_that_differ",),
    ),
    Mutation(
        "one-is-like-two",
        "ucle/pipeline/shapes.py",
        "return tuple(0 if x == 0 else 1 if x <= 1 else 2 for x in added)",
        "return tuple(0 if x == 0 else 2 for x in added)",
        "a plan for a label of size 1 is fitted to more",
        (f"{LIKE}::test_one_and_two_are_not_alike",),
    ),
    Mutation(
        "fits-as-before",
        "ucle/pipeline/refit.py",
        "if not all(costed.fits(vertex, chosen[vertex.name]) for vertex in program.vertices):",
        "if not program:",
        "a plan is fitted to arrays that are too large for it",
        (f"{LIKE}::test_limits_of_a_kernel_are_checked_again",),
    ),
    Mutation(
        "merged-as-before",
        "ucle/optimiser/join_order.py",
        "if not may_merge_all(logical, self.merges, known):",
        "if not logical:",
        "statements are merged although the order of their products matters now",
        (f"{ORDERS}::test_merges_are_made_again_only_where_they_are_allowed",),
    ),
    # ---- Versions ----
    Mutation(
        "one-table-after-the-other",
        "ucle/database/data_versions.py",
        "        _look_at_tables(session, names)\n",
        "        _look_at_tables(session, names[:1])\n",
        "each table of a compilation is looked up by itself",
        (f"{PLANS}::test_two_tables_are_looked_at_together",),
    ),
    # ---- The first answer ----
    Mutation(
        "equal-to-a-derived-object",
        "ucle/foundation/dataclasses.py",
        "if _other_.__class__ is _self_.__class__:",
        "if isinstance(_other_, _self_.__class__):",
        "an object is equal to one of a derived class",
        (f"{RECORDS}::test_objects_of_two_classes_are_not_equal",),
    ),
    Mutation(
        "hash-of-all-fields",
        "ucle/foundation/dataclasses.py",
        "if (x.compare if x.hash is None else x.hash)]",
        "]",
        "fields that are not compared are hashed",
        (f"{RECORDS}::test_objects_are_those_of_the_standard_library",),
    ),
    Mutation(
        "columns-count-on",
        "ucle/language/lr_parser.py",
        "line_start = place - len(found) + found.rindex(",
        "line_start += 0 * found.rindex(",
        "columns are counted from the beginning of the text",
        (f"{GRAMMAR}::test_tokens_know_their_places",),
    ),
    Mutation(
        "words-are-names",
        "ucle/language/lr_parser.py",
        'if name == "NAME" and found in scanner.words:',
        'if name == "" and found in scanner.words:',
        "`not` is a name where an operand stands",
        (f"{GRAMMAR}::test_it_parses_as_lark",),
    ),
    Mutation(
        "slices-from-the-front",
        "ucle/foundation/arrow_numbers.py",
        "values.offset * dtype.itemsize",
        "0",
        "a slice of an Arrow array has the numbers before it",
        (f"{NUMBERS}::test_arrays_of_all_types_and_sizes",),
    ),
    Mutation(
        "numbers-by-way-of-pandas",
        "ucle/run/read_tuples.py",
        "return numpy_array(values).astype(",
        "return values.to_numpy(zero_copy_only=False).astype(",
        "a first sum imports pandas",
        (f"{IMPORTS}::test_a_first_sum_brings_what_it_needs",),
    ),
    # ---- Rows without tables ----
    Mutation(
        "parameters-whatever-the-query-does",
        "sqlgen/parameter_query.py",
        "if part} - _PARTS or",
        "if part} - set(select.args) or",
        "a query with LIMIT or GROUP BY loses its tables, too",
        (f"{ROWS}::test_queries",),
    ),
    Mutation(
        "rows-without-doubts",
        "ucle/run/execute.py",
        "if script.doubts and not _are_finite(made, query):",
        "if script.doubts and not made:",
        "infinity in a row is not looked at",
        (f"{ROWS}::test_a_state_that_outgrows_its_type",),
    ),
    Mutation(
        "rows-outlast-transactions",
        "ucle/run/execute.py",
        "if number is None or self._session.is_in_transaction(number):",
        "if number is None:",
        "a row of a transaction stays when that is rolled back",
        (f"{ROWS}::test_it_goes_with_its_transaction",),
    ),
    Mutation(
        "rows-of-any-size",
        "ucle/run/script.py",
        "return {} if keyless and size <= MOST_ROW_BYTES else None",
        "return {} if keyless else None",
        "a large result is a row, too",
        (f"{ROWS}::test_larger_ones_are_in_tables",),
    ),
    Mutation(
        "large-parameters",
        "ucle/plan/parameters.py",
        "        if total > MOST_PARAMETER_BYTES:\n            break",
        "        if total < 0:\n            break",
        "large tensors are parameters, too",
        (f"{ROWS}::test_larger_ones_are_in_tables",),
    ),
    Mutation(
        "rows-as-threads-made-them",
        "ucle/run/execute.py",
        "sorted((row[:-1] for row in rows), key=lambda row: row[: query.keys])",
        "[row[:-1] for row in reversed(rows)]",
        "rows of a result are in the order in which DuckDB returned them",
        (f"{ROWS}::test_few_rows_and_tables_are_the_same",),
    ),
    Mutation(
        "changes-within-transactions",
        "ucle/database/change_detection.py",
        "        if number != first + session.statements + 1:",
        "        if number < first:",
        "what a transaction has changed before is not seen within it",
        (
            "tests/database/test_change_detection.py::test_a_transaction_that_has_changed_a_table[memory]",
        ),
    ),
    Mutation(
        "tables-made-once",
        "ucle/database/temporary_tables.py",
        "        if not self._dropped:\n            self.table()",
        "        if self._table is None:\n            self.table()",
        "a table that a rollback has taken away is not made again",
        (f"{ROWS}::test_it_goes_with_its_transaction",),
    ),
    Mutation(
        "parameters-of-another-type",
        "ucle/run/script.py",
        'if relation.layout.scalar else "BLOB"',
        'if not relation.layout.scalar else "BLOB"',
        "numbers and arrays change their types",
        (f"{ROWS}::test_types",),
    ),
    Mutation(
        "tiles-in-the-order-of-rows",
        "ucle/run/read_tuples.py",
        "places[numbers[:count]] = payload_matrix(",
        "places[:count] = payload_matrix(",
        "tiles that are missing or out of order land elsewhere",
        (f"{TILES}::test_any_order",),
    ),
    # ---- Statistics of large tables, column by column ----
    Mutation(
        "order-by-distance",
        "stats/position_counts.py",
        "if _follow(positions, np.greater):",
        "if _follow(positions, np.not_equal):",
        "positions whose neighbours differ count as distinct ones",
        (f"{COUNTS}::test_one_equal_pair_among_many",),
    ),
    Mutation(
        "pieces-without-their-ends",
        "stats/position_counts.py",
        "        relation(later[n : n + CHUNK], earlier[n : n + CHUNK]).all()",
        "        relation(later[n : n + CHUNK - 1], earlier[n : n + CHUNK - 1]).all()",
        "the last position of each piece is not compared with the next one",
        (f"{COUNTS}::test_equal_neighbours_in_order",),
    ),
    Mutation(
        "positions-of-fewer-rows",
        "stats/positions.py",
        "return positions if end == table.rows else None",
        "return positions",
        "memory that nothing was read into counts as positions",
        (f"{POSITIONS}::test_all_rows_have_to_be_read",),
    ),
    Mutation(
        "positions-beyond-their-bits",
        "stats/positions.py",
        "if positions.min() < 0 or positions.max() >> sum(table.bits):",
        "if positions.min() < 0:",
        "coordinates that are new since extents were read are counted as others",
        (f"{POSITIONS}::test_tables_that_are_not_as_stated_have_no_positions[sizes2-4000]",),
    ),
    Mutation(
        "other-rows-not-looked-at",
        "stats/measure.py",
        "scan(Table(source, sizes, rows, prefix), counts and entries == rows)",
        "scan(Table(source, sizes, entries, prefix), counts and entries == rows)",
        "a large table with stored fills is never read column by column",
        (f"{POSITIONS}::test_stored_fills_leave_positions_in_one_scan",),
    ),
    Mutation(
        "finite-by-the-least",
        "stats/measure.py",
        "all(map(math.isfinite, (low, high)))",
        "math.isfinite(low)",
        "a large table with NaN or infinity is taken to be finite",
        (f"{POSITIONS}::test_a_late_number_that_is_not_finite_is_noticed[table-False-nan]",),
    ),
    Mutation(
        "ends-with-stored-fills",
        "stats/measure.py",
        "    if entries < rows:  # V and",
        "    if entries < 0:  # V and",
        "the range of the entries includes the fill",
        (f"{POSITIONS}::test_stored_fills_are_no_entries[table-3.0]",),
    ),
    Mutation(
        "estimates-of-even-spreads",
        "stats/position_counts.py",
        "        mixed = (mixed ^ (mixed >> np.uint64(shift))) * multiplier",
        "        mixed = mixed * multiplier",
        "statistics, and with them plans, depend on whether the module was built",
        (f"{COUNTS}::test_both_ways_count_alike",),
    ),
    # ---- Prices of memory ----
    Mutation(
        "scattered-rows-for-nothing",
        "ucle/plan/prices.py",
        "    if _is_far(whole, count):\n"
        "        return profile.far + size * profile.read * SCATTERED\n",
        "",
        "rows and states anywhere in main memory cost what they cost in a cache",
        (f"{MEMORY}::test_long_lists_of_edges_are_cut_into_tiles[1000000]",),
    ),
    Mutation(
        "shared-rows-for-nothing",
        "ucle/plan/prices.py",
        "            if built > CACHED and not _is_far(built, kept):\n"
        "                each += built / kept * profile.read  # from the cache that cores share\n",
        "",
        "arrays that lie anywhere in the cache that cores share are read for nothing",
        (f"{MEMORY}::test_arrays_are_fetched_from_the_cache_that_cores_share",),
    ),
    Mutation(
        "few-long-rows-for-something",
        "ucle/plan/prices.py",
        "return whole > SHARED and count * POINTER > POINTED",
        "return whole > SHARED",
        "a table of few long rows costs what one of many short ones costs",
        (f"{MEMORY}::test_few_long_tuples_are_fetched_in_time",),
    ),
    Mutation(
        "any-number-of-open-groups",
        "ucle/plan/prices.py",
        "(profile.far if groups > OPEN else 0.0)",
        "0.0",
        "entries in any order go into thousands of tiles",
        (f"{MEMORY}::test_entries_go_into_few_groups_or_many",),
    ),
    Mutation(
        "calls-for-nothing",
        "ucle/plan/prices.py",
        "                each += profile.call + (profile.made if made_bytes else 0.0)\n",
        "                pass\n",
        "a kernel may be called for each of a million short rows",
        (
            "tests/optimiser/test_sparse_einsum.py"
            "::test_kernels_that_are_called_for_many_tuples_cost_something",
        ),
    ),
    # ---- Searches that end early ----
    Mutation(
        "cheapest-first",
        "ucle/optimiser/join_order.py",
        "key=lambda product: -costs[self._taker(product.key[0])]",
        "key=lambda product: costs[self._taker(product.key[0])]",
        "products of statements that cost nothing take the search's budget",
        (f"{ORDERS}::test_the_dearest_statement_is_searched_first",),
    ),
    Mutation(
        "nothing-is-too-cheap",
        "ucle/optimiser/join_order.py",
        "if costs[self._taker(product.key[0])] > least]",
        "if costs[self._taker(product.key[0])] >= 0]",
        "orders of statements that cost less than a price are priced",
        (f"{ORDERS}::test_statements_that_cost_nothing_are_not_searched",),
    ),
    Mutation(
        "cut-without-a-word",
        "ucle/optimiser/join_order.py",
        "self._is_cut |= len(products) < len(merged.products)",
        "self._is_cut |= len(products) > len(merged.products)",
        "explain does not say that orders were left out",
        (f"{ORDERS}::test_statements_that_cost_nothing_are_not_searched",),
    ),
    # ---- What is spelled out once ----
    *(
        Mutation(
            f"spelled-out-without-{name}",
            "ucle/pipeline/spelled_out.py",
            "about = options.bounds, options.outputs, options.path, options.store",
            f"about = ({rest},)",
            f"a text that is known is not checked against {name}",
            (
                f"{SPELLED}::test_options_are_checked_against_a_text_that_is_known[options{n}-{error}]",
            ),
        )
        for n, name, rest, error in (
            (0, "bounds", "options.outputs, options.path, options.store", "LabelError"),
            (3, "stores", "options.bounds, options.outputs, options.path", "NameResolutionError"),
        )
    ),
    Mutation(
        "planned-each-time",
        "ucle/pipeline/stages.py",
        "return _plans.get_or_make(",
        "return _plans.get_or_make(None and ",
        "a plan is made again although nothing changed",
        (f"{SPELLED}::test_the_same_text_is_spelled_out_and_planned_once",),
    ),
    Mutation(
        "checksum-of-the-last-part",
        "udf_kernels/checksums.py",
        "ucle_checksum(view, len(view), before)",
        "ucle_checksum(view, len(view), 0)",
        "a change in a part of an input before the last one goes unnoticed",
        ("tests/kernels/test_checksums.py::test_lengths_and_what_comes_before[compiled]",),
    ),
    Mutation(
        "array-put-into-a-list",
        "ucle/plan/load_in_list.py",
        "case ByReference(), [Read(name, column=None) as read] if name in listed:",
        "case ByReference(), [Read(name, column=None) as read] if not name:",
        "an array that lies in a list is copied into another one",
        ("tests/plan/test_load_in_list.py::test_a_script_that_is_run_by_hand",),
    ),
    Mutation(
        "file-in-each-round",
        "ucle/plan/partition_aggregates.py",
        "return not memory.is_exceeded_by(memory.rows(view.tensor, scan.layout) * size)",
        "return False",
        "each round reads a file again",
        ("tests/plan/test_rounds.py::test_a_file_is_read_once_for_all_rounds[parquet]",),
    ),
)
"""Each is caught by the tests that it names."""
