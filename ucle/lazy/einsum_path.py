"""The order of contraction that a caller of einsum requests, as a path.

`contraction_path` takes the `optimize` argument of `numpy.einsum` (a boolean, the name of an
algorithm, a name with a memory limit, a path) and returns a path as opt_einsum writes it: positions
of operands, whose result goes to the end. None leaves the order to the compiler.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ucle.errors import AlgorithmError, ArgumentTypeError
from ucle.foundation.libraries import LateModule
from ucle.ir.contraction_trees import Path
from ucle.language.subscripts import Subscripts
from ucle.lowering.contraction_orders import pairs

if TYPE_CHECKING:
    import opt_einsum
else:
    opt_einsum = LateModule("opt_einsum")


def contraction_path(
    optimize: Any, subscripts: Subscripts, sizes: Mapping[str, int] | None
) -> Path | None:
    """Return the path that `optimize` requests.

    Args:
        optimize: as in `numpy.einsum`; algorithms may be any of opt_einsum's, a path may do without
            the word ``"einsum_path"`` at its front.
        subscripts: labels of the operands and of the result.
        sizes: of the labels; where they are None, no algorithm is run.

    Raises:
        ArgumentTypeError: none of the forms that NumPy knows.
        PathError: a path that does not fit the operands.
        AlgorithmError: opt_einsum has no such algorithm.

    >>> chain = Subscripts((("i", "j"), ("j", "k"), ("k",)), ("i",))
    >>> contraction_path("optimal", chain, {"i": 9, "j": 9, "k": 9})
    ((1, 2), (0, 1))
    """
    match optimize:
        case None | bool() | "auto":
            return None
        case str(algorithm):
            return _find_path(algorithm, None, subscripts, sizes)
        case (str(algorithm), int() | float() as limit) if algorithm != "einsum_path":
            return _find_path(algorithm, max(int(limit), 1), subscripts, sizes)
        case ("einsum_path", *steps) | [*steps]:
            path = tuple(_step(step, optimize) for step in steps)
            pairs(path, len(subscripts.operands), "optimize")
            return path
    raise _not_understood(optimize)


def _find_path(
    algorithm: str, limit: int | None, subscripts: Subscripts, sizes: Mapping[str, int] | None
) -> Path | None:
    if sizes is None:
        return None
    symbols = {label: opt_einsum.get_symbol(n) for n, label in enumerate(subscripts.labels)}
    *terms, output = (
        "".join(symbols[label] for label in labels)
        for labels in (*subscripts.operands, subscripts.output)
    )
    shapes = [tuple(max(sizes[label], 1) for label in labels) for labels in subscripts.operands]
    try:
        path, _ = opt_einsum.contract_path(
            ",".join(terms) + "->" + output,
            *shapes,
            shapes=True,
            optimize=algorithm,
            memory_limit=limit,
        )
    except KeyError as error:
        raise AlgorithmError(
            "this algorithm for contraction paths does not exist",
            where="optimize",
            expected="True, False, 'greedy', 'optimal', another of opt_einsum's, or a path",
            found=repr(algorithm),
        ) from error
    return tuple(tuple(step) for step in path)


def _step(step: Any, optimize: Any) -> tuple[int, ...]:
    try:
        return tuple(operator.index(position) for position in step)
    except TypeError:
        raise _not_understood(optimize) from None


def _not_understood(optimize: Any) -> ArgumentTypeError:
    return ArgumentTypeError(
        "this does not say how to contract",
        where="optimize",
        expected="True, False, 'greedy', 'optimal', (algorithm, limit), or a path: tuples of ints",
        found=repr(optimize),
    )
