"""Programs with packed inputs (`ucle.bits`), as programs over their words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.foundation.bit_words import mask_words
from ucle.foundation.threads import import_late
from ucle.inputs.packed_bits import PackedBits
from ucle.language.syntax import Statement
from ucle.options import Options

Statements = tuple[Statement, ...]


def read_packed(
    statements: Statements, inputs: Mapping[str, Any], options: Options
) -> tuple[Statements, Mapping[str, Any], Options]:
    """Return statements, inputs and options of a program whose packed inputs are words."""
    packed = {name: x.length for name, x in inputs.items() if isinstance(x, PackedBits)}
    if not packed:
        return statements, inputs, options
    over_words = import_late("ucle.language.packed_bits").over_words  # programs of words only
    made = over_words(statements, packed, options.outputs)
    words = {name: inputs[name].words for name in packed}
    masks = {name: np.array(mask_words(n), np.int64) for name, n in made.masks.items()}
    options = replace(options, bounds={**(options.bounds or {}), **made.bounds})
    return made.statements, {**inputs, **words, **masks}, options
