"""Arguments that nobody would write, to every kernel: a result or an SQL error, never a crash.

`UCLE_FUZZ_CALLS` sets how many calls each kernel gets; the sanitizer build runs these tests, too.
The first call of each kernel is one that it answers, and some of the others are nearly so: what is
wrong everywhere is refused at once, and the loops behind the checks see none of it.
One thread runs them: where a window of DISTINCT rows ends with an error in one thread of DuckDB 2,
others wait for it for ever (``WindowDistinctAggregator::Finalize`` yields and looks again).
"""

from __future__ import annotations

import os
import random
from functools import cache
from itertools import chain, islice
from typing import Any

import duckdb
import numpy as np
import pytest
from kernel_routes import Route, to_sql
from kernel_table import KERNELS, compressed_arguments
from samples import aggregate_groups, scalar_rows

from ucle.udf_kernels import ELEMENT_TYPES, Kernel

CALLS = int(os.environ.get("UCLE_FUZZ_CALLS", "4"))

# Beyond what any tensor may hold, so that a length among them is refused and not made.
ABSURD = (-1, -(2**63), 2**33, 2**40, 2**62, 2**63 - 1)
SPECS = (
    "i,i->i",
    "i->i",
    "ij,jk->ik",
    "ij->j",
    "i,j->ij",
    "i,i->",
    "->",
    ",->",
    "",
    "i",
    "aa,b->ab",
)
PREFIXES = ("", "max.add ", "min.mult ", "prod ", "sum ", "any.mult ", "max.", " ", "sum.sum ")
OPERATIONS = (
    "",
    "sum.mult",
    "min.add",
    "max.mult",
    "sum.rsub",
    "max.rwhen",
    "sub",
    "rless",
    "mult",
)
REDUCTIONS = ("sum", "max", "min", "prod", "any", "r", ".", "sum.", ".mult", "sum.mult ")


def _integer(rng: random.Random) -> int:
    return rng.choice(ABSURD) if rng.random() < 0.2 else rng.randint(0, 5)


def _blob(rng: random.Random, size: int) -> str:
    length = rng.choice((0, 1, 7, size, 2 * size, 3 * size, 4 * size, 6 * size, 12, 13, 33))
    return "from_hex('" + rng.randbytes(length).hex() + "')"


def _compressed(rng: random.Random, size: int) -> str:
    """A compressed tensor, of which every third one has something wrong with it."""
    rows, cols = rng.choice((0, 1, 2, 2, 3, 4)), rng.choice((0, 1, 2, 2, 3, 4))
    places = [sorted(rng.sample(range(cols), rng.randint(0, cols))) for _ in range(rows)]
    ends = [sum(map(len, places[:r])) for r in range(rows + 1)]
    words = [0x01525343, rows, cols, 0, *ends, *(j for row in places for j in row)]
    if rng.random() < 0.15:
        words[2] = rng.choice((2**32 - 1, 2**31))
    elif rng.random() < 0.2:
        words[rng.randrange(len(words))] = rng.choice((0, 1, 5, 2**31, 2**32 - 1))
    blob = b"".join(word.to_bytes(4, "little") for word in words)
    blob += bytes(-len(blob) % 8) + rng.randbytes(ends[-1] * size)
    if rng.random() < 0.1:
        blob = blob[: rng.randint(0, len(blob))] + rng.randbytes(rng.randint(0, 9))
    return f"from_hex('{blob.hex()}')"


WORDS = (
    "1",
    "-2.5",
    "nan",
    "relu",
    "neg",
    "not",
    "mult",
    "add",
    "pow",
    "equal",
    "f64",
    "i64",
    "bool",
)
"""Types of chains' arguments beside their operands."""


def _chain(rng: random.Random, operands: int, reduces: bool) -> str:
    """A chain that is right more often than not, if its constants and types are."""
    words = []
    for number in range(operands):
        letter = rng.choice("abcd" if rng.random() < 0.05 else "abcd"[number])
        words.append(letter if rng.random() < 0.9 else letter.upper())
        words += rng.choices(WORDS, k=rng.choice((0, 0, 0, 1, 2)))
        words += [rng.choice(("add", "mult", "equal", "least"))] if number else []
    words += ["max"] if reduces and rng.random() < 0.9 else []
    return rng.choice((" ", " ", " ", " ", ":", "  ")).join(words)


