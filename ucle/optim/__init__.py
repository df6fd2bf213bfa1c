"""Optimisers: updates of parameters by their gradients, as statements of the language.

The meanings and the defaults are PyTorch's. `EinsumProgram.minimize` adds the statements of an
optimiser to a program.

schedules          learning rates as functions of the number of the step
descent            sgd, adam and adamw: the texts of an update
update_statements  these texts as statements for the parameters of a program

In: names of parameters and of their gradients. Out: statements, and the states that they need.
May import: `ucle.language` and modules below it.

>>> import ucle
>>> ucle.optim.adam(ucle.optim.cosine(1e-2, 200), weight_decay={"W1": 5e-4}).states
('m', 'v')
"""

from ucle.optim.descent import Adam, Optimiser, Sgd, adam, adamw, sgd
from ucle.optim.schedules import (
    Schedule,
    constant,
    cosine,
    exponential_decay,
    step_decay,
    warmup,
)

__all__ = [
    "Adam",
    "Optimiser",
    "Schedule",
    "Sgd",
    "adam",
    "adamw",
    "constant",
    "cosine",
    "exponential_decay",
    "sgd",
    "step_decay",
    "warmup",
]
"""The public names; classes are for annotations."""
