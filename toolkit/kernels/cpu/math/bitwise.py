"""Bits of integers."""

from __future__ import annotations

from toolkit.kernels.cpu.common import broadcasting, np
from toolkit.kernels.registry import simple
from toolkit.kernels.types import Array

simple("BitwiseAnd")(broadcasting(np.bitwise_and))
simple("BitwiseOr")(broadcasting(np.bitwise_or))
simple("BitwiseXor")(broadcasting(np.bitwise_xor))


def _clamped(amount: Array) -> Array:
    """Shift amounts as TensorFlow takes them: what lies outside the width is brought to its ends."""
    return np.clip(amount, 0, amount.dtype.itemsize * 8 - 1)


simple("LeftShift")(broadcasting(lambda x, y: np.left_shift(x, _clamped(y))))
simple("RightShift")(broadcasting(lambda x, y: np.right_shift(x, _clamped(y))))


@simple("PopulationCount")
def population_count(x: Array) -> Array:
    """The number of one bits in each element, as uint8."""
    octets = np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(x.size, x.dtype.itemsize)
    return np.unpackbits(octets, axis=1).sum(axis=1, dtype=np.uint8).reshape(x.shape)
