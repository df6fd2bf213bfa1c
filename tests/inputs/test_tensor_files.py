"""FROSTT and Matrix Market files: blanks, exact integers, and errors that say what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import ucle
from ucle.command.cli import main
from ucle.errors import InputError

HEADER = "%%MatrixMarket matrix coordinate {} general\n2 2 1\n"


def read(path: Path, text: str | bytes, ndim: int = 2) -> Any:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return np.asarray(ucle.tensor(path, ndim=ndim))


def refused(path: Path, text: str | bytes) -> InputError:
    with pytest.raises(InputError) as info:
        read(path, text)
    return info.value


@pytest.mark.parametrize(
    "text",
    [
        "1 1 1.5\n2  1 2\n",
        "  1 1 1.5\n 2 1 2\n",
        "\t1 \t 1 1.5 \n2\t1\t2\t\n",
        "1 1 1.5 # one\n\n# two\n2 1 2",
        "\ufeff1 1 1.5\r\n2 1 2\r\n",
        "1 1 +1.5\n2 1 +2\n",
    ],
)
def test_frostt_with_blanks_of_all_kinds(text: str, tmp_path: Path) -> None:
    np.testing.assert_array_equal(read(tmp_path / "t.tns", text), [[1.5], [2]])


def test_integers_in_frostt_come_back(tmp_path: Path) -> None:
    path = tmp_path / "t.tns"
    for numbers in ([2**53 + 1, 3], [-(2**63), 2**63 - 1], [1, 2]):
        array = np.array(numbers, dtype=np.int64)
        ucle.array(array).compute().save(path)
        found = np.asarray(ucle.tensor(path, ndim=1))
        np.testing.assert_array_equal(found, array)
        assert found.dtype == ("int64" if max(map(abs, numbers)) > 2**53 else "float64")
    stated = ucle.table(str(path), dtype="int64")
    assert np.asarray(ucle.tensor(stated, ndim=1)).dtype == np.int64


def test_frostt_counted_from_0_says_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "t.tns"
    error = refused(path, "# zero\n0 0 1\n1 1 2\n")
    assert error.found == "the coordinate 0 in line 2: 0 0 1"
    assert "from 1 on" in str(error.expected)
    call = f"ucle.table({str(path)!r}, delimiter=' ', header=False, comment='#')"
    assert call in str(error.hint)
    stated = ucle.table(str(path), delimiter=" ", header=False, comment="#")
    np.testing.assert_array_equal(np.asarray(ucle.tensor(stated, ndim=2)), [[1, 0], [0, 2]])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1 1 1\n1 2\n", "line 2 has 2: 1 2"),
        ("1 1 1\n-3 1 1\n", "the coordinate -3 in line 2"),
        ("1 1 1\n1 2 x\n", "x in line 2"),
        ("1 1 9007199254740993\n1 2 0.5\n", "9007199254740993 in line 1"),
        ("1 1 0x1F\n", "0x1F in line 1"),
        ("1.5 1 1\n", "not integers"),
        ("1 1 \u00e4\n".encode("latin-1"), "line 1 holds the byte 0xe4"),
        ("1 1 1\n".encode("utf-16"), "text in UTF-16"),
    ],
)
def test_what_is_wrong_in_frostt_is_shown(text: str | bytes, found: str, tmp_path: Path) -> None:
    assert found in str(refused(tmp_path / "t.tns", text).found)


def test_exponents_of_fortran(tmp_path: Path) -> None:
    """scipy ends a number at the D, and answers 1.5."""
    for text in ("1.5D+02", "1.5d2", "1.5E+02", "150"):
        found = read(tmp_path / "m.mtx", HEADER.format("real") + f"1 2 {text}\n")
        assert found[0, 1] == 150
    found = read(tmp_path / "m.mtx", HEADER.format("complex") + "1 2 1.5D1 -2d0\n")
    assert found[0, 1] == 15 - 2j


@pytest.mark.parametrize(
    ("field", "entry"),
    [
        ("integer", "1 1 1.5"),
        ("integer", "1 1 1e3"),
        ("real", "1 1 1.5x"),
        ("real", "1 1 1.5 2.5"),
        ("real", "1 1"),
        ("complex", "1 1 1.5"),
        ("pattern", "1 1 2"),
        ("real", "1 1 1,5"),
    ],
)
def test_entries_of_another_kind_than_the_header_says(
    field: str, entry: str, tmp_path: Path
) -> None:
    error = refused(tmp_path / "m.mtx", HEADER.format(field) + f"{entry}\n")
    assert f"line 3: {entry}" in str(error.found)


def test_dense_matrices_that_scipy_dies_of(tmp_path: Path) -> None:
    header, path = "%%MatrixMarket matrix array {} {}\n", tmp_path / "m.mtx"
    skew = header.format("real", "skew-symmetric")
    np.testing.assert_array_equal(
        read(path, skew + "3 3\n1\n2\n3\n"), [[0, -1, -2], [1, 0, -3], [2, 3, 0]]
    )
    np.testing.assert_array_equal(read(path, skew + "1 1\n"), [[0]])
    assert read(path, header.format("integer", "general") + "0 3\n").shape == (0, 3)
    symmetric = header.format("real", "symmetric")
    assert "a square" in str(refused(path, symmetric + "2 3\n1\n2\n3\n4\n").expected)
    assert "those below" in str(refused(path, skew + "3 3\n1\n2\n").expected)


def test_integers_beyond_64_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEADER.format("integer") + "1 1 18446744073709551615\n"
    assert refused(tmp_path / "m.mtx", text).expected == "integers within 64 bits"
    monkeypatch.chdir(tmp_path)
    Path("p.ein").write_text("s += A[i,j]\n")
    result = CliRunner().invoke(main, ["run", "p.ein", "-i", "A=m.mtx"])
    assert result.exit_code == 1
    assert "integers within 64 bits" in result.output
    assert "Traceback" not in result.output
