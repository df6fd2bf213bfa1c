"""The house: which room stands on which, drawn from the imports themselves.

A room is a folder of ``ucle``, or a module that lies beside the folders. `FLOORS` is the one table
of floors: a room may import those of lower floors, and nothing else.
``tests/project/test_house.py`` holds the imports against it, and ``docs/architecture.md`` shows
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
    "ucle.sqlgen": ROOT / "sqlgen",
    "ucle.stats": ROOT / "stats",
    "ucle.udf_kernels": ROOT / "udf_kernels",
}
"""Where the sources of packages lie."""

FLOORS = (
    ("version", "errors"),
    ("foundation", "progress"),
    ("operators",),
    ("ir", "udf_kernels", "cost"),
    ("language",),
    ("plan",),
    ("sqlgen",),
    ("registry", "stats", "optim"),
    ("options",),
    ("database", "lowering"),
    ("inputs",),
    ("optimiser",),
    ("pipeline",),
    ("run",),
    ("compile", "explain", "partitions"),
    ("gradients", "loops", "spark"),
    ("program",),
    ("lazy", "command", "testing"),
    ("linalg", "einsum_api", "random"),
    ("init",),
    ("ucle",),
)
"""The rooms, from the bottom. ``ucle`` is the package itself: its public names."""

Arrows = Mapping[str, frozenset[str]]
"""What each room, or module, imports."""

BOX, HIGH, ROW, MARGIN, GAP = 132, 34, 66, 20, 24
"""Widths and heights in the picture, in pixels."""

LATE = {"ucle"}
"""Modules that import what type checkers read of them as well, when it is first asked for."""


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


def room_of(module: str) -> str:
    """The room of a module.

    >>> room_of("ucle.sqlgen.script"), room_of("ucle.pipeline.stages"), room_of("ucle")
    ('sqlgen', 'registry', 'ucle')
    """
    return module.split(".")[1] if "." in module else module


def imports(module: str, *, typing: bool = False) -> set[str]:
    """The modules of ucle that one imports, wherever in its text the import stands.

    Args:
        module: the name of the module.
        typing: whether to give what only type checkers read (``if TYPE_CHECKING:``), and not
            what runs.
    """
    path = modules()[module]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for statement in block.body
        for node in ast.walk(statement)
    }
    if module in LATE:
        guarded = set()
    nodes = (node for node in ast.walk(tree) if (id(node) in guarded) == typing)
    return {name for node in nodes for name in _imported(node)} - {module}


def _imported(node: ast.AST) -> Iterator[str]:
    """The modules of ucle that a statement imports."""
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
def room_arrows() -> Arrows:
    """Which rooms each room imports."""
    found: dict[str, set[str]] = {room_of(module): set() for module in modules()}
    for module, others in module_arrows().items():
        found[room_of(module)] |= {room_of(other) for other in others} - {room_of(module)}
    return {room: frozenset(others) for room, others in found.items()}


def floor_of(room: str) -> int:
    """The floor of a room, counted from the bottom."""
    return next(number for number, floor in enumerate(FLOORS) if room in floor)


def circle(arrows: Arrows) -> list[str]:
    """A way from somewhere back to it, if there is one.

    >>> circle({"a": frozenset("b"), "b": frozenset("a"), "c": frozenset("a")})
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
    """The arrows that say something: those to rooms that no other imported room reaches."""
    arrows = room_arrows()

    @cache
    def below(room: str) -> frozenset[str]:
        return arrows[room].union(*(below(other) for other in arrows[room]))

    return {
        room: sorted(x for x in others if not any(x in below(other) for other in others))
        for room, others in arrows.items()
    }


def rooms_table() -> str:
    """The rooms from the top, with what each is for, as a Markdown table."""
    rows = ["| room | what it is |", "| --- | --- |"]
    for floor in reversed(FLOORS):
        for room in floor:
            module = room if room == "ucle" else f"ucle.{room}"
            rows.append(f"| `{module}` | {purpose(module)} |")
    return "\n".join(rows)


def picture() -> str:
    """The house as SVG: a row for each floor, and the arrows that no others imply."""
    wide = max(map(len, FLOORS))
    width = 2 * MARGIN + wide * BOX + (wide - 1) * GAP
    height = 2 * MARGIN + (len(FLOORS) - 1) * ROW + HIGH
    places = {}
    for number, floor in enumerate(FLOORS):
        left = (width - len(floor) * BOX - (len(floor) - 1) * GAP) / 2
        top = height - MARGIN - HIGH - number * ROW
        places |= {room: (left + n * (BOX + GAP), top) for n, room in enumerate(floor)}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="14">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#557"/></marker></defs>',
    ]
    for room, others in sorted(direct_arrows().items()):
        x, y = places[room]
        for other in others:
            to_x, to_y = places[other]
            start, end = (x + BOX / 2, y + HIGH), (to_x + BOX / 2, to_y)
            # A way past other floors leaves by the side, so that it crosses no room.
            past = round(to_y - y) > ROW and abs(to_x - x) < BOX / 2
            bend = (width - MARGIN / 2 if past else (start[0] + end[0]) / 2, (y + HIGH + to_y) / 2)
            lines.append(
                f'<path d="M{start[0]:.0f} {start[1]:.0f}Q{bend[0]:.0f} {bend[1]:.0f} '
                f'{end[0]:.0f} {end[1]:.0f}" fill="none" stroke="#557" marker-end="url(#tip)"/>'
            )
    for room, (x, y) in places.items():
        folder = room != "ucle" and modules()[f"ucle.{room}"].name == "__init__.py"
        colour = "#e8eefc" if folder else "#f7f3e6"
        lines.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX}" height="{HIGH}" rx="5" fill="{colour}" '
            f'stroke="#557"/><text x="{x + BOX / 2:.0f}" y="{y + 22:.0f}" '
            f'text-anchor="middle">{room}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def architecture_page() -> str:
    """The page as it is, with the table of rooms drawn anew."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    counted = f"{len(room_arrows())} rooms and {sum(map(len, room_arrows().values()))} arrows"
    page = re.sub(r"\d+ rooms and \d+ arrows", counted, page)
    return re.sub(
        r"(<!-- rooms -->\n).*?(<!-- end of rooms -->)",
        lambda match: f"{match[1]}{rooms_table().rstrip()}\n{match[2]}",
        page,
        flags=re.DOTALL,
    )
