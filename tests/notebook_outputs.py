"""Runs notebooks, and compares what their cells show with what is kept beside them.

Whatever may differ between machines is left out of the comparison: where a picture has its dots,
the last digits of numbers, and all that cells tagged `not-compared` show, which are those that tell
times. Of these only the kind of each output has to be the one that is kept.
"""

from __future__ import annotations

import math
import re
import time
from html import unescape
from pathlib import Path
from typing import Any

NOT_COMPARED = "not-compared"
"""The tag of cells whose outputs are different in each run."""

LIMIT = 300
"""Seconds for a notebook, so that one that hangs ends: with the machine to itself it takes less
than twenty."""

PRIVATE = re.compile(r"(?<![\w&])0x[0-9a-f]{6,}|(?<![\w.])/(?:home|Users|root|tmp|var|work)/")
"""Addresses in memory and folders of a machine."""


def execute(notebook: Any, folder: Path, limit: float = LIMIT) -> None:
    """Run the cells in a new kernel, which is gone afterwards."""
    from nbclient import NotebookClient

    end = time.monotonic() + limit
    client = NotebookClient(
        notebook,
        timeout_func=lambda _: max(1, math.ceil(end - time.monotonic())),
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    client.execute()


def code_cells(notebook: Any) -> list[Any]:
    """The cells that run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: Any) -> list[tuple[str, str]]:
    """The outputs of a cell, in order: the kind of each, and its text where that is compared."""
    compared = NOT_COMPARED not in cell.metadata.get("tags", ())
    found: list[tuple[str, str]] = []
    for output in cell.outputs:
        if output.output_type == "stream":
            again = bool(found) and found[-1][0] == output.name  # one text arrives in pieces
            before = found.pop()[1] if again else ""
            found.append((output.name, before + output.text))
        else:
            data = output.get("data", {"error": ""})
            found.extend((kind, text_of(kind, data[kind])) for kind in sorted(data))
    return [(kind, rounded(text) if compared else "") for kind, text in found]


def text_of(kind: str, data: Any) -> str:
    """The readable text of an output; nothing in a picture.

    What a renderer calls the elements of a page, and where it draws them, is not compared.
    """
    if kind.startswith("image/"):
        return ""
    if kind == "text/html":
        data = unescape(re.sub(r"<[^>]*>", " ", data))
    # The size of a figure is what stands for it where no picture can be shown.
    data = re.sub(r"^<Figure size .*>$", "<Figure>", str(data))
    # How wide a table is depends on the last digits of its numbers.
    return re.sub("─+", "─", " ".join(rounded(data).split()))


def rounded(text: str) -> str:
    """A text whose numbers have six digits at most, where they have more after the point."""
    return re.sub(r"\d+\.\d{6,}(?:e[-+]?\d+)?", lambda number: f"{float(number[0]):.6g}", text)


def take_outputs(kept: Any, fresh: Any) -> bool:
    """Put the outputs of a notebook that has run into the kept one, where they differ.

    Returns:
        Whether there were any: outputs that say the same stay as they are.
    """
    changed = False
    for number, (old, new) in enumerate(zip(code_cells(kept), code_cells(fresh), strict=True), 1):
        if shown(old) != shown(new) or old.execution_count != number:
            old.outputs, old.execution_count = new.outputs, number
            changed = True
    return changed
