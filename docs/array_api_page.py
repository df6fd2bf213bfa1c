"""The page that lists the functions of the Python array API standard that ucle has."""

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

BY_DATA = "the shape of the result depends on the data; the shape of a lazy tensor never does"
MISSING: dict[str, str] = {
    "nonzero": f"{BY_DATA}; `to_arrow()` returns the entries that differ from the fill",
    **dict.fromkeys(
        ("unique_all", "unique_counts", "unique_inverse", "unique_values"),
        f"{BY_DATA}; use `SELECT DISTINCT` on the `relation` of a result",
    ),
}
"""Why a function is missing: under its name is an error that says the same."""

PAGE = """\
{note}

# The array API standard

ucle has {there} of the {all} functions of the [Python array API
standard](https://data-apis.org/array-api/2024.12/), under the same names, and the constants `e`,
`inf`, `nan`, `newaxis` and `pi`. All of these functions are lazy and work on tables of any size:
they fetch no data, and nothing is computed before you ask for the entries of a tensor.

{table}

These points differ from the standard and from NumPy:

- The element types are `bool`, `int64`, `float32`, `float64`, `complex64` and `complex128`, as
  `ucle.__array_namespace_info__()` reports. For complex numbers, ucle has arithmetic, the
  logarithm, the exponential function, the square root and the hyperbolic tangent. Other functions,
  such as `sin`, raise a `ValueTypeError`.
- An integer overflow is an error, and so is a `bitwise_left_shift` that loses bits.
- Zero and NaN have no sign: `signbit(-0.0)` is false, and `copysign` treats both as positive.
- If the indices are entries of a tensor (`take`, `take_along_axis`), negative indices do not count
  from the end.
- There is no item assignment. A mask does not select a list of entries; with named axes, `t[mask]`
  sets all other entries to 0. `__array_namespace__` is missing, because it promises the whole
  standard.
- If axes have names, functions take these names in place of axis numbers.

If an operation makes a tensor dense, it is computed only if the result fits into memory. Otherwise,
you get a `MemoryLimitError` before anything runs. Take a table of a million rows, which is a tensor
with two axes of a million positions each: `cumulative_sum`, `std` and `softmax` of this tensor do
not fit. Sums of its `cos` or `exp`, on the other hand, take a fraction of a second, because all
entries that are not stored have the same value, which is computed once.

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

NumPy's own functions accept lazy tensors and return lazy tensors. This includes `np.dot`,
`np.trace`, `np.diagonal`, `np.kron`, `np.cov` and `np.corrcoef`, and in `np.linalg` the functions
that `ucle.linalg` has: `norm`, `trace` and `diagonal`, and for stacks of dense matrices `solve`,
`inv`, `det`, `slogdet`, `cholesky`, `eigh`, `eigvalsh`, `qr`, `svd`, `svdvals`, `lstsq`, `pinv`,
`matrix_rank` and `cond`. Other libraries can read a lazy tensor with `from_dlpack`, which computes
it.

## Fourier transforms

`ucle.fft` has all functions of the standard's extension `fft`, with NumPy's arguments: `fft`,
`ifft`, `rfft`, `irfft`, `hfft`, `ihfft`, `fftn`, `ifftn`, `rfftn`, `irfftn`, `fftfreq`,
`rfftfreq`, `fftshift` and `ifftshift`. It also has NumPy's `fft2`, `ifft2`, `rfft2` and `irfft2`.
A transform is a product with a matrix of roots of unity, whose entries are functions of their
positions. Therefore, it works on tables, and the optimiser can combine it with the other products
of a program. But its time is proportional to the square of the number of points, where NumPy takes
`n * log(n)`. These are the total times of `rfft` for 100 signals on one core:

| points | `ucle.fft.rfft` | `numpy.fft.rfft` |
| --- | --- | --- |
| 64 | 0.017 s | 0.0001 s |
| 256 | 0.018 s | 0.0002 s |
| 1,024 | 0.05 s | 0.0003 s |
| 2,048 | 0.24 s | 0.0007 s |
| 4,096 | 0.9 s | 0.001 s |

Up to about a thousand points, a transform takes no longer than any other small program. For longer
signals, it is better to call `to_numpy()` and let NumPy transform the result.

```python
signal = ucle.sin(ucle.arange(64) * (2 * np.pi * 5 / 64))
power = ucle.square(ucle.abs(ucle.fft.rfft(signal)))
print(ucle.argmax(power).item())
```

```text
5
```

## Look-ups in sorted tables

`searchsorted` returns the positions of values in a sorted table, and `take` reads at these
positions. Both are lazy.

```python
limits, prices = ucle.array([0, 10, 100]), ucle.array([5.0, 4.0, 2.5])
amounts = ucle.array([[3, 10], [99, 1000]])
print(ucle.take(prices, ucle.searchsorted(limits, amounts, side="right") - 1).to_numpy().tolist())
```

```text
[[5.0, 4.0], [4.0, 2.5]]
```
"""


def array_api_page(note: str) -> str:
    """The functions of the standard by section, and why some are missing."""
    rows = ["| section | available | missing |", "| --- | --- | --- |"]
    every, there = 0, 0
    for section, text in STANDARD.items():
        names = text.split()
        here = [name for name in names if name not in MISSING]
        missing = [name for name in names if name in MISSING]
        every, there = every + len(names), there + len(here)
        reasons: dict[str, list[str]] = {}
        for name in missing:
            reasons.setdefault(MISSING[name], []).append(f"`{name}`")
        absent = "; ".join(f"{', '.join(group)}: {why}" for why, group in reasons.items())
        rows.append(f"| {section} | {', '.join(f'`{name}`' for name in here)} | {absent} |")
        if absent_here := set(here) - set(ucle.__all__):
            raise AssertionError(f"{absent_here} are not there")
    return PAGE.format(note=note, there=there, all=every, table="\n".join(rows))
