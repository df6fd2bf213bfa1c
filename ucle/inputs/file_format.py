"""The record of a file format: its suffixes, its reader and writer, and what it can hold.

`ucle.inputs.formats` is the table of these records. A reader takes a path and returns an Arrow
table, a sparse matrix or an array; a writer takes a tensor, a binary file and the form in which the
caller wants the rows. Writers know a tensor by `WritableTensor` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from ucle.errors import UnsupportedError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.inputs.sparse_arrays import SparseArray
from ucle.plan.forms import WrittenForm
from ucle.plan.sources import DataFile

if TYPE_CHECKING:
    import pyarrow as pa
    import scipy.sparse


class WritableTensor(Protocol):
    """The ways to read a stored tensor that writers need (`ucle.run.stored_tensor`)."""

    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its axes."""
        ...

    @property
    def fill(self) -> Scalar:
        """The number of all entries that are not stored."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its entries."""
        ...

    def batches(
        self, form: WrittenForm
    ) -> AbstractContextManager[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        """Its rows in a form, as Arrow batches with a schema that describes the tensor."""
        ...

    def to_numpy(self) -> NDArray[Any]:
        """All of its entries."""
        ...

    def to_scipy(self) -> scipy.sparse.coo_array:
        """Its entries other than 0 as a sparse array."""
        ...

    def nonzero(self) -> SparseArray:
        """Its entries other than 0, with coordinates."""
        ...


@dataclass(frozen=True)
class Holding:
    """The tensors that a format can hold."""

    tensors: str
    """A plural for messages, such as "matrices"."""
    refusal: Callable[[WritableTensor], str | None]
    """The property of a tensor for which the format cannot hold it, or None."""


ANY = Holding("tensors", lambda tensor: None)
REAL = Holding(
    "real numbers", lambda tensor: str(tensor.dtype) if tensor.dtype.kind == "c" else None
)
MATRICES = Holding(
    "matrices", lambda tensor: f"rank {len(tensor.shape)}" if len(tensor.shape) != 2 else None
)


@dataclass(frozen=True)
class FileFormat:
    """A file format.

    A format without `read` and `scan` is only written, one without `write` only read.
    """

    name: str
    suffixes: tuple[str, ...]
    """Suffixes in lower case; the first one is the usual one."""
    read: Callable[[str], Any] | None = None
    """Reads a file into memory."""
    scan: Callable[[str], DataFile] | None = None
    """The source of a file that DuckDB reads, and only the parts of it that it needs."""
    write: Callable[[WritableTensor, BinaryIO, WrittenForm], None] | None = None
    holds: Holding = ANY
    options: tuple[str, ...] = ()
    """The options of `save` that apply: ``rows`` where rows are written in a form that the caller
    chooses, ``keys`` where they may hold arrays."""
    text: bool = False
    """True for text, which may be compressed."""

    def check_holds(self, tensor: WritableTensor) -> None:
        """Check that files of this format can hold a tensor.

        Raises:
            UnsupportedError: they cannot.
        """
        if (found := self.holds.refusal(tensor)) is not None:
            raise UnsupportedError(
                f"{self.name} cannot hold this tensor",
                where=f"save {tensor.name}",
                expected=self.holds.tensors,
                found=found,
                hint="Parquet and Arrow files hold every tensor",
            )
