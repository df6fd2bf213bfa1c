"""Mistakes in Fourier transforms and in look-ups in sorted tables.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

FOURIER = "tests/lazy/test_fourier.py"
SEARCHING = "tests/lazy/test_searching.py"

LOOK_UPS: tuple[Mutation, ...] = (
    Mutation(
        "transforms-turn-the-other-way",
        "ucle/lazy/fourier.py",
        "int(inverse), name), 1 if inverse else -1",
        "int(inverse), name), -1 if inverse else 1",
        "a transform is the inverse without its scale",
        (f"{FOURIER}::test_of_sparse_tensors[0.0]",),
    ),
    Mutation(
        "every-point-stands-for-two",
        "ucle/lazy/fourier.py",
        "once = logical_or(equal(k, 0), equal(k * 2, points))",
        "once = equal(k, 0)",
        "the middle point of an even number counts twice",
        (f"{FOURIER}::test_round_trips_and_products",),
    ),
    Mutation(
        "equal-entries-in-one-order",
        "ucle/lazy/searching.py",
        'first, start = ((flat, table), 0) if side == "left" else ((table, flat), size)',
        "first, start = ((flat, table), 0) if size else ((table, flat), size)",
        "the right side of equal entries is sorted as the left one",
        (f"{SEARCHING}::test_searchsorted[int64-right-sorted]",),
    ),
    Mutation(
        "nan-before-itself",
        "ucle/lazy/searching.py",
        "last = logical_and(last, logical_not(isnan(table)))",
        "last = logical_and(last, logical_or(isnan(table), last))",
        "NaN is looked up behind all NaN of the table",
        (f"{SEARCHING}::test_searchsorted[float64-left-compared]",),
    ),
)
