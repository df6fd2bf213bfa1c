"""Settings that a DuckDB session may have, and programs that have to give the same under each.

What a setting means is DuckDB's business; here stands only that ucle's answers do not depend on it,
and that ucle leaves it as it found it.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from classics import TEXTS, classic
from known import known

import ucle
from ucle.errors import ExecutionError
from ucle.testing.check_matrix import some_decompositions
from ucle.testing.generate import Case, random_case, special_case
from ucle.testing.oracle import assert_equal


@dataclass(frozen=True)
class Setting:
    """One thing that a session may have set; versions of DuckDB without it skip it."""

    name: str
    value: str
    before: tuple[str, ...] = ()
    """Statements that make what the setting names."""

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


SETTINGS = (
    Setting("default_order", "'DESC'"),
    Setting("default_null_order", "'NULLS_FIRST'"),
    Setting("default_null_order", "'NULLS_FIRST_ON_ASC_LAST_ON_DESC'"),
    Setting("integer_division", "true"),
    Setting("ieee_floating_point_ops", "false"),
    Setting("error_on_division_by_zero", "false"),
    Setting("search_path", "'elsewhere,main'", ("CREATE SCHEMA IF NOT EXISTS elsewhere",)),
    Setting("TimeZone", "'Pacific/Kiritimati'"),
    Setting("Calendar", "'japanese'"),
    Setting("threads", "1"),
    Setting("threads", "8"),
    Setting("preserve_insertion_order", "false"),
    Setting("enable_optimizer", "false"),
    Setting("disabled_optimizers", "'filter_pushdown,join_order,statistics_propagation'"),
    Setting("disabled_optimizers", "'common_subexpressions,unused_columns,cte_inlining'"),
    Setting("default_collation", "'NOCASE'"),
    Setting("default_collation", "'NOACCENT'"),
    Setting("arrow_output_version", "'1.4'"),
    Setting("arrow_output_version", "'1.5'"),
    Setting("arrow_large_buffer_size", "true"),
    Setting("arrow_lossless_conversion", "true"),
    Setting("arrow_output_list_view", "true"),
    Setting("produce_arrow_string_view", "true"),
    Setting("scalar_subquery_error_on_multiple_rows", "false"),
    Setting("old_implicit_casting", "true"),
    Setting("lambda_syntax", "'DISABLE_SINGLE_ARROW'"),
    Setting("lambda_syntax", "'ENABLE_SINGLE_ARROW'"),
    Setting("enable_macro_dependencies", "true"),
    Setting("enable_view_dependencies", "true"),
    Setting("max_expression_depth", "300"),
    Setting("pivot_limit", "10"),
    Setting("temp_directory", "''"),
    Setting("max_temp_directory_size", "'1MB'"),
    Setting("memory_limit", "'120MB'"),
    Setting("enable_progress_bar", "true"),
    Setting("errors_as_json", "true"),
    Setting("python_scan_all_frames", "true"),
    Setting("python_enable_replacements", "false"),
    Setting("preserve_identifier_case", "false"),
    Setting("order_by_non_integer_literal", "true"),
    Setting("enable_fsst_vectors", "true"),
    Setting("enable_external_access", "false"),
    Setting("nested_loop_join_threshold", "0"),
    Setting("prefer_range_joins", "true"),
    Setting("perfect_ht_threshold", "0"),
    Setting("late_materialization_max_rows", "0"),
    Setting("immediate_transaction_mode", "true"),
    Setting("debug_force_external", "true"),
    Setting("warnings_as_errors", "true"),
    Setting("lock_configuration", "true"),
    Setting("allow_unsigned_extensions", "false"),
    Setting("max_streaming_buffer_size", "'1KB'"),
    Setting("legacy_disable_null_type", "true"),
)

STICKY = frozenset({"lock_configuration", "enable_external_access", "allow_unsigned_extensions"})
"""Settings that cannot be taken back on an open database."""


@cache
def available() -> tuple[Setting, ...]:
    """The settings that this version of DuckDB has and takes."""
    found = []
    for setting in SETTINGS:
        with duckdb.connect() as connection, contextlib.suppress(duckdb.Error):
            for statement in (*setting.before, f"SET {setting}"):
                connection.execute(statement)
            found.append(setting)
    return tuple(found)


def connect(route: str, threads: int = 2) -> duckdb.DuckDBPyConnection:
    """A connection that takes a route."""
    return ucle.connect(threads=threads) if route == "native" else duckdb.connect()


@contextlib.contextmanager
def applied(connection: duckdb.DuckDBPyConnection, settings: Sequence[Setting]) -> Iterator[None]:
    """A block within which a connection has settings, none of which may be changed in it."""
    for setting in settings:
        for statement in (*setting.before, f"SET {setting}"):
            connection.execute(statement)
    before = _values(connection)
    yield
    assert _values(connection) == before, "settings are changed"
    for setting in reversed(settings):
        if setting.name not in STICKY:
            connection.execute(f"RESET {setting.name}")


def _values(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    rows = connection.execute("SELECT name, value FROM duckdb_settings()").fetchall()
    return {name: value for name, value in rows if name != "block_allocator_memory"}


@cache
def programs() -> dict[str, Case]:
    """Programs by name: classics, random ones, and what settings are most likely to meet."""
    cases = {name: classic(name) for name in TEXTS}
    cases |= {f"random {seed}": random_case(seed) for seed in range(60)}
    cases |= {f"special {seed}": special_case(seed) for seed in range(8)}
    return cases | _likely()


def _likely() -> dict[str, Case]:
    """Keys of strings and times, quotients by zero, powers, groups of several rows."""
    # A collation says which strings are equal, and their order; of these all say the same.
    words = ["b", "ab", "a", "ba", "ff", "f", "z", "zz"]
    times = [datetime.datetime(2024, 3, day, 12) for day in range(1, 9)]
    values = np.arange(1.0, 9.0)
    order = np.argsort(np.array([word.encode() for word in words]))
    ranked = values[order]

    def table(keys: Any, name: str = "k") -> pa.Table:
        return pa.table({name: keys, "v": values})

    x, y = np.array([1.0, -2.0, 0.0, 3.0]), np.array([0.0, 4.0, 0.0, -0.5])
    with np.errstate(all="ignore"):
        quotient, reciprocal, power = x / y, 1 / y, np.abs(x) ** (y - 1)
    a = np.array([[[4.0, 5.0], [0.0, 2.0]]])
    b = np.array([[8.0, 1.0], [0.0, 3.0]])
    return {
        "words": _coo("T[k] = A[k] * A[k]", {"T": ranked**2}, {"A": ranked}, A=table(words)),
        "words joined": _coo(
            "T[i,j] = A[i] * B[j]; s = A[i] * B[i]",
            {"T": np.outer(ranked, ranked), "s": np.asarray((ranked**2).sum())},
            {"A": ranked, "B": ranked},
            A=table(words),
            B=table(words, "w"),
        ),
        "times": _coo(
            "T[k] = 2 * A[k]", {"T": 2 * values}, {"A": values}, A=table(pa.array(times))
        ),
        "quotients": known(
            "Q[i] = x[i] / y[i]; R[i] = 1 / y[i]; P[i] = abs(x[i]) ^ (y[i] - 1)",
            {"Q": quotient, "R": reciprocal, "P": power},
            x=x,
            y=y,
        ),
        "complex quotients": known(
            "Q[i] = x[i] / y[i]",
            {"Q": np.array([1j, -0.5j])},
            x=np.array([1, 1j]),
            y=np.array([-1j, -2]),
        ),
        "logarithms": known(
            "L[i] = log(x[i]); S[i] = sqrt(x[i])",
            {"L": np.array([-np.inf, 0.0]), "S": np.array([0.0, 1.0])},
            x=np.array([0.0, 1.0]),
        ),
        "grouped rows": known(
            "T[i,k] += min(A[i,k,n], B[m,k])",
            {"T": np.minimum(a[:, :, :, None], b.T[None, :, None, :]).sum((2, 3))},
            A=a,
            B=b,
        ),
        "mean": known("m[i] mean= A[i,k,n]", {"m": a.mean((1, 2))}, A=a),
        "integers": known(
            "T[i] += A[i,j] * B[j]",
            {"T": np.array([5, 11])},
            A=np.array([[1, 2], [3, 4]]),
            B=np.array([1, 2]),
        ),
    }


def _coo(text: str, answer: dict[str, Any], arrays: dict[str, Any], **tables: pa.Table) -> Case:
    """A program over tables of the database whose keys are no positions."""
    inputs = {name: ucle.table(name) for name in tables}
    return _Given(text, arrays, inputs, {}, tuple(answer), tables, answer)


@dataclass(frozen=True)
class _Given(Case):
    answer: Any = None

    def expected(self) -> dict[str, Any]:
        return dict(self.answer)


@cache
def expected(name: str) -> dict[str, Any]:
    """The answer of a program."""
    return programs()[name].expected()


def _run(program: ucle.EinsumProgram, connection: duckdb.DuckDBPyConnection) -> Any:
    """The result; None where DuckDB 1.4 hands over no booleans in lists, and that was noticed."""
    try:
        return program.execute(connection)
    except ExecutionError as error:
        if program.route == "arrow" and "loses the booleans of lists" in str(error):
            return None
        raise


def check(
    name: str, connection: duckdb.DuckDBPyConnection, settings: Sequence[Setting], sample: int = 1
) -> int:
    """Check that a program gives its answer under settings, and how many tensors were compared.

    Args:
        name: of the program.
        connection: where it runs.
        settings: what is set there.
        sample: decompositions beside the optimiser's and the relational one.
    """
    case, answer, compared = programs()[name], expected(name), 0
    case.create_tables(connection)
    try:
        with applied(connection, settings):
            chosen = case.compile(connection)
            ways: list[Any] = ["auto", "relational"]
            if sample:
                ways += list(some_decompositions(chosen, len(name), 2 + sample))[-sample:]
            for way in ways:
                program = chosen if way == "auto" else chosen.with_decomposition(way)
                result = _run(program, connection)
                if result is None:
                    compared += 1
                    continue
                with result:
                    for tensor in result:
                        told = [str(setting) for setting in settings]
                        context = f"{told}, {program.route}, {way}, tensor {tensor}\n{case}"
                        assert_equal(result[tensor].to_numpy(), answer[tensor], context)
                        compared += 1
    finally:
        case.drop_tables(connection)
    return compared
