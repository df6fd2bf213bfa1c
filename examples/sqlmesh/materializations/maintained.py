"""The kind of a model that a script of ucle keeps up to date.

``kind CUSTOM (materialization 'maintained', materialization_properties (script = 'popular.sql'))``:
the model is a view of a table that ucle maintains, and its evaluation runs the script, which
computes what the new rows of the inputs affect.
"""

from pathlib import Path

from sqlmesh import CustomMaterialization

SCRIPTS = Path(__file__).parents[1] / "scripts"


class Maintained(CustomMaterialization):
    """A view, and a script before it is read."""

    NAME = "maintained"

    def create(self, table_name, model, is_table_deployable, render_kwargs, **kwargs):
        """Create the view: a new version of the model shows the same table."""
        self.adapter.create_view(table_name, model.render_query_or_raise(**render_kwargs))

    def insert(self, table_name, query_or_df, model, is_first_insert, render_kwargs, **kwargs):
        """Run the script, which is a transaction: an error leaves all tables as they were."""
        script = SCRIPTS / str(model.custom_materialization_properties["script"])
        try:
            self.adapter.execute(script.read_text())
        except Exception:
            self.adapter.execute("ROLLBACK")
            raise

    def delete(self, name, **kwargs):
        """Drop the view; the table stays."""
        self.adapter.drop_view(name, ignore_if_not_exists=True)
