{#- The table macro of a program over relations: FROM {{ tensor("steps", edges=ref("edges")) }} -#}
{% macro tensor(name) -%}
{{ name }}(
{%- for table, relation in kwargs.items() -%}
{{ table }}_table := '{{ relation }}'{{ ", " if not loop.last }}
{%- endfor -%}
)
{%- endmacro %}
