"""Errors of executors, as they reach the driver.

Spark passes on the text of an exception and nothing else, somewhere in a trace. Errors of ucle
encode themselves in that text, so that the driver can raise them again.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterator

import ucle.errors
from ucle.errors import ExecutionError, UcleError
from ucle.run.execute import NaNError

MARK = "ucle-failure:"
_FAILURE = re.compile(re.escape(MARK) + r"([A-Za-z0-9+/=]+)")


class TaskError(RuntimeError):
    """The error that ends a task; its text encodes the original error."""


def pack_error(error: UcleError | NaNError) -> TaskError:
    """Encode an error in the text of a task's error, readable by people and by the driver."""
    parts = {"class": type(error).__name__, "text": str(error)}
    if isinstance(error, UcleError):
        names = ("message", "where", "expected", "found", "hint")
        parts |= {name: getattr(error, name) for name in names}
    code = base64.b64encode(json.dumps(parts).encode()).decode()
    return TaskError(f"{error} [{MARK}{code}]")


@contextlib.contextmanager
def errors_of_spark() -> Iterator[None]:
    """A context that turns errors of Spark into errors of ucle."""
    try:
        yield
    except UcleError:
        raise
    except Exception as error:
        raise unpack_error(error) from error


def unpack_error(error: Exception) -> Exception:
    """Return the error of a task inside Spark's error, or one with Spark's message."""
    found = _FAILURE.search(str(error))
    if found is None:
        return ExecutionError(
            "Spark could not run the program",
            where="spark",
            found=_first_lines(str(error)),
            hint=_hint(str(error)),
        )
    parts = json.loads(base64.b64decode(found[1]))
    name = parts.pop("class")
    text = parts.pop("text")
    if name == NaNError.__name__:
        return NaNError(text)
    kind = getattr(ucle.errors, name, ExecutionError)
    return kind(parts.pop("message"), **parts)


def _first_lines(text: str) -> str:
    """The message of Spark's error, without its traces."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [x for x in lines if re.match(r"[\w.]*(Error|Exception): ", x) and "spark" not in x]
    return (named or lines or [""])[-1 if named else 0][:500]


def _hint(text: str) -> str | None:
    if "No module named" in text:
        return (
            "executors need ucle and pyarrow, of the driver's versions: pip install 'ucle[spark]' "
            "there, or ship an environment (docs: beyond one machine)"
        )
    if "OutOfMemory" in text or "Cannot allocate" in text or "exitCode 137" in text:
        return "set spark.ucle.memoryLimit lower, or spark.ucle.partitions higher"
    if "maxResultSize" in text:
        return (
            "to_table and to_parquet keep rows on the cluster; spark.driver.maxResultSize limits "
            "those that are fetched"
        )
    return None
