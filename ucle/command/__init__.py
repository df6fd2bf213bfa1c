"""The command ``ucle``: what a shell sees of the package.

In: arguments, options and the text of a program file. Out: SQL, explanations, rows and files, exit
statuses, a progress bar; `demo` is an example of its own (`ucle.demo`), `calibrate` a program.
Decides nothing that a caller of the library could not. May import: `ucle.demo`, `ucle.program`,
`ucle.explain`, `ucle.models`, `ucle.run`.
"""
