"""Dictionaries: labels whose coordinates are strings, or integers of which few are in use.

Axes that must have the same size share a dictionary: the distinct values of all their key columns,
sorted and numbered from 0. The size of such a label is the number of these values; a dense axis of
the same label follows the order of the dictionary. The dictionary is a table of the script, made
from the data when the script runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace

from ucle.database.data_versions import Version, memory_version
from ucle.database.dictionary_sizes import dictionary_size
from ucle.database.session import Session
from ucle.errors import CoordinateError, UnsupportedError, ValueTypeError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa
from ucle.foundation.names import unique_names
from ucle.inputs.column_types import KINDS_OF_TIME, NOTHING, common_key_type, key_kind
from ucle.inputs.relations import register_inputs
from ucle.inputs.selected_coordinates import as_coordinate
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import PickedPositions
from ucle.language.bounds import AxisBound, SizeClasses
from ucle.language.syntax import Site
from ucle.plan.sources import NAME, Dictionary, Origin, TableSource
from ucle.sqlgen.input_queries import absent_query

LONGEST_SHOWN = 60
"""The number of characters of a type that a message shows; an ENUM type lists all its values."""


@dataclass(frozen=True)
class Dictionaries:
    """The dictionaries of a program, and the axes of its inputs that use them."""

    tables: tuple[Dictionary, ...] = ()
    axes: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """The name of the dictionary, by input and position of the axis."""

    @property
    def ordered(self) -> frozenset[str]:
        """Those of dates and times, by name."""
        return frozenset(each.name for each in self.tables if _is_of_times(each))

    def of(self, tensor: str, axis: int) -> str | None:
        """The dictionary of an axis, if it has one."""
        return self.axes.get((tensor, axis))


def with_common_keys(
    inputs: Mapping[str, BoundInput], classes: SizeClasses
) -> dict[str, BoundInput]:
    """Read keys under one label in one type, and join the classes of shared dictionaries.

    Args:
        inputs: the bound inputs.
        classes: classes of axes of the same size.

    Raises:
        ValueTypeError: a label is addressed by a dictionary in one table, by position in another,
            or by values of two kinds.
    """
    for name, bound in inputs.items():
        for label, shared in bound.dictionaries.items():
            # In this order, an axis represents the class: bounds know its size.
            classes.join((f"dictionary {shared}", 0), (name, bound.labels.index(label)))
    read_as: dict[tuple[str, int], str] = {}
    placed: set[str] = set()
    for group in _groups(inputs, classes):
        encoded = [member for member in group if _is_encoded(inputs, member)]
        if encoded:
            _check_all_encoded(inputs, group, encoded)
            if len({_column(inputs, member) for member in encoded}) > 1:
                placed |= {x[0] for x in encoded if _is_of_names(inputs, x)}
            _check_places(inputs, classes, encoded, placed)
            common = _common_type(inputs, encoded)
            read_as |= {x: common for x in encoded if common not in (_key_type(inputs, x), NOTHING)}
    return {
        name: _with_keys(
            bound, [read_as.get((name, axis)) for axis in range(len(bound.labels))], name in placed
        )
        for name, bound in inputs.items()
    }


def _groups(inputs: Mapping[str, BoundInput], classes: SizeClasses) -> list[list[tuple[str, int]]]:
    """The axes whose coordinates are in key columns or are names of columns, by equal size."""
    members: dict[object, list[tuple[str, int]]] = {}
    for name, bound in inputs.items():
        for axis in range(_count_axes(bound)):
            members.setdefault(classes.find((name, axis)), []).append((name, axis))
    return list(members.values())


def _count_axes(bound: BoundInput) -> int:
    """The number of axes, from the first on, that have coordinates of their own."""
    source = bound.source
    return len(source.keys) + bool(source.wide) if isinstance(source, TableSource) else 0


def find_key_axes(inputs: Mapping[str, BoundInput]) -> tuple[list[Site], list[Site]]:
    """The axes of inputs that have coordinates of their own, and those whose coordinates are times.

    Args:
        inputs: the bound inputs.
    """
    keys = [(name, axis) for name, bound in inputs.items() for axis in range(_count_axes(bound))]
    encoded = [site for site in keys if _is_encoded(inputs, site)]
    times = [site for site in encoded if key_kind(_key_type(inputs, site)) in KINDS_OF_TIME]
    return [*keys], [*times]


def _with_keys(bound: BoundInput, read_as: list[str | None], placed: bool) -> BoundInput:
    source = bound.source
    if not isinstance(source, TableSource):
        return bound
    if placed != source.placed:
        source = replace(source, placed=placed)
        bound = replace(bound, source=source)
    if not (any(read_as) or source.keys_as):
        return bound
    # The first two keys of a symmetric table are read in the same type, whatever they join with.
    before = (source.keys_as if source.symmetric else ()) or (None,) * len(source.keys)
    keys_as = tuple(new or old for new, old in zip(read_as, before, strict=False))
    return replace(bound, source=replace(source, keys_as=keys_as if any(keys_as) else ()))


def _check_places(
    inputs: Mapping[str, BoundInput],
    classes: SizeClasses,
    encoded: list[tuple[str, int]],
    placed: Collection[str],
) -> None:
    """Check that no positional array shares a label with an array whose coordinates are unsorted.

    Raises:
        ValueTypeError: one does; a dictionary sorts its coordinates.
    """
    moved = next((x for x in encoded if _is_moved(inputs, x, placed)), None)
    if moved is None:
        return
    label, root = inputs[moved[0]].labels[moved[1]], classes.find(moved)
    for name, bound in inputs.items():
        keys = _count_axes(bound)
        if any(classes.find((name, axis)) == root for axis in range(keys, len(bound.labels))):
            if _is_of_names(inputs, moved):
                raise _not_by_name(inputs, moved, name)
            raise ValueTypeError(
                "an array by position is beside one whose coordinates are in no order",
                where=f"input {moved[0]}, axis {label}",
                expected=f"coordinates that increase, as the positions of input {name} do",
                found="others",
                hint="sort the coordinates with sort_index() (series) or sortby() (array), or "
                "drop them with to_numpy()",
            )


def _not_by_name(
    inputs: Mapping[str, BoundInput], moved: tuple[str, int], array: str
) -> ValueTypeError:
    """The error for an array by position beside columns of which another table has the names."""
    source, label = inputs[moved[0]].source, inputs[moved[0]].labels[moved[1]]
    assert isinstance(source, TableSource)
    first, second = source.wide[:2]
    return ValueTypeError(
        "an array by position is beside tables whose entries meet by name",
        where=f"input {array}, axis {label}",
        expected=f"the names of the columns of input {moved[0]}, which are in no order",
        found="positions",
        hint=f"give the array its names: pd.Series({{{first!r}: 1.0, {second!r}: 2.0, ...}}), or a "
        "table with a key column of names if it has several axes",
    )


def _is_moved(
    inputs: Mapping[str, BoundInput], member: tuple[str, int], placed: Collection[str]
) -> bool:
    """True if a dictionary numbers an axis otherwise than by the positions that it has."""
    bound = inputs[member[0]]
    if not _is_of_names(inputs, member):
        return member[1] in bound.described.spec.unsorted
    assert isinstance(bound.source, TableSource)
    return member[0] in placed and list(bound.source.wide) != sorted(bound.source.wide)


def _is_of_names(inputs: Mapping[str, BoundInput], member: tuple[str, int]) -> bool:
    """True if the coordinates of an axis are the names of the columns of a wide table."""
    source = inputs[member[0]].source
    return isinstance(source, TableSource) and bool(source.wide) and member[1] == len(source.keys)


def _key_type(inputs: Mapping[str, BoundInput], member: tuple[str, int]) -> str:
    source = inputs[member[0]].source
    assert isinstance(source, TableSource)
    named = _is_of_names(inputs, member)
    return source.names.key_types[0] if named else source.key_types[member[1]]


def _common_type(inputs: Mapping[str, BoundInput], encoded: list[tuple[str, int]]) -> str:
    """The common type in which key columns are compared.

    Raises:
        ValueTypeError: there is none.
    """
    types = [_key_type(inputs, member) for member in encoded]
    if (common := common_key_type(types)) is not None:
        return common
    one, other = next(
        (n, m) for m in range(len(types)) for n in range(m)
        if common_key_type([types[n], types[m]]) is None
    )  # fmt: skip
    _check_selected_types(inputs, [encoded[one], encoded[other]])
    (table, column), (source, key) = (_column(inputs, encoded[n]) for n in (one, other))
    raise ValueTypeError(
        "the coordinates of one label are of two types",
        where=f"input {encoded[other][0]}, {source.origin}, column {key}",
        expected=f"values as in input {encoded[one][0]}, {table.origin}, column {column}: "
        + _shorten_type(types[one]),
        found=_shorten_type(types[other]),
        hint="all integers match, dates match timestamps without a time zone, and text "
        "matches categories; cast one of the two in a view or a new column",
    )


def _check_selected_types(
    inputs: Mapping[str, BoundInput], pair: Sequence[tuple[str, int]]
) -> None:
    """Check that coordinates that are selected have the type of those of the axis.

    Raises:
        ValueTypeError: one of a pair of axes that do not match is made of selected coordinates.
    """
    picking = [member for member in pair if _picks(inputs, member)]
    if len(picking) != 1:
        return
    (picked,) = picking
    (member,) = (x for x in pair if x != picked)
    (source, key), (_, column) = _column(inputs, member), _column(inputs, picked)
    label, type_ = inputs[picked[0]].labels[-1], _key_type(inputs, member)
    if inputs[picked[0]].data is None:  # a maintained program has them in a table
        return
    given = inputs[picked[0]].data[column][0].as_py()
    raise ValueTypeError(
        f"sel selects along {label} coordinates of another type than the axis has",
        where=f"input {member[0]}, {source.origin}, column {key}",
        expected=f"coordinates of {_shorten_type(type_)}",
        found=repr(given),
        hint=as_coordinate(label, given, type_),
    )


def _shorten_type(type_: str) -> str:
    return type_ if len(type_) <= LONGEST_SHOWN else type_[:LONGEST_SHOWN] + "..."


def bind_dictionaries(
    session: Session, inputs: Mapping[str, BoundInput], classes: SizeClasses, prefix: str
) -> tuple[Dictionaries, dict[str, tuple[AxisBound, ...]]]:
    """Find the dictionaries that inputs need, and the sizes of the labels that have one.

    Args:
        session: where the tables are.
        inputs: the bound inputs, as `with_common_keys` gives them.
        classes: classes of axes of the same size, as `with_common_keys` has joined them.
        prefix: prefix of the names of tables that are registered from memory.

    Returns:
        The dictionaries, and the bounds of the inputs' axes updated by the dictionaries' sizes.
    """
    dictionaries: list[Dictionary] = []
    axes: dict[tuple[str, int], str] = {}
    bounds = {name: list(bound.bounds) for name, bound in inputs.items()}
    names: set[str] = set()
    memory = _versions_in_memory(inputs)
    for group in _groups(inputs, classes):
        encoded = [member for member in group if _is_encoded(inputs, member)]
        if not encoded:
            _check_positions_occur(inputs, group)
            continue
        _check_coordinates_occur(session, inputs, encoded, prefix)
        columns = tuple(dict.fromkeys(_column(inputs, member) for member in encoded))
        (name,) = unique_names([_title(inputs, encoded)], names)
        dictionary = Dictionary(name, columns, 0)
        with register_inputs(session, inputs, prefix):
            size = dictionary_size(session, dictionary, prefix, memory)
        dictionaries.append(replace(dictionary, size=size))
        for tensor, axis in encoded:
            axes[tensor, axis] = name
            bounds[tensor][axis] = _bound_axis(bounds[tensor][axis], size)
    return Dictionaries(tuple(dictionaries), axes), {x: tuple(each) for x, each in bounds.items()}


def _versions_in_memory(inputs: Mapping[str, BoundInput]) -> dict[Origin, Version]:
    """The versions of the tables in memory that have one."""
    return {
        bound.source.origin: version
        for bound in inputs.values()
        if isinstance(bound.source, TableSource)
        and (version := memory_version(bound.data)) is not None
    }


def _is_of_times(dictionary: Dictionary) -> bool:
    """True if all values of a dictionary are dates, timestamps or times of the day."""
    types = (source.key_types[source.keys.index(key)] for source, key in dictionary.columns)
    return all(key_kind(type_) in KINDS_OF_TIME for type_ in types)


def _title(inputs: Mapping[str, BoundInput], members: list[tuple[str, int]]) -> str:
    """A name for a dictionary: the one that the caller gave, or one after its first label."""
    labels = [(inputs[tensor], inputs[tensor].labels[axis]) for tensor, axis in members]
    stated = [bound.dictionaries[x] for bound, x in labels if x in bound.dictionaries]
    return stated[0] if stated else f"ids_of_{labels[0][1]}"


def _bound_axis(bound: AxisBound, size: int) -> AxisBound:
    """The bound of an axis that has a dictionary of this size; a stated bound may be larger."""
    if not bound.exact:
        return AxisBound(size, True, bound.origin, counted=True)
    if bound.size < size:
        raise CoordinateError(
            "a dictionary is larger than the stated bound",
            where=bound.origin,
            expected=f"at most {bound.size} different coordinates",
            found=str(size),
        )
    return bound


def _is_encoded(inputs: Mapping[str, BoundInput], member: tuple[str, int]) -> bool:
    source = inputs[member[0]].source
    if not isinstance(source, TableSource):
        return False
    return _is_of_names(inputs, member) or source.encoded[member[1]]


def _column(inputs: Mapping[str, BoundInput], member: tuple[str, int]) -> tuple[TableSource, str]:
    source = inputs[member[0]].source
    assert isinstance(source, TableSource)
    if _is_of_names(inputs, member):
        return source.names, NAME
    return source, source.keys[member[1]]


def _picks(inputs: Mapping[str, BoundInput], member: tuple[str, int]) -> bool:
    """True if an axis only selects coordinates of other inputs."""
    return inputs[member[0]].described.spec.picks and member[1] == 0


def _check_positions_occur(inputs: Mapping[str, BoundInput], group: list[tuple[str, int]]) -> None:
    sizes = dict.fromkeys((True, False), 0)
    for name, axis in group:
        picks = _picks(inputs, (name, axis))
        sizes[picks] = max(sizes[picks], inputs[name].bounds[axis].size)
    if sizes[True] > sizes[False] and not all(_picks(inputs, member) for member in group):
        raise _absent(inputs, group, sizes[True] - 1)


def _check_coordinates_occur(
    session: Session,
    inputs: Mapping[str, BoundInput],
    encoded: list[tuple[str, int]],
    prefix: str,
) -> None:
    picking = [member for member in encoded if _picks(inputs, member)]
    others = [member for member in encoded if member not in picking]
    if not picking or not others:
        return
    picked, occurring = (
        Dictionary("", tuple(dict.fromkeys(_column(inputs, member) for member in members)), 0)
        for members in (picking, others)
    )
    with register_inputs(session, inputs, prefix):
        rows = session.fetch(absent_query(picked, occurring, prefix))
    if rows:
        raise _absent(inputs, encoded, rows[0][0])


def _absent(
    inputs: Mapping[str, BoundInput], group: list[tuple[str, int]], coordinate: object
) -> CoordinateError:
    name, axis = next(member for member in group if not _picks(inputs, member))
    return CoordinateError(
        "a coordinate that is picked does not occur",
        where=f"sel, axis {inputs[name].labels[axis]!r}",
        expected=f"a coordinate of {inputs[name].origin}",
        found=repr(coordinate),
    )


def _check_all_encoded(
    inputs: Mapping[str, BoundInput], group: list[tuple[str, int]], encoded: list[tuple[str, int]]
) -> None:
    other = next((member for member in group if member not in encoded), None)
    if other is None:
        return
    _check_selected_types(inputs, [encoded[0], other])
    table, column = _column(inputs, encoded[0])
    source, position = _column(inputs, other)
    type_ = _key_type(inputs, encoded[0])
    for picked in inputs[other[0]].described.spec.positions:
        if picked.key == other[1]:
            raise _no_positions(inputs, encoded[0], picked, inputs[other[0]].data[position])
    alike = common_key_type([type_, _key_type(inputs, other)]) is not None
    raise ValueTypeError(
        "a label is addressed by a dictionary in one table and by position in another",
        where=f"input {other[0]}, {source.origin}, column {position}",
        expected=f"values as in input {encoded[0][0]}, {table.origin}, column {column}: "
        + _shorten_type(type_),
        found=f"{_key_type(inputs, other)}, integers that are taken as positions",
        hint="pass ucle.table(..., coordinates='dictionary') for this table too"
        if alike
        else "cast them to the type of the others, in a view or a new column",
    )


def _no_positions(
    inputs: Mapping[str, BoundInput],
    member: tuple[str, int],
    picked: PickedPositions,
    positions: pa.ChunkedArray,
) -> UnsupportedError:
    """The error for positions of a lazy tensor along an axis that has coordinates instead."""
    (source, key), type_ = _column(inputs, member), _key_type(inputs, member)
    axis = picked.axis
    hint = f"t.sel({axis}=[...])" if isinstance(axis, str) else f"t.sel({{{axis}: [...]}})"
    hint += " selects coordinates"
    if key_kind(type_) in KINDS_OF_TIME:
        hint += f", and ucle.tensor of a view with WHERE {key} BETWEEN ... AND ... a range of them"
    return UnsupportedError(
        "this axis is selected by coordinates",
        where=f"axis {axis!r} of {picked.tensor}",
        expected=f"coordinates of {_shorten_type(type_)}, as in input {member[0]}, "
        f"{source.origin}, column {key}",
        found="positions " + ", ".join(map(str, positions.slice(0, 4).to_pylist())),
        hint=hint,
    )
