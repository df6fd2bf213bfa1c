"""The columns of a table that hold a tensor: keys, then numbers or arrays.

Takes an input as `ucle.inputs.inputs` describes it and the columns that DuckDB reports, and returns
a `TableSource`. Only names and types are inspected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ucle.errors import InputError, ValueTypeError
from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.exact_numbers import HOLDS, exact_scalar
from ucle.foundation.names import fold_name, unique_names
from ucle.inputs.column_roles import (
    array_rank,
    assign_columns,
    find_column,
    find_columns,
    stated_dictionaries,
    tiled_axes,
)
from ucle.inputs.column_types import (
    INTEGER_TYPES,
    UNFIT_KEYS,
    Column,
    array_sizes,
    common_key_type,
    is_of_type,
    is_pair,
    narrowed_type,
    nesting,
    value_type,
)
from ucle.inputs.inputs import DescribedTable
from ucle.inputs.one_hot import features_of, split_categories
from ucle.inputs.runs import check_runs, split_ends
from ucle.inputs.table_input import TableInput
from ucle.inputs.unfit_columns import key_hint, value_hint
from ucle.inputs.wide_tables import (
    assign_wide,
    check_wide_types,
    common_value_type,
    holds_numbers,
    unfit_columns,
)
from ucle.plan.sources import Nulls, TableSource

RECOMPILE = "program.recompile() compiles the program again on this data"
"""Hint for errors about data that a program was not compiled for."""


def table_source(
    name: str,
    described: DescribedTable,
    columns: Sequence[Column],
    labels: Sequence[str],
    foreign: Mapping[str, str] | None = None,
) -> TableSource:
    """Find the key and value columns of a table.

    Args:
        name: the tensor, for messages.
        described: the input.
        columns: the columns of the relation.
        labels: labels of the tensor's axes; their number is the rank.
        foreign: columns that the user did not put into the data, with a description of each.

    Returns:
        The source; `dense` is empty where the shape of an array column must come from the data.

    Raises:
        InputError: an unknown column, or columns that do not fit the rank.
        ValueTypeError: key columns that are not integers, values that are not numbers.
    """
    spec, where = described.spec, f"input {name}, {described.origin}"
    if spec.columns_as is not None:
        return _wide_source(described, columns, labels, where, foreign or {})
    columns, ends = split_ends(spec, columns, where)
    keys, value = assign_columns(spec, columns, labels, where, foreign or {})
    if spec.ragged is not None:
        keys, value = item_columns(spec.ragged, keys, value, where)
    names = [key.name for key in keys]
    numbered = _numbered_axes(spec, labels, names, where)
    _check_types(keys, value, where, spec)
    depth = nesting(value.type) if value else 0
    dense = declared_shape(spec, value, depth)
    tiles = tuple(size or 0 for size in spec.tiles or ())
    rank = len(keys) - tiled_axes(spec) + (array_rank(spec, value) if value else 0)
    if rank != len(labels):
        raise InputError(
            f"the columns make a tensor of rank {rank}",
            where=where,
            expected=f"rank {len(labels)}: {name}[{','.join(labels)}]",
            found="keys "
            + (", ".join(key.name for key in keys) or "none")
            + (f", values {value.name} {value.type}" if value else ", no values"),
            hint="name the columns with ucle.table(relation, columns, value); "
            "value=1 makes every row a 1",
        )
    if tiles:
        tiles += (0,) * (len(keys) - len(tiles))
        _check_tile_columns(tiles, keys, value, where)
    masks = spec.nulls is Nulls.OBSERVED
    numbers = not masks and not spec.presence
    constant: Scalar = 1 if isinstance(spec.value, str | None) else spec.value
    stored = value_type(value.type) if value else _constant_type(constant)
    of_floats = not numbers and value is not None and _has_floats([value])
    if spec.presence:
        stored, constant = DType.BOOL, True
    assert stored is not None
    if value is not None and depth and spec.nulls is not Nulls.REFUSED:
        raise ValueTypeError(
            "missing values are not told apart inside arrays",
            where=f"{where}, column {value.name}",
            expected="a column of numbers, or columns_as= for several, with nulls='missing'",
            found=value.type,
        )
    dtype = DType.BOOL if masks else spec.dtype or stored
    constant = True if masks else constant
    if not spec.presence:
        _check_real(value, dtype, where)
    if value is None and exact_scalar(constant, dtype) is None:
        raise ValueTypeError(
            "the value of all rows is not of the tensor's element type",
            where=where,
            expected=f"for {dtype.value} {HOLDS[dtype.kind]}",
            found=repr(constant),
        )
    source = TableSource(
        described.origin,
        tuple(key.name for key in keys),
        value.name if value else None,
        dense,
        depth,
        spec.sum_duplicates,
        dtype,
        pairs=stored.kind == "c" and value is not None and not masks,
        encoded=_encoded_keys(spec, keys[: len(labels)], numbered),
        constant=constant,
        narrowed=narrowed_type(value.type, dtype) if value and numbers else None,
        presence=spec.presence and value is not None,
        tiles=tiles,
        symmetric=spec.symmetric,
        key_types=tuple(key.type for key in keys),
        keys_as=_mirrored_types(keys, where) if spec.symmetric else (),
        nulls=spec.nulls,
        missing=0 if spec.fill is None else spec.fill,
        fixed_length=value is not None and not tiles and bool(array_sizes(value.type)),
        ragged=spec.ragged is not None,
        ends=None if ends is None else ends.name,
        of_floats=of_floats,
    )
    if ends is not None:
        check_runs(source, ends, where)
    if spec.symmetric and (tiles or len(keys) < 2):
        raise InputError(
            "a table is symmetric in its first two keys, which are positions",
            where=where,
            expected="two key columns and more, without tiles",
            found="tiles" if tiles else f"{len(keys)} keys",
        )
    if dense:
        check_tiles(source, where)
    return source


def item_columns(
    position: str, keys: Sequence[Column], value: Column | None, where: str
) -> tuple[list[Column], Column]:
    """The key and value columns of the items of lists: one more key, and a list less.

    Raises:
        ValueTypeError: the value column holds no lists.
        InputError: a key column is called as the positions are to be.
    """
    if value is None or not nesting(value.type):
        raise ValueTypeError(
            "the value column holds no lists",
            where=where,
            expected="a column of lists, as ragged= says",
            found="no value column" if value is None else f"column {value.name} {value.type}",
        )
    taken = {fold_name(column.name) for column in (*keys, value)}
    if fold_name(position) in taken:
        raise InputError(
            f"{position!r} is a column already",
            where=f"{where}, ragged",
            expected="a new name for the axis of positions in lists",
            found=position,
        )
    items = value.type[: value.type.rindex("[")]
    return [*keys, Column(position, "INTEGER")], Column(value.name, items)


def _wide_source(
    described: DescribedTable,
    columns: Sequence[Column],
    labels: Sequence[str],
    where: str,
    foreign: Mapping[str, str],
) -> TableSource:
    """The source of a wide table, whose value columns are the last axis."""
    spec = described.spec
    keys, values = assign_wide(spec, columns, labels, where, foreign)
    if spec.one_hot:
        return _feature_source(described, keys, values, labels, where)
    names = [key.name for key in keys]
    numbered = _numbered_axes(spec, labels, [*names, spec.columns_as or ""], where)
    _check_types(keys, None, where, spec)
    masks = spec.nulls is Nulls.OBSERVED
    if not masks:
        check_wide_types(spec, keys, values, where)
    dtype = DType.BOOL if masks else spec.dtype or common_value_type(values)
    (value,) = unique_names(["values"], set(map(fold_name, names)))
    return TableSource(
        described.origin,
        tuple(names),
        value,
        (len(values),),
        1,
        spec.sum_duplicates,
        dtype,
        encoded=_encoded_keys(spec, keys, numbered),
        key_types=tuple(key.type for key in keys),
        wide=tuple(column.name for column in values),
        unfit=() if masks else unfit_columns(values, dtype, spec.dtype),
        nulls=spec.nulls,
        missing=0 if spec.fill is None else spec.fill,
        of_floats=masks and _has_floats(values),
        uncast=all(is_of_type(column.type, dtype) for column in values),
    )


def _feature_source(
    described: DescribedTable,
    keys: Sequence[Column],
    values: Sequence[Column],
    labels: Sequence[str],
    where: str,
) -> TableSource:
    """The source of a wide table with categories among its value columns."""
    spec = described.spec
    numbers, categories = split_categories(spec, values)
    feature, value = unique_names(
        [spec.columns_as or "", "value"], {fold_name(x.name) for x in (*keys, *values)}
    )
    keys = [*keys, Column(feature, "VARCHAR")]
    numbered = _numbered_axes(spec, labels, [key.name for key in keys], where)
    _check_types(keys, None, where, spec)
    masks = spec.nulls is Nulls.OBSERVED
    if not masks:
        check_wide_types(spec, keys[:-1], numbers, where)
    ones = [Column(column.name, "BOOLEAN") for column in categories]
    dtype = DType.BOOL if masks else spec.dtype or common_value_type([*numbers, *ones])
    return TableSource(
        described.origin,
        tuple(key.name for key in keys),
        value,
        sum_duplicates=spec.sum_duplicates,
        dtype=dtype,
        encoded=_encoded_keys(spec, keys, numbered),
        key_types=tuple(key.type for key in keys),
        unfit=() if masks else unfit_columns(numbers, dtype, spec.dtype),
        nulls=spec.nulls,
        features=features_of(numbers, categories, where),
        of_floats=masks and _has_floats(numbers),
    )


def _has_floats(values: Sequence[Column]) -> bool:
    """True if some columns hold floats, which may be NaN."""
    types = (value_type(column.type) for column in values)
    return any(type_ is not None and type_.kind in "fc" for type_ in types)


def _numbered_axes(
    spec: TableInput, labels: Sequence[str], names: Sequence[str], where: str
) -> dict[int, str]:
    """The dictionaries that the caller has stated for axes, which `names` names in their order.

    Raises:
        InputError: one is stated for something that is no axis.
    """
    numbered, unknown = stated_dictionaries(spec.dictionaries, labels, names)
    if unknown:
        raise InputError(
            f"coordinates names {unknown[0]!r}, which is no label and no key column",
            where=where,
            expected="labels of the tensor or its key columns: "
            + ", ".join(dict.fromkeys((*labels, *names))),
            found=unknown[0],
        )
    return numbered


def _encoded_keys(
    spec: TableInput, keys: Sequence[Column], numbered: Mapping[int, str]
) -> tuple[bool, ...]:
    """For each key column, True if its values go through a dictionary."""
    return tuple(
        spec.encode
        or axis in spec.encoded_keys
        or axis in numbered
        or key.type not in INTEGER_TYPES
        for axis, key in enumerate(keys)
    )


def _mirrored_types(keys: Sequence[Column], where: str) -> tuple[str | None, ...]:
    """The types in which keys are read if the first two are swapped for the mirrored entries.

    Raises:
        ValueTypeError: the two keys are of different kinds.
    """
    types = [key.type for key in keys[:2]]
    if len(set(types)) < 2:
        return ()
    if (common := common_key_type(types)) is None:
        raise ValueTypeError(
            "the coordinates of a symmetric table are of two types",
            where=f"{where}, column {keys[1].name}",
            expected=f"values as in column {keys[0].name}: {types[0]}",
            found=types[1],
        )
    return (common, common, *(None for _ in keys[2:]))


def _check_tile_columns(
    tiles: tuple[int, ...], keys: Sequence[Column], value: Column | None, where: str
) -> None:
    if value is None or not nesting(value.type) or len(tiles) > len(keys):
        raise InputError(
            "there are tiles, but not a key for each of their axes, and arrays",
            where=where,
            expected=f"keys for {len(tiles)} axes, and a column of arrays",
            found="keys "
            + (", ".join(key.name for key in keys) or "none")
            + (f", values {value.name} {value.type}" if value else ", no values"),
        )


def check_tiles(source: TableSource, where: str) -> None:
    """Check that the arrays' leading axes have the stated tile sizes.

    Raises:
        InputError: they do not.
    """
    sizes = tuple(filter(None, source.tiles))
    if source.dense[: len(sizes)] != sizes:
        raise InputError(
            "the arrays do not have the shape of the tiles",
            where=f"{where}, column {source.value}",
            expected=f"arrays of {' x '.join(map(str, sizes))} positions, and other axes behind",
            found=" x ".join(map(str, source.dense)),
            hint="ucle.table(tiles=...) states the size of a tile along each axis",
        )


def check_tile_keys(source: TableSource, where: str) -> None:
    """Check that keys that number tiles do not go through a dictionary.

    Raises:
        ValueTypeError: one does.
    """
    pairs = zip(source.keys, source.encoded, source.tiles, strict=False)
    for name, encoded, size in pairs:
        if encoded and size:
            raise ValueTypeError(
                "the tiles along an axis are not numbered",
                where=f"{where}, column {name}",
                expected="integers from 0, one for each tile",
                found="values that go through a dictionary",
            )


def check_columns(
    name: str, source: TableSource, columns: Sequence[Column], stated: DType | None = None
) -> tuple[TableSource, Column | None]:
    """Check that a relation still has the columns that a source was made from.

    Returns:
        The current source, and the value column, if there is one.

    Raises:
        InputError: a column is gone.
        ValueTypeError: a column now has an unsuitable type.
    """
    where = f"input {name}, {source.origin}"
    keys = find_columns(columns, where, source.keys)
    value = None
    if source.value is not None and not source.wide:
        value = find_column(columns, where, source.value)
    _check_types(keys, value, where)
    types = tuple(key.type for key in keys)
    if types != source.key_types:
        keys_as = _mirrored_types(keys, where) if source.symmetric else ()
        source = replace(source, key_types=types, keys_as=keys_as)
    for key, encoded in zip(keys, source.encoded, strict=True):
        if not encoded and key.type not in INTEGER_TYPES:
            raise ValueTypeError(
                "a key column held integers when the program was compiled",
                where=f"{where}, column {key.name}",
                expected="an integer type",
                found=key.type,
                hint=RECOMPILE,
            )
    if source.wide:
        return _check_wide_columns(source, columns, stated, where), None
    if value and nesting(value.type) != source.nesting:
        raise ValueTypeError(
            "the value column holds arrays of another rank than when the program was compiled",
            where=f"{where}, column {value.name}",
            expected=f"lists {source.nesting} deep" if source.nesting else "numbers",
            found=value.type,
            hint=RECOMPILE,
        )
    if value is None or source.presence:
        return source, value
    _check_real(value, source.dtype, where)
    if source.pairs != is_pair(value.type):
        raise ValueTypeError(
            "the value column held complex numbers, or holds them now",
            where=f"{where}, column {value.name}",
            expected="pairs (re, im)" if source.pairs else "real numbers",
            found=value.type,
            hint=RECOMPILE,
        )
    return replace(source, narrowed=narrowed_type(value.type, source.dtype)), value


def _check_wide_columns(
    source: TableSource, columns: Sequence[Column], stated: DType | None, where: str
) -> TableSource:
    """Check that a relation still has the value columns of a wide table, and numbers in them."""
    values = find_columns(columns, where, source.wide)
    if source.nulls is Nulls.OBSERVED:
        return source
    for column in values:
        if not holds_numbers(column):
            raise ValueTypeError(
                "a value column held numbers when the program was compiled",
                where=f"{where}, column {column.name}",
                expected="numbers or booleans",
                found=column.type,
                hint=RECOMPILE,
            )
    return replace(source, unfit=unfit_columns(values, source.dtype, stated))


def _constant_type(value: Scalar) -> DType:
    """The element type of a constant that every row holds."""
    if isinstance(value, bool):
        return DType.BOOL
    return DType.COMPLEX128 if isinstance(value, complex) else DType.FLOAT64


def _check_real(value: Column | None, dtype: DType, where: str) -> None:
    """Check that complex numbers are not read as real ones."""
    if value and is_pair(value.type) and dtype.kind != "c":
        raise ValueTypeError(
            "complex numbers are not of the type that is stated",
            where=f"{where}, column {value.name}",
            expected=f"real numbers for {dtype.value}",
            found=value.type,
            hint=f"a view with {value.name}.re picks the real part",
        )


def _check_types(
    keys: Sequence[Column], value: Column | None, where: str, spec: TableInput | None = None
) -> None:
    """Check that columns can be keys and values; with a spec, the caller may mean others."""
    for key in keys:
        if nesting(key.type) or key.type.startswith(UNFIT_KEYS):
            raise ValueTypeError(
                "a key column does not hold coordinates",
                where=f"{where}, column {key.name}",
                expected="integers, or strings, dates or the like, which are numbered",
                found=key.type,
                hint=key_hint(key, spec),
            )
    if value and value_type(value.type) is None:
        raise ValueTypeError(
            "the value column does not hold numbers",
            where=f"{where}, column {value.name}",
            expected="a numeric type, pairs STRUCT(re DOUBLE, im DOUBLE), or lists of either",
            found=value.type,
            hint=value_hint(value, spec),
        )


def declared_shape(spec: TableInput, value: Column | None, depth: int) -> tuple[int, ...]:
    """The shape of the arrays, as far as the caller or the column type states it."""
    if spec.shape is not None or not depth or value is None:
        return spec.shape or ()
    if spec.tiles and depth == 1:
        return tuple(size for size in spec.tiles if size)
    return array_sizes(value.type)
