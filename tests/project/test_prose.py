"""The vocabulary of the pages: what `make lint` looks at, and what it finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import PAGES
from prose import FILLER, Finding, find_banned_words, prose

PAGE = """\
# A dearer plan

```python
room = house  # floor
```

Rows are read anew through `door`, as in [the house](house.md#rooms)
and ``docs/layers.py`` <!-- floor -->, by floor division.
"""


def test_code_is_no_prose() -> None:
    text = prose(PAGE)
    assert len(text) == len(PAGE)
    assert [len(line) for line in text.splitlines()] == [len(line) for line in PAGE.splitlines()]
    assert "python" not in text
    assert f"`{FILLER}" not in text
    assert "the house" in text


def test_metaphors_are_found_where_they_are() -> None:
    found = list(find_banned_words(prose(PAGE)))
    assert [(x.line, x.column) for x in found] == [(1, 5), (7, 15), (7, 47)]
    assert found[0] == Finding(1, 5, "'dearer': write 'expensive', or what is meant")
    assert [x.message.split("'")[1] for x in found] == ["dearer", "anew", "house"]


@pytest.mark.sample(None)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_every_page_ends(page: Path) -> None:
    """A fence or a tick that is not closed would hide the rest of a page."""
    text = prose(page.read_text(encoding="utf-8"))
    assert "`" not in text
    assert sum(x.isalpha() for x in text) > 100
