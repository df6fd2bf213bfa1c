"""Entry and exit points of lazy tensors: `tensor` and `array` make them, `compute` runs several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ucle.database.session import Database
from ucle.errors import ArgumentTypeError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.lazy import products
from ucle.lazy.compute import compile_tensors
from ucle.lazy.inputs import lift_input
from ucle.lazy.tensor import Tensor, tensor_operand
from ucle.run.results import TensorRelation


@validated(
    data=args.tensor_data,
    axes=args.names,
    ndim=args.count(),
    name=args.text,
    database=args.database_or_spark,
)
def tensor(
    data: Any,
    axes: Sequence[str] | None = None,
    *,
    ndim: int | None = None,
    name: str | None = None,
    database: Database = None,
) -> Tensor:
    """Make a lazy tensor from a table, a file, an array or a sparse matrix.

    Args:
        data: the name of a table or view, the path of a file, ``ucle.table(...)``, a table of
            Arrow, pandas or polars, a NumPy array, nested lists, or a scipy.sparse matrix. Data in
            memory is not copied: computations read its content at that time.
        axes: names of the axes. Without names, axes are identified by position.
        ndim: the number of axes of a table, if neither `axes` nor ``ucle.table(columns=...)``
            determines it.
        name: the name of the input in programs and messages; by default the table's own name.
        database: where tables are: a path or an open connection.

    Raises:
        InputError: the data cannot be read as a tensor.
        LabelError: the names are not valid labels, there are too many, or the number of axes is not
            determined.

    >>> import scipy.sparse
    >>> print(tensor(scipy.sparse.eye_array(3), axes=("row", "column")))
    <Tensor (row: 3, column: 3)>
    out[row,column] = X[row,column]
    >>> tensor("edges", axes=("src", "dst")).shape
    (None, None)
    """
    if isinstance(data, Tensor):
        return data if axes is None else data.named(*axes)
    return Tensor(lift_input(data, axes, ndim=ndim, name=name, database=database))


@validated(axes=args.names, name=args.text)
def array(
    data: Any,
    axes: Sequence[str] | None = None,
    *,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Make a lazy tensor from a NumPy array, nested lists or a scipy.sparse matrix.

    Args:
        data: the numbers; they are not copied.
        axes: names of the axes. Without names, axes are identified by position.
        dtype: element type; by default that of the data.
        name: the name of the input in programs and messages.

    >>> print(array([[1, 2], [3, 4]], axes=("row", "column")).sum("row"))
    <Tensor (column: 2)>
    out[column] = sum[row](X[row,column])
    """
    if isinstance(data, str):
        raise ArgumentTypeError(
            "a name is not an array",
            where="array",
            expected="an array, nested lists or a sparse matrix",
            found=repr(data),
            hint="ucle.tensor(name, axes=...) reads a table of the database",
        )
    untyped = tensor(data, axes, name=name)
    return untyped if dtype is None else untyped.astype(dtype)


@validated(database=args.database_or_spark)
def compute(
    *tensors: Tensor, database: Database = None, **options: Any
) -> tuple[TensorRelation, ...]:
    """Compute several tensors in one program; common parts are computed once.

    Args:
        tensors: the tensors to compute.
        database: where tables are; by default the database that the tensors were made with.
        options: as for `ucle.einsum_program`; the outputs are called ``out0``, ``out1`` ...

    Returns:
        A tensor relation for each tensor.

    >>> x = array([1.0, 2.0, 4.0])
    >>> [t.to_numpy().item() for t in compute(x.sum(), x.max())]
    [7.0, 4.0]
    """
    if not tensors:
        return ()
    outputs = {f"out{n}": tensor_operand(tensor) for n, tensor in enumerate(tensors)}
    result = compile_tensors(outputs, database, **options).execute()
    return tuple(result[name] for name in outputs)


def einsum(subscripts: str, *tensors: Any) -> Tensor:
    """NumPy's einsum as a lazy tensor; `ucle.einsum` calls it if an operand is lazy.

    >>> x = array([[1, 2], [3, 4]])
    >>> einsum("ij,kj->ik", x, x).to_numpy()
    array([[ 5, 11],
           [11, 25]])
    """
    return Tensor(products.einsum(subscripts, [tensor_operand(x) for x in tensors]))
