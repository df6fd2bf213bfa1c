"""Maintain a program, and write the script that brings its table up to date as a macro of dbt.

To run it once, before the first build: `python set_up.py DATABASE`. The table of baskets may have
no rows yet.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import ucle
from ucle.errors import NameResolutionError

MACRO = "{{% macro refresh_popular() %}}\n{script}{{% endmacro %}}\n"


def main(database: str, folder: Path = Path(__file__).parent) -> None:
    """Everything that needs ucle."""
    with ucle.connect(database) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS baskets (basket INTEGER, product INTEGER)")
        with contextlib.suppress(NameResolutionError):
            ucle.maintained("popular", connection).drop()
        program = ucle.einsum_program(
            "popular[p] += B[b,p]", B=ucle.table("baskets", value=1), database=connection
        )
        kept = program.maintain("popular", connection, append_only=["B"])
        script = kept.to_sql(kernels=False, transaction=False)
    (folder / "macros" / "refresh_popular.sql").write_text(MACRO.format(script=script))


if __name__ == "__main__":
    main(sys.argv[1])
