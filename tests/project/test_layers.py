"""The layers of the architecture: no import upward, no cycle, and docstrings of packages."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from layers import (
    HANDED_ON,
    LAYERS,
    ROOT,
    find_cycle,
    imports,
    layer_of,
    module_arrows,
    modules,
    package_arrows,
    package_of,
)

from ucle.sqlgen import ARROW, NATIVE, PLAIN

PACKAGES = sorted({package_of(module) for module in modules()})
FOLDERS = sorted(
    name for name, path in modules().items() if path.name == "__init__.py" and name != "ucle"
)

FOREIGN = {
    "sqlglot": {"sqlgen"},
    "lark": set(),
    "click": {"command", "demo", "foundation"},
    "igraph": {"explain"},
    "opt_einsum": {"lowering", "lazy"},
}
"""Libraries that only these packages import."""

ENTRY_POINTS = {"database", "udf_kernels"}
"""Packages that call a connection: sessions, and the loading of kernels."""

AS_A_USER = {
    "ucle.command.calibrate",
    "ucle.command.show_results",
    "ucle.demo.data",
    "ucle.demo.graph_programs",
    "ucle.demo.run_demo",
    "ucle.demo.show_training",
    "ucle.demo.timing",
    "ucle.demo.training",
    "ucle.testing.check_matrix",
    "ucle.testing.generate",
}
"""Modules that have databases of their own, as users have, and call them."""

BY_CLASS = {"ucle.foundation.arguments"}
"""Modules that know the class of connections, to tell what users pass, and call none."""

SQL = re.compile(
    r"(?i)\b(select\s.+\sfrom|case\s+when|create\s+(temp|table|view)|drop\s+table|cast\()|::\s*[A-Z]{4,}"
)
"""Pattern of a text that looks like SQL."""


TESTS = Path(__file__).parents[1]
OF_THE_WHOLE = {
    "clients",
    "dialects",
    "install",
    "kernels",
    "mutations",
    "project",
    "second_oracle",
    "suites",
    "tasks",
    "whole_programs",
}
"""Folders of tests that are of no one package: of C, of Python, of the repository, of others."""


def test_tests_are_in_folders_of_the_packages_that_they_test() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    names = {folder.name for folder in folders}
    assert names - OF_THE_WHOLE <= set(PACKAGES)
    assert all(len(folder.parts) == 1 for folder in folders)


def libraries(path: Path) -> set[str]:
    """The top-level names of what a module imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {x.name for node in nodes if isinstance(node, ast.Import) for x in node.names}
    return {
        name.partition(".")[0]
        for name in plain | {x.module or "" for x in nodes if isinstance(x, ast.ImportFrom)}
    }


def test_every_package_has_one_layer() -> None:
    assert sorted(package for layer in LAYERS for package in layer) == PACKAGES


@pytest.mark.turns(3)
@pytest.mark.sample(None)
@pytest.mark.parametrize("package", PACKAGES)
def test_no_arrow_leads_upward(package: str) -> None:
    upward = {other for other in package_arrows()[package] if layer_of(other) >= layer_of(package)}
    assert not upward, [
        (module, other)
        for module, others in module_arrows().items()
        for other in others
        if package_of(module) == package and package_of(other) in upward
    ]


def test_there_is_no_cycle() -> None:
    assert not find_cycle(package_arrows())
    assert not find_cycle(module_arrows())
    assert find_cycle({**package_arrows(), "errors": frozenset({"ucle"})})


def test_type_hints_make_no_cycle() -> None:
    """Imports for type checkers count as well: whoever reads a module follows them."""
    names = modules().keys() - {"ucle"}  # which exports what it imports
    arrows = {
        name: frozenset((imports(name) | imports(name, typing=True)) & names) for name in names
    }
    assert not find_cycle(arrows)
    hinted = frozenset({"ucle.run.results", *arrows["ucle.run.write_file"]})
    assert find_cycle({**arrows, "ucle.run.write_file": hinted})


def test_no_type_leads_upward() -> None:
    upward = {
        (module, other)
        for module in modules()
        for other in imports(module, typing=True)
        if layer_of(package_of(other)) > layer_of(package_of(module))
    }
    assert not upward


@pytest.mark.turns(3)
def test_libraries_stay_in_their_packages() -> None:
    for module, path in modules().items():
        used = libraries(path)
        for library, packages in FOREIGN.items():
            assert library not in used or package_of(module) in packages, module


def running(module: str) -> list[ast.AST]:
    """The nodes of a module, without what only type checkers read."""
    nodes: list[ast.AST] = [ast.parse(modules()[module].read_text(encoding="utf-8"))]
    for node in nodes:
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            nodes.extend(ast.iter_child_nodes(node))
    return nodes


def modules_behind_sessions() -> list[str]:
    """The modules that reach the engine through sessions only."""
    return [x for x in modules() if package_of(x) not in ENTRY_POINTS and x not in AS_A_USER]


