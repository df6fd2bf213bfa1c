"""Random programs as ONNX models: onnxruntime gives the answers of ucle."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ucle
from tests.export.runtimes import feeds_of, run_model
from tests.selection import selected_seeds
from ucle.errors import UnsupportedError
from ucle.testing import Case, random_case

pytest.importorskip("onnx")
