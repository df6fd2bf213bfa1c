"""Writes the files of this folder, as commit 98dc81d writes them; run with that commit's code.

    git archive 98dc81d | tar -x -C OLD && cd OLD && pip install -e .
    python make_98dc81d.py FOLDER

The database has a note, a kept table, a table of a result, and views with and without kernels; the
script is that of the program, with its kernels.
"""

from __future__ import annotations

import contextlib
import gzip
import sys
from pathlib import Path

import duckdb

import ucle
from ucle.database import facts

PRODUCT = "Y[i,k] += A[i,j] * A[k,j]"


def write(folder: Path) -> None:
    """Write a database with notes, tables and views, and a script."""
    facts.NOTED_ENTRIES = 1
    database = folder / "98dc81d.db"
    # The oldest DuckDB that is supported reads it, too.
    duckdb.connect(str(database), config={"storage_compatibility_version": "v1.2.0"}).close()
    with contextlib.closing(ucle.connect(str(database))) as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT (range // 5)::INT i, (range % 5)::INT j, range + 1.0 v "
            "FROM range(30) WHERE range % 5 <= 1 OR range = 29"
        ).fetchall()
        program = ucle.einsum_program(
            PRODUCT, A="A", database=connection, decomposition={"Y": {"i"}}, store="A"
        )
        with program.execute() as result:
            result["Y"].to_table("kept")
        program.create_views()
        connection.execute(program.macro_sql()).fetchall()
        plain = ucle.einsum_program(
            PRODUCT.replace("Y", "P"), A="A", database=connection, decomposition="relational"
        )
        plain.create_views()
        (folder / "98dc81d.sql").write_text(program.to_sql(), encoding="utf-8")
    (folder / "98dc81d.db.gz").write_bytes(gzip.compress(database.read_bytes(), mtime=0))
    database.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
