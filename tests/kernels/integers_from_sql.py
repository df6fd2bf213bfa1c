"""Calls of every kernel that takes integers, with integers that nobody would write.

Run as a program, in a process of its own: ``integers_from_sql.py ROUTE HOW_MANY SEED``. It says
which statement it is about to run, so that whoever has started it knows what it died of, and at the
end how many were answered and how many refused.
"""

from __future__ import annotations

import itertools
import random
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
from kernel_routes import EXTENSION_CONFIG
from kernel_table import KERNELS, compressed_arguments, has_growing_state
from test_fuzz import good_rows

from ucle.udf_kernels import (
    ELEMENT_TYPES,
    Kernel,
    capacity_suffix,
    load_extension,
    register_arrow,
)

VALUES = ("0", "1", "-1", "2147483647", "2147483648", "4294967296", "9007199254740992")
VALUES += ("9223372036854775807", "-9223372036854775807 - 1", "NULL")
EMPTY = "''::BLOB"
OF_NOTHING = ("csr_empty(0, 0)", "csr_empty(0, 4294967295)", "csr_empty(3, 0)")
MEMORY = 2 << 30
FRAMES = (
    "()",
    "(ORDER BY i ROWS BETWEEN 99 PRECEDING AND CURRENT ROW)",
    "(ORDER BY i ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW)",
    "(PARTITION BY i % 2)",
)


def with_integers() -> list[Kernel]:
    """The kernels that an integer comes to, alone or in a list."""
    kinds = ("BIGINT", "BIGINT[]")
    kernels = []
    for kernel in KERNELS.values():
        own = ELEMENT_TYPES[kernel.tag]
        wanted = [
            kind in kinds and kind not in (own.sql, own.sql_list) for kind in kernel.parameters
        ]
        if any(wanted) or (kernel.tag == "i64" and any(k in kinds for k in kernel.parameters)):
            kernels.append(kernel)
    return kernels


def calls(kernel: Kernel, rng: random.Random) -> Iterator[list[str]]:
    """Arguments: each integer of a good call with each value, then several at once.

    The tensors are those of the good call, or such as hold nothing and leave sizes free.
    """
    good = good_rows(kernel.name)
    places = [n for n, kind in enumerate(kernel.parameters) if kind.startswith("BIGINT")]
    for empty, place, value in itertools.product((False, True), places, VALUES):
        yield changed(kernel, rng, emptied(kernel, rng, rng.choice(good), empty), {place: value})
    while True:
        values = {place: rng.choice(VALUES) for place in places if rng.random() < 0.7}
        row = emptied(kernel, rng, rng.choice(good), rng.random() < 0.5)
        yield changed(kernel, rng, row, values)


def emptied(kernel: Kernel, rng: random.Random, row: list[str], empty: bool) -> list[str]:
    """The arguments, with tensors that hold nothing if they are to."""
    row = list(row)
    for place, kind in enumerate(kernel.parameters):
        if empty and kind == "BLOB":
            row[place] = (
                rng.choice(OF_NOTHING) if place in compressed_arguments(kernel.name) else EMPTY
            )
    return row


def changed(
    kernel: Kernel, rng: random.Random, row: list[str], values: dict[int, str]
) -> list[str]:
    """The arguments with other integers: of a list one of its elements."""
    for place, value in values.items():
        if kernel.parameters[place] == "BIGINT":
            row[place] = f"({value})::BIGINT"
            continue
        items = row[place].removesuffix("::BIGINT[]").strip("[]").split(", ")
        items[rng.randrange(len(items))] = value
        row[place] = f"[{', '.join(items)}]::BIGINT[]"
    return row


def statement(kernel: Kernel, rng: random.Random, route: str, row: list[str]) -> str:
    """A statement that calls a kernel: by itself, as an aggregate or in a window."""
    call = f"{kernel.name}({', '.join(row)})"
    if not kernel.is_aggregate:
        return f"SELECT {call} FROM range({rng.choice((1, 3))}) t(i)"
    if route == "arrow":
        lists = [f"list({x})" if mark else f"first({x})" for x, mark in arrow_lists(kernel, row)]
        return f"SELECT {kernel.name}({', '.join(lists)}) FROM range(3) t(i)"
    if not has_growing_state(kernel.name):
        suffix = rng.choice(
            ("wide", capacity_suffix(4, kernel.tag), capacity_suffix(64, kernel.tag))
        )
        call = f"{kernel.name}_{suffix}({', '.join(row)})"
    rows = rng.choice((1, 3, 3, 200))
    if rng.random() < 0.4:
        return f"SELECT {call} FROM range({rows}) t(i) GROUP BY i % 2"
    window = f"SELECT {call} OVER {rng.choice(FRAMES)} x FROM range({rows}) t(i)"
    return f"SELECT count(x) FROM ({window})"


def arrow_lists(kernel: Kernel, row: list[str]) -> Iterator[tuple[str, bool]]:
    """Arguments as the Arrow route takes them: those of each row together."""
    gathered = [x for x, mark in zip(row, kernel.gathered, strict=True) if mark]
    if len(gathered) > 1:
        fields = ", ".join(f"'{name}': {x}" for name, x in zip("abcdefgh", gathered, strict=False))
        gathered = [f"{{{fields}}}"]
    start = kernel.gathered.index(True)
    for place, (x, mark) in enumerate(zip(row, kernel.gathered, strict=True)):
        if place == start:
            yield gathered[0], True
        elif not mark:
            yield x, False


def statements(route: str, how_many: int, seed: int) -> Iterator[str]:
    """All single changes of all kernels and as many others; or so many of them, drawn."""
    rng = random.Random(f"{route} {seed}")
    kernels = with_integers()
    for n in range(how_many):
        kernel = rng.choice(kernels)
        drawn = calls(kernel, rng)
        first = 2 * len(VALUES) if n % 2 else 0
        yield statement(
            kernel, rng, route, next(itertools.islice(drawn, rng.randint(0, first), None))
        )


def every_statement(route: str, seed: int) -> Iterator[str]:
    rng = random.Random(f"{route} {seed}")
    for kernel in with_integers():
        places = sum(kind.startswith("BIGINT") for kind in kernel.parameters)
        for row in itertools.islice(calls(kernel, rng), 2 * 2 * places * len(VALUES)):
            yield statement(kernel, rng, route, row)


def main(route: str, how_many: int, seed: int) -> None:
    """Run statements, all of them if `how_many` is 0."""
    connection = duckdb.connect(config=EXTENSION_CONFIG | {"memory_limit": "200MB", "threads": "1"})
    (load_extension if route == "extension" else register_arrow)(connection)
    connection.execute("SELECT 1").fetchall()
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    now = int(pages) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
    answered = refused = 0
    drawn = statements(route, how_many, seed) if how_many else every_statement(route, seed)
    for text in drawn:
        print(text, flush=True)
        try:
            connection.execute(text).fetchall()
            answered += 1
        except (duckdb.InternalException, duckdb.FatalException) as error:
            sys.exit(f"{text}: {error}")
        except duckdb.Error as error:
            if isinstance(error, duckdb.OutOfMemoryException):
                sys.exit(f"{text}: {error}")
            refused += 1
    print(answered, refused)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
