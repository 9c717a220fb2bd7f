"""Elementwise operations over tensors that no cache holds: their time is that of the memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.cuda.networks.base import Made, Tensors, Work, normal


@dataclass(frozen=True)
class Chain:
    """gelu(a * x + b) + r with numbers a and b for each column: two large tensors in, one out.

    Args:
        form: "gelu"; "triad" for a * x + r alone; "tanh" for tanh(a * x + b) * sigmoid(r).
    """

    form: str = "gelu"
    rows: int = 65536
    columns: int = 1024

    @property
    def depth(self) -> int:
        return 1

    def weights(self) -> dict[str, Any]:
        random = np.random.default_rng(3)
        return {"a": normal(random, self.columns), "b": normal(random, self.columns)}

    def state(self) -> dict[str, Any]:
        return {}

    def data(self) -> dict[str, Any]:
        random = np.random.default_rng(4)
        return {"x": normal(random, self.rows, self.columns), "r": normal(random, self.rows, self.columns)}

    def ours(self, gm: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        if self.form == "triad":
            return Made(d["x"] * w["a"] + d["r"])
        y = d["x"] * w["a"] + w["b"]
        if self.form == "tanh":
            return Made(gm.tanh(y) * gm.sigmoid(d["r"]))
        return Made(y * (0.5 * (1.0 + gm.ops.erf(y * math.sqrt(0.5)))) + d["r"])

    def torch(self, torch: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        if self.form == "triad":
            return Made(d["x"] * w["a"] + d["r"])
        y = d["x"] * w["a"] + w["b"]
        if self.form == "tanh":
            return Made(torch.tanh(y) * torch.sigmoid(d["r"]))
        return Made(torch.nn.functional.gelu(y) + d["r"])

    def jax(self, jax: Any, w: Tensors, s: Tensors, d: Tensors, training: bool) -> Made:
        if self.form == "triad":
            return Made(d["x"] * w["a"] + d["r"])
        y = d["x"] * w["a"] + w["b"]
        if self.form == "tanh":
            return Made(jax.numpy.tanh(y) * jax.nn.sigmoid(d["r"]))
        return Made(jax.nn.gelu(y, approximate=False) + d["r"])

    def work(self, training: bool) -> Work:
        # by the number of operations that the formula has
        return Work(
            {"gelu": 8.0, "triad": 2.0, "tanh": 5.0}[self.form] * self.rows * self.columns,
            3 * 4.0 * self.rows * self.columns,
        )
