"""The form of text files: fixed and strict, told by a stated rule, or asked for."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import ucle
from ucle.errors import ArgumentTypeError, InputError
from ucle.foundation.dtypes import DType

PAIRS = np.array([[0.0, 1.5], [0.0, 2.0], [4.0, 0.0]])


def run(text: str, **inputs: Any) -> NDArray[Any]:
    """The answer of a program of one output."""
    with ucle.einsum_program(text, inputs=inputs).execute() as result:
        return next(iter(result.values())).to_numpy()


def refused(value: Any, text: str = "s += A[i,j]") -> InputError:
    with pytest.raises(InputError) as info:
        run(text, A=value)
    return info.value


def written(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


@pytest.mark.parametrize("last", ["100,100,1", "100", '"100,100'])
def test_a_line_of_other_fields_is_an_error_with_its_number(last: str, tmp_path: Path) -> None:
    rows = "".join(f"{n},{n}\n" for n in range(100))
    path = written(tmp_path / "a.csv", f"src,dst\n{rows}" + f"{last}\n" * 2900)
    error = refused(path)
    assert "CSV Error on Line: 102" in str(error.found)
    assert last in str(error.found)


def test_rows_of_words_alone_ask_for_a_header(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "".join(f"u{n},v{n}\n" for n in range(100)))
    error = refused(path)
    assert error.hint is not None
    assert f"ucle.table({path!r}, header=False)" in error.hint
    assert run("s += A[i,j]", A=ucle.table(path, header=False)) == 100
    assert run("s += A[i,j]", A=ucle.table(path, header=True)) == 99
    named = ucle.table(path, ["u0", "v0"])
    assert run("s += A[i,j]", A=named) == 99


def test_headers_that_are_told(tmp_path: Path) -> None:
    for number, (text, expected) in enumerate(
        [
            ("i,j,v\n0,1,2\n", 2),
            ("0,1,2\n1,0,3\n", 5),
            ("0,1,2.5\n", 2.5),  # one row
            ("i,j,v\n", 0),  # a header alone
            ("who,whom,v\nann,bob,2\n", 2),
            ("ann,bob,1\nbob,cid,2\n", 3),
            ("\ufeffi,j,v\n0,1,2\n", 2),
            ("\ufeff0,1,2\n", 2),
            ("\n\ni,j,v\n0,1,2\n", 2),
            ('"i\nx",j,v\n0,1,2\n', 2),
            ("i,i,v\n0,1,2\n", 2),
            ('i,j,v\n"a,b","c""d",2\n', 2),
        ]
    ):
        path = written(tmp_path / f"{number}.csv", text)
        assert run("s += A[i,j]", A=ucle.table(path, value=None)) == expected, text


def test_headers_that_are_not_clear(tmp_path: Path) -> None:
    mixed, page = "a1,1,1\n12,2,2\n13,3,3\n", "page,ann\nbob,cid\n"
    for number, text in enumerate([mixed, "a,b,c\nd,e,f\n", "a,b\nc,d\n", page]):
        error = refused(written(tmp_path / f"{number}.csv", text))
        assert error.expected == "header=True or header=False"
    twice = written(tmp_path / "twice.csv", "i,i,v\n0,1,2\n")
    assert "two columns" in str(refused(ucle.table(twice, ["i", "i_1"], "v")))


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".edges", ".tsv", ".none"])
@pytest.mark.parametrize("pack", ["", ".gz", ".zst"])
def test_edge_lists_of_every_suffix(suffix: str, pack: str, tmp_path: Path) -> None:
    content = b"0\t1\t1.5\n1\t1\t2\n2\t0\t4\n"
    packed = {
        "": content,
        ".gz": gzip.compress(content),
        ".zst": pa.Codec("zstd").compress(content, asbytes=True),
    }
    path = written(tmp_path / f"edges{suffix}{pack}", packed[pack])
    stated = ucle.table(path, ["from", "to"], delimiter="\t", header=False)
    np.testing.assert_array_equal(run("y[i,j] = A[i,j]", A=stated), PAIRS)
    blanks = ucle.table(path, delimiter=" ")
    np.testing.assert_array_equal(run("y[i,j] = A[i,j]", A=blanks), PAIRS)
    if suffix != ".none":
        np.testing.assert_array_equal(run("y[i,j] = A[i,j]", A=path), PAIRS)
        np.testing.assert_array_equal(np.asarray(ucle.tensor(path, ndim=2)), PAIRS)


def test_edge_lists_with_comments_say_what_to_write(tmp_path: Path) -> None:
    snap = written(tmp_path / "snap.txt", "# Nodes: 4\n# From\tTo\n0\t1\n0\t2\n3\t1\n")
    konect = written(tmp_path / "out.konect", "% sym\n% 3 3\n1 2 1  100\n1  3 2 100 \n2 3 1 100\n")
    call = f"ucle.table({snap!r}, delimiter='\\t', header=False, comment='#', columns=['i', 'j'])"
    assert call in str(refused(snap).hint)
    np.testing.assert_array_equal(run("y[i] += A[i,j]", A=eval(call)), [2, 0, 0, 1])
    blanks = ucle.table(konect, delimiter=" ", comment="%", header=False, columns=["u", "v"])
    assert "column2" in str(refused(blanks))
    names = {"columns": ["u", "v", "w", "t"], "value": "w"}
    stated = ucle.table(konect, delimiter=" ", comment="%", header=False, **names)
    np.testing.assert_array_equal(run("y[i] += A[i,j]", A=stated), [0, 3, 1])


def test_blanks_between_fields_say_what_to_write(tmp_path: Path) -> None:
    path = written(tmp_path / "b.csv", "0 1 1.5\n0 2 2\n")
    call = f"ucle.table({path!r}, delimiter=' ', header=False, columns=['i', 'j'])"
    assert call in str(refused(path).hint)
    assert run("s += A[i,j]", A=eval(call)) == 3.5
    ragged = written(tmp_path / "r.txt", "0 1 1.5\n\n0 2\n")
    assert "line 3 has 2: 0 2" in str(refused(ucle.table(ragged, delimiter=" ")))


def test_delimiters_that_are_not_clear(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", "0;1,5\n1;2,25\n")
    assert "what separates" in str(refused(path, "s += A[i]"))
    error = refused(ucle.table(path, delimiter=";"), "s += A[i]")
    assert "'1,5' in line 1" in str(error)
    assert "decimals are written with a point" in str(error)


def test_what_is_not_utf8_says_so(tmp_path: Path) -> None:
    latin = "name,v\nx,1\n\u00e4,2\n".encode("latin-1")
    for name, content in (("l.csv", latin), ("u.csv", "i,v\n0,1\n".encode("utf-16"))):
        assert "utf-8" in str(refused(written(tmp_path / name, content), "s += A[i]")).casefold()
    blanks = written(tmp_path / "l.txt", latin.replace(b",", b" "))
    error = refused(ucle.table(blanks, delimiter=" "), "s += A[i]")
    assert "line 3 holds the byte 0xe4" in str(error)


def test_files_without_a_row_and_without_a_header(tmp_path: Path) -> None:
    for name, text in (("e.csv", ""), ("b.txt", "\n\n"), ("c.csv", "# x\n")):
        path = written(tmp_path / name, text)
        for stated in (path, ucle.table(path, comment="#"), ucle.table(path, delimiter=" ")):
            refused(stated)
    with pytest.raises(InputError, match="no such file"):
        run("s += A[i,j]", A=str(tmp_path / "nosuch.txt"))


def test_a_table_may_be_called_edges() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA graph; CREATE TABLE graph.edges AS SELECT 0 AS i, 2 AS v")
        program = ucle.einsum_program("s += A[i]", A="graph.edges", database=connection)
        assert program.execute()["s"].to_numpy() == 2


def test_options_that_cannot_be_meant(tmp_path: Path) -> None:
    for stated in ({"delimiter": ""}, {"delimiter": '"'}, {"comment": "//"}, {"comment": "\n"}):
        with pytest.raises(InputError, match="cannot separate"):
            ucle.table("a.csv", **stated)
    with pytest.raises(ArgumentTypeError):
        ucle.table("a.csv", header="no")  # type: ignore[arg-type]


def test_one_file_in_two_forms_is_measured_twice(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "0,5\n1,6\n")
    for header, expected in ((False, 11), (True, 6)):
        stated = ucle.table(
            path, ["0"] if header else ["a"], header=header, dtype=DType.INT64.value
        )
        program = ucle.einsum_program("s += A[i]", A=stated)
        assert program.execute()["s"].to_numpy() == expected
