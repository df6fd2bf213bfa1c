"""Writing tensors to files; the suffix tells the format.

Parquet and Arrow keep the tensor relation with its arrays and its description (`ucle.metadata`),
so that the file can be read back as the same tensor. The other formats keep what they can hold, and
what they cannot hold is refused before a file is touched. A file appears when it is complete.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse

from ucle.errors import OutputError, UnsupportedError, did_you_mean

if TYPE_CHECKING:
    from ucle.results import TensorRelation

Writer = Callable[["TensorRelation", BinaryIO], None]


def save(tensor: TensorRelation, path: str | os.PathLike[str]) -> None:
    """Write a tensor to a file.

    Raises:
        UnsupportedError: there is no format of that suffix, or the format cannot hold the tensor.
        OutputError: the file cannot be written.
    """
    target = Path(path)
    suffix, packed = target.suffix.casefold(), False
    if suffix == ".gz":
        suffix, packed = Path(target.stem).suffix.casefold(), True
    writer = WRITERS.get(suffix)
    if writer is None or (packed and suffix not in TEXT):
        raise UnsupportedError(
            "there is no format of this suffix",
            where=f"save {target}",
            expected=", ".join(SUFFIXES),
            found="".join(target.suffixes[-2:]) or "no suffix",
            hint=did_you_mean(target.suffix, SUFFIXES),
        )
    fresh = target.with_name(target.name + ".new")
    try:
        with gzip.open(fresh, "wb") if packed else fresh.open("wb") as file:
            writer(tensor, file)  # type: ignore[arg-type]
        fresh.replace(target)
    except OSError as error:
        raise OutputError(
            "the file cannot be written",
            where=str(target),
            found=str(error),
            hint="the folder has to be there, and open for writing",
        ) from error
    finally:
        fresh.unlink(missing_ok=True)


def _stored(tensor: TensorRelation) -> pa.Table:
    """The tensor relation, if its columns are in the order of the axes, and else its entries."""
    order = (*tensor.layout.promoted, *tensor.layout.dense)
    inside = [tensor.type.axes[axis] for axis in tensor.layout.dense]
    if order != tuple(range(len(order))) or any(axis.dictionary for axis in inside):
        return tensor.entries()
    return tensor.to_arrow()


def _write_parquet(tensor: TensorRelation, file: BinaryIO) -> None:
    pq.write_table(_stored(tensor), file)


def _write_ipc(tensor: TensorRelation, file: BinaryIO) -> None:
    stored = _stored(tensor)
    with pa.ipc.new_file(file, stored.schema) as writer:
        writer.write_table(stored)


def _write_csv(tensor: TensorRelation, file: BinaryIO) -> None:
    _refuse_complex(tensor, "CSV")
    pa.csv.write_csv(tensor.entries(), file)


def _write_matrix_market(tensor: TensorRelation, file: BinaryIO) -> None:
    if len(tensor.shape) != 2:
        raise _cannot_hold(tensor, "Matrix Market", "matrices", f"rank {len(tensor.shape)}")
    matrix = tensor.to_scipy()
    if matrix.dtype == bool:
        matrix = matrix.astype(np.int64)
    # Without a symmetry given, scipy would look for one, and read the matrix as a dense one.
    scipy.io.mmwrite(file, matrix, symmetry="general")


def _write_frostt(tensor: TensorRelation, file: BinaryIO) -> None:
    _refuse_complex(tensor, "FROSTT")
    matrix = tensor.to_scipy()
    values = matrix.data.astype(np.int64) if matrix.dtype == bool else matrix.data
    columns = [pa.array(keys + 1) for keys in matrix.coords]
    names = [str(n) for n in range(len(columns) + 1)]
    pa.csv.write_csv(
        pa.table([*columns, pa.array(values)], names),
        file,
        pa.csv.WriteOptions(include_header=False, delimiter=" "),
    )


def _write_npy(tensor: TensorRelation, file: BinaryIO) -> None:
    np.save(file, tensor.to_numpy(), allow_pickle=False)


def _write_npz(tensor: TensorRelation, file: BinaryIO) -> None:
    """A matrix with fill 0 as scipy saves sparse ones, anything else as the one array ``val``."""
    if len(tensor.shape) == 2 and tensor.fill == 0:
        scipy.sparse.save_npz(file, tensor.to_scipy())
    else:
        np.savez_compressed(file, val=tensor.to_numpy())


def _refuse_complex(tensor: TensorRelation, format_: str) -> None:
    if tensor.dtype.kind == "c":
        raise _cannot_hold(tensor, format_, "real numbers", str(tensor.dtype))


def _cannot_hold(
    tensor: TensorRelation, format_: str, expected: str, found: str
) -> UnsupportedError:
    return UnsupportedError(
        f"{format_} cannot hold this tensor",
        where=f"save {tensor.name}",
        expected=expected,
        found=found,
        hint="Parquet and Arrow files hold every tensor",
    )


TEXT: dict[str, Writer] = {
    ".csv": _write_csv,
    ".mtx": _write_matrix_market,
    ".tns": _write_frostt,
}
WRITERS: dict[str, Writer] = {
    ".parquet": _write_parquet,
    ".arrow": _write_ipc,
    ".feather": _write_ipc,
    ".ipc": _write_ipc,
    ".npy": _write_npy,
    ".npz": _write_npz,
    **TEXT,
}
SUFFIXES = (*WRITERS, *(f"{suffix}.gz" for suffix in TEXT))
