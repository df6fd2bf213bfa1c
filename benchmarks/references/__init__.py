"""References for compressed arrays, slices, masks and index arithmetic.

Each module has a program, its data, and the same work with SciPy or NumPy in the order that an
expert would choose. They were written before the work on levels and stay unchanged.
"""
