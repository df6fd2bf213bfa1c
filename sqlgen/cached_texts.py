"""Remember the texts of statements: each refresh runs the same ones, over other rows.

To write a statement takes longer than to run it where there are few rows. A text depends on names,
on how inputs are read, and on the queries that it contains. Numbers, names and queries that are
others each time are put into the remembered text.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, ParamSpec, overload

from sqlglot import exp, select

from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.exact_key import ExactKey, Same
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import table

MOST_BYTES = 1 << 22
"""Bytes of all texts that are kept."""

P = ParamSpec("P")

_texts = BoundedCache[str](MOST_BYTES)

_MARK = f"ucle_{secrets.token_hex(8)}_"
"""The beginning of names that stand for others in remembered texts."""

_NUMBER = 10**17 + secrets.randbelow(10**17) * 8
"""The first of the numbers that stand for others."""


@dataclass(frozen=True)
class Rows:
    """A query as text, for statements that read its rows."""

    text: str


AnyQuery = exp.Query | Rows
"""A query whose rows a statement reads."""


def tree_of(query: AnyQuery) -> exp.Query:
    """Return the tree of a query; functions with `cached_text` never get another one."""
    assert isinstance(query, exp.Query)
    return query


@dataclass(frozen=True)
class _Marked:
    """An argument that is another one each time, in place of which something else is written."""

    mark: str
    """What is written: a number, or the last part of a name."""
    kind: type
    qualifiers: tuple[str, ...] = ()
    """The first parts of a name."""

    @property
    def value(self) -> Any:
        """The argument with which a text is made."""
        if self.kind is int:
            return int(self.mark)
        if self.kind is Rows:
            return select(exp.Star()).from_(table(self.mark))
        return (*self.qualifiers, self.mark)


class _Later:
    """What is put into a text in place of marks."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def mark(self, value: Any, *, varies: bool = False) -> Any:
        """Return an argument with marks in place of what is another one each time."""
        number = len(self._texts)
        if isinstance(value, Rows):
            found = _Marked(f"{_MARK}{number}_", Rows)
            own = f"({value.text})"
            self._texts[f'(SELECT * FROM "{found.mark}")'] = own
            self._texts[f'"{found.mark}"'] = own
            return found
        if varies and type(value) is int:
            found = _Marked(str(_NUMBER + number), int)
            self._texts[found.mark] = str(value)
            return found
        if varies and value is not None:
            *qualifiers, last = value
            found = _Marked(f"{_MARK}{number}_", tuple, tuple(qualifiers))
            self._texts[found.mark] = last.replace('"', '""')
            return found
        return tuple(map(self.mark, value)) if isinstance(value, tuple | list) else value

    def put_into(self, text: str) -> str:
        """Return a text with what stands in place of marks."""
        for mark, own in self._texts.items():
            text = text.replace(mark, own)
        return text


def _unmarked(value: Any) -> Any:
    """Return an argument with which a text is made."""
    if isinstance(value, _Marked):
        return value.value
    return tuple(map(_unmarked, value)) if isinstance(value, tuple) else value


@overload
def cached_text(make: Callable[P, str]) -> Callable[P, str]: ...


@overload
def cached_text(*, varying: Collection[str]) -> Callable[[Callable[P, str]], Callable[P, str]]: ...


def cached_text(make: Any = None, *, varying: Collection[str] = ()) -> Any:
    """Remember the texts that a function returns by its arguments.

    These are names, sources and whatever else has an exact key, and queries as `Rows`. With trees
    of queries among them, the function is called each time.

    Args:
        make: the function.
        varying: parameters that are others each time, and occur in the text as they are: names of
            tables, and integers.

    >>> from ucle.sqlgen.script import sql_text
    >>> @cached_text(varying=["last"])
    ... def behind(name, last):
    ...     print("written")
    ...     return sql_text(select("i").from_(table(name)).where(exp.column("i") > last))
    >>> behind("t", 3), behind("t", 4)
    written
    ('SELECT i FROM "t" WHERE i > 3', 'SELECT i FROM "t" WHERE i > 4')
    """
    if make is None:
        return lambda function: _remembered(function, varying)
    return _remembered(make, varying)


def _remembered(make: Callable[..., str], varying: Collection[str]) -> Callable[..., str]:
    parameters, own = inspect.signature(make).parameters, Same(make)
    assert not any(x.kind is x.VAR_POSITIONAL for x in parameters.values())
    names = tuple(parameters)

    @wraps(make)
    def text_of(*arguments: Any, **named: Any) -> str:
        given = dict(zip(names, arguments, strict=False)) | named
        later = _Later()
        marked = {name: later.mark(x, varies=name in varying) for name, x in given.items()}

        def written() -> str:
            return make(**{name: _unmarked(x) for name, x in marked.items()})

        return later.put_into(_texts.get_or_make(ExactKey.find((own, marked)), written))

    return text_of


def cached_rows(
    make: Callable[..., exp.Query], *, varying: Collection[str] = ()
) -> Callable[..., Rows]:
    """Remember the texts of queries that a function returns, as `cached_text` does."""
    text_of = _remembered(_text_by(make), varying)

    @wraps(make)
    def rows_of(*arguments: Any, **named: Any) -> Rows:
        return Rows(text_of(*arguments, **named))

    return rows_of


def _text_by(make: Callable[..., exp.Query]) -> Callable[..., str]:
    @wraps(make)
    def text_of(*arguments: Any, **named: Any) -> str:
        return sql_text(make(*arguments, **named))

    return text_of
