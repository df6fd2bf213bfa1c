"""Word vectors by skip-gram with negative samples, and the topics of words by their clusters.

Sentences are made of words of a topic, and of words that belong to none. How often two words stand
near each other is counted in SQL, in a table that holds the pairs that occur. A step of training
makes the products of the vectors of such pairs greater, and those with words that are drawn at
random, by how often they occur, smaller. What is drawn depends on a seed, which the program makes
greater by 1 in each step. Then k-means (`k_means.py`) tells the topics apart.

To run it: `python examples/training/word_vectors.py`.

Source: Mikolov, Sutskever, Chen, Corrado and Dean, Distributed representations of words and phrases
and their compositionality, NIPS 2013.
"""

from __future__ import annotations

import click
import duckdb
import k_means
import numpy as np
from tables import store

import ucle
from ucle.run.iterate import Iteration

DRAWN = 24
"""Words that are drawn in each step, for all pairs together."""

NEGATIVES = 4.0
"""The total weight of the drawn words for each pair that occurs."""

MODEL = f"""
count[w] = sum[c](N[w,c])
all[] = sum[w](count[w])
below[w] = cumsum[w](count[w]) / all[]
drawn[s] = min(sum[w](below[w] <= random_uniform(seed[], s)), words[] - 1)
near[w,c] = sum[k](U[w,k] * V[c,k])
far[w,s] = sum[k](U[w,k] * V[drawn[s],k])
pulled = sum[w,c](N[w,c] * softplus(-near[w,c]))
pushed = {NEGATIVES / DRAWN} * sum[w,s](count[w] * softplus(far[w,s]))
loss = (pulled[] + pushed[]) / all[]
next_seed = seed[] + 1
"""


def make_corpus(
    connection: duckdb.DuckDBPyConnection, topics: int, words: int, sentences: int, seed: int
) -> None:
    """A table of sentences, one word a row: of a topic, or one in four of six words of none."""
    rng = np.random.default_rng(seed)
    shape = sentences, 8
    sentence, place = np.indices(shape)
    columns = {
        "sentence": sentence,
        "place": place,
        "topic": np.broadcast_to(rng.integers(0, topics, sentences)[:, None], shape),
        "number": rng.integers(0, words, shape),
        "of_none": rng.random(shape) < 0.25,
    }
    store(connection, "drawn", {name: column.ravel() for name, column in columns.items()})
    connection.execute("""
        CREATE OR REPLACE TABLE corpus AS
        SELECT sentence, place, CASE WHEN of_none THEN 'filler ' || number % 6
                                ELSE 'topic ' || topic || ', word ' || number END AS word
        FROM drawn
    """)


def count_pairs(connection: duckdb.DuckDBPyConnection, reach: int = 3) -> int:
    """Number the words, count those that stand within reach of each other; how many words."""
    connection.execute(f"""
        CREATE OR REPLACE TABLE words AS
        SELECT word, row_number() OVER (ORDER BY word) - 1 AS number FROM corpus GROUP BY word;
        CREATE OR REPLACE TABLE pairs AS
        SELECT one.number AS word, two.number AS context, count(*)::DOUBLE AS count
        FROM corpus a JOIN corpus b USING (sentence)
        JOIN words one ON a.word = one.word JOIN words two ON b.word = two.word
        WHERE abs(a.place - b.place) BETWEEN 1 AND {reach} GROUP BY ALL
    """)
    ((count,),) = connection.execute("SELECT count(*) FROM words").fetchall()
    return count


def train(
    connection: duckdb.DuckDBPyConnection, words: int, size: int, steps: int, seed: int
) -> Iteration:
    """Vectors of words, in ``U_next``, by some steps of Adam."""
    first = [ucle.random.normal(0, 0.1, seed=ucle.random.key(seed, n)) for n in (0, 1)]
    program = ucle.einsum_program(
        MODEL,
        N=ucle.table("pairs", ["word", "context"], "count", bounds=[words, words]),
        U=ucle.parameter(first[0].array((words, size))),
        V=ucle.parameter(first[1].array((words, size))),
        seed=ucle.parameter(seed),
        words=words,
        bounds={"s": DRAWN},
        database=connection,
    )
    step = program.minimize("loss", ["U", "V"], ucle.optim.adam(0.1))
    return step.iterate({**step.carry, "seed": "next_seed"}, max_steps=steps)


def write_vectors(connection: duckdb.DuckDBPyConnection, found: Iteration) -> None:
    """A table of words and their vectors, all of length 1."""
    found["U_next"].to_table("trained_vectors", keys=["w"], mode="replace")
    connection.execute("""
        CREATE OR REPLACE TABLE vectors AS
        SELECT word, list_transform(val, lambda x: x / sqrt(list_inner_product(val, val))) AS vector
        FROM trained_vectors JOIN words ON w = number
    """)


def agreement(one: list[object], other: list[object]) -> float:
    """Normalised mutual information of two ways to tell things apart: from 0 to 1."""
    table = np.zeros((len(set(one)), len(set(other))))
    places = [{x: n for n, x in enumerate(dict.fromkeys(each))} for each in (one, other)]
    np.add.at(table, ([places[0][x] for x in one], [places[1][x] for x in other]), 1 / len(one))
    left, right = table.sum(axis=1), table.sum(axis=0)
    there = table > 0
    shared = (table[there] * np.log(table[there] / np.outer(left, right)[there])).sum()
    entropies = [-(x * np.log(x)).sum() for x in (left, right)]
    return float(2 * shared / sum(entropies))


def topics_of_words(
    connection: duckdb.DuckDBPyConnection, topics: int, seed: int
) -> list[tuple[str, int]]:
    """Words of topics with the numbers of their clusters."""
    connection.execute(
        "CREATE OR REPLACE VIEW of_topics AS FROM vectors WHERE word NOT LIKE 'filler%'"
    )
    centres = k_means.k_means(connection, "of_topics", topics, attempts=4, seed=seed)
    k_means.assign(connection, "of_topics", centres, "clusters")
    return connection.execute("SELECT name, val FROM clusters ORDER BY name").fetchall()


@click.command()
@click.option("--topics", default=5, show_default=True)
@click.option("--words", default=12, show_default=True, help="Of each topic.")
@click.option("--sentences", default=500, show_default=True)
@click.option("--steps", default=60, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(topics: int, words: int, sentences: int, steps: int, seed: int) -> None:
    """Learn vectors of words, and tell topics apart by them."""
    with ucle.connect() as connection:
        make_corpus(connection, topics, words, sentences, seed)
        count = count_pairs(connection)
        with train(connection, count, 8, steps, seed) as found:
            losses = found.history["loss"]
            print(f"{count} words; loss {losses[0]:.3f} at first, {losses[-1]:.3f} now")
            write_vectors(connection, found)
        names, clusters = zip(*topics_of_words(connection, topics, seed), strict=True)
        same = agreement([name.partition(",")[0] for name in names], list(clusters))
        print(f"topics and clusters agree by {same:.3f}")


if __name__ == "__main__":
    main()
