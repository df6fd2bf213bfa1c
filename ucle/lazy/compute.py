"""Computing lazy tensors: their statements go through the same pipeline as those of a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from ucle.database.change_detection import Quiet
from ucle.database.data_versions import observing
from ucle.database.macro_check import open_own, open_passing
from ucle.database.session import Database, Session
from ucle.errors import (
    DatabaseError,
    KernelsMissingError,
    LabelError,
    MemoryLimitError,
    UcleError,
    UnsupportedError,
)
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.caches import BoundedCache
from ucle.foundation.dtypes import DType
from ucle.foundation.exact_key import ExactKey
from ucle.foundation.threads import import_late
from ucle.inputs.relations import input_dtype
from ucle.language.syntax import Statement
from ucle.lazy.meaning import depends_on_types
from ucle.lazy.nodes import Apply, Lazy, Leaf, Node, in_order
from ucle.lazy.share_nodes import share_nodes
from ucle.lazy.statements import LazyProgram, relabel_dictionaries, to_program, with_units
from ucle.lazy.types import Types, node_types
from ucle.program import EinsumProgram, einsum_program
from ucle.run.results import Result

MOST_BYTES = 1 << 23
"""Bytes of all statements that are kept."""

_statements = BoundedCache[tuple[Statement, ...]](MOST_BYTES)


@validated(database=args.database_or_spark, bounds=args.optional(args.sizes))
def compile_tensors(
    outputs: Mapping[str, Lazy],
    /,
    database: Database = None,
    *,
    preferred: Mapping[str, Sequence[str]] | None = None,
    **options: Any,
) -> EinsumProgram:
    """Compile one program that computes several tensors.

    Args:
        outputs: the tensors by the names of the outputs.
        database: where tables are; by default the database that the tensors were made with.
        preferred: a decomposition to take unless the options have one, or it cannot be computed:
            a scan is not, in arrays along other axes than its own.
        options: as for `einsum_program`. Bounds and decompositions use the names of axes.

    Raises:
        UcleError: as for `einsum_program`; a note shows the program.
    """
    nodes = share_nodes({name: with_units(tensor) for name, tensor in outputs.items()})
    database = _database(nodes, database)
    program = to_program(nodes, _types(nodes, database))
    _check_bounds(nodes, options.get("bounds") or {})
    compiled = partial(
        einsum_program,
        _kept_statements(program.statements),
        inputs=program.inputs,
        database=database,
        **{"outputs": tuple(outputs), **options},
    )
    if preferred is not None and "decomposition" not in options:
        with suppress(UnsupportedError, KernelsMissingError, MemoryLimitError):
            return compiled(decomposition=preferred)
    try:
        return compiled()
    except UcleError as error:
        error.add_note(f"The tensors make this program:\n{program}")
        raise


def _kept_statements(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return the same statements as before, so that what is known of them is found by identity."""
    return _statements.get_or_make(ExactKey.find(statements), lambda: statements)


@contextmanager
def compute_tensors(
    outputs: Mapping[str, Lazy], database: Database = None, **options: Any
) -> Iterator[Result]:
    """Compute some tensors, for a block that reads the results it needs.

    If they come from no database, they are computed on one in memory that the process keeps
    (`ucle.database.macro_check.open_own`), and nothing is left in it.

    Args:
        outputs: the tensors by the names of the outputs.
        database: where tables are; by default the database that the tensors were made with.
        options: as for `compile_tensors`.
    """
    database = _database({name: with_units(tensor) for name, tensor in outputs.items()}, database)
    with ExitStack() as stack:
        if database is None and not options.get("store"):
            database = stack.enter_context(open_own()).connection
        program = compile_tensors(outputs, database, **options)
        yield stack.enter_context(program.execute())


@validated()
def program_of(outputs: Mapping[str, Lazy]) -> LazyProgram:
    """Build the statements of some tensors without querying any database."""
    nodes = share_nodes({name: with_units(tensor) for name, tensor in outputs.items()})
    return to_program(nodes, _types(nodes, None, look=False))


@validated()
def known_type(tensor: Lazy) -> DType | None:
    """The element type, if the inputs determine it without a database."""
    return node_types([tensor.node])[tensor.node]


def _types(outputs: Mapping[str, Node], database: Database, look: bool = True) -> Types:
    """Infer the types of all nodes; tables are queried only if the meaning of a node needs it."""
    nodes = in_order(outputs.values())
    unknown = [node for node in nodes if isinstance(node, Leaf) and node.dtype is None]
    decided = any(isinstance(node, Apply) and depends_on_types(node) for node in nodes)
    if not unknown or not decided or not look:
        return node_types(outputs.values())
    if args.is_spark(database):
        read = {leaf: _type_on_spark(database, leaf) for leaf in unknown}
    else:
        with open_passing(database) as session:
            quiet = Quiet.begin(session)
            with observing(session, quiet.seen):
                read = {leaf: _table_type(session, leaf) for leaf in unknown}
            quiet.end()
    return node_types(outputs.values(), lambda leaf: leaf.dtype or read[leaf])


def _table_type(session: Session, leaf: Leaf) -> DType:
    labels = _labels(leaf)
    return input_dtype(session, leaf.name, relabel_dictionaries(leaf, labels), labels)


def _type_on_spark(spark: Any, leaf: Leaf) -> DType:
    labels = _labels(leaf)
    sources = import_late("ucle.spark.sources")  # import for Spark users only
    found: DType = sources.type_on_spark(
        spark, leaf.name, relabel_dictionaries(leaf, labels), labels
    )
    return found


def _labels(leaf: Leaf) -> list[str]:
    return [f"i{n}" for n in range(len(leaf.axes))]


def _database(outputs: Mapping[str, Node], stated: Database) -> Database:
    """The database of a program: the stated one, or that of its inputs.

    Raises:
        DatabaseError: inputs of different databases.
    """
    if stated is not None:
        return stated
    nodes = in_order(outputs.values())
    databases: list[Any] = []
    for node in nodes:
        if isinstance(node, Leaf) and node.database is not None and node.database not in databases:
            databases.append(node.database)
    if len(databases) > 1:
        raise DatabaseError(
            "the tensors come from different databases",
            where="database",
            expected="one database for all tables",
            found=" and ".join(map(str, databases)),
            hint="ATTACH one to the other and name its tables database.schema.table",
        )
    return databases[0] if databases else None


def _check_bounds(outputs: Mapping[str, Node], bounds: Mapping[str, int]) -> None:
    nodes = in_order(outputs.values())
    names = {axis.name for node in nodes for axis in node.axes if axis.name is not None}
    if unknown := [name for name in bounds if name not in names]:
        raise LabelError(
            f"no axis is called {unknown[0]!r}",
            where="bounds",
            expected="one of " + ", ".join(sorted(names)) if names else "axes with names",
            found=unknown[0],
            hint="for axes without names, pass the sizes to ucle.table(..., bounds=[...])",
        )
