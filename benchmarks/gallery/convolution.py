"""Convolution over pixels.

What do filters see in images? A table has a row for each image, with its pixels in an array of
rows. Each filter slides over all places of all images.
"""

import numpy as np
from data import columns, vectors
from tables import store

import ucle

PEER = "NumPy"
TOLERANCE = 1e-5  # of float32
SMALL = {"images": 20, "size": 12}
FULL = {"images": 2000, "size": 32}

FILTERS = np.array(
    [[[1, 2, 1], [0, 0, 0], [-1, -2, -1]], [[1, 0, -1], [2, 0, -2], [1, 0, -1]], np.ones((3, 3))],
    dtype=np.float32,
)


def make_data(connection, images, size):
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:size, :size]
    middle, radius = rng.uniform(0.3, 0.7, (2, images, 1, 1)) * size, size * 0.25
    disc = (x - middle[0]) ** 2 + (y - middle[1]) ** 2 < radius**2
    pixels = vectors(disc.reshape(images, -1).astype(np.float32))
    store(connection, "flat", {"image": np.arange(images), "pixels": pixels})
    rows = ", ".join(f"pixels[{1 + n * size}:{(n + 1) * size}]" for n in range(size))
    connection.execute(f"""
        CREATE OR REPLACE TABLE images AS
        SELECT image, [{rows}]::FLOAT[{size}][{size}] AS pixels FROM flat
    """)


def program(connection):
    return ucle.einsum_program(
        "seen[image,f,y,x] = sum[u,v](P[image,y+u,x+v] * K[f,u,v])",
        P="images",
        K=FILTERS,
        database=connection,
    )


def by_ucle(connection):
    with program(connection).execute() as result:
        result["seen"].to_table("seen", keys=["image"], mode="replace", rows="all")
    return connection.table("seen")


def by_sql(connection):
    store(
        connection,
        "filters",
        dict(zip("fuv", np.indices(FILTERS.shape).reshape(3, -1), strict=True))
        | {"weight": FILTERS.ravel()},
    )
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE seen_by_sql AS
        WITH lines AS (
            SELECT image, unnest(pixels) AS line, generate_subscripts(pixels, 1) - 1 AS y
            FROM images
        ), entries AS (
            SELECT image, y, unnest(line) AS val, generate_subscripts(line, 1) - 1 AS x FROM lines
        ), size AS (SELECT max(y) - 2 AS size FROM lines)
        SELECT image, f, y - u AS y, x - v AS x, sum(val * weight) AS val
        FROM entries, filters, size
        WHERE y - u BETWEEN 0 AND size AND x - v BETWEEN 0 AND size GROUP BY ALL
    """)
    return connection.table("seen_by_sql")


def arrays(connection):
    (flat,) = columns(connection, "SELECT flatten(pixels::FLOAT[][]) FROM images ORDER BY image")
    size = int(flat.shape[1] ** 0.5)
    return (flat.reshape(-1, size, size),)


def by_peer(images):
    windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(1, 2))
    return np.einsum("nyxuv,fuv->nfyx", windows, FILTERS, optimize=True)


def picture(axes, connection):
    (seen,) = columns(connection, "SELECT val FROM seen WHERE image = 0")
    size = int((seen.size // len(FILTERS)) ** 0.5)
    axes.imshow(np.hstack(seen.reshape(-1, size, size)), cmap="coolwarm")
    axes.set(xticks=[], yticks=[], title="What three filters see in an image")
