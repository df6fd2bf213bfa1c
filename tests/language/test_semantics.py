"""The decisions of DESIGN section 4, one test or more for each row, under the name of the row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import ucle
from ucle.ir.fills import JoinKind
from ucle.operators import MAPS
from ucle.plan.relation_nodes import Aggregate, Densify, Join
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case
from ucle.testing.oracle import assert_equal
from ucle.testing.oracle_operators import FUNCTIONS
from ucle.testing.random_inputs import coo_columns, random_array

Connection = duckdb.DuckDBPyConnection
RNG = np.random.default_rng(5)
SPARSE = random_array(RNG, (5, 4), 0.3)
OTHER = random_array(RNG, (5, 4), 0.3)
COLUMN = random_array(RNG, (4,), 0.5)
REAL_FUNCTIONS = [name for name, row in MAPS.items() if "f" in row.kinds]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-3, 30.0])


def case(text: str, fills: dict[str, float] | None = None, **arrays: Any) -> Case:
    """A case whose inputs are COO tables from memory."""
    inputs = {}
    for name, array in arrays.items():
        fill = (fills or {}).get(name, 0.0)
        table = pa.table(coo_columns(array, np.random.default_rng(0), fill))
        inputs[name] = ucle.table(table, bounds=array.shape, fill=fill)
    return Case(text, arrays, inputs, {})


def joins(program: ucle.EinsumProgram) -> list[Join]:
    """The joins of a plan."""
    reduces = [s.relation for s in program.compiled.plan.steps if isinstance(s.relation, Aggregate)]
    return [r.input.input for r in reduces if isinstance(r.input.input, Join)]


# fill


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("X[i,j] * Y[i,j]", JoinKind.INNER),
        ("X[i,j] + Y[i,j]", JoinKind.FULL),
        ("square(X[i,j] - Y[i,j])", JoinKind.FULL),
        ("X[i,j] * Y[i,j] * Y[i,j]", JoinKind.INNER),
    ],
)
def test_fill_decides_the_join(expression: str, kind: JoinKind, native: Connection) -> None:
    one = case(f"T[i,j] = {expression}", X=SPARSE, Y=OTHER)
    program = one.compile(native, decomposition="relational")  # no look-ups in place of joins
    assert {join.kind for join in joins(program)} == {kind}
    assert not any(isinstance(side, Densify) for j in joins(program) for side in (j.left, j.right))


def test_fill_inf_annihilates_in_a_sum(native: Connection, routes: Routes) -> None:
    """x + inf = inf: with that fill an addition is an inner join."""
    far = np.where(SPARSE == 0, np.inf, SPARSE)
    near = np.where(OTHER == 0, np.inf, OTHER)
    one = case("T[i,j] = X[i,j] + Y[i,j]", {"X": np.inf, "Y": np.inf}, X=far, Y=near)
    program = one.compile(native, decomposition="relational")
    assert [join.kind for join in joins(program)] == [JoinKind.INNER]
    check_everywhere(one, routes, 0)


def test_min_plus_distances(routes: Routes) -> None:
    edges = np.where(random_array(RNG, (5, 5), 0.5) == 0, np.inf, RNG.integers(1, 9, size=(5, 5)))
    check_everywhere(case("D[i,k] min= A[i,j] + A[j,k]", {"A": np.inf}, A=edges), routes, 0)


@pytest.mark.parametrize("function", REAL_FUNCTIONS)
def test_a_map_changes_the_fill(function: str, native: Connection) -> None:
    """The entries stay as sparse as they were; all others take the function's value at 0."""
    positive = np.abs(SPARSE)
    sparse = case(f"T[i,j] = {function}(X[i,j])", X=positive)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[function].function(np.zeros(1))[0]
    with sparse.compile(native, decomposition="relational").execute() as result:
        np.testing.assert_equal(result["T"].fill, float(expected))
        assert len(result["T"].stored.fetchall()) <= np.count_nonzero(positive)
        assert_equal(result["T"].to_numpy(), sparse.expected()["T"])


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text",
    [
        "T[i] += X[i,j] + 1",
        "T[i] = sigmoid(X[i,j] * Y[i,j])",
        "T[i] += sigmoid(X[i,j])",
        "T[i] *= X[i,j] + 0.5",
        "T[i] max= X[i,j] - 3",
        "T[i] min= 3 - X[i,j]",
        "T[i,j] = X[i,j] / (Y[i,j] + 3)",
        "T[j] += (X[i,j] - Y[i,j]) ^ 2",
        "T[i] += X[i,j] + b[j]",
        "T[i,j] = b[j] - X[i,j]",
    ],
)
def test_missing_entries_count(text: str, routes: Routes) -> None:
    arrays = {"X": SPARSE, "Y": OTHER, "b": COLUMN}
    used = {name: array for name, array in arrays.items() if f"{name}[" in text}
    check_everywhere(case(text, **used), routes, 0)


