"""Programs that run again and again: prepared ones, and loops of which each step feeds the next.

carried           which outputs fit the inputs in whose places they come
stages            what a program computes once, and what each run computes
prepared_program  a program that was checked once, for many runs on one connection
iterate           a loop around it, until a condition holds

In: a compiled program. Out: results of its runs, of which each costs what it computes. How a plan
is divided stands in `ucle.plan.hoist_invariants`. May import: `ucle.compile` and
what is below it.
"""
