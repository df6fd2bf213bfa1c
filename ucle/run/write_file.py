"""Writing tensors to files; the suffix determines the format.

Parquet and Arrow keep the tensor with its description (`ucle.inputs.metadata`), so that the file
can be read back as the same tensor; rows are written as they arrive. Other formats keep the parts
that they can represent; tensors that they cannot hold are refused before a file is touched. A file
appears when it is complete (`ucle.foundation.atomic_files`).
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ucle.errors import LabelError, OutputError, UnsupportedError, did_you_mean
from ucle.foundation.atomic_files import fresh_file, fresh_folder
from ucle.foundation.libraries import pa, pa_csv, pq, scipy_module
from ucle.inputs.metadata import describing, description
from ucle.plan.forms import WrittenForm
from ucle.run.stored_tensor import StoredTensor

Writer = Callable[[StoredTensor, BinaryIO, WrittenForm], None]


def save(
    tensor: StoredTensor,
    path: str | os.PathLike[str],
    keys: Sequence[str] | None,
    rows: str | None,
    max_rows: int,
) -> None:
    """Write a tensor to a file; see `TensorRelation.save`.

    Raises:
        UnsupportedError: no format has that suffix, or the format cannot hold the tensor.
        ArgumentError: there are too many rows.
        OutputError: the file cannot be written.
    """
    target = Path(path)
    suffix, packed = target.suffix.casefold(), False
    if suffix == ".gz":
        suffix, packed = Path(target.stem).suffix.casefold(), True
    writer = WRITERS.get(suffix)
    if writer is None or (packed and suffix not in TEXT):
        raise UnsupportedError(
            "no format has this suffix",
            where=f"save {target}",
            expected=", ".join(SUFFIXES),
            found="".join(target.suffixes[-2:]) or "no suffix",
            hint=did_you_mean(target.suffix, SUFFIXES),
        )
    restricted = (("keys", keys, KEYED), ("rows", rows, (*KEYED, ".csv")))
    for name, value, suffixes in restricted:
        if value is not None and suffix not in suffixes:
            raise UnsupportedError(
                f"files of this suffix take no {name}=",
                where=f"save {target}",
                expected=", ".join(suffixes),
                found=f"{name}={value!r}",
            )
    if suffix in (*KEYED, ".csv"):
        form = tensor.form(keys, rows, max_rows, f"save {target}")
    else:
        form = tensor.form(rows="nonfill")
    with _report_errors(target), fresh_file(target) as file:
        if packed:
            with gzip.GzipFile(filename="", mode="wb", fileobj=file) as stream:
                writer(tensor, stream, form)  # type: ignore[arg-type]
        else:
            writer(tensor, file, form)


def save_partitioned(
    tensor: StoredTensor,
    path: str | os.PathLike[str],
    keys: Sequence[str] | None,
    rows: str | None,
    max_rows: int,
    partition_by: Sequence[str],
) -> None:
    """Write a tensor to Parquet files in a folder for each value of some labels.

    An existing folder is replaced if it holds only such partitions.

    Raises:
        LabelError: a label to partition by has no column.
        OutputError: the folder cannot be written, or holds other files.
    """
    target = Path(path)
    form = tensor.form(keys, rows, max_rows, f"save {target}")
    names = {tensor.type.axes[axis].name: tensor.columns[axis] for axis in form.layout.promoted}
    labels = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    for name in labels or [""]:
        if name not in names:
            raise LabelError(
                "this label cannot partition the rows",
                where=f"save {target}",
                expected=", ".join(names) or "a label with a column",
                found=repr(name) if labels else "none",
                hint=did_you_mean(str(name), names),
            )
    if target.exists() and not _only_partitions(target):
        raise OutputError(
            "the folder holds something else than partitions",
            where=str(target),
            expected="no such folder, or one that holds label=value/*.parquet and nothing else",
            found="a file" if target.is_file() else "other files",
        )
    note = describing(description(tensor.type, form.layout))
    with _report_errors(target), fresh_folder(target) as folder:
        tensor.copy_to(form, str(folder), [names[name] for name in labels], note)


def _only_partitions(folder: Path) -> bool:
    """True if a folder holds only Parquet files in folders named label=value."""
    if not folder.is_dir() or folder.is_symlink():
        return False
    for place, folders, files in os.walk(folder):
        inside = Path(place) != folder
        if (files and not inside) or not all("=" in name for name in folders):
            return False
        if not all(name.endswith(".parquet") for name in files):
            return False
    return True


@contextmanager
def _report_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            "the file cannot be written",
            where=str(target),
            found=str(error),
            hint="the folder has to be there, and open for writing",
        ) from error


def _write_parquet(tensor: StoredTensor, file: BinaryIO, form: WrittenForm) -> None:
    with tensor.batches(form) as (schema, batches), pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_ipc(tensor: StoredTensor, file: BinaryIO, form: WrittenForm) -> None:
    with tensor.batches(form) as (schema, batches), pa.ipc.new_file(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_csv(tensor: StoredTensor, file: BinaryIO, form: WrittenForm) -> None:
    _refuse_complex(tensor, "CSV")
    with (
        tensor.batches(form) as (schema, batches),
        pa_csv.CSVWriter(file, schema.remove_metadata()) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)


def _write_matrix_market(tensor: StoredTensor, file: BinaryIO, form: WrittenForm) -> None:
    if len(tensor.shape) != 2:
        raise _cannot_hold(tensor, "Matrix Market", "matrices", f"rank {len(tensor.shape)}")
    writer = scipy_module("scipy.io", f"save {tensor.name}, Matrix Market")
    matrix = tensor.to_scipy()
    if matrix.dtype == bool:
        matrix = matrix.astype(np.int64)
    # Without a given symmetry, scipy would test for one, treating the matrix as dense.
    writer.mmwrite(file, matrix, symmetry="general")


def _write_frostt(tensor: StoredTensor, file: BinaryIO, form: WrittenForm) -> None:
    _refuse_complex(tensor, "FROSTT")
    matrix = tensor.nonzero()
    values = matrix.data.astype(np.int64) if matrix.dtype == bool else matrix.data
    if not len(values):
        file.write(f"# rank {len(tensor.shape)}: no entries\n".encode())
        return
    columns = [pa.array(keys + 1) for keys in matrix.coords]
    names = [str(n) for n in range(len(columns) + 1)]
    pa_csv.write_csv(
        pa.table([*columns, pa.array(values)], names),
        file,
        pa_csv.WriteOptions(include_header=False, delimiter=" "),
    )


def _write_npy(tensor: StoredTensor, file: BinaryIO, form: WrittenForm) -> None:
    np.save(file, tensor.to_numpy(), allow_pickle=False)


def _write_npz(tensor: StoredTensor, file: BinaryIO, form: WrittenForm) -> None:
    """Write a matrix with fill 0 in scipy's sparse format, anything else as one array ``val``."""
    if len(tensor.shape) == 2 and tensor.fill == 0:
        sparse = scipy_module("scipy.sparse", f"save {tensor.name}, .npz")
        sparse.save_npz(file, tensor.to_scipy())
    else:
        np.savez_compressed(file, val=tensor.to_numpy())


def _refuse_complex(tensor: StoredTensor, format_: str) -> None:
    if tensor.dtype.kind == "c":
        raise _cannot_hold(tensor, format_, "real numbers", str(tensor.dtype))


def _cannot_hold(tensor: StoredTensor, format_: str, expected: str, found: str) -> UnsupportedError:
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
KEYED = (".parquet", ".arrow", ".feather", ".ipc")
"""Suffixes of files that can hold arrays."""

SUFFIXES = (*WRITERS, *(f"{suffix}.gz" for suffix in TEXT))
