"""What compressed arrays, slices, masks and index arithmetic are measured against.

Each module has a program, its data, and the same work with SciPy or NumPy in the best order that an
expert would write. They were written before the work on levels and stay as they are.
"""
