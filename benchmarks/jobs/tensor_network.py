"""A network of eight tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import opt_einsum

import ucle

JOB = "a network of 8 tensors, sizes 12"
OTHER = "opt_einsum"
NETWORK = "abc,cde,efg,gha,bi,di,fj,hj->"


def ucle_side(folder: Path) -> Any:
    return ucle.einsum(NETWORK, *np.load(folder / "network.npz").values())


def other_side(folder: Path) -> Any:
    return opt_einsum.contract(NETWORK, *np.load(folder / "network.npz").values())
