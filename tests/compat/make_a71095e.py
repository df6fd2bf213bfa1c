"""Writes the files of this folder, as commit a71095e writes them; run with that commit's code.

    git archive a71095e | tar -x -C OLD && cd OLD && pip install -e . 'duckdb==1.4.*'
    python make_a71095e.py FOLDER

With DuckDB 1.4, the oldest that is supported, so that all versions can read the database, which is
packed as it is mostly empty.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import duckdb

import ucle
from ucle import facts


def write(folder: Path) -> None:
    """A database with a note and a kept table, and files with metadata."""
    facts.NOTED_ENTRIES = 1
    database = folder / "a71095e.db"
    with duckdb.connect(str(database)) as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT (range // 5)::INT i, (range % 5)::INT j, range + 1.0 v "
            "FROM range(30) WHERE range % 5 <= 1 OR range = 29"
        ).fetchall()
    program = ucle.einsum_program(
        "Y[i,k] += A[i,j] * A[k,j]",
        A="A",
        database=str(database),
        decomposition={"Y": {"i"}},
        store="A",
    )
    with program.execute() as result:
        for suffix in ("parquet", "arrow"):
            result["Y"].save(folder / f"a71095e.{suffix}")
    packed = gzip.compress(database.read_bytes(), mtime=0)
    database.with_name("a71095e.db.gz").write_bytes(packed)
    database.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
