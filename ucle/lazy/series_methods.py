"""Methods of a lazy tensor that make windows along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ucle.foundation.threads import import_late

if TYPE_CHECKING:
    from ucle.lazy.periods import Periods
    from ucle.lazy.rolling import Rolling


class SeriesMethods:
    """The functions of `ucle.lazy.time_series` that pandas has as methods."""

    def rolling(
        self, window: Any, axis: int | str = -1, **options: Any
    ) -> Rolling[Any] | Periods[Any]:
        """Windows along an axis: `ucle.rolling`.

        >>> import ucle
        >>> ucle.array([1.0, 5.0, 2.0]).rolling(2).max().to_numpy()
        array([1., 5., 5.])
        """
        windows: Rolling[Any] | Periods[Any] = import_late("ucle.lazy.time_series").rolling(
            self, window, axis, **options
        )
        return windows

    def resample(self, step: Any, axis: int | str = -1, **options: Any) -> Periods[Any]:
        """Steps of time along an axis: `ucle.resample`."""
        steps: Periods[Any] = import_late("ucle.lazy.time_series").resample(
            self, step, axis, **options
        )
        return steps
