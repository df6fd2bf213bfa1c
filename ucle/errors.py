"""Every error that ucle raises on purpose, in one tree.

An error says where it happened, what was expected, what was found, and what to do about it. The
parts are attributes for programs, and the message combines them for people. Nothing here knows SQL,
DuckDB or the grammar.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return a hint for a word that may be misspelt, ignoring case; None without a similar word.

    >>> did_you_mean("sigmod", ["relu", "sigmoid", "sign"])
    'Did you mean "sigmoid" or "sign"?'
    """
    folded = {name.casefold(): name for name in sorted(known)}
    close = difflib.get_close_matches(word.casefold(), folded, 3)
    names = " or ".join(f'"{folded[candidate]}"' for candidate in close)
    return f"Did you mean {names}?" if close else None


class UcleError(Exception):
    """Base class of all errors that ucle raises on purpose.

    Args:
        message: the problem, in one sentence.
        where: the place: ``line 2, column 7``, ``input A, table edges``, ``vertex T``.
        expected: a description of valid values.
        found: the value that was found instead.
        hint: advice on how to solve the problem.

    >>> print(UcleError("two ranks", where="line 1", expected="2 labels", found="3 labels"))
    line 1: two ranks
      expected: 2 labels
      found: 3 labels
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.where = where
        self.expected = expected
        self.found = found
        self.hint = hint
        super().__init__(self._render())

    def _render(self) -> str:
        head = f"{self.where}: {self.message}" if self.where else self.message
        parts = (("expected", self.expected), ("found", self.found), ("hint", self.hint))
        return "\n".join([head, *(f"  {name}: {text}" for name, text in parts if text)])


class StaleStatisticsWarning(UserWarning):
    """A program runs on data that has many more or fewer entries than it was compiled for.

    The results are right, but another plan may be much faster.
    """


class MeaningWarning(UserWarning):
    """A program is valid, but programs like it are often meant to compute something else.

    The message says what that may be, and how to write it.
    """


class NotConvergedWarning(UserWarning):
    """A loop has reached its maximum number of steps, but its condition does not hold."""


class CancellationWarning(UserWarning):
    """A sum lost too many digits in its cheapest form and was computed again in a safe one.

    The result is right; with ``rewrite="safe"`` it takes less time.
    """


class MetadataWarning(UserWarning):
    """The description in a file or table does not fit its contents, and is ignored.

    Columns were renamed, reordered or replaced, or another tool wrote the description.
    """


class KernelsMissingWarning(UserWarning):
    """There are no compiled kernels, so programs run as plain SQL.

    The answers are the same, but programs on arrays take many times as long.
    """


class ProgramError(UcleError, ValueError):
    """The text of a program is wrong: its syntax, its names or its labels."""


class ProgramSyntaxError(ProgramError):
    """The text does not follow the grammar."""


class NameResolutionError(ProgramError):
    """A tensor or function is unknown, defined twice, or defined in terms of itself."""


class LabelError(ProgramError):
    """Labels do not fit: wrong rank, an output label that no input has, mixed letter case."""


class OperatorError(ProgramError):
    """An operator cannot be registered as declared."""


class PathError(ProgramError, RuntimeError):
    """A contraction path does not contract the operands to one result."""


class BoundError(UcleError, ValueError):
    """Two bounds of one label contradict each other, or a bound is missing or not a size."""


class InputError(UcleError):
    """An input cannot be read as a tensor: unknown table or column, wrong types, bad shape."""


class DuplicateCoordinatesError(InputError):
    """Several entries of an input have the same coordinates."""


class CoordinateError(InputError):
    """A coordinate is NULL, negative or outside its bound."""


class ArgumentError(InputError, ValueError):
    """An argument has a value that is not allowed."""


class AxisError(InputError, ValueError, IndexError):
    """A tensor has no such axis, or the axis is invalid; also a ValueError and an IndexError."""


class PositionError(InputError, IndexError):
    """A position lies outside its axis, or is not a position."""


class LazyError(UcleError, TypeError):
    """Python asks a lazy tensor for something that only its entries determine, such as a length."""


class ArgumentTypeError(InputError, TypeError):
    """An argument has a type that is not allowed, or is unknown."""


class AlgorithmError(InputError, KeyError):
    """There is no algorithm of that name for finding a contraction path."""

    __str__ = Exception.__str__


class ValueTypeError(InputError, TypeError):
    """A value is NULL, not a number, or an array of the wrong length."""


class OutputNameError(UcleError, KeyError):
    """A result has no tensor of that name."""

    __str__ = Exception.__str__


class OutputError(UcleError):
    """A result cannot be written to a file."""


class DatabaseError(UcleError):
    """A database cannot be opened, is locked, or refuses a request."""


class ColumnsError(DatabaseError):
    """An existing table has other columns than the rows to be written."""


class MaintenanceError(DatabaseError):
    """The tables that a maintained program has kept no longer fit the data."""


class ResultClosedError(DatabaseError):
    """A result or its connection was closed, or its transaction was rolled back."""


class ReadOnlyError(DatabaseError):
    """Something has to be written to a database that was opened for reading."""


class KernelError(UcleError):
    """The compiled kernels are missing or refuse a call."""


class KernelsMissingError(KernelError):
    """This installation has no compiled kernels, and the request needs them."""


class ExtensionUnavailableError(KernelError):
    """A connection cannot load the native kernels; the Arrow route can serve it."""


class ExtensionForbiddenError(ExtensionUnavailableError):
    """The database was opened without permission to load extensions such as the kernels."""


class ExtensionStrippedError(ExtensionUnavailableError):
    """The kernels were stripped of their footer, and there is no place for a copy that has one."""


class MemoryLimitError(UcleError):
    """All decompositions, or the requested one, need more memory than is allowed or free."""


class UnsupportedError(UcleError):
    """The request is well-formed, but ucle has no way to do it."""


class MissingPackageError(UnsupportedError, ImportError):
    """A package is needed that is not installed: scipy, pandas, polars, python-igraph."""


class ModelError(InputError, ValueError):
    """The file of a model is damaged or inconsistent."""


class DepthError(UnsupportedError):
    """A program is nested more deeply than Python or DuckDB can follow."""


class ExecutionError(UcleError):
    """DuckDB refused or aborted a statement that ucle sent."""


class NumberRangeError(ExecutionError, OverflowError):
    """A number is outside the range of its element type, such as a NaN as an integer."""
