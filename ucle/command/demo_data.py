"""The demo's data: the import graph of the Python installation that runs it.

In: the standard library and the site-packages of the running interpreter, parsed with `ast`. Out: a
DuckDB file with the tables

- ``modules(id, name)``: every module, those without source (built-in, compiled) too,
- ``imports(src, dst, weight)``: how often the source of one module imports another,
- ``identifiers(id, name)`` and ``features(module, identifier, count)``: the bag of words.

Nothing of what is read is imported or run. Files that do not parse are left out.
"""

from __future__ import annotations

import ast
import os
import site
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from multiprocessing import get_context
from pathlib import Path

import duckdb

from ucle.errors import DatabaseError
from ucle.foundation.libraries import pa

MARK = "ucle_demo"
"""A table of this name marks a file as one that the demo may replace."""

SKIPPED = frozenset({"__pycache__", "test", "tests", "idle_test", "_vendor", "vendored"})
"""Folders that are no modules, that hold tests, or copies of other people's packages.

Tests import their package by the dozen and nobody imports them: with them, the most central module
of any installation is its test runner.
"""

NAMES: dict[type[ast.AST], str] = {
    ast.Name: "id",
    ast.Attribute: "attr",
    ast.arg: "arg",
    ast.keyword: "arg",
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
}
"""The identifiers that count, by the nodes that have them."""

CHUNK = 64
"""Files that a worker takes at a time."""


@dataclass(frozen=True)
class SourceFile:
    """A module by its dotted name and its file; `package` where the file is an ``__init__``."""

    name: str
    path: Path
    package: bool
    compiled: bool


@dataclass(frozen=True)
class Reading:
    """What was read of one module: what it imports, and how often each identifier occurs.

    An import is the names it may refer to, the most precise one first: ``from a import b`` is the
    module ``a.b`` if there is one, else ``a``.
    """

    name: str
    imports: tuple[tuple[str, ...], ...]
    words: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Corpus:
    """The installation as a graph; vertices and words are numbered by their place."""

    modules: tuple[str, ...]
    imports: Counter[tuple[int, int]]
    identifiers: tuple[str, ...]
    features: Counter[tuple[int, int]]


def installation_roots() -> list[Path]:
    """Where the running interpreter keeps its standard library and its packages."""
    paths = sysconfig.get_paths()
    stdlib = [Path(paths[key]) for key in ("stdlib", "platstdlib")]
    dynload = [path / "lib-dynload" for path in stdlib]
    packages = [Path(path) for path in (paths["purelib"], paths["platlib"])]
    packages += [Path(path) for path in site.getsitepackages()]
    resolved = (path.resolve() for path in (*stdlib, *dynload, *packages))
    return [path for path in dict.fromkeys(resolved) if path.is_dir()]


def find_modules(roots: Iterable[Path]) -> Iterator[SourceFile]:
    """Modules under the roots, in order of their names."""
    modules: dict[str, SourceFile] = {}
    for root in roots:
        for directory, folders, files in os.walk(root):
            folders[:] = [name for name in folders if _is_package_folder(name)]
            prefix = Path(directory).relative_to(root).parts
            for file in files:
                if (module := _module(Path(directory), prefix, file)) is not None:
                    modules.setdefault(module.name, module)
    return iter(sorted(modules.values(), key=lambda module: module.name))


def _is_package_folder(name: str) -> bool:
    return name.isidentifier() and name not in SKIPPED


def _module(directory: Path, prefix: tuple[str, ...], file: str) -> SourceFile | None:
    for suffix in (".py", *EXTENSION_SUFFIXES):
        if not file.endswith(suffix):
            continue
        stem = file.removesuffix(suffix)
        if not stem.isidentifier() or stem in ("conftest", "__main__"):
            return None
        package = stem == "__init__"
        name = ".".join(prefix if package else (*prefix, stem))
        return SourceFile(name, directory / file, package, suffix != ".py") if name else None
    return None


