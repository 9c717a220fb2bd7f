"""Stateless random ops: the same seeds always give the same numbers.

V1 ops take a seed [2]; V2 ops a key [1], a counter [2 or more] and an algorithm (1 Philox, 3 automatic).
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import shape_text
from toolkit.kernels.cpu.random.basic import (
    FILLS,
    check_bounds,
    check_multinomial,
    fill_integers,
    multinomial,
    output_shape,
)
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.registry import FLOATING, INDEX, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_U64 = (1 << 64) - 1
PHILOX, AUTOMATIC = 1, 3
_FULL = {dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64}


def from_seed(seed: Array) -> Philox:
    """The generator of a seed [2].

    Raises:
        InvalidArgumentError: the seed has another shape.
    """
    if np.shape(seed) != (2,):
        raise InvalidArgumentError(f"seed must have shape [2], not {shape_text(seed)}")
    return Philox.scrambled(int(seed[0]), int(seed[1]))


def from_key(key: Array, counter: Array, algorithm: Array) -> Philox:
    """The generator that a key and a counter describe.

    Raises:
        InvalidArgumentError: a wrong shape or an algorithm other than Philox.
    """
    if np.ndim(algorithm) != 0:
        raise InvalidArgumentError(f"input alg must have shape [], not {shape_text(algorithm)}")
    if np.shape(key) != (1,):
        raise InvalidArgumentError(f"key must have shape [1], not {shape_text(key)}")
    if np.ndim(counter) != 1:
        raise InvalidArgumentError(f"counter must be a vector, not of shape {shape_text(counter)}")
    if int(algorithm) not in (PHILOX, AUTOMATIC):
        raise InvalidArgumentError(f"Unsupported algorithm id: {int(algorithm)}")
    if np.size(counter) < 2:
        raise InvalidArgumentError(f"For the Philox algorithm, counter must have 2 elements, not {np.size(counter)}")
    return Philox(int(key[0]) & _U64, (int(counter[1]) & _U64) << 64 | int(counter[0]) & _U64)


_V1 = {
    "StatelessRandomUniform": "Uniform",
    "StatelessRandomNormal": "Normal",
    "StatelessTruncatedNormal": "TruncatedNormal",
}


@kernel(*_V1, types={"dtype": FLOATING})
def stateless_float(op: KernelNode) -> Compute:
    dtype, fill = op.attr("dtype").numpy, FILLS[_V1[op.op]]

    def compute(shape: Array, seed: Array) -> Array:
        return fill(from_seed(seed), output_shape(shape), dtype)

    return compute


@kernel(*(f"{name}V2" for name in _V1), types={"dtype": FLOATING})
def stateless_float_v2(op: KernelNode) -> Compute:
    dtype, fill = op.attr("dtype").numpy, FILLS[_V1[op.op.removesuffix("V2")]]

    def compute(shape: Array, key: Array, counter: Array, algorithm: Array) -> Array:
        return fill(from_key(key, counter, algorithm), output_shape(shape), dtype)

    return compute


@kernel("StatelessRandomUniformFullInt", types={"dtype": _FULL})
def stateless_full_int(op: KernelNode) -> Compute:
    dtype = op.attr("dtype").numpy
    return lambda shape, seed: FILLS["FullInt"](from_seed(seed), output_shape(shape), dtype)


@kernel("StatelessRandomUniformFullIntV2", types={"dtype": _FULL})
def stateless_full_int_v2(op: KernelNode) -> Compute:
    dtype = op.attr("dtype").numpy

    def compute(shape: Array, key: Array, counter: Array, algorithm: Array) -> Array:
        return FILLS["FullInt"](from_key(key, counter, algorithm), output_shape(shape), dtype)

    return compute


def _integers(generator: Philox, shape: Array, low: Array, high: Array) -> Array:
    sizes = output_shape(shape)
    check_bounds(low, high)
    return fill_integers(generator, sizes, low, high)


@kernel("StatelessRandomUniformInt", types={"dtype": INDEX})
def stateless_int(op: KernelNode) -> Compute:
    def compute(shape: Array, seed: Array, low: Array, high: Array) -> Array:
        return _integers(from_seed(seed), shape, low, high)

    return compute


@kernel("StatelessRandomUniformIntV2", types={"dtype": _FULL})
def stateless_int_v2(op: KernelNode) -> Compute:
    def compute(shape: Array, key: Array, counter: Array, algorithm: Array, low: Array, high: Array) -> Array:
        return _integers(from_key(key, counter, algorithm), shape, low, high)

    return compute


@kernel("StatelessMultinomial", types={"T": FLOATING, "output_dtype": INDEX})
def stateless_multinomial(op: KernelNode) -> Compute:
    dtype = op.attr("output_dtype").numpy

    def compute(logits: Array, samples: Array, seed: Array) -> Array:
        count = check_multinomial(logits, samples)
        return multinomial(from_seed(seed), logits, count, dtype)

    return compute


def _key_counter(seed: Array) -> tuple[Array, Array]:
    generator = from_seed(seed)
    counter = [generator.counter & _U64, generator.counter >> 64]
    return np.array([generator.key], np.uint64), np.array(counter, np.uint64)


@kernel("StatelessRandomGetKeyCounter")
def get_key_counter(op: KernelNode) -> Compute:
    return _key_counter


@kernel("StatelessRandomGetKeyCounterAlg")
def get_key_counter_alg(op: KernelNode) -> Compute:
    return lambda seed: (*_key_counter(seed), np.array(PHILOX, np.int32))


@kernel("StatelessRandomGetAlg")
def get_alg(op: KernelNode) -> Compute:
    return lambda: np.array(PHILOX, np.int32)


def is_philox(algorithm: Any) -> bool:
    """Whether an algorithm number means Philox here."""
    return int(algorithm) in (PHILOX, AUTOMATIC)