def _index_map(rng: random.Random) -> tuple[list[int], list[int]]:
    """Constants and program of an index map over a few entries; of every third one is wrong."""
    sizes = [rng.choice((0, 1, 2, 2, 3, 5)) for _ in range(rng.randint(0, 3))]
    axes, clauses, digits = rng.randint(0, 2), rng.choice((0, 0, 1, 2)), rng.choice((0, 0, 1, 2))
    parts = [rng.randint(1, 2) for _ in range(clauses)]
    functions = axes + sum(parts)

    def factors() -> list[int]:
        return [rng.randint(-2, 2) for _ in sizes]

    program = [len(sizes), *sizes, axes]
    for _ in range(axes):
        program += [rng.choice((0, 1, 1, 1, 2, 2)), rng.randint(0, 2), *factors()]
    program.append(clauses)
    for count in parts:
        program.append(count)
        for _ in range(count):
            program += [rng.randint(0, 2), *factors()]
    if digits:
        program.append(digits)
        for _ in range(digits):
            program += [rng.randint(1, 3), rng.randint(0, 1), *factors()]
        terms = [(functions + 1, 0)] if digits == 2 and rng.random() < 0.5 else []
        terms += [(rng.randrange(functions), rng.randrange(digits)) for _ in range(functions)]
        program.append(len(terms))
        for function, digit in terms:
            program += [function, rng.randint(-2, 2), digit]
    constants = [rng.randint(-2, 3) for _ in range(functions + digits)]
    if rng.random() < 0.3:
        changed = rng.choice([x for x in (constants, program) if x])
        changed[rng.randrange(len(changed))] = rng.choice((*ABSURD, 2**63 - 1, 0, 1, 7))
    return constants, program


LONGEST = 1000
"""Letters of a good argument: longer ones would be what most of the time goes into."""


def _literal(kind: str, value: Any) -> str:
    """A Python value as SQL of a type."""
    if value is None:
        return f"NULL::{kind}"
    value = to_sql(value)
    if isinstance(value, bytes):
        return f"from_hex('{value.hex()}')"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, list):
        return f"[{', '.join(_literal(kind[:-2], item) for item in value)}]::{kind}"
    if isinstance(value, dict):
        parts = ", ".join(f"'{x}': {_literal('DOUBLE', y)}" for x, y in value.items())
        return f"{{{parts}}}::{kind}"
    return f"'{value}'::{kind}"


@cache
def good_rows(name: str) -> list[list[str]]:
    """Arguments that a kernel has an answer to, from among those of the tests of its numbers."""
    kernel, rng = KERNELS[name], np.random.default_rng(9)
    if not kernel.is_aggregate:
        rows = scalar_rows(name, rng)
    else:
        rows = chain.from_iterable(aggregate_groups(name, rng))
    written = ([_literal(k, x) for k, x in zip(kernel.parameters, r, strict=True)] for r in rows)
    return list(islice((row for row in written if max(map(len, row)) <= LONGEST), 24))


def _good_call(route: Route, kernel: Kernel) -> str:
    """A statement with one row that the kernel answers."""
    arguments = max(good_rows(kernel.name), key=lambda row: len(str(row)))
    call = f"{kernel.name}({', '.join(arguments)})"
    if kernel.is_aggregate:
        call = route.call(kernel.name, None, arguments)
    return f"SELECT {call}{ROWS.format(rows=1)}"


def _arguments(rng: random.Random, kernel: Kernel) -> list[str]:
    """Draw the arguments of one call, some of which belong together."""
    if rng.random() < 0.4:
        arguments = list(rng.choice(good_rows(kernel.name)))
        if rng.random() < 0.8:
            changed = rng.randrange(len(arguments))
            arguments[changed] = _argument(rng, changed, kernel)
        return arguments
    arguments = [_argument(rng, place, kernel) for place in range(len(kernel.parameters))]
    if kernel.name.startswith("reindex") and rng.random() < 0.95:
        arguments[1:3] = (f"{numbers}::BIGINT[]" for numbers in _index_map(rng))
    return arguments


def _argument(rng: random.Random, place: int, kernel: Kernel) -> str:
    kind, element = kernel.parameters[place], ELEMENT_TYPES[kernel.tag]
    if rng.random() < 0.08:
        return f"NULL::{kind}"
    if place in compressed_arguments(kernel.name) and rng.random() < 0.95:
        return _compressed(rng, element.dtype.itemsize)
    if kind == "BLOB":
        return _blob(rng, element.dtype.itemsize)
    if kind == "VARCHAR" and compressed_arguments(kernel.name):
        return f"'{rng.choice(rng.choice((OPERATIONS, OPERATIONS, REDUCTIONS)))}'"
    if kind == "VARCHAR":
        spec = rng.choice(PREFIXES) + rng.choice(SPECS)
        if kernel.name.startswith("chain"):
            spec = _chain(rng, len(kernel.parameters) - 1, "_sca" in kernel.name)
        if rng.random() < 0.2:
            spec = "".join(rng.choices("ijk,->. max'é", k=rng.randint(0, 60))).replace("'", "''")
        return f"'{spec}'"
    if kind == "BIGINT":
        return f"({_integer(rng)})::BIGINT"
    if kind == "BIGINT[]":
        length = rng.choice((0, 1, 1, 2, 2, 3, 17))
        items = ["NULL" if rng.random() < 0.03 else str(_integer(rng)) for _ in range(length)]
        return f"[{', '.join(items)}]::BIGINT[]"
    if kind == element.sql_list:
        return f"[{', '.join(_number(rng, element.sql) for _ in range(rng.randint(0, 4)))}]::{kind}"
    assert kind == element.sql
    return f"{_number(rng, kind)}::{kind}"