def read_module(module: SourceFile) -> Reading | None:
    """Parse one file; None if it is not Python of this version."""
    if module.compiled:
        return Reading(module.name, (), ())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as invalid escapes in other people's strings
        try:
            tree = ast.parse(module.path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    imports: list[tuple[str, ...]] = []
    words: list[str] = []
    for node in _nodes(tree):
        attribute = NAMES.get(type(node))
        if attribute is None:
            imports.extend(_imported(node, module))
        elif (name := getattr(node, attribute)) is not None:  # as of **keywords
            words.append(name)
    return Reading(module.name, tuple(imports), tuple(Counter(words).items()))


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """As `ast.walk`, in a third of its time: without contexts, which are half of all nodes."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in node._fields:
            part = getattr(node, field, None) if field != "ctx" else None
            if isinstance(part, list):
                waiting.extend(each for each in part if isinstance(each, ast.AST))
            elif isinstance(part, ast.AST):
                waiting.append(part)


def _imported(node: ast.AST, module: SourceFile) -> Iterator[tuple[str, ...]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name,) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = module.name.split(".")
            above = node.level - 1 if module.package else node.level
            base = ".".join([*parts[: len(parts) - above], *([base] if base else [])])
        yield from ((f"{base}.{alias.name}", base) for alias in node.names)


def read_modules(modules: list[SourceFile], workers: int) -> list[Reading]:
    """Read many modules, in the order given, with `workers` processes."""
    if workers < 2 or len(modules) < 4 * CHUNK:
        readings: Iterable[Reading | None] = map(read_module, modules)
        return [reading for reading in readings if reading is not None]
    # Fresh processes, as NumPy's and DuckDB's threads do not survive a fork.
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        readings = pool.map(read_module, modules, chunksize=CHUNK)
        return [reading for reading in readings if reading is not None]


def build_corpus(readings: Iterable[Reading]) -> Corpus:
    """Number modules and identifiers, and resolve imports to modules.

    Modules that stand in no file but that the interpreter knows (``sys``) become vertices where
    something imports them. What cannot be resolved, such as a package that is not installed, is
    left out.
    """
    readings = list(readings)
    modules = {reading.name: number for number, reading in enumerate(readings)}
    module_names = modules.keys() | sys.stdlib_module_names
    words: dict[str, int] = {}
    imports: Counter[tuple[int, int]] = Counter()
    features: Counter[tuple[int, int]] = Counter()
    for reading in readings:
        source = modules[reading.name]
        for candidates in reading.imports:
            target = next((name for name in candidates if name in module_names), None)
            if target is not None and target != reading.name:
                imports[source, modules.setdefault(target, len(modules))] += 1
        for word, count in reading.words:
            features[source, words.setdefault(word, len(words))] += count
    return Corpus(tuple(modules), imports, tuple(words), features)


def installed_corpus(limit: int | None = None, workers: int | None = None) -> Corpus:
    """Read the running installation.

    Args:
        limit: take only so many modules with source, the first ones by name.
        workers: processes; by default one per core, up to eight.
    """
    modules = list(find_modules(installation_roots()))
    return build_corpus(read_modules(modules[:limit], workers or min(os.cpu_count() or 1, 8)))


def store_corpus(
    corpus: Corpus,
    path: Path,
    derive: Callable[[duckdb.DuckDBPyConnection], None],
    *,
    force: bool = False,
) -> None:
    """Write the tables, and those that `derive` makes of them, into a new DuckDB file at `path`.

    The file appears when it is complete: an interruption leaves what was there before.

    Raises:
        DatabaseError: there is a file that the demo did not make, and `force` is not set.
    """
    check_replaceable(path, force=force)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    try:
        with duckdb.connect(str(fresh)) as connection:
            for name, data in corpus_tables(corpus).items():
                connection.register("data", data)
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM data").fetchall()
            derive(connection)
            connection.execute(
                f"CREATE TABLE {MARK} AS SELECT ? AS python", [sys.version.split()[0]]
            ).fetchall()
        fresh.replace(path)
    except duckdb.Error as error:
        raise DatabaseError(
            "the demo database cannot be written", where=str(path), found=str(error).strip()
        ) from error
    finally:
        fresh.unlink(missing_ok=True)


def corpus_tables(corpus: Corpus) -> dict[str, pa.Table]:
    """The corpus as Arrow tables, by the names that they get in the database."""

    def named(names: tuple[str, ...]) -> pa.Table:
        return pa.table({"id": pa.array(range(len(names)), pa.int32()), "name": list(names)})

    def entries(columns: tuple[str, str, str], values: Counter[tuple[int, int]]) -> pa.Table:
        # In order of the first key, as a table is clustered by the label it is read along.
        rows = sorted((*key, value) for key, value in values.items())
        parts = zip(*rows, strict=True) if rows else ((), (), ())
        types = (pa.int32(), pa.int32(), pa.float64())
        arrays = [pa.array(part, type_) for part, type_ in zip(parts, types, strict=True)]
        return pa.table(arrays, names=list(columns))

    return {
        "modules": named(corpus.modules),
        "imports": entries(("src", "dst", "weight"), corpus.imports),
        "identifiers": named(corpus.identifiers),
        "features": entries(("module", "identifier", "count"), corpus.features),
    }


def check_replaceable(path: Path, *, force: bool) -> None:
    """Refuse to replace a file that is not a demo database.

    Raises:
        DatabaseError: `path` is such a file, or a folder, and `force` is not set.
    """
    if not path.exists() or (force and path.is_file()):
        return
    if path.is_file():
        with suppress(duckdb.Error), duckdb.connect(str(path), read_only=True) as connection:
            if connection.execute(
                "SELECT count(*) FROM duckdb_tables() WHERE table_name = ?", [MARK]
            ).fetchall() == [(1,)]:
                return
    raise DatabaseError(
        "this is not a demo database, so it is not overwritten",
        where=str(path),
        expected="a path where nothing is yet, or a file that ucle demo made",
        found="a folder" if path.is_dir() else "another file",
        hint=None if path.is_dir() else "--database chooses another path, --force overwrites",
    )
