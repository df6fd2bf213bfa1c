"""Compiling for a database: what the pipeline needs of its surroundings, and what runs again.

In: what a caller wrote, with a database and options. Out: a `Build` (`build`): a compiled program
with what it was compiled for; and that program fitted to what its tables hold now (`prepared`).
May import: `ucle.run` and what is below it.
"""
