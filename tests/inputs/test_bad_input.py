"""Wrong programs: text, labels, bounds, names and options, each with the parts of its error.

A case says what is passed, which error comes of it, and what its parts hold. Tables, arrays,
databases and installations are in `test_bad_data`.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse

import ucle
from ucle import errors
from ucle.ir.axis_functions import MATRIX_MAPS, RUNNING
from ucle.language.bounds import infer_bounds, size_classes
from ucle.language.functions import ALONG, CASTS
from ucle.language.functions import FUNCTIONS as DERIVED
from ucle.language.parse import parse_program
from ucle.operators import MAPS, REDUCES
from ucle.optimiser.pricing import CostedProgram

A, X = np.ones((2, 3)), np.ones(3)
PRODUCT = "y[i] += A[i,j] * x[j]"
ROWS = "y[i] += A[i,j]"


def caught(kind: type[errors.UcleError], text: str, *operands: Any, **options: Any) -> Any:
    """The error that compiling raises; its class is exactly `kind`."""
    with pytest.raises(errors.UcleError) as info:
        ucle.einsum_program(text, *operands, **options)
    assert type(info.value) is kind
    return info.value


def assert_parts(error: errors.UcleError, where: str, expected: str, found: str) -> None:
    """The parts say just this, and the message holds them all."""
    assert (error.where, error.expected, error.found) == (where, expected, found)
    assert all(part in str(error) for part in (where, expected, found))


# Text, place, what is expected there, what stands there.
OPERATORS = (
    "'%', '&', '(', '*', '**', '+', '-', '/', '//', '<<', '>>', '^', 'and', 'or', 'xor', '|', "
    "a comparison, the end of the program or the end of the statement"
)
ASSIGNMENTS = "'=', '+=', '*=' or an aggregation like 'max='"
OPERANDS = "'(', '+', '-', 'False', 'True', 'not', a name or a number"
FACTORS = "'(', '+', '-', 'False', 'True', a name or a number"
PLACES = "'(', '+', '-', 'False', 'True', '~', a name or a number"
END = "the end of the program"
ENTRIES = "labels, as in Z[i,j], or entries of a tensor, as in Z[idx[i],j] += ..."
SYNTAX = [
    ("", 1, 1, "at least one statement", "an empty text"),
    ("# nothing\n", 1, 1, "at least one statement", "nothing but blanks and comments"),
    ("y[i] += A[i,j", 1, 14, "',', ']' or '|'", f"{END} in 'y[i] += A[i,j'"),
    ("y[i] A[i,j]", 1, 6, ASSIGNMENTS, "'A' in 'y[i] A[i,j]'"),
    ("y[i] = A[i] B[i]", 1, 13, OPERATORS, "'B' in 'y[i] = A[i] B[i]'"),
    ("y[i] = A[i,]", 1, 12, PLACES, "']' in 'y[i] = A[i,]'"),
    ("y[1] = A[1]", 1, 1, ENTRIES, "y[1]"),
    ("y[i] = $A[i]", 1, 8, OPERANDS, "'$' in 'y[i] = $A[i]'"),
    ("y[i] := A[i]", 1, 6, ASSIGNMENTS, "':' in 'y[i] := A[i]'"),
    ("y[i]\n= A[i]", 1, 5, ASSIGNMENTS, "the end of the line in 'y[i]'"),
    ("y[i] = A[i] *\n\n* A[i]", 3, 1, FACTORS, "'*' in '* A[i]'"),
    ("y[i] = A[i]\nz[i] = A[i] +", 2, 14, FACTORS, f"{END} in 'z[i] = A[i] +'"),
    ("y[i] = A[i]\n\tz[i] += ?A[i]  # no", 2, 10, OPERANDS, "'?' in 'z[i] += ?A[i]  # no'"),
    ("y[i] = A[i]; z[i]", 1, 18, ASSIGNMENTS, f"{END} in 'y[i] = A[i]; z[i]'"),
]


@pytest.mark.sample(None)
@pytest.mark.parametrize(("text", "line", "column", "expected", "found"), SYNTAX)
def test_syntax_error_points_at_the_place(
    text: str, line: int, column: int, expected: str, found: str
) -> None:
    error = caught(errors.ProgramSyntaxError, text)
    assert_parts(error, f"line {line}, column {column}", expected, found)


@pytest.mark.parametrize("line", ["+ A[i]", "  * A[i]", "\t- A[i]", "== A[i]", "/ 2"])
def test_a_line_that_begins_with_an_operator(line: str) -> None:
    error = caught(errors.ProgramSyntaxError, f"y[i] = A[i]\n{line}")
    assert "ends with an operator or within brackets" in error.hint
    for text in (f"y[i] = A[i] *\n\n* {line}", f"y[i] = A[i]; {line}", f"y[i] = A[i] B {line}"):
        assert caught(errors.ProgramSyntaxError, text).hint is None


MATRIX = "letters, ',' between operands, one '->', and '...' once for each"
SUBSCRIPTS = [
    ("ij,jk->ik", errors.ProgramError, "", "2 operands", "1 operands"),
    ("i,,j->i", errors.ProgramError, "", "3 operands", "1 operands"),
    ("i1->i", errors.ProgramSyntaxError, ", character 2", MATRIX, "'1'"),
    ("i j; k->i", errors.ProgramSyntaxError, ", character 4", MATRIX, "';'"),
    ("ij->i->j", errors.ProgramSyntaxError, ", character 6", MATRIX, "'->'"),
    ("ij->i,j", errors.ProgramSyntaxError, ", character 6", MATRIX, "','"),
    ("ij->ii", errors.LabelError, "", "each output label once, from i, j", "ii"),
    ("ij->k", errors.LabelError, "", "each output label once, from i, j", "k"),
    ("i..->i", errors.ProgramSyntaxError, ", character 2", MATRIX, "'.'"),
    ("i...->i", errors.LabelError, "", "'...'", "none"),
]


@pytest.mark.sample(None)
@pytest.mark.parametrize(("text", "kind", "place", "expected", "found"), SUBSCRIPTS)
def test_subscripts(text: str, kind: Any, place: str, expected: str, found: str) -> None:
    assert_parts(caught(kind, text, A), f"subscripts {text!r}{place}", expected, found)


def test_subscripts_and_operand_of_another_rank() -> None:
    error = caught(errors.LabelError, "ijk->i", A)
    assert_parts(error, "subscripts 'ijk->i'", "rank 3", "rank 2")


def test_einsum_without_operands() -> None:
    with pytest.raises(errors.InputError) as info:
        ucle.einsum("ij->i")
    assert_parts(info.value, "subscripts 'ij->i'", "operands", "none")


VECTOR = {"x": X}
HERE, THERE = "line 1, column 1", "line 2, column 1"
ONE = "one statement for each tensor"
FUNCTIONS = "one of " + ", ".join(sorted({*MAPS, *CASTS, *DERIVED}))
REDUCTIONS = "one of " + ", ".join(sorted({*REDUCES, *RUNNING, *MATRIX_MAPS, *ALONG, "solve"}))
SEVERAL = "one of " + ", ".join(sorted(DERIVED))
NAMES = [
    ("a[i] = b[i]\nb[i] = a[i]", {}, HERE, "definitions without a cycle", "a -> b -> a"),
    ("a[i] = a[i] + x[i]", VECTOR, HERE, "definitions without a cycle", "a -> a"),
    ("a[i] = x[i]\na[i] = x[i]", VECTOR, THERE, ONE, f"an earlier definition at {HERE}"),
    ("a[i] = foo(x[i])", VECTOR, "line 1, column 8", FUNCTIONS, "foo"),
    ("a[i] = foo(x[i], x[i])", VECTOR, "line 1, column 8", SEVERAL, "foo"),
    ("a = sum(x[i])", VECTOR, "line 1, column 5", "sum[i](...)", "sum(...)"),
    ("a = clip(x[i], 1)", VECTOR, "line 1, column 5", "3 arguments", "2"),
    ("a[i] = foo[j](x[i] * x[j])", VECTOR, "line 1, column 8", REDUCTIONS, "foo"),
    ("a[i] = x[i]", {**VECTOR, "outputs": ["b"]}, "outputs", "one of a", "b"),
    ("a[i] = x[i]", {**VECTOR, "outputs": ["x"]}, "outputs", "one of a", "x"),
    ("a[i] = x[i]", {**VECTOR, "B": A}, "input B", "one of x", "B"),
    (
        PRODUCT,
        {"A": A},
        "input x",
        "a table name, an array or another input for A, x",
        "inputs A",
    ),
    (
        "a[i] = x[i]",
        {**VECTOR, "decomposition": {"b": ["i"]}},
        "decomposition, b",
        "one of a",
        "b",
    ),
]


@pytest.mark.sample(None)
@pytest.mark.parametrize(("text", "options", "where", "expected", "found"), NAMES)
def test_names(text: str, options: Any, where: str, expected: str, found: str) -> None:
    error = caught(errors.NameResolutionError, text, **options)
    assert_parts(error, where, expected, found)


def test_how_tables_are_passed(fresh: duckdb.DuckDBPyConnection) -> None:
    """A table that is called like a tensor is not taken by itself, but it is named."""
    fresh.execute("CREATE TABLE A AS SELECT 1 AS i, 2 AS j, 3.0 AS val")
    error = caught(errors.NameResolutionError, PRODUCT, database=fresh)
    assert error.hint == 'pass it as a keyword or in inputs: A="A" for the table A'


@pytest.mark.parametrize("behind", [[1.0], "edges.duckdb", {"x": [1.0]}])
def test_inputs_of_statements_have_names(behind: Any) -> None:
    """A connection, or a dict, stands easily where the operands of `einsum` do."""
    with pytest.raises(errors.ArgumentTypeError, match="have names") as caught_error:
        ucle.einsum_program("y[i] = x[i]", behind)
    assert type(behind).__name__ in str(caught_error.value)
    assert "database=" in str(caught_error.value)


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("outptus", '"outputs"'),
        ("coordinates", "ucle.table"),
        ("keys", "to_table"),
        ("B", "leave out"),
    ],
)
def test_options_that_there_are_not(option: str, hint: str) -> None:
    error = caught(errors.NameResolutionError, "a[i] = x[i]", **VECTOR, **{option: ["i"]})
    assert "no such option" in error.message
    assert hint in str(error.hint)


def test_numbers_that_are_mistaken_for_tensors() -> None:
    error = caught(errors.NameResolutionError, "y[i] = where(x[i] > 0, x[i], inf)", **VECTOR)
    assert error.hint is not None
    assert "1e999" in error.hint


LABELS = [
    ("y[k] += A[i,j]", {"A": A}, HERE, "labels of the inputs: i, j", "y[k]"),
    ("y[i] = 3", {}, HERE, "labels of the inputs: none", "y[i]"),
    ("y[i] += x[i,j]", VECTOR, "input x", "rank 2: x[i,j]", "shape 3"),
    ("y[i] += S[i]", {"S": scipy.sparse.eye_array(3)}, "input S", "rank 1: S[i]", "shape 3 x 3"),
    (
        "y[i] += A[i,j] * A[j]",
        {"A": A},
        "line 1, column 18",
        "2 labels, as at line 1, column 9",
        "1 labels: [j]",
    ),
    (
        f"{ROWS}\nz[i] = y[i,j]",
        {"A": A},
        "line 2, column 8",
        f"1 labels, as at {HERE}",
        "2 labels: [i,j]",
    ),
    (
        "y[Row] += A[Row,j]",
        {"A": A, "decomposition": "as-written"},
        HERE,
        "all upper case (promoted) or all lower case (demoted)",
        "Row",
    ),
    (
        ROWS,
        {"A": A, "decomposition": {"y": ["i", "q"]}},
        "decomposition, y",
        "labels of the vertex: i, j",
        "q",
    ),
    (
        ROWS,
        {"A": A, "decomposition": "fastest"},
        "decomposition",
        "'auto', 'relational', 'as-written' or promoted labels by tensor",
        "'fastest'",
    ),
]


@pytest.mark.sample(None)
@pytest.mark.parametrize(("text", "options", "where", "expected", "found"), LABELS)
def test_labels(text: str, options: Any, where: str, expected: str, found: str) -> None:
    assert_parts(caught(errors.LabelError, text, **options), where, expected, found)


SIZE = "an integer of at least 0"
TABLE = "table(bounds=...)"
BOUNDS = [
    (
        PRODUCT,
        {"A": A, "x": np.ones(4)},
        "input A, axis 1 and input x, axis 0",
        "3, as in input A, axis 1",
        "4 in input x, axis 0",
    ),
    (
        ROWS,
        {"A": A, "bounds": {"j": 5}},
        "input A, axis 1 and bounds['j']",
        "3, as in input A, axis 1",
        "5 in bounds['j']",
    ),
    *(
        (ROWS, {"A": A, "bounds": {"j": size}}, "bounds, label j", SIZE, repr(size))
        for size in (2.5, -1, True, "3", None)
    ),
]


@pytest.mark.parametrize(("text", "options", "where", "expected", "found"), BOUNDS)
def test_bounds(text: str, options: Any, where: str, expected: str, found: str) -> None:
    assert_parts(caught(errors.BoundError, text, **options), where, expected, found)


def test_bound_of_another_library() -> None:
    program = ucle.einsum_program(ROWS, A=A, bounds={"j": np.int64(3)})
    assert program.execute()["y"].to_numpy().tolist() == [3.0, 3.0]


@pytest.mark.parametrize("stated", [-3, "9", 9.5, False])
def test_bound_in_table_is_not_a_size(stated: Any) -> None:
    with pytest.raises(errors.BoundError) as info:
        ucle.table(A, bounds=[2, stated])
    assert_parts(info.value, TABLE, SIZE, repr(stated))


@pytest.mark.parametrize("data", [A, scipy.sparse.coo_array(A)], ids=["array", "scipy"])
def test_bound_in_table_against_the_array(data: Any) -> None:
    error = caught(errors.BoundError, ROWS, A=ucle.table(data, bounds=[None, 5]))
    assert_parts(error, "input A, axis 1", "3, as in the array", f"5 in {TABLE}")


def test_unknown_bound() -> None:
    """A compiled program never gets here: its labels all stand at some input."""
    statements = parse_program("y[i] = x[i]")
    with pytest.raises(errors.BoundError) as info:
        infer_bounds(statements, {}, {}, size_classes(statements))
    assert_parts(
        info.value, "line 1, column 8", "a bound from an input, or from the caller", "y[i] = x[i]"
    )
    assert info.value.hint == "pass bounds={'i': ...}"


def test_minimum_of_nothing() -> None:
    error = caught(errors.BoundError, "y[i] min= A[i,j]", A=np.ones((2, 0)))
    assert error.where == HERE
    assert error.expected == "labels with a bound of at least 1"
    assert "j" in error.found


def test_unknown_profile() -> None:
    error = caught(errors.InputError, ROWS, A=A, profile="fast")
    assert_parts(error, "profile", "one of paper, duckdb, machine", "'fast'")


@pytest.mark.parametrize("limit", ["lots", "5XB", "", "-5GB", "nan", -1])
def test_memory_limit_that_is_no_size(limit: Any) -> None:
    error = caught(errors.InputError, ROWS, A=A, memory_limit=limit)
    expected = "a number with a unit, such as 500MB or 2 GiB"
    assert_parts(error, "memory limit", expected, repr(str(limit)))


def test_memory_limit_too_small_for_any_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain SQL needs no room for arrays and fits any limit, so here nothing is let fit."""
    text = "C[i,k] += A[i,j] * B[j,k]"
    big = np.ones((50, 50))
    assert ucle.einsum_program(text, A=big, B=big, memory_limit=100).route == "plain"
    monkeypatch.setattr(CostedProgram, "fits", lambda *_: False)
    error = caught(errors.MemoryLimitError, text, A=A.T, B=A, memory_limit="100B")
    assert_parts(error, HERE, "at most 100 bytes", f"{text} over 3 x 2 x 3")
    assert "raise memory_limit" in error.hint


@pytest.mark.slow
def test_whole_tensors_count_as_often_as_they_are_held() -> None:
    """4096^2 products are refused when they are compiled, if several of the arrays do not fit."""
    array = np.broadcast_to(np.float64(1), (4096, 4096))  # 134 MB, which nothing here reads
    array_bytes = array.size * 8
    for share, promoted in ((4.0, {"i"}), (6.0, set())):
        limit = int(share * array_bytes)
        with pytest.raises(errors.MemoryLimitError):
            ucle.einsum_program(
                "C[i,k] += A[i,j] * B[j,k]",
                A=array,
                B=array,
                memory_limit=limit - array_bytes // 2,
                decomposition={"C": promoted},
            )


def test_a_dict_of_names_is_told_of_series() -> None:
    with pytest.raises(errors.InputError) as raised:
        ucle.tensor({"ann": 1.0, "bob": 2.0})
    assert "pandas.Series" in str(raised.value.hint)
