"""Layers of LSTM over a sequence, and classes of what the last step gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.cuda.networks.base import Made, Tensors, Work, cross_entropy, normal


@dataclass(frozen=True)
class Recurrent:
    """Sequences [steps, batch, units]; gates in the order that cuDNN has them: input, forget, new, output."""

    units: int = 512
    layers: int = 2
    steps: int = 100
    batch: int = 64
    classes: int = 10

    @property
    def depth(self) -> int:
        return self.layers * self.steps

    def weights(self) -> dict[str, Any]:
        random, found, scale = np.random.default_rng(10), dict[str, Any](), self.units**-0.5
        for layer in range(self.layers):
            found[f"{layer}.w"] = random.uniform(-scale, scale, (2 * self.units, 4 * self.units)).astype(np.float32)
            found[f"{layer}.b"] = random.uniform(-scale, scale, 4 * self.units).astype(np.float32)
        found["last.w"] = normal(random, self.units, self.classes, scale=scale)
        found["last.b"] = normal(random, self.classes, scale=0.1)
        return found

    def state(self) -> dict[str, Any]:
        return {}

    def data(self) -> dict[str, Any]:
        random = np.random.default_rng(11)
        return {
            "x": normal(random, self.steps, self.batch, self.units),
            "labels": random.integers(0, self.classes, self.batch),
        }

    def ours(self, gm: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        zeros = gm.constant(np.zeros((self.batch, self.units), np.float32))
        rows = gm.unstack(d["x"], self.steps)
        for layer in range(self.layers):
            outer, inner = gm.split(w[f"{layer}.w"], 2, 0)
            given = gm.bias_add(gm.matmul(gm.concat(rows, 0), outer), w[f"{layer}.b"])  # of all steps at once
            c = h = zeros
            following: list[Any] = []
            for gates in gm.split(given, self.steps, 0):  # a graph without a loop, as static_rnn makes it
                i, f, g, o = gm.split(gates + gm.matmul(h, inner), 4, 1)
                c = gm.sigmoid(f) * c + gm.sigmoid(i) * gm.tanh(g)
                h = gm.sigmoid(o) * gm.tanh(c)
                following.append(h)
            rows = following
        logits = gm.bias_add(gm.matmul(rows[-1], w["last.w"]), w["last.b"])
        if not training:
            return Made(logits)
        losses = gm.sparse_softmax_cross_entropy_with_logits(labels=d["labels"], logits=logits)
        return Made(gm.reduce_mean(losses))

    def torch_weights(self, torch: Any, w: Tensors) -> Any:
        """cuDNN's own layer, with its weights in one piece; they are in another order than `weights`."""
        layer = torch.nn.LSTM(self.units, self.units, self.layers)
        with torch.no_grad():
            for index in range(self.layers):
                both = torch.from_numpy(w[f"{index}.w"])
                getattr(layer, f"weight_ih_l{index}").copy_(both[: self.units].T)
                getattr(layer, f"weight_hh_l{index}").copy_(both[self.units :].T)
                getattr(layer, f"bias_ih_l{index}").copy_(torch.from_numpy(w[f"{index}.b"]))
                # a second bias, which adds to the first: neither engine beside it has one
                getattr(layer, f"bias_hh_l{index}").zero_().requires_grad_(False)
        return layer

    def torch(self, torch: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        outputs, _ = w["layer"](d["x"])
        logits = torch.addmm(w["last.b"], outputs[-1], w["last.w"])
        return Made(torch.nn.functional.cross_entropy(logits.float(), d["labels"]) if training else logits)

    def jax(self, jax: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        jnp, x = jax.numpy, d["x"]
        for layer in range(self.layers):
            kernel = w[f"{layer}.w"]
            given = x @ kernel[: self.units] + w[f"{layer}.b"]  # of all steps at once, as XLA's users write it

            def step(carry: Any, gates: Any, kernel: Any = kernel) -> Any:
                c, h = carry
                i, f, g, o = jnp.split(gates + h @ kernel[self.units :], 4, -1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (c, h), h

            zeros = jnp.zeros((self.batch, self.units), x.dtype)
            x = jax.lax.scan(step, (zeros, zeros), given)[1]
        logits = x[-1] @ w["last.w"] + w["last.b"]
        return Made(cross_entropy(jax, logits, d["labels"]) if training else logits)

    def work(self, training: bool) -> Work:
        weights = self.layers * 8 * self.units**2
        data = self.steps * self.batch * self.units
        return Work(
            2.0 * self.steps * self.batch * weights * (3 if training else 1),
            4.0 * (weights * (8 if training else 1) + data * (self.layers + 1)),
        )
