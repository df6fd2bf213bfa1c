"""Benchmarks: ratios measured side by side in one run. `python -m benchmarks.run` prints the table."""
