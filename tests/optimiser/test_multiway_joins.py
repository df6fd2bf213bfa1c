"""Cyclic products that are computed label by label: what they give, and where they are taken."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from keyboard import interrupting, run_interrupted

import ucle
from ucle.errors import ExecutionError, NumberRangeError, UcleError
from ucle.optimiser.choose_decomposition import join_at_once, pin_decompositions
from ucle.optimiser.pricing import price
from ucle.options import Optimisations
from ucle.partitions import NETWORK, distribute
from ucle.pipeline.replan import costed_program, plan_decomposed
from ucle.plan.memory_model import FIXED
from ucle.testing.check_matrix import Routes, recompiled, some_decompositions
from ucle.testing.partitions import run_on_partitions

ALWAYS = Optimisations(multiway=-math.inf)
"""A multiway join is taken wherever there can be one."""

CLIQUE = "t += E[a,b] * E[a,c] * E[a,d] * E[b,c] * E[b,d] * E[c,d]"


class Cyclic:
    """A random product over most pairs of some labels.

    With fewer pairs, orders without tensors of three labels are cheaper than multiway joins.
    """

    def __init__(self, seed: int, kind: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.kind = kind
        self.size = int(self.rng.integers(3, 9))
        count = int(self.rng.integers(4, 6))
        labels = [f"x{n}" for n in range(count)]
        order = self.rng.permutation(count)
        edges = {tuple(pair) for pair in pairwise(order)}
        for pair in combinations(self.rng.permutation(count), 2):
            if self.rng.random() < 0.85 and pair[::-1] not in edges:
                edges.add(pair)
        names = self.rng.choice(list("ABC"), len(edges))
        self.factors = [
            (str(x), [labels[a], labels[b]]) for x, (a, b) in zip(names, sorted(edges), strict=True)
        ]
        for label in labels:
            if self.rng.random() < 0.4:
                self.factors.append(("v", [label]))
        self.output = [str(x) for x in self.rng.permutation(labels)[: self.rng.integers(0, 3)]]
        self.arrays = {name: self._draw(name) for name, _ in self.factors}

    def _draw(self, name: str) -> Any:
        shape = (self.size,) if name == "v" else (self.size, self.size)
        stored = self.rng.random(shape) < self.rng.choice([0.2, 0.6])
        if self.kind == "bool":
            return stored
        values = self.rng.integers(-3, 4, shape)
        return np.where(stored, values, 0).astype(self.kind)

    @property
    def text(self) -> str:
        sign, operator = (" and ", "any=") if self.kind == "bool" else (" * ", "+=")
        product = sign.join(f"{name}[{','.join(axes)}]" for name, axes in self.factors)
        return f"t[{','.join(self.output)}] {operator} {product}"

    def subscripts(self) -> tuple[list[str], str]:
        """The axes of the factors and of the result, as NumPy writes them."""
        letters = {f"x{n}": "abcdefg"[n] for n in range(7)}
        sides = ["".join(letters[x] for x in axes) for _, axes in self.factors]
        return sides, "".join(letters[x] for x in self.output)

    def expected(self) -> Any:
        sides, result = self.subscripts()
        arrays = [self.arrays[name].astype(np.int64) for name, _ in self.factors]
        found = np.einsum(f"{','.join(sides)}->{result}", *arrays, optimize=True)
        return found > 0 if self.kind == "bool" else found

    def compile(self, connection: Any) -> ucle.EinsumProgram:
        inputs = {n: x if x.ndim == 1 else sp.coo_array(x) for n, x in self.arrays.items()}
        program = ucle.einsum_program(self.text, inputs=inputs, database=connection)
        return recompiled(program, ALWAYS)


def joins(program: ucle.EinsumProgram) -> int:
    """The multiway joins of a program."""
    return len(program.compiled.decomposed.multiway)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "bool"])
def test_random_products_give_what_numpy_gives(kind: str, routes: Routes) -> None:
    joined = 0
    for seed in range(6):
        case = Cyclic(seed, kind)
        program = case.compile(routes["native"])
        joined += joins(program)
        for name, connection in routes.items():
            with program.execute(connection) as result:
                found = result["t"].to_numpy()
            np.testing.assert_array_equal(found, case.expected(), f"{name}: {case.text}")
    assert joined > 2


def test_each_decomposition_gives_the_same(routes: Routes) -> None:
    case = Cyclic(3, "float64")
    program = case.compile(routes["native"])
    for way in ("relational", {"t": case.output}):
        other = program.with_decomposition(way)
        assert joins(other) == 0
        with other.execute(routes["native"]) as result:
            np.testing.assert_array_equal(result["t"].to_numpy(), case.expected())


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_on_partitions(seed: int, native: Any) -> None:
    """Each operand is one tuple, which is on one partition or on all of them."""
    case = Cyclic(seed, "float64")
    program = case.compile(native)
    assert joins(program)
    for partitions in (1, 2, 5):
        for drawn in range(3):  # the cheapest plan, and plans at random
            plan = (
                partial(distribute, network=NETWORK, partitions=partitions) if not drawn else None
            )
            with run_on_partitions(program, native, partitions, drawn, plan) as result:
                np.testing.assert_array_equal(result["t"].to_numpy(), case.expected())


def _graph(size: int, edges: int) -> Any:
    rng = np.random.default_rng(1)
    ends = rng.integers(0, size, (2, edges))
    return sp.coo_array((np.ones(edges), ends), shape=(size, size)).tocsr().sign()


def _cliques(graph: Any) -> float:
    """Closed triangles among the neighbours of each vertex."""
    dense = graph.toarray()
    near = (dense[np.ix_(row, row)] for row in dense > 0)
    return float(sum(((x @ x) * x).sum() for x in near))


def test_a_clique_makes_no_tensor_of_three_labels(native: Any) -> None:
    graph = _graph(400, 8_000)
    program = ucle.einsum_program(CLIQUE, E=graph, database=native)
    assert joins(program) == 1
    plan = program.compiled.decomposed.multiway["t"]
    assert {len(source.layout.levels) for source in plan.sources} == {2}
    assert "multiway_sca" in program.to_sql()
    assert "label by label" in str(program.explain())
    with program.execute(native) as result:
        assert result["t"].to_numpy() == _cliques(graph)


def test_what_costs_little_is_joined_in_pairs(native: Any) -> None:
    assert joins(ucle.einsum_program(CLIQUE, E=_graph(12, 16), database=native)) == 0


@pytest.mark.parametrize(
    "options",
    [{"decomposition": "relational"}, {"association": "as-written"}],
    ids=["relational", "as-written"],
)
def test_callers_decide(options: dict[str, Any], native: Any) -> None:
    program = ucle.einsum_program(CLIQUE, E=_graph(400, 8_000), database=native, **options)
    assert joins(program) == 0


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_is_joined_in_pairs(value: float, native: Any) -> None:
    graph = _graph(8, 30)
    graph.data[0] = value
    program = recompiled(ucle.einsum_program(CLIQUE, E=graph, database=native), ALWAYS)
    assert joins(program) == 0


def test_empty_inputs_leave_nothing(routes: Routes) -> None:
    empty = sp.coo_array((6, 6))
    text = CLIQUE.replace("t +=", "t[a,d] +=")
    for written, shape in ((CLIQUE, ()), (text, (6, 6))):
        program = ucle.einsum_program(written, E=empty, database=routes["native"])
        program = recompiled(program, ALWAYS)
        for connection in routes.values():
            with program.execute(connection) as result:
                np.testing.assert_array_equal(result["t"].to_numpy(), np.zeros(shape))


def test_integers_that_overflow_are_an_error(routes: Routes) -> None:
    graph = sp.coo_array(np.full((4, 4), 1 << 20))
    program = ucle.einsum_program(CLIQUE, E=graph, database=routes["native"])
    program = recompiled(program, ALWAYS)
    assert joins(program) == 1
    for connection in routes.values():
        with pytest.raises(UcleError), program.execute(connection):
            pass


@pytest.mark.turns(3)
def test_large_integers_are_right_or_an_error(routes: Routes) -> None:
    """Products of dead ends may overflow, and sums that fit may have terms that do not."""
    right = joined = 0
    for seed in range(9):
        case = Cyclic(seed, "int64")
        rng = np.random.default_rng(seed)
        case.arrays = {
            name: x * (1 << rng.integers(0, 30, x.shape)) for name, x in case.arrays.items()
        }
        sides, result = case.subscripts()
        arrays = [case.arrays[name].astype(object) for name, _ in case.factors]
        expected = np.einsum(f"{','.join(sides)}->{result}", *arrays, optimize=True)
        program = case.compile(routes["native"])
        joined += joins(program)
        for connection in routes.values():
            try:
                with program.execute(connection) as results:
                    np.testing.assert_array_equal(results["t"].to_numpy(), expected)
                    right += 1
            except NumberRangeError:
                continue
    assert joined >= 4
    assert right > 2


def test_shared_intermediates_are_made_for_their_other_readers(routes: Routes) -> None:
    text = "P[a,b,c] = E[a,b] * E[b,c]\nt += P[a,b,c] * E[a,c] * E[a,d] * E[c,d]\ns[a] += P[a,b,c]"
    graph = _graph(12, 60)
    program = ucle.einsum_program(text, E=graph, database=routes["native"], outputs=("t", "s", "P"))
    program = recompiled(program, ALWAYS)
    dense = graph.toarray()
    expected = {
        "t": np.einsum("ab,bc,ac,ad,cd->", *[dense] * 5),
        "s": np.einsum("ab,bc->a", dense, dense),
        "P": np.einsum("ab,bc->abc", dense, dense),
    }
    for connection in routes.values():
        with program.execute(connection) as result:
            for name, value in expected.items():
                np.testing.assert_allclose(result[name].to_numpy(), value)


READERS = """P[a,b,c] = E[a,b] * E[a,c]
s[a] += P[a,b,c]
T[c,a] += P[a,b,c] * E[b,c]
u[a,c] = T[c,a] * E[a,c]
v[c] += T[c,a]
w[c,b] += T[c,a] * E[a,b]"""
"""A join of triangles with readers that need its result by rows, by columns, and aggregated."""


def _decomposed_as(program: ucle.EinsumProgram, chosen: dict[str, Any]) -> ucle.EinsumProgram:
    """The program with multiway joins in the place of some vertices of a decomposition."""
    options = replace(program.options, association="free", optimisations=ALWAYS)
    costed = costed_program(program.compiled, options)
    pinned = pin_decompositions(program.compiled.program, chosen)
    decomposed = join_at_once(costed, price(costed, pinned))
    compiled = plan_decomposed(program.compiled, decomposed, program.options)
    build = program._build
    return ucle.EinsumProgram(
        replace(build, compiled=compiled, target=build.target.running(compiled))
    )


def test_readers_take_a_result_as_it_is_or_in_their_layout(routes: Routes) -> None:
    graph = _graph(12, 60)
    outputs = ("s", "T", "u", "v", "w")
    program = ucle.einsum_program(
        READERS, E=graph, database=routes["native"], outputs=outputs, association="as-written"
    )
    dense = graph.toarray()
    made = np.einsum("ab,ac,bc->ca", dense, dense, dense)
    expected = {
        "s": np.einsum("ab,ac->a", dense, dense),
        "T": made,
        "u": made.T * dense,
        "v": made.sum(1),
        "w": made @ dense,
    }
    seen = set[bool]()
    for number, chosen in enumerate(some_decompositions(program, 5, 16)):
        other = _decomposed_as(program, chosen)
        decomposed = other.compiled.decomposed
        plan = decomposed.multiway["T"]
        seen.add(plan.handed == plan.layout)
        _check_costs_of_reads(other)
        connection = list(routes.values())[number % 2]
        with other.execute(connection) as result:
            for name, value in expected.items():
                np.testing.assert_array_equal(result[name].to_numpy(), value, f"{name}, {chosen}")
    assert seen == {True, False}


def _check_costs_of_reads(program: ucle.EinsumProgram) -> None:
    """Check that what readers pay for their layouts starts from the layout that they find."""
    decomposed = program.compiled.decomposed
    costed = costed_program(program.compiled, program.options)
    layouts = {v.name: decomposed.made_layout(v.name) for v in decomposed.program.vertices}
    joined = {*decomposed.lookups, *decomposed.multiway}
    for name in decomposed.made & costed.program.by_name.keys() - joined:
        vertex = costed.program.by_name[name]
        moves = [
            costed.repartition_cost(x.tensor, costed.source_layout(x.tensor, y, layouts), y)
            for x, y in decomposed.needed_layouts(vertex)
        ]
        assert decomposed.costs[name].repartition == pytest.approx(sum(moves)), name


def test_a_result_without_readers_is_not_brought_to_another_layout(native: Any) -> None:
    """The spelling by one product costs no more than that by statements."""
    rng = np.random.default_rng(910111)
    factors = {
        "E": sp.random_array((8, 2000), density=0.25, rng=rng),
        "F": sp.random_array((8, 2000), density=0.25, rng=rng),
        "G": sp.random_array((2000, 2000), density=0.003, rng=rng),
    }
    flat = ucle.einsum_program(
        "y[k,j] += E[j,k] * F[j,l] * G[k,l]", inputs=factors, database=native
    )
    stated = ucle.einsum_program(
        "T[j,k] += F[j,l] * G[k,l]\ny[k,j] = E[j,k] * T[j,k]", inputs=factors, database=native
    )
    assert joins(flat) == 1
    assert flat.cost < 1.2 * stated.cost
    assert not [x for x in flat.compiled.plan.steps if x.comment.startswith("repartition y")]


def test_results_follow_other_data(native: Any) -> None:
    native.execute("CREATE OR REPLACE TABLE edges AS SELECT 0 AS i, 0 AS j, 1.0 AS v LIMIT 0")
    graphs = [_graph(300, 6_000), _graph(350, 7_000)]
    try:
        program = None
        for graph in graphs:
            coo = graph.tocoo()
            native.execute("DELETE FROM edges")
            rows = zip(*(x.tolist() for x in (*coo.coords, coo.data)), strict=True)
            values = ",".join(f"({i},{j},{v})" for i, j, v in rows)
            native.execute(f"INSERT INTO edges VALUES {values}")
            if program is None:
                program = ucle.einsum_program(CLIQUE, E="edges", database=native)
                assert joins(program) == 1
            with program.execute(native) as result:
                assert result["t"].to_numpy() == _cliques(graph)
    finally:
        native.execute("DROP TABLE edges")


def test_costs_count_what_is_made(native: Any) -> None:
    graph = _graph(400, 8_000)
    joined = ucle.einsum_program(CLIQUE, E=graph, database=native)
    never = recompiled(joined, replace(joined.options.optimisations, multiway=None))
    assert joins(never) == 0
    assert joined.cost < never.cost
    costs = joined.compiled.decomposed.costs
    assert sum(cost.total > 0 for cost in costs.values()) == 1


def test_memory_of_the_kernel_counts(native: Any) -> None:
    """Two lists keep a number for each of a million positions."""
    graph = sp.coo_array((np.ones(99), (np.arange(99), np.arange(1, 100))), shape=(10**6, 10**6))
    program = recompiled(ucle.einsum_program(CLIQUE, E=graph, database=native), ALWAYS)
    (plan,) = program.compiled.decomposed.multiway.values()
    assert plan.held > 16e6
    assert program.compiled.peak_memory > FIXED + plan.held
    small = ucle.einsum_program(CLIQUE, E=graph, database=native, memory_limit="15.9MB")
    assert joins(recompiled(small, ALWAYS)) == 0


CLIQUES_OF_FIVE = """
import itertools, math

