"""Queries on files: lines and types of text, schemas of Parquet, and values that a type rounds.

DuckDB casts the text 0.25 to the integer 0 without a warning, so that columns it reads as integers
are examined as text. `ucle.inputs.csv_types` interprets the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp, select

from ucle.plan.sources import CsvFile
from ucle.sqlgen.input_tables import csv_table, lines_table, parquet_table
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import (
    add_alias,
    cast,
    column,
    function,
    is_finite,
    number,
    select_from,
    subquery,
    table_function,
    text,
)

INTEGER = r"\s*[+-]?\d+(_\d+)*\s*"
DATE = r"\d{4}-\d\d-\d\d"
TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?"

EXACT_FLOATS = 2**53
"""Integers below it are exact as floats, too."""


def files_query(pattern: str) -> str:
    """The files that a pattern matches, in the order in which they are read."""
    files = table_function(function("glob", text(pattern)), "files")
    return sql_text(select(column("file")).from_(files).order_by(column("file")))


def lines_query(path: str, most: int) -> str:
    """The first lines of a file."""
    return sql_text(select(column("line")).from_(lines_table(path)).limit(most))


def rows_query(file: CsvFile, most: int) -> str:
    """The first rows of a file, read in its form."""
    columns = [column(name) for name, _ in file.columns]
    return sql_text(select(*columns).from_(csv_table(file, in_order=True)).limit(most))


def fits_query(file: CsvFile, types: Mapping[str, str]) -> str:
    """One row that says for each column if all of its values are of its type; it may raise instead.

    Args:
        file: its form.
        types: BIGINT, DOUBLE, BOOLEAN, DATE or TIMESTAMP for each of some columns. Floats as large
            as an integer can be that none of them holds do not fit.
    """
    answers = []
    for name, type_ in types.items():
        value = column(name)
        if type_ in KINDS_OF:
            fits: exp.Expr = exp.or_(*(condition(kind, name) for kind in KINDS_OF[type_]))
        elif type_ == "BIGINT":
            as_text = cast(_try_cast(value, type_), "VARCHAR")
            fits = exp.NullSafeEQ(this=value.copy(), expression=as_text)
        else:
            fits = exp.or_(
                exp.LT(this=function("abs", value), expression=number(EXACT_FLOATS)),
                exp.Is(this=value.copy(), expression=exp.Null()),
                exp.not_(is_finite(value.copy())),
            )
        answers.append(exp.func("coalesce", function("bool_and", fits), exp.true()))
    read = {name: type_ if type_ == "DOUBLE" else "VARCHAR" for name, type_ in types.items()}
    return sql_text(select(*answers).from_(csv_table(with_types(file, read))))


KINDS_OF = {"BOOLEAN": ("truths",), "DATE": ("dates",), "TIMESTAMP": ("dates", "times")}
"""The kinds of the values of a type."""

KINDS = ("present", "int64", "integers", "floats", "rounded", "truths", "dates", "times")
"""The counts that `survey_query` takes of a column."""


def survey_query(file: CsvFile, names: Sequence[str]) -> str:
    """One row with counts for each column: the number of its values of each of `KINDS`, in order.

    Floats are all values that can be read as a DOUBLE; `rounded` counts the integers that no DOUBLE
    represents exactly.
    """
    answers: list[exp.Expr] = []
    for name in names:
        counted: list[exp.Expr] = [exp.not_(exp.Is(this=column(name), expression=exp.Null()))]
        counted += [condition(kind, name) for kind in KINDS[1:]]
        answers += [function("count_if", each) for each in counted]
    read = dict.fromkeys(names, "VARCHAR")
    return sql_text(select(*answers).from_(csv_table(with_types(file, read))))


def words_query(file: CsvFile, names: Sequence[str], most: int) -> str:
    """One row that says for each column if some of its first values are of none of `KINDS`."""
    read = csv_table(with_types(file, dict.fromkeys(names, "VARCHAR")))
    rows = select(*map(column, names)).from_(read).limit(most)
    answers = [function("bool_or", not_of(KINDS[1:], name)) for name in names]
    return sql_text(select_from(subquery(rows, "rows"), *answers))


def condition(kind: str, name: str) -> exp.Expr:
    """Condition: the text in a column is of a kind."""
    value = column(name)
    match kind:
        case "int64":
            return exp.and_(_matches(value, INTEGER), _is_there(_try_cast(value, "BIGINT")))
        case "integers":
            return exp.and_(_matches(value, INTEGER), _is_there(_try_cast(value, "HUGEINT")))
        case "floats":
            return _is_there(_try_cast(value, "DOUBLE"))
        case "rounded":
            back = _try_cast(_try_cast(value, "DOUBLE"), "HUGEINT")
            lost = exp.NullSafeNEQ(this=back, expression=_try_cast(value, "HUGEINT"))
            far = exp.Is(this=_try_cast(value, "HUGEINT"), expression=exp.Null())
            return exp.and_(_matches(value, INTEGER), exp.or_(lost, far))
        case "truths":
            folded = function("lower", function("trim", value))
            return exp.In(this=folded, expressions=[text("true"), text("false")])
        case "dates":
            return exp.and_(_matches(value, DATE), _is_there(_try_cast(value, "DATE")))
    return exp.and_(_matches(value, TIME), _is_there(_try_cast(value, "TIMESTAMP")))


def first_query(file: CsvFile, name: str, wanted: exp.Expr) -> str:
    """The first row that meets a condition on a column: its number, from 1 on, and the value."""
    read = csv_table(with_types(file, {name: "VARCHAR"}), in_order=True)
    order = exp.Window(this=exp.RowNumber())
    rows = select(add_alias(order, "row"), column(name)).from_(read)
    query = select(exp.Star()).from_(rows.subquery("rows")).where(wanted)
    return sql_text(query.order_by(column("row")).limit(1))


def not_of(kinds: Sequence[str], name: str) -> exp.Expr:
    """Condition: a column has a text that is of none of these kinds."""
    there = exp.not_(exp.Is(this=column(name), expression=exp.Null()))
    of_one = exp.func("coalesce", exp.or_(*(condition(x, name) for x in kinds)), exp.false())
    return exp.and_(there, exp.not_(of_one))


def with_types(file: CsvFile, types: Mapping[str, str]) -> CsvFile:
    """Return a file in which some columns are read as these types, and the others as before."""
    return replace(file, columns=tuple((x, types.get(x, kind)) for x, kind in file.columns))


def _try_cast(value: exp.Expr, type_: str) -> exp.Expr:
    return exp.TryCast(this=value.copy(), to=exp.DataType.build(type_, dialect="duckdb"))


def _matches(value: exp.Expr, pattern: str) -> exp.Expr:
    return function("regexp_full_match", value.copy(), text(pattern))


def _is_there(value: exp.Expr) -> exp.Expr:
    return exp.not_(exp.Is(this=value, expression=exp.Null()))


def schemas_query(pattern: str) -> str:
    """One row for each node of the schema of each file, depth first: names, types and children."""
    wanted = ("file_name", "name", "num_children", "duckdb_type")
    schemas = table_function(function("parquet_schema", text(pattern)), "schemas")
    return sql_text(select(*map(column, wanted)).from_(schemas))


def union_query(pattern: str) -> str:
    """Names and types of the columns when all files are read as one table."""
    query = select(exp.Star()).from_(parquet_table(pattern, nan=False, united=True))
    return sql_text(exp.Describe(this=query))


def rounded_query(file: str, name: str, types: Sequence[str]) -> str:
    """The first value of a column that a round trip through types changes, with its row from 0 on.

    Args:
        file: one file.
        name: of the column.
        types: in which a value is read, one after the other; the last is its own.
    """
    value: exp.Expr = column(name)
    for type_ in types:
        value = exp.TryCast(this=value, to=exp.DataType.build(type_, dialect="duckdb"))
    numbered = exp.EQ(this=exp.to_identifier("file_row_number"), expression=exp.true())
    read = table_function(function("read_parquet", text(file), numbered), "file")
    lost = exp.NullSafeNEQ(this=value, expression=column(name))
    row = column("file_row_number")
    return sql_text(select(row, column(name)).from_(read).where(lost).limit(1))
