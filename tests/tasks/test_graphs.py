"""Graphs: edge lists of files, frames and tables, whose nodes have names or scattered ids."""

from __future__ import annotations

from pathlib import Path

import duckdb
import igraph
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import ucle

BOTH_ENDS = {"src": "node", "dst": "node"}


@pytest.fixture(scope="module")
def edges() -> pd.DataFrame:
    """Some 240 directed links of forty people without loops; the last three link to nobody."""
    random = np.random.default_rng(3)
    src, dst = random.integers(0, 37, 260), random.integers(0, 40, 260)
    names = np.array([f"p{n:02}@example.org" for n in range(40)])
    frame = pd.DataFrame({"src": names[src], "dst": names[dst]})
    return frame[frame["src"] != frame["dst"]].drop_duplicates(ignore_index=True)


@pytest.fixture(scope="module")
def graph(edges: pd.DataFrame) -> igraph.Graph:
    """The graph in igraph, its vertices in the order of their names."""
    names = sorted({*edges["src"], *edges["dst"]})
    graph = igraph.Graph(directed=True)
    graph.add_vertices(names)
    graph.add_edges(list(edges.itertuples(index=False, name=None)))
    return graph


def adjacency(edges: pd.DataFrame) -> ucle.Tensor:
    """The adjacency tensor that all tasks begin with."""
    return ucle.tensor(
        ucle.table(edges, ["src", "dst"], coordinates=BOTH_ENDS), axes=("src", "dst")
    )


def undirected(edges: pd.DataFrame) -> pd.DataFrame:
    """Every edge in both directions, once."""
    turned = edges.rename(columns={"src": "dst", "dst": "src"})
    return pd.concat([edges, turned]).drop_duplicates(ignore_index=True)


def test_pagerank_stored_by_name(edges: pd.DataFrame, graph: igraph.Graph, tmp_path: Path) -> None:
    links = adjacency(edges)
    out = links.sum("dst")
    count = (out >= 0).sum()
    follow = links / ucle.maximum(out, 1)
    rank = (out >= 0) / count
    for _ in range(15):
        followed = follow.dot(rank, axis="src").rename({"dst": "src"})
        rank = 0.85 * (followed + (rank * (out == 0)).sum() / count) + 0.15 / count
    with ucle.connect(tmp_path / "web.duckdb") as connection:
        rank.rename({"src": "person"}).to_table("pagerank", connection, keys=["person"])
        found = connection.sql("SELECT person, val FROM pagerank ORDER BY person").df()
    assert list(found["person"]) == graph.vs["name"]
    np.testing.assert_allclose(found["val"], graph.pagerank(), atol=1e-5)


def test_degrees_of_a_csv_file(edges: pd.DataFrame, graph: igraph.Graph, tmp_path: Path) -> None:
    edges.to_csv(tmp_path / "edges.csv", index=False)
    program = ucle.einsum_program(
        "followers[j] += E[i,j]; follows[i] += E[i,j]",
        E=ucle.table(str(tmp_path / "edges.csv"), coordinates={"i": "node", "j": "node"}),
    )
    with program.execute() as result:
        followers = result["followers"].to_pandas().set_index("j")["val"]
        follows = result["follows"].to_pandas().set_index("i")["val"]
    names = graph.vs["name"]
    assert list(followers.reindex(names, fill_value=0)) == graph.indegree()
    assert list(follows.reindex(names, fill_value=0)) == graph.outdegree()


def test_common_neighbours_of_polars(edges: pd.DataFrame, graph: igraph.Graph) -> None:
    links = ucle.table(
        pl.from_pandas(edges), ["src", "dst"], coordinates={"i": "node", "j": "node"}
    )
    program = ucle.einsum_program("C[i,k] += A[i,j] * A[k,j]", A=links)
    with program.execute() as result:
        common = result["C"].to_polars()
    known = np.array(graph.get_adjacency().data)
    expected = known @ known.T
    names = graph.vs["name"]
    rows = {(a, b): value for a, b, value in common.iter_rows()}
    assert rows == {(names[a], names[b]): expected[a, b] for a, b in np.argwhere(expected)}


