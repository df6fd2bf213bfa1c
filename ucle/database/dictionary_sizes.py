"""The sizes of dictionaries: counted once for each version of the data, and cached.

Dictionaries over relations whose version is not known, such as views, are counted each time.
"""

from __future__ import annotations

from ucle.database.data_versions import source_version
from ucle.database.session import Session
from ucle.foundation.caches import BoundedCache
from ucle.plan.sources import Dictionary
from ucle.sqlgen.input_queries import dictionary_size_query

MOST_BYTES = 1 << 20
"""Bytes of all sizes that a process keeps."""

_known = BoundedCache[int](MOST_BYTES)


def dictionary_size(session: Session, dictionary: Dictionary, prefix: str = "") -> int:
    """The number of distinct values in the columns of a dictionary.

    Args:
        session: sees the tables.
        dictionary: its columns; its own size is not read.
        prefix: prefix of the names of tables that were registered from memory.
    """
    query = dictionary_size_query(dictionary, prefix)
    versions = tuple(source_version(session, source) for source, _ in dictionary.columns)
    key = None if None in versions else (query, versions)
    if key is not None and (known := _known.get(key)) is not None:
        return known
    ((size,),) = session.read(query)
    # If the data has changed since its version was taken, this does no harm: none ever recurs.
    if key is not None:
        _known.put(key, size)
    return int(size)
