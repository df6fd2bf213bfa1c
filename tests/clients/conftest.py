"""Clients of DuckDB other than Python's, and the extension that they load.

`make extension-test` builds the one and installs the others; without them these tests are skipped.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqllogic
from documents import ROOT

ENVIRONMENT = ROOT / ".venv-extension"


def needed(path: Path) -> Path:
    """A path that is there, or the test is skipped."""
    if not path.exists():
        pytest.skip(f"there is no {path.relative_to(ROOT)}: make extension-test")
    return path


def extension(platform: str) -> Path:
    return needed(ROOT / "dist" / "extension" / platform / "ucle.duckdb_extension")


@dataclass(frozen=True)
class CommandLine:
    """DuckDB's own client, started again for each script."""

    command: tuple[str, ...]
    library: Path

    def output(self, script: str, folder: Path) -> str:
        """Run a script, return its CSV without names; raise AssertionError with its error."""
        options = ("-unsigned", "-csv", "-noheader", "-nullvalue", "NULL", "-bail")
        done = subprocess.run(
            [*self.command, *options],
            input=f"LOAD '{self.library}';\n{script}",
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
        )
        if done.returncode != 0 or done.stderr:
            raise AssertionError(done.stderr or f"exit code {done.returncode}")
        return done.stdout

    def run(self, path: Path, folder: Path) -> int:
        """The statements and queries of a sqllogictest that are to succeed; how many there were."""
        script, queries = [], []
        for record in sqllogic.records(path.read_text(encoding="utf-8")):
            if record.words == ("statement", "ok"):
                script.append(f"{record.sql};")
            elif record.words[0] == "query":
                script += [f".print @@{record.line}", f"{sqllogic.as_texts(record.sql)};"]
                queries.append(record)
        outputs = self.output("\n".join(script), folder).split("@@")[1:]
        for record, output in zip(queries, outputs, strict=True):
            line, _, rows = output.partition("\n")
            assert int(line) == record.line
            sqllogic.check_rows(record, list(csv.reader(io.StringIO(rows))))
        return len(queries)

    def errors(self, path: Path, folder: Path) -> int:
        """The statements that are to fail, each in a session of its own; how many there were."""
        count = 0
        for record in sqllogic.records(path.read_text(encoding="utf-8")):
            if record.words == ("statement", "error"):
                with pytest.raises(AssertionError) as caught:
                    self.output(f"{record.sql};", folder)
                sqllogic.check_error(record, str(caught.value))
                count += 1
        return count


@pytest.fixture
def command_line() -> CommandLine:
    return CommandLine((str(needed(ENVIRONMENT / "bin" / "duckdb")),), extension("linux_amd64"))


@pytest.fixture
def emulated() -> CommandLine:
    """The client for ARM in an emulator."""
    emulator, libraries = shutil.which("qemu-aarch64"), Path("/usr/aarch64-linux-gnu")
    if emulator is None or not (libraries / "lib" / "libstdc++.so.6").exists():
        pytest.skip("qemu-user, libc6-arm64-cross and libstdc++6-arm64-cross are not installed")
    client = needed(ENVIRONMENT / "arm" / "duckdb_cli" / "duckdb")
    client.chmod(0o755)  # an install for another machine leaves it as a file of data
    return CommandLine((emulator, "-L", str(libraries), str(client)), extension("linux_arm64"))


NODE = """
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
const [packages, library, script] = process.argv.slice(1);
const { DuckDBInstance } = createRequire(packages)('@duckdb/node-api');
const instance = await DuckDBInstance.create(':memory:', { allow_unsigned_extensions: 'true' });
const connection = await instance.connect();
await connection.run(`LOAD '${library}'`);
const reader = await connection.runAndReadAll(readFileSync(script, 'utf8'));
console.log(JSON.stringify(reader.getRowsJson()));
"""


@dataclass(frozen=True)
class Node:
    """The client in Node."""

    command: str
    packages: Path
    library: Path

    def rows(self, script: Path, folder: Path) -> Sequence[Any]:
        """Run a script and return the rows of its last statement."""
        arguments = ("--", self.packages / "x", self.library, script)
        done = subprocess.run(
            [self.command, "--input-type=module", "--eval", NODE, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        rows: Sequence[Any] = json.loads(done.stdout)
        return rows


@pytest.fixture
def node() -> Node:
    command = shutil.which("node")
    if command is None:
        pytest.skip("there is no Node")
    packages = needed(ENVIRONMENT / "node" / "node_modules")
    return Node(command, packages, extension("linux_amd64"))
