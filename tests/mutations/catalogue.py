"""The mistakes: each a text of one file, what stands there instead, and what that breaks.

Each has a program in `test_sharp.py` that shows it, or names other tests that notice it, so that a
run is short. Here are those of the compiler; `around` has those of what stands around it.
"""

from __future__ import annotations

from .around import AROUND
from .bits_and_chains import BITS_AND_CHAINS
from .coming_in import COMING_IN
from .forests import FORESTS
from .infinite_states import INFINITE_STATES
from .linear_algebra import LINEAR_ALGEBRA
from .look_ups import LOOK_UPS
from .maintenance import MAINTENANCE
from .models import MODELS
from .multiway import MULTIWAY
from .mutation import Mutation
from .on_the_desk import ON_THE_DESK
from .order_and_names import ORDER_AND_NAMES
from .proven_forms import PROVEN_FORMS
from .rows_and_words import ROWS_AND_WORDS
from .runs_and_bits import RUNS_AND_BITS
from .time_to_answer import TIME_TO_ANSWER
from .wide_tables import WIDE_TABLES

MUTATIONS: tuple[Mutation, ...] = (
    # ---- What entries that are not stored are worth ----
    Mutation(
        "full-join-inner",
        "ucle/ir/fills.py",
        "        kind = JoinKind.FULL\n",
        "        kind = JoinKind.INNER\n",
        "X + Y loses what only one side stores",
    ),
    Mutation(
        "left-join-right",
        "ucle/ir/fills.py",
        "        kind = JoinKind.LEFT\n",
        "        kind = JoinKind.RIGHT\n",
        "the wrong side of an outer join keeps its rows",
    ),
    Mutation(
        "infinite-operands-dropped",
        "ucle/ir/ranges.py",
        "operator.absorbs_left(fills[0]) and absorbed(right, left, left=True)",
        "operator.absorbs_left(fills[0])",
        "0 * inf and 0 * NaN become 0 where the 0 is not stored",
    ),
    Mutation(
        "absorbs-some-other-value",
        "ucle/ir/fills.py",
        "by_left and same_value(joined, absorbed_worth(operator, fills[0], dtype, left=True)),",
        "by_left,",
        "0 * x is taken to be what 0 * (infinite fill) is",
        ("tests/ir/test_fills.py::test_an_infinite_fill_beside_one_that_absorbs",),
    ),
    Mutation(
        "densify-forgotten",
        "ucle/ir/fills.py",
        "densify_right = keep_left and not right_keys <= left_keys",
        "densify_right = False",
        "x[i] + y[j] has only the pairs that are stored",
    ),
    Mutation(
        "array-of-fill-counted-once",
        "ucle/ir/fills.py",
        "value = operator.reduce_copies(joined_fill(vertex, types), inside, dtype)",
        "value = operator.reduce_copies(joined_fill(vertex, types), 1, dtype)",
        "a tuple that is not met counts as one entry, not as an array of them",
        (
            "tests/ir/test_fills.py"
            "::test_arrays_that_are_not_stored[T[i] += X[i,j,k] + 1-expected0]",
        ),
    ),
    Mutation(
        "demoted-labels-counted",
        "ucle/ir/fills.py",
        "cells = math.prod(label.bound for label in vertex.reduced if label.name in promoted)",
        "cells = math.prod(label.bound for label in vertex.reduced)",
        "entries inside the arrays are counted as missing tuples",
    ),
    Mutation(
        "missing-entries-ignored",
        "ucle/plan/plan_program.py",
        "missing_entries(vertex, types, decomposition) if aggregated else None,",
        "None,",
        "sums, products and extremes forget the entries that are not stored",
    ),
    Mutation(
        "what-is-carried-replaces-others",
        "ucle/plan/plan_program.py",
        "varies = name if type_.entries.varies else None",
        "varies = None",
        "in a loop, an input that reads the table of the first state becomes the state",
        ("tests/run/test_prepared.py::test_only_the_carried_input_is_replaced[native-Sx-False]",),
    ),
    Mutation(
        "densify-not-planned",
        "ucle/plan/plan_program.py",
        "Densify(left) if rule.densify_left else left,",
        "left,",
        "the plan joins a sparse side where the rule asks for a dense one",
    ),
    Mutation(
        "map-keeps-the-fill",
        "ucle/ir/vertex_types.py",
        "            fill = step(fill)\n",
        "            step(fill)\n",
        "exp(X) is 0 where X is not stored",
    ),
    Mutation(
        "reduced-fill-not-repeated",
        "ucle/ir/vertex_types.py",
        "        return operator.reduce_copies(fill, size, dtype)\n",
        "        return fill\n",
        "a row that is not stored at all sums up to one fill",
    ),
    Mutation(
        "fill-taken-for-zero",
        "ucle/run/array_tables.py",
        "differs = _differing_rows(rows, type_.fill)",
        "differs = _differing_rows(rows, 0)",
        "an array in memory with another fill loses its zeros",
    ),
    Mutation(
        "result-filled-with-zero",
        "ucle/run/stored_tensor.py",
        "result = filled_array(self.shape, self.fill, self.dtype)",
        "result = np.zeros(self.shape, dtype=self.dtype)",
        "to_numpy() shows 0 where the fill is another",
    ),
    # ---- What a statement means ----
    Mutation(
        "alpha-renaming-dropped",
        "ucle/language/resolve.py",
        "fresh = {label: self._fresh(label) for label in over}",
        "fresh = {label: label for label in over}",
        "the label of an inner aggregation is that of the statement",
    ),
    Mutation(
        "sum-at-the-top",
        "ucle/language/resolve.py",
        "        if len(holders) == 1:\n",
        "        if not holders:\n",
        "relu(A[i,j] * w[j]) sums after relu, not inside",
    ),
    Mutation(
        "cse-ignores-maps",
        "ucle/lowering/share_subexpressions.py",
        "        vertex.combine,\n        vertex.maps,\n",
        "        vertex.combine,\n        (),\n",
        "exp(X) and log(X) become one vertex",
    ),
    Mutation(
        "cse-swaps-operands",
        "ucle/lowering/share_subexpressions.py",
        "if vertex.combine is not None and vertex.combine.commutative:",
        "if vertex.combine is not None:",
        "x - y and y - x become one vertex",
    ),
    Mutation(
        "cse-forgets-label-order",
        "ucle/lowering/share_subexpressions.py",
        "labels = tuple(own[theirs[label]] for label in existing.labels)",
        "labels = vertex.labels",
        "a shared vertex is read transposed where its labels come in another order",
    ),
    Mutation(
        "constant-on-the-wrong-side",
        "ucle/lowering/mapped_uses.py",
        "step = Partial(operator, number, first, signature.compute)",
        "step = Partial(operator, number, False, signature.compute)",
        "2 - x becomes x - 2",
    ),
    Mutation(
        "two-to-a-power",
        "ucle/lowering/mapped_uses.py",
        "and number == 2 and not first:",
        "and number == 2:",
        "2 ** x becomes x * x",
    ),
    Mutation(
        "chains-of-infinities",
        "ucle/language/factors.py",
        "    if exact and not all(type_.entries.finite for type_ in used):\n        return False\n",
        "",
        "a sum is moved inside a product with something infinite",
    ),
    Mutation(
        "summed-too-early",
        "ucle/lowering/pairwise.py",
        "needed = {name for name in names if name in self._kept or holders[name]}",
        "needed = {name for name in names if name in self._kept}",
        "a label is aggregated while another factor still needs it",
    ),
    Mutation(
        "path-positions",
        "ucle/lowering/contraction_orders.py",
        "held = [term for term in held if term not in (first, other)] + [result]",
        "held = [result] + [term for term in held if term not in (first, other)]",
        "a step of a path takes the wrong factors, as results go to the end",
        ("tests/language/test_language.py::test_paths_as_pairs",),
    ),
    Mutation(
        "merged-under-its-own-labels",
        "ucle/lowering/inline_statements.py",
        "taken = {label.name for label in (*into.labels, *into.own_labels)}",
        "taken = {label.name for label in place.labels}",
        "a label that an inner product sums over is taken for one of the outer product",
        (
            "tests/optimiser/test_join_order.py"
            "::test_labels_are_kept_apart[P[a,b] += N[a,j] * H[j,b]\\nQ[i,n] += P[i,j] * W[j,n]]",
        ),
    ),
    Mutation(
        "merged-whatever-else-uses-it",
        "ucle/lowering/find_inlinable.py",
        " or uses[name] > 1:",
        " or uses[name] > 2:",
        "a tensor that two statements use is merged into one of them",
        (
            "tests/optimiser/test_join_order.py"
            "::test_what_may_not_be_merged[P[i,m] += N[i,j] * H[j,m]\\nQ[i,n] += P[i,m] * P[m,n]]",
        ),
    ),
    Mutation(
        "merged-across-algebras",
        "ucle/lowering/find_inlinable.py",
        "one.reduce is not other.reduce:",
        "one is None:",
        "a minimum of sums is merged into a maximum of sums",
        (
            "tests/optimiser/test_join_order.py"
            "::test_what_may_not_be_merged[P[i,m] min= N[i,j] + H[j,m]\\nQ[i,n] max= P[i,m] + W[m,n]]",
        ),
    ),
    Mutation(
        "more-expensive-than-as-written",
        "ucle/optimiser/join_order.py",
        "if best.cost > written.cost * (1 - optimisations.association_gain):",
        "if best.cost < written.cost * (1 - optimisations.association_gain):",
        "the written order is taken where another one is cheaper, and the other way round",
        ("tests/optimiser/test_join_order.py::test_a_narrow_product_comes_first",),
    ),
    Mutation(
        "product-distributes-over-max",
        "ucle/operators/arithmetic.py",
        "distributes_over=SUMS,\n    binding=",
        'distributes_over=SUMS | {"max"},\n    binding=',
        "max of a product is taken factor by factor, wrong for negative ones",
    ),
    Mutation(
        "empty-product",
        "ucle/operators/reductions.py",
        "identity=lambda dtype: dtype.scalar(1),",
        "identity=lambda dtype: dtype.scalar(0),",
        "the product of nothing is 0",
        ("tests/language/test_semantics.py::test_an_empty_aggregate_is_the_identity[*=-1.0]",),
    ),
    Mutation(
        "comparisons-give-numbers",
        "ucle/language/promotion.py",
        "return Signature(compute, DType.BOOL if operator.indicates else compute)",
        "return Signature(compute, compute)",
        "x < y is 1.0 instead of True",
    ),
    Mutation(
        "float32-widened-by-constants",
        "ucle/language/promotion.py",
        'if result_type.kind == "f" and not any(map(_is_narrow, operands)):',
        'if result_type.kind == "f":',
        "2 * x of float32 is float64",
    ),
    # ---- Which decomposition ----
    Mutation(
        "minimum-not-reset",
        "ucle/optimiser/dynamic_program.py",
        "least = np.stack([",
        "least = np.minimum.accumulate([",
        "the minimum is kept from one output layout to the next, as in the paper's Algorithm 1",
        ("tests/optimiser/test_sparse_einsum.py::test_trees_are_optimal[7-paper]",),
    ),
    Mutation(
        "repartition-forgotten",
        "ucle/optimiser/dynamic_program.py",
        "row = min(row, floor + costed.repartition_cost(name, source, target))",
        "row = min(row, floor)",
        "the dynamic program takes a change of layout for free",
        ("tests/optimiser/test_sparse_einsum.py::test_trees_are_optimal[7-paper]",),
    ),
    Mutation(
        "repartition-forgotten-below-shared",
        "ucle/optimiser/dynamic_program.py",
        "            row = np.minimum(row, table.least[at] + move)\n",
        "            row = np.minimum(row, table.least[at])\n",
        "the dynamic program takes a change of layout above a shared vertex for free",
        ("tests/optimiser/test_search.py::test_dags_are_optimal[98]",),
    ),
    Mutation(
        "limits-ignored",
        "ucle/optimiser/limits.py",
        "return _held_by_vertex(sized, vertex, decomposition) <= sized.resources.memory",
        "return True",
        "plans exceed the memory limit",
        ("tests/optimiser/test_sparse_einsum.py::test_the_memory_limits_of_the_tests_bind",),
    ),
    Mutation(
        "pinned-beyond-memory",
        "ucle/optimiser/choose_decomposition.py",
        "(held := held_bytes(costed, decomposed, vertex)) > costed.resources.memory",
        "(held := held_bytes(costed, decomposed, vertex)) < 0",
        "a pinned decomposition may take any memory",
        ("tests/language/test_language.py::test_aggregates_that_cannot_spill_are_counted",),
    ),
    Mutation(
        "last-block-taken-for-whole",
        "sqlgen/repartitions.py",
        'count = exp.func("least", integer(block), left, copy=False)',
        "count = integer(block)",
        "the last block of an exchange of keys is longer than the axis",
        ("tests/plan/test_exchange.py::test_every_type[float32]",),
    ),
    Mutation(
        "equation-7-not-clamped",
        "stats/textbook.py",
        "min(max(estimate_occupied(entries, possible), low), high)",
        "estimate_occupied(entries, possible)",
        "a dense tensor is taken to have 63% of its tuples",
        ("tests/stats/test_statistics.py::test_equation_7_between_its_ends",),
    ),
    Mutation(
        "halved-without-aggregation",
        "stats/textbook.py",
        "        if not vertex.aggregates(decomposition):\n            return joined\n",
        "",
        "a join without aggregation is taken to lose tuples",
        ("tests/stats/test_statistics.py::test_nothing_aggregated_keeps_the_size_of_the_join",),
    ),
    # ---- Which kernel ----
    Mutation(
        "subtraction-swapped",
        "ucle/plan/kernel_choice.py",
        'return ChosenKernel(f"sca_vec_{operator.stem}", False)',
        'return ChosenKernel(f"vec_sca_{operator.stem}", False, swap=True)',
        "number - array becomes array - number",
    ),
    Mutation(
        "product-not-swapped",
        "ucle/plan/kernel_choice.py",
        "_product(pattern, right, left, True)",
        "_product(pattern, right, left, False)",
        "a matrix product takes its operands in the wrong order",
    ),
    Mutation(
        "outer-product-transposed",
        "ucle/plan/kernel_choice.py",
        "if not shared and output == left + right:",
        "if not shared and set(output) == set(left + right):",
        "an outer product whose output is transposed is not",
    ),
    Mutation(
        "values-not-swapped",
        "sqlgen/kernel_calls.py",
        "ordered = list(reversed(values)) if kernel.swap else list(values)",
        "ordered = list(values)",
        "kernels that take the right value first get the left one",
    ),
    Mutation(
        "capacity-too-small",
        "sqlgen/kernel_calls.py",
        "suffix = capacity_suffix(size, dtype.tag)",
        "suffix = capacity_suffix(size // 2, dtype.tag)",
        "the state of an aggregate has half the room that it needs",
    ),
    # ---- SQL ----
    Mutation(
        "slice-strides",
        "sqlgen/array_extents.py",
        "for axis in reversed(self.layout.dense):",
        "for axis in self.layout.dense:",
        "a tensor is taken apart by the strides of its transpose",
    ),
    Mutation(
        "stack-ignores-strides",
        "sqlgen/repartitions.py",
        "elif any(pieces.steps[axis] != inside.steps[axis] for axis in before.dense):",
        "elif False:",
        "parts whose axes are not the last ones are stacked as if they were",
    ),
    Mutation(
        "last-tile-as-long",
        "sqlgen/array_extents.py",
        'return exp.func("least", integer(tile), rest, copy=False)',
        "return integer(tile)",
        "the last tile of an axis is taken to be as long as the others",
    ),
    Mutation(
        "tiles-in-one-piece",
        "ucle/plan/repartition_paths.py",
        "return inner[:1] == joined and target.dense[-len(inner) :] == inner",
        "return True",
        "rows of tiles that lie apart are stacked with one length for all",
    ),
    Mutation(
        "last-stored-tile-not-cut",
        "sqlgen/table_scans.py",
        "if not source.tiles or inside.sizes == whole.sizes:",
        "if True:",
        "the last tile of a stored block reaches beyond its axis",
        (
            "tests/inputs/test_tiled_tables.py"
            "::test_blocks_whose_last_ones_are_cut_off[shape0-y[i] += A[i,j] * x[j]]",
        ),
    ),
    Mutation(
        "diagonal-of-symmetric-twice",
        "sqlgen/input_tables.py",
        "mirrored = mirrored.where(exp.NEQ(this=first.copy(), expression=second.copy()))",
        "mirrored = mirrored.where(exp.true())",
        "entries on the diagonal of a symmetric table count twice",
        ("tests/inputs/test_symmetric_tables.py::test_random_pairs",),
    ),
    Mutation(
        "compressed-operand-not-reversed",
        "ucle/plan/kernel_choice.py",
        'return f"r{vertex.combine.stem}" if reverse else vertex.combine.stem',
        "return vertex.combine.stem",
        "an operand that is compressed and the second one is divided by the first",
    ),
    Mutation(
        "absent-entries-as-zeros",
        "ucle/plan/kernel_choice.py",
        "absent=(fills[1 - first],),",
        "absent=(0,),",
        "what a compressed operand does not list is 0 where its fill is another number",
    ),
    Mutation(
        "mask-by-its-columns",
        "ucle/ir/masked_products.py",
        "kept = reader.labels in ((row, column), (row,), ())",
        "kept = reader.labels in ((row, column), (row,), (column,), ())",
        "a masked product is summed along rows where columns are asked for",
    ),
    Mutation(
        "full-join-keys",
        "sqlgen/plan_to_sql.py",
        "either(left_keys[x].copy(), right_keys[x].copy())",
        "left_keys[x].copy()",
        "rows of the right side alone have NULL for a key",
    ),
    Mutation(
        "absent-sides-swapped",
        "sqlgen/plan_to_sql.py",
        "            node.kind in (JoinKind.RIGHT, JoinKind.FULL),\n"
        "            node.kind in (JoinKind.LEFT, JoinKind.FULL),\n",
        "            node.kind in (JoinKind.LEFT, JoinKind.FULL),\n"
        "            node.kind in (JoinKind.RIGHT, JoinKind.FULL),\n",
        "the side that may be absent is not filled in",
    ),
    Mutation(
        "diagonal-not-picked",
        "sqlgen/plan_to_sql.py",
        "query = query.where(same, copy=False)",
        "pass",
        "A[i,i] takes all entries of A",
    ),
    Mutation(
        "count-of-what-was-met",
        "sqlgen/plan_to_sql.py",
        "unmet = exp.Paren(this=exp.Sub(this=cells, expression=met))",
        "unmet = exp.Paren(this=met)",
        "the correction for missing entries counts those that are there",
    ),
    Mutation(
        "integers-rounded",
        "sqlgen/scalar_operators.py",
        'argument = exp.Anonymous(this="trunc", expressions=[argument])',
        "pass",
        "int64(2.7) is 3",
    ),
    Mutation(
        "brackets-dropped",
        "sqlgen/scalar_operators.py",
        "return exp.Paren(this=value) if inside and isinstance(value, COMPOUND) else value",
        "return value",
        "(x + y) * z becomes x + y * z",
    ),
    # ---- Inputs and statistics ----
    Mutation(
        "distinct-dropped",
        "sqlgen/input_queries.py",
        "return exp.Count(this=exp.Distinct(expressions=[key]))",
        "return exp.Count(this=key)",
        "V counts entries instead of different coordinates",
        ("tests/stats/test_statistics.py::test_rows_that_share_a_coordinate_count_once[sum]",),
    ),
    Mutation(
        "duplicates-not-looked-for",
        "stats/measure.py",
        "    if not unique and survey.may_repeat:\n"
        "        checks.duplicates(survey.sizes, large=not exact)\n",
        "",
        "two rows with the same coordinates pass",
        ("tests/language/test_semantics.py::test_duplicates_are_summed_on_request",),
    ),
    Mutation(
        "nan-not-noticed",
        "stats/measure.py",
        "totals = float(entries), bool(finite), known_ends(low, high)",
        "totals = float(entries), True, known_ends(low, high)",
        "a table with NaN is taken to be finite",
    ),
    Mutation(
        "duplicates-out-of-order",
        "stats/measure.py",
        "                if not self.fetch(query(",
        "                if self.fetch(query(",
        "two rows of a large table with the same coordinates pass, unless no rows are alike",
        (
            "tests/database/test_statistics_cache.py::test_duplicates_are_found_wherever_they_are[i-j, i-2]",
        ),
    ),
    Mutation(
        "same-blocks-same-data",
        "ucle/database/data_versions.py",
        "return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)",
        "return (state.st_dev, state.st_ino, state.st_size)",
        "a table that two checkpoints have moved back to its old blocks is taken to be unchanged",
        ("tests/database/test_source_versions.py::test_updates_in_a_file",),
    ),
    Mutation(
        "notes-of-other-data",
        "ucle/database/statistics_cache.py",
        "            if of == digest(session, source):\n",
        "            if of:\n",
        "what was noted of a table is taken for what it holds now",
        ("tests/database/test_statistics_cache.py::test_the_next_process_reads_a_digest[auto]",),
    ),
    Mutation(
        "stored-of-other-data",
        "ucle/inputs/stored_layouts.py",
        "if noted is not None and (noted[0] != current or (database, table) not in tables):",
        "if noted is not None and (database, table) not in tables:",
        "an input that was stored is read after its table has changed",
        (
            "tests/database/test_store.py"
            "::test_nothing_stale_is_read[False-INSERT INTO X VALUES (5, 4, 2.5)]",
        ),
    ),
    Mutation(
        "first-layout-for-cheapest",
        "ucle/optimiser/pricing.py",
        "return min(layouts, key=rank)",
        "return layouts[0]",
        "an input that lies in several layouts is always read from the first",
        ("tests/database/test_store.py::test_a_later_program_reads_what_was_stored",),
    ),
    Mutation(
        "tables-not-verified-again",
        "ucle/run/current_data.py",
        "        if prepared is not None and versions.known:\n",
        "        prepared = prepared or self._latest\n        if prepared:\n",
        "a table that changed after compilation is not checked",
        (
            "tests/inputs/test_bad_data.py"
            "::test_data_that_changed_since[native-INSERT INTO t VALUES (7, [1, 2])-CoordinateError-i-below 2-coordinate 7-ucle.table(bounds=...) takes a larger one, or None for what the data says]",
        ),
    ),
    Mutation(
        "views-taken-for-unchanged",
        "ucle/inputs/table_changes.py",
        "all(x.known for x in seen)",
        "True",
        "what changes below a view goes unnoticed",
        (
            "tests/inputs/test_changed_data.py"
            "::test_what_does_not_fit_is_refused[memory-INSERT INTO t VALUES (60, 5, 1)-BoundError-relational-seen]",
        ),
    ),
    Mutation(
        "fewer-entries-are-not-stale",
        "ucle/inputs/table_changes.py",
        "fewer, more = sorted((compiled, current))",
        "fewer, more = compiled, current",
        "a table that has become ten times smaller is no reason for another plan",
        ("tests/inputs/test_changed_data.py::test_is_stale[0-10000-True]",),
    ),
    Mutation(
        "log-of-duplicates-is-stale",
        "sqlgen/input_queries.py",
        "    if source.sum_duplicates and not summed:\n",
        "    if source.sum_duplicates and distinct is Distinct.APPROXIMATE:\n",
        "rows that are added up count one by one when data is checked again",
        ("tests/inputs/test_changed_data.py::test_rows_that_are_added_up_count_once[memory-True]",),
    ),
    Mutation(
        "sparse-duplicates-kept",
        "ucle/inputs/inputs.py",
        'to_coordinates(spec.relation, f"input {name}").sum_duplicates()',
        'to_coordinates(spec.relation, f"input {name}")',
        "a scipy matrix with two entries at one place is refused",
        ("tests/language/test_semantics.py::test_duplicates_are_summed_on_request",),
    ),
    # ---- Kernels, their Python side ----
    Mutation(
        "float32-kernels-of-float64",
        "udf_kernels/element_types.py",
        'return base if tag == "f64" else f"{base}_{tag}"',
        'return base if tag in ("f64", "f32") else f"{base}_{tag}"',
        "tensors of float32 go to kernels of float64",
    ),
    Mutation(
        "parts-of-complex-swapped",
        "udf_kernels/arrow.py",
        '{"re": pa.array(numbers.real), "im": pa.array(numbers.imag)}',
        '{"re": pa.array(numbers.imag), "im": pa.array(numbers.real)}',
        "complex results of the Arrow route have their parts swapped",
    ),
    Mutation(
        "gathered-arguments",
        "udf_kernels/signatures.py",
        'return (*self.parameters[:start], f"{row}[]", *self.parameters[start + len(rows) :])',
        "return (*self.parameters[:start], row, *self.parameters[start + len(rows) :])",
        "the Arrow route declares a row where a list of them is passed",
    ),
    Mutation(
        "shared-layouts-pruned-early",
        "ucle/optimiser/dynamic_program.py",
        "            most = row.max(initial=-math.inf)\n",
        "            most = row.min(initial=math.inf)\n",
        "layouts that pay only together with some layout of a shared vertex are not looked at",
        (
            "tests/optimiser/test_search.py"
            "::test_layouts_that_pay_with_some_layout_of_a_shared_vertex[305]",
        ),
    ),
    Mutation(
        "neighbours-only-promote",
        "ucle/optimiser/domains.py",
        "        yield chosen.flip_label(name)\n",
        "        yield vertex.decomposition(chosen.promoted | {name})\n",
        "the search between neighbours never demotes a label",
        ("tests/optimiser/test_search.py::test_neighbours_lead_to_the_optimum_mostly",),
    ),
    Mutation(
        "second-of-a-list-of-one",
        "sqlgen/sql_trees.py",
        "return exp.Bracket(this=value, expressions=[integer(1)], offset=1)",
        "return exp.Bracket(this=value, expressions=[integer(2)], offset=1)",
        "a tensor that a cross join takes as a list is not taken out of it",
        ("tests/whole_programs/test_matrix.py::test_tensors_that_cross_joins_take_as_lists[5]",),
    ),
    Mutation(
        "sum-with-the-degrees-of-one-side",
        "stats/degrees.py",
        "(given, reached): left.most(reached, given) + right.most(reached, given)",
        "(given, reached): left.most(reached, given)",
        "the bound of a sum of tensors forgets the entries of the second",
        ("tests/stats/test_degrees.py::test_bounds_of_sums",),
    ),
    Mutation(
        "a-path-through-labels-that-are-not-given",
        "stats/degrees.py",
        "(sets & ~to | needs, most) for",
        "(sets & ~to, most) for",
        "a degree is used before the labels that it is given are reached",
        ("tests/stats/test_degrees.py::test_bounds_of_products[3-constraints1-ijk-250]",),
    ),
    Mutation(
        "masks-of-fills-that-do-not-absorb",
        "ucle/lowering/mask_sources.py",
        "self.is_sparse(statement, factor) and self._hides(statement, step, place, number)",
        "self.is_sparse(statement, factor)",
        "what meets a fill that does not absorb is not computed",
        ("tests/lowering/test_push_down_masks.py::test_a_fill_that_does_not_absorb",),
    ),
    Mutation(
        "masks-before-infinite-fills",
        "ucle/lowering/masks.py",
        "return same_value(*worth)",
        "return True",
        "0 * log(0) is 0 where neither is stored",
        ("tests/lowering/test_push_down_masks.py::test_an_infinite_fill_is_seen_everywhere",),
    ),
    Mutation(
        "statements-with-other-readers-masked",
        "ucle/lowering/mask_rewriter.py",
        "if not alone and not program.is_read_behind(name, there):",
        "if not there.labels:",
        "a tensor that others read, too, holds only what one of them looks at",
        (
            "tests/lowering/test_push_down_masks.py"
            "::test_what_is_read_elsewhere_is_computed_everywhere[P[i,j] = exp(x[i] - y[j]); E[i,j] = A[i,j] * P[i,j]; F[i] += P[i,j]]",
        ),
    ),
    Mutation(
        "what-nobody-looks-at-may-raise",
        "ucle/lowering/masks.py",
        'if source.kind != "i" and not _fits_integers(before):',
        "if False:",
        "infinities beside a mask become integers",
        (
            "tests/lowering/test_push_down_masks.py"
            "::test_nothing_raises_where_nobody_looks[E[i,j] = A[i,j] * int64(3 * tanh(log(2 - M[i,j] + x[j])))]",
        ),
    ),
    Mutation(
        "the-most-expensive-join-first",
        "ucle/lowering/product_orders.py",
        "min(sharing or candidates, key",
        "max(sharing or candidates, key",
        "an order joins first what emits the most",
        ("tests/lowering/test_orders.py::test_every_factor_is_joined_once[4]",),
    ),
    Mutation(
        "operands-of-a-tape-as-they-are",
        "ucle/plan/fuse_dense_steps.py",
        "            if not is_there(self.steps[operand.step].relation):\n",
        "            if False:\n",
        "a tape takes a tensor that is not stored for one that is",
        ("tests/mutations/test_random_programs.py::test_random_programs[7002]",),
    ),
    Mutation(
        "lines-on-the-first-tape",
        "ucle/plan/fuse_dense_steps.py",
        "            bounds = (level[x] - (x not in lines) for x in readers.get(step.name, ()))\n"
        "            level[step.name] = min(bounds, default=last)\n",
        "            level[step.name] = last\n",
        "a tape is made after what reads it",
        ("tests/language/test_gather_and_scatter.py::test_everywhere[Z[i] = x[4-p[i]]]",),
    ),
    Mutation(
        "reordered-integers-unnoticed",
        "ucle/optimiser/join_order.py",
        'any(types[factor.tensor].dtype.kind == "i" for factor in factors)',
        "False and any(types[factor.tensor] for factor in factors)",
        "an order whose integers overflow is not given up for the written one",
        (
            "tests/optimiser/test_integer_orders.py"
            "::test_the_written_order_runs_where_another_overflows[native]",
        ),
    ),
    Mutation(
        "hope-in-transactions",
        "ucle/run/current_data.py",
        "if self._overflowed or (inside and self.compiled.optimistic):",
        "if self._overflowed:",
        "integers that overflow in a changed order end the transaction of the user",
        ("tests/optimiser/test_integer_orders.py::test_in_a_transaction_nothing_is_tried[native]",),
    ),
    Mutation(
        "brackets-that-cancel-multiplied-out",
        "ucle/lowering/rounding.py",
        "return exact <= 1 and",
        "return exact <= 2 and",
        "the difference of two inputs, which is exact, is multiplied out and loses its digits",
        (
            "tests/lowering/test_rewriting.py"
            "::test_brackets_that_may_cancel_stay[Z[i] += (q[i] - p[i]) * X[i,j]]",
        ),
    ),
    Mutation(
        "a-factor-taken-out-of-other-labels",
        "ucle/lowering/rewrites.py",
        "label not in term.over if name not in free else label != name",
        "False and label not in free",
        "a factor under a label that is summed is taken for one under a label that is not",
        ("tests/lowering/test_rewriting.py::test_all_forms_of_random_programs[True]",),
    ),
    Mutation(
        "infinities-cancel",
        "ucle/lowering/write_polynomials.py",
        "any(outgrows(logical.types[name]) for name in steps)",
        'any(outgrows(x) for x in map(logical.types.get, steps) if x.dtype.kind == "i")',
        "terms that are equal and infinite leave 0 when they are rewritten, and NaN as written",
        (
            "tests/lowering/test_rewriting.py"
            "::test_equal_terms_that_outgrow_do_not_cancel[exp({})-1000.0]",
        ),
    ),
    Mutation(
        "rewritten-numbers-outgrow-their-type",
        "ucle/lowering/masks.py",
        "return type_.every.overflows or may_overflow(type_)",
        "return False",
        "the square of a difference becomes a difference of squares, both of which are infinite",
        ("tests/lowering/test_rewriting.py::test_large_numbers_do_not_outgrow_their_type",),
    ),
    Mutation(
        "labels-that-a-term-lacks-forgotten",
        "ucle/lowering/polynomials.py",
        "repeated = math.prod(label.bound for label in over if label not in self.labels)",
        "repeated = 1",
        "a term that lacks a label is not repeated for each of its values when it is summed",
        ("tests/lowering/test_rewriting.py::test_all_forms_of_random_programs[True]",),
    ),
    Mutation(
        "divisors-that-may-be-zero-come-last",
        "ucle/lowering/quotients.py",
        "fits = not outgrows(old.types[step.name])",
        "fits = True",
        "1 / 0 is infinite, and 0 / 0 beside it is NaN, but their sum over 0 is infinite",
        (
            "tests/lowering/test_quotients.py"
            "::test_divisors_that_may_be_zero_stay_where_they_are[Y[i,f] += E[i,j] * V[j,f] / sum[k](E[k,i])]",
        ),
    ),
    Mutation(
        "weights-of-another-row",
        "ucle/lowering/quotients.py",
        "and _is_one_of(factor.labels, term.labels, names)",
        "",
        "edges into a node are divided by the sum of the edges out of it, which may be 0 alone",
        (
            "tests/lowering/test_quotients.py"
            "::test_divisors_that_may_be_zero_stay_where_they_are[Y[i,f] += E[i,j] * V[j,f] / sum[k](E[k,i])]",
        ),
    ),
    Mutation(
        "brackets-opened-under-their-own-labels",
        "ucle/lowering/read_polynomials.py",
        "return None if polynomial is None else _under(polynomial, use)",
        "return polynomial",
        "the square of a sum of sums is the sum of squares, times a bound",
        (
            "tests/lowering/test_rewriting.py"
            "::test_powers_of_sums_of_sums[T = sum[k](sum[i,j](A[i,j] * B[j,k])) ^ 2]",
        ),
    ),
    Mutation(
        "nearly-covered",
        "stats/model.py",
        "if 0 < shape[axis] <= self.distinct[axis])",
        "if 0 < 0.9 * shape[axis] <= self.distinct[axis])",
        "0 / 0 is 0 in the row of a node that has no edge",
        ("tests/database/test_statistics_cache.py::test_coordinates_that_all_have_an_entry",),
    ),
    Mutation(
        "nodes-keep-their-edges",
        "ucle/inputs/binding.py",
        "    if coverage:\n        counts =",
        "    if False:\n        counts =",
        "what is stored of a quotient depends on what a table held when it was compiled",
        (
            "tests/inputs/test_changed_data.py"
            "::test_what_is_stored_does_not_depend_on_what_was_there_before[y[i,j] = A[i,j] / sum[k](A[i,k])-t-False]",
        ),
    ),
    Mutation(
        "weights-that-cancel",
        "ucle/lowering/quotients.py",
        'type_.dtype.kind == "c" or not type_.every.finite or type_.every.low < 0',
        'type_.dtype.kind == "c" or not type_.every.finite',
        "a sum of 1 and -1 is taken for a sum of zeros",
        (
            "tests/lowering/test_quotients.py"
            "::test_other_data_is_divided_as_it_is_written[changed0]",
        ),
    ),
    Mutation(
        "diagonals-are-covered",
        "ucle/ir/coverage.py",
        "if len(set(labels)) < len(labels):",
        "if False:",
        "a node with an edge is taken for one with an edge to itself",
        ("tests/ir/test_coverage.py::test_what_covers[T[i] = A[i,i]-covered5-False]",),
    ),
    Mutation(
        "pairs-of-covered-tensors-are-there",
        "ucle/ir/coverage.py",
        "if mine.some and (types[other].entries.full or not absorbing[other]):",
        "if mine.some:",
        "two graphs in which each node has an edge are taken to have one in common for each",
        ("tests/ir/test_coverage.py::test_what_covers[T[i,k] += A[i,j] * A[j,k]-covered7-False]",),
    ),
    Mutation(
        "the-least-of-some-and-of-nothing",
        "ucle/ir/coverage.py",
        "return fill >= values.high",
        "return True",
        "the least of what is stored and of what is not is taken for the least of what is stored",
        ("tests/ir/test_coverage.py::test_what_is_covered_has_entries",),
    ),
    Mutation(
        "bounds-absorb-on-the-wrong-side",
        "ucle/ir/ranges.py",
        "return fill <= values.low if operator.extreme is Extreme.LEAST else fill >= values.high",
        "return fill <= values.low",
        "the larger of 0 and what is not negative is taken for 0",
        ("tests/ir/test_coverage.py::test_bounds_absorb[max]",),
    ),
    # ---- Gathers and scatters ----
    Mutation(
        "an-index-from-the-end",
        "sqlgen/index_maps.py",
        "        exp.GTE(this=value.copy(), expression=integer(0)),\n"
        "        exp.LT(this=value.copy(), expression=integer(sizes[hit])),\n",
        "        exp.LT(this=value.copy(), expression=integer(sizes[hit])),\n",
        "a negative index reads nothing, and nobody is told",
        (
            "tests/language/test_gather_and_scatter.py"
            "::test_an_index_outside[auto-Z[i] = x[bad[i]]-bad1-x[bad[i]] is at -1, for i = 0-0 to 4]",
        ),
    ),
    Mutation(
        "indices-looked-at-when-asked",
        "ucle/plan/materialise.py",
        "        if isinstance(step.relation, Reindex) and step.relation.index.read:\n",
        "        if False:\n",
        "an index outside is found or not, by what it is multiplied with",
        ("tests/language/test_gather_and_scatter.py::test_each_index_is_looked_at",),
    ),
    Mutation(
        "unstored-indices-forgotten",
        "ucle/lowering/syntax_to_logical.py",
        "            dense=hit is not None\n            or (",
        "            dense=(",
        "entries of an index that are 0 pick nothing",
        ("tests/language/test_gather_and_scatter.py::test_fills[idx-inf]",),
    ),
    Mutation(
        "outside-is-nothing",
        "ucle/lowering/syntax_to_logical.py",
        "        if expression.operator is PICK or same_value(fill, dtype.scalar(0)):\n",
        "        if True:\n",
        "what is read outside after ~ is 0, whatever the fill",
        ("tests/language/test_gather_and_scatter.py::test_fills[~far-2.5]",),
    ),
    Mutation(
        "labels-of-an-index-summed-inside",
        "ucle/language/resolve.py",
        "inside = () if isinstance(expression, Access | Hit) else children(expression)",
        "inside = children(expression)",
        "an index is summed before anything is read at it",
        ("tests/language/test_gather_and_scatter.py::test_everywhere[Z[k] = W[idx[i],k]]",),
    ),
    Mutation(
        "what-is-read-outside-is-zero",
        "ucle/language/lift_gathers.py",
        "pick = PICK_OR_FILL if any(hit.permissive for hit in group) else PICK",
        "pick = PICK",
        "an entry outside of an axis reads 0 after ~, whatever the fill",
        ("tests/language/test_edges_of_indices.py::test_every_value[Z[k,j] = X[~far[k],j]]",),
    ),
    Mutation(
        "products-of-what-does-not-hit",
        "ucle/operators/reductions.py",
        "select=WHEN_ONE,",
        "select=WHEN,",
        "a product by an index is 0 wherever an entry belongs elsewhere",
        (
            "tests/language/test_gather_and_scatter.py"
            "::test_the_oracle_agrees_with_numpy[H[idx[i]] *= v[i]]",
        ),
    ),
    Mutation(
        "the-largest-of-what-does-not-hit",
        "ucle/operators/reductions.py",
        "exactness=Exactness.EXACT,\n    select=WHEN_LOWEST,",
        "exactness=Exactness.EXACT,\n    select=WHEN,",
        "the largest by an index is at least 0",
        (
            "tests/language/test_gather_and_scatter.py"
            "::test_the_oracle_agrees_with_numpy[H[idx[i]] max= v[i]]",
        ),
    ),
    # ---- Running aggregations and restrictions ----
    Mutation(
        "running-under-the-labels-of-the-reader",
        "sqlgen/scans.py",
        "    return add_alias(column(stored, alias), name)\n",
        "    return column(name, alias)\n",
        "a tensor is read along a label that its table does not have",
        (
            "tests/language/test_scans.py"
            "::test_everywhere[Y[i,j] = exp(A[i,j]); Z[l,m] = cumsum[l](Y[l,m]); V[k,p] = cummax[p](Z[k,p])]",
        ),
    ),
    Mutation(
        "functions-of-transposed-matrices",
        "ucle/language/lift_scans.py",
        "and labels[-2:] == along.labels",
        "and set(labels[-2:]) == set(along.labels)",
        "the transpose of a function of a matrix is the function of its transpose",
        (
            "tests/language/test_matrix_maps.py::test_every_decomposition[E[j,i] = inv[i,j](A[i,j])]",
        ),
    ),
    Mutation(
        "a-transpose-restricted-like-the-matrix",
        "ucle/language/lift_indices.py",
        "key = source.tensor, source.labels, condition, outside",
        "key = source.tensor, condition, outside",
        "a tensor that is read twice is restricted once, under the labels of the first read",
        (
            "tests/language/test_label_arithmetic.py"
            "::test_everywhere[Z[i,j] = (i < j) * B[j,i] - (i < j) * B[i,j]]",
        ),
    ),
    # ---- Executions after which nothing ran, and tables of tiles ----
    Mutation(
        "transactions-that-were-open",
        "ucle/database/change_detection.py",
        "        elif session.fetch(connections_query()) == [(1,)]:\n",
        "        elif session.fetch(connections_query()):\n",
        "what another connection commits later is not seen",
        (
            "tests/database/test_change_detection.py::test_a_transaction_that_was_open_before[memory-False]",
        ),
    ),
    Mutation(
        "degrees-for-counts-of-tiles",
        "ucle/inputs/tiled_tables.py",
        "distinct, largest = tuple(numbers[::2]), tuple(numbers[1::2])",
        "distinct, largest = tuple(numbers[1::2]), tuple(numbers[::2])",
        "of a table of blocks the longest row is taken for the number of rows",
        ("tests/inputs/test_tiled_tables.py::test_statistics_are_those_of_the_matrix",),
    ),
    Mutation(
        "only-the-last-tile-but-one",
        "sqlgen/input_queries.py",
        "expression=integer(bound // size))",
        "expression=integer(bound // size + 1))",
        "entries of the last tile that lie beyond a bound are not looked for",
        (
            "tests/inputs/test_tiled_tables.py"
            "::test_what_is_wrong_with_blocks[rows7-options7-CoordinateError-entry of a tile]",
        ),
    ),
    # ---- Gradients ----
    Mutation(
        "ties-passed-back-whole",
        "ucle/operators/reductions.py",
        'uncast_kinds="fi",\n    has_scan=True,\n    derivative="when(x == z, g / sum(x == z))"',
        'uncast_kinds="fi",\n    has_scan=True,\n    derivative="when(x == z, g)"',
        "entries that are the greatest together get more than there is",
        (
            "tests/gradients/test_gradients.py"
            "::test_gradients_are_those_of_pytorch[reduce: max of equal ones]",
        ),
    ),
    Mutation(
        "alike-counted-once",
        "ucle/gradients/masked.py",
        "return Binary(MULT, expression, Size(alike, span), span) if alike else expression",
        "return expression",
        "what is broadcast passes back one of its uses",
        (
            "tests/gradients/test_gradients.py"
            "::test_gradients_are_those_of_pytorch[program: broadcast]",
        ),
    ),
    Mutation(
        "adjoints-read-outside",
        "ucle/gradients/reads.py",
        "outside=Outside.ZERO,",
        "outside=Outside.FILL,",
        "a read passes back what nobody read",
        (
            "tests/gradients/test_gradients.py"
            "::test_gradients_are_those_of_pytorch[read: neighbours]",
        ),
    ),
    Mutation(
        "shorter-labels-taken-for-axes",
        "ucle/gradients/reads.py",
        "labels.append(_fresh(index, taken) if own is None or own in shortened else own)",
        "labels.append(_fresh(index, taken) if own is None else own)",
        "a read that stops before the end of an axis has the axis end there",
        ("tests/gradients/test_gradients.py::test_gradients_are_those_of_pytorch[read: a shift]",),
    ),
    Mutation(
        "digits-without-end",
        "ucle/gradients/reads.py",
        "            if base\n",
        "            if False\n",
        "A[i//3,i%3] passes back to columns that no remainder has",
        (
            "tests/gradients/test_gradients.py"
            "::test_gradients_are_those_of_pytorch[read: digits of a longer axis]",
        ),
    ),
    Mutation(
        "rows-of-other-reads",
        "ucle/gradients/reads.py",
        "if n != place and x.entries is None)",
        "if False)",
        "A[i,i+w] passes back as if it were read at i alone",
        ("tests/gradients/test_gradients.py::test_gradients_are_those_of_pytorch[read: a band]",),
    ),
    Mutation(
        "products-in-the-order-of-the-loss",
        "ucle/gradients/differentiate.py",
        "if all(_is_of_products(part) for part in parts) and not ordered:",
        "if False:",
        "a backward pass has the products that the loss is made of, whatever they cost",
        (
            "tests/gradients/test_gradients.py::"
            "test_products_of_a_backward_pass_in_the_cheapest_order",
        ),
    ),
    Mutation(
        "an-extreme-looked-for-among-other-numbers",
        "ucle/gradients/differentiate.py",
        "same=compares(text))",
        "same=False)",
        "nothing is passed back from an extreme that no product equals in the last digit",
        (
            "tests/gradients/test_gradients.py::"
            "test_an_extreme_is_one_of_the_numbers_that_it_was_taken_of[a mask-max]",
        ),
    ),
    Mutation(
        "fills-outgrow-their-type",
        "sqlgen/finiteness_checks.py",
        "dtype, usual = type_.dtype, cmath.isfinite(type_.fill)",
        "dtype, usual = type_.dtype, True",
        "loops that carry tensors with an infinite fill end at the first step",
        ("tests/run/test_prepared.py::test_fills_that_are_infinite_are_carried[native-promoted0]",),
    ),
    Mutation(
        "nothing-in-blocks",
        "ucle/optimiser/pricing.py",
        "        if not self.fits(vertex, vertex.decomposition(())):\n",
        "        if False:\n",
        "a product that does not fit whole is made of rows and columns, or not at all",
        ("tests/optimiser/test_search.py::test_products_that_do_not_fit_whole_are_made_in_blocks",),
    ),
    Mutation(
        "carried-tables-stay-in-rows",
        "ucle/optimiser/choose_decomposition.py",
        "kept=b.keep_in is not None or name in options.carried,",
        "kept=b.keep_in is not None,",
        "each step of training pays for bringing parameters in tables into its layout",
        ("tests/run/test_training_loops.py::test_parameters_in_tables_are_planned_as_arrays",),
    ),
    Mutation(
        "steps-without-other-outputs",
        "ucle/gradients/build_training.py",
        "outputs = dict.fromkeys((loss, *shown, *before, *update.carry.values()))",
        "outputs = dict.fromkeys((loss, *before, *update.carry.values()))",
        "a step hands out nothing but the loss and what is carried",
        ("tests/gradients/test_optimisers.py::test_other_tensors_that_a_step_hands_out",),
    ),
    Mutation(
        "parameters-near-the-end-of-their-type",
        "ucle/operators/values.py",
        "return self.finite and self.overflows and not self.varies",
        "return self.finite and self.overflows",
        "products with parameters keep the order of the text",
        (
            "tests/optimiser/test_join_order.py"
            "::test_parameters_are_joined_in_the_cheapest_order[P[i,m] += N[i,j] * H[j,m]\\nQ[i,n] += P[i,m] * W[m,n]]",
        ),
    ),
    Mutation(
        "data-never-near-the-end",
        "ucle/operators/values.py",
        "return self.finite and self.overflows and not self.varies",
        "return False",
        "numbers outgrow their type in an order that is not that of the text",
        (
            "tests/optimiser/test_join_order.py"
            "::test_parameters_are_joined_in_the_cheapest_order[P[i,m] += N[i,j] * H[j,m]\\nQ[i,n] += P[i,m] * W[m,n]]",
        ),
    ),
    Mutation(
        "chosen-numbers-may-overflow",
        "ucle/lowering/mask_rewriter.py",
        "computed = step.combine is not WHEN or step.reduce is not None",
        "computed = True",
        "nothing is computed behind a mask of an integer of which nothing is known",
        ("tests/lowering/test_push_down_masks.py::test_a_mask_is_drawn_where_there_are_entries",),
    ),
    Mutation(
        "read-once-for-each-statement",
        "ucle/lowering/contract.py",
        "(self._add_or_repeat if statement.lifted else self._record)(vertex)",
        "self._record(vertex)",
        "the entries of an index are looked up for every statement",
        ("tests/lowering/test_logical.py::test_reads_at_other_places_are_made_once",),
    ),
    Mutation(
        "columns-by-labels-of-the-compiler",
        "ucle/gradients/build_gradient.py",
        "labels = {**input_labels(request.statements), **request.labels}",
        "labels = dict(request.labels)",
        "a column is looked for by a label that was renamed",
        ("tests/gradients/test_gradients.py::test_columns_go_by_the_labels_of_the_text[native]",),
    ),
    Mutation(
        "decay-of-all",
        "ucle/optim/descent.py",
        "return self.weight_decay.get(parameter, 0.0)",
        "return max(self.weight_decay.values())",
        "the weight decay of one parameter is that of all",
        (
            "tests/gradients/test_optimisers.py"
            "::test_twenty_steps_are_those_of_pytorch[momentum, decay of one]",
        ),
    ),
    Mutation(
        "states-after-for-before",
        "ucle/optim/update_statements.py",
        "carry[names[stem]] = after",
        "carry[names[stem]] = names[stem]",
        "nothing goes on from step to step",
        ("tests/gradients/test_optimisers.py::test_twenty_steps_are_those_of_pytorch[sgd]",),
    ),
    Mutation(
        "parameters-in-statements",
        "ucle/inputs/states.py",
        "and not bound.described.spec.varies",
        "and bound.described is not None",
        "the numbers of a parameter are written into SQL",
        ("tests/inputs/test_parameters.py::test_plans_and_sql_do_not_depend_on_the_numbers",),
    ),
    Mutation(
        "keys-that-do-not-grow",
        "ucle/operators/duckdb_random.py",
        'grown = (f"({_S}.{k} + {n}::UBIGINT) & {_MASK}"',
        'grown = (f"({_S}.{k} + 0 * {n}::UBIGINT) & {_MASK}"',
        "Philox in SQL has one key for all rounds",
        ("tests/language/test_random_numbers.py::test_names_of_labels_and_tensors_are_any[s-a]",),
    ),
    Mutation(
        "remainders-of-either-sign",
        "ucle/operators/duckdb_formulas.py",
        'f"WHEN {_OTHER_SIGN} THEN x % y + y ELSE x % y END"\n)\nFLOORED',
        'f"WHEN {_OTHER_SIGN} THEN x % y ELSE x % y END"\n)\nFLOORED',
        "what is left has the sign of the dividend",
        ("tests/ir/test_formulas.py::test_combines[float32]",),
    ),
    Mutation(
        "texts-of-duckdb-in-other-dialects",
        "sqlgen/dialects/tables.py",
        "operator.texts if self.own else self._texts(operator)",
        "operator.texts or self._texts(operator)",
        "scripts for other engines hold the SQL of DuckDB",
        ("tests/dialects/test_dialect_scripts.py::test_text_of_a_script[postgres]",),
    ),
    Mutation(
        "wide-reads-never-relational",
        "ucle/optimiser/domains.py",
        "        yield vertex.all_promoted\n",
        "        yield from ()\n",
        "kron of a table has no decomposition, as reads of many labels are arrays",
        ("tests/lazy/test_array_api.py::test_nothing_is_collected[kron]",),
    ),
    Mutation(
        "a-number-everywhere-is-zero",
        "ucle/lazy/constants.py",
        "        fill=worth,\n",
        "        fill=0,\n",
        "ones and full are zeros",
        ("tests/lazy/test_array_api.py::test_numpy_agrees[full_like]",),
    ),
    Mutation(
        "linalg-like-numpy",
        "ucle/lazy/tensor.py",
        'in ("numpy.linalg", "numpy.fft"):',
        'in ("numpy", "numpy.fft"):',
        "np.linalg.diagonal takes the first two axes",
        ("tests/lazy/test_array_api.py::test_functions_of_numpy_are_ours",),
    ),
    Mutation(
        "the-last-ones-first",
        "sqlgen/top_k.py",
        "desc=node.top.largest",
        "desc=not node.top.largest",
        "ranks of keys begin at the other end",
        (
            "tests/language/test_first_entries.py"
            "::test_on_every_decomposition[Z[i,r] = top_k[j,r](S[i,j])]",
        ),
    ),
    Mutation(
        "matrices-of-any-shape",
        "ucle/ir/vertex_types.py",
        "    if not shape.fits(rows, columns):\n        raise BoundError",
        "    if rows < 0:\n        raise BoundError",
        "that a matrix is not square is said when it is computed",
        (
            "tests/language/test_matrix_maps.py"
            "::test_refused[E[u,i] = inv[u,i](b[u,i])-BoundError-square]",
        ),
    ),
    Mutation(
        "matrices-taken-apart-the-other-way",
        "sqlgen/scans.py",
        "    if place:\n        return exp.Mod",
        "    if not place:\n        return exp.Mod",
        "of keys an inverse comes out transposed",
        (
            "tests/language/test_matrix_maps.py"
            "::test_every_decomposition[E[i,j] = inv[i,j](A[i,j])]",
        ),
    ),
    Mutation(
        "a-plan-for-the-first-step",
        "ucle/run/growth.py",
        "GROWTH = 8\n",
        "GROWTH = 1e99\n",
        "a search keeps the plan for the nodes that it begins with",
        ("tests/run/test_growth.py::test_a_search_from_few_nodes[native-0]",),
    ),
    Mutation(
        "nothing-beside-a-mask",
        "ucle/lowering/masks.py",
        "if known.low > 0 and fill <= 0:",
        "if known.low > 0 and fill < 0:",
        "a quotient behind a mask counts as infinite, and what is made of it is dense",
        (
            "tests/lowering/test_push_down_masks.py::test_nothing_is_made_dense"
            "[L[i,j] = A[i,j] / sqrt(exp(x[i]) * exp(y[j])); h[i] += L[i,j] * y[j]; "
            "E[i] += L[i,j] * relu(h[j])]",
        ),
    ),
    Mutation(
        "running-along-a-diagonal",
        "ucle/lazy/statements.py",
        "(node.placed or node.along is not None)",
        "node.placed",
        "the diagonal of a running sum is the running sum of the diagonal",
        ("tests/lazy/test_places.py::test_numpy_agrees[diagonal of a running sum-integers]",),
    ),
    *AROUND,
    *BITS_AND_CHAINS,
    *COMING_IN,
    *FORESTS,
    *LINEAR_ALGEBRA,
    *LOOK_UPS,
    *ORDER_AND_NAMES,
    *INFINITE_STATES,
    *ROWS_AND_WORDS,
    *RUNS_AND_BITS,
    *MAINTENANCE,
    *MULTIWAY,
    *PROVEN_FORMS,
    *TIME_TO_ANSWER,
    *WIDE_TABLES,
    *MODELS,
    *ON_THE_DESK,
)
