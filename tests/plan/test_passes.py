"""Passes over plans: each keeps what the plan is of, and `to_sql` shows what `execute` runs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from classics import TEXTS, classic

import ucle
from ucle.database.session import Session
from ucle.options import Optimisations
from ucle.plan.check import check_plan
from ucle.plan.passes import LASTING, ONE_BY_ONE, PASSES
from ucle.plan.steps import Plan, Role
from ucle.testing import recompiled
from ucle.testing.check_matrix import Routes, some_decompositions
from ucle.testing.generate import Case, outgrowing_case, random_case
from ucle.udf_kernels import ELEMENT_TYPES, arrow, kernels, typed_name

BASES = {typed_name(name, tag) for name in kernels() for tag in ELEMENT_TYPES} | set(kernels())
RESULT = "-- result "
COMPUTES = ("PROJECTION", "FILTER", "GROUP_BY", "AGGREGATE")
"""Names of DuckDB's operators that call functions."""

SWITCHES = {
    "materialise": Optimisations(materialise=False),
    "constants": Optimisations(constants=False),
    "references": Optimisations(references=None),
    "everything by reference": Optimisations(references=0),
    "nest": Optimisations(nest=False),
    "tapes": Optimisations(tapes=False),
    "slices": Optimisations(slices=None),
    "slices of all": Optimisations(slices=0.0),
    "chains": Optimisations(chains=False),
    "columns of few rows": Optimisations(columns=0.0),
    "windows": Optimisations(windows=False),
    "every_tuple": Optimisations(every_tuple=False),
    "inner_joins": Optimisations(inner_joins=False),
    "pairs": Optimisations(pairs=False),
}

rng = np.random.default_rng(7)
LARGE, SMALL = rng.normal(size=(3, 64, 64)), rng.normal(size=(3, 4, 4))
CHAIN = "P[i,k] += A[i,j] * B[j,k]; Q[k,i] += C[k,l] * P[i,l]; R[i] = exp(Q[k,i]) * A[k,i]"
SHARED = "P[i,k] += A[i,j] * B[j,k]; Q[i,k] += P[i,j] * P[k,j]; R[i] += P[i,j]; S[i] += exp(Q[i,j])"


def fixed(text: str, **inputs: Any) -> Case:
    """A case of which only the program and its inputs are asked for."""
    return Case(text, {}, inputs, {}, None, {})


CASES: dict[str, Callable[[], Case]] = {
    "large chain": lambda: fixed(CHAIN, A=LARGE[0], B=LARGE[1], C=LARGE[2]),
    "small chain": lambda: fixed(CHAIN, A=SMALL[0], B=SMALL[1], C=SMALL[2]),
    "shared": lambda: fixed(SHARED, A=LARGE[0], B=LARGE[1]),
    "outgrowing": lambda: outgrowing_case(1),
    "maps": lambda: fixed("y[i,j] = exp(tanh(x[i,j]) * z[i,j])", x=LARGE[0], z=LARGE[1]),
    "positions": lambda: fixed("y[i] = x[p[i]]", x=SMALL[0, 0], p=np.arange(900) % 4),
    **{name: lambda name=name: classic(name) for name in TEXTS},  # type: ignore[misc]
    **{f"random {n}": lambda n=n: random_case(n) for n in range(12)},  # type: ignore[misc]
}
"""The programs that everybody writes, the paper's among them (gcn, attention), and random ones."""


def some_ways(program: ucle.EinsumProgram, seed: int, sample: int) -> Iterator[Any]:
    """The program as it was decomposed, and under some other decompositions."""
    yield program
    for way in some_decompositions(program, seed, sample):
        yield program.with_decomposition(way)


@contextmanager
def compiled(case: Case, connection: duckdb.DuckDBPyConnection) -> Iterator[ucle.EinsumProgram]:
    """A case compiled on a connection that has its tables for the time of the block."""
    case.create_tables(connection)
    try:
        yield case.compile(connection)
    finally:
        case.drop_tables(connection)


