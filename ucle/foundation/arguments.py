"""Checks of the arguments that callers pass to public functions, before anything is read.

`validated` wraps a public function with a check for each argument. A check looks at one value by
itself and raises; relations between arguments are checked where they are known. The wrapper also
keeps a `RecursionError` from leaving the package (`ucle.foundation.tree_walk`).

    @validated(k=count(1), database=database)
    def plans(self, k=10, ...)

This module imports nothing of the compiler except its errors, so that every public module can use
it.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

import duckdb
import numpy as np

from ucle.errors import ArgumentError, ArgumentTypeError, did_you_mean
from ucle.foundation.tree_walk import limits_depth

Check = Callable[[Any, str], object]
"""Takes a value and its place for messages; raises if the value is not allowed."""

P = ParamSpec("P")
R = TypeVar("R")

NAME_BYTES = 255
"""The most bytes of one part of a path, on every file system in use."""

SHOWN = 80
"""The most characters of a value that a message shows."""


def validated(**checks: Check) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that checks the arguments of a public function before it runs.

    Only arguments that are passed are checked: defaults are valid. ``None`` is allowed where it is
    the default.

    Args:
        checks: what each argument has to pass, by its name; the name of a ``*args`` or ``**kwargs``
            parameter stands for each value in it that has no check of its own.

    >>> @validated(k=count(1))
    ... def first(items, k=1):
    ...     return items[:k]
    >>> first("abc", 2)
    'ab'
    >>> first("abc", "2")
    Traceback (most recent call last):
    ...
    ucle.errors.ArgumentTypeError: first(k=...): the argument has a type that it cannot have
      expected: an integer of at least 1
      found: '2'
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters
        title = function.__name__
        many = next((x.name for x in parameters.values() if x.kind is x.VAR_KEYWORD), None)
        unknown = checks.keys() - parameters.keys()
        assert not unknown or many is not None, f"{title} has no argument {unknown}"
        ready = {
            name: check if name not in parameters else _by_default(check, parameters[name])
            for name, check in checks.items()
        }
        unnamed = {x.name for x in parameters.values() if x.kind is x.POSITIONAL_ONLY}
        by_name = {name: check for name, check in ready.items() if name not in unnamed}
        others = by_name.get(many) if many is not None else None
        positional = [
            (name, ready.get(name)) for name, x in parameters.items()
            if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)
        ]  # fmt: skip
        variadic = next((x.name for x in parameters.values() if x.kind is x.VAR_POSITIONAL), None)
        every = ready.get(variadic) if variadic is not None else None
        most = len(positional) if variadic is None else sys.maxsize

        # Options are checked where they arrive, without the arguments that stand beside them.
        here = parameters.keys() if many == "options" else set[str]()
        called_elsewhere = {x for x, names in ELSEWHERE.items() if not here.isdisjoint(names)}
        limited = limits_depth(function)

        @wraps(function)
        def check_and_call(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > most:
                _refuse_positional(title, args[most], parameters)
            for (name, check), value in zip(positional, args, strict=False):
                if check is not None:
                    check(value, f"{title}({name}=...)")
            if every is not None:
                for n, value in enumerate(args[len(positional) :]):
                    every(value, f"{title}, {variadic} {n}")
            for name, value in kwargs.items():
                if name not in parameters and (many is None or name in called_elsewhere):
                    _refuse_keyword(title, name, parameters)
                check = by_name.get(name, None if name in parameters else others)
                if check is not None:
                    check(value, f"{title}({name}=...)")
            return limited(*args, **kwargs)

        return check_and_call

    return decorate


ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "con": ("database", "connection"),
    "conn": ("database", "connection"),
    "connection": ("database",),
    "dim": ("axis",),
    "if_exists": ("mode",),
    "keepdim": ("keepdims",),
    "overwrite": ("replace", "mode"),
    "sep": ("delimiter",),
}
"""Names that other libraries have for arguments, with the names that these have here."""


def _refuse_keyword(title: str, name: str, parameters: Mapping[str, Any]) -> NoReturn:
    """Raise for an argument that a function does not have."""
    own = [x for x in parameters if x != "self"]
    here = next((x for x in ELSEWHERE.get(name, ()) if x in own), None)
    raise ArgumentTypeError(
        "there is no such argument",
        where=f"{title}({name}=...)",
        expected=", ".join(own) if own else "no arguments",
        found=name,
        hint=f'Did you mean "{here}"?' if here is not None else did_you_mean(name, own),
    )


def _refuse_positional(title: str, value: Any, parameters: Mapping[str, Any]) -> NoReturn:
    """Raise for an argument without a name, where a function takes no more of these."""
    own = [x for x in parameters if x != "self"]
    named = [x for x in own if parameters[x].kind is inspect.Parameter.KEYWORD_ONLY]
    raise ArgumentTypeError(
        "there is one argument too many",
        where=title,
        expected=", ".join(x + ("=" if x in named else "") for x in own) or "no arguments",
        found=f"another one, {_show_value(value)}",
        hint="arguments shown with = have names: pass name=value" if named else None,
    )


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that still takes arguments by their old names, with a warning.

    Args:
        names: the name of each argument today, by its old name.

    >>> @renamed(n="k")
    ... def first(items, k=1):
    ...     return items[:k]
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     first("abc", n=2), str(told[0].message)
    ('ab', 'first(n=...) is deprecated: write first(k=...)')
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        title = function.__name__

        @wraps(function)
        def translate_and_call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in names.keys() & kwargs.keys():
                new = names[old]
                if new in kwargs:
                    raise ArgumentError(
                        "an argument is given under two names",
                        where=f"{title}({old}=...)",
                        expected=f"{new}= alone",
                        found=f"{new}= and {old}=, its old name",
                    )
                warnings.warn(
                    f"{title}({old}=...) is deprecated: write {title}({new}=...)",
                    DeprecationWarning,
                    stacklevel=2,
                )
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return translate_and_call

    return decorate


def _by_default(check: Check, parameter: inspect.Parameter) -> Check:
    return optional(check) if parameter.default is None else check


# ---- Checks ----


def text(value: Any, where: str) -> None:
    """Check that a value is a string."""
    if not isinstance(value, str):
        _wrong_type(where, "a string", value)


def word(value: Any, where: str) -> None:
    """Check that a value is a string that can be a name: not empty, and without NUL."""
    text(value, where)
    if not value or "\0" in value:
        _wrong_value(where, "a name", value)


def flag(value: Any, where: str) -> None:
    """Check that a value is True or False; a word such as ``"false"`` would be true."""
    if not isinstance(value, bool | np.bool_) and not (type(value) is int and value in (0, 1)):
        _wrong_type(where, "True or False", value)


def number(value: Any, where: str) -> None:
    """Check that a value is a number, of Python or NumPy."""
    if not isinstance(value, bool | int | float | complex | np.number | np.bool_):
        _wrong_type(where, "a number", value)


def real(value: Any, where: str) -> None:
    """Check that a value is a number that is not complex."""
    if not isinstance(value, int | float | np.integer | np.floating):
        _wrong_type(where, "a real number", value)


def share(value: Any, where: str) -> None:
    """Check that a value is a number above 0 and below 1."""
    real(value, where)
    if not 0 < value < 1:
        _wrong_value(where, "a number above 0 and below 1", value)


def function(value: Any, where: str) -> None:
    """Check that a value can be called."""
    if not callable(value):
        _wrong_type(where, "a function", value)


def path(value: Any, where: str) -> None:
    """Check that a value is a path that a file system can have."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        _wrong_type(where, "a path, as a string or os.PathLike", value)
    path_text = os.fspath(value)
    if "\0" in path_text:
        _wrong_value(where, "a path without NUL characters", path_text)
    if any(len(os.fsencode(part)) > NAME_BYTES for part in path_text.split(os.sep)):
        _wrong_value(where, f"a path whose parts have at most {NAME_BYTES} bytes", path_text)


