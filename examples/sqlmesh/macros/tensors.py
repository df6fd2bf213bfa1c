"""The table macro of a program over models: ``FROM @tensor('steps', edges := graph.edges)``."""

from pathlib import Path

from sqlglot import exp
from sqlmesh import macro


@macro()
def create_steps(evaluator):
    """The output of ``ucle sql --macro``, without the table that it takes by default."""
    return (Path(__file__).parent / "steps.sql").read_text()


@macro()
def tensor(evaluator, name, **tables):
    """The call of a macro, with the tables in which models lie at the time."""
    arguments = [
        exp.PropertyEQ(
            this=exp.to_identifier(f"{parameter}_table"),
            expression=exp.Literal.string(evaluator.resolve_table(table)),
        )
        for parameter, table in tables.items()
    ]
    return exp.Anonymous(this=name.name, expressions=arguments)
