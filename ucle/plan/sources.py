"""The source of a tensor's data as the compiler sees it: table columns or an array in memory.

These are frozen descriptions without data: the array or the Arrow table itself stays with the
program that received it, under the tensor's name.
"""

from __future__ import annotations

import datetime
from dataclasses import replace
from enum import Enum

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.layouts import Layout, Level


@dataclass(frozen=True)
class TableName:
    """A table or view, by the parts of its qualified name."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True)
class DataFile:
    """A file that DuckDB reads, or a glob of files."""

    path: str

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class ParquetFile(DataFile):
    """A Parquet file, or several."""

    united: bool = False
    """True if columns have types that fit the values of all files, not only those of the first."""

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class CsvFile(DataFile):
    """A text file of rows; DuckDB reads it with exactly these settings and detects nothing.

    `columns` is empty until the file has been inspected: `ucle.inputs.csv_dialect` finds its
    format, `ucle.inputs.csv_types` the types that fit all of its values.
    """

    delimiter: str = ","
    skipped: int = 0
    """Lines before the first row, such as a header; comments do not count."""
    comment: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    """The names and types of the columns."""

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class InMemory:
    """A table in memory: `kind` is the kind of object it was, `name` its registered name.

    The name contains blanks, so that no tensor and few tables have the same name.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True)
class OneRow:
    """The relation of one row that always exists, for tensors that are made from no input."""

    def __str__(self) -> str:
        return "one row"


