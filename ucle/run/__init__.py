"""Execution: compiles for a session, runs once or repeatedly, and writes files, tables and views.

build, current_data   a program for a database, and the same for what its tables hold now
execute, script       one execution, statement by statement
results, stored_tensor, read_tuples, number_keys
                      the tensors that it leaves, which are read, written or saved
write_file, write_table, views, store_inputs
                      files, tables, views that compute a program, and inputs in other layouts
prepared_program, iterate, step_engine, loop_stages, carried, growth
                      runs of one program: many on one connection, or steps that feed the next

In: statements or a compiled program (`ucle.pipeline.artifacts`), and a session. Out: a `Build`, a
`Result` of tensor relations, an `Iteration`. May import: `ucle.pipeline` and what is below it.
"""
