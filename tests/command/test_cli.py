"""The `ucle` command: what it prints, what it writes, and how it ends."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import ucle
from ucle.command.cli import main
from ucle.command.options import parse_input
from ucle.command.show_results import cell_text
from ucle.plan.sources import TableName

PROGRAM = "y[i,k] = A[i,j] * X[j,k]\n"
A = np.array([[0, 1.5, 0], [0, 0, 2.0], [0.5, 0, 0]])
X = np.array([[0.0, 1, 2], [1, 1, 2], [2, 1, 2]])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program and a database, where the command runs."""
    monkeypatch.chdir(tmp_path)
    Path("program.ein").write_text(PROGRAM)
    with duckdb.connect("graph.duckdb") as connection:
        connection.execute(
            """
            CREATE TABLE edges AS
            FROM (VALUES (0, 1, 1.5), (1, 2, 2.0), (2, 0, 0.5)) t(src, dst, weight);
            CREATE TABLE reversed AS SELECT weight, dst, src FROM edges;
            CREATE TABLE x AS SELECT i, [i, 1.0, 2.0]::DOUBLE[3] AS val FROM range(3) t(i);
            CREATE TABLE twice AS FROM edges UNION ALL FROM edges;
            CREATE TABLE words AS SELECT 0.5 AS i, 1.0 AS val;
            """
        )
        connection.execute("COPY edges TO 'edges.parquet'")
    return tmp_path


def invoke(*arguments: str, text: str | None = None) -> Result:
    outcome = CliRunner().invoke(main, arguments, input=text)
    # Anything else than an orderly end is a fault of the command.
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit)
    return outcome


def compiled(command: str, *arguments: str) -> Result:
    inputs = ("-d", "graph.duckdb", "-i", "A=edges", "-i", "X=x")
    return invoke(command, "program.ein", *inputs, *arguments)


@pytest.mark.usefixtures("folder")
class TestSql:
    def test_script_gives_the_answer(self) -> None:
        outcome = compiled("sql")
        assert outcome.exit_code == 0
        with ucle.connect("graph.duckdb") as connection:
            *_, last = duckdb.extract_statements(outcome.stdout)
            for statement in duckdb.extract_statements(outcome.stdout):
                rows = connection.execute(statement).fetchall()
        assert last.type == duckdb.StatementType.SELECT
        assert rows

    def test_the_order_of_products_can_be_that_of_the_text(self) -> None:
        text = "T[i,k] += A[i,j] * X[j,k]\ny[i] += T[i,k] * X[i,k]\n"
        inputs = ("-d", "graph.duckdb", "-i", "A=edges", "-i", "X=x", "--association")
        outcome = invoke("explain", "-", *inputs, "as-written", text=text)
        assert outcome.exit_code == 0
        assert "EinSum program: 2 vertices" in outcome.stdout
        assert "T[" in outcome.stdout
        assert invoke("explain", "-", *inputs, "backwards", text=text).exit_code == 2

    def test_relational_runs_without_kernels(self) -> None:
        outcome = compiled("sql", "--decomposition", "relational")
        assert outcome.exit_code == 0
        with duckdb.connect("graph.duckdb") as connection:
            for statement in duckdb.extract_statements(outcome.stdout):
                rows = connection.execute(statement).fetchall()
        found = np.zeros((3, 3))
        for i, k, value in rows:
            found[i, k] = value
        np.testing.assert_allclose(found, A @ X)

    def test_as_written(self) -> None:
        text = "y[I,k] = A[I,J] * X[J,k]"
        arguments = ("-d", "graph.duckdb", "-i", "A=edges", "-i", "X=x")
        outcome = invoke("sql", "-", *arguments, "--decomposition", "as-written", text=text)
        assert outcome.exit_code == 0
        assert "-- y[I,k] += A[I,J] * X[J,k]" in outcome.stdout

    def test_promote(self) -> None:
        outcome = compiled("sql", "--promote", "y=i,j,k")
        assert outcome.exit_code == 0
        assert "-- y[I,K] += A[I,J] * X[J,K]" in outcome.stdout


@pytest.mark.usefixtures("folder")
class TestExplain:
    def test_shows_decomposition_and_statistics(self) -> None:
        outcome = compiled("explain")
        assert outcome.exit_code == 0
        assert "Decomposition" in outcome.stdout
        assert "3 x 3" in outcome.stdout

    def test_profile(self) -> None:
        assert "cost profile: paper" in compiled("explain", "--profile", "paper").stdout

    def test_bound(self) -> None:
        assert "5 x 3" in compiled("explain", "--bound", "i=5").stdout

    def test_memory_limit_leaves_space(self) -> None:
        assert compiled("explain", "--memory-limit", "1 GiB").exit_code == 0


