"""Prints the lower bounds of pyproject.toml as a constraints file for pip.

    python tests/lower_bounds.py > constraints.txt
    pip install --editable '.[test]' --constraint constraints.txt

Without arguments those of what ucle and its tests need; with names of extras those of these extras.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[\w, -]*\])?(?P<versions>.*)")


def constraints(extras: Iterable[str] = ("test",), project: Path = PROJECT) -> Iterator[str]:
    """A line for each requirement, which allows its lowest version only.

    Raises:
        ValueError: a requirement has no lower bound, or one that is written in another way.
    """
    table = tomllib.loads(project.read_text())["project"]
    optional = table["optional-dependencies"]
    for requirement in (*table["dependencies"], *(x for extra in extras for x in optional[extra])):
        parts = _REQUIREMENT.fullmatch(requirement)
        bounds = [] if parts is None else parts["versions"].replace(" ", "").split(",")
        lowest = [bound[2:] for bound in bounds if re.fullmatch(r">=\d+(\.\d+)*", bound)]
        if parts is None or len(lowest) != 1:
            raise ValueError(f"{requirement!r} has no lower bound such as >=1.2, or several")
        yield f"{parts['name']}=={lowest[0]}"


if __name__ == "__main__":
    print("\n".join(constraints(sys.argv[1:] or ("test",))))
