"""Scripts: a plan's statements as text for one route; each execution inserts its own prefix."""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.exact_key import ExactKey, Same
from ucle.ir.layouts import Coordinates
from ucle.plan import relation_nodes as plans
from ucle.plan.parameters import MOST_PARAMETER_BYTES, MOST_ROW_BYTES, small_enough
from ucle.plan.relation_tree import inputs, nodes
from ucle.plan.sources import ListsSource
from ucle.plan.steps import Plan, Role, Step
from ucle.sqlgen import Capabilities, SqlStep, emit, infinite_query, locate_payload
from ucle.sqlgen.dialects import DUCKDB_SQL
from ucle.sqlgen.fused_steps import Rounds, tape_query
from ucle.sqlgen.parameter_query import ParameterQuery, Place, parameter_query
from ucle.sqlgen.script import (
    called_functions,
    create_statement,
    doubt_queries,
    drop_statement,
    fill_statements,
    sql_text,
    step_functions,
)
from ucle.sqlgen.sql_trees import VALUE, key_columns

PLACEHOLDER = f"ucle_{secrets.token_hex(8)}_"
"""Prefix of emitted scripts; each execution replaces it by its own."""


@dataclass(frozen=True)
class ScriptStatement:
    """One statement, as SQL text with the placeholder for the prefix.

    `create` is None for data from memory. `output` names the result that it makes; other tables are
    dropped when the script has run.
    """

    name: str
    create: str | None
    drop: str
    output: str | None = None
    keep: bool = False
    """True if results need it: the dictionary of a label of an output."""
    check: str | None = None
    """A query that has a row if the result shows that the script is not the right one.

    It is run when everything is made and there is a doubt, or when a later statement fails.
    """
    limit: str | None = None
    """A query that has a row if a condition number is too large; it is run as `check` is."""
    at_once: bool = False
    """True if `check` runs before the next statement, which might fail.

    Integers cannot represent NaN, and an error would end a transaction.
    """
    columns: Mapping[str, str] = field(default_factory=dict)
    """Results that are columns of its only row, with the names of the columns."""
    rounds: tuple[str, ...] = ()
    """Statements that run instead of `create`, if any; the first create what the others fill."""
    own: tuple[str, ...] = ()
    """Statements that drop the tables of the rounds after one has failed."""


@dataclass(frozen=True)
class Repeat:
    """A loop whose steps a script makes: how one step follows another, and which is the last."""

    states: tuple[tuple[Place, str], ...]
    """The steps and columns that hold the states, and the outputs that replace them."""
    until: str | None
    """The output that is true in the last step."""


ROUNDS = "rounds of one call"
"""The table of one row with the most steps that a query may make, of which no step has the name."""


@dataclass(frozen=True)
class RowQuery:
    """A query for the few rows that a script makes, in place of all of its statements.

    It has parameters for small arrays and held rows, and reads larger ones as the script does.
    """

    query: ParameterQuery
    columns: Mapping[str, tuple[DType, Scalar]]
    """The columns of values, with the types of their elements and their fills."""
    types: Mapping[str, str]
    """The SQL types of all columns, keys first."""
    keys: int = 0
    """The number of columns of keys; without one, there is one row."""
    rounds: ParameterQuery | None = None
    """The query for several steps of a loop: arrays after the last, and numbers of all as BLOBs."""

    def reads(self, name: str) -> bool:
        """True if it refers to a table that it does not make."""
        return f'"{PLACEHOLDER}{name}"' in self.query.text


@dataclass(frozen=True)
class Script:
    """The statements of a plan for one route."""

    statements: tuple[ScriptStatement, ...]
    functions: tuple[str, ...] = ()
    """Kernels to register before it runs; none if they are loaded as an extension."""
    loads: Mapping[str, plans.Load] = field(default_factory=dict)
    """Arrays in memory to register, by the names of their statements."""
    finite: Mapping[str, str] = field(default_factory=dict)
    """Outputs whose numbers should be finite, each with a query that has a row if one is not."""
    doubts: tuple[str, ...] = ()
    """Queries that have no row if all checks, including those of `finite`, would pass."""
    rows: tuple[RowQuery, ...] = ()
    """What may run in place of the statements: the first whose parameters turn out to be small."""

    def reads(self, name: str) -> bool:
        """True if a statement refers to a table that the script does not make."""
        return f"{PLACEHOLDER}{name}" in self._text

    @cached_property
    def _text(self) -> str:
        return "\n".join(
            text for x in self.statements for text in (x.create, *x.rounds) if text is not None
        )


