"""Read Python files for the demo: modules, their imports, and their identifiers.

In: the standard library and the site-packages of the running interpreter. Out: `SourceFile`s, the
names that each imports, and how often each identifier occurs in it. Nothing of what is read is
imported or run.

Imports are found without parsing the file, in an eighth of the time: strings and comments are taken
out, and what is left is searched for import statements. Where that may go wrong, the file is parsed
after all, so that the answer is that of `ast` for every file of this version of Python.

The module imports the standard library alone. As a program it reads the files that stdin lists, for
`ucle.demo.readers`.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import re
import site
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

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

STRINGS_AND_COMMENTS = re.compile(
    rb'"""(?:[^"\\]+|\\.|"(?!""))*"""'
    rb"|'''(?:[^'\\]+|\\.|'(?!''))*'''"
    rb'|"(?:[^"\\\n]+|\\.)*"'
    rb"|'(?:[^'\\\n]+|\\.)*'"
    rb"|\#[^\n]*",
    re.DOTALL,
)
STATEMENT = re.compile(
    rb"(?:^|[;:])[ \t\f]*("
    rb"import\b(?:[^\n;\\]|\\\n)*"
    rb"|from\b(?:[^\n;\\(]|\\\n)*?\bimport\b(?:[^\n;\\(]|\\\n|\([^)]*\))*)",
    re.MULTILINE,
)
"""An import where a statement may begin, in source without strings and comments."""

IMPORT = re.compile(rb"\bimport\b")
QUOTE = re.compile(rb"[\"']")
COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=](?![ \t]*utf-?8\b)", re.IGNORECASE)
"""A line, one of the first two of a file, that declares an encoding other than UTF-8."""

UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of parsing a file that is missing, or not Python of this version."""

Imports = tuple[tuple[str, ...], ...]
"""Each is the names that it may refer to, the most precise one first: ``from a import b`` is the
module ``a.b`` if there is one, else ``a``."""

Words = tuple[tuple[str, int], ...]
"""Identifiers, and how often they occur."""


class SourceFile(NamedTuple):
    """A module by its dotted name and its file; `package` where the file is an ``__init__``."""

    name: str
    path: str
    package: bool
    compiled: bool


def installation_roots() -> list[Path]:
    """The folders of the running interpreter's standard library and packages."""
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
                if (module := _module(directory, prefix, file)) is not None:
                    modules.setdefault(module.name, module)
    return iter(sorted(modules.values(), key=lambda module: module.name))


def _is_package_folder(name: str) -> bool:
    return name.isidentifier() and name not in SKIPPED


def _module(directory: str, prefix: tuple[str, ...], file: str) -> SourceFile | None:
    for suffix in (".py", *EXTENSION_SUFFIXES):
        if not file.endswith(suffix):
            continue
        stem = file.removesuffix(suffix)
        if not stem.isidentifier() or stem in ("conftest", "__main__"):
            return None
        package = stem == "__init__"
        name = ".".join(prefix if package else (*prefix, stem))
        path = os.path.join(directory, file)
        return SourceFile(name, path, package, suffix != ".py") if name else None
    return None


def read_imports(module: SourceFile) -> Imports:
    """The imports of a module; nothing where the file is not Python of this version."""
    if module.compiled:
        return ()
    try:
        source = Path(module.path).read_bytes()
        statements = import_statements(source)
        tree = _parse(source if statements is None else b"\n".join(statements))
    except UNREADABLE:
        return ()
    nodes = ast.walk(tree) if statements is None else tree.body
    return tuple(names for node in nodes for names in _find_imports(node, module))


def import_statements(source: bytes) -> list[bytes] | None:
    """The import statements of a source, or None where only parsing it can tell."""
    if b"\r" in source:
        source = source.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if any(map(COOKIE.match, source.split(b"\n", 2)[:2])):
        return None
    code = STRINGS_AND_COMMENTS.sub(b"", source)
    statements: list[bytes] = STATEMENT.findall(code)
    # `import` is a keyword: outside of strings and comments it stands in these statements alone.
    if len(IMPORT.findall(code)) != len(statements) or QUOTE.search(code):
        return None
    return statements


def _find_imports(node: ast.AST, module: SourceFile) -> Iterator[tuple[str, ...]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name,) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = module.name.split(".")
            above = node.level - 1 if module.package else node.level
            base = ".".join([*parts[: len(parts) - above], *([base] if base else [])])
        yield from ((f"{base}.{alias.name}", base) for alias in node.names)


def read_words(module: SourceFile) -> Words:
    """The identifiers of a module; none where the file is not Python of this version."""
    if module.compiled:
        return ()
    try:
        tree = _parse(Path(module.path).read_bytes())
    except UNREADABLE:
        return ()
    words: list[str] = []
    for node in _nodes(tree):
        attribute = NAMES.get(type(node))
        # None stands for the name of **keywords.
        if attribute is not None and (name := getattr(node, attribute)) is not None:
            words.append(name)
    return tuple(Counter(words).items())


def _parse(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as invalid escapes in other people's strings
        return ast.parse(source)


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree like `ast.walk`, in a quarter of the time: skip nodes without identifiers."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in _fields(type(node)):
            part = getattr(node, field, None)
            if isinstance(part, list):
                waiting.extend([each for each in part if isinstance(each, ast.AST)])
            elif isinstance(part, ast.AST):
                waiting.append(part)


FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Constant: (),
    ast.Import: (),
    ast.ImportFrom: (),
}
"""The fields of a node that may hold others, by its class, as far as classes were met."""


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a node that may hold others; half of all nodes are contexts and operators."""
    if kind not in FIELDS:
        FIELDS[kind] = tuple(x for x in kind._fields if x not in ("ctx", "op", "ops"))
    return FIELDS[kind]


def main() -> None:
    """Read the modules that stdin lists: a line of JSON for the imports of each, then its words."""
    gc.disable()  # Trees have no cycles, and looking for some is a third of the time of parsing.
    modules = [SourceFile(*fields) for fields in json.load(sys.stdin)]
    for read in (read_imports, read_words):
        for module in modules:
            sys.stdout.write(json.dumps(read(module)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
