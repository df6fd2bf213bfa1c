"""Tools for tests of ucle and of packages built on it: random programs, and a NumPy oracle.

`random_case`, `exact_case`, `special_case` and `outgrowing_case` make a random program with data
from a seed. `evaluate`, the oracle, computes the expected values of a program in NumPy.
`check_everywhere` compares ucle's results with these values, for many decompositions and all routes
of the kernels into DuckDB. Install the packages that this needs with ``pip install 'ucle[test]'``.

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
