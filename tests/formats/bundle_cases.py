"""Checkpoints that several tests use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from toolkit.formats.bundle import BundleWriter
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

SHAPES: tuple[tuple[int, ...], ...] = ((), (3, 5), (0, 4), (1,))
SUFFIXES = (".index", ".data-00000-of-00001")


def plain_tensors() -> dict[str, tuple[Any, DType]]:
    """A tensor of every type that can be saved, in several shapes."""
    rng = np.random.default_rng(0)
    found: dict[str, tuple[Any, DType]] = {}
    for dtype in dtypes.ALL:
        if dtype.kind in "rvs":
            continue
        for shape in SHAPES:
            low = -2 if dtype.kind == "i" else 0
            values = rng.integers(low, 2, size=shape)
            found[f"{dtype.name}/{'x'.join(map(str, shape)) or 'scalar'}"] = (
                np.asarray(values).astype(dtype.numpy),
                dtype,
            )
    found["string/matrix"] = (np.array([[b"", b"abc"], [b"x" * 300, b"\0\xff\0"]], object), dtypes.string)
    found["string/scalar"] = (np.array(b"one", object), dtypes.string)
    found["string/none"] = (np.empty((0, 2), object), dtypes.string)
    return found


def small_checkpoint(prefix: Path, num_shards: int = 1) -> dict[str, Any]:
    """Write a small checkpoint with strings, a partitioned variable and empty tensors; returns its tensors."""
    kernel = np.arange(12, dtype=np.float32).reshape(4, 3)
    tensors: dict[str, Any] = {
        "bias": np.array([1.5, -2.0], np.float64),
        "empty": np.empty((0, 3), np.int32),
        "flags": np.array([True, False, True]),
        "part": kernel,
        "step": np.array(7, np.int64),
        "words": np.array([b"to", b"", b"be"], object),
    }
    with BundleWriter(prefix, num_shards) as writer:
        for at, (name, array) in enumerate(tensors.items()):
            shard = at % num_shards
            if name == "part":
                writer.add_slice("part", (4, 3), "0,2:-", kernel[:2], shard=shard)
                writer.add_slice("part", (4, 3), "2,2:-", kernel[2:], shard=(shard + 1) % num_shards)
            else:
                writer.add(name, array, shard=shard)
    return tensors


def equal(a: Any, b: Any) -> bool:
    """Same type, shape and bytes (elements for strings)."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool((a == b).all()) if a.dtype == object else a.tobytes() == b.tobytes()
