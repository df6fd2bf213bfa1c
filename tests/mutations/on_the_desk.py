"""Mistakes in what people do with tables of times and names.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

ALONG = "tests/language/test_along.py"
NOTICES = "tests/pipeline/test_notices.py"
TIMES = "tests/language/test_times.py"

ON_THE_DESK: tuple[Mutation, ...] = (
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
        "ucle/language/bounds.py",
        "            classes.join(moved, axis)",
        "            resolved[classes.find(moved)] = resolved[classes.find(axis)]",
        "what is read at the time before has numbers in the place of times",
        (f"{TIMES}::test_what_runs_along_times",),
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
        "bound.statistics.entries < math.prod(bound.shape)",
        "bound.statistics.entries <= math.prod(bound.shape)",
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
)
"""Each is caught by the tests that it names."""
