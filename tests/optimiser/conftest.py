"""Helpers that tests of the optimiser share."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ucle.optimiser import join_order


@pytest.fixture
def any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search takes whatever order comes first in a shuffle, the written one last."""

    def luck(tried: Any) -> float:
        if not tried.order.trees:
            return min(tried.cost, 1.0)
        trees = sorted((key, str(tree)) for key, tree in tried.order.trees.items())
        seed = f"{sorted(tried.order.merged)} {trees}"
        return tried.cost if np.isinf(tried.cost) else random.Random(seed).random()

    monkeypatch.setattr(join_order, "_cost", luck)
    # No program is too cheap to be searched.
    monkeypatch.setattr(join_order._Search, "_may_save", lambda search, best: search._left > 0)
    monkeypatch.setattr(join_order, "CONTRACTING", 0.0)
