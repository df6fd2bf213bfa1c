"""The demo reads the imports in Python files that `ast` finds, in any process."""

from __future__ import annotations

import ast
import io
import random
import time
from pathlib import Path

import pytest

from ucle.demo import readers
from ucle.demo.bar import CLEAR, bar
from ucle.demo.read_source import (
    SourceFile,
    find_modules,
    import_statements,
    installation_roots,
    read_imports,
    read_words,
)
from ucle.demo.readers import Reading

CRAFTED = [
    "import a, b.c as d, e",
    "from a import (  # why (not)\n    b,\n    c as d,  # 'import x'\n)\nimport e",
    "from a \\\n  import b, \\\n  c\nimport \\\n  d",
    "from.a import b\nfrom .. import c\nfrom ... d import(e)\nfrom a import*",
    "import a; import b;x = 1;from c import d; y = 'import e; import f'",
    "try: import a\nexcept ImportError: from b import c\nif True: x = 1; import d",
    "class A: import a\ndef f():\n\timport b\n    \n\treturn lambda: 1",
    '"""\nimport a\nfrom b import c\n"""\nimport d',
    "x = r'\\a' + \"it's # import a\" + '''\n\"import b\n''' # import c\nimport d",
    "x = '''a\\'''\nimport a'''\nx = \"\"\"b\"\" \\\"\"\"\" \nimport c",
    "x = 'a\\\nimport b'\nimport c",
    "def f():\n    x = yield (\n    from_x)\n    y = (yield\n  from x)\n    import a",
    "try: pass\nexcept A as e:\n    raise B(\n 1) from e\nimport a\nraise C \\\n from e",
    "important = x.imports = __import__('a')\nfrom_ = importlib.import_module('b')\nimport c",
    "x = f'{a!r:>{width}} import b'\nx = f'''{\nb}\nimport c'''\nimport d",
    "x: int = {1: 2}[1:2]; import a\nmatch x:\n    case 1: import b",
    "import a\r\nfrom b import (c,\r\n  d)\r\nx = '''\r\nimport e'''\r\n",
    "import a\rimport b\r# import c\rimport d",
    "\ufeffimport a\nimport b",
    "\u00e9import = 1\nimport a",
    "# vim: ts=4\n# -*- coding: utf-8 -*-\nimport a",
    "x = 1 if a else 2\nfrom a import b as c; from d import (e)\n\x0cimport f",
    "import a # no end of line",
    "",
]
"""Sources that a search for lines with imports takes wrongly, each in one way."""


def by_ast(path: Path, name: str) -> list[tuple[str, ...]]:
    """The result of `read_imports` if it parsed every file."""
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += [(alias.name,) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = name.split(".")
            above = parts[: len(parts) - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found += [(f"{base}.{alias.name}", base) for alias in node.names]
    return sorted(found)


def test_crafted_imports_are_those_of_ast(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    for number, source in enumerate(CRAFTED):
        path.write_bytes(source.encode())
        try:
            expected = by_ast(path, "p.q.m")
        except SyntaxError:
            pytest.fail(f"{number}: no Python: {source!r}")
        module = SourceFile("p.q.m", str(path), package=False, compiled=False)
        assert sorted(read_imports(module)) == expected, source


def test_other_encodings_are_parsed() -> None:
    assert import_statements(b"# coding: shift_jis\nimport a") is None
    assert import_statements(b"#!x\n# -*- coding=latin-1 -*-\nimport a") is None
    assert import_statements(b"# coding: utf8\nimport a") == [b"import a"]


def test_imports_of_this_python_are_those_of_ast() -> None:
    modules = [module for module in find_modules(installation_roots()) if not module.compiled]
    scanned = 0
    for module in random.Random(38).sample(modules, min(60, len(modules))):
        path = Path(module.path)
        if path.stat().st_size > 60_000 or module.package:
            continue
        try:
            expected = by_ast(path, module.name)
        except SyntaxError:
            continue
        assert sorted(read_imports(module)) == expected, module.path
        scanned += import_statements(path.read_bytes()) is not None
    assert scanned > 20


def made(folder: Path, count: int) -> list[SourceFile]:
    modules = []
    for number in range(count):
        path = folder / f"m{number}.py"
        path.write_text(f"import m{number + 1}, os\nw{number} = os.x{number % 3}\n")
        modules.append(SourceFile(f"m{number}", str(path), package=False, compiled=False))
    return modules


@pytest.mark.parametrize("killed", [False, True])
def test_processes_read_what_the_caller_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    monkeypatch.setattr(readers, "FEW", 4)
    modules = made(tmp_path, 12)
    with Reading(modules, workers=2) as reading:
        processes = [each._process for each in reading._processes]
        assert len(processes) == 2
        if killed:
            processes[0].kill()
        assert reading.imports() == [read_imports(module) for module in modules]
        assert reading.words() == [read_words(module) for module in modules]
        assert min(reading.imports_done(), reading.words_done()) >= 12
    assert all(process.returncode is not None for process in processes)


def test_processes_read_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "FEW", 4)
    modules = made(tmp_path, 5)
    with Reading(modules, workers=2) as reading:
        until = time.monotonic() + 60
        while reading.words_done() < 5 and time.monotonic() < until:
            time.sleep(0.01)
        monkeypatch.setattr("ucle.demo.read_source.read_words", None)
        monkeypatch.setattr("ucle.demo.read_source.read_imports", None)
        assert [len(imports) for imports in reading.imports()] == [2] * 5
        assert dict(reading.words()[4]) == {"w4": 1, "os": 1, "x1": 1}


def test_few_modules_need_no_process(tmp_path: Path) -> None:
    with Reading(made(tmp_path, 3)) as reading:
        assert (reading.imports_done(), reading.words_done()) == (0, 0)
        assert len(reading.imports()) == 3
        assert (reading.imports_done(), reading.words_done()) == (3, 0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal() -> None:
    stream, done = Terminal(), [0]
    with bar("imports", 40, lambda: done[0], stream):
        until = time.monotonic() + 60
        while "0/40" not in stream.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
        done[0] = 30
        while "30/40" not in stream.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    shown = stream.getvalue()
    assert all(part in shown for part in ("imports", "0/40", "30/40"))
    assert shown.endswith(CLEAR)
    assert "\n" not in shown


def test_no_bar_elsewhere() -> None:
    stream = io.StringIO()
    with bar("imports", 40, lambda: 3, stream):
        pass
    assert stream.getvalue() == ""
