"""Scripts in dialects other than DuckDB's: emitted trees translated by the tables of a dialect.

The emitter builds trees for DuckDB, but with the operators of the target dialect already in them. A
few kinds of nodes are left to translate: tables of numbers, joins by place, tables that are
created, numbers that are written out. A function that neither the dialect nor this module knows is
refused, so that no script has SQL that means something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from sqlglot import exp

from ucle.errors import UnsupportedError
from ucle.foundation.dtypes import DType
from ucle.plan import relation_nodes as plan
from ucle.plan.complete_keyless import complete_keyless
from ucle.plan.inline import inline_views, keep_in_statement
from ucle.plan.materialise import (
    materialise_checked,
    materialise_deep,
    materialise_outputs,
    materialise_shared,
)
from ucle.plan.passes import Pass
from ucle.plan.relation_tree import nodes
from ucle.plan.sources import InMemory, OneRow, TableName, TableSource
from ucle.plan.steps import Plan
from ucle.sqlgen.capabilities import Capabilities
from ucle.sqlgen.dialects import Dialect
from ucle.sqlgen.dialects.tables import Statements
from ucle.sqlgen.plan_to_sql import SqlStep
from ucle.sqlgen.scalar_operators import place_arguments, text_functions
from ucle.sqlgen.sql_trees import identifier

PASSES: tuple[Pass, ...] = (
    complete_keyless,
    materialise_checked,
    materialise_shared,
    materialise_outputs,
    inline_views,
    keep_in_statement,
    materialise_deep,
)
"""The passes to a plan that any engine can run: without arrays and without DuckDB's workarounds."""

KNOWN = frozenset({"least", "greatest", "concat"})
"""Functions that the emitter calls and that every dialect has, besides those of its texts."""

REFUSED = (exp.Struct, exp.Bracket, exp.Array, exp.Unnest, exp.Explode, exp.Lambda, exp.ArrayAgg)
"""Nodes of DuckDB's lists and structs, refused unless a text of the dialect has them."""


def build_capabilities(dialect: Dialect) -> Capabilities:
    """The capabilities that the emitter may use of an engine with a dialect."""
    return Capabilities(dialect.name, kernels=False, dialect=dialect)


def check_plan(program_plan: Plan, dialect: Dialect) -> None:
    """Check that a dialect has names for the types and places of all tensors in a plan.

    Raises:
        UnsupportedError: there are complex numbers, arrays, or files other than Parquet.
    """
    relations = [
        node
        for step in program_plan.steps
        for each in (step, *step.views)
        for node in nodes(each.relation)
    ]
    for relation in relations:
        if relation.type.dtype not in dialect.types:
            raise _build_error(
                dialect,
                f"there is no {relation.type.dtype.name.lower()}",
                expected=", ".join(each.name.lower() for each in dialect.types),
                found=f"{relation.type.dtype.name.lower()}",
            )
        if not relation.layout.scalar:
            raise _build_error(
                dialect,
                "a tensor lies in arrays",
                expected="a row for every entry",
                found="an input with arrays, or a step that makes them",
                hint="pass decomposition='relational', and inputs with a row for every entry",
            )
        if isinstance(relation, plan.TableScan):
            _check_source(relation.source, dialect)


def _check_source(source: TableSource, dialect: Dialect) -> None:
    files = dialect.statements is not None and dialect.statements.files
    parquet = files and str(source.origin).lower().endswith((".parquet", ".pq"))
    if not (isinstance(source.origin, TableName | InMemory | OneRow) or parquet):
        raise _build_error(
            dialect,
            "an input is a file",
            expected="tables and views" + (", or Parquet files" if files else ""),
            found=str(source.origin),
            hint="compile the program for a table or view of that name",
        )


def _build_error(
    dialect: Dialect, message: str, *, expected: str, found: str, hint: str | None = None
) -> UnsupportedError:
    return UnsupportedError(
        message,
        where=f"to_sql(dialect={dialect.name!r})",
        expected=expected,
        found=found,
        hint=hint or "execute() and dialect='duckdb' support it",
    )


@cache
def _functions(dialect: Dialect) -> frozenset[str]:
    """The names of functions in the texts of a dialect."""
    tables = dialect.combines, dialect.reduces, dialect.maps
    texts = [text for table in tables for kinds in table.values() for text in kinds.values()]
    statements = _statements(dialect)
    texts += [*statements.functions.values(), *statements.casts.values(), statements.numbers]
    return frozenset(name for text in texts for name in text_functions(text, dialect))


def _statements(dialect: Dialect) -> Statements:
    assert dialect.statements is not None, "the dialect in which trees are made"
    return dialect.statements


