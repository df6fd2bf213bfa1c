"""The kernels as SQL sees them: names, types, meaning. What runs them stands in ``csrc/``.

Tensors in flight are BLOBs of little-endian float64, row-major; a BLOB carries no shape. NULL
arguments make NULL, or are skipped by aggregates. Wrong lengths are SQL errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ucle.udf_kernels import reference as ref

BLOB, DOUBLE, BIGINT, VARCHAR = "BLOB", "DOUBLE", "BIGINT", "VARCHAR"
DOUBLES, BIGINTS = "DOUBLE[]", "BIGINT[]"


@dataclass(frozen=True)
class Kernel:
    """One SQL function.

    Attributes:
        name: on the extension route an aggregate's name has a capacity suffix behind it.
        parameters: SQL types of the arguments of one row.
        gathered: for aggregates, which arguments the Arrow route gets as ``list(argument)``; the
            others are constant within a group.
        reference: its meaning in NumPy. Tensors are one-dimensional arrays; gathered arguments
            are sequences.
    """

    name: str
    kind: Literal["scalar", "aggregate"]
    parameters: tuple[str, ...]
    returns: str
    doc: str
    reference: Callable[..., Any]
    gathered: tuple[bool, ...] = ()

    @property
    def arrow_parameters(self) -> tuple[str, ...]:
        """SQL types of the arguments on the Arrow route."""
        if self.kind == "scalar":
            return self.parameters
        pairs = zip(self.parameters, self.gathered, strict=True)
        return tuple(kind + "[]" if gathered else kind for kind, gathered in pairs)


def _scalar(
    name: str,
    parameters: tuple[str, ...],
    returns: str,
    doc: str,
    reference: Callable[..., Any],
) -> Kernel:
    return Kernel(name, "scalar", parameters, returns, doc, reference)


def _aggregate(
    name: str,
    parameters: tuple[str, ...],
    gathered: str,
    doc: str,
    reference: Callable[..., Any],
) -> Kernel:
    marks = tuple(mark == "x" for mark in gathered)
    return Kernel(name, "aggregate", parameters, BLOB, doc, reference, marks)


def _scalars() -> Iterator[Kernel]:
    v, vv = (BLOB,), (BLOB, BLOB)
    yield _scalar("pack", (DOUBLES,), BLOB, "A list as a tensor.", np.asarray)
    # Not "unpack": DuckDB keeps that name for UNPACK(COLUMNS(...)), even between quotes.
    yield _scalar("vec_to_list", v, DOUBLES, "A tensor as a list.", np.asarray)
    yield _scalar("full", (BIGINT, DOUBLE), BLOB, "n times one value.", np.full)
    yield _scalar("sca_to_vec", (DOUBLE,), BLOB, "A tensor of one entry.", lambda x: np.array([x]))
    yield _scalar(
        "element", (BLOB, BIGINT), DOUBLE, "The entry at an offset.", lambda v, i: float(v[i])
    )
    yield _scalar(
        "slice",
        (BLOB, BIGINT, BIGINTS, BIGINTS),
        BLOB,
        "The sub-tensor at (offset, sizes, strides), made dense.",
        ref.slice_,
    )
    yield _scalar(
        "any_not",
        (BLOB, DOUBLE),
        "BOOLEAN",
        "Whether an entry differs from the fill value.",
        lambda v, fill: ref.count_not(v, fill) > 0,
    )
    yield _scalar(
        "count_not", (BLOB, DOUBLE), BIGINT, "How many entries differ from it.", ref.count_not
    )
    for name, function in ref.MAPS.items():
        yield _scalar(f"vec_{name}", v, BLOB, f"{name} of every entry.", function)
    for name, operation in ref.COMBINES.items():
        both = ref.elementwise(operation)
        yield _scalar(f"vec_{name}", vv, BLOB, f"a {name} b, entry by entry.", both)
        yield _scalar(f"vec_sca_{name}", (BLOB, DOUBLE), BLOB, f"v {name} c.", both)
        if name in ("sub", "div", "pow"):
            yield _scalar(f"sca_vec_{name}", (DOUBLE, BLOB), BLOB, f"c {name} v.", both)
    yield _scalar("inner_prod", vv, DOUBLE, "The sum of a times b.", ref.inner_prod)
    yield _scalar("outer_prod", vv, BLOB, "Every entry of a times every one of b.", ref.outer_prod)
    yield _scalar("mat_vec_mult", vv, BLOB, "A (m x k) times x (k).", ref.mat_vec_mult)
    yield _scalar("vec_mat_mult", vv, BLOB, "x (k) times A (k x n).", ref.vec_mat_mult)
    yield _scalar(
        "mat_mat_mult", (*vv, BIGINT), BLOB, "A (m x k) times B (k x n), given k.", ref.mat_mat_mult
    )
    two, one = (VARCHAR, BIGINTS, *vv), (VARCHAR, BIGINTS, BLOB)
    yield _scalar("ein", two, BLOB, "Any contraction of two tensors.", ref.ein)
    yield _scalar("ein_sca", two, DOUBLE, "A contraction to a number.", ref.ein_sca)
    yield _scalar("ein1", one, BLOB, "Any reduction, diagonal or transpose.", ref.ein)
    yield _scalar("ein1_sca", one, DOUBLE, "A reduction to a number.", ref.ein_sca)


def _aggregates() -> Iterator[Kernel]:
    v, vv = (BLOB,), (BLOB, BLOB)
    scale = ref.elementwise(np.multiply)
    for reduce in ref.REDUCES:
        yield _aggregate(
            f"{reduce}_vec", v, "x", f"The {reduce}, entry by entry.", ref.reduced(reduce, np.copy)
        )
        yield _aggregate(
            f"{reduce}_ein",
            (VARCHAR, BIGINTS, *vv),
            "--xx",
            f"The {reduce} of contractions.",
            ref.reduced_ein(reduce),
        )
        yield _aggregate(
            f"{reduce}_ein1",
            (VARCHAR, BIGINTS, BLOB),
            "--x",
            f"The {reduce} of reductions.",
            ref.reduced_ein(reduce),
        )
    for name, parameters, function in (
        ("vec_sca_mult", (BLOB, DOUBLE), scale),
        ("vec_mult", vv, scale),
        ("outer_prod", vv, ref.outer_prod),
        ("vec_mat_mult", vv, ref.vec_mat_mult),
        ("mat_vec_mult", vv, ref.mat_vec_mult),
    ):
        yield _aggregate(
            f"sum_{name}", parameters, "xx", f"The sum of {name}.", ref.reduced("sum", function)
        )
    yield _aggregate(
        "sum_mat_mat_mult", (*vv, BIGINT), "xx-", "The sum of products.", ref.reduced_mat_mat
    )
    place = (BIGINT, DOUBLE)
    yield _aggregate(
        "stack_sca",
        (DOUBLE, BIGINT, *place),
        "xx--",
        "Numbers at their offsets in a tensor of total entries, fill elsewhere.",
        ref.stack_sca,
    )
    yield _aggregate(
        "stack", (BLOB, BIGINT, *place), "xx--", "Tensors at their offsets likewise.", ref.stack
    )
    yield _aggregate(
        "stack_strided",
        (BLOB, BIGINT, BIGINTS, BIGINTS, *place),
        "xx----",
        "Tensors scattered over (offset, sizes, strides) likewise.",
        ref.stack_strided,
    )


KERNELS: Mapping[str, Kernel] = MappingProxyType(
    {kernel.name: kernel for kernel in (*_scalars(), *_aggregates())}
)
"""Every kernel by its name."""