def is_spark(value: Any) -> bool:
    """True if a database is a session of Spark, classic or Connect; PySpark is not imported."""
    return type(value).__module__.startswith("pyspark.") and hasattr(value, "createDataFrame")


def database(value: Any, where: str) -> None:
    """Check for the path of a database, or a connection; opening it checks the rest."""
    if isinstance(value, str | os.PathLike):
        path(value, where)
    elif value is not None and not isinstance(value, duckdb.DuckDBPyConnection):
        raise ArgumentTypeError(
            "this is not a database",
            where="database",
            expected="the path of a DuckDB file, ':memory:' or an open DuckDB connection",
            found=f"{type(value).__module__}.{type(value).__qualname__}",
            hint="for an Ibis connection, pass .con; in a dbt model, pass session.cursor()",
        )


def database_or_spark(value: Any, where: str) -> None:
    """Check for the path of a database, a connection, or a session of Spark."""
    if not is_spark(value):
        database(value, where)


def connection(value: Any, where: str) -> None:
    """Check that a value is a DuckDB connection."""
    if not isinstance(value, duckdb.DuckDBPyConnection):
        _wrong_type(where, "an open DuckDB connection", value)


def tensor_data(value: Any, where: str) -> None:
    """Check an input given by path; the contents of inputs are checked later."""
    if isinstance(value, str | os.PathLike):
        path(value, where)


