"""Mistakes in results that follow their data: changes that are not found, keys that are forgotten.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

FORGOTTEN = "tests/maintenance/test_refresh.py::test_what_is_easily_forgotten"
REFRESH = "tests/maintenance/test_refresh.py::test_refresh_equals_a_full_run"
KEPT = "tests/maintenance/test_maintained.py"

MAINTENANCE: tuple[Mutation, ...] = (
    Mutation(
        "no-other-side",
        "sqlgen/maintained_tables.py",
        "for query, sign in ((one, 1), (other, -1))",
        "for query, sign in ((one, 1), (one, -1))",
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
        "            moved.append(axis)",
        "            pass",
        "a word that takes the place of another one is no new coordinate",
        (f"{REFRESH}[outer-5]",),
    ),
    Mutation(
        "changed-by-others",
        "ucle/maintenance/maintained.py",
        "        if _with_digest(session, kept) != kept:",
        "        if False:",
        "a kept table that others have changed is brought up to date",
        (f"{KEPT}::test_a_table_that_others_changed_is_refused",),
    ),
    Mutation(
        "states-outside-of-the-transaction",
        "ucle/maintenance/maintained.py",
        "            with transaction(session):",
        "            with contextlib.nullcontext():",
        "a refresh that fails forgets what it had found",
        (f"{KEPT}::test_an_error_in_the_middle",),
    ),
    Mutation(
        "removed-rows-of-growing-tables",
        "ucle/maintenance/changes.py",
        "    if now != rows + new:",
        "    if False:",
        "rows that are gone from a table to which rows are only appended are not noticed",
        (f"{KEPT}::test_tables_that_only_grow",),
    ),
    Mutation(
        "unchanged-rows-are-handed-on",
        "ucle/maintenance/refresh.py",
        "        run(create_as(changed, keys, temporary=True), where)",
        "        run(create_as(changed, rows_of(new, kept.keys), temporary=True), where)",
        "rows that were computed again and are as before count as changed",
        (f"{KEPT}::test_nothing_is_computed_where_nothing_changed",),
    ),
)
