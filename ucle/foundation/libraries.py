"""Libraries that are imported on first use, and not with ucle.

Arrow takes longer to import than most of ucle, and a program may be compiled, explained and written
as SQL without it. scipy, pandas and polars are optional: ucle imports them only for features that
need them.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from ucle.errors import MissingPackageError
from ucle.foundation.threads import import_late

if TYPE_CHECKING:
    import click as click  # noqa: PLC0414 - for those who import it from here
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq


class LateModule(ModuleType):
    """A stand-in for a module, which is imported on first access to an attribute.

    >>> LateModule("math").floor(2.5)
    2
    """

    def __getattr__(self, name: str) -> Any:
        try:
            module = import_late(self.__name__)
        except ImportError:
            if name.startswith("__"):  # tools that inspect everything read these
                raise AttributeError(name) from None
            raise
        return getattr(module, name)


if not TYPE_CHECKING:
    click = LateModule("click")
    pa = LateModule("pyarrow")
    pc = LateModule("pyarrow.compute")
    pa_csv = LateModule("pyarrow.csv")
    pq = LateModule("pyarrow.parquet")


def optional(name: str, where: str, hint: str) -> Any:
    """Import a module of an optional package, for a feature that needs it.

    Args:
        name: of the module, such as ``scipy.sparse``.
        where: what needs it, for the message.
        hint: how to get it, or what to do without.

    Raises:
        MissingPackageError: it cannot be imported.

    >>> optional("math", "here", "look elsewhere").floor(2.5)
    2
    """
    try:
        return import_late(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingPackageError(
            f"{package} is not installed",
            where=where,
            expected=f"the package {package}",
            found=str(error),
            hint=hint,
        ) from error


def scipy_module(name: str, where: str) -> Any:
    """Import a module of scipy, the extra ``scipy``; arguments and errors as for `optional`."""
    return optional(name, where, "pip install 'ucle[scipy]'")


__all__ = ["LateModule", "optional", "pa", "pa_csv", "pc", "pq", "scipy_module"]
