"""Files of tensors that are empty, of one entry, or hold no finite number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ucle
from ucle.errors import InputError, UnsupportedError, ValueTypeError
from ucle.inputs.formats import SUFFIXES

inf, nan = np.inf, np.nan
EXTREMES = {
    "empty": np.zeros((3, 2)),
    "without positions": np.zeros((0, 2)),
    "inf": np.full((2, 3), inf),
    "-inf": np.full((2, 3), -inf),
    "nan": np.full((2, 3), nan),
    "not finite": np.array([[inf, nan], [-inf, 0]]),
    "bound 1": np.full((1, 1), 2.5),
    "bound 1, inf": np.full(1, inf),
    "scalar": np.array(3.5),
    "scalar 0": np.array(0.0),
    "scalar inf": np.array(inf),
}


def held(suffix: str, array: NDArray[Any]) -> bool:
    """True if a format holds tensors of this rank."""
    bare = suffix.removesuffix(".gz")
    return not (bare == ".mtx" and array.ndim != 2) and not (bare == ".tns" and not array.ndim)


@pytest.mark.sample(1)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trips_of_extremes(suffix: str, tmp_path: Path) -> None:
    with ucle.connect() as connection:
        for name, array in EXTREMES.items():
            labels = "ij"[: array.ndim]
            text = f"y[{','.join(labels)}] = A[{','.join(labels)}]"
            path = tmp_path / f"{name}{suffix}"
            with ucle.einsum_program(text, A=array, database=connection).execute() as result:
                if not held(suffix, array):
                    with pytest.raises(UnsupportedError):
                        result["y"].save(path)
                    continue
                result["y"].save(path)
            program = ucle.einsum_program(
                text,
                A=str(path),
                database=connection,
                bounds=dict(zip(labels, array.shape, strict=True)),
            )
            with program.execute() as result:
                found = result["y"].to_numpy()
            assert found.shape == array.shape
            np.testing.assert_array_equal(found, array, name)  # text knows no element types


def test_csv_files_change(tmp_path: Path) -> None:
    """Values that were finite when the program was compiled may all be infinite, and be gone."""
    path = tmp_path / "a.csv"
    path.write_text("i,val\n0,1.5\n1,inf\n")
    program = ucle.einsum_program("y[i] = A[i]", A=str(path), bounds={"i": 3})
    for rows, expected in (
        ("0,inf\n2,inf\n", [inf, 0, inf]),
        ("", [0, 0, 0]),
        ("1,-inf\n2,nan\n", [0, -inf, nan]),
    ):
        path.write_text(f"i,val\n{rows}")
        with program.execute() as result:
            np.testing.assert_array_equal(result["y"].to_numpy(), expected)


@pytest.mark.parametrize("values", ["2020-01-01", "inf,2020-01-01", "one", "inf,x"])
def test_what_is_no_number_is_refused(values: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = "\n".join(f"{n},{value}" for n, value in enumerate(values.split(",")))
    path.write_text(f"i,val\n{rows}\n")
    with pytest.raises(ValueTypeError, match="does not hold numbers"):
        ucle.einsum_program("y[i] = A[i]", A=str(path))


def test_files_without_rows(tmp_path: Path) -> None:
    """They are tensors without entries, whose sizes are 0 unless bounds are stated."""
    csv, pattern, tns = (tmp_path / name for name in ("a.csv", "p.csv", "a.tns"))
    csv.write_text("from,to,val\n")
    pattern.write_text("from,to\n")
    tns.write_text("# a comment\n# rank 2\n\n")
    for path in (csv, pattern, tns):
        assert ucle.einsum_program("y[i,j] = A[i,j]", A=str(path)).execute()["y"].shape == (0, 0)
    keyed = ucle.table(str(csv), coordinates={"i": "page", "j": "page"})
    assert ucle.einsum_program("y[i] += A[i,j]", A=keyed).execute()["y"].shape == (0,)
    tns.write_text("# a comment alone\n")
    with pytest.raises(InputError, match="tells its rank"):
        ucle.einsum_program("y[i,j] = A[i,j]", A=str(tns))
