"""Feeding values drawn by chance, of the type and shape of the tensor that is fed.

| text after `--feed NAME=` | what is fed |
|---|---|
| `random` | floats in [0, 1); whole numbers that fit what takes them, else 0 and 1 |
| `random:seed=3,low=-1,high=255,shape=8x224x224x3` | with another seed, other bounds, that shape |

A whole number fits when it is an index of the table that it is looked up in, or a class of the loss that takes it; high
is then the largest. The same text gives the same values for a tensor of the same name. Sizes that are not known are 1,
the first one the size of `--batch`. Truth values are true and false, strings are digits.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.errors import FormatError, GraphmillError, UsageError, did_you_mean
from toolkit.formats import bounds
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.kernels.types import Array
from toolkit.runtime.sessions.feeds import placeholder_shape

_WORD = "random"
_KEYS = ("seed", "low", "high", "shape")
#: op to the input that holds indices, and where the number of things is that they choose among: an input, whose axis
_CHOICES: dict[str, tuple[int, int, int]] = {
    "Gather": (1, 0, 0), "GatherV2": (1, 0, 0), "ResourceGather": (1, 0, 0), "InTopKV2": (1, 0, -1),
    "InTopK": (1, 0, -1), "SparseSoftmaxCrossEntropyWithLogits": (1, 0, -1),
}  # fmt: skip
#: ops through which numbers go as they are
_PASS_ON = frozenset({"Identity", "Cast", "Reshape", "ExpandDims", "Squeeze", "StopGradient"})

#: bytes of an element while it is drawn: complex numbers of two float64
_DRAWN = 16


class UnknownShapeError(UsageError):
    """Nothing says how many axes the values of a tensor have."""

    def __init__(self, tensor: str):
        self.tensor = tensor
        super().__init__(f"nothing is known of the shape of '{tensor}'; give it: random:shape=8x224x224x3")


@dataclass(frozen=True, slots=True)
class RandomFeed:
    """How values are drawn; `low`, `high` and `shape` are None where the tensor says."""

    seed: int = 0
    low: float | None = None
    high: float | None = None
    shape: tuple[int, ...] | None = None


def random_feed(text: str) -> RandomFeed | None:
    """What a text on the command line says of values by chance, or None when it is something else.

    Raises:
        UsageError: it begins so, and goes on otherwise.
    """
    word, colon, rest = text.partition(":")
    if word != _WORD:
        return None
    given: dict[str, Any] = {}
    for part in rest.split(",") if colon else []:
        key, _, value = part.partition("=")
        if key not in _KEYS:
            raise UsageError(
                f"'{key}' is unknown" + did_you_mean(key, _KEYS, then="expected random:seed=S,low=L,high=H,shape=AxB")
            )
        try:
            if key == "shape":
                given[key] = tuple(int(size) for size in value.split("x"))
                if min(given[key]) < 0:
                    raise ValueError
            else:
                given[key] = int(value) if key == "seed" else float(value)
                if not math.isfinite(given[key]) or (key == "seed" and given[key] < 0):
                    raise ValueError
        except (ValueError, OverflowError):
            wanted = {"seed": "a whole number", "shape": "sizes such as 8x224x224x3"}.get(key, "a number")
            raise UsageError(f"{key}={value}: expected {wanted}") from None
    feed = RandomFeed(**given)
    if feed.low is not None and feed.high is not None and feed.high < feed.low:
        raise UsageError(f"high={feed.high:g} is below low={feed.low:g}")
    return feed


def load_random_feeds(feeds: Mapping[Output, Any], batch: int | None = None, other: int = 1) -> dict[Output, Any]:
    """The feeds with arrays in place of `RandomFeed`s.

    Args:
        batch: the first size where it is not known; by default 1.
        other: any other size that is not known.

    Raises:
        UnknownShapeError: nothing is known of a shape.
        UsageError: a tensor is of a type that has no values by chance.
    """
    return {
        output: _draw(output, value, (batch or 1, other)) if isinstance(value, RandomFeed) else value
        for output, value in feeds.items()
    }


def _draw(output: Output, feed: RandomFeed, unknown: tuple[int, int]) -> Array:
    dtype = output.dtype.base
    rng = np.random.default_rng([feed.seed, zlib.crc32(output.name.encode())])
    shape = _shape(output, feed, unknown)
    try:
        bounds.elements(shape, _DRAWN)
    except FormatError as error:
        raise UsageError(f"'{output.name}' has a shape of which there are no values: {error.message}") from None
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "s":
        digits = np.array([str(each).encode() for each in range(10)], object)
        return digits[rng.integers(0, 10, shape)]
    if dtype.is_integer:
        low = 0 if feed.low is None else int(feed.low)
        high = low + _choices(output) - 1 if feed.high is None else int(feed.high)
        limits = np.iinfo(dtype.numpy)
        if low < limits.min or high > limits.max or high < low:
            raise UsageError(f"{dtype} has no numbers from {low} to {high}")
        return rng.integers(low, high, shape, dtype=np.int64, endpoint=True).astype(dtype.numpy)
    if dtype.is_floating or dtype.is_complex:
        low, high = feed.low or 0.0, 1.0 if feed.high is None else feed.high
        value: Any = rng.uniform(low, high, shape)
        if dtype.is_complex:
            value = value + 1j * rng.uniform(low, high, shape)
        return np.asarray(value).astype(dtype.numpy)
    raise UsageError(f"'{output.name}' is {dtype}, of which there are no values by chance; give a file or a literal")


def _shape(output: Output, feed: RandomFeed, unknown: tuple[int, int]) -> tuple[int, ...]:
    declared = placeholder_shape(output)
    known = declared if declared.dims is not None else ShapeMap()[output]
    if feed.shape is not None:
        if not known.is_compatible_with(Shape(feed.shape)):
            raise UsageError(f"'{output.name}' has shape {known}, not {Shape(feed.shape)}")
        return feed.shape
    if known.dims is None:
        raise UnknownShapeError(output.name)
    return tuple(unknown[min(axis, 1)] if size is None else size for axis, size in enumerate(known.dims))


def _choices(output: Output) -> int:
    """How many things the least of those has among which these numbers choose; 2 where none is seen."""
    graph = output.node.graph
    consumers = graph.consumers()
    shapes = ShapeMap()
    found: list[int] = []
    waiting, seen = [output.node], {output.node.id}
    while waiting:
        node = waiting.pop()
        for edge in consumers[node.id]:
            taker = edge.dst
            if (
                taker.op == "OneHot"
                and edge.dst_input == 0
                and isinstance(depth := shapes.constant(taker.inputs[1]), int)
            ):
                found.append(depth)
            if taker.op in _CHOICES and edge.dst_input == _CHOICES[taker.op][0]:
                _, source, axis = _CHOICES[taker.op]
                size = _size(taker.inputs[source], axis, shapes)
                if size:
                    found.append(size)
            if taker.op in _PASS_ON and edge.dst_input == 0 and taker.id not in seen:
                seen.add(taker.id)
                waiting.append(taker)
    return max(1, min(found)) if found else 2


def _size(output: Output, axis: int, shapes: ShapeMap) -> int | None:
    try:
        handle = shapes.handle(output)
        dims = (handle[0][0] if handle else shapes[output]).dims
    except GraphmillError:
        return None
    return dims[axis] if dims else None
