"""Modules of PyTorch."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from ucle.errors import UnsupportedError
from ucle.foundation.libraries import optional
from ucle.models.from_onnx import from_onnx
from ucle.models.imported_model import Model


def from_torch(
    module: Any,
    example: Any,
    *,
    names: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Model:
    """Read a module of PyTorch, by way of its own export to ONNX.

    Args:
        module: the module; it is put into evaluation mode for the export.
        example: a tensor, or a tuple of them: the arguments of ``forward`` for at least two rows.
            Their first axes are those of the rows, and all other sizes stay as they are.
        names: names of the inputs; by default ``x``, or ``x0``, ``x1`` and so on.
        outputs: names of the outputs, in their order; by default ``y``.
        constants: the values of inputs that are always the same.

    Raises:
        UnsupportedError: PyTorch cannot export the module, or ucle lacks some of its operators.
        MissingPackageError: torch or onnxscript is not installed.
    """
    torch = optional("torch", "ucle.models", "pip install torch onnxscript")
    optional("onnxscript", "ucle.models", "pip install onnxscript")
    arguments = example if isinstance(example, tuple) else (example,)
    many = len(arguments) > 1
    chosen = list(names or ([f"x{n}" for n in range(len(arguments))] if many else ["x"]))
    rows = torch.export.Dim("rows", min=2)
    buffer = io.BytesIO()
    was_training = module.training
    module.eval()
    try:
        torch.onnx.export(
            module,
            arguments,
            buffer,
            input_names=chosen,
            output_names=list(outputs or ["y"]),
            dynamic_shapes=tuple({0: rows} for _ in arguments),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    except Exception as error:
        raise UnsupportedError(
            "PyTorch cannot export this module",
            where=type(module).__name__,
            expected="a module that torch.onnx.export takes, with rows as the first axis",
            found=f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}",
        ) from error
    finally:
        module.train(was_training)
    return from_onnx(buffer.getvalue(), constants=constants)
