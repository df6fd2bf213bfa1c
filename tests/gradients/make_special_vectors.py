"""PyTorch's first and second derivatives of `special_cases`, written to ``special_vectors.json``.

    python tests/gradients/make_special_vectors.py [--check]

With --check, what is kept is compared with what PyTorch says now.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from special_cases import SPECIAL, Special, weights

KEPT = Path(__file__).with_name("special_vectors.json")


def derivatives(case: Special) -> dict[str, Any]:
    """The gradient of a case's weighed sum, and the gradient of the sum of that."""
    import torch
    from torch.nn import functional

    x = torch.tensor(case.x, dtype=torch.float64, requires_grad=True)
    y = torch.tensor(case.y, dtype=torch.float64)
    made = eval(case.torch, {"t": torch, "F": functional, "x": x, "y": y})  # ours
    loss = (
        made * torch.tensor(weights(made.numel()), dtype=torch.float64).reshape(made.shape)
    ).sum()
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    second = torch.zeros_like(x)
    if first.requires_grad:
        (found,) = torch.autograd.grad(first.sum(), x, allow_unused=True)
        second = second if found is None else found + second
    return {"first": shown(first), "second": shown(second)}


def shown(values: Any) -> list[Any]:
    """Numbers as JSON has them, others as text."""
    return [x if abs(x) < float("inf") else str(x) for x in values.detach().flatten().tolist()]


def main() -> None:
    """Write or compare."""
    made = {name: derivatives(case) for name, case in SPECIAL.items()}
    if "--check" not in sys.argv:
        lines = (f"{json.dumps(name)}: {json.dumps(each)}" for name, each in made.items())
        KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return
    kept = json.loads(KEPT.read_text())
    wrong = [name for name in made if not _close(made[name], kept.get(name, {}))]
    if wrong:
        sys.exit("PyTorch says otherwise of " + ", ".join(wrong))


def _close(made: dict[str, Any], kept: dict[str, Any]) -> bool:
    numbers = [
        np.array([float(x) for key in ("first", "second") for x in each.get(key, [])])
        for each in (made, kept)
    ]
    return bool(numbers[0].shape == numbers[1].shape and np.allclose(*numbers, equal_nan=True))


if __name__ == "__main__":
    main()