# zero suppression


def test_zero_suppression(connection: Connection) -> None:
    """Zeros that an input states are dropped; so is a tuple that would hold nothing else."""
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [2.0, 3.0]])
    stated = pa.table({"i": [0, 1, 1, 3, 3], "j": [1, 0, 1, 0, 1], "v": [0.0, 1, -0.0, 2, 3]})
    for value in (rows, ucle.table(stated, bounds=(4, 2))):
        for promoted, expected in (("ij", 3), ("i", 2), ("j", 2), ("", 1)):
            program = ucle.einsum_program(
                "T[i,j] = X[i,j] * 2",
                X=value,
                database=connection,
                decomposition={"T": promoted},
            )
            with program.execute() as result:
                assert len(result["T"].to_arrow(list(promoted))) == expected
                assert len(result["T"].to_arrow()) == 3
                assert_equal(result["T"].to_numpy(), rows * 2)


# NaN and inf


@pytest.mark.parametrize("function", REAL_FUNCTIONS)
def test_functions_of_special_values(function: str, routes: Routes) -> None:
    """Functions agree with NumPy, in SQL and in kernels; a zero's sign is dropped before 1/x."""
    values = SPECIAL + 0.0 if function == "reciprocal" else SPECIAL
    check_everywhere(case(f"T[i] = {function}(X[i])", X=values), routes, 0)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/"])
def test_operators_of_special_values(operator: str, routes: Routes) -> None:
    """Every pair of special values; a zero divisor only where its sign does not matter."""
    x, y = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    if operator == "/":
        y = np.where((y == 0) & (x != 0) & ~np.isnan(x), 2.0, y)
    check_everywhere(case(f"T[i] = X[i] {operator} Y[i]", X=x, Y=y), routes, 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "text",
    [
        "T[i] += A[i,j] * x[j]",
        "T[i,j] = A[i,j] * x[j]",
        "T[i] += A[i,j] + x[j]",
        "T += A[i,j] * A[i,j] * x[j]",
        "T = A[i,j] * A[i,j] * x[j]",
        "T[i] = 0.5 * A[i,j] * x[j] * 3 * A[i,j]",
        "T[i] += x[j] * A[i,j] * 0 * x[k]",
        "T[i] max= A[i,j] * x[j]",
        "T[i] min= A[i,j] * x[j]",
    ],
)
def test_zero_times_infinity_is_nan(text: str, special: float, routes: Routes) -> None:
    """Not even an entry that is stored nowhere annihilates what is not finite."""
    x = np.array([1.0, special, 0.0, 2.0])
    check_everywhere(case(text, A=SPARSE, x=x), routes, 0, sample=10)
    dirty = SPARSE.copy()
    dirty[2, 3] = special
    check_everywhere(case(text, A=dirty, x=COLUMN), routes, 1, sample=10)


def test_overflow_inside_follows_the_sparse_convention(native: Connection) -> None:
    """An entry that is not stored annihilates an infinity that the computation itself made."""
    x, y = np.array([1.0, 1.0]), np.array([0.0, 1.0])
    overflow = case("E[i] = exp(1000 * x[i]); T[i] = E[i] * y[i]", x=x, y=y)
    with overflow.compile(native, decomposition="relational").execute() as result:
        assert_equal(result["T"].to_numpy(), np.array([0.0, np.inf]))


# empty aggregate


@pytest.mark.parametrize(("operator", "identity"), [("+=", 0.0), ("*=", 1.0)])
def test_an_empty_aggregate_is_the_identity(operator: str, identity: float, routes: Routes) -> None:
    empty = case(f"T[i] {operator} X[i,j]", X=np.zeros((3, 0)))
    assert_equal(empty.expected()["T"], np.full(3, identity))
    check_everywhere(empty, routes, 0)


