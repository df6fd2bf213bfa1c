"""`begin_demo`: the demo, up to the point where it needs more of ucle than this.

Importing the libraries that ucle stands on takes longer than finding and reading what modules
import, all the more right after an installation, when nothing is compiled to bytecode. So modules
are read in the background, with a bar, and the rest is imported meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

from ucle.demo.bar import bar
from ucle.demo.options import DemoOptions
from ucle.demo.read_source import find_modules, installation_roots
from ucle.demo.readers import Reading


def begin_demo(options: DemoOptions, echo: Callable[[str], object]) -> None:
    """Read the modules of this Python, and show with `ucle.demo.run_demo` what is made of them.

    Raises:
        DatabaseError: the file is not the demo's to overwrite, or cannot be written.
    """
    modules = list(find_modules(installation_roots()))[: options.limit]
    version = sys.version.split()[0]
    echo(f"Reading {len(modules):,} modules of Python {version} at {sys.prefix} ...")
    with Reading(modules) as reading:
        with bar("Reading imports", len(modules), reading.imports_done, sys.stderr):
            rest = import_module("ucle.demo.run_demo")
            rest.check_replaceable(options.database, force=options.force)
            reading.imports()
        rest.run_demo(options, reading, echo)
