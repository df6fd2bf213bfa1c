"""The sizes of dictionaries: counted once for each version of the data, and cached.

Dictionaries over relations whose version is not known, such as views, are counted each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ucle.database.data_versions import Version, source_version
from ucle.database.session import Session
from ucle.foundation.caches import BoundedCache
from ucle.plan.sources import Dictionary, Origin
from ucle.sqlgen.input_queries import dictionary_size_query

NOTHING: Mapping[Origin, Version] = MappingProxyType({})

MOST_BYTES = 1 << 20
"""Bytes of all sizes that a process keeps."""

_known = BoundedCache[int](MOST_BYTES)


def dictionary_size(
    session: Session,
    dictionary: Dictionary,
    prefix: str = "",
    memory: Mapping[Origin, Version] = NOTHING,
) -> int:
    """The number of distinct values in the columns of a dictionary.

    Args:
        session: sees the tables.
        dictionary: its columns; its own size is not read.
        prefix: prefix of the names of tables that were registered from memory.
        memory: the versions of tables in memory that have one.
    """
    versions = tuple(
        memory.get(source.origin) or source_version(session, source)
        for source, _ in dictionary.columns
    )
    key = None if None in versions else (dictionary_size_query(dictionary), versions)
    if key is not None and (known := _known.get(key)) is not None:
        return known
    ((size,),) = session.read(dictionary_size_query(dictionary, prefix))
    # If the data has changed since its version was taken, this does no harm: none ever recurs.
    if key is not None:
        _known.put(key, size)
    return int(size)