class TestRun:
    def test_prints_results_with_their_shapes(self, folder: Path) -> None:
        outcome = compiled("run", "--promote", "y=i,j,k")
        assert outcome.exit_code == 0
        assert outcome.stdout.splitlines()[:3] == ["y: 3 x 3, fill 0", "  i  k  val", "  0  0  1.5"]

    @pytest.mark.usefixtures("folder")
    def test_prints_some_rows_of_each_result(self) -> None:
        text = "a[i,j] = A[i,j] * 2; b[] += A[i,j]"
        outcome = invoke(
            *("run", "-", "-d", "graph.duckdb", "-i", "A=edges", "--rows", "1"),
            *("--promote", "a=i,j", "--promote", "b=i,j"),
            text=text,
        )
        assert outcome.stdout.split("\n\n") == [
            "a: 3 x 3, fill 0\n  i  j  val\n  0  1  3\n  ...",
            "b: scalar, fill 0\n  val\n  4\n",
        ]

    @pytest.mark.usefixtures("folder")
    def test_tensors_are_tables_of_their_names(self) -> None:
        outcome = invoke("run", "-", "-d", "graph.duckdb", text="total[] = edges[i,j]")
        assert outcome.exit_code == 0
        assert "4" in outcome.stdout

    @pytest.mark.usefixtures("folder")
    @pytest.mark.parametrize(
        "place",
        [
            "edges",
            "edges.parquet",
            "edges(src, dst)",
            "edges(src,dst:weight)",
            "reversed(src, dst: weight)",
            "edges.parquet(src, dst: weight)",
        ],
    )
    def test_inputs(self, place: str) -> None:
        text = "y[i,j] = 1 * A[i,j]"
        database = () if "parquet" in place else ("-d", "graph.duckdb")
        outcome = invoke("run", "-", *database, "-i", f"A={place}", "-o", "y=y.parquet", text=text)
        assert outcome.exit_code == 0, outcome.output
        assert outcome.stdout == "y 3 x 3 -> y.parquet\n"
        read = ucle.einsum_program("z[i,j] = 1 * y[i,j]", y="y.parquet").execute()
        np.testing.assert_array_equal(read["z"].to_numpy(), A)

    def test_output_to_parquet(self, folder: Path) -> None:
        outcome = compiled("run", "-o", "y=y.parquet", "--promote", "y=i,k")
        assert outcome.exit_code == 0
        table = pq.read_table("y.parquet")
        assert table.column_names == ["i", "k", "val"]
        assert {path.name for path in folder.glob("y*")} == {"y.parquet"}

    @pytest.mark.usefixtures("folder")
    def test_output_to_table(self) -> None:
        assert compiled("run", "-t", "y=result", "--keys", "y=i").exit_code == 0
        with duckdb.connect("graph.duckdb", read_only=True) as connection:
            rows = connection.execute("SELECT i, val FROM result ORDER BY i").fetchall()
        np.testing.assert_allclose([row[1] for row in rows], A @ X)

    @pytest.mark.usefixtures("folder")
    def test_an_input_can_be_stored(self) -> None:
        assert compiled("run", "--promote", "y=k", "--store", "X").exit_code == 0
        assert '"ucle"."x_by_k"' in compiled("sql", "--promote", "y=k").stdout

    @pytest.mark.usefixtures("folder")
    def test_table_is_replaced_on_request_alone(self) -> None:
        assert compiled("run", "-t", "y=result").exit_code == 0
        refused = compiled("run", "-t", "y=result")
        assert refused.exit_code == 1
        assert "hint: --mode replace" in refused.stderr
        assert compiled("run", "-t", "y=result", "--replace").exit_code == 0

    @pytest.mark.usefixtures("folder")
    def test_an_intermediate_can_be_stored(self) -> None:
        text = "y[i,k] = A[i,j] * X[j,k]; z[i] = y[i,k]"
        arguments = ("-d", "graph.duckdb", "-i", "A=edges", "-i", "X=x")
        assert invoke("run", "-", *arguments, "-o", "y=y.parquet", text=text).exit_code == 0
        assert Path("y.parquet").exists()

    def test_database_is_left_as_it_was(self, folder: Path) -> None:
        before = (folder / "graph.duckdb").read_bytes()
        assert compiled("run").exit_code == 0
        assert compiled("run", "-o", "y=y.parquet").exit_code == 0
        assert (folder / "graph.duckdb").read_bytes() == before

    @pytest.mark.usefixtures("folder")
    def test_duplicates(self) -> None:
        text = "t[] = twice[i,j]"
        assert invoke("run", "-", "-d", "graph.duckdb", text=text).exit_code == 1
        summed = invoke("run", "-", "-d", "graph.duckdb", "--duplicates", "sum", text=text)
        assert summed.stdout.splitlines()[-1].strip() == "8"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("z[i] = edges[i,k] *", (), "line 1, column 20: the program does not follow the grammar"),
        ("z[q] = edges[i,k]", (), "q"),
        ("z[i] = nosuch[i,k]", (), "nosuch"),
        (
            "z[i] = edges[i,k]",
            ("-d", "nosuch.duckdb"),
            "nosuch.duckdb: this database does not exist",
        ),
        ("z[i] = edges[i,k]", ("-d", "program.ein"), "program.ein: the database cannot be opened"),
        ("z[i] = e[i,k]", ("-i", "e=edges(src, foo)"), "there is no column 'foo'"),
        ("z[i] = words[i]", (), "does not hold coordinates"),
        ("z[i] = edges[i,k]", ("--bound", "i=2"), "input edges"),
        ("z[i] = edges[i,k]", ("--memory-limit", "1XB"), "'1XB'"),
        ("z[i] = edges[i,k]", ("--promote", "w=i"), "w"),
        ("z[i] = edges[i,k]", ("--promote", "z=q"), "q"),
        ("z[i] = edges[i,k]", ("-o", "w=w.parquet"), "unknown output w"),
        (
            "z[i] = edges[i,k]",
            ("-o", "z=nosuch/z.parquet"),
            "nosuch/z.parquet: the file cannot be written",
        ),
        ("z[i] = edges[i,k]", ("-t", "z=edges"), "already exists"),
    ],
)
def test_faults_end_with_a_message_and_1(
    text: str, arguments: tuple[str, ...], message: str
) -> None:
    outcome = invoke("run", "-", "-d", "graph.duckdb", *arguments, text=text)
    assert outcome.exit_code == 1
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("Error: ")
    assert message in outcome.stderr


