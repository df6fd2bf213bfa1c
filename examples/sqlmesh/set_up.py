"""Maintain a program over the baskets, and write the script that brings its table up to date.

To run it once, where ucle is installed: `python set_up.py DATABASE`. SQLMesh then needs the script
alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import ucle


def main(database: str, folder: Path = Path(__file__).parent) -> None:
    """Everything that needs ucle."""
    with ucle.connect(database) as connection:
        program = ucle.einsum_program(
            "popular[p] += B[b,p]",
            B=ucle.table("raw.baskets", ["basket", "product"], value=1),
            database=connection,
        )
        kept = program.maintain("popular", connection, append_only=["B"])
        script = kept.to_sql(kernels=False)
    (folder / "scripts").mkdir(exist_ok=True)
    (folder / "scripts" / "popular.sql").write_text(script)


if __name__ == "__main__":
    main(sys.argv[1])