import duckdb
import numpy as np
import scipy.sparse as sp

import ucle
from ucle.options import Optimisations
from ucle.testing.check_matrix import recompiled

edges = " * ".join(f"E[{a},{b}]" for a, b in itertools.combinations("abcde", 2))
with OPENED as connection:
    connection.execute("SET enable_progress_bar = false")
    connection.execute("CREATE TABLE e (i INTEGER, j INTEGER, v DOUBLE)")
    fill = "INSERT INTO e SELECT i, j, 1 FROM range({0}) a(i), range({0}) b(j) WHERE i < j"
    connection.execute(fill.format(600))
    program = ucle.einsum_program(f"t += {edges}", E="e", database=connection)
    program = recompiled(program, Optimisations(multiway=-math.inf))
    assert program.compiled.decomposed.multiway
    press_while_it_runs()
    start = time.monotonic()
    try:
        program.execute(connection)
    except KeyboardInterrupt:
        seconds = time.monotonic() - start
    own = "SELECT view_name FROM duckdb_views() WHERE temporary AND NOT internal"
    made = "SELECT table_name FROM duckdb_tables() WHERE temporary"
    left = connection.execute(f"{own} UNION ALL {made}").fetchall()
    connection.execute("DELETE FROM e")
    connection.execute(fill.format(20))
    with program.execute(connection) as result:
        print(seconds, left, result["t"].to_numpy() == math.comb(20, 5))
