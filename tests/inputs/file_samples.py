"""Random files of the formats of others, made from the descriptions of these, and plain readers.

`samples(seed)` hands out Matrix Market, FROSTT and edge-list files with all that the formats allow:
fields, symmetries, blanks, comments, bases, line ends, exponents. Each comes with how ucle is told
to read it and with the array that it holds, which a reader of a few lines, or scipy, found.
"""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.io
from numpy.typing import NDArray

import ucle

Array = NDArray[Any]
FIELDS = ("real", "integer", "complex", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


@dataclass(frozen=True)
class Sample:
    """A file, the input that reads it, and the tensor in it."""

    name: str
    content: bytes
    expected: Array
    read: Callable[[Path], Any]


def samples(seed: int) -> Iterator[Sample]:
    """Files without an end, in turn of each format."""
    rng = random.Random(seed)
    makers = (matrix_market, frostt, edge_list)
    number = 0
    while True:
        for maker in makers:
            yield maker(rng, number)
        number += 1


def matrix_market(rng: random.Random, number: int) -> Sample:
    """A coordinate or array file of any field and symmetry, as scipy reads it."""
    field, symmetry = rng.choice(FIELDS), rng.choice(SYMMETRIES)
    form = "coordinate" if field == "pattern" or rng.random() < 0.6 else "array"
    if symmetry == "hermitian":
        field = "complex"
    if symmetry == "skew-symmetric" and field == "pattern":
        symmetry = "general"
    rows = rng.randint(1, 5)
    columns = rows if symmetry != "general" else rng.randint(1, 5)
    strict = symmetry == "skew-symmetric"
    if strict:  # scipy dies of some dense ones
        form = "coordinate"
    below = [
        (i, j)
        for j in range(columns)
        for i in range(rows)
        if symmetry == "general" or i > j or (i == j and not strict)
    ]
    if form == "coordinate":
        below = rng.sample(below, rng.randint(0, len(below)))
    header = [form, field, symmetry]
    if rng.random() < 0.3:
        header = [rng.choice((str.upper, str.title))(word) for word in header]
    matrix = rng.choice(("matrix", "Matrix", "MATRIX"))
    lines = [f"%%MatrixMarket {matrix} {' '.join(header)}"]
    lines += [f"%{rng.choice(('', ' a comment', '1 1 1'))}" for _ in range(rng.randint(0, 2))]
    lines += [""] * rng.randint(0, 1)
    lines.append(f"{rows} {columns}" + (f" {len(below)}" if form == "coordinate" else ""))
    for i, j in below:
        real = symmetry == "hermitian" and i == j
        values = _values(rng, field, real)
        places = [str(i + 1), str(j + 1)] if form == "coordinate" else []
        lines.append(_spaced(rng, [*places, *values]))
    if rng.random() < 0.2:
        lines.append("")
    content = _ended(rng, lines)
    # scipy ends a number at the D of Fortran.
    plain = content.replace(b"D", b"E") if field in ("real", "complex") else content
    body = plain.partition(b"\n")[2]
    plain = content.partition(b"\n")[0] + b"\n" + body
    found: Any = scipy.io.mmread(io.BytesIO(plain.rstrip() + b"\n"), spmatrix=False)
    expected = found.toarray() if hasattr(found, "toarray") else found
    return _packed(rng, f"m{number}.mtx", content, np.asarray(expected), str)


def frostt(rng: random.Random, number: int) -> Sample:
    """Coordinates from 1 on and a value, between blanks."""
    rank = rng.randint(1, 4)
    places = {tuple(rng.randint(1, 4) for _ in range(rank)) for _ in range(rng.randint(1, 6))}
    field = rng.choice(("real", "integer"))
    lines = [f"# {rng.choice(('a tensor', 'rank 7', '1 1 1'))}"] * rng.randint(0, 2)
    for place in sorted(places, key=lambda _: rng.random()):
        lines.append(_spaced(rng, [*map(str, place), *_values(rng, field, fortran=False)]))
        lines += ["# in between", ""][: rng.choice((0, 0, 0, 1, 2))]
    content = _ended(rng, lines)
    return _packed(rng, f"t{number}.tns", content, _plain(content, "#", rank, base=1), str)


def edge_list(rng: random.Random, number: int) -> Sample:
    """Pairs of nodes with or without a weight, as SNAP, KONECT and OGB ship them."""
    delimiter = rng.choice((",", "\t", ";", "|", " "))
    sign = rng.choice(("#", "%", None))
    weighted, header = rng.random() < 0.5, rng.random() < 0.4
    pairs = {(rng.randint(0, 5), rng.randint(0, 5)) for _ in range(rng.randint(1, 8))}
    rows = [[str(i), str(j), *(_values(rng, "real", fortran=False) if weighted else [])]
            for i, j in sorted(pairs, key=lambda _: rng.random())]  # fmt: skip
    lines = [f"{sign} {x}" for x in ("Nodes: 6, Edges: 3", "From\tTo")] if sign else []
    if header:
        rows.insert(0, ["from", "to", "weight"][: len(rows[0])])
    for row in rows:
        lines.append(_spaced(rng, row) if delimiter == " " else delimiter.join(row))
        if rng.random() < 0.1:
            lines.append("")
    content = _ended(rng, lines)
    bare = content.replace(delimiter.encode(), b" ")
    expected = _plain(bare, sign, 2, base=0, header=header, weighted=weighted)
    suffix = rng.choice((".csv", ".txt", ".edges", ".tsv" if delimiter == "\t" else ".txt"))
    stated = {
        "delimiter": delimiter if delimiter == " " or rng.random() < 0.5 else None,
        "header": header if rng.random() < 0.5 else None,
        "comment": sign,
    }
    sample = _packed(rng, f"e{number}{suffix}", content, expected, str)
    return Sample(sample.name, sample.content, expected, lambda x: ucle.table(str(x), **stated))


def _values(
    rng: random.Random, field: str, real: bool = False, *, fortran: bool = True
) -> list[str]:
    if field == "pattern":
        return []
    if field == "integer":
        return [str(rng.choice((0, 1, -7, 12, 2**31, -(2**40))))]
    signs = ("E", "e") + ("D",) * fortran
    number = rng.choice(("0.5", "-1.25", "3", ".5", "2.", "1e3", f"1.5{rng.choice(signs)}+02"))
    if field == "real":
        return [number]
    return [number, "0" if real else rng.choice(("0", "1.5", "-2"))]


def _spaced(rng: random.Random, fields: list[str]) -> str:
    """Fields with blanks between them, and sometimes before and behind."""
    line = fields[0]
    for field in fields[1:]:
        line += rng.choice((" ", " ", " ", "  ", "\t", " \t")) + field
    return rng.choice(("", "", "", "  ")) + line + rng.choice(("", "", "", " "))


def _ended(rng: random.Random, lines: list[str]) -> bytes:
    end = rng.choice(("\n", "\n", "\r\n"))
    return (end.join(lines) + rng.choice((end, end, ""))).encode()


def _packed(
    rng: random.Random, name: str, content: bytes, expected: Array, read: Callable[[Path], Any]
) -> Sample:
    pack = rng.choice(("", "", "", ".gz", ".zst"))
    if pack == ".gz":
        content = gzip.compress(content)
    elif pack == ".zst":
        content = pa.Codec("zstd").compress(content, asbytes=True)
    return Sample(name + pack, content, expected, read)


def _plain(
    content: bytes,
    sign: str | None,
    rank: int,
    *,
    base: int,
    header: bool = False,
    weighted: bool = True,
) -> Array:
    """Read a file in a few lines."""
    rows = [line.split() for line in content.decode().splitlines()]
    rows = [row for row in rows if row and not (sign and row[0].startswith(sign))][header:]
    keys = np.array([[int(text) - base for text in row[:rank]] for row in rows])
    array = np.zeros(keys.max(axis=0) + 1)
    array[tuple(keys.T)] = [float(row[rank]) if weighted else 1.0 for row in rows]
    return array
