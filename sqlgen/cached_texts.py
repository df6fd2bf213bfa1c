"""Remember the texts of statements: each refresh runs the same ones, over other rows.

To write a statement takes longer than to run it where there are few rows. A text depends on names,
on how inputs are read, and on the queries that it contains. Numbers, names and queries that are
others each time are put into the remembered text.
"""

from __future__ import annotations

import inspect
import re
import secrets
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, ParamSpec, overload

from sqlglot import exp

from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.exact_key import ExactKey, Same
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import identifier

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


def rows_of(query: exp.Query, *, pretty: bool = False) -> Rows:
    """Return a tree of a query as text, in lines if it is to be read; the tree is used up."""
    return Rows(sql_text(query, pretty))


def subquery_of(rows: Rows, alias: str | None = None) -> exp.Subquery:
    """Return a query in parentheses, as a tree."""
    named_as = None if alias is None else exp.TableAlias(this=identifier(alias))
    return exp.Subquery(this=text_of(rows), alias=named_as)


def text_of(rows: Rows) -> exp.Var:
    """Return a query as a tree, for places that take no parentheses."""
    return exp.Var(this=rows.text)


@dataclass(frozen=True)
class _Marked:
    """An argument that is another one each time, in place of which something else is written."""

    mark: str
    """What is written: a number, a query, or the last part of a name."""
    kind: type
    qualifiers: tuple[str, ...] = ()
    """The first parts of a name."""

    @property
    def value(self) -> Any:
        """The argument with which a text is made."""
        if self.kind is int:
            return int(self.mark)
        if self.kind is str:
            return self.mark
        if self.kind is Rows:
            return Rows(self.mark)
        return (*self.qualifiers, self.mark)


class _Later:
    """What is put into a text in place of marks."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def mark(self, value: Any, *, varies: bool = False) -> Any:
        """Return an argument with marks in place of what is another one each time."""
        number = len(self._texts)
        if isinstance(value, Rows):
            return self._mark(_Marked(f"{_MARK}{number}_", Rows), value.text)
        if varies and type(value) is int:
            return self._mark(_Marked(str(_NUMBER + number), int), str(value))
        if varies and type(value) is str:
            return self._mark(_Marked(f"{_MARK}{number}_", str), value.replace('"', '""'))
        if isinstance(value, Mapping):
            return {key: self.mark(each, varies=varies) for key, each in value.items()}
        if varies and value is not None:
            *qualifiers, last = value
            found = _Marked(f"{_MARK}{number}_", tuple, tuple(qualifiers))
            return self._mark(found, last.replace('"', '""'))
        return tuple(map(self.mark, value)) if isinstance(value, tuple | list) else value

    def _mark(self, found: _Marked, text: str) -> _Marked:
        self._texts[found.mark] = text
        return found

    def put_into(self, text: str) -> str:
        """Return a text with what stands in place of marks, which may be marks of other texts."""
        if not self._texts:
            return text
        return re.sub("|".join(self._texts), lambda found: self._texts[found[0]], text)


def _unmarked(value: Any) -> Any:
    """Return an argument with which a text is made."""
    if isinstance(value, _Marked):
        return value.value
    if isinstance(value, Mapping):
        return {key: _unmarked(each) for key, each in value.items()}
    return tuple(map(_unmarked, value)) if isinstance(value, tuple) else value


@overload
def cached_text(make: Callable[P, str]) -> Callable[P, str]: ...


@overload
def cached_text(*, varying: Collection[str]) -> Callable[[Callable[P, str]], Callable[P, str]]: ...


def cached_text(make: Any = None, *, varying: Collection[str] = ()) -> Any:
    """Remember the texts that a function returns by its arguments.

    These are names, sources and whatever else has an exact key, and queries as `Rows`. A function
    may call others whose texts are remembered, too.

    Args:
        make: the function.
        varying: parameters that are others each time, and occur in the text as they are: names of
            tables, by their parts or as one, integers, and mappings to such names.

    >>> from sqlglot import select
    >>> from ucle.sqlgen.script import sql_text
    >>> from ucle.sqlgen.sql_trees import table
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


@overload
def cached_rows(make: Callable[P, exp.Query]) -> Callable[P, Rows]: ...


@overload
def cached_rows(
    *, varying: Collection[str]
) -> Callable[[Callable[P, exp.Query]], Callable[P, Rows]]: ...


def cached_rows(make: Any = None, *, varying: Collection[str] = ()) -> Any:
    """Remember the texts of queries that a function returns, as `cached_text` does."""
    if make is None:
        return lambda function: _rows_by(function, varying)
    return _rows_by(make, varying)


def _rows_by(make: Callable[..., exp.Query], varying: Collection[str]) -> Callable[..., Rows]:
    @wraps(make)
    def text_by(*arguments: Any, **named: Any) -> str:
        return sql_text(make(*arguments, **named))

    remembered = _remembered(text_by, varying)

    @wraps(make)
    def rows_by(*arguments: Any, **named: Any) -> Rows:
        return Rows(remembered(*arguments, **named))

    return rows_by