MOST_BYTES = 1 << 25
"""Bytes of all scripts that are kept."""

_scripts = BoundedCache[Script](MOST_BYTES)


def kept_script(
    plan: Plan,
    capabilities: Capabilities,
    *,
    keep_dictionaries: bool = False,
    finite: Collection[str] = (),
    fetched: bool = False,
    repeat: Repeat | None = None,
) -> Script:
    """Emit the script of a plan for one route, as `script_of`, or return the one emitted before."""
    looked_at = tuple(finite)
    key = ExactKey.find((Same(plan), capabilities, keep_dictionaries, looked_at, fetched, repeat))
    return _scripts.get_or_make(
        key,
        lambda: script_of(
            plan,
            capabilities,
            keep_dictionaries=keep_dictionaries,
            finite=looked_at,
            fetched=fetched,
            repeat=repeat,
        ),
    )


def script_of(
    plan: Plan,
    capabilities: Capabilities,
    *,
    keep_dictionaries: bool = False,
    finite: Collection[str] = (),
    fetched: bool = False,
    repeat: Repeat | None = None,
) -> Script:
    """Emit the script of a plan for one route; executions differ only in their prefix.

    Args:
        plan: a plan after passes that leave no standalone views.
        capabilities: the capabilities of the route.
        keep_dictionaries: True to keep all dictionaries, not only those that results need.
        finite: outputs to be checked for numbers that are not finite.
        fetched: True if no other statement reads the results, so that few rows may be fetched.
        repeat: the loop whose step it is, if several steps may run as one.
    """
    prefixed = capabilities
    if capabilities.registered:
        prefixed = replace(capabilities, prefix=PLACEHOLDER)
    steps, _ = emit(plan, prefixed, PLACEHOLDER, checked=True)
    by_name = {PLACEHOLDER + step.name: step.relation for step in plan.steps}
    looked_at = {
        x: locate_payload(plan.outputs[x], PLACEHOLDER) for x in finite if x in plan.outputs
    }
    infinite = {name: infinite_query([stored], prefixed) for name, stored in looked_at.items()}
    rows = {x.name: [y for y in looked_at.values() if y.name == x.name] for x in looked_at.values()}
    doubts = [infinite_query(tensors, prefixed) for tensors in rows.values()]
    places = _Places.of(plan, keep_dictionaries=keep_dictionaries)
    failing = {PLACEHOLDER + step.name for step in plan.steps if _makes_integers(step)}
    later = len([step for step in steps if step.name in failing])
    loads: dict[str, plans.Load] = {}
    statements = []
    called: set[str] = set()
    for step in steps:
        later -= step.name in failing
        if step.query is None:
            if isinstance(load := by_name[step.name], plans.Load):
                loads[step.name.removeprefix(PLACEHOLDER)] = load
                statements.append(ScriptStatement(step.name, None, ""))
            continue
        assert step.role is not Role.VIEW, f"{step.name} is left by itself"
        called |= step_functions(step)
        # A number that is not finite is a doubt already.
        if step.check is not None and not later and places.results.get(step.name) not in infinite:
            doubts.append(step.check.copy())
        if step.limit is not None:
            doubts.append(step.limit.copy())
        statements.append(_statement(step, places, at_once=later > 0))
    called.update(*map(called_functions, doubts))
    asked = tuple(map(sql_text, doubt_queries(doubts)))
    questions = {name: sql_text(query) for name, query in infinite.items()}
    ours = sorted(name for name in called if name.startswith(PLACEHOLDER))
    functions = tuple(name.removeprefix(PLACEHOLDER) for name in ours)
    again = None if repeat is None else _repeated(plan, repeat, checked=bool(asked))
    queries = tuple(_row_queries(plan, steps, prefixed, again, keyed=fetched))
    return Script(tuple(statements), functions, loads, questions, asked, queries)


MOST_ROWS = 1 << 10
"""Rows of a `RowQuery`."""


