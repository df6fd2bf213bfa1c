"""Arguments that nobody would write, to every kernel: a result or an SQL error, never a crash.

`UCLE_FUZZ_CALLS` sets how many calls each kernel gets; the sanitizer build runs these tests, too.
"""

from __future__ import annotations

import os
import random

import duckdb
import pytest
from conftest import Route

from ucle.udf_kernels import ELEMENT_TYPES, KERNELS, Kernel

CALLS = int(os.environ.get("UCLE_FUZZ_CALLS", "6"))

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


def _integer(rng: random.Random) -> int:
    return rng.choice(ABSURD) if rng.random() < 0.2 else rng.randint(0, 5)


def _blob(rng: random.Random, size: int) -> str:
    length = rng.choice((0, 1, 7, size, 2 * size, 3 * size, 4 * size, 6 * size, 12, 13, 33))
    return "from_hex('" + rng.randbytes(length).hex() + "')"


def _argument(rng: random.Random, kind: str, kernel: Kernel) -> str:
    element = ELEMENT_TYPES[kernel.tag]
    if rng.random() < 0.08:
        return f"NULL::{kind}"
    if kind == "BLOB":
        return _blob(rng, element.dtype.itemsize)
    if kind == "VARCHAR":
        spec = rng.choice(PREFIXES) + rng.choice(SPECS)
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


def _call(rng: random.Random, route: Route, kernel: Kernel) -> str:
    arguments = [_argument(rng, kind, kernel) for kind in kernel.parameters]
    if kernel.kind == "scalar":
        return f"{kernel.name}({', '.join(arguments)})"
    # Rows of one group differ in one argument, if they differ at all.
    changed = rng.randrange(len(arguments))
    other = _argument(rng, kernel.parameters[changed], kernel)
    arguments[changed] = f"CASE WHEN i = 1 THEN {other} ELSE {arguments[changed]} END"
    return route.call(kernel.name, rng.choice((4, 4, 4, None)), arguments)


@pytest.mark.parametrize("tag", ELEMENT_TYPES)
def test_any_arguments(route: Route, tag: str) -> None:
    rng = random.Random(f"{route.name} {tag}")
    answered = refused = 0
    for kernel in KERNELS.values():
        if kernel.tag != tag:
            continue
        for _ in range(CALLS):
            call = _call(rng, route, kernel)
            try:
                route.connection.execute(f"SELECT {call} FROM range(3) t(i)").fetchall()
                answered += 1
            except duckdb.InternalException:
                pytest.fail(f"DuckDB met an internal error in {call}")
            except duckdb.Error:
                refused += 1
    assert answered > CALLS, "the arguments are too wild to reach the loops"
    assert refused > CALLS, "the arguments are too tame"
    assert route.connection.execute("SELECT element(pack([4, 5]), 1)").fetchall() == [(5.0,)]
