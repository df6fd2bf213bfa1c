"""Files that a script makes from the formats' descriptions are read as plain readers read them."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from file_samples import samples

import ucle

COUNT = int(os.environ.get("UCLE_FILES", "99"))
"""The number of files; 1000 take some 20 seconds."""

TOGETHER = 11
"""Files that one program reads: compiling takes longer than reading."""


def test_files_are_read_as_plain_readers_read_them(tmp_path: Path) -> None:
    every = iter(list(islice(samples(39), COUNT)))
    with ucle.connect() as connection:
        while some := list(islice(every, TOGETHER)):
            statements, inputs = [], dict[str, Any]()
            for number, sample in enumerate(some):
                path = tmp_path / sample.name
                path.write_bytes(sample.content)
                labels = [f"{label}{number}" for label in "ijkl"[: sample.expected.ndim]]
                statements.append(f"y{number}[{','.join(labels)}] = A{number}[{','.join(labels)}]")
                inputs[f"A{number}"] = sample.read(path)
            program = ucle.einsum_program(
                "\n".join(statements),
                inputs=inputs,
                database=connection,
                decomposition="relational",
            )
            with program.execute() as result:
                for number, sample in enumerate(some):
                    found = result[f"y{number}"].to_numpy()
                    np.testing.assert_array_equal(found, sample.expected, repr(sample))
