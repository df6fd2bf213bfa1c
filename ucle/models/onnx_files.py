"""ONNX files: read, checked, with the constants of their graphs as arrays.

A file is data. It is checked before anything of it is used: sizes before they are allocated, the
graph by the package `onnx` itself, and external data has to lie in the folder of the file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ucle.errors import InputError, ModelError
from ucle.foundation.libraries import optional
from ucle.models.values import Array

MAPPED = 1 << 20
"""Bytes from which a constant in another file is mapped into memory, not loaded."""

LARGEST = 1 << 40
"""Bytes of one constant beyond which a file is taken for damaged."""


def read_model(source: Any) -> Any:
    """A model from a path, bytes, or an `onnx.ModelProto`, checked.

    Raises:
        InputError: there is no such file.
        ModelError: it is not a valid model.
    """
    onnx = models_module("onnx")
    folder = None
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            raise InputError("there is no such file", where=str(path), expected="an ONNX file")
        folder = path.parent.resolve()
        data = path.read_bytes()
    elif isinstance(source, bytes):
        data = source
    else:
        data = None
    where = str(source) if isinstance(source, str | os.PathLike) else "the model"
    try:
        model = source if data is None else onnx.load_model_from_string(data)
    except Exception as error:
        raise ModelError("this is not an ONNX model", where=where, found=str(error)[:200]) from None
    if not isinstance(model, onnx.ModelProto):
        raise ModelError(
            "this is not an ONNX model",
            where=where,
            expected="a path, bytes or an onnx.ModelProto",
            found=type(source).__name__,
        )
    check_tensors(onnx, model.graph, folder, where)
    mapped = folder is not None and map_external(onnx, model.graph, folder)
    check_order(model.graph, where)
    try:
        # What is mapped has no data in the model, and may take more than a message can hold.
        onnx.checker.check_model(str(source) if mapped else model)
    except Exception as error:
        if "No Op registered" in str(error):  # all of them are listed when the graph is read
            return model
        raise ModelError(
            "the model is not valid", where=where, found=str(error).splitlines()[0][:300]
        ) from None

    return model


def models_module(name: str) -> Any:
    """Import a module of the extra ``models``; errors as for `optional`."""
    return optional(name, "ucle.models", "pip install 'ucle[models]'")


def check_tensors(onnx: Any, graph: Any, folder: Path | None, where: str) -> None:
    """Check the sizes of all constants, and where external ones lie.

    Raises:
        ModelError: a size is negative or does not fit the data, or a path leaves the folder.
    """
    for tensor in tensors_of(onnx, graph):
        dims = list(tensor.dims)
        place = f"{where}, constant {tensor.name or '(unnamed)'}"
        if any(size < 0 for size in dims):
            raise ModelError("a size is negative", where=place, found=str(dims))
        if math.prod(dims) * 16 > LARGEST:
            raise ModelError("a constant is too large", where=place, found=str(dims))
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            _check_external(onnx, tensor, folder, place)
            continue
        if tensor.raw_data:
            dtype = _dtype_of(onnx, tensor, place)
            if dtype is not None and len(tensor.raw_data) != math.prod(dims) * dtype.itemsize:
                raise ModelError(
                    "the data of a constant does not fit its shape",
                    where=place,
                    expected=f"{math.prod(dims) * dtype.itemsize} bytes",
                    found=f"{len(tensor.raw_data)} bytes",
                )


_PACKED = frozenset({21, 22, 23, 25, 26})
"""Element types of which a byte holds several."""


def _dtype_of(onnx: Any, tensor: Any, place: str) -> np.dtype | None:
    """The element type; None where elements have no bytes of their own."""
    if tensor.data_type == onnx.TensorProto.STRING or tensor.data_type in _PACKED:
        return None
    try:
        dtype: np.dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, TypeError, ValueError):
        raise ModelError(
            "an element type is not known", where=place, found=str(tensor.data_type)
        ) from None
    return dtype


def _place_of(tensor: Any) -> dict[str, str]:
    """Where external data lies: the file, and the bytes of it."""
    return {entry.key: entry.value for entry in tensor.external_data}


def _check_external(onnx: Any, tensor: Any, folder: Path | None, place: str) -> None:
    entries = _place_of(tensor)
    location = entries.get("location", "")
    if folder is None:
        raise ModelError(
            "external data of a model without a folder",
            where=place,
            expected="a path",
            found=location,
        )
    path = (folder / location).resolve()
    if not location or Path(location).is_absolute() or not path.is_relative_to(folder):
        raise ModelError(
            "external data lies outside of the model's folder", where=place, found=location
        )
    if not path.is_file():
        raise ModelError("external data is missing", where=place, found=location)
    _check_extent(onnx, tensor, entries, path.stat().st_size, place)


def _check_extent(
    onnx: Any, tensor: Any, entries: Mapping[str, str], size: int, place: str
) -> None:
    """Check that external data has the length of its tensor, and lies within its file.

    Raises:
        ModelError: it does not.
    """
    offset, length = entries.get("offset", "0"), entries.get("length", "")
    if not offset.isdecimal() or not (length or "0").isdecimal():
        raise ModelError("a place in external data is no number", where=place, found=str(entries))
    dtype = _dtype_of(onnx, tensor, place)
    needed = 0 if dtype is None else math.prod(tensor.dims) * dtype.itemsize
    stated = int(length) if length else needed
    if (dtype is not None and stated != needed) or int(offset) + stated > size:
        raise ModelError(
            "external data does not fit its constant",
            where=place,
            expected=f"{needed or stated} bytes from {offset} on",
            found=f"{stated} bytes in a file of {size} bytes",
        )


def map_external(onnx: Any, graph: Any, folder: Path) -> bool:
    """Load small constants that lie in other files, and give large ones the full paths of these.

    Returns:
        True if there are large ones: `array_of` maps them into memory.
    """
    mapped = False
    for tensor in tensors_of(onnx, graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        dtype = _dtype_of(onnx, tensor, tensor.name)
        plain = dtype is not None and dtype.kind in "biufc"
        size = math.prod(tensor.dims) * (1 if dtype is None else dtype.itemsize)
        if not plain or size < MAPPED:
            onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
            tensor.data_location = onnx.TensorProto.DEFAULT
            del tensor.external_data[:]
            continue
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = str((folder / entry.value).resolve())
        mapped = True
    return mapped


def tensors_of(onnx: Any, graph: Any) -> list[Any]:
    """All constants of a graph, and of the graphs in it."""
    found = list(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                found.append(attribute.t)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                found += tensors_of(onnx, attribute.g)
    return found


def check_order(graph: Any, where: str) -> None:
    """Check that each value is computed once, and before it is used.

    Raises:
        ModelError: it is not, as in a cycle.
    """
    known = {value.name for value in graph.input} | {value.name for value in graph.initializer}
    known |= {value.values.name for value in graph.sparse_initializer}
    for node in graph.node:
        missing = [name for name in node.input if name and name not in known]
        if missing:
            raise ModelError(
                "a value is used before it is computed",
                where=f"{where}, node {node.name or node.op_type}",
                found=missing[0],
            )
        known |= {name for name in node.output if name}
    missing = [value.name for value in graph.output if value.name not in known]
    if missing:
        raise ModelError("an output is not computed", where=where, found=missing[0])


def array_of(onnx: Any, tensor: Any) -> Array:
    """A constant as an array; bfloat16 and its like become float32.

    Raises:
        ModelError: its data does not fit its shape.
    """
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        entries = _place_of(tensor)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        offset, shape = int(entries.get("offset", 0)), tuple(tensor.dims)
        return np.memmap(entries["location"], dtype, "r", offset, shape)
    try:
        array = np.asarray(onnx.numpy_helper.to_array(tensor))
    except Exception as error:
        raise ModelError(
            "a constant cannot be read", where=tensor.name, found=str(error)[:200]
        ) from None
    if array.dtype.kind not in "biufcSUO":
        return array.astype(np.float32)
    return array
