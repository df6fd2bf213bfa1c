"""`ucle demo` on a small part of this Python: its answers are NumPy's, its files are whole."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import ucle
from ucle.command.cli import main
from ucle.command.demo import DemoOptions, execution_time, run_demo, shortened
from ucle.command.demo_data import (
    Corpus,
    SourceFile,
    build_corpus,
    find_modules,
    read_module,
    store_corpus,
)
from ucle.command.demo_programs import pagerank_text
from ucle.errors import DatabaseError

ITERATIONS = 4


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The database and the output of a small demo."""
    path = tmp_path_factory.mktemp("demo") / "demo.duckdb"
    lines: list[str] = []
    run_demo(DemoOptions(path, limit=200, iterations=ITERATIONS), lines.append)
    return path, "\n".join(lines)


@pytest.fixture
def database(demo: tuple[Path, str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """The demo's database, opened as anybody would."""
    with duckdb.connect(str(demo[0]), read_only=True) as connection:
        yield connection


def fetch(connection: duckdb.DuckDBPyConnection, query: str) -> list[np.ndarray]:
    columns = connection.execute(query).fetchnumpy()
    return list(columns.values())


def count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    ((rows,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return rows


def graph(connection: duckdb.DuckDBPyConnection) -> sp.csr_array:
    """Imports as a matrix of ones, importers in the rows."""
    src, dst = fetch(connection, "SELECT src, dst FROM imports")
    size = count(connection, "modules")
    return sp.csr_array((np.ones(len(src)), (src, dst)), shape=(size, size))


@pytest.mark.slow
def test_pagerank(database: duckdb.DuckDBPyConnection) -> None:
    imports = graph(database)
    size = imports.shape[0]
    degree = imports.sum(axis=1)
    share = sp.diags_array(1 / np.maximum(degree, 1)) @ imports
    rank = np.full(size, 1 / size)
    for _ in range(ITERATIONS):
        rank = 0.85 * (share.T @ rank + rank[degree == 0].sum() / size) + 0.15 / size
    i, val = fetch(database, "SELECT i, val FROM pagerank ORDER BY i")
    np.testing.assert_array_equal(i, np.arange(size))
    np.testing.assert_allclose(val, rank, rtol=1e-9)
    assert val.sum() == pytest.approx(1)


def test_embeddings(database: duckdb.DuckDBPyConnection) -> None:
    imports = graph(database)
    adjacency = ((imports + imports.T + sp.eye_array(imports.shape[0])) > 0).astype(float)
    scale = sp.diags_array(np.asarray(adjacency.sum(axis=1)).ravel() ** -0.5)
    normalised = scale @ adjacency @ scale
    words = count(database, "vocabulary")
    module, word, weight = fetch(database, "SELECT module, word, weight FROM bag")
    bag = sp.csr_array((weight, (module, word)), shape=(imports.shape[0], words))
    (first,) = fetch(database, "SELECT val FROM weights1 ORDER BY id")
    ((second,),) = database.execute("SELECT val FROM weights2").fetchall()
    weights1, weights2 = np.stack(first), np.reshape(second, (256, 128))
    hidden = np.maximum(normalised @ (bag @ weights1), 0)
    embedding = np.maximum(normalised @ (hidden @ weights2), 0)
    embedding -= embedding.mean(axis=0)
    i, val = fetch(database, "SELECT i, val FROM embeddings ORDER BY i")
    np.testing.assert_array_equal(i, np.arange(len(embedding)))
    scale_of_answer = np.abs(embedding).max()
    np.testing.assert_allclose(np.stack(val), embedding, atol=1e-9 * scale_of_answer)


def test_bag_is_normalised(database: duckdb.DuckDBPyConnection) -> None:
    (norms,) = fetch(database, "SELECT sum(weight * weight) FROM bag GROUP BY module")
    np.testing.assert_allclose(norms, 1)


@pytest.mark.parametrize(
    "part",
    [
        "PageRank of the import graph, 4 iterations",
        "  R1[i] = 0.85 * (P[i,j] * R0[j] + lost1) + 0.15 / ",
        "Chosen by SparseEinSum",
        "val DOUBLE[256]",
        'CREATE TEMPORARY TABLE "E" AS',
        "purely relational",
        "The most central modules",
        "Nearest neighbours",
    ],
)
def test_report(demo: tuple[Path, str], part: str) -> None:
    assert part in demo[1]


def test_report_abridges_pagerank(demo: tuple[Path, str]) -> None:
    assert "\n  R1[" in demo[1]
    assert "\n  R3[" not in demo[1]
    assert "... and so on to R" in demo[1]


def test_scripts_are_shortened_in_long_lists_alone() -> None:
    comments = [f"  /* line {n} */" for n in range(20)]
    script = "\n".join(["-- program", "", "WITH", *comments, "SELECT 1;"])
    lines = shortened(script).splitlines()
    assert lines == ["WITH", *comments[:5], "... 10 lines", *comments[-5:], "SELECT 1;"]
    short = "\n".join(["-- program", "", "WITH", *comments[:10], "SELECT 1;"])
    assert shortened(short) == short.removeprefix("-- program\n\n")


def test_pagerank_text_is_a_program() -> None:
    parsed = pagerank_text(10, 3)
    size = 10
    result = ucle.einsum(
        "ij,j->i", np.eye(size), np.full(size, 0.1)
    )  # the start is its own image under the identity
    program = ucle.einsum_program(
        parsed, P=np.eye(size), g=np.zeros(size), R0=result, decomposition="relational"
    )
    np.testing.assert_allclose(program.execute()["R3"].to_numpy(), np.full(size, 0.1))


def test_an_execution_ends_at_its_limit() -> None:
    size = 1500
    with ucle.connect() as connection:
        connection.execute(
            f"CREATE TABLE a AS SELECT i::INTEGER AS i, j::INTEGER AS j, 1.0 AS v "
            f"FROM range({size}) t(i), range({size}) s(j)"
        )
        program = ucle.einsum_program(
            "z[i,k] = a[i,j] * a[j,k]", a="a", database=connection, decomposition="relational"
        )
        assert execution_time(program, connection, 0.2) == np.inf
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


class TestReading:
    def read(self, folder: Path, name: str, source: str, *, package: bool = False) -> dict:
        path = folder / "source.py"
        path.write_text(source)
        reading = read_module(SourceFile(name, path, package, compiled=False))
        assert reading is not None
        return {"imports": reading.imports, "words": dict(reading.words)}

    def test_imports(self, tmp_path: Path) -> None:
        source = "import os.path\nfrom a import b\nfrom . import c\nfrom ..d import e\n"
        found = self.read(tmp_path, "p.q.r", source)["imports"]
        expected = {("os.path",), ("a.b", "a"), ("p.q.c", "p.q"), ("p.d.e", "p.d")}
        assert set(found) == expected

    def test_imports_of_a_package(self, tmp_path: Path) -> None:
        found = self.read(tmp_path, "p.q", "from . import c\n", package=True)["imports"]
        assert found == (("p.q.c", "p.q"),)

    def test_words(self, tmp_path: Path) -> None:
        source = "def f(x, *, y=1):\n    return x.z(y=y)\nclass C: ...\nasync def g(): ...\n"
        words = self.read(tmp_path, "m", source)["words"]
        assert words == {"f": 1, "x": 2, "y": 3, "z": 1, "C": 1, "g": 1}

    def test_warnings_are_silent(self, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
        self.read(tmp_path, "m", "x = '\\d'\n1 is 1\n")
        assert not recwarn.list

    @pytest.mark.parametrize("source", [b"print 'old'", b"\xff\xfe\x00", b"x = '\0'", b"("])
    def test_what_does_not_parse_is_left_out(self, tmp_path: Path, source: bytes) -> None:
        path = tmp_path / "source.py"
        path.write_bytes(source)
        assert read_module(SourceFile("m", path, package=False, compiled=False)) is None

    def test_find_modules(self, tmp_path: Path) -> None:
        for name in ("a.py", "p/__init__.py", "p/b.py", "p/tests/c.py", "not-a-name/d.py", "e.txt"):
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.touch()
        assert [module.name for module in find_modules([tmp_path])] == ["a", "p", "p.b"]

    def test_build_corpus(self, tmp_path: Path) -> None:
        sources = {
            "a": "import sys, b, nosuch\nfrom b import x\nimport a",
            "b": "import sys\nx = x",
        }
        readings = []
        for name, source in sources.items():
            path = tmp_path / f"{name}.py"
            path.write_text(source)
            readings.append(read_module(SourceFile(name, path, package=False, compiled=False)))
        corpus = build_corpus(reading for reading in readings if reading is not None)
        assert corpus.modules == ("a", "b", "sys")
        assert corpus.imports == {(0, 2): 1, (0, 1): 2, (1, 2): 1}
        assert corpus.identifiers == ("x",)
        assert corpus.features == {(1, 0): 2}


class TestOverwriting:
    def empty(self) -> Corpus:
        return build_corpus([])

    def test_demo_database_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "demo.duckdb"
        store_corpus(self.empty(), path, lambda connection: None)
        store_corpus(self.empty(), path, lambda connection: None)
        assert [file.name for file in tmp_path.iterdir()] == ["demo.duckdb"]

    def test_other_files_are_not(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE precious AS SELECT 1 AS x")
        before = path.read_bytes()
        outcome = CliRunner().invoke(main, ["demo", "--database", str(path), "--limit", "5"])
        assert outcome.exit_code == 1
        assert "not a demo database" in outcome.stderr
        assert "--force" in outcome.stderr
        assert path.read_bytes() == before

    def test_unless_forced(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("precious")
        store_corpus(self.empty(), path, lambda connection: None, force=True)
        with duckdb.connect(str(path)) as connection:
            assert count(connection, "modules") == 0

    def test_a_folder_is_never(self, tmp_path: Path) -> None:
        with pytest.raises(DatabaseError, match="a folder"):
            store_corpus(self.empty(), tmp_path, lambda connection: None, force=True)

    def test_a_failure_leaves_what_was_there(self, tmp_path: Path) -> None:
        path = tmp_path / "demo.duckdb"
        store_corpus(self.empty(), path, lambda connection: None)
        before = path.read_bytes()

        def fail(connection: duckdb.DuckDBPyConnection) -> None:
            connection.execute("SELECT nonsense")

        with pytest.raises(DatabaseError, match="cannot be written"):
            store_corpus(self.empty(), path, fail)
        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["demo.duckdb"]


def test_this_python_parses() -> None:
    """The reader's premise: what the interpreter runs, `ast` parses."""
    assert ast.parse(Path(ast.__file__).read_bytes())
    assert "sys" in sys.stdlib_module_names