@dataclass(frozen=True)
class Names:
    """The relation of some names, in their order: the coordinates of the columns of a table."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return "names of columns"


Origin = TableName | DataFile | InMemory | OneRow | Names

NAME = "name"
"""The column of a relation of names."""


class Nulls(Enum):
    """What a source makes of NULLs among its values."""

    REFUSED = "error"
    MISSING = "missing"
    """They stand for the fill."""
    OBSERVED = "observed"
    """The tensor is True where there is a value, and False where it is NULL or not stored."""


RangeEnd = int | str | datetime.date | datetime.time | None
"""An end of a range of coordinates, a `datetime.datetime` among them; None if there is none."""


@dataclass(frozen=True)
class TimePairs:
    """Pairs of coordinates that a key column stands for, in place of the rows of its relation.

    The first of a pair is a coordinate of a result, the second one of the entries it is made from.
    The coordinates are times; those of a ``"range"`` are of any type that has an order.
    """

    axis: int
    """The axis whose key column holds the coordinates."""
    rank: int
    """The number of axes of the relation."""
    kind: str
    """``"step"`` pairs the start of each step with the times in it, ``"first"`` and ``"last"`` with
    one of them; ``"window"`` pairs each time with those that are less than a step older.
    ``"range"`` pairs each coordinate from `low` to `high` with itself."""
    months: int = 0
    """The length of a step, which is either months or microseconds."""
    microseconds: int = 0
    every: bool = False
    """True if the coordinates of results are all steps from the first to the last."""
    unique: bool = False
    """True if no time is in two rows of the relation, as that is refused."""
    column: str = ""
    """The column, as soon as it is known."""
    type: str = ""
    low: RangeEnd = None
    high: RangeEnd = None
    """The ends of a range, both of which belong to it."""
    of: TimePairs | None = None
    """Pairs whose results have the coordinates, in place of the column; None for the column."""


@dataclass(frozen=True)
class Features:
    """Columns that a wide table is read from as rows: numbers, and categories as 1s."""

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    booleans: tuple[str, ...]
    """Those of the categories that are booleans."""


@dataclass(frozen=True)
class TableSource:
    """A tensor in the columns of a relation.

    `keys` are the columns of the leading axes. `value` is the column of values; None means
    `constant` in every row. `dtype` is the element type of the values, and `pairs` is True if they
    are written as pairs (re, im). `narrowed` is the type of a column that may have numbers that
    `dtype` cannot represent; these must not occur. `encoded` says for each key whether its values
    go through a dictionary. `dense` is the shape of the array in the value column (empty: a
    number), `nesting` the depth of the lists in which that array is written. `sum_duplicates` adds
    up rows that share coordinates, arrays element by element. `key_axes` are the axes of the keys
    if they are not the leading ones. `kept_as` is the layout of a table of ours whose arrays are
    BLOBs, as kernels take them. `table` is True if the relation is a DuckDB table, of which reading
    a part costs a part of the price; a view may have to be computed for each part. `computed` is
    True if it is a view, or a table of another system, which each reader queries. `presence` is
    True if the tensor holds True for each value that is not NULL. `times` are the pairs of times
    that are read in place of the rows. `tiles` are the
    positions of a tile along the axes of the keys (0: a key is a position itself) if arrays hold
    tiles along some of them; empty if there are none. `symmetric` is True if a row stands for its
    first two keys in either order. `key_types` are DuckDB's types of the keys. `keys_as` has the
    types in which keys are read when they meet keys of other tables (`ucle.inputs.column_types`),
    and None for keys that are read unchanged. `wide` are the columns of a wide table, each of which
    holds one entry of a row: they are read as one array, in the column `value` of a subquery.
    `placed` is True if a dictionary numbers these columns otherwise than by their places. `unfit`
    are those that may hold numbers which `dtype` cannot represent, with their types, and True where
    no number may be rounded; such numbers must not occur. `nulls` says what NULLs among the values
    mean, and `missing` is the number that they stand for. `fixed_length` is True if the type of the
    value column states the lengths of its arrays, as ``FLOAT[3]`` does. `features` are columns that
    are read in place of the last key and the value, a row for each of their values; with a shape
    `dense`, they are read as one array in each row, at the places that a dictionary gives them.
    `ragged` is True if lists of different lengths are: the last key is the position in the list.
    `ends` is the column of the positions before which runs of one value end; each begins at its
    last key. `of_floats` is True if the truth values say something of a column of floats, so that a
    file is read as where these are the values. `single_rows` is True if it was found that no two
    rows with `features` have the same keys, so that each is an array of its own. `uncast` is True
    if all `wide` columns have the type of `dtype`: DuckDB binds a cast of each for as long as it
    reads some rows.
    """

    origin: Origin
    keys: tuple[str, ...]
    value: str | None
    dense: tuple[int, ...] = ()
    nesting: int = 0
    sum_duplicates: bool = False
    dtype: DType = DType.FLOAT64
    pairs: bool = False
    encoded: tuple[bool, ...] = ()
    key_axes: tuple[int, ...] | None = None
    constant: Scalar = 1
    narrowed: str | None = None
    kept_as: Layout | None = None
    table: bool = False
    presence: bool = False
    times: TimePairs | None = None
    tiles: tuple[int, ...] = ()
    symmetric: bool = False
    key_types: tuple[str, ...] = ()
    keys_as: tuple[str | None, ...] = ()
    wide: tuple[str, ...] = ()
    placed: bool = False
    unfit: tuple[tuple[str, str, bool], ...] = ()
    nulls: Nulls = Nulls.REFUSED
    missing: Scalar = 0
    fixed_length: bool = False
    features: Features | None = None
    ragged: bool = False
    ends: str | None = None
    of_floats: bool = False
    single_rows: bool = False
    computed: bool = False
    uncast: bool = False

    @property
    def from_database(self) -> bool:
        """True if the data comes from a database or a file, and may change."""
        return not isinstance(self.origin, InMemory | OneRow | Names)

    @property
    def lasts(self) -> bool:
        """True if the source exists as long as the database, so that a view may read it."""
        return not isinstance(self.origin, InMemory)

    @property
    def rank(self) -> int:
        """The number of axes of the tensor."""
        return len(self.keys) + len(self.dense) - sum(map(bool, self.tiles))

    @property
    def has_entry_in_row(self) -> bool:
        """True if each row holds one entry, at the coordinates that its keys are."""
        many = self.dense, self.wide, self.times, self.features, self.ends
        return not (self.symmetric or any(many))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        return tuple(dict.fromkeys(x for x in (*self.keys, self.value, self.ends) if x is not None))

    @property
    def tile_sizes(self) -> frozenset[int]:
        """The distinct tile sizes. With more than one, the scan takes the arrays apart."""
        return frozenset(filter(None, self.tiles))

    @property
    def apart(self) -> TableSource:
        """The rows of this source as a tensor with separate axes for tiles and positions within."""
        return replace(self, tiles=()) if self.tiles else self

    @property
    def names(self) -> TableSource:
        """The relation of the names of a wide table's columns, which are coordinates."""
        return TableSource(Names(self.wide), (NAME,), None, encoded=(True,), key_types=("VARCHAR",))

    @property
    def keys_alone(self) -> TableSource:
        """The same rows where only keys are read, without the arrays of a wide table."""
        return self.entries_of(self.wide[0]) if self.wide and not self.symmetric else self

    @property
    def lists_alone(self) -> TableSource:
        """The rows of a table of lists of different lengths: True for each, whatever is in it."""
        keys, encoded, types = self.keys[:-1], self.encoded[:-1], self.key_types[:-1]
        return TableSource(
            self.origin, keys, None, dtype=DType.BOOL, encoded=encoded, key_types=types
        )

    @property
    def without_features(self) -> TableSource:
        """The same rows with their own columns alone; only these are read."""
        if self.features is None:
            return self
        own = len(self.keys) - (not self.dense)  # arrays of features have no key for them
        keys, encoded, types = self.keys[:own], self.encoded[:own], self.key_types[:own]
        return replace(self, keys=keys, encoded=encoded, key_types=types, features=None)

    def entries_of(self, name: str) -> TableSource:
        """One column of a wide table, by itself: the entries at one coordinate."""
        return replace(
            self, value=name, wide=(), dense=(), nesting=0, unfit=(), nulls=Nulls.REFUSED
        )

    def is_encoded(self, axis: int) -> bool:
        """Return whether coordinates of an axis go through a dictionary."""
        return axis < len(self.encoded) and self.encoded[axis]

    def key_as(self, key: str) -> str | None:
        """Return the type in which a key column is read; None if it is read unchanged."""
        return dict(zip(self.keys, self.keys_as, strict=False)).get(key)

    @property
    def layout(self) -> Layout:
        """The layout in which the tensor is stored."""
        if self.kept_as is not None:
            return self.kept_as
        if self.tiles and len(self.tile_sizes) > 1:
            return Layout.of(True for _ in range(self.rank))
        if self.tiles:
            levels = [Level.TILED if size else Level.PROMOTED for size in self.tiles]
            levels += [Level.DENSE] * (self.rank - len(levels))
            return Layout.from_levels(*levels, tile=min(self.tile_sizes))
        axes = range(len(self.keys)) if self.key_axes is None else self.key_axes
        rank = len(self.keys) + len(self.dense)
        return Layout.of(axis in axes for axis in range(rank))


@dataclass(frozen=True)
class Dictionary:
    """The distinct values of some key columns, in order and numbered from 0."""

    name: str
    columns: tuple[tuple[TableSource, str], ...]
    size: int


@dataclass(frozen=True)
class ArraySource:
    """A dense array in memory; it can be handed over in any layout."""

    tensor: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ListsSource:
    """A sparse matrix in memory; it can be handed over in any layout with a compressed axis."""

    tensor: str
    shape: tuple[int, ...]
    kind: str
    """The kind of object it was."""


InputSource = TableSource | ArraySource | ListsSource
