"""Compressed tensors of runs, as BLOBs: the same tensors as lists of entries, for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from operator_meanings import Array

from ucle.udf_kernels import Csr
from ucle.udf_kernels.compressed import MAGIC, RUNS


@dataclass(frozen=True)
class Runs:
    """Runs of one value each: their row, the column where they begin, and where they end."""

    rows: int
    cols: int
    row: Array
    begin: Array
    end: Array
    values: Array

    @staticmethod
    def random(rng: np.random.Generator, rows: int, cols: int, values: Array) -> Runs:
        """Up to as many runs in each row as there are values; some touch each other."""
        found: list[tuple[int, int, int]] = []
        for r in range(rows):
            cuts = np.unique(rng.integers(0, cols + 1, size=2 + cols // 4))
            pairs = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
            found += [(r, b, e) for b, e in pairs if rng.random() < 0.6]
        row, begin, end = np.array(found, np.int64).reshape(-1, 3).T
        return Runs(rows, cols, row, begin, end, rng.choice(values, size=len(found)))

    @property
    def entries(self) -> Csr:
        """The same as a list of entries."""
        lengths = self.end - self.begin
        col = [c for b, e in zip(self.begin, self.end, strict=True) for c in range(b, e)]
        row = np.repeat(self.row, lengths)
        cols = np.array(col, np.int64)
        return Csr.at_places(self.rows, self.cols, row, cols, np.repeat(self.values, lengths))

    def to_bytes(self) -> bytes:
        """The BLOB."""
        counts = np.bincount(self.row, minlength=self.rows)[: self.rows]
        ptr = np.concatenate([[0], np.cumsum(counts)])
        words = [[MAGIC, self.rows, self.cols, RUNS], ptr, self.begin, self.end]
        places = np.concatenate(words).astype("<u4").tobytes()
        return places + bytes(-len(places) % 8) + self.values.tobytes()


def decoded(blob: Any, dtype: np.dtype[Any]) -> list[Any]:
    """Rows, columns and values of a BLOB of entries or runs."""
    x = Csr.from_bytes(bytes(blob), dtype)
    return [x.rows, x.cols, x.row.tolist(), x.idx.tolist(), x.values.tolist()]
