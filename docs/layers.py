"""The layers of the architecture: which package imports which, read from the imports themselves.

A package is a folder of ``ucle``, or a module beside the folders; modules that only hand on public
names (`HANDED_ON`) belong to ``ucle`` itself. `LAYERS` is the one table of layers: a package may
import packages of lower layers, and nothing else.
``tests/project/test_layers.py`` checks the imports against it, and ``docs/architecture.md`` shows
what is drawn here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "ucle": ROOT / "ucle",
    "ucle.demo": ROOT / "examples" / "demo",
    "ucle.sqlgen": ROOT / "sqlgen",
    "ucle.stats": ROOT / "stats",
    "ucle.udf_kernels": ROOT / "udf_kernels",
}
"""Where the sources of packages lie."""

LAYERS = (
    ("errors",),
    ("foundation",),
    ("operators",),
    ("ir", "udf_kernels"),
    ("language",),
    ("plan",),
    ("sqlgen",),
    ("stats", "optim"),
    ("options",),
    ("database", "lowering"),
    ("inputs",),
    ("optimiser",),
    ("pipeline",),
    ("run",),
    ("explain", "export", "gradients", "partitions"),
    ("maintenance", "spark"),
    ("program",),
    ("lazy", "demo", "models", "testing"),
    ("command",),
    ("ucle",),
)
"""The packages, from the lowest layer up. ``ucle`` is the package itself: its public names."""

Arrows = Mapping[str, frozenset[str]]
"""What each package, or module, imports."""

BOX, HIGH, ROW, MARGIN, GAP = 132, 34, 66, 20, 24
"""Widths and heights in the picture, in pixels."""

HANDED_ON = {"ucle.cost", "ucle.fft", "ucle.init", "ucle.linalg", "ucle.progress", "ucle.random"}
"""Public modules that import names of other packages and define none."""


@cache
def modules() -> dict[str, Path]:
    """The file of every module; what describes the kernels to the build is part of that."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((package, *parts)).removesuffix(".__init__")
            if name != "ucle.udf_kernels.build_kernels":
                found[name] = path
    return found


def package_of(module: str) -> str:
    """The package of a module.

    >>> package_of("ucle.sqlgen.script"), package_of("ucle.random"), package_of("ucle")
    ('sqlgen', 'ucle', 'ucle')
    """
    return module.split(".")[1] if "." in module and module not in HANDED_ON else "ucle"


def imports(module: str, *, typing: bool = False) -> set[str]:
    """The modules of ucle that one imports, wherever in its text the import stands.

    Args:
        module: the name of the module.
        typing: whether to give what only type checkers read (``if TYPE_CHECKING:``), and not
            what runs.
    """
    return set(_imports_of(module)[typing])


@cache
def _imports_of(module: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a module imports when it runs, and what for type checkers alone."""
    path = modules()[module]
    runs, typed = _read_imports(path)
    if module == "ucle":
        # The names that it imports when they are first used are those that type checkers see.
        runs, _ = _read_imports(path.with_suffix(".pyi"))
    return runs - {module}, typed - {module}


def _read_imports(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    nodes: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), False)]
    found: tuple[set[str], set[str]] = set(), set()
    for node, guarded in nodes:
        found[guarded].update(_imported(node))
        inner = guarded
        for name, value in ast.iter_fields(node):
            if isinstance(node, ast.If):
                inner = guarded or (name == "body" and "TYPE_CHECKING" in ast.unparse(node.test))
            children = value if isinstance(value, list) else [value]
            nodes += [(each, inner) for each in children if isinstance(each, ast.AST)]
    runs, typed = map(frozenset, found)
    return runs, typed


def _imported(node: ast.AST) -> Iterator[str]:
    """The modules of ucle that a statement imports, or ``LateModule("...")`` on first use."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "LateModule"
    ):
        yield from (
            x.value for x in node.args if isinstance(x, ast.Constant) and x.value in modules()
        )
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names if each.name in modules())
    elif isinstance(node, ast.ImportFrom) and node.module in modules():
        for each in node.names:
            inner = f"{node.module}.{each.name}"
            yield inner if inner in modules() else node.module


@cache
def module_arrows() -> Arrows:
    """What every module imports."""
    return {module: frozenset(imports(module)) for module in modules()}