Again = tuple[plans.FusedStep, Rounds]
"""A fused step that makes a step of a loop, and how it makes several."""


def _repeated(plan: Plan, repeat: Repeat, *, checked: bool) -> Again | None:
    """Return how several steps of a loop are made at once; None if a step is no fused step."""
    columns = {output: read.column for output, read in plan.outputs.items()}
    made = {read.step for read in plan.outputs.values()}
    tapes = [x for x in plan.steps if x.name in made and isinstance(x.relation, plans.FusedStep)]
    if len(tapes) != 1 or len(made) > 1:
        return None
    tape = tapes[0].relation
    assert isinstance(tape, plans.FusedStep)
    operands = {
        (x.step, x.column or VALUE): n
        for n, x in enumerate(tape.operands)
        if isinstance(x, plans.Read)
    }
    given = {place for step in plan.steps for place, _ in _places(step)}
    if not given.issuperset((PLACEHOLDER + name, value) for name, value in operands):
        return None  # each step makes some of what it reads
    sets: dict[int, str] = {}
    for place, output in repeat.states:
        column = columns.get(output)
        if place not in operands or column is None:
            return None
        operand = operands[place]
        if tape.operands[operand].layout != tape.results[column].layout:  # after a new plan
            return None
        sets[operand] = column
    until = None if repeat.until is None else columns.get(repeat.until)
    rounds = Rounds(ROUNDS, sets, until, checked)
    if not sets or (until is None and repeat.until is not None) or not rounds.fit(tape):
        return None
    return tape, rounds


def _row_queries(
    plan: Plan,
    steps: Sequence[SqlStep],
    capabilities: Capabilities,
    again: Again | None,
    *,
    keyed: bool,
) -> Iterator[RowQuery]:
    """Yield queries in place of a script that makes one row, or few with keys if those may be.

    The size of compressed arrays is that of the data, which is known when they are handed over. So
    there is a query that takes them as parameters, and one that reads them as tables.
    """
    made = [step for step in steps if step.query is not None]
    if len(made) != 1 or made[0].query is None or made[0].rounds or made[0].limit is not None:
        return
    if plan.dictionaries:
        return
    results = {read.column or VALUE: read for read in plan.outputs.values()}
    if any(PLACEHOLDER + x.step != made[0].name for x in plan.outputs.values()):
        return
    keys = _keys(results)
    if keys is None or (keys and not keyed):
        return
    given = [place for step in plan.steps for place in _places(step)]
    large = _become_large(plan)
    lists = {x: y for x, y in given if _are_lists(y) and x[0] not in large}
    small = _small({x: y for x, y in given if x not in lists and not y.layout.promoted})
    types = {**keys, **{name: _sql_type(read) for name, read in results.items()}}
    for parameters in ({**small, **lists}, small) if lists else (small,):
        places = {x: _sql_type(y) for x, y in parameters.items()}
        asked = parameter_query(made[0].query, places)
        if asked is None or set(asked.columns) != set(types):
            continue
        if set(asked.columns[: len(keys)]) == set(keys):
            tensors = {name: results[name].type for name in asked.columns if name in results}
            values = {name: (type_.dtype, type_.fill) for name, type_ in tensors.items()}
            rounds = None
            if again is not None and not keys:
                tape, repeated = again
                query = tape_query(tape, capabilities, PLACEHOLDER, repeated)
                most = PLACEHOLDER + ROUNDS, VALUE
                rounds = parameter_query(query, {**places, most: "BLOB"})
            every = {x: types[x] for x in asked.columns}
            yield RowQuery(asked, values, every, len(keys), rounds)


def _keys(results: Mapping[str, plans.Read]) -> dict[str, str] | None:
    """The columns of keys with their SQL types; None if rows are too many or too large."""
    if not results or any(x.layout.compressed is not None for x in results.values()):
        return None
    size = sum(x.type.tuple_bytes(x.layout) for x in results.values())
    first = next(iter(results.values()))
    axes = first.layout.promoted
    if not axes:
        keyless = not any(x.layout.promoted for x in results.values())
        return {} if keyless and size <= MOST_ROW_BYTES else None
    rows = math.prod(first.type.key_range(first.layout, axis) for axis in axes)
    if len(results) > 1 or first.type.dictionaries:
        return None
    if rows > MOST_ROWS or rows * size > MOST_ROW_BYTES:
        return None
    names = key_columns(first.type)
    return {names[axis]: Coordinates.of(first.type.shape[axis]).value for axis in axes}


