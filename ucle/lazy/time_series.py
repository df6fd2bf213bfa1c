"""Functions along an ordered axis: windows, and entries so many positions before or behind.

Names and arguments are those of pandas and of SQL.
"""

from __future__ import annotations

from typing import Any

from ucle.errors import ArgumentError, UnsupportedError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.lazy.axes import AxisLike, find_axis
from ucle.lazy.periods import Periods, is_length, length_of_time, pairs_of_times
from ucle.lazy.positions_in_order import ordinals, shift_along
from ucle.lazy.rolling import Rolling
from ucle.lazy.tensor import Tensor, as_tensor, mask_of
from ucle.lazy.windows import Window


@validated(k=args.integer, axis=args.axis, fill_value=args.number)
def lag(x: Any, k: int = 1, axis: AxisLike = -1, fill_value: Any = 0) -> Tensor:
    """The entry `k` positions before each entry, like SQL's `LAG` and pandas' `shift`.

    Along dates and times, positions are those of the times that the data has.

    Args:
        x: a tensor.
        k: the number of positions; a negative number looks ahead.
        axis: the axis, by position or name.
        fill_value: the result where there is no such entry; for SQL's NULL, use `ucle.nan`.

    >>> import ucle
    >>> ucle.lag([1.0, 2.0, 4.0], fill_value=ucle.nan).to_numpy()
    array([nan,  1.,  2.])
    """
    return Tensor(shift_along(as_tensor(x).lazy, k, axis, fill_value))


@validated(k=args.integer, axis=args.axis, fill_value=args.number)
def lead(x: Any, k: int = 1, axis: AxisLike = -1, fill_value: Any = 0) -> Tensor:
    """The entry `k` positions after each entry: ``lag(x, -k)``.

    >>> import ucle
    >>> ucle.lead([1.0, 2.0, 4.0]).to_numpy()
    array([2., 4., 0.])
    """
    return Tensor(shift_along(as_tensor(x).lazy, -k, axis, fill_value))


@validated(
    axis=args.axis,
    min_periods=args.count(),
    center=args.flag,
    stored=args.flag,
)
def rolling(
    x: Any,
    window: Any,
    axis: AxisLike = -1,
    *,
    min_periods: int = 1,
    center: bool = False,
    where: Any = None,
    stored: bool = False,
) -> Rolling[Tensor] | Periods[Tensor]:
    """Windows along an axis, as in pandas: ``ucle.rolling(x, 7, axis="day").mean()``.

    The window of an entry holds its own position and the positions just before it. Along dates and
    times, only the times that occur in the data have positions, and results keep the times. All
    entries count, stored or not.

    Args:
        x: a tensor.
        window: the number of positions; or, along dates and timestamps, a length of time, such as
            ``"7d"`` or a timedelta. The window then holds its own time, and earlier times that are
            less than this length away.
        axis: the axis, by position or name.
        min_periods: the least number of entries in a window; results of windows with fewer entries
            are NaN. By default it is 1: windows at the beginning of the axis aggregate the
            positions that exist.
        center: True for windows with their entry in the middle; if the number of positions is even,
            there is one more before it than after it. Not available for lengths of time.
        where: a mask of the entries that count, as for `ucle.mean`; others are missing, as NaN is
            in pandas.
        stored: True if those that the input stores count, as for `ucle.mean`.

    Returns:
        The windows; their methods `sum`, `mean`, `min`, `max`, `std`, `var` and `count` return
        tensors with the axes of `x`. As in pandas, `std` and `var` have ``ddof=1``.

    >>> import ucle
    >>> ucle.rolling([1.0, 2.0, 4.0, 8.0], 2).sum().to_numpy()
    array([ 1.,  3.,  6., 12.])
    """
    tensor = as_tensor(x)
    mask = mask_of(tensor, where, stored, "rolling")
    place = find_axis(tensor.lazy, axis, "rolling")
    if is_length(window):
        months, micros = length_of_time(window, "rolling")
        if center or months:
            raise UnsupportedError(
                "windows of time have one length, and end at their entry",
                where="rolling",
                expected="a length in days, hours or less, without center=True",
                found=repr(window),
                hint="resample(x, '1mo') has steps of months",
            )
        pairs = pairs_of_times(tensor.lazy, place, "window", (0, micros), "rolling")
        return Periods(tensor.lazy, place, min_periods, mask, stored, Tensor, pairs)
    args.count(1)(window, "rolling(window=...)")
    size = tensor.lazy.axes[place].size
    shape = Window.of(window, center)
    if size:  # there are no more positions than the axis has
        shape = Window(min(shape.before, size), min(shape.behind, size - 1))
    if min_periods > window:
        raise ArgumentError(
            "no window has so many entries",
            where="rolling(min_periods=...)",
            expected=f"at most {window}",
            found=str(min_periods),
        )
    order = ordinals(tensor.lazy, place)
    return Rolling(tensor.lazy, place, min_periods, mask, stored, Tensor, shape, order)


@validated(axis=args.axis, stored=args.flag, empty=args.flag)
def resample(
    x: Any,
    step: Any,
    axis: AxisLike = -1,
    *,
    where: Any = None,
    stored: bool = False,
    empty: bool = True,
) -> Periods[Tensor]:
    """Steps of time along an axis: ``ucle.resample(x, "1mo", axis="day").sum()``.

    Args:
        x: a tensor with an axis of dates or timestamps of a table.
        step: the length of a step: a number and a unit, such as ``"1mo"``, ``"7d"`` or ``"30min"``,
            or a timedelta. The units are those of Polars: us, ms, s, m or min, h, d, w, mo, q, y.
        axis: the axis, by position or name.
        where: a mask of the entries that count, as for `ucle.mean`.
        stored: True if those that the input stores count, as for `ucle.mean`.
        empty: False to leave out steps that contain no time of the data.

    Returns:
        The steps; their methods `sum`, `mean`, `min`, `max`, `std`, `var`, `count`, `first` and
        `last` return tensors, whose coordinates along the axis are the starts of the steps. As in
        pandas, the steps cover all of the time from the first to the last entry. In a step without
        entries, `sum` and `count` are 0, and all others are NaN. With ``empty=False``, there are
        only steps that contain a time of the data. Weeks begin on Mondays. As in DuckDB's
        ``time_bucket``, steps of months are counted from 2000-01-01, and all others from
        2000-01-03.

    Raises:
        ArgumentError: `step` is not a length of time.
        UnsupportedError: the times of the axis are not those of one table.

    >>> import datetime
    >>> import pyarrow as pa
    >>> import ucle
    >>> days = [datetime.date(2024, 2, day) for day in (5, 6, 13)]
    >>> rows = pa.table({"day": days, "amount": [1.0, 2.0, 4.0]})
    >>> sales = ucle.tensor(ucle.table(rows, {"day": "day"}, "amount"))
    >>> weeks = ucle.resample(sales, "1w", axis="day").sum().to_arrow()
    >>> [(str(row["day"]), row["val"]) for row in weeks.sort_by("day").to_pylist()]
    [('2024-02-05', 3.0), ('2024-02-12', 4.0)]
    """
    tensor = as_tensor(x)
    mask = mask_of(tensor, where, stored, "resample")
    place = find_axis(tensor.lazy, axis, "resample")
    length = length_of_time(step, "resample")
    pairs = pairs_of_times(tensor.lazy, place, "step", length, "resample", every=empty)
    return Periods(tensor.lazy, place, 0, mask, stored, Tensor, pairs)
