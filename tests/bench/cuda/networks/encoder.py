"""A transformer as BERT's base model has it, from hidden vectors on (no table of words), or with GPT's mask."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.cuda.networks.base import Made, Tensors, Work, cross_entropy, normal

_EPSILON = 1e-12


@dataclass(frozen=True)
class Encoder:
    """Layers of attention and of two dense products, normalized behind each; written in ops as BERT's own code has it.

    For inference [batch * tokens, width] out of as much; in training the mean cross entropy of classes of the means
    over the tokens.

    Attributes:
        causal: a token sees those before it and itself only: -1e9 is added to the scores of the others.
    """

    batch: int = 8
    layers: int = 12
    width: int = 768
    heads: int = 12
    tokens: int = 128
    classes: int = 10
    causal: bool = False

    @property
    def depth(self) -> int:
        return 6 * self.layers

    @property
    def _inner(self) -> int:
        return 4 * self.width

    def weights(self) -> dict[str, Any]:
        random, found = np.random.default_rng(8), dict[str, Any]()

        def dense(name: str, rows: int, columns: int) -> None:
            found[f"{name}.w"] = normal(random, rows, columns, scale=rows**-0.5)
            found[f"{name}.b"] = normal(random, columns, scale=0.1)

        for layer in range(self.layers):
            for part in ("query", "key", "value", "joined"):
                dense(f"{layer}.{part}", self.width, self.width)
            dense(f"{layer}.wide", self.width, self._inner)
            dense(f"{layer}.narrow", self._inner, self.width)
            for part in ("first", "second"):
                found[f"{layer}.{part}.gamma"] = 1 + normal(random, self.width, scale=0.1)
                found[f"{layer}.{part}.beta"] = normal(random, self.width, scale=0.1)
        dense("last", self.width, self.classes)
        return found

    def state(self) -> dict[str, Any]:
        return {}

    def data(self) -> dict[str, Any]:
        random = np.random.default_rng(9)
        return {
            "x": normal(random, self.batch * self.tokens, self.width),
            "labels": random.integers(0, self.classes, self.batch),
        }

    def ours(self, gm: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        size = self.width // self.heads

        def dense(x: Any, name: str) -> Any:
            return gm.bias_add(gm.matmul(x, w[f"{name}.w"]), w[f"{name}.b"])

        def norm(x: Any, name: str) -> Any:
            mean, variance = gm.moments(x, [-1], keepdims=True)
            return gm.batch_normalization(x, mean, variance, w[f"{name}.beta"], w[f"{name}.gamma"], _EPSILON)

        def heads(x: Any) -> Any:
            return gm.transpose(gm.reshape(x, [self.batch, self.tokens, self.heads, size]), [0, 2, 1, 3])

        x = d["x"]
        for layer in range(self.layers):
            query, key, value = (heads(dense(x, f"{layer}.{part}")) for part in ("query", "key", "value"))
            scores = gm.matmul(query, key, transpose_b=True) * size**-0.5
            if self.causal:
                scores = scores + gm.constant(np.triu(np.full((self.tokens, self.tokens), -1e9, np.float32), 1))
            joined = gm.transpose(gm.matmul(gm.softmax(scores), value), [0, 2, 1, 3])
            x = norm(x + dense(gm.reshape(joined, [-1, self.width]), f"{layer}.joined"), f"{layer}.first")
            wide = dense(x, f"{layer}.wide")
            wide = wide * (0.5 * (1.0 + gm.ops.erf(wide * math.sqrt(0.5))))
            x = norm(x + dense(wide, f"{layer}.narrow"), f"{layer}.second")
        if not training:
            return Made(x)
        means = gm.reduce_mean(gm.reshape(x, [self.batch, self.tokens, self.width]), [1])
        losses = gm.sparse_softmax_cross_entropy_with_logits(labels=d["labels"], logits=dense(means, "last"))
        return Made(gm.reduce_mean(losses))

    def torch(self, torch: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        functions, size = torch.nn.functional, self.width // self.heads

        def dense(x: Any, name: str) -> Any:
            return torch.addmm(w[f"{name}.b"], x, w[f"{name}.w"])

        def norm(x: Any, name: str) -> Any:
            return functions.layer_norm(x, (self.width,), w[f"{name}.gamma"], w[f"{name}.beta"], _EPSILON)

        def heads(x: Any) -> Any:
            return x.view(self.batch, self.tokens, self.heads, size).transpose(1, 2)

        x = d["x"]
        for layer in range(self.layers):
            query, key, value = (heads(dense(x, f"{layer}.{part}")) for part in ("query", "key", "value"))
            joined = functions.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
            joined = joined.transpose(1, 2).reshape(-1, self.width)
            x = norm(x + dense(joined, f"{layer}.joined"), f"{layer}.first")
            x = norm(x + dense(functions.gelu(dense(x, f"{layer}.wide")), f"{layer}.narrow"), f"{layer}.second")
        if not training:
            return Made(x)
        logits = dense(x.view(self.batch, self.tokens, self.width).mean(1), "last")
        return Made(functions.cross_entropy(logits.float(), d["labels"]))

    def jax(self, jax: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        jnp, size = jax.numpy, self.width // self.heads

        def dense(x: Any, name: str) -> Any:
            return x @ w[f"{name}.w"] + w[f"{name}.b"]

        def norm(x: Any, name: str) -> Any:
            wide = x.astype(jnp.float32)
            mean, variance = wide.mean(-1, keepdims=True), wide.var(-1, keepdims=True)
            made = (wide - mean) * jax.lax.rsqrt(variance + _EPSILON)
            return (made * w[f"{name}.gamma"] + w[f"{name}.beta"]).astype(x.dtype)

        def heads(x: Any) -> Any:
            return x.reshape(self.batch, self.tokens, self.heads, size)

        x = d["x"]
        for layer in range(self.layers):
            query, key, value = (heads(dense(x, f"{layer}.{part}")) for part in ("query", "key", "value"))
            joined = jax.nn.dot_product_attention(query, key, value, is_causal=self.causal).reshape(-1, self.width)
            x = norm(x + dense(joined, f"{layer}.joined"), f"{layer}.first")
            wide = jax.nn.gelu(dense(x, f"{layer}.wide"), approximate=False)
            x = norm(x + dense(wide, f"{layer}.narrow"), f"{layer}.second")
        if not training:
            return Made(x)
        logits = dense(x.reshape(self.batch, self.tokens, self.width).mean(1), "last")
        return Made(cross_entropy(jax, logits, d["labels"]))

    def work(self, training: bool) -> Work:
        rows, dense = self.batch * self.tokens, 4 * self.width**2 + 2 * self.width * self._inner
        seen = (self.tokens + 1) / 2 if self.causal else self.tokens
        flops = self.layers * (2.0 * rows * dense + 4.0 * rows * seen * self.width)
        weights = self.layers * dense
        # Adam reads a weight and two slots, and writes all three
        return Work(flops * (3 if training else 1), 4.0 * (weights * (8 if training else 1) + 2 * rows * self.width))
