"""Results that follow their data: programs whose outputs are kept and brought up to date.

affected        the keys of a statement's tensor that a change of what it reads may affect
differences     what a sum of products grows by, from what its factors differ by
extremes        minima and maxima that meet new terms
restricted      statements that are computed at these keys alone
renumbered      the same program over the affected coordinates of one axis
least_affected  how many coordinates a change affects at least
affected_rows   the rows of tables at these coordinates, with numbers in place of them
finiteness      expressions that are finite where what they read is
facts           facts about inputs, brought up to date by changed rows
bound_program   the program over its present inputs, without a plan
changes         what has changed in inputs since the last refresh
appended        the last rows of tables that only grow
states          inputs as of the last refresh, and their digests
told_rows       rows that a caller tells, as an input and its state have them
own_inputs      inputs that belong to a program
told_checks     whether they fit an input
told            changes of inputs that a caller tells
document        the description of a maintained program, as JSON
unstated_sizes  programs that were kept without stated sizes
chosen_tensors  the tensors of a program that are kept
kept_documents  the table of these descriptions in the database
kept_programs   compiled programs of refreshes, kept in the process
derivation      programs for the entries of kept tensors that a change affects
notes           a table of what tells the rows of tables, for scripts
script          the script that brings tables up to date without ucle
script_inputs   its part that checks and changes inputs
contractions    loops that end at one state from any start
monotone        loops whose state moves in one direction, as their data does
kept_loops      loops that are kept, and where they begin
changed_keys    facts about tables of changed keys
replaced_rows   rows of kept tensors, replaced where they differ
candidates      the ways to compute entries that may differ, with their costs
refresh         one refresh: each kept tensor in the cheapest way
maintained      the entry point: maintain, find, refresh, drop

In: a compiled program, and a database with its inputs. Out: tables of its outputs, and programs
that compute what a change affects. May import: `ucle.run`, `ucle.gradients` and modules below
them.
"""
