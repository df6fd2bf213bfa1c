"""Mistakes in results that follow their data: changes that are not found, keys that are forgotten.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

FORGOTTEN = "tests/maintenance/test_refresh.py::test_what_is_easily_forgotten"
REFRESH = "tests/maintenance/test_refresh.py::test_refresh_equals_a_full_run"
KEPT = "tests/maintenance/test_maintained.py"
QUOTIENTS = "tests/maintenance/test_refresh.py::test_quotients_of_tables_that_only_grow"
DIFFERENCES = "tests/maintenance/test_differences.py"
AFFECTED = "tests/maintenance/test_affected.py"

MAINTENANCE: tuple[Mutation, ...] = (
    Mutation(
        "no-other-side",
        "sqlgen/maintained_tables.py",
        "for rows, sign in ((one, 1), (other, -1))",
        "for rows, sign in ((one, 1), (one, -1))",
        "rows are compared with themselves",
        (f"{REFRESH}[aggregation-1]",),
    ),
    Mutation(
        "a-scan-stays-at-its-key",
        "ucle/maintenance/affected.py",
        "        blocked |= set(expression.along.labels)",
        "        pass",
        "a changed entry affects no sum behind it",
        (
            f"{REFRESH}[scan-1]",
            f"{REFRESH}[scan-2]",
        ),
    ),
    Mutation(
        "supports-as-they-are-now",
        "ucle/maintenance/affected.py",
        "        support = Binary(OR, support, access, factor.span)",
        "        pass",
        "a key is not affected where both factors of a product have vanished",
        ("tests/maintenance/test_affected.py::test_products_where_the_other_factor_is_or_was",),
    ),
    Mutation(
        "sizes-change-nothing",
        "ucle/maintenance/affected.py",
        "    return not labels <= covered",
        "    return False",
        "entries at new coordinates that no changed entry has are not made",
        (FORGOTTEN,),
    ),
    Mutation(
        "coordinates-never-move",
        "ucle/maintenance/changes.py",
        "        if source.is_encoded(place)\n",
        "        if False and source.is_encoded(place)\n",
        "a word that takes the place of another one is no new coordinate",
        (f"{REFRESH}[outer-5]",),
    ),
    Mutation(
        "changed-by-others",
        "ucle/maintenance/maintained.py",
        "        if found != kept.digest[:2]:",
        "        if False:",
        "a kept table that others have changed is brought up to date",
        (f"{KEPT}::test_a_table_that_others_changed_is_refused",),
    ),
    Mutation(
        "states-outside-of-the-transaction",
        "ucle/maintenance/maintained.py",
        "            in_transaction(session),\n            observing(session),",
        "            contextlib.nullcontext(),\n            observing(session),",
        "a refresh that fails forgets what it had found",
        (f"{KEPT}::test_an_error_in_the_middle",),
    ),
    Mutation(
        "removed-rows-of-growing-tables",
        "ucle/maintenance/appended.py",
        "    if rows != before + new:",
        "    if False:",
        "rows that are gone from a table to which rows are only appended are not noticed",
        (f"{KEPT}::test_tables_that_only_grow",),
    ),
    Mutation(
        "digests-of-rows-that-went",
        "ucle/maintenance/replaced_rows.py",
        "        digest=combine_digests(digest, come, went),",
        "        digest=combine_digests(digest, come, come),",
        "the digest of a kept table still counts the rows that were replaced",
        ("tests/maintenance/test_replaced_rows.py::test_what_differs",),
    ),
    Mutation(
        "local-rows-come-last",
        "sqlgen/maintained_tables.py",
        "    if local:  # a row of this transaction, before which there are others",
        "    if False:",
        "a row that a transaction has inserted counts as the last one after its end",
        ("tests/maintenance/test_told.py::test_rows_of_others_at_the_same_time",),
    ),
    Mutation(
        "unchanged-rows-are-handed-on",
        "sqlgen/replaced_rows.py",
        "    return insert_rows(target, rows_of(differing))\n\n\n@cached_text\ndef insert_grown",
        "    return insert_rows(target, rows_of(joined))\n\n\n@cached_text\ndef insert_grown",
        "rows that were computed again and are as before count as changed",
        (f"{KEPT}::test_nothing_is_computed_where_nothing_changed",),
    ),
    Mutation(
        "differences-without-their-product",
        "ucle/maintenance/differences.py",
        "            sign = ADD if count % 2 else SUB",
        "            sign = ADD",
        "what two changed factors have in common is added twice",
        (f"{DIFFERENCES}::test_products_of_changed_factors",),
    ),
    Mutation(
        "differences-of-floats-that-vanish",
        "ucle/maintenance/differences.py",
        "    if not exact and not all(x is not None and x.added for x in found.values()):",
        "    if False:",
        "digits that a large entry took stay lost after it is gone",
        (f"{DIFFERENCES}::test_digits_come_back_when_rows_are_removed",),
    ),
    Mutation(
        "differences-of-unknown-factors",
        "ucle/maintenance/differences.py",
        "    if not 0 < len(moved) <= MOST_CHANGED or None in found.values():",
        "    if not 0 < len(moved) <= MOST_CHANGED:",
        "a factor that changed without a known difference counts as unchanged",
        (f"{DIFFERENCES}::test_what_has_no_difference",),
    ),
    Mutation(
        "differences-of-fills",
        "ucle/maintenance/differences.py",
        "    if not all(is_zero(x.tensor) for x in accesses(product)):",
        "    if False:",
        "entries that are not stored count as 0, whatever they are",
        (f"{DIFFERENCES}::test_what_has_no_difference",),
    ),
    Mutation(
        "functions-of-entries-that-were-there",
        "ucle/maintenance/differences.py",
        "    is_known = read.tensor in fresh and same_value(float(_at_zero(factor)), 0.0)",
        "    is_known = same_value(float(_at_zero(factor)), 0.0)",
        "a count grows by entries whose values have changed",
        (f"{DIFFERENCES}::test_functions_of_new_entries",),
    ),
    Mutation(
        "supports-beside-divisors",
        "ucle/maintenance/finiteness.py",
        "            return _is_positive(right)",
        "            return True",
        "0 divided by 0 counts as 0 where keys are affected",
        (f"{AFFECTED}::test_factors_beside_what_has_changed",),
    ),
    Mutation(
        "repeated-rows-of-growing-tables",
        "ucle/maintenance/facts.py",
        "        if repeated := session.read(repeated_keys(source, table, last, first), where):",
        "        if repeated := list[tuple[int]]():",
        "a new row at the coordinates of an old one is not noticed",
        (f"{KEPT}::test_rows_that_repeat_others",),
    ),
    Mutation(
        "facts-of-new-rows",
        "ucle/maintenance/facts.py",
        "        now: MeasuredInput | None = _joined([before, new])",
        "        now: MeasuredInput | None = before",
        "new rows beyond the sizes of before are read as if they were within",
        (f"{KEPT}::test_facts_of_tables_that_only_grow",),
    ),
    Mutation(
        "coverage-of-growing-tables",
        "ucle/maintenance/facts.py",
        "        elif coverage:",
        "        elif False:",
        "a quotient of sums that are never empty counts as one by 0, and has rows of zeros",
        (f"{QUOTIENTS}[auto]",),
    ),
    Mutation(
        "what-is-kept-fits-any-data",
        "ucle/maintenance/kept_programs.py",
        "        if source in (known.fits, known.compiled.front.source):",
        "        if source:",
        "a kept program runs on data that it does not fit",
        ("tests/maintenance/test_kept_programs.py::test_other_data",),
    ),
    Mutation(
        "every-step-shortens",
        "ucle/maintenance/kept_loops.py",
        "        return shortest if shortest <= SHORTER else None",
        "        return shortest",
        "a loop goes on from its result although that depends on where it began",
        ("tests/maintenance/test_kept_loops.py::test_contractions_are_checked",),
    ),
    Mutation(
        "deletions-lower-minima",
        "ucle/maintenance/kept_loops.py",
        "        if not all(x.added and x.trusted for x in self.changes.values()):",
        "        if False:",
        "components stay together after their edge was deleted",
        ("tests/maintenance/test_kept_loops.py::test_insertions_alone",),
    ),
    Mutation(
        "a-script-for-these-sizes",
        "ucle/maintenance/script.py",
        "        if not self._grows(parts, grown):",
        "        if True:",
        "a mean in a script goes by the number of coordinates of changed rows",
        ("tests/maintenance/test_script.py::test_a_bare_client",),
    ),
    Mutation(
        "coordinates-that-no-row-has",
        "ucle/maintenance/chosen_tensors.py",
        "        if not each.encoded or not any(depends_on_sizes(x, is_zero) for x in readers):",
        "        if list(readers) or not each.encoded:",
        "others are computed from a kept tensor without the coordinates at which it is the fill",
        ("tests/maintenance/test_coordinates_without_rows.py::test_a_new_coordinate_of_an_output",),
    ),
    Mutation(
        "coordinates-that-no-row-of-another-has",
        "ucle/maintenance/chosen_tensors.py",
        "            if name not in given:\n                computed.add(name)\n",
        "",
        "what is computed by way of another tensor misses coordinates at which that is the fill",
        ("tests/maintenance/test_coordinates_without_rows.py::test_a_new_coordinate_of_an_output",),
    ),
)
