"""Files of tables on Spark whose folders are named by keys, as far as executors can read them.

Spark lists the files; the rows of each lie where a placement by the keys wants them
(`ucle.partitions.placed_files`). Tasks read these files themselves, so that Spark does not shuffle
their rows. They have to be Parquet files at paths that all workers see.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from ucle.errors import UcleError
from ucle.foundation.libraries import pa
from ucle.partitions.placed_files import PlacedFiles, files_in_folders
from ucle.spark.kinds import arrow_type

MOST_FILES = 100_000
"""The most files whose names are sent to tasks."""

SETTING = "spark.ucle.readFiles"
"""Says whether tasks read files themselves; they do by default."""


def files_of_path(frame: Any, path: str) -> PlacedFiles | None:
    """Return the files of a DataFrame of all Parquet files below a path.

    None if their folders are not named by keys, or tasks may not read them.
    """
    if any(sign in path for sign in "*?[{") or not _is_allowed(frame):
        return None
    base = _local_path(path) if "://" in path or path.startswith("file:") else os.path.abspath(path)
    return None if base is None else _files(frame, base)


def files_of_table(frame: Any, name: str) -> PlacedFiles | None:
    """Return the files of a table of the catalogue; None for views and other formats, too.

    Tables of Iceberg and Delta have Parquet files that are no longer part of them.
    """
    if not _is_allowed(frame):
        return None
    with contextlib.suppress(Exception):  # what a catalogue answers to is its own affair
        rows = frame.sparkSession.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        facts = {row[0]: row[1] for row in rows if row[0] in ("Type", "Provider", "Location")}
        plain = facts.get("Type") in ("MANAGED", "EXTERNAL")
        if plain and str(facts.get("Provider", "")).lower() == "parquet":
            base = _local_path(facts["Location"])
            return None if base is None else _files(frame, base)
    return None


def _is_allowed(frame: Any) -> bool:
    with contextlib.suppress(Exception):
        return str(frame.sparkSession.conf.get(SETTING, "true")).lower() != "false"
    return True


def _files(frame: Any, base: str) -> PlacedFiles | None:
    uris: Sequence[str] = frame.inputFiles()
    paths = [path for uri in uris[: MOST_FILES + 1] if (path := _local_path(uri)) is not None]
    if len(paths) != len(uris) or len(uris) > MOST_FILES:
        return None
    found = files_in_folders(base, sorted(paths))
    if found is None:
        return None
    integers = {f.name for f in frame.schema.fields if _is_integer(f.dataType.simpleString())}
    kept = [n for n, key in enumerate(found.keys) if key in integers]
    if not kept:
        return None
    keys = tuple(found.keys[n] for n in kept)
    return replace(found, keys=keys, values=tuple(tuple(x[n] for n in kept) for x in found.values))


def _is_integer(kind: str) -> bool:
    try:
        return bool(pa.types.is_signed_integer(arrow_type(kind)))
    except UcleError:
        return False


def _local_path(uri: str) -> str | None:
    """The path of a file that all workers see as one of theirs; None for other file systems.

    >>> _local_path("file:/lake/a%20b/i=3"), _local_path("file:///lake"), _local_path("s3a://lake")
    ('/lake/a b/i=3', '/lake', None)
    """
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return unquote(parts.path).rstrip("/") or "/"
