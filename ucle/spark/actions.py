"""Jobs of Spark: named in its interface, cancelled with their caller, with errors of ucle."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

from ucle.spark.failures import errors_of_spark

DESCRIPTION = "spark.job.description"


@contextlib.contextmanager
def action(spark: Any, purpose: str) -> Iterator[None]:
    """A context in which Spark runs jobs; whatever ends it early cancels them.

    Args:
        spark: the session.
        purpose: what is computed, for Spark's interface.

    Raises:
        UcleError: a task failed.
        NaNError: numbers have outgrown their type.
    """
    tag = f"ucle-{secrets.token_hex(8)}"
    with _tagged(spark, tag), _described(spark, f"ucle: {purpose}"):
        try:
            with errors_of_spark():
                yield
        except BaseException as error:
            if not isinstance(error, Exception):  # the keyboard, or the end of a generator
                with contextlib.suppress(Exception):
                    spark.interruptTag(tag)
                with contextlib.suppress(Exception):
                    spark.sparkContext.cancelJobsWithTag(tag)
            raise


@contextlib.contextmanager
def _tagged(spark: Any, tag: str) -> Iterator[None]:
    """Name the jobs of this thread, so that they can be cancelled; other servers may not do so.

    A session names its queries only, and its context the jobs on RDDs.
    """
    with contextlib.suppress(Exception):
        spark.addTag(tag)
    with contextlib.suppress(Exception):
        spark.sparkContext.addJobTag(tag)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            spark.removeTag(tag)
        with contextlib.suppress(Exception):
            spark.sparkContext.removeJobTag(tag)


@contextlib.contextmanager
def _described(spark: Any, text: str) -> Iterator[None]:
    """Describe the jobs of this thread; Spark Connect has no context, and shows the tag."""
    context = None
    with contextlib.suppress(Exception):
        context = spark.sparkContext
    if context is None:
        yield
        return
    before = context.getLocalProperty(DESCRIPTION)
    context.setLocalProperty(DESCRIPTION, text)
    try:
        yield
    finally:
        context.setLocalProperty(DESCRIPTION, before)
