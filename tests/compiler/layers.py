"""Layers of small networks, with weights that are drawn anew and the same each time."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit import client as gm


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Random float32 numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def convolution(x: Any, channels: int, filters: int, kernel: int = 3, stride: int = 1, seed: int = 0) -> Any:
    """A convolution whose outputs are about as large as its inputs."""
    w = normal(kernel, kernel, channels, filters, seed=seed) / np.float32(kernel * np.sqrt(channels))
    return gm.ops.conv2d(x, gm.constant(w), strides=[1, stride, stride, 1], padding="SAME")


def batch_norm(x: Any, channels: int, seed: int = 0) -> Any:
    """A batch norm as inference has it."""
    scale, offset, mean = (normal(channels, seed=seed + at) for at in (1, 2, 3))
    variance = np.abs(normal(channels, seed=seed + 4)) + np.float32(0.5)
    return gm.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)[0]
