"""Attributes that users of NumPy, pandas and xarray look for, and what tensors have instead."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

_POSITIONS = "x[2], x[:3] take positions along axes without coordinates"
_COORDINATES = "x.sel(axis=...) takes coordinates, one or a list"

HINTS: Mapping[str, str] = {
    "at": _COORDINATES,
    "collect": "x.compute() computes it, and to_numpy(), to_pandas(), to_arrow() give the values",
    "coords": "x.compute().coordinates(axis) are those of a result",
    "describe": "ucle.mean, std, median and quantile aggregate; x.to_pandas().describe() shows all",
    "dims": "x.axes are the names of the axes",
    "fillna": "ucle.table(..., nulls='missing') leaves NULLs out, and nulls=0.0 takes 0 for them",
    "groupby": "a sum over the other axes is by group, x.sum('day'); sums by another column are "
    "products with a table of (member, group)",
    "head": f"x.to_pandas().head() shows rows; {_POSITIONS}",
    "iat": _POSITIONS,
    "idxmax": "x.argmax(axis) returns coordinates where the axis has them",
    "idxmin": "x.argmin(axis) returns coordinates where the axis has them",
    "iloc": _POSITIONS,
    "isel": _POSITIONS,
    "join": "x * y and x + y meet at equal coordinates of axes with the same name",
    "loc": _COORDINATES,
    "merge": "x * y and x + y meet at equal coordinates of axes with the same name",
    "nlargest": "x.top_k(k, axis)",
    "nsmallest": "x.bottom_k(k, axis)",
    "pivot": "x.to_pandas(columns=axis) makes a column for each coordinate of an axis",
    "plot": "x.to_pandas().plot() and x.to_xarray().plot() draw results",
    "size": "x.shape has the sizes, None for those that only the data determines",
    "tail": f"x.to_pandas().tail() shows rows; {_POSITIONS}",
    "tolist": "x.to_numpy().tolist()",
    "values": "x.to_numpy()",
}
"""What to write in place of attributes that tensors do not have, by their names."""


_OF_TENSORS = (
    "aggregations", "covariances", "functions", "linear_algebra", "manipulation", "ordering",
    "searching", "standard_functions", "statistics", "time_series",
)  # fmt: skip
"""Modules of this package whose public functions take a tensor first."""


def find_hint(name: str) -> str | None:
    """Return what to write in place of an attribute; None if there is nothing like it.

    >>> find_hint("diff")
    'ucle.diff(x, ...)'
    """
    public: Mapping[str, str] = import_module("ucle").EXPORTS
    if any(name in public[f"ucle.lazy.{module}"].split() for module in _OF_TENSORS):
        return f"ucle.{name}(x, ...)"
    return HINTS.get(name)
