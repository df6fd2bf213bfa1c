"""Models that are stored in databases: found by their names, listed, and dropped."""

from __future__ import annotations

from collections.abc import Mapping

from ucle.database.macro_check import open_checked
from ucle.database.session import Database, Session
from ucle.errors import NameResolutionError, did_you_mean
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.models.graph import Translation
from ucle.models.imported_model import Model
from ucle.models.model_document import ModelDocument
from ucle.models.model_tables import StoredFacts, check_tables, input_of, read_documents
from ucle.models.store_model import drop_document
from ucle.run.write_table import transaction


@validated(name=args.word, database=args.database, version=args.word, check=args.flag)
def stored(
    name: str, database: Database, *, version: str | None = None, check: bool = True
) -> Model:
    """Return a model that ``Model.store`` has put into a database.

    Its weights are tables there, so that its programs need this database, and neither the file of
    the model nor the packages that read it.

    Args:
        name: the name of the model.
        database: a path or an open connection.
        version: the version of the model; by default the one that was stored last.
        check: False to trust that nobody has changed the rows of its tables. Otherwise each process
            reads them once when a program is compiled, and compares a digest.

    Raises:
        NameResolutionError: there is no such model.
        ModelError: its tables are gone, or have other columns. A program whose tables have other
            rows raises this error, too.

    >>> import numpy as np, onnx, ucle
    >>> from onnx import TensorProto, helper, numpy_helper
    >>> x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 2]) for n in "xy")
    >>> w = numpy_helper.from_array(np.array([[2, 0], [0, 3]], "float32"), "w")
    >>> product = helper.make_node("MatMul", ["x", "w"], ["y"])
    >>> model = ucle.models.from_onnx(
    ...     helper.make_model(helper.make_graph([product], "g", [x], [y], [w]))
    ... )
    >>> connection = ucle.connect()
    >>> model.store(connection, "double")
    >>> again = ucle.models.stored("double", connection)
    >>> program = again.program(np.array([[1, 1]], "float32"), database=connection)
    >>> program.execute(connection)["y"].to_numpy()
    array([[2., 3.]], dtype=float32)
    """
    with open_checked(database) as session:
        document = _find(session, name, version)[-1]
        check_tables(session, document)
    weights = {
        each: input_of(weight, StoredFacts(document.where, each, weight, check))
        for each, weight in document.weights.items()
    }
    return Model(
        Translation(document.statements, weights, document.sizes, document.inputs, document.outputs)
    )


@validated(database=args.database)
def list_stored(database: Database) -> Mapping[str, tuple[str, ...]]:
    """Return the versions of all models in a database, oldest first, by the names of the models.

    Args:
        database: a path or an open connection.
    """
    with open_checked(database) as session:
        found: dict[str, tuple[str, ...]] = {}
        for document in read_documents(session):
            found[document.name] = (*found.get(document.name, ()), document.version)
    return found


@validated(name=args.word, database=args.database, version=args.word)
def drop_stored(name: str, database: Database, *, version: str | None = None) -> None:
    """Remove a model from a database, with the tables of its weights.

    Args:
        name: the name of the model.
        database: a path or an open connection.
        version: the version to remove; by default all.

    Raises:
        NameResolutionError: there is no such model.
        ReadOnlyError: this user may not write the database.
    """
    where = f"drop model {name}"
    with open_checked(database) as session, session.writing(where), transaction(session):
        for document in _find(session, name, version):
            drop_document(session, document, where)


def _find(session: Session, name: str, version: str | None) -> list[ModelDocument]:
    """Return the description of one version of a model, or those of all, oldest first.

    Raises:
        NameResolutionError: there is none.
    """
    documents = read_documents(session, name)
    if not documents:
        known = list(dict.fromkeys(each.name for each in read_documents(session)))
        raise NameResolutionError(
            "no model of this name is stored here",
            where="ucle.models.stored",
            expected="one of " + ", ".join(known) if known else "model.store(database, name) first",
            found=repr(name),
            hint=did_you_mean(name, known),
        )
    fitting = [each for each in documents if version in (None, each.version)]
    if not fitting:
        raise NameResolutionError(
            "this version of the model is not stored here",
            where=f"ucle.models.stored, model {name}",
            expected="one of " + ", ".join(each.version for each in documents),
            found=repr(version),
        )
    return fitting
