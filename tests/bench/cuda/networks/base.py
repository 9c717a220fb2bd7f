"""A network as all three engines have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

#: name to array or to an engine's own tensor
Tensors = Mapping[str, Any]


class Made(NamedTuple):
    """What a network computes in an engine.

    Attributes:
        value: the output; in training the loss, one number.
        state: what its state becomes, by name; empty where it has none or does not learn.
    """

    value: Any
    state: Tensors = MappingProxyType({})


class Work(NamedTuple):
    """Attributes:
    flops: operations of one step.
    bytes: that must move at least: weights and data, and what is written.
    """

    flops: float
    bytes: float


class Network(Protocol):
    """A network of one size, which computes with weights, state and data by name. Arrays are float32 or int64.

    `torch` is given filters as [out, in, height, width] and images as [batch, channels, height, width]; the others as
    TensorFlow has them.
    """

    #: layers in a row: what rounding errors grow with
    @property
    def depth(self) -> int: ...

    def weights(self) -> dict[str, Any]:
        """Trainable arrays, the same each time."""
        ...

    def state(self) -> dict[str, Any]:
        """What changes in training without a gradient; empty where there is none."""
        ...

    def data(self) -> dict[str, Any]:
        """One batch: "x", and "labels" where it learns."""
        ...

    def ours(self, gm: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made: ...

    def torch(self, torch: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made: ...

    def jax(self, jax: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made: ...

    def work(self, training: bool) -> Work: ...


@dataclass(frozen=True)
class Optimizer:
    """How a network learns.

    Attributes:
        kind: "sgd", "momentum" (0.9) or "adam" (TensorFlow's defaults).
    """

    kind: str
    rate: float

    def ours(self, gm: Any) -> Any:
        train = gm.train
        if self.kind == "momentum":
            return train.Momentum(self.rate, 0.9)
        return train.Adam(self.rate) if self.kind == "adam" else train.GradientDescent(self.rate)

    def torch(self, torch: Any, parameters: Any) -> Any:
        fused = {"fused": True} if torch.cuda.is_available() else {}
        if self.kind == "adam":
            return torch.optim.Adam(parameters, self.rate, **fused)
        return torch.optim.SGD(parameters, self.rate, momentum=0.9 if self.kind == "momentum" else 0.0, **fused)

    def jax(self, jax: Any) -> tuple[Callable[[Any], Any], Callable[[Any, Any, Any], Any]]:
        """(weights to slots, (weights, gradients, slots) to both anew)."""
        jnp, each = jax.numpy, jax.tree_util.tree_map

        def begin(w: Any) -> Any:
            zeros = each(jnp.zeros_like, w)
            return {"sgd": {}, "momentum": {"m": zeros}}.get(
                self.kind, {"m": zeros, "v": each(jnp.zeros_like, w), "t": jnp.zeros(())}
            )

        def update(w: Any, g: Any, slots: Any) -> Any:
            if self.kind == "sgd":
                return each(lambda a, b: a - self.rate * b, w, g), slots
            if self.kind == "momentum":
                m = each(lambda a, b: 0.9 * a + b, slots["m"], g)
                return each(lambda a, b: a - self.rate * b, w, m), {"m": m}
            t = slots["t"] + 1
            m = each(lambda a, b: 0.9 * a + 0.1 * b, slots["m"], g)
            v = each(lambda a, b: 0.999 * a + 0.001 * b * b, slots["v"], g)
            rate = self.rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            return each(lambda a, b, c: a - rate * b / (jnp.sqrt(c) + 1e-8), w, m, v), {"m": m, "v": v, "t": t}

        return begin, update


def normal(random: np.random.Generator, *shape: int, scale: float = 1.0) -> Any:
    """float32, bell-shaped."""
    return random.standard_normal(shape, np.float32) * np.float32(scale)


def cross_entropy(jax: Any, logits: Any, labels: Any) -> Any:
    """The mean loss, as JAX has it."""
    jnp = jax.numpy
    chances = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(chances, labels[:, None], 1))
