"""Programs that run repeatedly: prepared ones, and loops in which each step feeds the next.

carried           checks that outputs fit the inputs that they replace
stages            the parts of a program that run once and in each run
prepared_program  a program that was checked once, for many runs on one connection
iterate           a loop around it, until a condition holds

In: a compiled program. Out: results of its runs, without repeated overhead.
`ucle.plan.hoist_invariants` divides the plan. May import: `ucle.compile` and
modules below it.
"""
