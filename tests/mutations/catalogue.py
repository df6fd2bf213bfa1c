"""The mistakes: each a text of one file, what stands there instead, and what that breaks.

Each has a program in `test_sharp.py` that shows it, or names other tests that notice it, so that a
run is short.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """One mistake; `old` stands exactly once in `file`.

    `tests` are known to notice it; where none are named, its program in `test_sharp.py` does.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """The tests to run first."""
        return self.tests or (f"tests/mutations/test_sharp.py::test_program[{self.name}]",)


MUTATIONS: tuple[Mutation, ...] = (
    # ---- What entries that are not stored are worth ----
    Mutation(
        "full-join-inner",
        "ucle/fills.py",
        "        kind = JoinKind.FULL\n",
        "        kind = JoinKind.INNER\n",
        "X + Y loses what only one side stores",
    ),
    Mutation(
        "left-join-right",
        "ucle/fills.py",
        "        kind = JoinKind.LEFT\n",
        "        kind = JoinKind.RIGHT\n",
        "the wrong side of an outer join keeps its rows",
    ),
    Mutation(
        "infinite-operands-dropped",
        "ucle/ranges.py",
        "operator.absorbs_left(fills[0]) and (operator.absorbs_all or tame(right, left))",
        "operator.absorbs_left(fills[0])",
        "0 * inf and 0 * NaN become 0 where the 0 is not stored",
    ),
    Mutation(
        "absorbs-some-other-value",
        "ucle/fills.py",
        "by_left and same_value(joined, operator.scalar(fills[0], one, dtype)),",
        "by_left,",
        "0 * x is taken to be what 0 * (infinite fill) is",
        ("tests/test_fills.py",),
    ),
    Mutation(
        "densify-forgotten",
        "ucle/fills.py",
        "densify_right = keep_left and not right_keys <= left_keys",
        "densify_right = False",
        "x[i] + y[j] has only the pairs that are stored",
    ),
    Mutation(
        "array-of-fill-counted-once",
        "ucle/fills.py",
        "value = operator.repeated(joined_fill(vertex, types), inside, dtype)",
        "value = operator.repeated(joined_fill(vertex, types), 1, dtype)",
        "a tuple that is not met counts as one entry, not as an array of them",
        ("tests/test_fills.py",),
    ),
    Mutation(
        "demoted-labels-counted",
        "ucle/fills.py",
        "cells = math.prod(label.bound for label in vertex.reduced if label.name in promoted)",
        "cells = math.prod(label.bound for label in vertex.reduced)",
        "entries inside the arrays are counted as missing tuples",
    ),
    Mutation(
        "missing-entries-ignored",
        "ucle/planner.py",
        "missing_entries(vertex, decomposed.program.types, promoted) if aggregated else None,",
        "None,",
        "sums, products and extremes forget the entries that are not stored",
    ),
    Mutation(
        "densify-not-planned",
        "ucle/planner.py",
        "Densify(left) if rule.densify_left else left,",
        "left,",
        "the plan joins a sparse side where the rule asks for a dense one",
    ),
    Mutation(
        "map-keeps-the-fill",
        "ucle/vertex_types.py",
        "            fill = step(fill)\n",
        "            step(fill)\n",
        "exp(X) is 0 where X is not stored",
    ),
    Mutation(
        "reduced-fill-not-repeated",
        "ucle/vertex_types.py",
        "        return operator.repeated(fill, size, dtype)\n",
        "        return fill\n",
        "a row that is not stored at all sums up to one fill",
    ),
    Mutation(
        "fill-taken-for-zero",
        "ucle/execute.py",
        "differs = _differing_rows(rows, type_.fill)",
        "differs = _differing_rows(rows, 0)",
        "an array in memory with another fill loses its zeros",
    ),
    Mutation(
        "result-filled-with-zero",
        "ucle/results.py",
        "result = np.full(self.shape, self.fill, dtype=self.dtype)",
        "result = np.zeros(self.shape, dtype=self.dtype)",
        "to_numpy() shows 0 where the fill is another",
    ),
    # ---- What a statement means ----
    Mutation(
        "alpha-renaming-dropped",
        "ucle/resolve.py",
        "fresh = {label: self._fresh(label) for label in over}",
        "fresh = {label: label for label in over}",
        "the label of an inner aggregation is that of the statement",
    ),
    Mutation(
        "sum-at-the-top",
        "ucle/resolve.py",
        "        if len(holders) == 1:\n",
        "        if not holders:\n",
        "relu(A[i,j] * w[j]) sums after relu, not inside",
    ),
    Mutation(
        "cse-ignores-maps",
        "ucle/normalise.py",
        "        vertex.combine,\n        vertex.maps,\n",
        "        vertex.combine,\n        (),\n",
        "exp(X) and log(X) become one vertex",
    ),
    Mutation(
        "cse-swaps-operands",
        "ucle/normalise.py",
        "if vertex.combine is not None and COMBINES[vertex.combine].commutative:",
        "if vertex.combine is not None:",
        "x - y and y - x become one vertex",
    ),
    Mutation(
        "cse-forgets-label-order",
        "ucle/normalise.py",
        "labels = tuple(kept[theirs[label]] for label in existing.labels)",
        "labels = vertex.labels",
        "a shared vertex is read transposed where its labels come in another order",
    ),
    Mutation(
        "constant-on-the-wrong-side",
        "ucle/normalise.py",
        "step = Map(operator, number, first, signature.compute)",
        "step = Map(operator, number, False, signature.compute)",
        "2 - x becomes x - 2",
    ),
    Mutation(
        "chains-of-infinities",
        "ucle/factors.py",
        "    if exact and not all(type_.entries.finite for type_ in used):\n        return False\n",
        "",
        "a sum is moved inside a product with something infinite",
    ),
    Mutation(
        "summed-too-early",
        "ucle/normalise.py",
        "needed = kept.union(*(factor.names for factor in waiting.values()))",
        "needed = kept",
        "a label is aggregated while another factor still needs it",
    ),
    Mutation(
        "path-positions",
        "ucle/contraction.py",
        "held = [term for term in held if term not in (first, other)] + [made]",
        "held = [made] + [term for term in held if term not in (first, other)]",
        "a step of a path takes the wrong factors, as results go to the end",
        ("tests/test_language.py::test_paths_as_pairs",),
    ),
    Mutation(
        "merged-under-its-own-labels",
        "ucle/merging.py",
        "taken = {label for a in (target, *accesses(into.expression)) for label in a.labels}",
        "taken = set(access.labels)",
        "a label that an inner product sums over is taken for one of the outer product",
        ("tests/test_association.py::test_labels_are_kept_apart",),
    ),
    Mutation(
        "merged-whatever-else-uses-it",
        "ucle/merging.py",
        " or uses[name] > 1:",
        " or uses[name] > 2:",
        "a tensor that two statements use is merged into one of them",
        ("tests/test_association.py::test_what_may_not_be_merged",),
    ),
    Mutation(
        "merged-across-algebras",
        "ucle/merging.py",
        "inner.reduce != outer.reduce:",
        "inner is None:",
        "a minimum of sums is merged into a maximum of sums",
        ("tests/test_association.py::test_what_may_not_be_merged",),
    ),
    Mutation(
        "dearer-than-as-written",
        "ucle/association.py",
        "if best.cost > written.cost * (1 - WORTHWHILE):",
        "if best.cost < written.cost * (1 - WORTHWHILE):",
        "the written order is taken where another one is cheaper, and the other way round",
        ("tests/test_association.py::test_a_narrow_product_comes_first",),
    ),
    Mutation(
        "product-distributes-over-max",
        "ucle/operators.py",
        'distributes_over=frozenset({"sum", "any"}),\n        ),\n        # x + inf',
        'distributes_over=frozenset({"sum", "any", "max"}),\n        ),\n        # x + inf',
        "max of a product is taken factor by factor, wrong for negative ones",
    ),
    Mutation(
        "empty-product",
        "ucle/operators.py",
        "identity=lambda dtype: dtype.scalar(1),",
        "identity=lambda dtype: dtype.scalar(0),",
        "the product of nothing is 0",
        ("tests/test_semantics.py::test_an_empty_aggregate_is_the_identity",),
    ),
    Mutation(
        "comparisons-give-numbers",
        "ucle/promotion.py",
        "return Signature(compute, DType.BOOL if operator.indicates else compute)",
        "return Signature(compute, compute)",
        "x < y is 1.0 instead of True",
    ),
    Mutation(
        "float32-widened-by-constants",
        "ucle/promotion.py",
        "if found is DType.FLOAT32 and not _has_float32(operands):",
        "if found is DType.FLOAT32:",
        "2 * x of float32 is float64",
    ),
    # ---- Which decomposition ----
    Mutation(
        "minimum-not-reset",
        "ucle/dynamic_program.py",
        "least = np.stack([",
        "least = np.minimum.accumulate([",
        "the minimum is kept from one output layout to the next, as in the paper's Algorithm 1",
        ("tests/test_sparse_einsum.py::test_trees_are_optimal",),
    ),
    Mutation(
        "repartition-forgotten",
        "ucle/dynamic_program.py",
        "            row = np.minimum(row, table.least[at] + move)\n",
        "            row = np.minimum(row, table.least[at])\n",
        "the dynamic program takes a change of layout for free",
        ("tests/test_sparse_einsum.py::test_trees_are_optimal",),
    ),
    Mutation(
        "limits-ignored",
        "ucle/costed.py",
        "return made + self._read_bytes(vertex, promoted) <= self.resources.memory",
        "return True",
        "plans exceed the memory limit",
        ("tests/test_sparse_einsum.py::test_the_memory_limits_of_the_tests_bind",),
    ),
    Mutation(
        "pinned-beyond-memory",
        "ucle/decide.py",
        "(held := costed.held_bytes(decomposed, vertex)) > costed.resources.memory",
        "(held := costed.held_bytes(decomposed, vertex)) < 0",
        "a pinned decomposition may take any memory",
        ("tests/test_language.py::test_aggregates_that_cannot_spill_are_counted",),
    ),
    Mutation(
        "last-block-taken-for-whole",
        "sqlgen/repartitions.py",
        'count = exp.func("least", integer(block), left)',
        "count = integer(block)",
        "the last block of an exchange of keys is longer than the axis",
        ("tests/test_exchange.py",),
    ),
    Mutation(
        "equation-7-not-clamped",
        "stats/estimate.py",
        "min(max(_occupied(entries, possible), low), high)",
        "_occupied(entries, possible)",
        "a dense tensor is taken to have 63% of its tuples",
        ("tests/test_statistics.py::test_equation_7_between_its_ends",),
    ),
    Mutation(
        "halved-without-aggregation",
        "stats/estimate.py",
        "        if not vertex.aggregates(promoted):\n            return joined\n",
        "",
        "a join without aggregation is taken to lose tuples",
        ("tests/test_statistics.py::test_nothing_aggregated_keeps_the_size_of_the_join",),
    ),
    # ---- Which kernel ----
    Mutation(
        "subtraction-swapped",
        "ucle/kernel_choice.py",
        'return Kernel(f"sca_vec_{operator.stem}", False)',
        'return Kernel(f"vec_sca_{operator.stem}", False, swap=True)',
        "number - array becomes array - number",
    ),
    Mutation(
        "product-not-swapped",
        "ucle/kernel_choice.py",
        "_product(pattern, right, left, True)",
        "_product(pattern, right, left, False)",
        "a matrix product takes its operands in the wrong order",
    ),
    Mutation(
        "outer-product-transposed",
        "ucle/kernel_choice.py",
        "if not shared and output == left + right:",
        "if not shared and set(output) == set(left + right):",
        "an outer product whose output is transposed is not",
    ),
    Mutation(
        "values-not-swapped",
        "sqlgen/kernels.py",
        "ordered = list(reversed(values)) if kernel.swap else list(values)",
        "ordered = list(values)",
        "kernels that take the right value first get the left one",
    ),
    Mutation(
        "capacity-too-small",
        "sqlgen/kernels.py",
        "suffix = capacity_suffix(size, dtype.tag)",
        "suffix = capacity_suffix(size // 2, dtype.tag)",
        "the state of an aggregate has half the room that it needs",
    ),
    # ---- SQL ----
    Mutation(
        "slice-strides",
        "sqlgen/repartitions.py",
        "dict(zip(layout.dense, strides(type_.dense_shape(layout)), strict=True))",
        "dict(zip(layout.dense, strides(type_.dense_shape(layout))[::-1], strict=True))",
        "a tensor is taken apart by the strides of its transpose",
    ),
    Mutation(
        "stack-ignores-strides",
        "sqlgen/repartitions.py",
        "elif after.dense[len(stacked) :] != before.dense:",
        "elif False:",
        "parts whose axes are not the last ones are stacked as if they were",
    ),
    Mutation(
        "full-join-keys",
        "sqlgen/emit.py",
        'exp.func("coalesce", left_keys[x].copy(), right_keys[x].copy())',
        "left_keys[x].copy()",
        "rows of the right side alone have NULL for a key",
    ),
    Mutation(
        "absent-sides-swapped",
        "sqlgen/emit.py",
        "            node.kind in (JoinKind.RIGHT, JoinKind.FULL),\n"
        "            node.kind in (JoinKind.LEFT, JoinKind.FULL),\n",
        "            node.kind in (JoinKind.LEFT, JoinKind.FULL),\n"
        "            node.kind in (JoinKind.RIGHT, JoinKind.FULL),\n",
        "the side that may be absent is not filled in",
    ),
    Mutation(
        "diagonal-not-picked",
        "sqlgen/emit.py",
        "query = query.where(exp.EQ(this=keys[label].copy(), expression=key))",
        "pass",
        "A[i,i] takes all entries of A",
    ),
    Mutation(
        "count-of-what-was-met",
        "sqlgen/emit.py",
        "rest = exp.paren(exp.Sub(this=cells, expression=met))",
        "rest = exp.paren(met)",
        "the correction for missing entries counts those that are there",
    ),
    Mutation(
        "integers-rounded",
        "sqlgen/operators.py",
        'argument = exp.Anonymous(this="trunc", expressions=[argument])',
        "pass",
        "int64(2.7) is 3",
    ),
    Mutation(
        "brackets-dropped",
        "sqlgen/operators.py",
        "return exp.paren(argument) if inside and isinstance(argument, COMPOUND) else argument",
        "return argument",
        "(x + y) * z becomes x + y * z",
    ),
    # ---- Inputs and statistics ----
    Mutation(
        "distinct-dropped",
        "sqlgen/statistics.py",
        "return exp.Count(this=exp.Distinct(expressions=[key]))",
        "return exp.Count(this=key)",
        "V counts entries instead of different coordinates",
        ("tests/test_statistics.py::test_inputs_are_counted_exactly",),
    ),
    Mutation(
        "duplicates-not-looked-for",
        "stats/measure.py",
        "    if not unique:\n        checks.duplicates(survey.sizes, large=not exact)\n",
        "",
        "two rows with the same coordinates pass",
        ("tests/test_semantics.py::test_duplicates_are_summed_on_request",),
    ),
    Mutation(
        "nan-not-noticed",
        "stats/measure.py",
        "return _Survey(float(entries), bool(finite), _extremes(low, high), sizes, found, exact)",
        "return _Survey(float(entries), True, _extremes(low, high), sizes, found, exact)",
        "a table with NaN is taken to be finite",
    ),
    Mutation(
        "duplicates-out-of-order",
        "stats/measure.py",
        "                if not self.fetch(query(",
        "                if self.fetch(query(",
        "two rows of a large table with the same coordinates pass, unless no rows are alike",
        ("tests/test_facts.py::test_duplicates_are_found_wherever_they_are",),
    ),
    Mutation(
        "same-blocks-same-data",
        "ucle/source_versions.py",
        "return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)",
        "return (state.st_dev, state.st_ino, state.st_size)",
        "a table that two checkpoints have moved back to its old blocks is taken to be unchanged",
        ("tests/test_source_versions.py::test_updates_in_a_file",),
    ),
    Mutation(
        "notes-of-other-data",
        "ucle/facts.py",
        "            if of == digest(session, source):\n",
        "            if of:\n",
        "what was noted of a table is taken for what it holds now",
        ("tests/test_facts.py::test_the_next_process_reads_a_digest",),
    ),
    Mutation(
        "stored-of-other-data",
        "ucle/kept_tables.py",
        "if known is not None and (known[0] != current or (database, table) not in tables):",
        "if known is not None and (database, table) not in tables:",
        "an input that was stored is read after its table has changed",
        ("tests/test_store.py::test_nothing_stale_is_read",),
    ),
    Mutation(
        "first-layout-for-cheapest",
        "ucle/costed.py",
        "return min(layouts, key=rank)",
        "return layouts[0]",
        "an input that lies in several layouts is always read from the first",
        ("tests/test_store.py::test_a_later_program_reads_what_was_stored",),
    ),
    Mutation(
        "tables-not-verified-again",
        "ucle/program.py",
        "        if ready is not None and versions.known:\n",
        "        ready = ready or self._latest\n        if ready:\n",
        "a table that changed after compilation is not checked",
        ("tests/test_bad_data.py::test_data_that_changed_since",),
    ),
    Mutation(
        "views-taken-for-unchanged",
        "ucle/versions.py",
        "all(x.known for x in seen)",
        "True",
        "what changes below a view goes unnoticed",
        ("tests/test_changed_data.py::test_what_does_not_fit_is_refused",),
    ),
    Mutation(
        "fewer-entries-are-not-stale",
        "ucle/staleness.py",
        "fewer, more = sorted((compiled, found))",
        "fewer, more = compiled, found",
        "a table that has become ten times smaller is no reason for another plan",
        ("tests/test_changed_data.py::test_is_stale",),
    ),
    Mutation(
        "log-of-duplicates-is-stale",
        "sqlgen/statistics.py",
        "    if source.sum_duplicates and not exact:\n",
        "    if source.sum_duplicates and distinct is Distinct.APPROXIMATE:\n",
        "rows that are added up count one by one when data is checked again",
        ("tests/test_changed_data.py::test_rows_that_are_added_up_count_once",),
    ),
    Mutation(
        "sparse-duplicates-kept",
        "ucle/inputs.py",
        "    matrix.sum_duplicates()\n",
        "",
        "a scipy matrix with two entries at one place is refused",
        ("tests/test_semantics.py::test_duplicates_are_summed_on_request",),
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
        "udf_kernels/catalog.py",
        'return (*self.parameters[:start], f"{row}[]", *self.parameters[start + len(rows) :])',
        "return (*self.parameters[:start], row, *self.parameters[start + len(rows) :])",
        "the Arrow route declares a row where a list of them is passed",
    ),
    Mutation(
        "shared-layouts-pruned-early",
        "ucle/dynamic_program.py",
        "            most = row.max(initial=-math.inf)\n",
        "            most = row.min(initial=math.inf)\n",
        "layouts that pay only together with some layout of a shared vertex are not looked at",
        ("tests/test_search.py::test_dags_are_optimal",),
    ),
    Mutation(
        "neighbours-only-promote",
        "ucle/domains.py",
        "        yield promoted ^ {label.name}\n",
        "        yield promoted | {label.name}\n",
        "the search between neighbours never demotes a label",
        ("tests/test_search.py::test_neighbours_lead_to_the_optimum_mostly",),
    ),
    Mutation(
        "second-of-a-list-of-one",
        "sqlgen/emit.py",
        "value = exp.Bracket(this=value, expressions=[integer(1)], offset=1)",
        "value = exp.Bracket(this=value, expressions=[integer(2)], offset=1)",
        "a tensor that a cross join takes as a list is not taken out of it",
        ("tests/test_matrix.py::test_tensors_that_cross_joins_take_as_lists",),
    ),
)
