"""The page that says which functions of the Python array API standard there are."""

from __future__ import annotations

import ucle

STANDARD: dict[str, str] = {
    "Creation": "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid "
    "ones ones_like tril triu zeros zeros_like",
    "Element types": "astype can_cast finfo iinfo isdtype result_type",
    "Entry by entry": "abs acos acosh add asin asinh atan atan2 atanh bitwise_and "
    "bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj "
    "copysign cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot imag "
    "isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not "
    "logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow "
    "real reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc",
    "Indexing": "take take_along_axis",
    "Products": "matmul matrix_transpose tensordot vecdot",
    "Shapes": "broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat "
    "reshape roll squeeze stack tile unstack",
    "Searching": "argmax argmin count_nonzero nonzero searchsorted where",
    "Sets": "unique_all unique_counts unique_inverse unique_values",
    "Sorting": "argsort sort",
    "Statistics": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "Other": "all any diff __array_namespace_info__",
}
"""The functions of the edition 2024.12, by its sections."""

BY_DATA = "the shape of its result depends on data, which no lazy tensor's does"
MISSING: dict[str, str] = {
    "nonzero": f"{BY_DATA}; `to_arrow()` gives the entries that differ from the fill",
    **dict.fromkeys(
        ("unique_all", "unique_counts", "unique_inverse", "unique_values"),
        f"{BY_DATA}; `SELECT DISTINCT` over `relation` of a result says it",
    ),
    "searchsorted": "there is no search in an order yet",
}
"""Why a function is not there."""

PAGE = """\
{note}

# The array API standard

Lazy tensors have {there} of the {all} functions of the [Python array API
standard](https://data-apis.org/array-api/2024.12/) under its names in `ucle`, and its numbers
`e`, `inf`, `nan`, `newaxis` and `pi`. All of them are lazy: they give tensors that are computed
when somebody asks, on tables of any size, and none of them fetches anything.

{table}

What differs from the standard, and from NumPy:

- The element types are `bool`, `int64`, `float32`, `float64`, `complex64` and `complex128`;
  `ucle.__array_namespace_info__()` says so. Of complex numbers there are the logarithm,
  exponential, root, hyperbolic tangent and the operations of arithmetic, but no `sin` and its
  like; asking for one is a `ValueTypeError`.
- Integers that overflow are an error, also where `bitwise_left_shift` loses bits.
- A zero has no sign, nor has NaN: `signbit(-0.0)` is false, and `copysign` takes them as
  positive.
- Indices do not count from the end where they are entries of a tensor (`take`,
  `take_along_axis`).
- There is no item assignment, and no mask picks entries. `__array_namespace__` is not there, as
  it promises all of the standard.
- Functions of named axes take names where the standard takes numbers.

A result that has a value of its own at each of its positions is computed as long as it fits into
memory; where it does not, the compiler says so by a `MemoryLimitError`, before anything runs. So
it is for `cumulative_sum`, `std` or `softmax` of a table with a million rows along two axes of a
million positions, while sums of `cos` or `exp` of the same table take a fraction of a second:
what is the same at all positions that are not stored is computed once.

```python
import numpy as np

import ucle

x = ucle.zeros((1_000_000, 1_000_000)) + ucle.eye(1_000_000)
print(round(ucle.cos(x).mean().item(), 12))
print(round(np.linalg.norm(ucle.hypot(x, 3 * ucle.eye(1_000_000))).item(), 6))
```

```text
0.999999540302
3162.27766
```

NumPy's own functions of these names give lazy tensors when they are handed one, among them
`np.dot`, `np.trace`, `np.diagonal`, `np.kron`, `np.cov`, `np.corrcoef` and what `ucle.linalg` has
of `np.linalg`: `norm`, `trace` and `diagonal`, and of dense matrices, any number at a time,
`solve`, `inv`, `det`, `slogdet`, `cholesky`, `eigh`, `eigvalsh`, `qr`, `svd`, `svdvals`,
`lstsq`, `pinv`, `matrix_rank` and `cond`. What is computed can be read by `from_dlpack` of other
libraries.
"""


def array_api_page(note: str) -> str:
    """The functions of the standard by their sections, and why those are missing that are."""
    rows = ["| section | here | not here |", "| --- | --- | --- |"]
    every, there = 0, 0
    for section, text in STANDARD.items():
        names = text.split()
        here = [name for name in names if name in ucle.__all__]
        missing = [name for name in names if name not in here]
        every, there = every + len(names), there + len(here)
        reasons: dict[str, list[str]] = {}
        for name in missing:
            reasons.setdefault(MISSING[name], []).append(f"`{name}`")
        absent = "; ".join(f"{', '.join(group)}: {why}" for why, group in reasons.items())
        rows.append(f"| {section} | {', '.join(f'`{name}`' for name in here)} | {absent} |")
    if stale := MISSING.keys() & set(ucle.__all__):
        raise AssertionError(f"{stale} are there by now")
    return PAGE.format(note=note, there=there, all=every, table="\n".join(rows))
