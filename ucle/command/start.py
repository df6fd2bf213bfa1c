"""Entry point of the script `ucle`: runs `ucle demo` without other commands' libraries."""

from __future__ import annotations

import sys
from importlib import import_module

from ucle.command.demo import demo
from ucle.command.group import UcleGroup


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["demo"]:
        UcleGroup(commands={"demo": demo})()
    else:
        import_module("ucle.command.cli").main()
