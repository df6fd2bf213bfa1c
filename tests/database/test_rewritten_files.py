"""Files that are written again in place, with the time of their data set back, are others."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ucle
from ucle.database.data_versions import file_state
from ucle.errors import DuplicateCoordinatesError


def write(path: Path, i: list[int]) -> None:
    table = pa.table({"i": pa.array(i, pa.int32()), "v": [1.0, 2.0, 3.0]})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)


def test_coordinates_that_have_become_duplicates(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write(path, [0, 1, 2])
    before = path.stat()
    program = ucle.einsum_program("y[i] = x[i] + x[i]", x=ucle.table(str(path), bounds=[3]))
    with program.execute() as result:
        assert np.array_equal(result["y"].to_numpy(), [2, 4, 6])
    state = file_state(str(path))
    write(path, [0, 1, 1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )
    assert file_state(str(path)) != state
    for run in (program.execute, lambda: program.recompile().execute()):
        with pytest.raises(DuplicateCoordinatesError):
            run()
