"""What every room stands on: element types, names, arguments at the door, logs, locks, files.

In: Python's, NumPy's and Arrow's values. Out: the same, checked or converted, or a typed error.
Nothing here knows what a program is. May import: `ucle.errors`.
"""
