"""Writing tensors to files; the suffix determines the format (`ucle.inputs.formats`).

A tensor that a format cannot hold is refused before a file is touched. A file appears when it is
complete (`ucle.foundation.atomic_files`).
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ucle.errors import LabelError, OutputError, UnsupportedError, did_you_mean
from ucle.foundation.atomic_files import fresh_file, fresh_folder
from ucle.inputs.formats import SUFFIXES, format_of, suffixes_taking
from ucle.inputs.metadata import describing, description
from ucle.run.stored_tensor import StoredTensor


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
    format_ = format_of(target.name, packings=(".gz",))
    if format_ is None or format_.write is None:
        raise UnsupportedError(
            "no format has this suffix",
            where=f"save {target}",
            expected=", ".join(SUFFIXES),
            found="".join(target.suffixes[-2:]) or "no suffix",
            hint=did_you_mean(target.suffix, SUFFIXES),
        )
    for name, value in (("keys", keys), ("rows", rows)):
        if value is not None and name not in format_.options:
            raise UnsupportedError(
                f"files of this suffix take no {name}=",
                where=f"save {target}",
                expected=", ".join(suffixes_taking(name)),
                found=f"{name}={value!r}",
            )
    if "rows" in format_.options:
        form = tensor.form(keys, rows, max_rows, f"save {target}")
    else:
        form = tensor.form(rows="nonfill")
    format_.check_holds(tensor)
    with _report_errors(target), fresh_file(target) as file:
        if target.suffix.casefold() == ".gz":
            with gzip.GzipFile(filename="", mode="wb", fileobj=file) as stream:
                format_.write(tensor, stream, form)  # type: ignore[arg-type]
        else:
            format_.write(tensor, file, form)


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
            "the folder holds something other than partitions",
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
            hint="the folder must exist and be writable",
        ) from error
