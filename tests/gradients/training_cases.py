"""Cases of `test_optimisers.py`, also for PyTorch (``make_training_vectors.py``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

STEPS = 20
TEXT = (
    "H[i,k] = tanh(X[i,j] * W1[j,k] + b[k]); p[i] = H[i,k] * w2[k]; "
    "loss = sum[i](square(p[i] - y[i])) / 12"
)
PARAMETERS = ("W1", "b", "w2")


def inputs() -> dict[str, Any]:
    """A small network with data; its bias is 0 at first, and one column of its weights, too."""
    rng = np.random.default_rng(5)
    W1 = rng.normal(size=(3, 4))
    W1[:, 1] = 0
    return {
        "X": rng.normal(size=(12, 3)),
        "y": rng.normal(size=12),
        "W1": W1,
        "b": np.zeros(4),
        "w2": rng.normal(size=4),
    }


@dataclass(frozen=True)
class Case:
    """An optimiser as ucle has it, over ``optim``, and as PyTorch has it, over ``t`` and ``P``."""

    ucle: str
    torch: str
    schedule: str = ""
    """The schedule in PyTorch, over ``S`` and the optimiser ``o``."""
    clip: str = ""
    """The clipping in PyTorch, over ``C`` and the parameters ``ps``."""


_ONE_DECAY = "[{'params': [P['W1']], 'weight_decay': 0.05}, {'params': [P['b'], P['w2']]}]"
_ALL = "list(P.values())"

CASES = {
    "sgd": Case("optim.sgd(0.1)", f"t.optim.SGD({_ALL}, 0.1)"),
    "sgd, weight decay": Case(
        "optim.sgd(0.1, weight_decay=0.05)", f"t.optim.SGD({_ALL}, 0.1, weight_decay=0.05)"
    ),
    "momentum": Case("optim.sgd(0.05, 0.9)", f"t.optim.SGD({_ALL}, 0.05, 0.9)"),
    "momentum, decay of one": Case(
        "optim.sgd(0.05, 0.9, weight_decay={'W1': 0.05})", f"t.optim.SGD({_ONE_DECAY}, 0.05, 0.9)"
    ),
    "nesterov": Case(
        "optim.sgd(0.05, 0.9, nesterov=True, weight_decay=0.01)",
        f"t.optim.SGD({_ALL}, 0.05, 0.9, nesterov=True, weight_decay=0.01)",
    ),
    "adam": Case("optim.adam()", f"t.optim.Adam({_ALL})"),
    "adam, all options": Case(
        "optim.adam(0.05, (0.8, 0.95), eps=1e-6, weight_decay={'W1': 0.05})",
        f"t.optim.Adam({_ONE_DECAY}, 0.05, (0.8, 0.95), eps=1e-6)",
    ),
    "adamw": Case("optim.adamw(0.05)", f"t.optim.AdamW({_ALL}, 0.05)"),
    "adamw, all options": Case(
        "optim.adamw(0.05, (0.8, 0.95), eps=1e-6, weight_decay=0.1)",
        f"t.optim.AdamW({_ALL}, 0.05, (0.8, 0.95), eps=1e-6, weight_decay=0.1)",
    ),
    "step decay": Case(
        "optim.sgd(optim.step_decay(0.1, 3, 0.5), 0.9)",
        f"t.optim.SGD({_ALL}, 0.1, 0.9)",
        "S.StepLR(o, 3, 0.5)",
    ),
    "exponential decay": Case(
        "optim.adam(optim.exponential_decay(0.05, 0.9))",
        f"t.optim.Adam({_ALL}, 0.05)",
        "S.ExponentialLR(o, 0.9)",
    ),
    "cosine": Case(
        "optim.adamw(optim.cosine(0.05, 19, 0.01))",
        f"t.optim.AdamW({_ALL}, 0.05)",
        "S.CosineAnnealingLR(o, 19, 0.01)",
    ),
    "warm-up": Case(
        "optim.sgd(optim.warmup(5, optim.exponential_decay(0.1, 0.9)))",
        f"t.optim.SGD({_ALL}, 0.1)",
        "S.LambdaLR(o, lambda n: min((n + 1) / 5, 1) * 0.9 ** max(n - 5, 0))",
    ),
    "clipped by value": Case(
        "optim.sgd(0.1, clip_value=0.1, weight_decay=0.01)",
        f"t.optim.SGD({_ALL}, 0.1, weight_decay=0.01)",
        clip="C.clip_grad_value_(ps, 0.1)",
    ),
    "clipped by norm": Case(
        "optim.adam(0.05, clip_norm=0.3)",
        f"t.optim.Adam({_ALL}, 0.05)",
        clip="C.clip_grad_norm_(ps, 0.3)",
    ),
}