def same_plan(plan: Plan, other: Plan) -> None:
    """Two plans have the same outputs, of the same types, and the same dictionaries."""
    forms = [{name: (x.type, x.layout) for name, x in p.outputs.items()} for p in (plan, other)]
    assert forms[0] == forms[1]
    assert plan.dictionaries == other.dictionaries
    for step in other.steps:
        for twin in (x for x in plan.steps if x.name == step.name):
            assert twin.relation.type == step.relation.type
            assert twin.relation.layout == step.relation.layout


@pytest.mark.parametrize("name", CASES)
def test_a_pass_keeps_types_and_outputs(name: str, native: duckdb.DuckDBPyConnection) -> None:
    with compiled(CASES[name](), native) as chosen:
        for program in some_ways(chosen, 0, 4):
            for passes in (PASSES, ONE_BY_ONE, LASTING):
                before = program.compiled.plan
                for number in range(len(passes)):
                    after = program.compiled.after(passes[: number + 1])
                    check_plan(after)
                    same_plan(before, after)
                    assert program.compiled.after(passes[: number + 1]) == after, "it is pure"
                    before = after
            roles = {step.role for step in program.compiled.physical.steps}
            assert Role.VIEW not in roles, "a view is left by itself"


@pytest.mark.sample(2)
@pytest.mark.parametrize("switch", SWITCHES)
def test_answers_do_not_depend_on_switches(switch: str, routes: Routes) -> None:
    for name in ("large chain", "small chain", "shared"):
        case = CASES[name]()
        program = case.compile(routes["native"])
        nothing = program.with_decomposition(dict.fromkeys(program.decomposition, ()))
        for each in (program, nothing):
            other = recompiled(each, SWITCHES[switch])
            for connection in routes.values():
                with each.execute(connection) as one, other.execute(connection) as two:
                    for output in one:
                        found = two[output].to_numpy()
                        np.testing.assert_allclose(found, one[output].to_numpy(), rtol=1e-9)


@pytest.mark.turns(3)
def test_each_switch_changes_some_script(native: duckdb.DuckDBPyConnection) -> None:
    programs = [CASES["positions"]().compile(native)]
    for name in ("large chain", "small chain", "shared", "maps"):
        program = CASES[name]().compile(native)
        programs.append(program.with_decomposition(dict.fromkeys(program.decomposition, ())))
    layer = ucle.einsum_program(
        "Z[i,k] = sum[j](X[i,j] * W[j,k]) + b[k]",
        database=native,
        X=LARGE[0],
        W=LARGE[1],
        b=LARGE[2, 0],
    )
    programs.append(layer.with_decomposition(dict.fromkeys(layer.decomposition, ("i",))))
    # One vertex that takes long, and is read twice.
    ones = np.ones((600, 600))
    program = ucle.einsum_program(
        "Y[i,k] += A[i,j] * B[j,k]; U[i] = Y[i,k] * u[k]; V[k] = Y[i,k] * u[i]",
        database=native,
        association="as-written",
        decomposition={"Y": {"i"}},
        A=ones,
        B=2 * ones,
        u=ones[0],
    )
    programs.append(program)
    # Few rows with long arrays, in a table.
    rows = "SELECT range::INTEGER AS i, [1e0 FOR x IN range(300)] AS v FROM range(1000)"
    native.execute(f"CREATE OR REPLACE TABLE long_rows AS {rows}")
    program = ucle.einsum_program(
        "Z[i,k] += A[i,j] * B[j,k]",
        database=native,
        decomposition={"Z": {"i"}},
        A=ucle.table("long_rows", ["i"], "v", shape=(300,)),
        B=np.ones((300, 900)),
    )
    programs.append(program)
    native.execute(
        "CREATE OR REPLACE TABLE some_days AS "
        "SELECT DATE '2024-01-01' + i::INTEGER AS day, i * 1.0 AS a, i * 2.0 AS b "
        "FROM range(30) t(i)"
    )
    wide = ucle.table("some_days", ["day"], columns_as="f")
    programs.append(
        ucle.einsum_program("Y[i] += X[i,f] * w[f]", X=wide, w=[1.0, 2.0], database=native)
    )
    native.execute("CREATE OR REPLACE VIEW one_of_days AS SELECT day, a FROM some_days")
    days = ucle.tensor("one_of_days", axes=("day",), database=native)
    sums = days.rolling("3d", "day").sum().program(database=native)
    programs.append(sums.with_decomposition("relational"))
    columns = {name: ucle.table("some_days", ["day"], name.lower()) for name in "AB"}
    programs.append(
        ucle.einsum_program(
            "y += A[i] * B[i]", inputs=columns, database=native, decomposition="relational"
        )
    )
    for switch, optimisations in SWITCHES.items():
        others = [recompiled(program, optimisations).to_sql() for program in programs]
        assert others != [program.to_sql() for program in programs], switch


