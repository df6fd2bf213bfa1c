"""Mistakes in how models become programs.

In the form of `catalogue`, which has those of the compiler.
"""

from __future__ import annotations

from .mutation import Mutation

CRAFTED = "tests/models/test_crafted_files.py"
GRAPHS = "tests/models/test_random_graphs.py"
PIPELINES = "tests/models/test_pipelines.py"
EXPORT = "tests/export/test_to_onnx.py"
SKLEARN = "tests/models/test_sklearn.py"
STORED = "tests/models/test_stored_models.py"

MODELS: tuple[Mutation, ...] = (
    Mutation(
        "data-out-of-the-folder",
        "ucle/models/onnx_files.py",
        "or not path.is_relative_to(folder)",
        "",
        "a model reads files that are not its own",
        (f"{CRAFTED}::test_data_outside_of_the_folder_is_not_read",),
    ),
    Mutation(
        "gaps-are-zeros",
        "ucle/models/features.py",
        '"fill": math.nan',
        '"fill": 0.0',
        "missing numbers of a table are zeros",
        (f"{PIPELINES}::test_missing_numbers_take_the_branch_of_the_tree",),
    ),
    Mutation(
        "doubles-in-trees",
        "ucle/models/operators/learned.py",
        'single=bool(call.get("single"))',
        "single=False",
        "features are compared with thresholds before they are rounded as in scikit-learn",
        (f"{SKLEARN}::test_thresholds_are_compared_with_rounded_features",),
    ),
    Mutation(
        "atoms-from-the-wrong-end",
        "ucle/models/views.py",
        "rest_left *= size",
        "rest_left *= 1",
        "axes are split at the wrong strides",
        (f"{GRAPHS}::test_a_product_of_split_axes",),
    ),
    Mutation(
        "open-axes-with-weights",
        "ucle/export/open_axes.py",
        "if access.tensor in weights:",
        "if access.tensor in ():",
        "axes of weights stay open, so that a model promises sizes that it cannot take",
        (f"{EXPORT}::test_rows_say_what_is_a_weight",),
    ),
    Mutation(
        "large-logits",
        "ucle/models/operators/reductions.py",
        'x = f"{reading(view)} - max[{shown}]({reading(view)})"',
        "x = reading(view)",
        "softmax of large float32 numbers has few digits",
        (f"{GRAPHS}::test_large_entries_lose_no_digits[Softmax]",),
    ),
    Mutation(
        "changed-weights",
        "ucle/models/model_tables.py",
        "same = now == then",
        "same = True",
        "a model whose tables were changed by hand has other scores, and nothing tells",
        (f"{STORED}::test_tables_that_others_change",),
    ),
    Mutation(
        "tiles-of-the-first-chunk",
        "ucle/models/weight_rows.py",
        "(place + whole[axis][0])",
        "(place + 0)",
        "the tiles of a large weight are at the places of its first chunk",
        (f"{STORED}::test_weights_in_chunks",),
    ),
)
