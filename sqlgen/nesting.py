"""Steps without key columns, written into each other.

A relation without key columns has one tuple at most, so a step that joins two of them and applies a
kernel is no more than an expression. A chain of such steps (the gates of a quantum circuit on a
state in one tuple, the layers of a small network) is one SELECT over a few relations of one tuple,
in which each kernel call is an argument of the next, or where all of them contract two tensors, one
call (`ucle.sqlgen.fused_contractions`). DuckDB takes half a millisecond to bind and plan each of as
many joins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from ucle.foundation.names import unique_names
from ucle.sqlgen.fused_contractions import is_contraction, with_paths
from ucle.sqlgen.sql_trees import VALUE, identifier, in_list, join, named, table

DEEPEST = 24
"""Steps inside of steps; DuckDB takes more, and Python's stack lets sqlglot write more."""

TALLEST = 200
"""Nodes above nodes in one expression: a step may apply many functions one after the other."""

WIDEST = 16
"""Relations in one FROM clause: with a hundred, DuckDB orders joins for a tenth of a second."""

PLAIN = {"expressions", "from_", "joins"}
"""The clauses of a SELECT that can be written into another one."""


def nested(
    queries: Mapping[str, exp.Select], separate: Collection[str] = ()
) -> dict[str, exp.Select]:
    """Queries with those written into their readers that have one reader and no key columns.

    Constants are written into all of their readers.

    Args:
        queries: by name, each after those that it reads.
        separate: names of queries that stay as they are.

    Returns:
        All of them; what was written into another one is there still, and read by none.
    """
    reads = Counter(read.name for query in queries.values() for read in query.find_all(exp.Table))
    chains: dict[str, _Chain] = {}
    for name, query in queries.items():
        if (chain := _chain(query)) is None:
            continue
        for source in chain.sources:
            inner = chains.get(source.name)
            if inner is None or source.name in separate:
                continue
            if not inner.sources:
                chain.takes(source, inner.copy())
            elif reads[source.name] == 1 and chain.takes(source, inner):
                del chains[source.name]
        chains[name] = chain
    return {
        **queries,
        **{name: chain.query() for name, chain in chains.items() if chain.length > 1},
    }


@dataclass(frozen=True)
class _Source:
    """A relation of one tuple in a FROM clause; `listed` is one whose value is put into a list."""

    alias: str
    name: str
    listed: bool


@dataclass
class _Chain:
    """An expression over relations of one tuple; `columns` are those that it reads.

    It grows in place: copies would make long chains take the square of their length.
    """

    value: exp.Expr
    sources: tuple[_Source, ...]
    columns: list[exp.Column]
    height: int
    depth: int = 1
    length: int = 1

    def takes(self, source: _Source, inner: _Chain) -> bool:
        """Put what one of the sources computes into its place, if it is read there once."""
        uses = [c for c in self.columns if c.table == source.alias]
        if len(uses) != 1:
            return False
        (use,) = uses
        place = use.parent if source.listed else use  # of a list the first element
        assert place is not None
        depth, height = self.depth + inner.depth, self.height + inner.height
        if is_contraction(place.parent) and is_contraction(inner.value):
            # One call will do both.
            depth, height = max(self.depth, inner.depth), max(self.height, inner.height)
        others = tuple(s for s in self.sources if s != source)
        read = {(s.name, s.listed) for s in (*others, *inner.sources)}
        if depth > DEEPEST or height > TALLEST or len(read) > WIDEST:
            return False
        self.columns = [c for c in self.columns if c is not use] + inner.columns
        self.sources = others + inner.rename(others)
        self.depth, self.height, self.length = depth, height, self.length + inner.length
        if place is self.value:
            self.value = inner.value
        else:
            place.replace(inner.value)
        return True

    def rename(self, beside: Sequence[_Source]) -> tuple[_Source, ...]:
        """Take other aliases than those of sources beside; the sources that are not among them."""
        taken = {source.alias.casefold() for source in beside}
        same = {(source.name, source.listed): source.alias for source in beside}
        aliases, more = {}, []
        for source in self.sources:
            key = source.name, source.listed
            if key not in same:
                (same[key],) = unique_names([source.alias], taken)
                more.append(replace(source, alias=same[key]))
            aliases[source.alias] = same[key]
        for read in self.columns:
            read.set("table", identifier(aliases[read.table]))
        return tuple(more)

    def copy(self) -> _Chain:
        """Another one of a constant."""
        return _Chain(self.value.copy(), (), [], self.height, depth=0)

    def query(self) -> exp.Select:
        """The SELECT."""
        query = exp.Select(expressions=[named(with_paths(self.value), VALUE)])
        for number, source in enumerate(map(_from, self.sources)):
            query = join(query, source, "CROSS") if number else query.from_(source, copy=False)
        return query


def _from(source: _Source) -> exp.Expr:
    relation = table(source.name, alias=source.alias)
    return in_list(relation, source.alias) if source.listed else relation


def _chain(query: exp.Select) -> _Chain | None:
    """What a query is, if it is an expression over joined relations without key columns."""
    if {name for name, value in query.args.items() if value} - PLAIN:
        return None
    if [expression.alias_or_name for expression in query.expressions] != [VALUE]:
        return None
    joins = query.args.get("joins") or []
    if any(join.args.get("on") or join.side or join.kind != "CROSS" for join in joins):
        return None
    first = query.args.get("from_")
    items = [*([first.this] if first else []), *(join.this for join in joins)]
    sources = [_source(item) for item in items]
    if not all(sources):
        return None
    value = query.expressions[0].unalias().copy()
    # Of a lambda the variable is a column, too.
    if value.find(exp.AggFunc, exp.Subquery, exp.Window, exp.Lambda):
        return None
    columns = list(value.find_all(exp.Column))
    for read in columns:
        if not read.table:
            read.set("table", identifier(items[0].alias_or_name))
    return _Chain(value, tuple(s for s in sources if s), columns, _height(value))


def _height(value: exp.Expr) -> int:
    """How many nodes stand above the lowest one of an expression, with that one."""
    heights = {id(value.parent): 0}
    for node in value.walk():  # each after the one above it
        heights[id(node)] = heights[id(node.parent)] + 1
    return max(heights.values())


def _source(item: exp.Expr) -> _Source | None:
    if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier) and not item.db:
        return _Source(item.alias_or_name, item.name, listed=False)
    if not isinstance(item, exp.Subquery) or not isinstance(item.this, exp.Select):
        return None
    inner = item.this
    if {name for name, value in inner.args.items() if value} - {"expressions", "from_"}:
        return None
    (value,), read = inner.expressions, inner.args["from_"].this
    if not isinstance(value, exp.Alias) or not isinstance(value.this, exp.Array):
        return None
    source = _source(read)
    return source and _Source(item.alias, source.name, listed=True)
