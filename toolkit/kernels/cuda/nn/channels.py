"""What is done to each channel: a bias added, an activation, sums over everything else.

Tensors are (outer, channels, inner): where channels are last, inner is 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.kernels.cpu.native import functions, operations
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.common import BLOCK, blocks_of, channel_of, index_type, llvm_type, sum_type
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel

#: given the builder and a number in float or double
Write = Callable[[Any, Lanes], Lanes]


def _gelu(k: KernelBuilder, x: Lanes) -> Lanes:
    share = k.add(functions.erf_float(k, k.mul(x, k.number(math.sqrt(0.5), x.type))), k.number(1.0, x.type))
    return k.mul(x, k.mul(share, k.number(0.5, x.type)))


def _gelu_by_tanh(k: KernelBuilder, x: Lanes) -> Lanes:
    cube = k.mul(k.mul(k.mul(k.number(0.044715, x.type), x), x), x)
    inner = k.mul(k.number(math.sqrt(2 / math.pi), x.type), k.add(x, cube))
    return k.mul(k.mul(k.number(0.5, x.type), x), k.add(functions.tanh(k, inner), k.number(1.0, x.type)))


def _hard_swish(k: KernelBuilder, x: Lanes) -> Lanes:
    share = k.add(k.div(x, k.number(6.0, x.type)), k.number(0.5, x.type))
    return k.mul(x, _clipped(k, share, 0.0, 1.0))


def _clipped(k: KernelBuilder, x: Lanes, low: float, high: float) -> Lanes:
    """NaN stays."""
    first, last = k.number(low, x.type), k.number(high, x.type)
    x = k.select(k.compare("olt", x, first), first, x)
    return k.select(k.compare("ogt", x, last), last, x)


def _swish(k: KernelBuilder, x: Lanes) -> Lanes:
    return k.mul(x, functions.sigmoid(k, x))


def _mish(k: KernelBuilder, x: Lanes) -> Lanes:
    return k.mul(x, functions.tanh(k, functions.softplus(k, x)))


def _leaky(slope: float) -> Write:
    def write(k: KernelBuilder, x: Lanes) -> Lanes:
        return k.select(k.compare("ogt", x, k.number(0.0, x.type)), x, k.mul(x, k.number(slope, x.type)))

    return write


#: TensorFlow's names in `fused_ops`
ACTIVATIONS: dict[str, Write] = {
    "Identity": lambda k, x: x,
    "Relu": operations.relu,
    "Relu6": operations.relu6,
    "Elu": operations.elu,
    "Tanh": functions.tanh,
    "Sigmoid": functions.sigmoid,
    "GeluExact": _gelu,
    "GeluApproximate": _gelu_by_tanh,
    "_MklSwish": _swish,
    "_FusedHardSwish": _hard_swish,
    "Mish": _mish,
}


def activation(name: str, slope: float) -> Write | None:
    """How an activation is written; None if there is none of that name.

    Args:
        slope: of the leaky one.
    """
    return _leaky(slope) if name in ("LeakyRelu", "_MklLeakyRelu") else ACTIVATIONS.get(name)


@functools.cache
def epilogue_kernel(
    type: str,
    index: str,
    last: bool,
    in_place: bool,
    vectors: str,
    vector_type: str,
    is_added: bool,
    name: str,
    slope: float,
) -> SimtKernel:
    """y = activation(x with its channels' vectors + added).

    Args:
        last: channels are the last axis.
        in_place: x is y.
        vectors: "", "bias", or "affine" (x * first + second, a number of each for each channel).
        vector_type: of these in memory.
        is_added: whether a tensor is added.
        name, slope: of the activation.
    """
    wide = sum_type(type)
    k = KernelBuilder("_".join(["epilogue", type, vectors, *(["add"] if is_added else []), name]), BLOCK)
    x = None if in_place else k.buffer("x", type)
    y = k.buffer("y", type, written=True)
    given = [k.buffer(f"vector{n}", vector_type) for n in range({"": 0, "bias": 1, "affine": 2}[vectors])]
    added = k.buffer("added", type) if is_added else None
    channels, inner, count = (
        k.scalar("channels", index),
        None if last else k.scalar("inner", index),
        k.scalar("count", index),
    )
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, count)):
        value: Lanes = k.convert(k.load(y if x is None else x, i), wide)
        if given:
            channel = channel_of(k, i, channels, inner)
            loaded = [k.convert(k.load(each, channel), wide) for each in given]
            value = k.add(value, loaded[0]) if len(loaded) == 1 else k.add(k.mul(value, loaded[0]), loaded[1])
        if added is not None:
            value = k.add(value, k.convert(k.load(added, i), wide))
        write = activation(name, slope)
        assert write is not None
        k.store(y, i, k.convert(write(k, value), type))
    return k.finish()


def launch_epilogue(
    device: Any,
    x: Any,
    y: Any,
    channels: int,
    inner: int,
    *,
    vectors: Sequence[Any] = (),
    added: Any = None,
    name: str = "Identity",
    slope: float = 0.0,
) -> None:
    """On the device's compute stream; nothing for an empty tensor.

    Args:
        x, y: may be the same array.
        vectors: none, a bias, or factors and what is added, of one type.
        added: of the shape of x.
    """
    count = x.nbytes // x.dtype.itemsize
    if not count:
        return
    kernel = epilogue_kernel(
        llvm_type(x.dtype), index_type(x), inner == 1, x is y, ("", "bias", "affine")[len(vectors)],
        llvm_type(vectors[0].dtype) if vectors else "", added is not None, name, slope,
    )  # fmt: skip
    rest = () if added is None else (added,)
    sides = (channels,) if inner == 1 else (channels, inner)
    tensors = (y,) if x is y else (x, y)
    device.launch(kernel, blocks_of(count), *tensors, *vectors, *rest, *sides, count)
