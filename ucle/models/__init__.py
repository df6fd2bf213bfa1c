"""Models that were trained elsewhere, as programs: from ONNX, scikit-learn and PyTorch.

from_onnx           read a file: the checks, then its graph
from_torch          read a module of PyTorch, by its own export
from_sklearn        read a fitted estimator or pipeline, by way of ONNX in float64
onnx_files          files and their constants, checked before they are used
graph               nodes one after the other, into statements
operators           what each operator of ONNX is in the language
views, values       tensors of a model as views of those of a program, and what nodes exchange
loops               loops with a known number of steps
writer, calls       the statements so far, and a node with its operands
text_columns        strings, which are coordinates in a program
sklearn_converters  estimators that need float64
features            columns of a table as inputs
imported_model      the result: statements, weights and inputs, and the program over some rows
weight_layouts      how tables hold weights
weight_rows         the rows of these tables
model_document      what is stored beside them
store_model         a model becomes tables of a database
model_tables        these tables as inputs, with a check that they are as they were stored
stored_models       models by their names in a database

In: the file of a model, or a fitted object. Out: a `Model`, whose program scores rows of tables.
May import: ``ucle.program`` and lower layers; packages of the extra ``ucle[models]`` are imported
when they are needed.
"""

from ucle.models.from_onnx import from_onnx
from ucle.models.from_sklearn import from_sklearn
from ucle.models.from_torch import from_torch
from ucle.models.imported_model import Model
from ucle.models.stored_models import drop_stored, list_stored, stored

__all__ = [
    "Model",
    "drop_stored",
    "from_onnx",
    "from_sklearn",
    "from_torch",
    "list_stored",
    "stored",
]
