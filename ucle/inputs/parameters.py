"""Parameters: arrays in memory whose numbers are replaced while a program stays compiled."""

from __future__ import annotations

from typing import Any

from ucle.errors import ArgumentTypeError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.inputs.inputs import describe_array
from ucle.inputs.labelled_arrays import coordinates_of
from ucle.inputs.operands import is_relation
from ucle.inputs.random_tensors import RandomTensor
from ucle.inputs.sparse_arrays import is_sparse
from ucle.inputs.table_input import TableInput


@validated(name=args.text)
def parameter(data: Any, name: str | None = None) -> TableInput:
    """Declare an array as a parameter: it is dense, and its numbers will be replaced later.

    A program relies only on its shape, on its element type, and, if all numbers are finite now, on
    all later numbers being finite. It is planned as a dense tensor even if it is all 0 at first,
    and none of its numbers are written into SQL.

    Args:
        data: a NumPy array, nested lists or a number; it is not copied.
        name: its name in lazy tensors, programs and messages.

    Returns:
        An input for `ucle.einsum_program` and for lazy tensors, which takes their operators.

    Raises:
        ArgumentTypeError: it is a table or a sparse array.
        ValueTypeError: it does not hold numbers.

    >>> import ucle
    >>> W = ucle.parameter([[0.0, 0.0], [0.0, 1.0]], name="W")
    >>> W @ [1.0, 2.0]
    <Tensor (2)>
    out[i] = sum[j](W[i,j] * X[j])
    >>> ucle.einsum_program("y[i] += W[i,j] * x[j]", W=W, x=[1, 2]).execute()["y"].to_numpy()
    array([0., 2.])
    """
    if isinstance(data, TableInput) and data.varies:
        return data if name is None else TableInput(data.relation, varies=True, name=name)
    if is_relation(data) or is_sparse(data) or coordinates_of("parameter", data) is not None:
        raise ArgumentTypeError(
            "a parameter is a dense array",
            where="parameter",
            expected="an array, nested lists or a number",
            found=f"{type(data).__module__.partition('.')[0]} {type(data).__qualname__}",
            hint="tables, sparse arrays and arrays with coordinates are inputs by themselves; what "
            "a table holds may change between executions",
        )
    title = "parameter" if name is None else name
    described = describe_array(title, TableInput(data))
    # The caller may change the array in place; a random tensor is drawn once.
    relation = described.data if isinstance(data, RandomTensor) else data
    return TableInput(relation, varies=True, name=name)


__all__ = ["parameter"]