def _number(rng: random.Random, kind: str) -> str:
    if rng.random() < 0.05:
        return "NULL"
    if kind == "BOOLEAN":
        return rng.choice(("true", "false"))
    if kind == "BIGINT":
        return rng.choice(("0", "1", "-3", "9223372036854775807", "-9223372036854775808"))
    real = rng.choice(("0", "-0.0", "1.5", "'nan'", "'inf'", "1e30"))
    if not kind.startswith("STRUCT"):
        return real
    part = kind.removeprefix("STRUCT(re ").partition(",")[0]
    return f"{{'re': {real}::{part}, 'im': {rng.choice(('0', 'NULL', '-2'))}::{part}}}"


ROWS = " FROM range({rows}) t(i)"
OVER = (
    "()",
    "(PARTITION BY i % 2)",
    "(ORDER BY i)",
    "(ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "(ORDER BY i ROWS BETWEEN 2 FOLLOWING AND 9 FOLLOWING EXCLUDE CURRENT ROW)",
    "(PARTITION BY i % 3 ORDER BY i DESC RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING)",
    "(ORDER BY i % 4 GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING EXCLUDE TIES)",
)


def _aggregation(rng: random.Random, call: str) -> str:
    """A statement that calls an aggregate in one of the ways that DuckDB has."""
    rows = ROWS.format(rows=rng.choice((0, 1, 3, 3, 3, 50, 2100 if rng.random() < 0.05 else 7)))
    head, arguments = call.split("(", 1)
    distinct = f"{head}(DISTINCT {arguments}"
    ordered = f"{call[:-1]} ORDER BY {rng.choice(('i', '-i', 'i % 3, i'))})"
    window = rng.choice(OVER)
    return rng.choice(
        (
            f"SELECT {call}{rows}",
            f"SELECT {call}{rows} GROUP BY i % 2",
            f"SELECT {call} FILTER (i % 2 = 1){rows}",
            f"SELECT {distinct}{rows} GROUP BY i % 2",
            f"SELECT {ordered}{rows}",
            f"SELECT {ordered} FILTER (i > 0){rows} GROUP BY i % 3",
            f"SELECT {call}{rows} GROUP BY GROUPING SETS ((i % 2), (i % 3), ())",
            f"SELECT {call} OVER {window}{rows}",
            f"SELECT {call} FILTER (i % 3 > 0) OVER {window}{rows}",
            f"SELECT {distinct} OVER {window}{rows}",
        )
    )


BATCH = 40
"""Calls of a scalar kernel in one statement, where it has so many."""


def _statement(rng: random.Random, route: Route, kernel: Kernel, calls: int) -> tuple[str, int]:
    """A statement, and how many calls with arguments of their own are in it."""
    if not kernel.is_aggregate and calls >= BATCH:
        return _tried(rng, kernel), BATCH
    return _called(rng, route, kernel), 1


def _tried(rng: random.Random, kernel: Kernel) -> str:
    """Calls of which DuckDB repeats each for itself when one of them fails."""
    rows = ", ".join("(" + ", ".join(_arguments(rng, kernel)) + ")" for _ in range(BATCH))
    names = ", ".join(f"a{n}" for n in range(len(kernel.parameters)))
    return f"SELECT TRY({kernel.name}({names})) FROM (VALUES {rows}) t({names})"


def _called(rng: random.Random, route: Route, kernel: Kernel) -> str:
    arguments = _arguments(rng, kernel)
    if not kernel.is_aggregate:
        return f"SELECT {kernel.name}({', '.join(arguments)})" + ROWS.format(rows=3)
    # Rows of one group differ in one argument, if they differ at all.
    changed = rng.randrange(len(arguments))
    other = _argument(rng, changed, kernel)
    arguments[changed] = f"CASE WHEN i = 1 THEN {other} ELSE {arguments[changed]} END"
    call = route.call(kernel.name, rng.choice((4, 4, 4, None)), arguments)
    return (
        f"SELECT {call}{ROWS.format(rows=3)}" if route.name == "arrow" else _aggregation(rng, call)
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("tag", ELEMENT_TYPES)
def test_any_arguments(route: Route, tag: str) -> None:
    rng = random.Random(f"{route.name} {tag}")
    route.connection.execute("SET threads = 1")
    answered = refused = 0
    # Programs of tapes are mangled in test_tapes.py.
    for kernel in (x for x in KERNELS.values() if x.tag == tag and not x.variadic):
        ((value,),) = route.connection.execute(_good_call(route, kernel)).fetchall()
        assert value is not None, kernel.name
        left = CALLS
        while left > 0:
            statement, calls = _statement(rng, route, kernel, left)
            left -= calls
            try:
                for (value,) in route.connection.execute(statement).fetchall()[:calls]:
                    answered += value is not None
                    refused += value is None
            except duckdb.InternalException:
                pytest.fail(f"DuckDB met an internal error in {statement}")
            except duckdb.Error:
                refused += calls
    assert answered > CALLS, "the arguments are too wild to reach the loops"
    assert refused > CALLS, "the arguments are too tame"
    assert route.connection.execute("SELECT element(pack([4, 5]), 1)").fetchall() == [(5.0,)]
