"""Gradients as PyTorch has them: writes ``vectors.json``, or compares with ``--check``.

Needs PyTorch: ``python tests/gradients/make_vectors.py``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from gradient_cases import CASES, inputs_of

VECTORS = Path(__file__).with_name("vectors.json")


def gradients(name: str) -> dict[str, Any]:
    """The loss and the gradients of a case."""
    import torch
    import torch.nn.functional as F

    case = CASES[name]
    inputs = {x: torch.tensor(value) for x, value in inputs_of(name).items()}
    for by in case.by:
        inputs[by].requires_grad_(True)
    loss = eval(case.torch, {"t": torch, "F": F, **inputs})
    every = torch.autograd.grad(loss, [inputs[by] for by in case.by], allow_unused=True)
    found = {
        f"d_{by}": (torch.zeros_like(inputs[by]) if gradient is None else gradient).tolist()
        for by, gradient in zip(case.by, every, strict=True)
    }
    return {"loss": loss.item(), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the file")
    made = {name: gradients(name) for name in CASES}
    if not parser.parse_args().check:
        VECTORS.write_text(json.dumps(made, indent=0) + "\n")
        return
    kept = json.loads(VECTORS.read_text())
    for name, vectors in made.items():
        for tensor, value in vectors.items():
            np.testing.assert_allclose(kept[name][tensor], value, 1e-12, 1e-12, err_msg=name)
    print(f"{len(made)} cases as PyTorch has them")


if __name__ == "__main__":
    main()
