"""Explanations of compiled programs, as data and in each format.

In: a compiled program, and measured steps where it was run. Out: an `Explanation` (`model`), shown
as text, HTML, JSON or a drawing of the DAG. Runs nothing itself and decides nothing.
May import: `ucle.run`, `ucle.pipeline` and what is below them.
"""
