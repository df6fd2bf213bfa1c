"""The two routes to the kernels."""

from __future__ import annotations

import pytest
from kernel_routes import Route


@pytest.fixture(scope="session", params=["extension", "arrow"])
def route(request: pytest.FixtureRequest) -> Route:
    return Route(request.param)