def test_triangles_of_each_node(edges: pd.DataFrame, graph: igraph.Graph) -> None:
    friends = undirected(edges)
    program = ucle.einsum_program(
        "t[i] += A[i,j] * A[j,k] * A[k,i] / 2",
        A=ucle.table(friends, ["src", "dst"]),
    )
    with program.execute() as result:
        found = result["t"].to_numpy()
        assert result["t"].coordinates("i").to_pylist() == graph.vs["name"]
    simple = graph.as_undirected()
    expected = [0] * simple.vcount()
    for triangle in simple.list_triangles():
        for node in triangle:
            expected[node] += 1
    assert found.tolist() == expected


def test_shortest_paths_by_squaring(edges: pd.DataFrame, graph: igraph.Graph) -> None:
    random = np.random.default_rng(4)
    roads = edges.assign(km=random.integers(1, 30, len(edges)).astype(float))
    distance = ucle.table(
        roads, ["src", "dst"], "km", fill=np.inf, coordinates={"i": "n", "j": "n"}
    )
    # A way of no edge leads from each node to itself, one of up to eight edges to the others.
    program = ucle.einsum_program(
        """
        A[i,j] = min(D[i,j], S[i,j])
        B[i,k] min= A[i,j] + A[j,k]
        C[i,k] min= B[i,j] + B[j,k]
        E[i,k] min= C[i,j] + C[j,k]
        """,
        D=distance,
        S=ucle.table(
            pd.DataFrame({"a": graph.vs["name"], "b": graph.vs["name"]}),
            ["a", "b"],
            0.0,
            fill=np.inf,
            coordinates={"i": "n", "j": "n"},
        ),
    )
    with program.execute() as result:
        found = result["E"].to_numpy()
    at = {name: n for n, name in enumerate(graph.vs["name"])}
    known = np.full((len(at), len(at)), np.inf)
    for src, dst, km in roads.itertuples(index=False):
        known[at[src], at[dst]] = km
    expected = scipy.sparse.csgraph.shortest_path(
        scipy.sparse.csr_array(np.where(known < np.inf, known, 0))
    )
    np.testing.assert_allclose(found, expected)


def test_who_is_two_steps_away(edges: pd.DataFrame, graph: igraph.Graph) -> None:
    with duckdb.connect() as connection:
        connection.register("follows", edges)
        program = ucle.einsum_program(
            "R[i,k] any= A[i,j] and A[j,k]",
            A=ucle.table("follows", ["src", "dst"], dtype="bool", coordinates={"i": "n", "j": "n"}),
            database=connection,
        )
        with program.execute() as result:
            reached = result["R"].relation
            rows = reached.filter("i <> k").order("i, k").select("i, k").fetchall()
    names = graph.vs["name"]
    expected = [
        (names[a], names[c])
        for a in range(len(names))
        for c in sorted({c for b in graph.neighbors(a, "out") for c in graph.neighbors(b, "out")})
        if a != c
    ]
    assert rows == expected


def test_connected_components_by_labels() -> None:
    """Ids are scattered; each node takes the largest label near it, until nothing changes."""
    pairs = [(90210, 70), (70, 31415926), (8, 512), (1024, 512), (600, 601)]
    both = pd.DataFrame(pairs + [(b, a) for a, b in pairs], columns=["a", "b"])
    nodes = pd.DataFrame({"id": both["a"].unique()})
    links = ucle.tensor(
        ucle.table(both, ["a", "b"], dtype="bool", coordinates={"a": "node", "b": "node"}),
        axes=("a", "b"),
    )
    label = ucle.tensor(
        ucle.table(nodes.assign(label=nodes["id"]), ["id"], "label", coordinates={"a": "node"}),
        axes=("a",),
    )
    while True:
        near = ucle.where(links, label.rename({"a": "b"}), 0).max("b")
        further, changed = ucle.compute(
            ucle.maximum(label, near), (ucle.maximum(label, near) != label).any()
        )
        label = ucle.tensor(further, axes=("a",))
        if not changed.to_numpy():
            break
    found = dict(further.to_pandas().itertuples(index=False))
    graph = igraph.Graph.TupleList(pairs)
    expected = {}
    for members in graph.connected_components():
        names = graph.vs[members]["name"]
        expected |= dict.fromkeys(names, max(names))
    assert found == expected


