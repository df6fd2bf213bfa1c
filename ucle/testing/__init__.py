"""Tools for tests of ucle and of packages built on it: random programs, and an oracle of loops.

`random_case`, `exact_case`, `special_case` and `outgrowing_case` draw a program with its data from
a seed; `evaluate` computes in NumPy what a program means; `check_everywhere` compares the two over
decompositions and routes. Needs the packages of ``pip install 'ucle[test]'``.

In: a seed. Out: cases, and checks that all ways of compiling them agree. May import:
``ucle.program`` and modules below it.

>>> case = random_case(1)
>>> with case.compile(None).execute() as result:  # doctest: +SKIP
...     assert_equal(result["T0"].to_numpy(), case.expected()["T0"])
"""

from ucle.testing.check_matrix import Routes, check_everywhere, recompiled, some_decompositions
from ucle.testing.generate import (
    Case,
    exact_case,
    outgrowing_case,
    random_case,
    special_case,
)
from ucle.testing.oracle import assert_equal, evaluate
from ucle.testing.oracle_operators import UndefinedError
from ucle.testing.random_inputs import make_input, random_array

__all__ = [
    "Case",
    "Routes",
    "UndefinedError",
    "assert_equal",
    "check_everywhere",
    "evaluate",
    "exact_case",
    "make_input",
    "outgrowing_case",
    "random_array",
    "random_case",
    "recompiled",
    "some_decompositions",
    "special_case",
]
