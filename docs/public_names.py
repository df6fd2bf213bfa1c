"""The stub of the package, in which type checkers and editors find the public names.

``ucle/__init__.py`` imports a name when it is first used, which no type checker follows;
``ucle/__init__.pyi`` has an import for each entry of its table. `stub` is that file's content.
"""

from __future__ import annotations

import re

from ucle import EXPORTS

HEAD = '''"""The public names for type checkers: written by docs/public_names.py, not by hand."""
'''


def stub() -> str:
    """Return the text of ``ucle/__init__.pyi``."""
    pairs = [(module, name) for module, names in EXPORTS.items() for name in names.split()]
    pairs.append(("ucle", "errors"))
    imports = [
        f"from {module} import {name} as {name}" for module, name in sorted(pairs, key=_order)
    ]
    return "\n".join([HEAD, *imports, ""])


def _order(pair: tuple[str, str]) -> list[object]:
    """The order of ruff, in which ``log2`` comes before ``log10`` and classes before functions."""
    module, name = pair
    numbers = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
    return [module, name.islower(), *numbers]
