"""Tasks of new users, written with what README and docs say, on inputs as people have them.

Each is compared with NumPy, scipy, igraph or pandas. What needs to know ucle's inside is elsewhere.
"""
