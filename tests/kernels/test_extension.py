"""The kernels as an extension that stands alone: its tests, its documentation and its build."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import duckdb
import pytest
import sqllogic
from documents import ROOT, code_blocks
from kernel_table import KERNELS

from ucle.foundation.version import __version__
from ucle.udf_kernels import native

FOLDER = ROOT / "extension"
FILES = sorted((FOLDER / "test" / "sql").glob("*.test"))


@pytest.fixture
def connection(tmp_path: Path) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": "2"})


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Python's library under the name of the other: both have the entry points of both."""
    native.load_module()
    link = tmp_path / "ucle.duckdb_extension"
    link.symlink_to(native.LIBRARY)
    return link


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_sql_tests(file: Path, connection: duckdb.DuckDBPyConnection, library: Path) -> None:
    def require(connection: duckdb.DuckDBPyConnection, name: str) -> None:
        assert name == "ucle"
        connection.execute(f"LOAD '{library}'")

    assert sqllogic.run(file, connection, require) > 3


def functions(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """The names that the library adds to those of DuckDB, without the kernels."""
    query = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE internal"
    before = {name for (name,) in duckdb.connect().execute(query).fetchall()}
    added = {name for (name,) in connection.execute(query).fetchall()} - before
    stems = {re.sub(r"_(\d+|wide)$", "", name) for name in added}
    return stems - {kernel.name for kernel in KERNELS.values()}


def test_functions_are_described(connection: duckdb.DuckDBPyConnection, library: Path) -> None:
    connection.execute(f"LOAD '{library}'")
    with (FOLDER / "docs" / "function_descriptions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    kernels_too = {"inner_prod", "outer_prod", "pack"}
    assert {row["function"] for row in rows} == functions(connection) | kernels_too
    page = (ROOT / "docs" / "extension.md").read_text(encoding="utf-8")
    for row in rows:
        assert row["description"]
        assert f"`{row['function']}(" in page
        ((value,),) = connection.execute(row["example"]).fetchall()
        assert value is not None


def test_description_file(connection: duckdb.DuckDBPyConnection, library: Path) -> None:
    yaml = pytest.importorskip("yaml")
    description = yaml.safe_load((FOLDER / "description.yml").read_text(encoding="utf-8"))
    assert description["extension"]["name"] == "ucle"
    assert description["extension"]["version"] == __version__
    connection.execute(f"LOAD '{library}'")
    for statement in description["docs"]["hello_world"].split(";"):
        if statement.strip():
            connection.execute(statement)
    assert connection.fetchall() == [([[2.0, 1.0], [4.0, 3.0]],)]


def test_the_page_runs(connection: duckdb.DuckDBPyConnection, library: Path) -> None:
    connection.execute(f"LOAD '{library}'")
    blocks = [b for b in code_blocks(ROOT / "docs" / "extension.md") if b.language == "sql"]
    assert len(blocks) > 3
    for block in blocks:
        assert connection.execute(block.text).fetchall()


def test_both_builds_have_the_same_flags() -> None:
    cmake = (FOLDER / "CMakeLists.txt").read_text(encoding="utf-8")
    setup = (ROOT / "udf_kernels" / "build_kernels.py").read_text(encoding="utf-8")
    (listed,) = re.findall(r"target_compile_options\(ucle PRIVATE(.*?)\)", cmake, re.DOTALL)
    (python,) = re.findall(r"extra_compile_args=\[(.*?)\n    \]", setup, re.DOTALL)
    flags = set(re.findall(r'"(-\S+)"', python))
    by_property = {
        "-std=gnu11",
        "-O3",
        "-fvisibility=hidden",
    }  # CMake has words of its own for them
    assert flags - by_property == set(listed.split())
    assert by_property <= flags
    for words in ("C_STANDARD 11 C_EXTENSIONS ON", "C_VISIBILITY_PRESET hidden", '"-O3"'):
        assert words in cmake


def test_the_runner_finds_mistakes(tmp_path: Path) -> None:
    def load(connection: duckdb.DuckDBPyConnection, name: str) -> None:
        raise AssertionError(name)

    wrong = {
        "query I\nSELECT 1\n----\n2": "line 1",
        "# a comment\nquery II\nSELECT 1, 2\n----\n1": "line 2",
        "query I\nSELECT unnest([1, 2])\n----\n1": "line 1",
        "query R\nSELECT 1.5\n----\n1.6": "line 1",
        "statement error\nSELECT 1\n----\nwrong": "no error",
        "statement error\nSELECT nothing\n----\nanother message": "line 1",
        "statement error\nSELECT nothing": "no message",
        "loop i 0 10": "loop",
        "require other": "other",
    }
    for text, message in wrong.items():
        path = tmp_path / "wrong.test"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(AssertionError, match=message):
            sqllogic.run(path, duckdb.connect(), load)
