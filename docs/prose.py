"""The prose of a Markdown page, without its code, and the words that it does not use.

``docs/lint_prose.py`` checks pages with this module and with proselint. proselint has general rules
of English and no way to add words; `VOCABULARY` holds those that this project replaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CODE = re.compile(
    r"""
    ^(```+|:::+).*?^\1[ ]*$       # blocks
    | <!--.*?-->                  # comments
    | ``[^`\n]+`` | `[^`]+`       # code inside a line, which may be wrapped
    | <[a-zA-Z/][^>]*>            # tags
    | (?<=\])\([^)\s]*\)          # targets of links
    | ^\[[^]\n]+\]:[^\n]*$        # targets of references
    | https?://[^\s)>|]+
    | \b\d+([ ]x[ ]\d+)+\b       # sizes
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)

FILLER = "\N{CURRENCY SIGN}"
"""Takes the place of each character of code: no letter, so that words beside code stay apart."""

VOCABULARY = {
    r"rooms?": "package",
    r"houses?": "architecture",
    r"floors?(?! division)": "layer",
    r"doors?": "entry point",
    r"dear(er|est|ly)?": "expensive",
    r"anew": "again",
    r"whosoever": "whoever",
    r"unasked": "by default",
}
"""What replaces which words; the words are patterns."""

BANNED = re.compile(
    "|".join(rf"(?P<w{number}>\b(?:{word})\b)" for number, word in enumerate(VOCABULARY)),
    re.IGNORECASE,
)


@dataclass(frozen=True, order=True)
class Finding:
    """A place in a page, with lines and columns from 1, and what to change there."""

    line: int
    column: int
    message: str


def prose(page: str) -> str:
    """Return a page with `FILLER` in the place of code, so that every place stays where it is.

    >>> prose("See `x + 1` [here](a.md).")
    'See ¤¤¤¤¤¤¤ [here]¤¤¤¤¤¤.'
    """
    return CODE.sub(lambda match: re.sub(r"[^\n]", FILLER, match[0]), page)


def find_banned_words(text: str) -> Iterator[Finding]:
    """Yield a finding for each word of `VOCABULARY` in the prose of a page.

    >>> [x.message for x in find_banned_words("A dearer plan, by floor division.")]
    ["'dearer': write 'expensive', or what is meant"]
    """
    better = list(VOCABULARY.values())
    for match in BANNED.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        number = int((match.lastgroup or "w0")[1:])
        yield Finding(
            text.count("\n", 0, start) + 1,
            match.start() - start + 1,
            f"'{match[0]}': write '{better[number]}', or what is meant",
        )