"""


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("opened", ["ucle.connect()", "duckdb.connect()"], ids=["native", "arrow"])
def test_a_key_ends_a_long_join(opened: str) -> None:
    """Ctrl-C ends it at once, leaves nothing, and the program is as good as before."""
    seconds, answer = run_interrupted(CLIQUES_OF_FIVE.replace("OPENED", opened))
    assert answer == "[] True"
    assert seconds < 20  # it takes minutes, and the key is pressed after half a second


@pytest.mark.slow
def test_an_interrupt_ends_a_join_at_its_end(fresh: Any) -> None:
    """DuckDB hands it to no kernel: the statement fails when the kernel is done."""
    graph = sp.coo_array(np.triu(np.ones((170, 170)), 1))
    text = "t += " + " * ".join(f"E[{a},{b}]" for a, b in combinations("abcde", 2))
    program = recompiled(ucle.einsum_program(text, E=graph, database=fresh), ALWAYS)
    assert joins(program) == 1
    with interrupting(fresh), pytest.raises(ExecutionError, match="Interrupt"):
        program.execute(fresh)
    with program.execute(fresh) as result:
        assert result["t"].to_numpy() == math.comb(170, 5)


ENDLESS = """
import duckdb
import numpy as np

from ucle.database.session import _run_interruptibly
from ucle.udf_kernels import Csr, load_extension, register_arrow

