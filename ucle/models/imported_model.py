"""Models as programs: what the readers of model files return."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ucle.database.session import Database
from ucle.errors import ArgumentError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa
from ucle.inputs.table_options import table
from ucle.language.bounds import statement_labels
from ucle.language.parse import parse_program
from ucle.language.syntax import accesses
from ucle.models.features import bind_features
from ucle.models.graph import ModelInput, ModelOutput, Translation
from ucle.models.store_model import store_model
from ucle.models.values import KnownNames
from ucle.models.writer import ROWS
from ucle.program import EinsumProgram, einsum_program

MOST_ROWS = 1 << 40
"""More rows than a macro is asked for; it is not known now how many its table will have."""


@dataclass(frozen=True)
class Model:
    """A model as statements of the language, with its weights.

    Args:
        translation: the statements and what they read.

    >>> import numpy as np, onnx
    >>> from onnx import TensorProto, helper
    >>> x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    >>> y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])
    >>> graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    >>> from ucle.models import from_onnx
    >>> model = from_onnx(helper.make_model(graph))
    >>> model.statements
    'y[rows,i2] = relu(x[rows,i2])'
    >>> model.program(np.array([[-1, 2]], "float32")).execute()["y"].to_numpy()
    array([[0., 2.]], dtype=float32)
    """

    translation: Translation

    @property
    def inputs(self) -> tuple[ModelInput, ...]:
        """The inputs, in the order of the model."""
        return self.translation.inputs

    @property
    def outputs(self) -> tuple[ModelOutput, ...]:
        """The outputs, in the order of the model."""
        return self.translation.outputs

    @cached_property
    def weights(self) -> Mapping[str, Any]:
        """The constants that the statements read, by their names in the statements.

        Arrays, and tables of names with their positions.
        """
        return {name: _input_of(value) for name, value in self.translation.weights.items()}

    @property
    def statements(self) -> str:
        """The program as text; the rows of a batch have the label ``rows``."""
        return "\n".join(self.translation.statements)

    def program(
        self,
        features: Any = None,
        /,
        *,
        database: Any = None,
        rows: str = ROWS,
        outputs: Sequence[str] | None = None,
        inputs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        **tensors: Any,
    ) -> EinsumProgram:
        """Compile the program for some data.

        Args:
            features: the rows: a table of the database, the path of a file, or a table in memory,
                with the columns that the model reads and a key column; or an array, if the model
                has one input.
            database: as for `ucle.einsum_program`.
            rows: the key column, which names the rows of the results, too.
            outputs: names of the outputs to compute; all by default.
            inputs: inputs by name, for names that cannot be keywords.
            options: further arguments of `ucle.einsum_program`.
            tensors: inputs by name: all that `ucle.einsum_program` takes.

        Raises:
            ArgumentError: inputs are missing, there are too many, or the label is taken.
            UcleError: as `ucle.einsum_program` does.
        """
        given = {**(inputs or {}), **tensors}
        if features is not None:
            given = {**bind_features(self.inputs, features, rows), **given}
        bound = self._bind(given)
        text = self._text(rows)
        statements = parse_program(text)
        read = {x.tensor for each in statements for x in accesses(each.expression)}
        labels = set().union(*map(statement_labels, statements))
        chosen = {x.original: x.name for x in self.outputs} | {x.name: x.name for x in self.outputs}
        unknown = [name for name in outputs or () if name not in chosen]
        if unknown:
            raise ArgumentError(
                "the model has no such output", expected=", ".join(chosen), found=unknown[0]
            )
        wanted = [chosen[x] for x in outputs] if outputs else [x.name for x in self.outputs]
        every = {**self.weights, **bound}
        return einsum_program(
            text,
            database=database,
            inputs={name: value for name, value in every.items() if name in read},
            outputs=list(dict.fromkeys(wanted)),
            bounds={label: n for label, n in self.translation.sizes.items() if label in labels},
            **(options or {}),
        )

    @validated(
        database=args.database,
        name=args.word,
        rows=args.word,
        outputs=args.names,
        kernels=args.flag,
    )
    def macro_sql(
        self,
        features: Any = None,
        /,
        *,
        database: Database,
        name: str = "score",
        rows: str = ROWS,
        outputs: Sequence[str] | None = None,
        kernels: bool = True,
        inputs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """Return statements that create table macros which score the rows of any table.

        ``FROM score()`` scores the table in `features`, and
        ``FROM score(customers_table := 'new_customers')`` scores another table with the same
        columns; the parameter is named after the first table. The macros stay in the database. They
        need a client of DuckDB that loads ucle's extension, but no Python.

        The macros read the weights of a stored model from its tables. The weights of other models
        are written into the macros, if they have at most 1 KB each.

        Args:
            features: the rows, as for `program`: a table of the database.
            database: where the tables are.
            name: the name of the macro. If there are several outputs, their macros are called
                ``name_output``.
            rows: the key column.
            outputs: names of the outputs; all by default.
            kernels: False for macros of plain SQL, which any client can call, but which are slower.
            inputs: inputs by name, as for `program`, if `features` is not enough.
            options: further arguments of `ucle.einsum_program`.

        Raises:
            UnsupportedError: a weight is too large to be written into a macro, or the rows are not
                in a table.
            UcleError: as `program` does.
        """
        program = self.program(
            features, database=database, rows=rows, outputs=outputs, inputs=inputs, options=options
        )
        if kernels:
            columns = self._labels_of_names()
            program = program.with_decomposition(_promoting(program, {rows, *columns}))
        made = program.outputs
        names = {x: name if len(made) == 1 else f"{name}_{x}" for x in made}
        read = set(program.compiled.all_inputs)
        tables = [x.name for x in self.inputs if x.name in read]
        return program.macro_sql(
            database,
            rows="all",
            max_rows=MOST_ROWS,
            kernels=kernels,
            tables=tables,
            names=names,
            literals=True,
        )

    @validated(database=args.database, name=args.word, version=args.word, replace=args.flag)
    def store(
        self, database: Database, name: str = "model", *, version: str = "1", replace: bool = False
    ) -> None:
        """Store the model in a database, from which ``ucle.models.stored`` reads it.

        There is a table for each weight, in the schema ``ucle``. A weight of more than 4 MB is
        divided into tiles, so that a model may be larger than the memory. Everything is written in
        one transaction, and weights that are mapped from a file are never loaded as a whole.

        Args:
            database: the path of a file, which is created if it does not exist, or a connection.
            name: the name of the model there.
            version: the version of the model. Several may be stored.
            replace: True to overwrite the model of this name and version.

        Raises:
            DatabaseError: a model with this name and version exists, or the database cannot be
                written.
            UnsupportedError: the weights are tables already.
        """
        store_model(self.translation, database, name, version, replace=replace)

    @validated(
        columns=args.mapping(
            args.text,
            args.several(args.text, "a list of columns"),
            "a dict from input to columns",
        )
    )
    def with_columns(self, columns: Mapping[str, Sequence[str]]) -> Model:
        """The same model, whose inputs are read from these columns of a table.

        Args:
            columns: names of columns, by the names of inputs.

        Raises:
            ArgumentError: an input has another number of features.
            ArgumentTypeError: columns are not given by inputs, or are not lists of names.
        """
        inputs = []
        for own in self.inputs:
            names = tuple(columns.get(own.name, own.columns))
            if names and len(names) != own.features:
                raise ArgumentError(
                    "the columns do not fit the input",
                    where=f"input {own.name}",
                    expected=f"{own.features} columns",
                    found=", ".join(names),
                )
            inputs.append(replace(own, columns=names))
        return Model(replace(self.translation, inputs=tuple(inputs)))

    def _text(self, rows: str) -> str:
        """The statements with another label of the rows.

        Raises:
            ArgumentError: it is no name, or the statements use it.
        """
        if rows == ROWS:
            return self.statements
        if not rows.isidentifier() or re.search(rf"\b{re.escape(rows)}\b", self.statements):
            raise ArgumentError(
                "this cannot be the label of the rows",
                expected="a name that the statements do not use",
                found=rows,
            )
        return re.sub(rf"\b{ROWS}\b", rows, self.statements)

    def _labels_of_names(self) -> set[str]:
        """The labels of the names in columns of strings."""
        columns = "|".join(re.escape(x.name) for x in self.inputs if x.dtype == "string")
        if not columns:
            return set()
        return set(re.findall(rf"\b(?:{columns})\[{ROWS},(\w+)\]", self.statements))

    def _bind(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Inputs by their names in the statements.

        Raises:
            ArgumentError: some are missing, or there are others.
        """
        names = {x.original: x.name for x in self.inputs} | {x.name: x.name for x in self.inputs}
        bound = {names[name]: value for name, value in given.items() if name in names}
        unknown = [name for name in given if name not in names]
        missing = [x.name for x in self.inputs if x.name not in bound]
        if unknown or missing:
            raise ArgumentError(
                "the inputs are not those of the model",
                expected=", ".join(x.name for x in self.inputs),
                found=", ".join(given) or "none",
            )
        return {x.name: _squeezed(bound[x.name], x) for x in self.inputs}


def _promoting(program: EinsumProgram, always: set[str]) -> dict[str, frozenset[str]]:
    """The decomposition of a program in which some labels are never positions in arrays.

    The table of a macro may have any number of rows, and of names in its columns.
    """
    chosen = {}
    for vertex in program.compiled.program.vertices:
        operands = (label for operand in vertex.inputs for label in operand.labels)
        labels = {label.name for label in (*operands, *vertex.labels)}
        chosen[vertex.name] = program.decomposition[vertex.name] | (labels & always)
    return chosen


def _squeezed(value: Any, own: ModelInput) -> Any:
    """An array without the axes of size 1, which programs leave out."""
    if not isinstance(value, np.ndarray) or value.ndim != len(own.sizes):
        return value
    ones = tuple(n for n, size in enumerate(own.sizes) if size == 1)
    fits = all(value.shape[n] == 1 for n in ones)
    return value.reshape([s for n, s in enumerate(value.shape) if n not in ones]) if fits else value


def _input_of(value: Any) -> Any:
    """A constant as an input of a program."""
    if not isinstance(value, KnownNames):
        return value
    names = pa.table({"name": list(value.names), "at": list(range(len(value.names)))})
    return table(names, ["name", "at"], value=1, bounds=[None, len(value.names)])
