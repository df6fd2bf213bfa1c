"""`ucle demo` on a small part of this Python: its answers are NumPy's, its files are whole."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import ucle
from ucle.command.cli import main
from ucle.demo.begin_demo import begin_demo
from ucle.demo.data import (
    number_identifiers,
    number_modules,
    replaced_database,
    store_graph,
)
from ucle.demo.graph_programs import pagerank_text
from ucle.demo.options import DemoOptions
from ucle.demo.read_source import SourceFile, find_modules, read_imports, read_words
from ucle.demo.timing import execution_time
from ucle.errors import DatabaseError

ITERATIONS = 4


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The database and the output of a small demo."""
    path = tmp_path_factory.mktemp("demo") / "demo.duckdb"
    lines: list[str] = []
    begin_demo(DemoOptions(path, limit=200, iterations=ITERATIONS), lines.append)
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


@pytest.mark.turns(3)
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
    def module(self, folder: Path, name: str, source: str, *, package: bool = False) -> SourceFile:
        path = folder / "source.py"
        path.write_text(source)
        return SourceFile(name, str(path), package, compiled=False)

    def test_imports(self, tmp_path: Path) -> None:
        source = "import os.path\nfrom a import b\nfrom . import c\nfrom ..d import e\n"
        found = read_imports(self.module(tmp_path, "p.q.r", source))
        expected = {("os.path",), ("a.b", "a"), ("p.q.c", "p.q"), ("p.d.e", "p.d")}
        assert set(found) == expected

    def test_imports_of_a_package(self, tmp_path: Path) -> None:
        found = read_imports(self.module(tmp_path, "p.q", "from . import c\n", package=True))
        assert found == (("p.q.c", "p.q"),)

    def test_words(self, tmp_path: Path) -> None:
        source = "def f(x, *, y=1):\n    return x.z(y=y)\nclass C: ...\nasync def g(): ...\n"
        words = read_words(self.module(tmp_path, "m", source))
        assert dict(words) == {"f": 1, "x": 2, "y": 3, "z": 1, "C": 1, "g": 1}

    def test_warnings_are_silent(self, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
        module = self.module(tmp_path, "m", "x = '\\d'\n1 is 1\n")
        assert read_words(module) == (("x", 1),)
        assert not recwarn.list

    @pytest.mark.parametrize("source", [b"print 'old'", b"\xff\xfe\x00", b"x = '\0'", b"("])
    def test_what_does_not_parse_has_no_words(self, tmp_path: Path, source: bytes) -> None:
        path = tmp_path / "source.py"
        path.write_bytes(source)
        module = SourceFile("m", str(path), package=False, compiled=False)
        assert (read_imports(module), read_words(module)) == ((), ())

    def test_find_modules(self, tmp_path: Path) -> None:
        for name in ("a.py", "p/__init__.py", "p/b.py", "p/tests/c.py", "not-a-name/d.py", "e.txt"):
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.touch()
        assert [module.name for module in find_modules([tmp_path])] == ["a", "p", "p.b"]

    def test_numbers(self, tmp_path: Path) -> None:
        sources = {
            "a": "import sys, b, nosuch\nfrom b import x\nimport a",
            "b": "import sys\nx = x",
        }
        imports, words = {}, []
        for name, source in sources.items():
            module = self.module(tmp_path, name, source)
            imports[name] = read_imports(module)
            words.append(read_words(module))
        graph, bag = number_modules(imports), number_identifiers(words)
        assert graph.modules == ("a", "b", "sys")
        assert graph.imports == {(0, 2): 1, (0, 1): 2, (1, 2): 1}
        assert bag.identifiers == ("x",)
        assert bag.features == {(1, 0): 2}


class TestOverwriting:
    def store(self, path: Path, *, force: bool = False) -> None:
        with replaced_database(path, force=force) as connection:
            store_graph(connection, number_modules({}))

    def test_demo_database_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "demo.duckdb"
        self.store(path)
        self.store(path)
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
        self.store(path, force=True)
        with duckdb.connect(str(path)) as connection:
            assert count(connection, "modules") == 0

    def test_a_folder_is_never(self, tmp_path: Path) -> None:
        with pytest.raises(DatabaseError, match="a folder"):
            self.store(tmp_path, force=True)

    @pytest.mark.parametrize("failure", ["SELECT nonsense", KeyboardInterrupt])
    def test_a_failure_leaves_what_was_there(self, tmp_path: Path, failure: Any) -> None:
        path = tmp_path / "demo.duckdb"
        self.store(path)
        before = path.read_bytes()

        def fail() -> None:
            with replaced_database(path) as connection:
                connection.execute("CREATE TABLE half AS SELECT 1")
                if not isinstance(failure, str):
                    raise failure
                connection.execute(failure)

        with pytest.raises((DatabaseError, KeyboardInterrupt)) as raised:
            fail()
        if isinstance(failure, str):
            assert "cannot be written" in str(raised.value)
        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["demo.duckdb"]


def test_this_python_parses() -> None:
    """The reader's premise: what the interpreter runs, `ast` parses."""
    assert ast.parse(Path(ast.__file__).read_bytes())
    assert "sys" in sys.stdlib_module_names