def test_adjacency_normalised_on_both_sides(edges: pd.DataFrame, graph: igraph.Graph) -> None:
    friends = ucle.tensor(
        ucle.table(undirected(edges), ["src", "dst"], coordinates=BOTH_ENDS), axes=("src", "dst")
    )
    degree = friends.sum("dst")
    norm = ucle.where(degree > 0, degree**-0.5, 0)
    normalised = friends * norm * norm.rename({"src": "dst"})
    found = normalised.compute().to_scipy()
    laplacian = np.array(graph.as_undirected().laplacian(normalized="symmetric"))
    np.testing.assert_allclose(np.eye(40) - found.toarray(), laplacian, atol=1e-12)


def test_graph_convolution_of_array_columns(edges: pd.DataFrame, graph: igraph.Graph) -> None:
    """Nodes have surrogate ids and FLOAT[16] embeddings in one database, edges in another table."""
    random = np.random.default_rng(6)
    features = random.normal(size=(40, 16)).astype(np.float32)
    weights = random.normal(size=(16, 4))
    with ucle.connect() as connection:
        frame = pd.DataFrame({"id": range(40), "name": graph.vs["name"], "h": list(features)})
        connection.register("frame", frame)
        connection.execute("CREATE TABLE people AS SELECT id, name, h::FLOAT[16] AS h FROM frame")
        connection.execute("""
            CREATE TABLE links AS SELECT a.id AS src, b.id AS dst
            FROM edges JOIN people a ON a.name = src JOIN people b ON b.name = dst
        """)
        program = ucle.einsum_program(
            "Z[i,n] = relu(sum[l,m](A[i,l] * H[l,m] * W[m,n]) + b[n])",
            A=ucle.table("links", ["src", "dst"], bounds=[40, 40]),
            H=ucle.table("people", ["id"], "h"),
            W=weights,
            b=[0.1, 0, -0.1, 0],
            database=connection,
        )
        with program.execute() as result:
            found = result["Z"].to_numpy()
            result["Z"].to_table("hidden", keys=["i"], rows="all")
        named = connection.sql(
            "SELECT name, val FROM people LEFT JOIN hidden ON i = id ORDER BY id"
        ).fetchall()
    known = np.array(graph.get_adjacency().data)
    expected = np.maximum(known @ features.astype(float) @ weights + [0.1, 0, -0.1, 0], 0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert [name for name, _ in named] == graph.vs["name"]
    np.testing.assert_allclose([row for _, row in named], expected, rtol=1e-5, atol=1e-5)


def test_attention_over_the_edges(edges: pd.DataFrame, graph: igraph.Graph) -> None:
    """Each person attends to whom they follow, and to nobody else."""
    scores = edges.assign(score=np.random.default_rng(7).normal(size=len(edges)))
    table = ucle.table(
        scores, ["src", "dst"], "score", fill=-np.inf, coordinates={"i": "n", "j": "n"}
    )
    program = ucle.einsum_program(
        """
        top[i] max= S[i,j]
        e[i,j] = where(S[i,j] > -1e30, exp(S[i,j] - max(top[i], -1e30)), 0)
        P[i,j] = e[i,j] / max(sum[k](e[i,k]), 1e-300)
        """,
        S=table,
    )
    with program.execute() as result:
        found = result["P"].to_pandas().rename(columns={"i": "src", "j": "dst"})
    scores["known"] = scores.groupby("src")["score"].transform(
        lambda s: np.exp(s) / np.exp(s).sum()
    )
    both = scores.merge(found, on=["src", "dst"], how="outer")
    assert len(both) == len(scores)
    np.testing.assert_allclose(both["val"], both["known"])


def test_duplicate_edges_are_refused_or_added_up(edges: pd.DataFrame) -> None:
    twice = pd.concat([edges, edges.head(3)])
    with pytest.raises(ucle.UcleError, match="duplicates"):
        ucle.einsum_program("n[] += E[i,j]", E=twice).execute()
    summed = ucle.table(twice, ["src", "dst"], duplicates="sum")
    with ucle.einsum_program("n[] += E[i,j]; m[] max= E[i,j]", E=summed).execute() as result:
        assert (result["n"].to_numpy(), result["m"].to_numpy()) == (len(edges) + 3, 2)