def test_an_empty_table_is_an_empty_tensor(connection: Connection) -> None:
    empty = pa.table({"i": pa.array([], pa.int32()), "v": pa.array([], pa.float64())})
    program = ucle.einsum_program("s += A[i]; T[i] = A[i] * 2", A=empty, database=connection)
    with program.execute() as result:
        assert result["s"].to_numpy() == 0
        assert result["T"].shape == (0,)


# label case


def test_labels_are_case_sensitive(native: Connection, routes: Routes) -> None:
    """i and I are two labels, and their columns have names that DuckDB can tell apart."""
    mixed = case("T[i,I] += X[i,j] * Y[I,j]", X=SPARSE, Y=OTHER)
    check_everywhere(mixed, routes, 0)
    with mixed.compile(native, decomposition="relational").execute() as result:
        names = [name.casefold() for name in result["T"].to_arrow().column_names]
        assert len(set(names)) == 3


def test_letter_case_decides_only_as_written(native: Connection) -> None:
    text = "T[I,k] += X[I,J] * Y[J,k]"
    arrays = {"X": SPARSE, "Y": OTHER[:4]}
    written = case(text, **arrays).compile(native, decomposition="as-written")
    assert written.compiled.decomposed.promoted == {"T": {"I", "J"}}
    dense = case(text, X=np.ones((5, 4)), Y=np.ones((4, 4)))
    chosen = dense.compile(native, decomposition="auto")
    lower = case(text.lower().replace("x[", "X[").replace("y[", "Y[").replace("t[", "T["), **arrays)
    same = lower.compile(native).compiled.decomposed.promoted["T"]
    assert same == {x.lower() for x in case(text, **arrays).compile(native)
                    .compiled.decomposed.promoted["T"]}  # fmt: skip
    with written.execute() as one, chosen.execute() as other:
        assert_equal(one["T"].to_numpy(), SPARSE @ OTHER[:4])
        assert_equal(other["T"].to_numpy(), np.full((5, 4), 4.0))


# coordinates


def test_coordinates_beyond_32_bits(connection: Connection) -> None:
    far = pa.table({"i": pa.array([5, 3_000_000_000]), "v": [2.0, 1.5]})
    program = ucle.einsum_program("T[i] = A[i] * A[i]; s += A[i]", A=far, database=connection)
    with program.execute() as result:
        table = result["T"].to_arrow()
        assert table.schema.field("i").type == pa.int64()
        assert dict(zip(*table.to_pydict().values(), strict=True)) == {5: 4.0, 3_000_000_000: 2.25}
        assert result["s"].to_numpy() == 3.5


def test_a_bound_is_not_a_maximal_coordinate(connection: Connection) -> None:
    table = pa.table({"i": [0, 2], "v": [1.0, 2.0]})
    for options, size in (({}, 3), ({"bounds": {"i": 7}}, 7)):
        program = ucle.einsum_program("s += exp(A[i])", A=table, database=connection, **options)
        with program.execute() as result:
            expected = np.exp(1.0) + np.exp(2.0) + (size - 2)
            assert_equal(result["s"].to_numpy(), np.array(expected))


# inputs


@pytest.mark.parametrize("kind", ["view", "parquet", "names", "by label", "unit"])
def test_inputs_of_the_database(kind: str, connection: Connection, tmp_path: Path) -> None:
    array = SPARSE if kind != "unit" else (SPARSE != 0).astype(float)
    data = pa.table(coo_columns(array, np.random.default_rng(1), 0.0))
    if kind == "unit":
        data = data.filter(pa.compute.not_equal(data["value"], 0)).drop_columns("value")
    connection.register("semantics_data", data)
    value: Any = "semantics_data"
    if kind == "view":
        connection.execute("CREATE VIEW semantics_view AS FROM semantics_data")
        value = "semantics_view"
    elif kind == "parquet":
        pq.write_table(data, tmp_path / "data.parquet")
        value = tmp_path / "data.parquet"
    elif kind == "names":
        value = ucle.table(value, ["k0", "k1"], "value")
    elif kind == "by label":
        value = ucle.table(value, {"j": "k1", "i": "k0"}, "value")
    program = ucle.einsum_program(
        "T[i] += A[i,j]", A=value, database=connection, bounds={"i": 5, "j": 4}
    )
    with program.execute() as result:
        assert_equal(result["T"].to_numpy(), array.sum(axis=1))
    connection.execute("DROP VIEW IF EXISTS semantics_view")
    connection.unregister("semantics_data")


