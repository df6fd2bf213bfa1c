"""Edge lists whose fields are separated by blanks, as tables in memory.

Takes a path and the caller's options (`delimiter=" "`); returns an Arrow table by the same rules as
for other text files (`ucle.inputs.csv_dialect`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ucle.inputs.csv_dialect import SAMPLED, comment_sign, empty_file, header_and_names
from ucle.inputs.files import BROKEN, unreadable
from ucle.inputs.table_input import TableInput
from ucle.inputs.text_words import read_words, words_table

if TYPE_CHECKING:
    import pyarrow as pa


def read_word_table(name: str, path: str, spec: TableInput) -> pa.Table:
    """Read the rows of a text file whose fields are separated by blanks.

    Args:
        name: the tensor, for messages.
        path: the path of one file, which may be compressed.
        spec: the caller's options for it.

    Raises:
        InputError: there is no such file, it has no consistent format, or its header is unclear.
    """
    where = f"input {name}, {path}"
    try:
        words = read_words(path, spec.comment)
        rows = [fields for _, fields in words.rows(SAMPLED)]
        if not rows:
            raise empty_file(where)
        lines = [" ".join(fields) for fields in rows]
        comment_sign(where, path, lines, spec)
        header, names = header_and_names(where, path, rows, lines[0], spec)
        return words_table(words.without_first() if header else words, names)
    except BROKEN as error:
        raise unreadable(name, path, error) from error
