"""Mistakes in what is known of states with infinities.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

STATES = "tests/run/test_infinite_states.py"
LATER = f"{STATES}::test_states_of_distances_keep_the_graph_sparse[native]"

INFINITE_STATES: tuple[Mutation, ...] = (
    Mutation(
        "both-infinities-are-one",
        "ucle/operators/values.py",
        "return one.infinity if one.infinity == other.infinity else None",
        "return one.infinity",
        "inf + -inf is taken to be infinite",
        ("tests/ir/test_ranges.py::test_the_one_infinity_is_that_of_numpy[ends2]",),
    ),
    Mutation(
        "fills-absorb-every-infinity",
        "ucle/ir/ranges.py",
        "return same_value(met, absorbed_worth(operator, fill, dtype, left=left))",
        "return True",
        "inf - inf is inf where an entry of the graph is not stored",
        ("tests/ir/test_ranges.py::test_fills_and_infinities[-]",),
    ),
    Mutation(
        "states-without-a-proof",
        "ucle/run/build.py",
        "return type_.every.finite or type_.every.infinity == infinity",
        "return True",
        "a state of which NaN may be made is planned as if none could be",
        (f"{STATES}::test_no_plan_counts_on_states_without_nan_if_a_step_makes_it[native]",),
    ),
    Mutation(
        "later-arrays-without-a-check",
        "ucle/inputs/parameters.py",
        'return find_infinity(describe_array("input", spec).data) in (0, known)',
        "return True",
        "a state is replaced by an array with NaN, which the plan rules out",
        (LATER,),
    ),
    Mutation(
        "states-that-are-full-at-first",
        "ucle/inputs/axis_sizes.py",
        "isinstance(source, TableSource) or spec.infinity == type_.fill",
        "isinstance(source, TableSource)",
        "an entry that the first state has is taken to be there for good",
        (f"{STATES}::test_all_entries_of_the_first_state_may_go[native]",),
    ),
)
