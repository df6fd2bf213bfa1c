"""Load the recipes of the gallery, and list them.

A recipe is a module of this folder, whose functions do a job of the gallery three times over, on
larger data than its page. `load` makes a frozen `Recipe` of them. What a module may leave out has a
default here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

import ucle

Connection = duckdb.DuckDBPyConnection

NAMES = (
    "mean_pooling",
    "nearest_neighbours",
    "text_search",
    "cosine_join",
    "daily_baskets",
    "star_regression",
    "logistic_regression",
    "principal_components",
    "nearest_centres",
    "alternating_least_squares",
    "tensor_factors",
    "personal_page_rank",
    "label_propagation",
    "shortest_paths",
    "triangles",
    "graph_inference",
    "convolution",
    "churn_scores",
    "text_embeddings",
    "boosted_trees",
    "graph_network",
)
"""The recipes, in the order of the gallery."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """Data for a job, and three answers.

    An answer is an array, a sparse matrix, a relation of DuckDB, or a tuple of such. The columns of
    a relation are integers that say where an entry is, and the entry, which may be a list.
    """

    name: str
    peer: str
    """The library beside which it is measured."""
    tolerance: float
    """The largest difference between answers, relative to the largest entry."""
    small: Mapping[str, int]
    full: Mapping[str, int]
    """Arguments of `make_data`, for tests and for measurements."""
    make_data: Callable[..., None]
    """Called with a connection and sizes: makes tables of them."""
    program: Callable[[Connection], ucle.EinsumProgram]
    """The program that is computed; in a loop, one step of it."""
    by_ucle: Callable[[Connection], Any]
    by_sql: Callable[[Connection], Any]
    arrays: Callable[[Connection], tuple[Any, ...]]
    """The tables as the peer has them, in memory."""
    by_peer: Callable[..., Any]
    """Called with these."""
    picture: Callable[[Any, Connection], None]
    """Draws on axes of Matplotlib when `by_ucle` has run last."""


def load(name: str) -> Recipe:
    """The recipe that is the module of this name."""
    module = importlib.import_module(name)
    functions = ("make_data", "program", "by_ucle", "by_sql", "arrays", "by_peer", "picture")
    return Recipe(
        name,
        module.PEER,
        getattr(module, "TOLERANCE", 1e-9),
        module.SMALL,
        module.FULL,
        **{function: getattr(module, function) for function in functions},
    )
