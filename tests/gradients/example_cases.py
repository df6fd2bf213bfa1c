"""Cases of `test_training_examples.py` for ucle and PyTorch (``make_example_vectors.py``)."""

from __future__ import annotations

import attention
import gcn

STEPS = 20
GCN = gcn.Settings(epochs=STEPS, patience=STEPS)
ATTENTION = attention.Settings(steps=STEPS, batch=16)
REAL = "planetoid_cora"