def _small(given: Mapping[Place, plans.Load | plans.Held]) -> dict[Place, plans.Load | plans.Held]:
    """The tensors that are small enough to be parameters together, the smallest first."""
    dense = {x: _tuple_bytes(y) for x, y in given.items() if y.layout.compressed is None}
    chosen = {place: given[place] for place in small_enough(dense)}
    # A held row is one table, of which all columns are parameters or none is.
    kept = {table for table, _ in given.keys() - chosen.keys()}
    return {place: relation for place, relation in chosen.items() if place[0] not in kept}


def _tuple_bytes(relation: plans.Load | plans.Held | plans.Recode) -> int:
    return relation.type.tuple_bytes(relation.layout)


def _are_lists(given: plans.Load | plans.Held) -> bool:
    """True for a compressed array of a whole matrix in memory."""
    from_lists = isinstance(given, plans.Load) and isinstance(given.source, ListsSource)
    return from_lists and not given.layout.promoted


def _become_large(plan: Plan) -> set[str]:
    """The tables of lists that become large arrays: of parameters, DuckDB makes constants."""
    parts = (part for step in plan.steps for part in (*step.views, step))
    return {
        PLACEHOLDER + node.input.step
        for part in parts
        for node in nodes(part.relation)
        if isinstance(node, plans.Recode) and isinstance(node.input, plans.Read)
        if _tuple_bytes(node) > MOST_PARAMETER_BYTES
    }


def _places(step: Step) -> Iterator[tuple[Place, plans.Load | plans.Held]]:
    """Yield the places of what exists before a script runs."""
    match step.relation:
        case plans.Load() | plans.Held() as relation:
            yield (PLACEHOLDER + step.name, VALUE), relation
        case plans.HeldRow(members):
            for name, member in members.items():
                yield (PLACEHOLDER + step.name, name), member


def _sql_type(relation: plans.Load | plans.Held | plans.Read) -> str:
    return DUCKDB_SQL.types[relation.type.dtype] if relation.layout.scalar else "BLOB"


@dataclass(frozen=True)
class _Places:
    """The places of results: tables, columns of tables, and dictionaries that are kept."""

    results: Mapping[str, str]
    columns: Mapping[str, Mapping[str, str]]
    dictionaries: frozenset[str]

    @classmethod
    def of(cls, plan: Plan, *, keep_dictionaries: bool) -> _Places:
        results: dict[str, str] = {}
        columns: dict[str, dict[str, str]] = {}
        for output, read in plan.outputs.items():
            if read.column is None:
                results[PLACEHOLDER + read.step] = output
            else:
                columns.setdefault(PLACEHOLDER + read.step, {})[output] = read.column
        if keep_dictionaries:
            names = [dictionary.name for dictionary in plan.dictionaries]
        else:
            names = list(plan.shown_dictionaries)
        return cls(results, columns, frozenset(PLACEHOLDER + name for name in names))


def _statement(step: SqlStep, places: _Places, *, at_once: bool) -> ScriptStatement:
    tables = dict.fromkeys(x.name for part in step.rounds for x in part.tables)
    own = tuple(sql_text(drop_statement(name, "TABLE")) for name in tables)
    rounds = tuple(map(sql_text, fill_statements(step)))
    check = None if step.check is None else sql_text(step.check)
    return ScriptStatement(
        step.name,
        sql_text(create_statement(step)),
        sql_text(drop_statement(step.name, "TABLE")),
        places.results.get(step.name),
        step.name in places.dictionaries,
        check,
        None if step.limit is None else sql_text(step.limit),
        check is not None and at_once,
        places.columns.get(step.name, {}),
        rounds,
        own,
    )


def _makes_integers(step: Step) -> bool:
    """True if a statement converts other numbers to integers, which may fail."""
    relations = (step.relation, *(view.relation for view in step.views))
    made = (x for each in relations for x in nodes(each) if x.type.dtype.kind == "i")
    return any(y.type.dtype.kind in "fc" for x in made for y in inputs(x))