def translate_tree(tree: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Translate a tree that the emitter built into a dialect. The tree is used up.

    Raises:
        UnsupportedError: it has something that the dialect lacks.
    """
    statements, known = _statements(dialect), KNOWN | _functions(dialect)

    def place_text(text: str, **arguments: exp.Expr) -> exp.Expr:
        return place_arguments(text, arguments, DType.FLOAT64, dialect)

    def check(name: str) -> None:
        if name.lower() not in known:
            raise _build_error(
                dialect,
                f"the SQL of {dialect.name} has no equivalent of {name}",
                expected="operators and inputs that need rows alone",
                found=f"a step that DuckDB does with {name}",
            )

    def translate_node(node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Table(this=exp.Anonymous(this="range") as call):
                node.set("this", place_text(statements.numbers, x=call.expressions[0]))
            case exp.Table(this=exp.Anonymous(this="read_parquet") as call):
                node.set("this", identifier(call.expressions[0].name))
                node.set("db", identifier(statements.files))
            case exp.Table(this=exp.Anonymous(this=str() as name)):
                check(name)
            case exp.Table() if node.args.get("db") is not None:
                node.set("db", None)
                node.set("catalog", None)
            case exp.Join() if node.kind == "POSITIONAL":
                node.set("kind", "CROSS")
            case exp.CTE():
                marked = statements.once and node.args.get("materialized")
                node.set("materialized", marked or None)
            case exp.Anonymous(this=str() as name) if name.lower() in statements.functions:
                return place_text(statements.functions[name.lower()], x=node.expressions[0])
            case exp.Anonymous(this="unnest", expressions=[exp.Anonymous(this="range") as call]):
                return place_text(statements.unnested, x=call.expressions[0])
            case exp.Anonymous(this="range") if _is_unnest(node.parent):
                return node
            case exp.Anonymous(this=str() as name) if not isinstance(node.parent, exp.Table):
                check(name)
            case exp.IntDiv():
                return place_text(statements.quotient, x=node.this, y=node.expression)
        if isinstance(node, REFUSED):
            check(type(node).__name__.lower())
        return node

    return _from_below(tree, translate_node)


def _is_unnest(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and node.name == "unnest"


def _from_below(tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Change the nodes of a tree, each after those below it; new nodes are not visited."""
    for node in reversed(list(tree.walk())):
        changed = change(node)
        if changed is node:
            continue
        if node is tree:
            tree = changed
        else:
            node.replace(changed)
    return tree


def render_tree(tree: exp.Expr, dialect: Dialect) -> str:
    """Return the text in a dialect of a tree that the emitter built. The tree is used up.

    Raises:
        UnsupportedError: it has something that the dialect lacks.
    """
    statements = _statements(dialect)

    def finish_node(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Literal) and not node.is_string and not node.is_int:
            return place_arguments(statements.double, {"x": node}, DType.FLOAT64, dialect)
        return node

    tree = _from_below(translate_tree(tree, dialect), finish_node)
    return tree.sql(dialect=dialect.sqlglot, pretty=True, normalize_functions=False, copy=False)


def first_statements(dialect: Dialect, body: str) -> list[str]:
    """The statements that have to run before statements with this text."""
    return [text for name, text in _statements(dialect).first.items() if name in body]


def render_script_in(
    dialect: Dialect,
    header: Sequence[str],
    steps: Iterable[SqlStep],
    outputs: Mapping[str, exp.Expr],
) -> str:
    """Return a whole script, as `ucle.sqlgen.script.render_script` does for DuckDB.

    Raises:
        UnsupportedError: a step needs something that the dialect lacks.
    """
    statements, parts = _statements(dialect), []
    for step in steps:
        if step.query is not None:
            note = "\n".join(f"-- {line}" for line in step.comment.splitlines())
            name = identifier(step.name).sql(dialect=dialect.sqlglot)
            create = statements.create.format(name=name)
            parts.append(f"{note}\n{create}\n{render_tree(step.query, dialect)};")
        if step.check is not None:
            note = f"-- {step.name}: a row here says that 0 times infinity became NaN, see execute"
            parts.append(f"{note}\n{render_tree(step.check, dialect)};")
    for name, query in outputs.items():
        parts.append(f"-- result {name}\n{render_tree(query, dialect)};")
    body = "\n\n".join(parts)
    first = first_statements(dialect, body)
    head = "\n".join(f"-- {line}".rstrip() for line in header)
    return "\n\n".join([head, *(f"{text};" for text in first), body]) + "\n"
