{#- The materialization of models that ucle keeps up to date. A model computes nothing when it is
    built again but what the new rows of its inputs affect.

    A Python model returns a program; it is maintained under the name of the model. Without rows that
    are kept, and with `--full-refresh`, it is computed from scratch.

    The body of an SQL model is a script of `Maintained.to_sql(transaction=False)`: dbt then needs no
    ucle, and the program has to be maintained before the first build. -#}
{% materialization maintained, adapter="duckdb", supported_languages=["sql", "python"] %}
  {%- set language = model["language"] -%}
  {%- set target = this.incorporate(type="table") -%}
  {%- if language == "sql" and flags.FULL_REFRESH -%}
    {% do exceptions.raise_compiler_error("a script cannot compute from scratch: run set_up.py") %}
  {%- endif -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% call statement("main", language=language) -%}
    {{ compiled_code }}
    {%- if language == "python" %}{{ maintain_program() }}{% endif %}
  {%- endcall %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {% do persist_docs(target, model) %}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({"relations": [target]}) }}
{% endmaterialization %}

{#- dbt calls `materialize` with what the model has returned. -#}
{% macro maintain_program() %}


def materialize(program, cursor):
    import ucle
    from ucle.errors import NameResolutionError

    name = "{{ this.identifier }}"
    cursor.execute('USE {{ this.include(identifier=False) }}')
    try:
        kept = ucle.maintained(name, cursor)
    except NameResolutionError:
        kept = None
    if kept is not None and not {{ flags.FULL_REFRESH }}:
        kept.refresh()
        return
    if kept is not None:
        kept.drop()
    program.maintain(name, cursor, append_only={{ config.get("append_only", []) }})
{% endmacro %}
