"""Wrong command lines: none ends in a traceback, each says one thing on stderr and has a code."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

from ucle.command.cli import main

PROGRAM = "y[i] += A[i,j]\n"
LONG = "n" * 300
INPUT = ("-i", "A=t")
GOOD = ("run", "p.ein", "-d", "d.duckdb", *INPUT)

BROKEN = {
    "text.npz": b"this is no archive",
    "cut.npz": None,
    "empty.npz": b"",
    "text.npy": b"this is no array",
    "cut.npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'",
    "pickled.npy": b"\x93NUMPY\x01\x00",
    "text.mtx": b"no matrix\n",
    "cut.mtx": b"%%MatrixMarket matrix coordinate real general\n2 2 5\n1 1 1.0\n",
    "text.mtx.gz": b"no gzip",
    "cut.mtx.gz": gzip.compress(b"%%MatrixMarket matrix coordinate real general\n" * 50)[:30],
    "text.tns": b"a b c\n",
    "text.tns.gz": b"no gzip",
    "cut.tns.gz": gzip.compress(b"1 1 1.0\n" * 500)[:40],
    "flipped.tns.gz": gzip.compress(b"1 1 1.0\n" * 500)[:20] + b"\xff" * 20,
    "text.parquet": b"no parquet",
    "cut.parquet": b"PAR1",
    "text.arrow": b"no arrow",
    "empty.arrow": b"",
    "text.feather": b"ARROW1",
    "empty.csv": b"",
    "binary.csv": bytes(range(256)),
    "cut.csv.gz": gzip.compress(b"i,j,v\n0,0,1\n" * 500)[:30],
}

LINES = [
    (),
    ("zz",),
    ("run",),
    ("run", "missing.ein"),
    ("run", "."),
    ("run", LONG),
    ("run", "binary.ein"),
    ("run", "empty.ein"),
    ("run", "nul.ein"),
    ("run", "digits.ein", *INPUT),
    ("run", "terms.ein", *INPUT),
    ("run", "nested.ein", *INPUT),
    ("run", "p.ein"),
    ("run", "p.ein", "-d", ""),
    ("run", "p.ein", "-d", "."),
    ("run", "p.ein", "-d", "missing.duckdb"),
    ("run", "p.ein", "-d", "p.ein"),
    ("run", "p.ein", "-d", LONG),
    ("run", "p.ein", "-d", "no/such/folder.duckdb"),
    ("run", "p.ein", "-d", "d.duckdb", "-i", "A=zz"),
    ("run", "p.ein", "-d", "d.duckdb", "-i", "A"),
    ("run", "p.ein", "-d", "d.duckdb", "-i", "A="),
    ("run", "p.ein", "-d", "d.duckdb", "-i", "=t"),
    ("run", "p.ein", "-d", "d.duckdb", "-i", "A=a.b.c.d"),
    ("run", "p.ein", "-d", "d.duckdb", "-i", "A=t(zz)"),
    ("run", "p.ein", "-d", "d.duckdb", "-i", "A=t(i, j: zz)"),
    ("run", "p.ein", "-d", "d.duckdb", "-i", "A=t()()"),
    ("run", "p.ein", "-d", "d.duckdb", "-i", f"A={LONG}"),
    ("run", "p.ein", "-d", "d.duckdb", "-i", f"A={LONG}.csv"),
    ("run", "p.ein", "-d", "d.duckdb", "-i", f"A={LONG}.npz"),
    ("run", "p.ein", "-d", "d.duckdb", *INPUT, "-i", "B=t"),
    *(("run", "p.ein", "-i", f"A={name}") for name in BROKEN),
    *((*GOOD, "-o", f"y={path}") for path in
      ("x.zz", "x", "no/x.csv", LONG + ".csv", ".", "x.mtx", "/", "x/", ".csv/x.csv")),
    (*GOOD, "-o", "zz=x.csv"),
    (*GOOD, "-o", "y"),
    *((*GOOD, "-t", f"y={name}") for name in ("a.b.c.d", ".x", "t", '"', "zz.t", LONG + '".')),
    (*GOOD, "-t", "zz=x"),
    ("run", "p.ein", "-i", "A=a.npy", "-t", "y=x"),
    *((*GOOD, "--rows", rows) for rows in ("-5", "zz", "", "1.5", "9" * 5000, "\u0664")),
    *((*GOOD, "--show", show) for show in ("-5", "zz", "9" * 5000)),
    *((*GOOD, "--max-rows", rows) for rows in ("-5", "zz", "9" * 5000)),
    *((*GOOD, "--bound", bound) for bound in
      ("i", "i=-1", "i=zz", "zz=3", "i=0", "i=" + "9" * 5000, "i=\u00b2")),
    *((*GOOD, "--memory-limit", size) for size in ("0", "-1", "lots", "", "1e", "nan")),
    *((*GOOD, "--promote", labels) for labels in ("y", "y=zz", "zz=i", "=i")),
    (*GOOD, "--promote", "y=i", "--decomposition", "relational"),
    (*GOOD, "--keys", "y=zz", "-t", "y=x"),
    (*GOOD, "--on", "y=i", "-t", "y=x"),
    (*GOOD, "--mode", "zz"),
    (*GOOD, "--mode", "append", "--replace", "-t", "y=x"),
    (*GOOD, "--partition-by", "y=zz", "-o", "y=f/"),
    (*GOOD, "--store", "zz"),
    (*GOOD, "--profile", "zz"),
    (*GOOD, "--duplicates", "zz"),
    (*GOOD, "--zz"),
    ("explain", "p.ein", "-d", "d.duckdb", *INPUT, "--format", "zz"),
    ("explain", "p.ein", "-d", "d.duckdb", *INPUT, "--json", "--format", "svg"),
    ("sql", "p.ein", "zz"),
    ("completion", "zz"),
    ("demo", "-d", "."),
    ("demo", "--limit", "0"),
    ("demo", "-d", "p.ein"),
    ("calibrate", "--threads", "0"),
    ("calibrate", "--output", "."),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program, a database and files that are broken."""
    place = tmp_path_factory.mktemp("arguments")
    texts = {
        "p.ein": PROGRAM,
        "empty.ein": "",
        "nul.ein": "y[i] += A[i,j\0]",
        "digits.ein": "y[i] += " + "9" * 5000 + " * A[i,j]",
        "terms.ein": "y[i] += " + " + ".join(["A[i,j]"] * 5000),
        "nested.ein": "y[i] += " + "exp(" * 500 + "A[i,j]" + ")" * 500,
    }
    for name, text in texts.items():
        (place / name).write_text(text)
    (place / "binary.ein").write_bytes(b"\xff\xfe\x00")
    np.save(place / "a.npy", np.ones((2, 2)))
    np.savez(place / "whole.npz", np.ones((200, 200)))
    for name, data in BROKEN.items():
        whole = (place / "whole.npz").read_bytes()
        (place / name).write_bytes(whole[: len(whole) // 2] if data is None else data)
    with duckdb.connect(str(place / "d.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 0 AS i, 0 AS j, 1.0 AS v")
    return place


@pytest.mark.sample(24)
@pytest.mark.parametrize("arguments", LINES, ids=lambda line: " ".join(line)[:60])
def test_wrong_line(
    arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    outcome = CliRunner().invoke(main, arguments)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit)
    assert "Traceback" not in outcome.output
    assert outcome.exit_code in (1, 2)
    assert outcome.stderr.strip()
    assert sorted(folder.rglob("*")) == before


def command(folder: Path, arguments: tuple[str, ...], **options: object) -> tuple[int, str]:
    """Code and stderr of the command in a process of its own."""
    made = subprocess.run(
        [sys.executable, "-m", "ucle.command.cli", *arguments],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        **options,  # type: ignore[call-overload]
    )
    return made.returncode, made.stderr


@pytest.mark.slow
def test_full_output(folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no full device here")
    with Path("/dev/full").open("w") as full:
        code, told = command(folder, GOOD, stdout=full)
    assert code == 1
    assert told.startswith("Error: the output cannot be written")
    assert "Traceback" not in told


@pytest.mark.slow
def test_closed_output(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    code, told = command(folder, GOOD, stdout=write)
    os.close(write)
    assert code == 1
    assert "Traceback" not in told


@pytest.mark.slow
def test_no_temporary_folder(folder: Path) -> None:
    places = {name: str(folder / "missing") for name in ("TMPDIR", "TEMP", "TMP", "HOME")}
    code, told = command(folder, GOOD, env={**os.environ, **places}, stdout=subprocess.DEVNULL)
    assert "Traceback" not in told
    assert code == 0 or told.startswith("Error: ")
