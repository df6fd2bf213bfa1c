"""Everything but three things works without scipy, and these say what they need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BLOCKED = "import sys\nsys.modules['scipy'] = None  # import scipy is now an ImportError\n"


def run(script: str, folder: Path) -> list[str]:
    """The lines that a script prints, which runs in a folder without scipy."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + script],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


WORKS = """
import duckdb
import numpy as np
import ucle

A = np.array([[0.0, 2.0], [3.0, 0.0]])
print(ucle.einsum("ij,j->i", A, [1.0, 10.0]).tolist())
print((ucle.array(A, axes=("i", "j")).sum("j") + 1).to_numpy().tolist())

with duckdb.connect("d.duckdb") as connection:
    connection.execute("SET enable_progress_bar = false").fetchall()  # it prints
    connection.execute("CREATE TABLE e (i INTEGER, j INTEGER, v DOUBLE)").fetchall()
    connection.execute("INSERT INTO e VALUES (0, 1, 2.0), (1, 0, 3.0)").fetchall()
    connection.execute("COPY e TO 'e.parquet'").fetchall()
    for edges in ("e", "e.parquet"):
        program = ucle.einsum_program("y[i] += E[i,j]", E=edges, database=connection)
        with program.execute() as result:
            print(result["y"].to_numpy().tolist(), result["y"].to_arrow().num_rows)

with ucle.einsum_program("B[i,j] = A[i,j]", A=A).execute() as result:
    tensor = result["B"]
    for name in ("b.parquet", "b.arrow", "b.csv", "b.tns", "b.npy"):
        tensor.save(name)
        if name != "b.csv":
            print(name, ucle.tensor(name, ndim=2).to_numpy().tolist())
    print(len(tensor.to_pandas()), len(tensor.to_polars()), tensor.nonzero().nnz)


class Sparse:
    '''Two entries, as a library has them that is not scipy.'''

    format, shape, nnz, dtype = "csr", (2, 2), 2, np.dtype(float)

    def tocoo(self):
        return self

    row, col, data = np.array([0, 1]), np.array([1, 0]), np.array([2.0, 3.0])


print(ucle.einsum("ij,j->i", Sparse(), [1.0, 10.0]).tolist())
"""


@pytest.mark.slow
def test_what_works(tmp_path: Path) -> None:
    assert run(WORKS, tmp_path) == [
        "[20.0, 3.0]",
        "[3.0, 4.0]",
        "[2.0, 3.0] 2",
        "[2.0, 3.0] 2",
        "b.parquet [[0.0, 2.0], [3.0, 0.0]]",
        "b.arrow [[0.0, 2.0], [3.0, 0.0]]",
        "b.tns [[0.0, 2.0], [3.0, 0.0]]",
        "b.npy [[0.0, 2.0], [3.0, 0.0]]",
        "2 2 2",
        "[20.0, 3.0]",
    ]


NEEDS = """
from pathlib import Path
import numpy as np
import ucle
from ucle.command.calibrate import calibrate

Path("m.mtx").write_text("%%MatrixMarket matrix coordinate real general\\n1 1 1\\n1 1 2.0\\n")
np.savez("m.npz", row=[0], col=[0], format=b"coo", shape=[1, 1], data=[2.0])
tensor = ucle.array([[1.0, 0.0]])
for needs in (
    tensor.to_scipy,
    lambda: tensor.save("w.mtx"),
    lambda: tensor.save("w.npz"),
    lambda: ucle.tensor("m.mtx", ndim=2).to_numpy(),
    lambda: ucle.tensor("m.npz", ndim=2).to_numpy(),
    calibrate,
):
    try:
        needs()
    except ucle.UcleError as error:
        assert isinstance(error, ucle.errors.MissingPackageError | ImportError)
        assert error.found
        print(error.where, error.expected, error.hint, sep=" | ")
print(sorted(path.name for path in Path().iterdir()))
"""


@pytest.mark.slow
def test_what_needs_it(tmp_path: Path) -> None:
    *said, files = run(NEEDS, tmp_path)
    places = ["to_scipy of out", "save out, Matrix Market", "save out, .npz", "m.mtx", "m.npz"]
    assert said == [
        f"{place} | the package scipy | pip install 'ucle[scipy]'"
        for place in (*places, "calibrate")
    ]
    assert files == "['m.mtx', 'm.npz']"


COMMAND = """
from ucle.command.cli import main
try:
    main(["calibrate"])
except SystemExit as end:
    print(end.code)
"""


@pytest.mark.slow
def test_the_command_says_so(tmp_path: Path) -> None:
    assert run(COMMAND, tmp_path) == ["1"]
