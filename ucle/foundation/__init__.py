"""The lowest layer: element types, names, checks of arguments, logs, locks, files, progress.

In: Python's, NumPy's and Arrow's values. Out: the same values, checked or converted, or a typed
error. Nothing here knows programs. May import: `ucle.errors`.
"""