@pytest.mark.sample(None)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nosuch.ein"), "nosuch.ein"),
        (("run", "graph.duckdb"), "not UTF-8 text"),
        (("run", "program.ein", "--bound", "i=x"), "'x' is not a size"),
        (("run", "program.ein", "-i", "A"), "expected NAME=TABLE, got 'A'"),
        (("run", "program.ein", "-o", "y=y.xyz"), "expected NAME=FILE, which ends in .parquet,"),
        (("run", "program.ein", "-t", "y=y"), "--to-table requires --database"),
        (("run", "program.ein", "--decomposition", "best"), "'best'"),
        (
            ("run", "program.ein", "--promote", "y=i", "--decomposition", "relational"),
            "--promote requires",
        ),
        (("demo", "--limit", "0"), "--limit"),
        (("walk",), "walk"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], message: str) -> None:
    outcome = invoke(*arguments)
    assert outcome.exit_code == 2
    assert message in outcome.stderr


@pytest.mark.parametrize("command", ["sql", "explain", "run", "demo"])
def test_help_tells_the_exit_codes(command: str) -> None:
    outcome = invoke(command, "--help")
    assert outcome.exit_code == 0
    assert "Exit codes:" in outcome.stdout


def test_version() -> None:
    assert invoke("--version").stdout.strip() == f"ucle, version {ucle.__version__}"


def test_parse_input() -> None:
    parsed = parse_input('"my table"(a, b: c)', "sum")
    assert (parsed.relation, parsed.columns, parsed.value) == ('"my table"', ("a", "b"), "c")
    assert parsed.sum_duplicates
    assert parse_input("edges", "error").columns is None
    assert TableName(("edges",)).parts == (parse_input("edges", "error").relation,)


def test_cell_text() -> None:
    assert cell_text(3) == "3"
    assert cell_text(0.5) == "0.5"
    assert cell_text([1.0, 2.0]) == "[1, 2]"
    assert cell_text([1.0] * 6) == "[1, 1, 1, 1, ...] (6 numbers)"
