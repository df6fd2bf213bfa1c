"""Files in the formats of Arrow and NumPy: Parquet, IPC, CSV, ``.npy`` and ``.npz``.

The libraries read and write them; rows are written as they arrive. DuckDB reads Parquet and CSV.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np

from ucle.foundation.libraries import pa, pa_csv, pq, scipy_module
from ucle.inputs.file_format import WritableTensor
from ucle.plan.forms import WrittenForm


def write_parquet(tensor: WritableTensor, file: BinaryIO, form: WrittenForm) -> None:
    """Write the rows of a form with a schema that describes the tensor."""
    with tensor.batches(form) as (schema, batches), pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def read_ipc(path: str) -> pa.Table:
    """Read an Arrow file, or a stream in a file."""
    with pa.memory_map(path) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()


def write_ipc(tensor: WritableTensor, file: BinaryIO, form: WrittenForm) -> None:
    """Write the rows of a form with a schema that describes the tensor."""
    with tensor.batches(form) as (schema, batches), pa.ipc.new_file(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_csv(tensor: WritableTensor, file: BinaryIO, form: WrittenForm) -> None:
    """Write the rows of a form below a line of names."""
    with (
        tensor.batches(form) as (schema, batches),
        pa_csv.CSVWriter(file, schema.remove_metadata()) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)


def read_npy(path: str) -> Any:
    """Map the array of a file into memory."""
    return np.load(path, mmap_mode="r", allow_pickle=False)


def write_npy(tensor: WritableTensor, file: BinaryIO, form: WrittenForm) -> None:
    """Write all entries as one array."""
    np.save(file, tensor.to_numpy(), allow_pickle=False)


def read_npz(path: str) -> Any:
    """Read a sparse array as scipy saves it, or the only array in the file."""
    with np.load(path, allow_pickle=False) as archive:
        if "format" in archive.files:
            return scipy_module("scipy.sparse", path).load_npz(path)
        if len(archive.files) != 1:
            raise ValueError(
                f"it holds {len(archive.files)} arrays ({', '.join(archive.files)}): "
                "np.load(path)[name] picks one"
            )
        return archive[archive.files[0]]


def write_npz(tensor: WritableTensor, file: BinaryIO, form: WrittenForm) -> None:
    """Write a matrix with fill 0 in scipy's sparse format, anything else as one array ``val``."""
    if len(tensor.shape) == 2 and tensor.fill == 0:
        sparse = scipy_module("scipy.sparse", f"save {tensor.name}, .npz")
        sparse.save_npz(file, tensor.to_scipy())
    else:
        np.savez_compressed(file, val=tensor.to_numpy())