def imports_duckdb(nodes: list[ast.AST]) -> bool:
    plain = {x.name for node in nodes if isinstance(node, ast.Import) for x in node.names}
    return "duckdb" in plain | {x.module for x in nodes if isinstance(x, ast.ImportFrom)}


def called_connections(nodes: list[ast.AST]) -> list[str]:
    """Calls of methods of what is named like a connection."""
    functions = [node.func for node in nodes if isinstance(node, ast.Call)]
    owners = [(x, x.value) for x in functions if isinstance(x, ast.Attribute)]
    return [
        ast.unparse(function)
        for function, owner in owners
        if re.fullmatch(r"(.*[._])?(connection|cursor|con)", ast.unparse(owner))
    ]


@pytest.mark.slow
def test_only_the_entry_points_know_the_engine() -> None:
    for module in modules_behind_sessions():
        nodes = running(module)
        assert not imports_duckdb(nodes) or module in BY_CLASS, module
        assert not called_connections(nodes), (module, called_connections(nodes))
    # The lists hold nothing that is not so.
    for module in AS_A_USER | BY_CLASS:
        assert imports_duckdb(running(module)), module
    assert called_connections(running("ucle.database.session"))


@pytest.mark.slow
def test_nothing_is_decided_by_the_name_of_a_route() -> None:
    routes = {capabilities.name for capabilities in (ARROW, NATIVE, PLAIN)}
    for module in modules():
        for node in running(module):
            if isinstance(node, ast.Compare) and not module.startswith("ucle.testing"):
                sides = [x.value for x in ast.walk(node) if isinstance(x, ast.Constant)]
                assert not routes & {x for x in sides if isinstance(x, str)}, ast.unparse(node)


def test_no_sql_stands_in_the_algebra() -> None:
    def texts(module: str) -> list[str]:
        nodes = running(module)
        owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
        documented = {ast.get_docstring(x, clean=False) for x in nodes if isinstance(x, owners)}
        notes = {
            x.value.value
            for x in nodes
            if isinstance(x, ast.Expr) and isinstance(x.value, ast.Constant)
        }
        values = [x.value for x in nodes if isinstance(x, ast.Constant)]
        return [x for x in values if isinstance(x, str) and x not in documented | notes]

    algebra = [module for module in modules() if package_of(module) == "ir"]
    for module in algebra:
        assert not [text for text in texts(module) if SQL.search(text)], module
    assert any(SQL.search(text) for text in texts("ucle.operators.comparisons"))


@pytest.mark.sample(None)
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_says_what_it_is(folder: str) -> None:
    text = ast.get_docstring(ast.parse(modules()[folder].read_text(encoding="utf-8"))) or ""
    may = re.search(r"May import:((?:\s|.)+?)\.(?:\n\n|$)", text)
    assert re.search(r"\bIn:\s", text), folder
    assert re.search(r"\bOut:\s", text), folder
    assert may, folder
    named = {name.split(".")[1] for name in re.findall(r"`(ucle\.\w+)`", may[1])}
    own = layer_of(package_of(folder))
    assert named, folder
    assert all(layer_of(package) < own for package in named), folder
    # What is imported is named, or stands below something that is.
    highest = max(map(layer_of, named))
    for package in package_arrows()[package_of(folder)]:
        assert package in named or layer_of(package) < highest, (folder, package)


def test_public_modules_define_nothing() -> None:
    for module in HANDED_ON:
        _, *imports, names = ast.parse(modules()[module].read_text(encoding="utf-8")).body
        assert all(isinstance(node, ast.ImportFrom) for node in imports), module
        assert ast.unparse(names).startswith("__all__ = "), module


def test_no_two_names_are_nearly_the_same() -> None:
    files = (module for module, path in modules().items() if path.name != "__init__.py")
    names = {module.rpartition(".")[2] for module in files}
    for name in names:
        stem = name.removesuffix("e")
        assert not names & {name + end for end in ("s", "d", "ed", "er", "ing")}, name
        assert stem + "ing" not in names, name


def test_what_the_page_names_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    dotted = set(re.findall(r"`(ucle(?:\.\w+)+)`", page))
    assert len(dotted) > 30
    for name in dotted:
        if name not in modules():
            module, _, attribute = name.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), name
    paths = set(re.findall(r"`((?:ucle|sqlgen|stats|udf_kernels|tests|docs)/[\w/.]*)`", page))
    assert len(paths) > 20
    for path in paths:
        assert (ROOT / path).exists(), path


def imported(file: Path) -> Iterator[tuple[str, str]]:
    """Modules of ucle that a file imports from, and the names."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "ucle":
            for alias in node.names:
                yield node.module or "", alias.name


def test_what_benchmarks_import_is_there() -> None:
    """They run on demand only, with packages that the tests do without."""
    found = {pair for file in (ROOT / "benchmarks").rglob("*.py") for pair in imported(file)}
    assert found
    for module, name in sorted(found):
        there = hasattr(importlib.import_module(module), name)
        assert there or importlib.util.find_spec(f"{module}.{name}"), f"{module}.{name}"