def count(low: int = 0) -> Check:
    """Return a check for an integer from `low` on, of any library; booleans are refused."""

    def check(value: Any, where: str) -> None:
        expected = f"an integer of at least {low}"
        if _index(value, where, expected) < low:
            _wrong_value(where, expected, value)

    return check


def integer(value: Any, where: str) -> None:
    """Check that a value is an integer, of any library."""
    _index(value, where, "an integer")


def _index(value: Any, where: str, expected: str) -> int:
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        _wrong_type(where, expected, value)
    try:
        return int(value.__index__())
    except TypeError:  # an array of several elements has the method, too
        _wrong_type(where, expected, value)


def choice(*choices: str) -> Check:
    """Return a check for one of some words."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in choices:
            raise ArgumentError(
                "unknown value",
                where=where,
                expected="one of " + ", ".join(map(repr, choices)),
                found=_show_value(value),
                hint=did_you_mean(value, choices) if isinstance(value, str) else None,
            )

    return check


def optional(check: Check) -> Check:
    """Return a check that also allows None."""
    return lambda value, where: None if value is None else check(value, where)


def either(*kinds: tuple[type | tuple[type, ...], Check], otherwise: Check) -> Check:
    """Return a check that uses the first check whose type a value has."""

    def check(value: Any, where: str) -> None:
        for kind, chosen in kinds:
            if isinstance(value, kind):
                chosen(value, where)
                return
        otherwise(value, where)

    return check


def several(check: Check, expected: str, *, once: bool = False) -> Check:
    """Return a check for lists and similar of valid items; strings and dicts are refused.

    Args:
        check: of each item.
        expected: a description of the list, for messages.
        once: whether iterators will do, which are not looked into: whoever reads them checks them.
    """

    def check_all(value: Any, where: str) -> None:
        wrong = isinstance(value, str | bytes | bytearray | Mapping)
        if wrong or not isinstance(value, Iterable):
            _wrong_type(where, expected, value)
        if isinstance(value, Iterator):
            if not once:
                _wrong_type(where, expected, value)
            return
        for n, each in enumerate(value):
            check(each, f"{where}, item {n}")

    return check_all


def mapping(keys: Check, values: Check, expected: str) -> Check:
    """Return a check for a dict whose keys and values pass checks."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, Mapping):
            _wrong_type(where, expected, value)
        for key, each in value.items():
            keys(key, where)
            values(each, f"{where}, {key}")

    return check


def anything(value: Any, where: str) -> None:
    """Accept every value."""


names = either((str, text), otherwise=several(text, "a name, or several", once=True))
"""A name, or several."""

labels = several(text, "a list of labels")
"""Labels as a list: a string could be one label or several."""

inputs = mapping(text, tensor_data, "a dict from tensor to input")
"""Inputs by the names of tensors."""

sizes = mapping(text, anything, "a dict from label to size")
"""Sizes by label; `ucle.language.bounds` checks each of them with its label."""


def axis(value: Any, where: str) -> None:
    """Check for an axis, by name or position."""
    if isinstance(value, str):
        text(value, where)
    else:
        _index(value, where, "the name of an axis, or a position")


def _axes(value: Any, where: str) -> None:
    if isinstance(value, Iterable):
        several(axis, "axes, by name or position", once=True)(value, where)
    else:
        axis(value, where)


axes = either((str, text), otherwise=_axes)
"""One axis or several."""


ordered_axes = either((str, text), otherwise=several(axis, "axes in their order", once=True))
"""All axes in an order; a string counts as a list of its letters."""


def along(value: Any, where: str) -> None:
    """Check for axes of an aggregation; None means all."""
    if value is not None:
        axes(value, where)


def shape(value: Any, where: str) -> None:
    """Check for sizes of axes."""
    several(count(), "sizes of axes", once=True)(value, where)


def _show_value(value: Any) -> str:
    try:
        shown = repr(value)
    except Exception:  # a message must not fail for an object that cannot show itself
        shown = f"a {type(value).__qualname__}"
    return shown if len(shown) <= SHOWN else shown[:SHOWN] + "..."


def _wrong_type(where: str, expected: str, value: Any) -> NoReturn:
    raise ArgumentTypeError(
        "the argument has a type that it cannot have",
        where=where,
        expected=expected,
        found=_show_value(value),
    )


def _wrong_value(where: str, expected: str, value: Any) -> NoReturn:
    raise ArgumentError(
        "the argument has a value that it cannot have",
        where=where,
        expected=expected,
        found=_show_value(value),
    )
