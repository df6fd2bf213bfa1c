"""How often two products were in one basket: a program whose result is kept up to date."""

import ucle


def model(dbt, session):
    """A row for each pair of products; only those of new baskets are computed again."""
    dbt.config(materialized="maintained", append_only=["B"])
    dbt.ref("baskets")  # before this model; the program reads the table by its name
    return ucle.einsum_program(
        "together[p,q] += B[b,p] * B[b,q]",
        B=ucle.table("baskets", value=1),
        database=session.cursor(),
    )