places = np.tile(np.arange(30, dtype="u4"), 30)
full = Csr(30, 30, np.arange(0, 901, 30, dtype="u4"), places, np.ones(900)).to_bytes()
labels = range(1, 25)
lists = " ".join(f"0 {label} -1 0 0" for label in labels)
walked = " ".join(f"{label - 1} {label - 1}" for label in labels)
program = f"25 24 0 24 {lists} {walked}"
with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
    OPENED
    connection.execute("CREATE TABLE one AS SELECT ?::VARCHAR AS p, ?::BLOB AS v", [program, full])
    press_while_it_runs(LEAST)
    start = time.monotonic()
    try:
        _run_interruptibly(connection, "SELECT multiway(p, v) FROM one")
    except KeyboardInterrupt:
        print(time.monotonic() - start, connection.sql("SELECT 42").fetchall())
"""


@pytest.mark.slow
@pytest.mark.parametrize("opened", ["load_extension", "register_arrow"])
@pytest.mark.parametrize("least", [1, 5])
def test_a_key_ends_loops_that_make_no_lists(opened: str, least: int) -> None:
    """30 ** 24 positions whose lists were all made by the outermost label.

    A kernel listens after a quarter of a second. A key that is pressed before is not lost.
    """
    script = ENDLESS.replace("OPENED", f"{opened}(connection)").replace("LEAST", f"{least}")
    seconds, answer = run_interrupted(script)
    assert answer == "[(42,)]"
    assert seconds < 20
