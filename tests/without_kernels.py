"""A plugin of pytest that runs tests as in an installation without kernels.

    pytest -p without_kernels tests/whole_programs tests/second_oracle

What both routes stand for is plain SQL then. Tests of kernels, and of plans that call them, fail.
"""

from __future__ import annotations

from pathlib import Path

from ucle.udf_kernels import native

native.LIBRARY = Path("/nonexistent") / native.LIBRARY.name