def test_a_glob_in_a_comment(native: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """DuckDB nests comments, so that what opens one inside of another has to be closed."""
    for part in (0, 1):
        file = tmp_path / f"part{part}.parquet"
        native.execute(f"COPY (SELECT {part} AS i, 2.0 AS v) TO '{file}'")
    data = ucle.table(str(tmp_path / "*.parquet"), bounds=[2])
    program = ucle.einsum_program("y[i] = x[i] * x[i]; z = y[i] + 1", database=native, x=data)
    with ucle.connect() as connection:
        assert connection.execute(program.to_sql()).fetchall() == [(9.0,)]


def kernel_calls(sql: str) -> Counter[str]:
    """Count each kernel in a statement, whatever the prefix of its name is."""
    bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*", "", sql)
    names = (re.sub(r"^ucle_[0-9a-f]+_", "", x) for x in re.findall(r"(\w+)\s*\(", bare))
    stems = ((name, re.sub(r"_\d+$", "", name)) for name in names)
    return Counter(name for name, stem in stems if {name, stem} & BASES)


class Kernels:
    """Record of kernel calls on a connection, and of the rows that they process.

    Of the native route the rows are those of the operators that compute something in statements
    with kernels, as DuckDB's profile has them.
    """

    def __init__(self, folder: Path, route: str) -> None:
        self._file = folder / "profile.json"
        self._route = route
        self.calls: Counter[str] = Counter()
        self.rows: Counter[Any] = Counter()

    @contextmanager
    def watched(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Count what is run in the block; of the Arrow route, the rows of its functions."""
        run = arrow._run

        def counted(kernel: Any, memory_limit: int, arrays: list[Any]) -> Any:
            self.rows[kernel.name] += len(arrays[0])
            return run(kernel, memory_limit, arrays)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(arrow, "_run", counted)
            if self._route == "native":
                connection.execute("SET enable_profiling = 'json'")
                connection.execute(f"SET profiling_output = '{self._file}'")
            try:
                yield
            finally:
                connection.execute("RESET enable_profiling")

    def note(self, sql: str) -> None:
        """Count a statement that has just been run."""
        called = kernel_calls(sql)
        self.calls += called
        if not called or self._route != "native":
            return
        waiting = [json.loads(self._file.read_text())]
        while waiting:
            node = waiting.pop()
            waiting += [*node.get("operator", ()), *node.get("children", ())]
            kind = node.get("type") or node.get("operator_type") or ""
            if any(word in kind for word in COMPUTES):
                rows = node.get("intermediate_rows", node.get("operator_cardinality"))
                self.rows[kind, rows] += 1


def executed(
    program: ucle.EinsumProgram, connection: duckdb.DuckDBPyConnection, folder: Path, route: str
) -> Kernels:
    """The kernel calls of `execute`, by the statements that it sends."""
    kernels, sent = Kernels(folder, route), []
    run, fetch = Session.run, Session.fetch

    def noted_run(self: Session, sql: str, *rest: Any, **named: Any) -> Any:
        answer = run(self, sql, *rest, **named)
        kernels.note(sql)
        sent.append(sql)
        return answer

    def noted_fetch(self: Session, sql: str, *rest: Any) -> Any:
        answer = fetch(self, sql, *rest)
        if kernel_calls(sql):  # the checks, among questions about the database
            kernels.note(sql)
        return answer

    with kernels.watched(connection), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "run", noted_run)
        patch.setattr(Session, "fetch", noted_fetch)
        program.execute(connection).close()
    assert sent
    return kernels


def replayed(
    program: ucle.EinsumProgram, connection: duckdb.DuckDBPyConnection, folder: Path, route: str
) -> Kernels:
    """The kernel calls of the script of `to_sql`, up to the queries that show results."""
    kernels = Kernels(folder, route)
    script = program.to_sql().partition(RESULT)[0]
    program.register(connection)
    registered: tuple[str, ...] = ()
    if route == "arrow":
        registered = arrow.register_arrow(connection)
    made = []
    try:
        with kernels.watched(connection):
            for statement in connection.extract_statements(script):
                connection.execute(statement).fetchall()
                kernels.note(statement.query)
                made += re.findall(r"CREATE TEMPORARY TABLE (\"(?:[^\"]|\"\")+\")", statement.query)
    finally:
        for table in made:
            connection.execute(f"DROP TABLE IF EXISTS temp.{table}")
        arrow.remove_arrow(connection, registered)
    return kernels


@pytest.mark.usefixtures("results_in_tables")
@pytest.mark.sample(2)
@pytest.mark.parametrize("route", ["native", "arrow"])
@pytest.mark.parametrize("name", CASES)
def test_to_sql_calls_the_kernels_that_execute_calls(
    name: str, route: str, routes: Routes, tmp_path: Path
) -> None:
    connection, turn = routes[route], (len(name) + (route == "arrow")) % 2
    with compiled(CASES[name](), connection) as chosen:
        first, *others = some_ways(chosen, 1, 3)  # of which each route takes every second
        for program in (first, *others[turn::2]):
            if program.route not in (route, "plain"):
                continue
            with connection.cursor() as own:
                one = executed(program, own, tmp_path, route)
                two = replayed(program, own, tmp_path, route)
            context = f"{program}\n{program.to_sql()}"
            assert one.calls == two.calls, context
            assert one.rows == two.rows, context
            assert program.route != "plain" or not one.calls, context
            assert one.rows or not one.calls or name != "large chain", "no rows are counted"


def test_kernels_are_counted() -> None:
    """Were none found, the test above would be green for the wrong reason."""
    text = """SELECT ucle_0a1b_sum_vec_64("ein(", 'ein(1)'), vec_exp(ein_f32(x)), any_not(y)"""
    assert kernel_calls(text) == {"sum_vec_64": 1, "vec_exp": 1, "ein_f32": 1, "any_not": 1}


def test_a_whole_array_is_taken_apart_by_reference(native: duckdb.DuckDBPyConnection) -> None:
    """A filter that lets some positions through would copy the array for each of them."""
    program = ucle.einsum_program(
        "P[i,j] = A[i,j] + B[i,j]; R[i] += P[i,j] * x[j]",
        A=LARGE[0],
        B=LARGE[1],
        x=LARGE[2, 0],
        database=native,
        decomposition={"P": [], "R": ["i"]},
    )
    assert re.search(r'slice\("P"\."val"\[1\]', program.to_sql())
    with program.execute() as result:
        expected = (LARGE[0] + LARGE[1]) @ LARGE[2, 0]
        np.testing.assert_allclose(result["R"].to_numpy(), expected)
