"""Values of text files are read in the type that all of a file has, or refused with the line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ucle
from ucle.database.session import Session
from ucle.errors import InputError, UcleError, ValueTypeError

ROWS = 2_500
"""More than DuckDB looks at for a type, 2,048."""


def run(text: str, **inputs: Any) -> NDArray[Any]:
    """The answer of a program of one output."""
    with ucle.einsum_program(text, inputs=inputs).execute() as result:
        return next(iter(result.values())).to_numpy()


def written(path: Path, *lines: str, encoding: str = "utf-8") -> str:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    return str(path)


def ending_with(path: Path, *last: str, value: str = "1") -> str:
    """A file of `i,v` whose last rows come after all that a sample sees."""
    return written(path, "i,v", *(f"{n},{value}" for n in range(ROWS)), *last)


def refused(kind: type[UcleError], **inputs: Any) -> UcleError:
    with pytest.raises(kind) as info:
        run("s += A[i]", **inputs)
    return info.value


def test_integers_that_end_with_a_fraction_are_floats(tmp_path: Path) -> None:
    path = ending_with(tmp_path / "a.csv", f"{ROWS},0.25")
    assert run("s += A[i]", A=path) == ROWS + 0.25
    found = run("y[i] = A[i]", A=path)
    assert found.dtype == np.float64
    assert found[-1] == 0.25
    late = ending_with(tmp_path / "b.csv", f"{ROWS},5.0")
    assert run("y[i] = A[i]", A=late).dtype == np.float64


def test_a_stated_type_decides_how_a_column_is_read(tmp_path: Path) -> None:
    path = ending_with(tmp_path / "a.csv", f"{ROWS},0.25")
    assert run("s += A[i]", A=ucle.table(path, dtype=float)) == ROWS + 0.25
    for dtype in ("int64", "bool"):
        error = refused(ValueTypeError, A=ucle.table(path, dtype=dtype))
        assert f"({ROWS}, 0.25)" in str(error)
    wide = written(tmp_path / "w.csv", "i,v", "0,9007199254740993", "1,2.0")
    assert run("s += A[i]", A=ucle.table(wide, dtype="float64")) == 2.0**53 + 2
    assert "'9007199254740993' in line 2" in str(refused(ValueTypeError, A=wide))
    error = refused(ValueTypeError, A=ucle.table(wide, dtype="int64"))
    assert "'9007199254740993' in line 2" in str(error)


LATE: Mapping[str, tuple[str, str]] = {
    "a word": ("1", "maybe"),
    "a word after truth values": ("true", "maybe"),
    "a number after truth values": ("true", "1.5"),
    "NULL as text": ("1", "NULL"),
    "NA": ("0.5", "NA"),
    "a date": ("1", "2020-01-01"),
    "thousands": ("1", '"1,234"'),
    "hexadecimal": ("1", "0x1F"),
    "an amount": ("1.5", "$2"),
}


@pytest.mark.parametrize("case", LATE)
def test_what_is_no_number_is_refused_with_its_line(case: str, tmp_path: Path) -> None:
    early, late = LATE[case]
    path = ending_with(tmp_path / "a.csv", f"{ROWS},{late}", f"{ROWS + 1},{early}", value=early)
    error = refused(ValueTypeError, A=path)
    assert error.found == f"{late.strip(chr(34))!r} in line {ROWS + 2}"


def test_a_value_that_is_missing_is_refused(tmp_path: Path) -> None:
    path = ending_with(tmp_path / "a.csv", f"{ROWS},")
    assert f"({ROWS}, None)" in str(refused(ValueTypeError, A=path))


def test_numbers_of_many_forms(tmp_path: Path) -> None:
    texts = ["1", "-2", "+3", " 4 ", "5.", ".5", "1e3", "-1E-2", "inf", "-Infinity", '"7"']
    rows = (f"{n},{text}" for n, text in enumerate(texts))
    found = run("y[i] = A[i]", A=written(tmp_path / "a.csv", "i,v", *rows))
    np.testing.assert_array_equal(found, [float(text.strip('"')) for text in texts])
    truths = written(tmp_path / "t.csv", "i,v", "0,true", "1,False", "2,TRUE")
    assert run("y[i] = A[i]", A=truths).tolist() == [True, False, True]
    whole = written(tmp_path / "w.csv", "i,v", f"0,{2**63 - 1}", f"1,{2**53 + 1}")
    assert run("y[i] = A[i]", A=whole).tolist() == [2**63 - 1, 2**53 + 1]
    beyond = written(tmp_path / "b.csv", "i,v", "0,18446744073709551615")
    assert "18446744073709551615" in str(refused(ValueTypeError, A=beyond))


def test_keys_have_the_type_of_all_rows(tmp_path: Path) -> None:
    words = ending_with(tmp_path / "w.csv", "x12,7")
    with ucle.einsum_program("y[i] = A[i]", A=words).execute() as result:
        assert result["y"].coordinates("i").to_pylist()[-1] == "x12"
        assert result["y"].to_numpy().sum() == ROWS + 7
    fractions = ending_with(tmp_path / "f.csv", "0.5,7")
    assert f"'0.5' in line {ROWS + 2}" in str(refused(ValueTypeError, A=fractions))
    dates = written(tmp_path / "d.csv", "day,v", "2020-01-02,1", "2020-01-01,2")
    assert run("y[i] = A[i]", A=dates).tolist() == [2, 1]


LAST: Mapping[str, tuple[str, str, str]] = {
    "a date after dates": ("2020-01-{day:02}", "2019-12-31", "date32[day]"),
    "a time after dates": ("2020-01-{day:02}", "2019-12-31 12:30:00", "timestamp[us]"),
    "a date after times": ("2020-01-{day:02}T10:00", "2019-12-31", "timestamp[us]"),
    "a word after dates": ("2020-01-{day:02}", "a", "string"),
    "no date after dates": ("2020-01-{day:02}", "2020-02-30", "string"),
    "a date after a word": ("a{day}", "2020-01-01", "string"),
    "a number after words": ("a{day}", "5", "string"),
    "a word after numbers": ("{day}", "a", "string"),
    "a word after truth values": ("true", "maybe", "string"),
}
"""Keys, the last one, which no sample sees, and the type of the coordinates."""


@pytest.mark.parametrize("case", LAST)
def test_the_last_key_decides_the_type_of_all(case: str, tmp_path: Path) -> None:
    key, last, type_ = LAST[case]
    rows = [f"{key.format(day=1 + n % 9)},{n},1" for n in range(ROWS)]
    path = written(tmp_path / "k.csv", "k,n,v", *rows, f"{last},{ROWS},1")
    table = ucle.table(path, ["k", "n"], "v")
    with ucle.einsum_program("y[k] += A[k, n]", A=table).execute() as result:
        keys = result["y"].coordinates("k")
        assert str(keys.type) == type_
        texts = [str(each) for each in keys.to_pylist()]
        assert len(texts) == (2 if key == "true" else 10)
        assert any(text.startswith(last.partition(" ")[0]) for text in texts)


def test_columns_are_read_in_one_type_by_all_programs(tmp_path: Path) -> None:
    """What one program found of a column serves the next, which has other labels and types."""
    path = ending_with(tmp_path / "a.csv", f"{ROWS},3")
    assert run("s += A[i]", A=path).dtype == np.int64
    assert run("s += A[row]", A=path) == ROWS + 3
    assert run("s += A[i]", A=ucle.table(path, dtype=float)).dtype == np.float64
    ending_with(tmp_path / "a.csv", f"{ROWS},0.5")
    assert run("s += A[node]", A=path) == ROWS + 0.5


def test_lines_are_counted_with_all_that_is_skipped(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "# one", "", "i,v", "0,1", '"1",2', "# two", "", "2,x")
    error = refused(ValueTypeError, A=ucle.table(path, comment="#"))
    assert error.found == "'x' in line 8"


def test_a_file_that_changes_is_looked_at_again(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    written(path, "i,v", "0,1.5", "1,2")
    program = ucle.einsum_program("s += A[i]", A=str(path))
    assert program.execute()["s"].to_numpy() == 3.5
    ending_with(path, f"{ROWS},0.25")
    assert program.execute()["s"].to_numpy() == ROWS + 0.25
    written(path, "i,v", "0,x")
    with pytest.raises(ValueTypeError, match="'x' in line 2"):
        program.execute()
    state = os.stat(path)
    written(path, "i,v", "0,7")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    assert program.execute()["s"].to_numpy() == 7


def test_a_file_that_stays_is_described_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = list[str]()
    read = Session.read

    def noting(self: Session, sql: str, *where: str) -> list[tuple[Any, ...]]:
        described.extend([sql] if sql.startswith("DESCRIBE") else [])
        return read(self, sql, *where)

    monkeypatch.setattr(Session, "read", noting)
    path = tmp_path / "a.csv"
    for total, lines in (
        (3.5, ("i,v", "0,1.5", "1,2")),
        (5, ("v,i", "2,0", "3,1")),
        (7, ("i|v", "0|7")),
    ):
        written(path, *lines)
        for descriptions in (1, 0):
            described.clear()
            assert run("s += A[i]", A=ucle.table(str(path), ["i"], "v")) == total
            assert len(described) == descriptions


def test_files_of_one_pattern_have_one_type_and_one_form(tmp_path: Path) -> None:
    written(tmp_path / "p0.csv", "i,v", "0,1", "1,2")
    written(tmp_path / "p1.csv", "i,v", "2,0.5")
    pattern = str(tmp_path / "p*.csv")
    assert run("s += A[i]", A=pattern) == 3.5
    written(tmp_path / "p1.csv", "i,v", "2,x")
    assert f"'x' in line 2 of {tmp_path / 'p1.csv'}" in str(refused(ValueTypeError, A=pattern))
    for other in (("v,i", "0.5,2"), ("2,0.5",), ("i;v", "2;0.5")):
        written(tmp_path / "p1.csv", *other)
        error = refused(InputError, A=pattern)
        assert "not of one form" in str(error)
        assert "p1.csv" in str(error)
