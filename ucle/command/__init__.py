"""The command ``ucle``: what a shell sees of the package.

In: arguments, options and the text of a program file. Out: SQL, explanations, rows and files, exit
statuses, a progress bar; `demo` and `calibrate` are programs of their own.
Decides nothing that a caller of the library could not. May import: `ucle.program`, `ucle.explain`,
`ucle.run`.
"""