@cache
def package_arrows() -> Arrows:
    """Which packages each package imports."""
    found: dict[str, set[str]] = {package_of(module): set() for module in modules()}
    for module, others in module_arrows().items():
        found[package_of(module)] |= {package_of(other) for other in others} - {package_of(module)}
    return {package: frozenset(others) for package, others in found.items()}


def layer_of(package: str) -> int:
    """The layer of a package, counted from the lowest."""
    return next(number for number, layer in enumerate(LAYERS) if package in layer)


def find_cycle(arrows: Arrows) -> list[str]:
    """Return a path from a node back to itself, or an empty list if there is none.

    >>> find_cycle({"a": frozenset("b"), "b": frozenset("a"), "c": frozenset("a")})
    ['a', 'b', 'a']
    """
    done: set[str] = set()

    def search(at: str, way: list[str]) -> list[str]:
        if at in way:
            return [*way[way.index(at) :], at]
        if at in done:
            return []
        for other in sorted(arrows[at]):
            if found := search(other, [*way, at]):
                return found
        done.add(at)
        return []

    return next(filter(None, (search(start, []) for start in sorted(arrows))), [])


def purpose(module: str) -> str:
    """The first line of a module's docstring."""
    text = ast.get_docstring(ast.parse(modules()[module].read_text(encoding="utf-8")))
    return (text or "").partition("\n")[0]


def direct_arrows() -> dict[str, list[str]]:
    """The arrows to packages that no other imported package reaches."""
    arrows = package_arrows()

    @cache
    def below(package: str) -> frozenset[str]:
        return arrows[package].union(*(below(other) for other in arrows[package]))

    return {
        package: sorted(x for x in others if not any(x in below(other) for other in others))
        for package, others in arrows.items()
    }


def packages_table() -> str:
    """The packages from the highest layer down, with the purpose of each, as a Markdown table."""
    rows = ["| package | purpose |", "| --- | --- |"]
    for layer in reversed(LAYERS):
        for package in layer:
            module = package if package == "ucle" else f"ucle.{package}"
            rows.append(f"| `{module}` | {purpose(module)} |")
    return "\n".join(rows)


def picture() -> str:
    """Return the layers as SVG: a row for each, and the arrows that no others imply."""
    wide = max(map(len, LAYERS))
    width = 2 * MARGIN + wide * BOX + (wide - 1) * GAP
    height = 2 * MARGIN + (len(LAYERS) - 1) * ROW + HIGH
    places = {}
    for number, layer in enumerate(LAYERS):
        left = (width - len(layer) * BOX - (len(layer) - 1) * GAP) / 2
        top = height - MARGIN - HIGH - number * ROW
        places |= {package: (left + n * (BOX + GAP), top) for n, package in enumerate(layer)}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="14">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#557"/></marker></defs>',
    ]
    for package, others in sorted(direct_arrows().items()):
        x, y = places[package]
        for other in others:
            to_x, to_y = places[other]
            start, end = (x + BOX / 2, y + HIGH), (to_x + BOX / 2, to_y)
            # An arrow past other layers bends to the side, so that it crosses no package.
            past = round(to_y - y) > ROW and abs(to_x - x) < BOX / 2
            bend = (width - MARGIN / 2 if past else (start[0] + end[0]) / 2, (y + HIGH + to_y) / 2)
            lines.append(
                f'<path d="M{start[0]:.0f} {start[1]:.0f}Q{bend[0]:.0f} {bend[1]:.0f} '
                f'{end[0]:.0f} {end[1]:.0f}" fill="none" stroke="#557" marker-end="url(#tip)"/>'
            )
    for package, (x, y) in places.items():
        folder = package != "ucle" and modules()[f"ucle.{package}"].name == "__init__.py"
        colour = "#e8eefc" if folder else "#f7f3e6"
        lines.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX}" height="{HIGH}" rx="5" fill="{colour}" '
            f'stroke="#557"/><text x="{x + BOX / 2:.0f}" y="{y + 22:.0f}" '
            f'text-anchor="middle">{package}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def architecture_page() -> str:
    """The page as it is, with the table of packages as it is now."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    arrows = package_arrows()
    counted = f"{len(arrows)} packages and {sum(map(len, arrows.values()))} arrows"
    page = re.sub(r"\d+ packages and \d+ arrows", counted, page)
    return re.sub(
        r"(<!-- packages -->\n).*?(<!-- end of packages -->)",
        lambda match: f"{match[1]}{packages_table().rstrip()}\n{match[2]}",
        page,
        flags=re.DOTALL,
    )