# duplicates


def test_duplicates_are_summed_on_request(native: Connection, routes: Routes) -> None:
    """Also where they cancel, and where scipy holds them."""
    table = pa.table({"i": [0, 1, 0, 1], "v": [1.0, 2.0, 0.5, -2.0]})
    matrix = scipy.sparse.coo_array(
        (np.array([1.0, 2.0, 0.5, -2.0]), (np.array([0, 1, 0, 1]),)), shape=(2,)
    )
    summed = np.array([1.5, 0.0])
    for value in (ucle.table(table, duplicates="sum"), matrix):
        check_everywhere(
            Case("T[i] = cos_free[i] + 1", {"cos_free": summed}, {"cos_free": value}, {}),
            routes, 0,
        )  # fmt: skip
    with pytest.raises(ucle.UcleError, match="same coordinates"):
        ucle.einsum_program("T[i] = A[i] + 1", A=table, database=native)


# outputs


def test_outputs(connection: Connection) -> None:
    """Outputs are unread or requested tensors; the rest is not computed, or stays inside."""
    text = "T[i] += X[i,j]; U[i] = T[i] * 2; V[j] += X[i,j]"

    def outputs(wanted: Any) -> dict[str, Any]:
        program = ucle.einsum_program(text, X=SPARSE, database=connection, outputs=wanted)
        with program.execute() as result:
            return {name: result[name].to_numpy() for name in result}

    assert set(outputs(None)) == {"U", "V"}
    assert set(outputs(["T", "U"])) == {"T", "U"}
    only = outputs("V")
    assert set(only) == {"V"}
    assert_equal(only["V"], SPARSE.sum(axis=0))
    assert_equal(outputs(["T", "U"])["T"], SPARSE.sum(axis=1))


# to_sql


def test_to_sql_names_inputs_from_memory_and_the_route(
    native: Connection, plain: Connection
) -> None:
    arrays = {"X": np.ones((3, 4)), "Y": np.ones((4, 2))}
    for connection, route in ((native, "native"), (plain, "arrow")):
        program = ucle.einsum_program(
            "T[i,k] += X[i,j] * Y[j,k]", database=connection, decomposition={"T": "j"}, **arrays
        )
        script = program.to_sql()
        header = [line for line in script.splitlines() if line.startswith("--")]
        for step in program.compiled.plan.steps:
            if step.role.value == "input":
                assert any(step.name in line for line in header)
        assert f"Route: {route}" in script
        assert bool(re.search(r"\blist\(", script)) == (route == "arrow")


# limits


def test_no_tuple_holds_too_much(native: Connection) -> None:
    """Ten thousand million cells, a few of them stored: never one array."""
    size = 100_000
    table = pa.table({"i": [0, size - 1, 7], "j": [3, size - 1, 7], "v": [1.0, 2.0, 4.0]})
    program = ucle.einsum_program(
        "T[i,k] += A[i,j] * B[j,k]; U[i,k] = T[i,k] * 2",
        A=table, B=table, bounds={"i": size, "j": size, "k": size}, database=native,
    )  # fmt: skip
    decomposed = program.compiled.decomposed
    for vertex in decomposed.program.vertices:
        for operand, layout in decomposed.needed_layouts(vertex):
            type_ = decomposed.program.types[operand.tensor]
            assert layout.compressed is not None or type_.dense_size(layout) < 2**31
    with program.execute() as result:
        found = result["U"].to_scipy().tocsr()
        assert found.nnz == 2
        assert found[size - 1, size - 1] == 8
        assert found[7, 7] == 32


def test_results_are_lists_at_rest(connection: Connection) -> None:
    """BLOBs carry arrays in flight; what leaves the compiler is an Arrow list."""
    program = ucle.einsum_program(
        "T[i,j] = X[i,j] * 2", X=SPARSE, database=connection, decomposition={"T": "i"}
    )
    with program.execute() as result:
        assert pa.types.is_large_list(result["T"].to_arrow(["i"]).schema.field("val").type)
