"""Models in ONNX files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ucle.models.graph import translate
from ucle.models.imported_model import Model
from ucle.models.onnx_files import read_model


def from_onnx(
    source: Any,
    *,
    sizes: Mapping[str, int] | None = None,
    constants: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
) -> Model:
    """Read a model from an ONNX file.

    Args:
        source: a path, the bytes of a file, or an `onnx.ModelProto`.
        sizes: sizes of axes that have names in the model, such as ``{"sequence": 64}``; or of any
            axis of an input, such as ``{"image.2": 48}``. The first axis of the inputs, that of the
            rows, may stay open.
        constants: the values of inputs that are always the same, by their names in the model.
        outputs: the outputs to compute; all by default.

    Raises:
        InputError: there is no such file.
        ModelError: it is not a valid model.
        UnsupportedError: the model has operators that ucle lacks; all of them are listed.
    """
    where = str(source) if isinstance(source, str | os.PathLike) else "the model"
    model = read_model(source)
    translation = translate(
        model, sizes=sizes or {}, constants=constants or {}, outputs=outputs, where=where
    )
    return Model(translation)
