"""The options with which a caller says how a table holds a tensor: `table`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ucle.errors import ArgumentError, ArgumentTypeError, InputError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dtypes import Scalar
from ucle.inputs.inputs import element_type
from ucle.inputs.objects import read_stream
from ucle.inputs.one_hot import OneHot
from ucle.inputs.table_input import TableInput
from ucle.language.bounds import checked_size
from ucle.plan.sources import Nulls

_COLUMNS = args.either(
    (Mapping, args.mapping(args.text, args.text, "a dict from label to column")),
    (str, args.text),
    otherwise=args.several(args.text, "names of columns", once=True),
)
_STATED_SIZES = args.several(args.anything, "sizes of axes", once=True)


def _few_characters(most: int) -> args.Check:
    """A check for a string of 1 to `most` bytes, none of which has another meaning in CSV files."""

    def check(value: Any, where: str) -> None:
        args.text(value, where)
        if not 0 < len(value.encode(errors="replace")) <= most or set(value) & set('"\r\n\0'):
            raise InputError(
                "this cannot separate fields, or begin comments",
                where=where,
                expected="one character" if most == 1 else "one character, or a few",
                found=repr(value),
            )

    return check


def _column_or_number(value: Any, where: str) -> None:
    if not isinstance(value, str | bool | int | float | complex | np.generic):
        raise ArgumentTypeError(
            "this is neither a column nor a number",
            where=where,
            expected="the name of the value column, or a number that each row holds",
            found=repr(value),
        )
    (args.text if isinstance(value, str) else args.number)(value, where)


def _column_or_categories(value: Any, where: str) -> None:
    if not isinstance(value, OneHot):
        args.text(value, where)


_VALUE = args.either(
    ((list, tuple), args.several(_column_or_categories, "names of columns")),
    (OneHot, args.anything),
    otherwise=_column_or_number,
)


@validated(
    relation=args.tensor_data,
    columns=_COLUMNS,
    value=_VALUE,
    columns_as=args.word,
    ragged=args.word,
    ends=args.text,
    nulls=args.choice("error", "missing"),
    shape=_STATED_SIZES,
    bounds=_STATED_SIZES,
    fill=args.number,
    coordinates=args.either(
        (Mapping, args.mapping(args.text, args.text, "a dict from label to dictionary")),
        otherwise=args.anything,
    ),
    tiles=_STATED_SIZES,
    symmetric=args.flag,
    delimiter=_few_characters(4),
    header=args.flag,
    comment=_few_characters(1),
)
def table(
    relation: Any,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    value: str | Scalar | OneHot | Sequence[str | OneHot] | None = None,
    *,
    columns_as: str | None = None,
    ragged: str | None = None,
    ends: str | None = None,
    nulls: str = "error",
    shape: Sequence[int] | None = None,
    bounds: Sequence[int | None] | None = None,
    fill: Scalar | None = None,
    duplicates: str = "error",
    dtype: Any = None,
    coordinates: str | Mapping[str, str] = "auto",
    tiles: Sequence[int | None] | None = None,
    symmetric: bool = False,
    delimiter: str | None = None,
    header: bool | None = None,
    comment: str | None = None,
) -> TableInput:
    r"""Describe how a table holds a tensor.

    Args:
        relation: the name of a table or view, the path of a file, or a table of Arrow, pandas or
            polars.
        columns: the key columns, one per promoted axis in the order of the axes, or a dict from
            label to column. By default the leading columns; with `columns_as`, the levels of the
            index of a pandas frame, unless it is an unnamed index of integers.
        value: the value column, with numbers or arrays over the remaining axes; or a number that is
            the value of every row, whatever other columns there are. By default the only column
            besides the keys; several such columns are an error, and a table that has only key
            columns holds a 1 in every row. With `columns_as`, a list of value columns, where
            ``ucle.one_hot("colour")`` stands for a column of categories.
        columns_as: the name of an additional last axis, for a wide table: one with a row for each
            entity and a column for each feature. The coordinates of this axis are the names of the
            value columns, which are those in `value`, or all columns except the keys. They hold
            numbers or booleans, and are all read as the type to which NumPy promotes their types.
            Each category of a `ucle.one_hot` is a coordinate, such as ``colour_red``, with a
            boolean.
        ragged: the name of an additional axis, after those of the keys, for a column of lists of
            different lengths. The axis is as long as the longest list; entries beyond the end of a
            list are not stored, so they have the value of the fill. The elements of the lists may
            be arrays of one shape.
        ends: the column with the ends of runs, for a table in which each row stands for a run of
            entries with the same value. A run begins at the position in the last key column, and
            ends before the position in this column. Runs with the same other coordinates must not
            overlap.
        nulls: ``"error"``; or ``"missing"`` if a NULL among the values stands for a missing value.
            Its entry is then the fill, and `ucle.observed` returns the mask of the values that are
            not NULL.
        shape: shape of the array in the value column if the column type does not give it, as with a
            matrix in a flat list.
        bounds: size of each axis, or None to take it from the data.
        fill: the value of entries that are not stored: by default 0, or, for a file that ucle has
            written, the fill in its description.
        duplicates: ``"error"``, or ``"sum"`` to add up rows with the same coordinates.
        dtype: the element type, as a name or a NumPy type; by default that of the values, and
            float64 if every row holds the same real number. Integer types accept whole numbers,
            ``bool`` accepts 0 and 1, and floats take the nearest number; any other value is an
            error.
        coordinates: ``"auto"`` takes integers in key columns as positions, and numbers all other
            values (strings, dates, ...) in their order. ``"dictionary"`` numbers integers as well,
            for large, sparse ids. A dict from labels or key columns to names of dictionaries does
            this for these labels alone; labels with the same dictionary, such as both ends of an
            edge, share their numbering. You can choose any names except ``"auto"`` and
            ``"dictionary"``.
        tiles: size of a tile along each axis, if each row holds a block of the tensor: its keys
            number the tiles, and its array holds the block. None for an axis without tiles; omitted
            axes are not tiled. ``tiles=[16, 16]`` reads ``(bi, bj, DOUBLE[16][16])``, or a flat
            ``DOUBLE[256]``, as one matrix.
        symmetric: True if the table holds each pair once, and each row stands for its first two
            coordinates in either order: ``A[i,j]`` equals ``A[j,i]``. If it holds both orders of a
            pair, these are duplicate coordinates, which are an error unless duplicates are added
            up.
        delimiter: the string between the fields of a text file, such as ``"\t"``; ``" "`` stands
            for any number of blanks and tabs; the file is then read into memory. By default
            whichever of comma, tab, semicolon and ``|`` occurs equally often in all of the first
            lines.
        header: True if the first line of a text file has the names of its columns. Without a
            header, the names in `columns` and `value` are given to its columns from the left, and
            the rest are ``column0``, ``column1`` ... By default the first line is a header if it
            has words above numbers.
        comment: the character that begins comments in a text file; by default there are none.

    >>> table("edges", {"i": "src", "j": "dst"}, "weight").value
    'weight'
    >>> table("ratings", ["user", "item"], value=1).value
    1
    >>> table("patients.parquet", ["id"], columns_as="feature").columns_as
    'feature'
    >>> table("documents", ["document"], "words", ragged="place").ragged
    'place'
    >>> table("strokes", ["line", "start"], "ink", ends="stop").ends
    'stop'
    """
    if duplicates not in ("error", "sum"):
        raise InputError(
            "unknown treatment of duplicates",
            where="table(duplicates=...)",
            expected="'error' or 'sum'",
            found=repr(duplicates),
        )
    shared = coordinates if isinstance(coordinates, Mapping) else {}
    if not shared and coordinates not in ("auto", "dictionary"):
        raise InputError(
            "unknown treatment of coordinates",
            where="table(coordinates=...)",
            expected="'auto', 'dictionary', or a dict from label to the name of a dictionary",
            found=repr(coordinates),
        )
    _check_dictionary_names(shared)
    value = [value] if isinstance(value, OneHot) else value
    listed = value if isinstance(value, list | tuple) else None
    categories = tuple(x.column for x in listed or () if isinstance(x, OneHot))
    values = (
        None if listed is None else tuple(x.column if isinstance(x, OneHot) else x for x in listed)
    )
    _check_wide(columns_as, value, shape, tiles, symmetric)
    _check_ragged(ragged, columns_as, value, shape, tiles)
    _check_runs(ends, ragged, columns_as, nulls, shape, tiles, duplicates, symmetric)
    named: tuple[Any, ...] | None
    if isinstance(columns, Mapping):
        named = tuple(columns.items())
    else:
        named = None if columns is None else tuple(columns)
    return TableInput(
        read_stream("table", relation),
        named,
        _plain(value),
        columns_as,
        values,
        categories,
        ragged,
        ends,
        Nulls(nulls),
        None if shape is None else tuple(checked_size(n, "table(shape=...)") for n in shape),
        None
        if bounds is None
        else tuple(None if n is None else checked_size(n, "table(bounds=...)") for n in bounds),
        fill.item() if isinstance(fill, np.generic) else fill,
        duplicates == "sum",
        None if dtype is None else element_type(dtype, "table(dtype=...)"),
        coordinates == "dictionary",
        tuple(shared.items()),
        tiles=None if tiles is None else checked_tiles(tiles),
        symmetric=symmetric,
        delimiter=delimiter,
        header=None if header is None else bool(header),
        comment=comment,
    )


def _check_dictionary_names(shared: Mapping[str, str]) -> None:
    """Check that no dictionary is called like a treatment of coordinates.

    Labels with the same dictionary share their numbering, which nobody means by these words.

    Raises:
        InputError: one is.
    """
    words = [name for name in shared.values() if name in ("auto", "dictionary")]
    if words:
        own = {key: f"{key}_ids" for key, name in shared.items() if name == "dictionary"}
        raise InputError(
            f"{words[0]!r} is a treatment of all coordinates, and no name of a dictionary",
            where="table(coordinates=...)",
            expected="the name of a dictionary for each label: those of one name share it",
            found=repr(dict(shared)),
            hint=f"coordinates={own!r} numbers the values of each"
            if own
            else "leave out labels that have the default",
        )


def _plain(value: Any) -> str | Scalar | None:
    """The value column or the value of every row; None if there are several columns."""
    if isinstance(value, list | tuple):
        return None
    plain: str | Scalar | None = value.item() if isinstance(value, np.generic) else value
    return plain


def _check_wide(
    columns_as: str | None, value: Any, shape: object, tiles: object, symmetric: bool
) -> None:
    """Check that the options for the value columns of a wide table go together.

    Raises:
        ArgumentError: they do not.
    """
    several = isinstance(value, list | tuple)
    if several and columns_as is None:
        raise ArgumentTypeError(
            "this is neither a column nor a number",
            where="table(value=...)",
            expected="the name of the value column, or a number that each row holds",
            found=repr(value),
            hint="columns_as= names the axis that several value columns form",
        )
    if columns_as is None:
        return
    others = {"shape": shape, "tiles": tiles, "symmetric": symmetric or None}
    others["value"] = None if several else value
    if wrong := [name for name, each in others.items() if each is not None]:
        raise ArgumentError(
            f"columns_as= and {wrong[0]}= contradict each other",
            where=f"table({wrong[0]}=...)",
            expected="value columns with a number in each row: value=['height', 'weight']",
            found=repr(others[wrong[0]]),
        )


def _check_ragged(
    ragged: str | None, columns_as: str | None, value: Any, shape: object, tiles: object
) -> None:
    """Check that no option contradicts lists of different lengths.

    Raises:
        ArgumentError: one does.
    """
    number = None if value is None or isinstance(value, str | list | tuple) else value
    others = {"columns_as": columns_as, "value": number, "shape": shape, "tiles": tiles}
    wrong = [name for name, each in others.items() if each is not None]
    if ragged is not None and wrong:
        raise ArgumentError(
            f"ragged= and {wrong[0]}= contradict each other",
            where=f"table({wrong[0]}=...)",
            expected="a column of lists, each of its own length",
            found=repr(others[wrong[0]]),
        )


def _check_runs(
    ends: str | None,
    ragged: str | None,
    columns_as: str | None,
    nulls: str,
    shape: object,
    tiles: object,
    duplicates: str,
    symmetric: bool,
) -> None:
    """Check that no option contradicts runs of one value.

    Raises:
        ArgumentError: one does.
    """
    others = {
        "ragged": ragged,
        "columns_as": columns_as,
        "nulls": None if nulls == "error" else nulls,
        "shape": shape,
        "tiles": tiles,
        "duplicates": None if duplicates == "error" else duplicates,
        "symmetric": symmetric or None,
    }
    wrong = [name for name, each in others.items() if each is not None]
    if ends is not None and wrong:
        raise ArgumentError(
            f"ends= and {wrong[0]}= contradict each other",
            where=f"table({wrong[0]}=...)",
            expected="runs of one value each, which do not overlap",
            found=repr(others[wrong[0]]),
        )


def checked_tiles(tiles: Sequence[int | None]) -> tuple[int | None, ...]:
    """Check the sizes of tiles that a caller states, and drop trailing axes without tiles.

    Raises:
        InputError: no axis is tiled, or a tile has size 0.
    """
    sizes = [None if size is None else checked_size(size, "table(tiles=...)") for size in tiles]
    if any(size == 0 for size in sizes) or not any(sizes):
        raise InputError(
            "no axis is tiled, or one has tiles without positions",
            where="table(tiles=...)",
            expected="positions of a tile, at least 1, or None for an axis without tiles",
            found=repr(tiles),
        )
    while sizes[-1] is None:
        sizes.pop()
    return tuple(sizes)
