"""Self-attention over short sequences: the first symbol says at which place to read the answer.

Two heads of scaled dot-product attention, a residual, softmax and cross-entropy, trained by Adam on
a new batch in each step. Nothing but attention can move a symbol from one place to another: without
it the answer is a guess.

    python examples/training/attention.py

Source: Vaswani et al., Attention is all you need, NeurIPS 2017.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import ucle

Array = NDArray[Any]

HELD_OUT = -1
"""The number of the batch that nothing is trained on."""

NETWORK = """
x[b,t,d] = symbol[word[b,t],d] + place[t,d]

query[b,h,t,e] = x[b,t,d] * Wq[h,d,e]
key[b,h,t,e]   = x[b,t,d] * Wk[h,d,e]
value[b,h,t,e] = x[b,t,d] * Wv[h,d,e]
fits[b,h,t,s]  = sum[e](query[b,h,t,e] * key[b,h,s,e]) / {scale}
looks[b,h,t,s] = exp(fits[b,h,t,s] - logsumexp[u](fits[b,h,t,u]))      # softmax
seen[b,h,t,e]  = looks[b,h,t,s] * value[b,h,s,e]
y[b,t,d]       = x[b,t,d] + sum[h,e](seen[b,h,t,e] * Wo[h,e,d])

score[b,c] = y[b,0,d] * out[d,c]
loss       = mean[b](logsumexp[c](score[b,c]) - score[b,answer[b]])
"""


@dataclass(frozen=True)
class Settings:
    """Sizes of the network and settings of its training."""

    symbols: int = 8
    places: int = 6
    width: int = 16
    heads: int = 2
    batch: int = 64
    rate: float = 0.02
    steps: int = 80
    seed: int = 0


def batch(settings: Settings, number: int) -> dict[str, Array]:
    """Sequences and their answers: what stands where the first symbol says."""
    seed = ucle.random.key(settings.seed, number)
    drawn = ucle.random.uniform(seed=seed).array((settings.batch, settings.places))
    word = (drawn * settings.symbols).astype(np.int64)
    word[:, 0] = 1 + (drawn[:, 0] * (settings.places - 1)).astype(np.int64)
    return {"word": word, "answer": word[np.arange(len(word)), word[:, 0]]}


def initial_weights(settings: Settings) -> dict[str, Array]:
    """Glorot's."""
    width, heads = settings.width, settings.heads
    narrow = width // heads
    shapes = {
        "symbol": (settings.symbols, width),
        "place": (settings.places, width),
        **dict.fromkeys(("Wq", "Wk", "Wv"), (heads, width, narrow)),
        "Wo": (heads, narrow, width),
        "out": (width, settings.symbols),
    }
    return {
        name: ucle.init.glorot_uniform(shape, seed=ucle.random.key(settings.seed, -1, n))
        for n, (name, shape) in enumerate(shapes.items())
    }


def network(
    settings: Settings,
    weights: Mapping[str, Array],
    database: Any = None,
    outputs: tuple[str, ...] = ("loss",),
) -> ucle.EinsumProgram:
    """The program of the network; its weights and its batch are others in each run."""
    text = NETWORK.format(scale=(settings.width // settings.heads) ** 0.5)
    varying = {**weights, **batch(settings, 0)}
    inputs = {name: ucle.parameter(value) for name, value in varying.items()}
    return ucle.einsum_program(text, inputs=inputs, outputs=outputs, database=database)


def train(settings: Settings, database: Any = None) -> tuple[dict[str, Array], list[float]]:
    """The weights after training, and the loss of each step."""
    weights = initial_weights(settings)
    forward = network(settings, weights, database)
    step = forward.minimize("loss", list(weights), ucle.optim.adam(settings.rate))
    with step.prepare() as run:
        losses = [run(**batch(settings, n))["loss"].item() for n in range(settings.steps)]
        return {name: run.state[name].to_numpy() for name in weights}, losses


def answers(
    settings: Settings, weights: Mapping[str, Array], number: int, database: Any = None
) -> tuple[Array, Array]:
    """Return the network's answers to a batch, and the attention of each head at place 0."""
    program = network(settings, weights, database, ("score", "looks"))
    with program.execute(inputs=batch(settings, number)) as result:
        score, looks = result["score"].to_numpy(), result["looks"].to_numpy()
    return score.argmax(axis=1), looks[:, :, 0]


@click.command()
@click.option("--steps", type=click.IntRange(1), default=Settings.steps, show_default=True)
@click.option("--heads", type=click.Choice([1, 2, 4]), default=Settings.heads, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
def main(**options: Any) -> None:
    """Train two heads of self-attention to read where the first symbol says."""
    settings = Settings(**options)
    with ucle.connect() as connection:
        start = time.perf_counter()
        weights, losses = train(settings, connection)
        seconds = time.perf_counter() - start
        held_out = replace(settings, batch=1000)
        found, looks = answers(held_out, weights, HELD_OUT, connection)
    click.echo(f"{settings.steps} steps in {seconds:.1f} s")
    for step in dict.fromkeys((0, settings.steps // 4, settings.steps // 2, settings.steps - 1)):
        click.echo(f"  step {step}: loss {losses[step]:.4f}")
    asked = batch(held_out, HELD_OUT)
    right = float((found == asked["answer"]).mean())
    click.echo(
        f"of 1,000 others {right:.1%} are right; a guess is so in {1 / settings.symbols:.1%}"
    )
    for word, answer, weight in zip(asked["word"][:3], found, looks, strict=False):
        heads = "; ".join(" ".join(f"{x:.2f}" for x in head) for head in weight)
        click.echo(f"  {' '.join(map(str, word))} -> {answer}, looking at {heads}")


if __name__ == "__main__":
    main()
