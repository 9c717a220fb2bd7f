"""Layers of dense products: the step of an MLP, and a small one whose time is what a step costs by itself."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tests.bench.cuda.networks.base import Made, Tensors, Work, cross_entropy, normal


@dataclass(frozen=True)
class Perceptron:
    """relu between dense layers of `sizes`; for inference its logits, else the mean cross entropy."""

    sizes: tuple[int, ...] = (784, 512, 512, 10)
    batch: int = 128

    @property
    def depth(self) -> int:
        return len(self.sizes)

    def weights(self) -> dict[str, Any]:
        random, found = np.random.default_rng(1), dict[str, Any]()
        for index, (rows, columns) in enumerate(pairwise(self.sizes)):
            found[f"w{index}"] = normal(random, rows, columns, scale=(2 / rows) ** 0.5)
            found[f"b{index}"] = normal(random, columns, scale=0.1)
        return found

    def state(self) -> dict[str, Any]:
        return {}

    def data(self) -> dict[str, Any]:
        random = np.random.default_rng(2)
        return {
            "x": normal(random, self.batch, self.sizes[0]),
            "labels": random.integers(0, self.sizes[-1], self.batch),
        }

    def ours(self, gm: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        x, last = d["x"], len(self.sizes) - 2
        for index in range(last + 1):
            x = gm.bias_add(gm.matmul(x, w[f"w{index}"]), w[f"b{index}"])
            x = gm.relu(x) if index < last else x
        if not training:
            return Made(x)
        return Made(gm.reduce_mean(gm.sparse_softmax_cross_entropy_with_logits(labels=d["labels"], logits=x)))

    def torch(self, torch: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        x, last = d["x"], len(self.sizes) - 2
        for index in range(last + 1):
            x = torch.addmm(w[f"b{index}"], x, w[f"w{index}"])
            x = torch.relu(x) if index < last else x
        return Made(torch.nn.functional.cross_entropy(x.float(), d["labels"]) if training else x)

    def jax(self, jax: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        x, last = d["x"], len(self.sizes) - 2
        for index in range(last + 1):
            x = x @ w[f"w{index}"] + w[f"b{index}"]
            x = jax.nn.relu(x) if index < last else x
        return Made(cross_entropy(jax, x, d["labels"]) if training else x)

    def work(self, training: bool) -> Work:
        weights = sum(rows * columns for rows, columns in pairwise(self.sizes))
        data = self.batch * (self.sizes[0] + self.sizes[-1])
        # backward has two products for each, and an update reads and writes the weights
        return Work(
            2.0 * self.batch * weights * (3 if training else 1), 4.0 * (weights * (3 if training else 1) + data)
        )
