"""Twenty steps of training as PyTorch takes them: writes ``training_vectors.json``.

Needs PyTorch: ``python tests/gradients/make_training_vectors.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from training_cases import CASES, PARAMETERS, STEPS, Case, inputs

VECTORS = Path(__file__).with_name("training_vectors.json")


def trained(case: Case) -> dict[str, Any]:
    """The losses of all steps, and the parameters after the last one."""
    import torch

    data = {name: torch.tensor(value) for name, value in inputs().items()}
    parameters = {name: data[name].requires_grad_(True) for name in PARAMETERS}
    optimiser = eval(case.torch, {"t": torch, "P": parameters})
    names = {"S": torch.optim.lr_scheduler, "o": optimiser}
    schedule = eval(case.schedule, names) if case.schedule else None
    losses = []
    for _ in range(STEPS):
        optimiser.zero_grad()
        hidden = torch.tanh(data["X"] @ parameters["W1"] + parameters["b"])
        loss = ((hidden @ parameters["w2"] - data["y"]) ** 2).mean()
        loss.backward()
        if case.clip:
            eval(case.clip, {"C": torch.nn.utils, "ps": list(parameters.values())})
        optimiser.step()
        if schedule is not None:
            schedule.step()
        losses.append(loss.item())
    return {"loss": losses, **{name: x.tolist() for name, x in parameters.items()}}


if __name__ == "__main__":
    made = {name: trained(case) for name, case in CASES.items()}
    VECTORS.write_text(json.dumps(made, indent=0) + "\n")
